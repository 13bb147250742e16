"""The part that all front ends share: opening sessions, turns, the permission mode, warnings and slash commands.

A front end, such as the terminal or a headless run, only renders. It calls `RunRequest.start`, opens sessions with
`Frontend.open`, and passes an `emit` that gets every event and every warning (`Live(Notice)`). How a turn ended is put
into words by `outcomes`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from bradawl.app.context_window import LONG_TOKENS, WindowWatch
from bradawl.app.modes import (
    STILL_PLANNING,
    begin_in_mode,
    choose_mode,
    current_mode,
    sandbox_warning,
    undo_warning,
    why_not,
)
from bradawl.app.notices import NoticeStream
from bradawl.core.deltas import Notice
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.core.events import AssistantReplied, Envelope, Live
from bradawl.core.permissions import Mode
from bradawl.core.ports import Approver, Emit

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.agent.session import Prompt, Session, TurnResult
    from bradawl.app.settings.settings import Settings
    from bradawl.app.slash_commands import CommandRegistry, CommandResult
    from bradawl.app.terminal_user import TerminalUser
    from bradawl.core.messages import Message

_OWN_PROMPT: Final = "a session that is continued keeps its system prompt: a text for it counts in new sessions only"
Build = Callable[["Settings", Approver], "Agent"]
"""Builds an agent, as `bradawl.app.build.agent.build_agent` does; may raise `SettingsError`."""


class RunRequest(NamedTuple):
    """The request on the command line, ready for a front end."""

    settings: "Settings"
    build: Build
    choose_session: "Callable[[Agent], str | None]"
    """The id of the session to continue, None for a new one. Raises `SessionError`."""
    load_commands: "Callable[[], CommandRegistry]"
    """Loads the slash commands; called when one is used."""
    reload_settings: "Callable[[], Settings]"
    """Reads the settings again, for example after the user has trusted the project."""
    notices: NoticeStream
    prompt: str = ""
    piped: str = ""
    """What was piped in besides the prompt; only in a headless run."""
    is_command: bool = False
    """The prompt is a slash command; only in a headless run."""
    mode_is_asked_for: bool = False
    """The permission mode was chosen for this run, by a flag or a variable."""

    def start(
        self,
        approver: Approver,
        emit: Emit,
        *,
        user_is_there: bool,
        warnings: Callable[[], Iterable[str]] = tuple,
        keys_help: str = "",
        user: "TerminalUser | None" = None,
    ) -> "Frontend":
        """Build the agent. From now on warnings go to `emit`. Close the front end's agent. Raises `SettingsError`."""
        self.notices.emit = emit
        return Frontend(self, self.build(self.settings, approver), user_is_there, warnings, keys_help, user)


class Frontend:
    """A run as a front end uses it: opens sessions and emits warnings."""

    def __init__(
        self,
        request: RunRequest,
        agent: "Agent",
        user_is_there: bool,
        warnings: Callable[[], Iterable[str]] = tuple,
        keys_help: str = "",
        user: "TerminalUser | None" = None,
    ) -> None:
        """`warnings` are the front end's own, for the start. `keys_help` says how input works there, for `/help`."""
        self.request = request
        self.settings = request.settings
        self.agent = agent
        self.user_is_there = user_is_there
        self.notify = request.notices
        self.keys_help = keys_help
        self.user = user
        """Whom commands ask; None if no user can answer."""
        is_local = self.settings.model.is_local
        self.window_watch = WindowWatch(
            agent.model,
            is_local=is_local,
            from_tokens=1 if user_is_there else LONG_TOKENS,
            is_compacted=self.settings.auto_compact,
        )
        self._warnings = warnings
        self._is_announced = False

    @property
    def model_name(self) -> str:
        """`provider/model`, as the settings name it."""
        return f"{self.settings.model.provider}/{self.settings.model.name}"

    @property
    def commands(self) -> "CommandRegistry":
        """The slash commands."""
        return self.request.load_commands()

    def open(self, session_id: str | None = None) -> "FrontendSession":
        """A new session, or an existing one to continue; an async context manager. Raises `SessionError`."""
        return FrontendSession(self, self.agent.open(session_id))

    def announce(self) -> None:
        """Emit the warnings for the start, once: about the sandbox and the front end's own. May wait for the sandbox.

        Without this call they are emitted as soon as the model answers the first request.
        """
        if self._is_announced:
            return
        self._is_announced = True
        warning = sandbox_warning(lambda: self.agent.policy().sandbox, self.settings, user_is_there=self.user_is_there)
        for text in filter(None, (warning, undo_warning(self.settings), *self._warnings())):
            self.notify(text)

    def emit(self, item: Envelope | Live) -> None:
        """Pass on what happens in a turn."""
        self.notify.emit(item)
        if self._is_announced:
            return
        is_reply = not isinstance(item.item, Notice) if isinstance(item, Live) else _is_reply(item)
        if is_reply:
            self.announce()


