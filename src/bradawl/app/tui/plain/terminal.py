"""A conversation by plain lines: on pipes, dumb terminals, and for screen readers."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bradawl.app.console import Console
from bradawl.app.rendering import cut, one_line
from bradawl.app.slash_commands import is_command
from bradawl.app.submission import Submission
from bradawl.app.symbols import symbols_for
from bradawl.app.terminal_user import Dialogs, Option
from bradawl.app.tui.plain.approver import TerminalApprover
from bradawl.app.tui.plain.lines import PlainReader, TurnInput
from bradawl.app.tui.plain.painter import Painter
from bradawl.app.tui.plain.questions import QuestionReader
from bradawl.app.tui.terminal import Terminal
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.app.frontend import FrontendSession
    from bradawl.app.remembered_rules import RememberedRules

KEYS_HELP: Final = """\
Enter sends; \\ at the end of a line begins a new line.
What you type during a turn reaches the model at its next step; commands wait for the turn's end.
Ctrl+C ends the running turn; at the prompt it clears the line. Ctrl+D, or Ctrl+C twice, leaves."""
_RECALLED_LINES: Final = 12
_LONGEST: Final = 200
_INTERRUPTS_TO_EXIT: Final = 3
"""Ctrl+C this often during one turn exits at once, in case ending the turn does not work."""


def plain_terminal(console: Console) -> Terminal:
    """A terminal by lines of text; it draws nothing that is not a line."""
    lines = PlainTerminal(console)

    def approver(memory: "RememberedRules") -> TerminalApprover:
        return TerminalApprover(lines.painter.line, lines.reader.ask, lines.cancel_turn, lines.questioning, memory)

    return Terminal(
        printer=lines.painter,
        prompts=lines,
        emit=lines.painter.emit,
        learn=lines.painter.learn,
        user=lines if console.has_user else None,
        approver=approver,
        show_prompt=lambda _: None,
        show_exchange=lambda prompt, reply: lines.painter.dim("\n".join((*_briefly(prompt, "> "), *_briefly(reply)))),
        show_end=lambda end: lines.painter.dim(end.sentence(has_time=console.is_interactive)),
        show_context=None,
        draft=lambda text: lines.painter.dim(f"to send again: {one_line(text)}"),
        interrupt=lines.interrupted,
        keys_help=KEYS_HELP,
        symbols=symbols_for(getattr(console.stdout, "encoding", None)),
    )


def _briefly(text: str, mark: str = "") -> list[str]:
    """The first lines of a text, each cut to a length that can be read."""
    lines = clean(text).strip().splitlines()
    shown = [cut(mark + line, _LONGEST) for line in lines[:_RECALLED_LINES]]
    return [*shown, "..."] if len(lines) > _RECALLED_LINES else shown


class PlainTerminal:
    """`Prompts` and `TerminalUser` by lines."""

    dialogs: Dialogs | None = None

    def __init__(self, console: Console) -> None:
        self.painter = Painter(console)
        own = PlainReader(console)
        self.painter.beside_prompt.reader = own
        self.reader = QuestionReader(console, own)
        self.reader.set_aside = self._typed_before_question
        self._turn_input = TurnInput(console, self._typed_during_turn)
        self._queued: list[str] = []
        self._session: FrontendSession | None = None
        self._is_running = self._is_turn = False
        self._interrupts = 0

    # -------------------------------------------------------------- prompts

    async def next_prompt(self) -> Submission | None:
        """The next prompt or command; None to leave."""
        if self._queued:
            return Submission(self._queued.pop(0))
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
                return Submission(text.encode("utf-8", "replace").decode())

    def begin_session(self, session: "FrontendSession | None") -> None:
        """See `Prompts`."""
        self._session = session

    def begin_turn(self, work: str = "") -> None:
        """See `Prompts`."""
        self._is_running, self._interrupts = True, 0
        self._is_turn = not work
        self._turn_input.listen()

    def end_turn(self) -> None:
        """See `Prompts`."""
        self._is_running = False
        self._turn_input.stop()
        if self._session is not None and self._session.has_waiting_message:
            self.painter.dim("What you typed meanwhile goes along with your next prompt.")

    def _typed_during_turn(self, text: str) -> None:
        """Pass a text on to the model, for its next step; a command, and any text in other work, waits for the end."""
        session = self._session if self._is_running and self._is_turn else None
        if session is not None and not is_command(text) and session.send(text):
            return
        self._queued.append(text)
        if self._is_running:
            self.painter.dim(f"  that waits for the end of the {'turn' if self._is_turn else 'work'}")

    def _typed_before_question(self, text: str) -> None:
        """Say that a text was typed before a question was shown, and during a turn pass it on to the model."""
        self.painter.dim(f"  typed before the question, so it is no answer: {cut(one_line(text), 100)}")
        if self._is_running:
            self._typed_during_turn(text)

    # -------------------------------------------------------------- interrupts and questions

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
        """Lines have no theme."""

    def copy(self, text: str) -> bool:
        """Lines reach no clipboard."""
        return False
