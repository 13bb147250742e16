"""What is printed while the user may be typing behind a prompt: on lines of its own, and then the prompt again."""

from collections.abc import Callable

from bradawl.app.console import Console
from bradawl.app.tui.plain.lines import PlainReader, descriptor_of_terminal


class BesidePrompt:
    """`step_aside` before a text is printed begins a line of its own; `come_back` after it shows the prompt again.

    What was typed is shown again where the terminal takes it back. Elsewhere it is part of the line as before, and is
    not seen.
    """

    def __init__(self, console: Console, begin_line: Callable[[str], None]) -> None:
        """`begin_line` writes a text as it is."""
        self.reader: PlainReader | None = None
        """Shows the prompt; None if nothing reads."""
        self._console, self._begin_line = console, begin_line
        self._prompt = ""
        self._typed = b""

    def step_aside(self) -> None:
        """Begin a line if a prompt is on the present one."""
        prompt = self.reader.shown_prompt if self.reader is not None else ""
        if self._prompt or not prompt or (descriptor := descriptor_of_terminal(self._console)) is None:
            return
        from bradawl.app.tui.plain.typed_text import takes_keys_back, unread_keys

        self._prompt = prompt
        can_take = takes_keys_back()
        self._typed = unread_keys(descriptor) if can_take else b""
        self._begin_line(f"\r{' ' * len(prompt)}\r" if can_take and not self._typed else "\n")

    def come_back(self) -> None:
        """Show the prompt again, and what was typed."""
        prompt, self._prompt = self._prompt, ""
        if not prompt or self.reader is None or (descriptor := descriptor_of_terminal(self._console)) is None:
            return
        from bradawl.app.tui.plain.typed_text import give_back

        self._console.answer(prompt)
        typed, self._typed = self._typed, b""
        if left := give_back(descriptor, typed):
            self.reader.put_back(left)
