"""Checks of what fits into the model: system prompt and tools against its context window."""

from collections.abc import Sequence
from typing import Final

from bradawl.app.context_window import longer_context
from bradawl.app.doctor.check import Check
from bradawl.app.doctor.permissions import BuildAgent, permission_checks
from bradawl.app.settings.providers import SCRIPTED, is_loopback
from bradawl.app.settings.settings import Settings, tools_folders
from bradawl.core.errors import BradawlError
from bradawl.core.ports import Prefix, Window

_WORK: Final = 4_000
"""Tokens for a first prompt, one file read and an answer, besides system prompt and tools."""


async def context_checks(settings: Settings, build: BuildAgent) -> list[Check]:
    """Whether system prompt and tools fit into the model's context window with room for work; and the permissions."""
    warnings: list[str] = []
    try:
        agent = build(settings, warnings.append)
    except BradawlError as error:
        return [Check("context", "problem", str(error))]
    try:
        from bradawl.shaping.context_size import prefix_tokens
        from bradawl.shaping.tool_schema import schemas_of

        needed = prefix_tokens(Prefix(await agent.system_prompt(), schemas_of(agent.tools)))
        window = await agent.model.window()
        tools = _user_tools_check(settings, [tool.spec.name for tool in agent.tools])
        permissions = permission_checks(agent)  # adds warnings about `network`
        told = (Check("warning", "warning", warning) for warning in warnings)
        return [_window_check(settings, needed, window), tools, *told, *permissions]
    finally:
        await agent.aclose()


def _user_tools_check(settings: Settings, offered: Sequence[str]) -> Check:
    """The names of the user's own tools, and where they are looked for."""
    if not settings.user_tools:
        return Check("user tools", "ok", "left out, as the setting user_tools says")
    from bradawl.app.build.tools import build_tools

    own = {tool.spec.name for tool in build_tools(settings, headless=False)}
    names = ", ".join(name for name in offered if name not in own) or "none"
    folders = " and ".join(str(folder) for folder in tools_folders(settings))
    return Check("user tools", "ok", f"{names}; looked for in {folders}, and in packages named bradawl-...")


def _window_check(settings: Settings, needed: int, window: Window) -> Check:
    chosen = settings.model
    said = {"settings": "", "server": " as the server runs it", "assumed": ", which is only assumed"}[window.source]
    text = f"{needed:,} tokens before the first word, of {window.tokens:,}{said}"
    is_local = chosen.provider != SCRIPTED and bool(chosen.base_url) and is_loopback(chosen.base_url)
    fix = f"To give it room, {longer_context(chosen.provider, chosen.name, needed + _WORK)}." if is_local else ""
    if window.source != "assumed" and window.tokens < needed + _WORK:
        hint = fix or "Choose a model with a longer context."
        return Check("context", "problem", f"{text}: too little to work with.", hint)
    if window.source == "assumed" and is_local:
        hint = f"Some servers silently drop what does not fit. {fix} Then say so with --context-window N."
        return Check("context", "warning", text, hint)
    return Check("context", "ok", text)
