"""The conversation at a terminal with a live region: prompts, questions, and what happens in a turn."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bradawl.app.slash_commands import is_command
from bradawl.app.submission import Submission
from bradawl.app.tui.live.dialogs import KeyDialog
from bradawl.app.tui.live.picker import Picker
from bradawl.app.tui.live.screen import Region, Screen

if TYPE_CHECKING:
    from bradawl.app.tui.live.painter import LivePainter

QUIET_S: Final = 0.3
"""Seconds without a key before a question takes one, if the user was typing when it appeared."""
PAUSE_S: Final = 1.5
"""The same while a text is in the input line: a pause between two words is shorter."""
_SOON_S: Final = 1.0
"""A question that follows an answer within this time waits as well: a key may have been pressed twice."""
LEAVE_S: Final = 1.5
"""Ctrl+C again within this time leaves."""


class LiveView:
    """Owns the input line: what is typed becomes prompts, messages to the running turn, and answers."""

    def __init__(self, painter: "LivePainter") -> None:
        self.painter = painter
        self.screen: Screen
        self.send: Callable[[Submission], bool] = lambda _: False
        """Passes a message to the running turn; false if it has to wait for its end."""
        self.take_back: Callable[[], str] = str
        """Takes the latest message back that the model has not seen; empty if there is none."""
        self.cancel: Callable[[], bool] = lambda: False
        """Ends what runs; false if nothing does."""
        self.is_running = False
        self.held: deque[Submission] = deque()
        """What waits for the end of the turn."""
        self._waiting: asyncio.Future[Submission | None] | None = None
        self._typing: asyncio.Future[str | None] | None = None
        """The text is an answer, not a prompt."""
        self._dialogs = asyncio.Lock()
        self._key_at = self._answered_at = self._clear_at = -LEAVE_S
        self._key = asyncio.Event()
        """Set by each key."""
        self._has_left = False

    def attach(self, screen: Screen) -> None:
        """Draw on this screen from now on."""
        self.screen = screen
        screen.compose = self._compose

    # -------------------------------------------------------------- prompts

    async def next_prompt(self) -> Submission | None:
        """The next prompt or command; None to leave."""
        if self._has_left:
            return None
        if self.held:
            return self.held.popleft()
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def submit(self) -> None:
        """Send the text: as an answer, to the running turn, or as the next prompt."""
        editor = self.screen.editor
        buffer = editor.buffer
        if (state := buffer.complete_state) is not None:
            is_choice = state.current_completion is not None and len(state.completions) > 1
            if len(state.completions) == 1 and editor.text.startswith("/") and " " not in editor.text:
                buffer.apply_completion(state.completions[0])  # the only command that begins so
            buffer.complete_state = None
            if is_choice and not editor.text.startswith("/"):
                return  # Enter takes the chosen completion
        if buffer.document.is_cursor_at_the_end and buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            editor.insert("\n")
        elif self._typing is not None:
            self._answer_typed(editor.take(is_remembered=False).text)
        elif editor.text.strip():
            self._submitted(editor.take(), waits=False)

    def submit_line(self, text: str) -> None:
        """Send a line as if it had been typed; the text in the input line stays."""
        self._submitted(Submission(text, text), waits=False)

    def queue(self) -> None:
        """Send the text after the running turn."""
        if self.screen.editor.text.strip() and self._typing is None:
            self._submitted(self.screen.editor.take(), waits=True)

    def _submitted(self, submission: Submission, *, waits: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(submission)
        elif not (waits or self.held or _waits(submission)) and self.is_running and self.send(submission):
            self.screen.refresh()
        else:
            self.held.append(submission)
            self.screen.refresh()

    def has_waiting(self) -> bool:
        """Something was sent that the model has not seen."""
        return bool(self.held or self.painter.notes)

    def edit_waiting(self) -> None:
        """Put what was sent last and has not been seen back into the input line."""
        text = self.held.pop().typed if self.held else self.take_back()
        if text:
            self.screen.editor.set_text(text)
            self.screen.refresh()

    def draft(self, text: str) -> None:
        """Put a text before what is in the input line."""
        own = self.screen.editor.text
        self.screen.editor.set_text(f"{text}\n{own}" if own.strip() else text)
        self.screen.refresh()

    def leave(self) -> None:
        """End the conversation."""
        self._has_left = True
        self.cancel()
        if self._typing is not None:
            self._answer_typed(None)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # -------------------------------------------------------------- keys

    def touched(self) -> None:
        """A key was pressed."""
        self._key_at = asyncio.get_running_loop().time()
        self._key.set()

    def stop(self) -> bool:
        """End what runs; what waits for its end comes back into the input line. False if nothing runs."""
        if not self.cancel():
            return False
        if self.held:
            texts = [each.typed for each in self.held]
            self.held.clear()
            self.draft("\n".join(texts))
        return True

    def escape(self) -> bool:
        """Esc: leave a typed answer, or end the turn; false if there is neither."""
        if self._typing is None:
            return self.stop()
        self._answer_typed(None)
        return True

    def clear(self) -> None:
        """Ctrl+C: leave a typed answer, end the turn, clear the text, or leave if it is pressed twice."""
        now = asyncio.get_running_loop().time()
        editor = self.screen.editor
        if self._typing is not None:
            self._answer_typed(None)
        elif self.stop():
            return
        elif editor.text:
            editor.take()
            self.screen.refresh()
        elif now - self._clear_at < LEAVE_S:
            self.leave()
        else:
            self._clear_at = now
            self.painter.hint.show("Ctrl+C again leaves", LEAVE_S)
            self.screen.refresh()

    # -------------------------------------------------------------- questions

    async def open_dialog(self, dialog: KeyDialog | Picker) -> str | None:
        """Show a question and return its answer, `CLOSED` or None if the user leaves it. One at a time."""
        async with self._dialogs:
            with self.screen.showing(dialog):
                await self._quiet()
                self.screen.arm()
                try:
                    return await dialog.answer
                finally:
                    self._answered_at = asyncio.get_running_loop().time()

    async def _quiet(self) -> None:
        """Wait until no key is on its way: what was typed before the question was seen is no answer."""
        loop = asyncio.get_running_loop()
        for _ in range(2):  # keys that had arrived when the question was drawn are handled by then
            await asyncio.sleep(0)
        if loop.time() - self._answered_at < _SOON_S:
            self._key_at = max(self._key_at, loop.time())
        quiet_s = QUIET_S if not self.screen.editor.text else PAUSE_S
        while (left := self._key_at + quiet_s - loop.time()) > 0:
            self._key.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._key.wait(), left)

    async def type_text(self, label: str, text: str = "", *, waits: bool = False) -> str | None:
        """Let the user type an answer in the input line; None if the user leaves it. The draft comes back after it.

        With `waits` keys that are on their way are no part of it.
        """
        if waits:
            await self._quiet()
        editor, screen = self.screen.editor, self.screen
        draft = editor.set_aside()
        self._typing = asyncio.get_running_loop().create_future()
        screen.label = label
        editor.set_text(text)
        screen.refresh()
        try:
            return await self._typing
        finally:
            self._typing, screen.label = None, ""
            editor.restore(draft)
            screen.refresh()

    def _answer_typed(self, text: str | None) -> None:
        if self._typing is not None and not self._typing.done():
            self._typing.set_result(text)

    # -------------------------------------------------------------- drawing

    def _compose(self, width: int, rows: int) -> Region:
        return self.painter.region(
            width,
            rows,
            tuple(each.shown for each in self.held),
            is_asking=self.screen.dialog is not None or self._typing is not None,
        )


def _waits(submission: Submission) -> bool:
    """Whether it can't be a message to a running turn."""
    return is_command(submission.typed) or submission.typed.startswith("!") or bool(submission.images)
