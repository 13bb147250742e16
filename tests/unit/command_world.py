"""A conversation for tests of slash commands: the real front end, a scripted model, and a user who picks and types."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from bradawl.agent.agent import Agent
from bradawl.app.commands.builtin import builtin_commands
from bradawl.app.frontend import Frontend, FrontendSession, RunRequest
from bradawl.app.notices import NoticeStream
from bradawl.app.run_models import RunModels
from bradawl.app.session_choice import kept_flags
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.settings import Settings
from bradawl.app.slash_commands import CommandResult
from bradawl.app.terminal_user import Dialogs, KeyChoice, Option, Whole
from bradawl.core.deltas import Notice
from bradawl.core.events import Envelope, Event, Live
from bradawl.core.http import HttpRequest
from bradawl.core.permissions import Policy
from bradawl.core.ports import Tool
from bradawl.session.store import LocalStore
from bradawl.testing.fake_http import Cut, Reply, ScriptedHttp
from bradawl.testing.fakes import FakeTool, MemoryFiles, ScriptedApprover, ScriptedProcesses
from bradawl.testing.scripted import ScriptedModel
from bradawl.workspace.machine import SystemClock, SystemIds


class FakeUser:
    """`TerminalUser` with answers in order; an option is picked by a text in its label."""

    def __init__(self, *answers: str) -> None:
        self.dialogs: Dialogs | None = None
        self._answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.offered: list[tuple[str, tuple[Option, ...]]] = []
        self.copied: list[str] = []
        self.themes: list[str] = []
        self.has_clipboard = True

    async def ask(self, text: str, question: str) -> str:
        """The next answer."""
        self.asked.append((text, question))
        return self._answers.pop(0) if self._answers else ""

    async def pick(self, title: str, options: Sequence[Option]) -> str | None:
        """The value of the first option whose label holds the next answer; None without an answer."""
        self.offered.append((title, tuple(options)))
        wanted = self._answers.pop(0) if self._answers else None
        return next((each.value for each in options if wanted is not None and wanted in each.label), None)

    def use_theme(self, name: str) -> None:
        """Remember the name."""
        self.themes.append(name)

    def copy(self, text: str) -> bool:
        """Remember the text, if there is a clipboard."""
        if self.has_clipboard:
            self.copied.append(text)
        return self.has_clipboard


class FakeDialogs:
    """`Dialogs` that keeps what is shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str, Whole, bool | None]] = []

    async def choose(
        self, title: str, text: str, choices: Sequence[KeyChoice], whole: Callable[[], Whole]
    ) -> str | None:
        """The user leaves each question."""

    async def pick_from(self, title: str, options: Sequence[Option], start: str) -> str | None:
        """The user leaves each list."""

    async def show(self, summary: str, title: str, whole: Whole, *, opens: bool | None = None) -> None:
        """Remember it."""
        self.shown.append((summary, title, whole, opens))


class Conversation:
    """The open session of a front end, and all that was shown."""

    def __init__(self, frontend: Frontend, session: FrontendSession, shown: list[Any]) -> None:
        self.frontend, self.session, self._shown = frontend, session, shown

    async def type(self, line: str) -> str:
        """The text that a command shows."""
        return (await self.run(line)).text

    async def run(self, line: str) -> CommandResult:
        """What a command gives to the front end."""
        return await self.session.run_command(line)

    async def prompt(self, text: str) -> str:
        """The answer to a prompt."""
        return (await self.session.run(text)).text

    @property
    def events(self) -> list[Event]:
        """The events that were shown."""
        return [item.event for item in self._shown if isinstance(item, Envelope)]

    @property
    def notices(self) -> list[str]:
        """The warnings that were shown."""
        return [item.item.text for item in self._shown if isinstance(item, Live) and isinstance(item.item, Notice)]


class CommandWorld:
    """A home folder, a project and a store on the disk; each conversation is a run of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.script: list[dict[str, Any]] = []
        self.environ = {"HOME": str(self.home), "BRADAWL_MODEL": "scripted/default.json", "BRADAWL_SANDBOX": "off"}
        self.options: dict[str, object] = {}
        self.tools: tuple[Tool[Any], ...] = (FakeTool("look"),)
        self.models: list[ScriptedModel] = []
        """The models of the settings, one for each agent that was built."""
        self.agent_changes: dict[str, Any] = {}
        self.listed: dict[str, list[str]] = {}
        """The models that endpoints list, by a part of the URL; all others give no list."""

    def connect(self, proxy: str | None, ca_file: str | None) -> ScriptedHttp:
        """A client for lists of models."""

        def answer(request: HttpRequest) -> Reply | Cut:
            names = next((names for part, names in self.listed.items() if part in request.url), None)
            data = {"data": [{"id": name} for name in names or ()]}
            return Cut() if names is None else Reply(200, (json.dumps(data).encode(),))

        return ScriptedHttp(answer)

    def script_file(self, name: str, script: list[dict[str, Any]]) -> str:
        """Write a script that `/model scripted/NAME` uses; returns that name."""
        (self.project / name).write_text(json.dumps(script))
        return f"scripted/{name}"

    def settings(self, more: Mapping[str, object] = MappingProxyType({})) -> Settings:
        """The settings of a run, with further options."""
        settings = load_settings({**self.options, **more}, self.environ, str(self.project))
        return msgspec.structs.replace(settings, undo=False)

    def store(self) -> LocalStore:
        """The store of the project."""
        return LocalStore(self.settings().home, str(self.project), SystemClock(), SystemIds())

    def build(self, settings: Settings, approver: Any) -> Agent:
        """An agent whose model answers from `script`."""
        self.models.append(ScriptedModel(json.dumps(self.script).encode()))
        given: dict[str, Any] = {
            "model": self.models[-1],
            "tools": self.tools,
            "store": self.store(),
            "files": MemoryFiles(),
            "processes": ScriptedProcesses(),
            "approver": approver,
            "clock": SystemClock(),
            "ids": SystemIds(),
            "policy": lambda: Policy("bypass", roots=(str(self.project), *settings.add_dirs)),
            "system_prompt": _prompt,
            "project": str(self.project),
            **self.agent_changes,
        }
        return Agent(**given)

    def start(
        self,
        shown: list[Any],
        user: FakeUser | None = None,
        *,
        user_is_there: bool = True,
        build: Callable[..., Agent] | None = None,
        keys_help: str = "",
    ) -> Frontend:
        """A front end that shows in a list."""
        settings, notices = self.settings(), NoticeStream(shown.append)
        request = RunRequest(
            settings,
            build or self.build,
            lambda _: None,
            builtin_commands,
            self.settings,
            notices,
            load_models=lambda: RunModels(settings, self.options, str(self.project), notices, self.connect),
            settings_with=self.settings,
            kept_flags=kept_flags(self.options),
        )
        return request.start(
            ScriptedApprover(), shown.append, user_is_there=user_is_there, user=user, keys_help=keys_help
        )

    @asynccontextmanager
    async def conversation(
        self, session_id: str | None = None, user: FakeUser | None = None, **changes: Any
    ) -> AsyncIterator[Conversation]:
        """A run with one session."""
        shown: list[Any] = []
        frontend = self.start(shown, user, **changes)
        try:
            async with frontend.open(session_id) as session:
                yield Conversation(frontend, session, shown)
        finally:
            await frontend.agent.aclose()


async def _prompt() -> str:
    return "You are a test."
