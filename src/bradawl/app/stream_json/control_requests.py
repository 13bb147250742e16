"""The requests that the program that started bradawl may send on the control channel."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from bradawl.app.frontend import FrontendSession
from bradawl.app.settings.permission_values import parse_mode
from bradawl.app.stream_json.approver import ControlApprover
from bradawl.app.stream_json.control_channel import Handler, RequestFailed
from bradawl.app.stream_json.input_messages import Json
from bradawl.core.permissions import Mode

if TYPE_CHECKING:
    from bradawl.app.run_models import ChosenModel

_REFUSED: Final[Mapping[str, str]] = {
    "hooks": "run hooks of the program that starts it, so a hook that guards calls would never run; use can_use_tool",
    "sdkMcpServers": "use MCP servers of the program that starts it",
    "systemPrompt": "take the system prompt here; use --system-prompt",
    "appendSystemPrompt": "take the system prompt here; use --append-system-prompt",
    "jsonSchema": "take a schema here; use --json-schema",
}
"""Fields of `initialize` without which the run would do something else than was asked for; what bradawl can't do."""
_WITHOUT_EFFECT: Final = frozenset({"forwardSubagentText", "excludeDynamicSections", "systemPromptSnapshot"})
"""Fields that ask for what bradawl does anyway, or that only save tokens with Anthropic's own prompt."""


class ControlRequests:
    """Carries out requests for one session."""

    def __init__(
        self,
        session: FrontendSession,
        approver: ControlApprover,
        *,
        interrupt: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._session, self._approver = session, approver
        self._interrupt, self._warn = interrupt, warn
        self._next_model: ChosenModel | None = None
        """The model of the next message, where it is another one."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers, by the subtype of the request."""
        return {
            "initialize": self.initialize,
            "interrupt": self.interrupt,
            "set_permission_mode": self.set_permission_mode,
            "set_model": self.set_model,
            "mcp_status": lambda _: {"mcpServers": []},
        }

    def initialize(self, fields: Json) -> Json:
        """What can be used in this run. Raises `RequestFailed` for a request that would be kept only in part."""
        asked = {name: value for name, value in fields.items() if value and name not in _WITHOUT_EFFECT}
        for name in asked:
            if name in _REFUSED:
                raise RequestFailed(f"initialize: bradawl can't {_REFUSED[name]}.")
            self._warn(f"initialize: {name} has no effect in bradawl")
        frontend, model = self._session.frontend, self._session.model_name
        commands = (each for each in frontend.commands.commands if not each.needs_user)
        return {
            "commands": [
                {"name": each.name, "description": each.summary, "argumentHint": each.usage.partition(" ")[2]}
                for each in commands
            ],
            "agents": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": model, "displayName": model, "description": ""}],
            "account": {},
            "pid": os.getpid(),
        }

    def interrupt(self, _: Json) -> Json:
        """End the running turn, or the one that is about to begin."""
        self._interrupt()
        return {}

    def set_permission_mode(self, fields: Json) -> Json:
        """Change the mode from the next call on. Raises `SettingsError`."""
        name = fields.get("mode")
        self.choose_mode(name)
        return {"mode": name}

    def choose_mode(self, name: object) -> None:
        """The same by name: one of bradawl's, or of Claude Code's. `dontAsk` refuses what would be asked about."""
        mode: Mode = "default" if name == "dontAsk" else parse_mode(name, "set_permission_mode: mode")
        self._session.choose_mode(mode)
        self._approver.asks = name != "dontAsk"

    def set_model(self, fields: Json) -> Json:
        """Have another model answer from the next message on; without a name that of the settings.

        Raises `RequestFailed` and, for a model that can't be used, `SettingsError`.
        """
        session, wanted = self._session, fields.get("model")
        models = session.frontend.request.models
        if models is None:
            raise RequestFailed("set_model: the model can't be changed here.")
        if wanted is not None and not isinstance(wanted, str):
            raise RequestFailed(f'set_model: "model" is a name or null, not {wanted!r:.60}.')
        usual = session.frontend.settings.model
        if wanted in (None, "default"):
            chosen = models.named(usual.provider, usual.name)
        else:
            chosen = models.choose(wanted, session.model)
        is_present = (chosen.settings.provider, chosen.settings.name) == (session.model.provider, session.model.name)
        self._next_model = None if is_present else chosen
        for note in chosen.notes if not is_present else ():
            self._warn(note)
        return {}

    async def use_next_model(self) -> None:
        """Carry out the last `set_model`; no turn may run. Raises `BradawlError`, and the model before it stays."""
        chosen, self._next_model = self._next_model, None
        if chosen is not None and not await self._session.use_model(chosen):
            self._warn(f"the choice of {chosen.name} could not be saved: a later run of the session does not know it")
