"""The part that all front ends share: opening sessions, turns, the permission mode, warnings and slash commands.

A front end, such as the terminal or a headless run, only renders. It calls `RunRequest.start`, opens sessions with
`Frontend.open`, and passes an `emit` that gets every event and every warning (`Live(Notice)`). How a turn ended is put
into words by `outcomes`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

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
from bradawl.app.symbols import UNICODE
from bradawl.core.deltas import Notice
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.core.events import AssistantReplied, DirsAdded, Envelope, Live
from bradawl.core.permissions import Mode
from bradawl.core.ports import Approver, Emit

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.agent.session import Prompt, Session, TurnResult
    from bradawl.app.run_models import ChosenModel, RunModels
    from bradawl.app.settings.model_settings import ModelSettings
    from bradawl.app.settings.settings import Settings
    from bradawl.app.slash_commands import CommandRegistry, CommandResult
    from bradawl.app.terminal_user import TerminalUser
    from bradawl.app.user_command import UserShell
    from bradawl.core.messages import Message
    from bradawl.core.ports import Model

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
    kept_flags: frozenset[str] = frozenset()
    """The settings that flags of this run give and sessions keep."""
    load_models: "Callable[[], RunModels] | None" = None
    """Gives the models that the run can change to; None if it can't change its model."""
    settings_with: "Callable[[Mapping[str, object]], Settings] | None" = None
    """Reads the settings again, with options as flags give them in place of the run's own; None if that can't be done.
    Raises `SettingsError`."""

    @property
    def models(self) -> "RunModels | None":
        """The models that the run can change to; None if it can't change its model."""
        return self.load_models() if self.load_models is not None else None

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
        frontend = Frontend(self, self.build(self.settings, approver), user_is_there, warnings, keys_help, user)
        frontend.build = lambda settings: self.build(settings, approver)
        return frontend


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
        self.has_answers = user_is_there
        """Questions are answered; another program can do that where no user is."""
        self.notify = request.notices
        self.keys_help = keys_help
        self.user = user
        """Whom commands ask; None if no user can answer."""
        self.symbols = UNICODE
        """Those that the output can carry."""
        self.build: Callable[[Settings], Agent] | None = None
        """Builds another agent for this front end."""
        self.next_settings: Settings | None = None
        """The settings of the next session; None for those of this one."""
        self.added_dirs: tuple[str, ...] = ()
        """Folders that the user added to the workspace in this run."""
        self.chosen: ChosenModel | None = None
        """The model that the user chose in this run, for its next sessions too; None for that of the settings."""
        self.window_watch = self.watch(agent.model, is_local=self.settings.model.is_local)
        self._warnings = warnings
        self._is_announced = False

    @property
    def model_name(self) -> str:
        """`provider/model` of a new session."""
        return self.chosen.name if self.chosen else f"{self.settings.model.provider}/{self.settings.model.name}"

    def watch(self, model: "Model", *, is_local: bool) -> WindowWatch:
        """What warns about the window of a model; `is_local` if it runs on this machine."""
        return WindowWatch(
            model,
            is_local=is_local,
            from_tokens=1 if self.user_is_there else LONG_TOKENS,
            is_compacted=self.settings.auto_compact,
        )

    @property
    def commands(self) -> "CommandRegistry":
        """The slash commands."""
        return self.request.load_commands()

    async def renew(self) -> None:
        """Build the agent anew if the next session has other settings. No session may be open. Closes the agent.

        If it can't be built with them, it is built as it was, with a warning.
        """
        settings, self.next_settings = self.next_settings, None
        if settings is None or self.build is None:
            return
        await self.agent.aclose()
        try:
            self.agent, self.settings = self.build(settings), settings
        except SettingsError as error:
            self.agent = self.build(self.settings)
            self.notify(f"The new settings can't be used, so the old ones hold: {error}")
        self.window_watch = self.watch(self.agent.model, is_local=self.settings.model.is_local)

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
        warning = sandbox_warning(lambda: self.agent.policy().sandbox, self.settings, user_is_there=self.has_answers)
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
        self._shell: UserShell | None = None
        self.model: ModelSettings = frontend.settings.model
        """The model that answers."""
        self._window_watch = frontend.window_watch
        self._own_models: list[Model] = []
        """Models that were built for the session, and are closed after it."""

    @property
    def model_name(self) -> str:
        """`provider/model` of the model that answers."""
        return f"{self.model.provider}/{self.model.name}"

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
        await self._widen_workspace()
        await self.session.__aenter__()
        try:
            self._begin()
            await self._begin_with_model()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def _widen_workspace(self) -> None:
        """Open the session with the folders that the user added to it; a folder that is gone is left out."""
        front, dirs = self.frontend, self.session.choices.now.dirs
        if not dirs:
            return
        from bradawl.app.added_folders import with_usable_folders

        settings_with = front.request.settings_with
        front.next_settings = with_usable_folders(dirs, front.settings, settings_with, front.notify)
        if front.next_settings is None:
            return
        self.session.log.close()
        await front.renew()
        self._use(front.agent.open(self.session.id))

    def _use(self, session: "Session") -> None:
        self.session, self._window_watch = session, self.frontend.window_watch

    def _begin(self) -> None:
        if self.frontend.added_dirs and self.session.conversation.last_event is None:
            self.session.choices.record(DirsAdded(self.frontend.added_dirs))
        request, settings = self.frontend.request, self.frontend.settings
        begin_in_mode(self.session, settings, is_asked_for=request.mode_is_asked_for)
        self.session.show_with(self.frontend.emit)
        if not self.frontend.user_is_there and not request.mode_is_asked_for and self.session.state.mode == "plan":
            self.frontend.notify(STILL_PLANNING)
        if self.session.state.prefix is not None and (settings.system_prompt or settings.append_system_prompt):
            self.frontend.notify(_OWN_PROMPT)

    async def _begin_with_model(self) -> None:
        """Have the model answer that was chosen in the session, else in this run."""
        front, choices = self.frontend, self.session.state.choices
        if front.request.kept_flags and front.chosen is None:
            from bradawl.app.session_settings import keep_flags

            keep_flags(self.session, front.settings, front.request.kept_flags)
        said = self.session.choices.now.model if choices.model is not None else None
        if said is None and front.chosen is None:
            return
        if (models := front.request.models) is None:
            return
        if said is None or (models.is_asked_for and front.chosen is not None):
            if front.chosen is not None:
                is_new = self.session.conversation.last_event is None
                await self._change_model(front.chosen, is_choice=is_new)
                if not is_new:
                    front.notify(f"this session goes on with {front.chosen.name}, as you chose in this run")
            return
        name = f"{said.provider}/{said.model}"
        try:
            chosen = models.named(said.provider, said.model, said.context_window)
        except SettingsError as error:
            front.notify(f"{name}, the model of this session, can't be used, {self.model_name} answers: {error}")
            return
        is_other = chosen.name != self.model_name
        if not is_other and chosen.settings.context_window == self.model.context_window:
            return
        await self._change_model(chosen, is_choice=False)
        what = name if is_other else f"a context window of {said.context_window:,} tokens"
        another = "/model or -m chooses another" if is_other else "--context-window chooses another"
        front.notify(f"this session goes on with {what}, as you chose in it; {another}")

    async def use_model(self, chosen: "ChosenModel") -> bool:
        """Have another model answer from the next prompt on, and in the sessions that follow in this run.

        Returns whether the choice is on the disk. Raises `SessionError` during a turn.
        """
        is_saved = await self._change_model(chosen, is_choice=True)
        self.frontend.chosen = chosen
        return is_saved

    async def _change_model(self, chosen: "ChosenModel", *, is_choice: bool) -> bool:
        front, models = self.frontend, self.frontend.request.models
        if models is None:
            raise SettingsError("The model can't be changed here.")
        model, params = models.build(chosen.settings), front.agent.params
        self._own_models.append(model)
        params = msgspec.structs.replace(params, effort=chosen.effort)
        is_saved = await self.session.change_model(model, params, is_choice=is_choice)
        self.model = chosen.settings
        self._window_watch = front.watch(model, is_local=chosen.settings.is_local)
        return is_saved

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.session.__aexit__(kind, error, trace)
        finally:
            for model in self._own_models:
                await model.aclose()
        if error is None:
            await self.frontend.renew()

    async def run(self, prompt: "Prompt") -> "TurnResult":
        """Run a turn and emit its events and warnings. Raises `SessionError`. Cancelling it cancels the turn."""
        front, session = self.frontend, self.session
        turn = await self._window_watch.during(partial(session.run, prompt), front.emit, front.notify)
        if (warning := await self._window_watch.after_turn(session.state)) is not None:
            front.notify(warning)
        return turn

    @property
    def shell(self) -> "UserShell":
        """Runs commands that the user types."""
        from bradawl.app.user_command import UserShell  # only where a user types them

        if self._shell is None:
            self._shell = UserShell()
        return self._shell

    @property
    def is_running(self) -> bool:
        """True while a turn, a compaction or a command of the user runs."""
        return self.session.is_running or (self._shell is not None and self._shell.is_running)

    def cancel(self) -> None:
        """End the running turn; `run` then returns with reason `cancelled`. Does nothing between turns."""
        if self._shell is not None:
            self._shell.cancel()
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
