"""Computes which later calls an approval for the session covers."""

from collections.abc import Mapping

import msgspec

from bradawl.core.permissions import Ask, Request


def covered(request: Request, ask: Ask, agent: str, cwd: str, env: Mapping[str, str | None]) -> str:
    """Identifies the calls that a yes for the session covers; empty if it covers one call alone. For a call that runs
    programs these are calls of the same agent with equal arguments, seal, grant, folder and variables. For a connection
    of a command these are the connections of all commands, of all agents, to that host and port. For any other tool
    these are all its calls, except those that a rule asks about.
    """
    if request.effects.unsealed:
        return ""
    if request.effects.lifts == ("host",):
        return f"host:{' '.join(request.effects.hosts)} {ask.reason if ask.by_rule else ''}"
    if not request.stands_alone:
        return f"{request.tool} {ask.reason}" if ask.by_rule else request.tool
    variables = sorted(env.items(), key=lambda item: item[0])
    sealed = (agent, request.tool, request.arguments_digest, ask.grant, cwd, variables)
    return msgspec.json.encode(sealed).hex()