def _is_reply(envelope: Envelope) -> bool:
    return isinstance(envelope.event, AssistantReplied)


class FrontendSession:
    """An open session as a front end uses it. An async context manager; one turn at a time."""

    def __init__(self, frontend: Frontend, session: "Session") -> None:
        self.frontend = frontend
        self.session = session
        self._mode_before_plan: Mode | None = None

    @property
    def id(self) -> str:
        """The session's id, which continues it."""
        return self.session.id

    @property
    def messages(self) -> "Sequence[Message]":
        """The transcript: what the model has seen."""
        return self.session.transcript.messages

    @property
    def has_waiting_message(self) -> bool:
        """True if a message sent during a turn goes to the model with the next prompt."""
        return self.session.inbox.holds_user_note

    def close_log(self) -> bool:
        """Close the log; true if all of it is on disk, so that the session can be continued."""
        return self.session.log.close()

    async def __aenter__(self) -> Self:
        await self.session.__aenter__()
        try:
            self._begin()
        except BaseException as error:
            await self.session.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    def _begin(self) -> None:
        request = self.frontend.request
        begin_in_mode(self.session, request.settings, is_asked_for=request.mode_is_asked_for)
        self.session.show_with(self.frontend.emit)
        if not self.frontend.user_is_there and not request.mode_is_asked_for and self.session.state.mode == "plan":
            self.frontend.notify(STILL_PLANNING)
        if self.session.state.prefix is not None and (
            request.settings.system_prompt or request.settings.append_system_prompt
        ):
            self.frontend.notify(_OWN_PROMPT)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, error, trace)

    async def run(self, prompt: "Prompt") -> "TurnResult":
        """Run a turn and emit its events and warnings. Raises `SessionError`. Cancelling it cancels the turn."""
        front, session = self.frontend, self.session
        turn = await front.window_watch.during(partial(session.run, prompt), front.emit, front.notify)
        if (warning := await front.window_watch.after_turn(session.state)) is not None:
            front.notify(warning)
        return turn

    @property
    def is_running(self) -> bool:
        """True while a turn or a compaction runs."""
        return self.session.is_running

    def cancel(self) -> None:
        """End the running turn; `run` then returns with reason `cancelled`. Does nothing between turns."""
        self.session.cancel()

    def send(self, text: str) -> bool:
        """Add a message of the user to the running turn; the model sees it at its next step.

        False, with nothing done, as long as the session has no first entry.
        """
        if self.session.conversation.last_event is None:
            return False
        self.session.send(text)
        return True

    @property
    def mode(self) -> Mode:
        """The permission mode of the next call."""
        return current_mode(self.session)

    def choose_mode(self, mode: Mode) -> None:
        """Change the permission mode from the next step on. Raises `SettingsError` where that is not allowed."""
        if objection := why_not(mode, self.frontend.settings):
            raise SettingsError(objection)
        now = self.mode
        if mode != now:
            self._mode_before_plan = now if mode == "plan" else None
            choose_mode(self.session, mode)

    def toggle_plan_mode(self) -> None:
        """Enter plan mode, or leave it for the mode before it. Raises `SettingsError` where that is not allowed."""
        if self.mode != "plan":
            self.choose_mode("plan")
            return
        usual = self.session.agent.policy().mode
        self.choose_mode(self._mode_before_plan or ("default" if usual == "plan" else usual))

    async def run_command(self, line: str) -> "CommandResult":
        """Run a slash command. Raises `SettingsError` with a text for the user, for example for a wrong argument.

        A command that fails otherwise raises `CommandFailed`; the session can go on.
        """
        from bradawl.app.slash_commands import CommandFailed

        try:
            return await self.frontend.commands.run(self, line, user_is_there=self.frontend.user_is_there)
        except (SettingsError, CommandFailed):
            raise
        except BradawlError as error:
            raise CommandFailed(str(error)) from error
        except Exception as error:  # a defect of the command
            from bradawl.app.error_reports import report

            name = line.split()[0]
            raise CommandFailed(f"{name} failed: {report(error, self.frontend.settings.home)}") from error
