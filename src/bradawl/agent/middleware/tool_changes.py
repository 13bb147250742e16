"""Sends the new tools when a session's tools were changed: opens a new prefix before the next step."""

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext


class ToolChanges(Middleware):
    """Applies the tools that `Session.change_tools` asked for."""

    def __init__(self, context: MiddlewareContext) -> None:
        self._prefix = context.prefix

    async def before_step(self) -> Finish | None:
        """Reopen the prefix if other tools are wanted."""
        if (wanted := self._prefix.wanted_tools) is not None:
            self._prefix.wanted_tools = None
            await self._prefix.reopen("tools", tools=wanted)
        return None
