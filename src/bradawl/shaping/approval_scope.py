"""Computes which later calls an approval for the session covers."""

from collections.abc import Mapping

import msgspec

from bradawl.core.permissions import Ask, Request


def covered(request: Request, ask: Ask, agent: str, cwd: str, env: Mapping[str, str | None]) -> str:
    """Names what a yes for the session covers; empty where it can cover no more than the one call.

    A call that runs programs is covered with its arguments, its seal and its grant, in its folder and with its
    variables, for the agent that made it. Another tool is covered as a whole, apart from what a rule asks about.
    """
    if request.effects.unsealed:
        return ""
    if not request.stands_alone:
        return f"{request.tool} {ask.reason}" if ask.by_rule else request.tool
    variables = sorted(env.items(), key=lambda item: item[0])
    sealed = (agent, request.tool, request.arguments_digest, ask.grant, cwd, variables)
    return msgspec.json.encode(sealed).hex()
