"""What a slash command may ask of the user at a terminal, whatever the terminal can draw."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Option(NamedTuple):
    """One choice of a picker."""

    value: str
    """Returned by `TerminalUser.pick`."""
    label: str
    detail: str = ""
    """Shown dimmed beside the label; it is searched as well."""
    is_current: bool = False
    """It is chosen now; the picker begins there."""


class TerminalUser(Protocol):
    """The user at a terminal. Texts are cleaned by the implementation."""

    async def ask(self, text: str, question: str) -> str:
        """Show a text, which may be a diff, then a question; returns the typed line, empty for no answer."""
        ...

    async def pick(self, title: str, options: Sequence[Option]) -> str | None:
        """The value of the chosen option, found by arrow keys or typed letters; None if the user leaves the list."""
        ...

    def use_theme(self, name: str) -> None:
        """Draw with this theme from now on: `dark`, `light`, `plain`, or `auto` for the terminal's own background."""
        ...

    def copy(self, text: str) -> bool:
        """Put a text on the clipboard of the terminal (OSC 52); false if the terminal can't be told to."""
        ...
