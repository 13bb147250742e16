"""The conversation at a terminal: reads prompts and slash commands, runs turns, shows how they ended."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from bradawl._version import __version__
from bradawl.app.console import Console
from bradawl.app.frontend import Frontend, FrontendSession, RunRequest
from bradawl.app.interrupts import Interrupts
from bradawl.app.outcomes import outcome_of
from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.rendering import cut, one_line, usage_text
from bradawl.app.slash_commands import CommandFailed, CommandResult, is_command
from bradawl.app.terminal_user import Option
from bradawl.app.tui.approver import TerminalApprover
from bradawl.app.tui.lines import LineReader, TurnInput, reader_for
from bradawl.app.tui.painter import Painter
from bradawl.app.tui.questions import QuestionReader
from bradawl.core.errors import SessionError, SettingsError
from bradawl.core.events import Pin
from bradawl.core.messages import Assistant, Message, User, text_of
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.agent.session import TurnResult
    from bradawl.app.settings.settings import Settings

KEYS_HELP: Final = """\
Enter sends. Alt+Enter, or \\ at the end of a line, begins a new line.
What you type during a turn reaches the model at its next step; commands wait for the turn's end.
Ctrl+C ends the running turn; at the prompt it clears the line. Ctrl+D, or Ctrl+C twice, leaves."""
_INTERRUPTS_TO_EXIT = 3
"""Ctrl+C this often during one turn exits at once, in case ending the turn does not work."""
_RECALLED_LINES = 12


async def run_repl(request: RunRequest, console: Console) -> int:
    """Converse until the user leaves, and return the exit code. Raises `SettingsError` and `SessionError`."""
    reader = QuestionReader(console, reader_for(console, request.settings.home))
    settings = await _settings_after_trust_question(request, console, reader)
    request = request._replace(settings=settings)
    repl = Repl(console, reader)
    memory = RememberedRules(settings.home, settings.cwd, settings.user_home, settings.add_dirs)
    approver = TerminalApprover(repl.painter.line, reader.ask, repl.cancel_turn, repl.questioning, memory)
    frontend = request.start(
        approver,
        repl.painter.emit,
        user_is_there=True,
        warnings=lambda: memory.problems,
        keys_help=KEYS_HELP,
        user=repl if console.has_user else None,
    )
    repl.painter.learn(frontend.agent.tools)
    with Interrupts(on_interrupt=repl.interrupted) as interrupts:
        try:
            session_id = request.choose_session(frontend.agent)
            await repl.converse(frontend, session_id)
        except asyncio.CancelledError:
            if not interrupts.has_arrived:
                raise
            return interrupts.exit_code
        finally:
            await frontend.agent.aclose()
    if repl.had_no_input and session_id is None and not console.has_user:
        raise SettingsError("The prompt is empty: use `bradawl -p PROMPT`, pipe it in, or talk at a terminal.")
    return 0


async def _settings_after_trust_question(request: RunRequest, console: Console, reader: LineReader) -> "Settings":
    """The settings after the question whether the project's files take effect, if it has to be asked."""
    from bradawl.app.trust_command import answer_trust, trust_question

    settings = request.settings
    if not console.has_user or (question := trust_question(settings)) is None:
        return settings
    from bradawl.safety.control_characters import escape

    console.say(escape(question))
    try:
        answer = await reader.ask("Do you trust it? [y/N] ")
    except (EOFError, KeyboardInterrupt):
        return settings  # no answer: the next start asks again
    answer_trust(settings, is_trusted=answer.strip().lower() in ("y", "yes"))
    return request.reload_settings()


