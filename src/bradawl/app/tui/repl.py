"""Talking with somebody at a terminal: a prompt, a turn, the next prompt."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from bradawl._version import __version__
from bradawl.app.console import Console
from bradawl.app.interrupts import Interrupts
from bradawl.app.modes import begin_in_mode, mode_text, sandbox_text, sandbox_warning, why_not
from bradawl.app.remembered import Remembered
from bradawl.app.rendering import cut, failure_text, one_line, usage_text
from bradawl.app.tui.approve import TerminalApprover
from bradawl.app.tui.commands import HELP, Command, ModeWish, Unknown, parse_command
from bradawl.app.tui.lines import Asides, LineReader, reader_for
from bradawl.app.tui.painter import Painter
from bradawl.app.window import WindowWatch
from bradawl.core.errors import SessionError, SettingsError
from bradawl.core.messages import Assistant, Message, User, text_of
from bradawl.core.permissions import Mode
from bradawl.safety.terminal import clean

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.agent.session import Session, TurnResult
    from bradawl.app.settings import Settings
    from bradawl.core.ports import Approver

_IMPATIENT = 3
"""Ctrl+C this often during one turn leaves at once, if ending the turn does not work."""
_RECALLED_LINES = 12
_SAID_BY: Final = {"settings": "as set", "server": "says the server", "assumed": "assumed"}


async def run_repl(
    settings: "Settings",
    make_agent: Callable[["Approver"], "Agent"],
    choose_session: Callable[["Agent"], str | None],
    prompt: str,
    console: Console,
    *,
    mode_is_asked_for: bool = False,
) -> int:
    """Talk until the user leaves, and give back the exit code. Raises `SettingsError` and `SessionError`.

    `mode_is_asked_for`: the permission mode was chosen for this run, by a flag or a variable.
    """
    talk = Repl(settings, console, reader_for(console, settings.home), mode_is_asked_for=mode_is_asked_for)
    memory = Remembered(settings.home, settings.cwd, settings.user_home, settings.add_dirs)
    agent = make_agent(TerminalApprover(talk.painter.line, talk.reader.ask, talk.cancel_turn, talk.questioning, memory))
    with Interrupts(on_interrupt=talk.interrupted) as interrupts:
        try:
            session_id = choose_session(agent)
            warning = sandbox_warning(lambda: agent.policy().sandbox, settings, user_is_there=True)
            talk.warnings = tuple(filter(None, (warning, *memory.troubles)))
            await talk.converse(agent, session_id, prompt)
        except asyncio.CancelledError:
            if not interrupts.came:
                raise
            return interrupts.exit_code
        finally:
            await agent.aclose()
    if talk.had_nothing_to_do and session_id is None and not console.has_user:
        raise SettingsError("The prompt is empty: use `bradawl -p PROMPT`, pipe it in, or talk at a terminal.")
    return 0


class Repl:
    """One conversation at a terminal, over one or more sessions."""

    def __init__(
        self, settings: "Settings", console: Console, reader: LineReader, *, mode_is_asked_for: bool = False
    ) -> None:
        self.settings = settings
        self._mode_is_asked_for = mode_is_asked_for
        self._before_plan: Mode | None = None
        self.console = console
        self.reader = reader
        self.painter = Painter(console)
        self.warnings: tuple[str, ...] = ()
        """What the user should know before the first word."""
        self.had_nothing_to_do = True
        """Nothing has been typed yet."""
        self._asides = Asides(console, self._overheard)
        self._later: list[str] = []
        self._session: Session | None = None
        self._is_running = False
        self._interrupts = 0
        self._watch: WindowWatch | None = None

    async def converse(self, agent: "Agent", session_id: str | None, prompt: str) -> None:
        """Sessions one after the other until the user leaves. Raises `SessionError`."""
        self._watch = WindowWatch(agent.model, is_local=self.settings.model.is_local, from_tokens=1)
        self._greet()
        if self.console.has_user:
            self._warn()
        while True:
            async with agent.open(session_id) as session:
                self._session = session
                try:
                    begin_in_mode(session, self.settings, is_asked_for=self._mode_is_asked_for)
                    self._recall(session)
                    wish = await self._talk(session, prompt)
                finally:
                    self._session = None
                    self._say_goodbye(session)
            if wish == "exit":
                return
            session_id, prompt = None, ""
            self.painter.line("A new session begins.")

    def interrupted(self) -> None:
        """Ctrl+C: ends a read if there is one, else the running turn."""
        if self.reader.interrupt() or not self._is_running:
            return
        self._interrupts += 1
        if self._interrupts >= _IMPATIENT:
            os._exit(130)
        self.cancel_turn()

    def cancel_turn(self) -> None:
        """End the running turn; does nothing between turns."""
        if self._session is not None:
            self._session.cancel()

    @contextmanager
    def questioning(self) -> Iterator[None]:
        """The terminal belongs to a question: what happens is drawn later, and what is typed is its answer."""
        self._asides.stop()
        try:
            with self.painter.holding():
                yield
        finally:
            if self._is_running:
                self._asides.listen()

    def _overheard(self, text: str) -> None:
        """Something was typed during a turn: the model is told at its next step; commands wait for the turn's end."""
        session = self._session if self._is_running else None
        # A session's log begins with its own first entry, not with a note.
        if session is not None and session.last_event is not None and parse_command(text) is None:
            session.send(text)
            return
        self._later.append(text)
        if self._is_running:
            self.painter.dim("  that waits for the end of the turn")

    # -------------------------------------------------------------- prompts

    async def _talk(self, session: "Session", prompt: str) -> Literal["exit", "clear"]:
        while True:
            text = prompt or await self._next_prompt()
            prompt = ""
            if text is None:
                return "exit"
            self.had_nothing_to_do = False
            match parse_command(text):
                case None:
                    await self._turn(session, text)
                case "exit":
                    return "exit"
                case "clear":
                    return "clear"
                case "status":
                    self.painter.line(await self._status(session))
                case ModeWish() as wish:
                    self._choose_mode(session, wish)
                case command:
                    self._obey(command)

    async def _next_prompt(self) -> str | None:
        """What to do next; None to leave."""
        if self._later:
            return self._later.pop(0)
        was_interrupted = False
        while True:
            try:
                text = await self.reader.prompt()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if was_interrupted:
                    return None
                was_interrupted = True
                self.painter.dim("(Ctrl+C once more leaves)")
                continue
            was_interrupted = False
            if text.strip():
                return text.encode("utf-8", "replace").decode()

    def _warn(self) -> None:
        """Once: at the beginning where somebody looks, else when there is something to do."""
        self._tell(self.warnings)
        self.warnings = ()

    async def _turn(self, session: "Session", text: str) -> None:
        self._is_running, self._interrupts = True, 0
        told = session.notices
        self._warn()
        self._asides.listen()
        try:
            run, emit = partial(session.run, text), self.painter.emit
            watch = self._watch
            turn = await (run(emit) if watch is None else watch.during(run, emit, lambda said: self._tell((said,))))
        except SessionError as error:
            self.painter.error(f"bradawl: {one_line(str(error))}")
            return
        finally:
            self._is_running = False
            self._asides.stop()
        self._tell(tuple(notice for notice in session.notices if notice not in told))
        self._close(session, turn)
        if self._watch is not None and (warning := await self._watch.look(session.state)) is not None:
            self._tell((warning,))

    def _close(self, session: "Session", turn: "TurnResult") -> None:
        match turn.reason:
            case "completed":
                pass
            case "cancelled":
                self.painter.line("Interrupted. What was done so far is kept.")
            case "steps" | "budget" | "time":
                self.painter.error(f"The limit of {turn.reason} is reached; say `go on` to continue.")
            case "refused" if turn.denials:
                self.painter.error("The turn ended because nobody answered a question.")
            case "refused" if turn.failure is None:
                self.painter.error("The model refused.")
            case _:
                self.painter.error(f"bradawl: {failure_text(turn.failure)}")
        if session.inbox.holds_user_note:
            self.painter.dim("What you typed meanwhile goes along with your next prompt.")
        self.painter.dim(usage_text(turn.steps, turn.usage, turn.cost))

    # -------------------------------------------------------------- words of our own

    def _obey(self, command: Command | Unknown) -> None:
        match command:
            case Unknown(text):
                self.painter.error(one_line(text))
            case "help":
                self.painter.line(HELP)
            case _:
                self.painter.line(self._model)

    def _choose_mode(self, session: "Session", wish: ModeWish) -> None:
        """Say the mode, or change it from the next step on."""
        now = session.reminders.mode
        wanted = wish.mode
        if wish.toggle:
            wanted = "plan" if now != "plan" else self._before_plan or self._usual_mode(session)
        if wanted is not None and (objection := why_not(wanted, self.settings)):
            self.painter.error(objection)
            return
        if wanted is not None and wanted != now:
            self._before_plan = now if wanted == "plan" else None
            session.reminders.choose_mode(wanted)
        self.painter.line(f"mode {mode_text(wanted or now)}")

    def _usual_mode(self, session: "Session") -> Mode:
        usual = session.agent.policy().mode
        return "default" if usual == "plan" else usual

    @property
    def _model(self) -> str:
        return one_line(f"{self.settings.model.provider}/{self.settings.model.name}")

    async def _status(self, session: "Session") -> str:
        state = session.state
        window = await session.agent.model.window()
        lines = (
            f"session    {session.id}",
            f"model      {self._model}",
            f"folder     {one_line(state.cwd or self.settings.cwd)}",
            f"mode       {mode_text(session.reminders.mode)}",
            f"sandbox    {one_line(sandbox_text(session.policy().sandbox))}",
            f"context    {state.context_tokens:,} of {window.tokens:,} tokens ({_SAID_BY[window.source]})",
            f"used       {usage_text(state.replies, state.usage, state.cost)}",
        )
        return "\n".join(lines)

    def _greet(self) -> None:
        if not self.console.is_interactive:
            return
        self.painter.line(f"bradawl {__version__}, {self._model}, in {one_line(self.settings.cwd)}")
        self.painter.dim("/help lists commands" + (", nobody is asked before tools run" if self.settings.yolo else ""))

    def _recall(self, session: "Session") -> None:
        """Show a resumed session's last exchange, and what its user should know."""
        self._tell(session.notices)
        for line in last_exchange(session.transcript.messages):
            self.painter.dim(line)

    def _tell(self, notices: Sequence[str]) -> None:
        for notice in notices:
            self.console.say(f"note: {one_line(notice)}")

    def _say_goodbye(self, session: "Session") -> None:
        if session.transcript.messages and session.log.close():
            self.painter.line(f"To resume this session: bradawl -r {session.id}")


def last_exchange(messages: Sequence[Message]) -> list[str]:
    """The last prompt and the reply to it, each cut to a few lines; nothing if there is none."""
    start = next((i for i in reversed(range(len(messages))) if isinstance(messages[i], User)), None)
    if start is None:
        return []
    prompt = messages[start]
    replies = [message for message in messages[start:] if isinstance(message, Assistant)]
    lines = _briefly(text_of(prompt.parts), "> ") if isinstance(prompt, User) else []
    return lines + (_briefly(text_of(replies[-1].parts), "") if replies else [])


def _briefly(text: str, mark: str) -> list[str]:
    lines = clean(text).strip().splitlines()
    shown = [cut(mark + line, 200) for line in lines[:_RECALLED_LINES]]
    return [*shown, "..."] if len(lines) > _RECALLED_LINES else shown