class Repl:
    """One conversation at a terminal, over one or more sessions."""

    def __init__(self, console: Console, reader: QuestionReader) -> None:
        self.console = console
        self.reader = reader
        reader.set_aside = self._typed_before_question
        self.painter = Painter(console)
        self.had_no_input = True
        """Nothing has been typed yet."""
        self._turn_input = TurnInput(console, self._typed_during_turn)
        self._queued: list[str] = []
        self._session: FrontendSession | None = None
        self._is_running = False
        self._interrupts = 0

    async def converse(self, frontend: Frontend, session_id: str | None) -> None:
        """Sessions one after the other until the user leaves. Raises `SessionError`."""
        self._greet(frontend)
        if self.console.has_user:
            frontend.announce()
        prompt = frontend.request.prompt
        while True:
            with ExitStack() as after:
                async with frontend.open(session_id) as session:
                    after.callback(self._say_goodbye, session)  # closes the log, which jobs write to until they end
                    self._session = session
                    try:
                        await self._recall(session)
                        then = await self._run_session(session, prompt)
                    finally:
                        self._session = None
            if then.then == "leave":
                return
            session_id, prompt = then.session or None, ""
            if session_id is None:
                self.painter.line("A new session begins.")

    def interrupted(self) -> None:
        """Handle Ctrl+C: it ends a running read, else the running turn or compaction."""
        if self.reader.interrupt() or self._session is None or not self._session.is_running:
            return
        self._interrupts += 1
        if self._interrupts >= _INTERRUPTS_TO_EXIT:
            os._exit(130)
        self.cancel_turn()

    def cancel_turn(self) -> None:
        """End the running turn; does nothing between turns."""
        if self._session is not None:
            self._session.cancel()

    async def ask(self, text: str, question: str) -> str:
        """Show a text and ask a question about it; empty for Ctrl+C and a closed input."""
        self.painter.diff(text)
        try:
            return await self.reader.ask(question)
        except (EOFError, KeyboardInterrupt):
            return ""
        finally:
            self.reader.end_question()

    async def pick(self, title: str, options: Sequence[Option]) -> str | None:
        """Show numbered options; the answer is a number or the beginning of a label. None for no answer."""
        lines = [f"{number}. {each.label}  {each.detail}".rstrip() for number, each in enumerate(options, 1)]
        typed = (await self.ask("\n".join((title, *lines)), "Number: ")).strip()
        if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(options):
            return options[int(typed) - 1].value
        found = [each.value for each in options if typed and each.label.casefold().startswith(typed.casefold())]
        return found[0] if len(found) == 1 else None

    def use_theme(self, name: str) -> None:
        """Lines without a screen have no theme."""

    def copy(self, text: str) -> bool:
        """Lines without a screen reach no clipboard."""
        return False

    @contextmanager
    def questioning(self) -> Iterator[None]:
        """A context in which events are kept back, to be drawn afterwards, and typed lines answer the question."""
        self._turn_input.stop()
        try:
            with self.painter.holding():
                yield
        finally:
            self.reader.end_question()
            if self._is_running:
                self._turn_input.listen()

    def _typed_during_turn(self, text: str) -> None:
        """Pass a text on to the model, for its next step; a command waits for the turn's end."""
        session = self._session if self._is_running else None
        if session is not None and not is_command(text) and session.send(text):
            return
        self._queued.append(text)
        if self._is_running:
            self.painter.dim("  that waits for the end of the turn")

    def _typed_before_question(self, text: str) -> None:
        """Say that a text was typed before a question was shown, and during a turn pass it on to the model."""
        self.painter.dim(f"  typed before the question, so it is no answer: {cut(one_line(text), 100)}")
        if self._is_running:
            self._typed_during_turn(text)

    # -------------------------------------------------------------- prompts

    async def _run_session(self, session: FrontendSession, prompt: str) -> CommandResult:
        while True:
            text = prompt or await self._next_prompt()
            prompt = ""
            if text is None:
                return CommandResult(then="leave")
            self.had_no_input = False
            if is_command(text):
                result = await self._run_command(session, text)
                if result.then != "stay":
                    return result
                text = result.prompt
            if text:
                await self._run_turn(session, text)

    async def _next_prompt(self) -> str | None:
        """The next prompt or command; None to leave."""
        if self._queued:
            return self._queued.pop(0)
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

    async def _run_command(self, session: FrontendSession, line: str) -> CommandResult:
        self._interrupts = 0
        try:
            result = await session.run_command(line)
        except (SettingsError, CommandFailed) as error:
            self.painter.error(one_line(str(error)))
            return CommandResult()
        if result.text:
            show = self.painter.diff if result.style == "diff" else self.painter.line
            show(result.text)
        return result

    async def _run_turn(self, session: FrontendSession, prompt: str) -> None:
        self._is_running, self._interrupts = True, 0
        session.frontend.announce()
        self._turn_input.listen()
        try:
            turn = await session.run(prompt)
        except SessionError as error:
            self.painter.error(f"bradawl: {one_line(str(error))}")
            return
        finally:
            self._is_running = False
            self._turn_input.stop()
        self._show_end(session, turn)

    def _show_end(self, session: FrontendSession, turn: "TurnResult") -> None:
        outcome = outcome_of(turn, user_is_there=True)
        match outcome.kind:
            case "completed":
                pass
            case "cancelled":
                self.painter.line(outcome.text)
            case "stopped":
                self.painter.error(outcome.text)
            case "failed":
                self.painter.error(f"bradawl: {outcome.text}")
        if session.has_waiting_message:
            self.painter.dim("What you typed meanwhile goes along with your next prompt.")
        self.painter.dim(usage_text(turn.steps, turn.usage, turn.cost))

    # -------------------------------------------------------------- beginning and end

    def _greet(self, frontend: Frontend) -> None:
        if not self.console.is_interactive:
            return
        settings = frontend.settings
        self.painter.line(f"bradawl {__version__}, {one_line(frontend.model_name)}, in {one_line(settings.cwd)}")
        self.painter.dim("/help lists commands" + (", tools run without asking" if settings.yolo else ""))

    async def _recall(self, session: FrontendSession) -> None:
        """Show a resumed session's last exchange, and an undo of it that did not end."""
        for line in (exchange := last_exchange(session.messages, session.session.transcript.pins)):
            self.painter.dim(line)
        if exchange:
            from bradawl.app.undo_commands import stopped_undo_text

            if text := await stopped_undo_text(session):
                self.painter.line(text)

    def _say_goodbye(self, session: FrontendSession) -> None:
        if session.messages and session.close_log():
            self.painter.line(f"To resume this session: bradawl -r {session.id}")


def last_exchange(messages: Sequence[Message], pins: Sequence[Pin] = ()) -> list[str]:
    """The last prompt and the reply to it, each cut to a few lines; empty if there is none.

    With `pins` the first message is that of a compaction, which holds them.
    """
    prompts = [place for place, message in enumerate(messages) if isinstance(message, User) and message.parts]
    own = [place for place in prompts if place or not pins]
    if not prompts:
        return []
    prompt = messages[own[-1]] if own else None
    pinned = [pin.text.partition("\n")[2].rpartition("\n")[0] for pin in pins if pin.kind == "request"]
    text = text_of(prompt.parts) if isinstance(prompt, User) else (pinned or [""])[-1]
    replies = [message for message in messages[own[-1] if own else 0 :] if isinstance(message, Assistant)]
    return _briefly(text, "> ") + (_briefly(text_of(replies[-1].parts), "") if replies else [])


def _briefly(text: str, mark: str) -> list[str]:
    lines = clean(text).strip().splitlines()
    shown = [cut(mark + line, 200) for line in lines[:_RECALLED_LINES]]
    return [*shown, "..."] if len(lines) > _RECALLED_LINES else shown
