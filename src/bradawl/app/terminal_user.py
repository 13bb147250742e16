"""What a slash command may ask of the user at a terminal, whatever the terminal can draw."""

from collections.abc import Callable, Sequence
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


class KeyChoice(NamedTuple):
    """One answer of a question, and its key."""

    key: str
    """A single character, but not `v`."""
    label: str
    value: str
    """Returned by `Dialogs.choose`."""


class FileDiff(NamedTuple):
    """A file before and after a change."""

    title: str
    path: str
    """Names the language of the text."""
    old: str
    new: str


Whole = Sequence[str | FileDiff]
"""A long text: paragraphs and files, one below the other."""


class Dialogs(Protocol):
    """What a terminal with a live region shows besides lines. Texts are cleaned by the implementation."""

    async def choose(
        self, title: str, text: str, choices: Sequence[KeyChoice], whole: Callable[[], Whole]
    ) -> str | None:
        """The value of the choice whose key the user presses; None if the user leaves the question.

        The first one is that of Enter. The key `v` opens what `whole` gives.
        """
        ...

    async def pick_from(self, title: str, options: Sequence[Option], start: str) -> str | None:
        """As `TerminalUser.pick`; the list begins at the option with the value `start`."""
        ...

    async def show(self, summary: str, title: str, whole: Whole, *, opens: bool | None = None) -> None:
        """Print the summary of a long text, which the user can open; `title` names it on its screen.

        `opens` shows that screen now. With None that is decided by the length: a text that fits is printed below the
        summary.
        """
        ...


class TerminalUser(Protocol):
    """The user at a terminal. Texts are cleaned by the implementation."""

    dialogs: Dialogs | None
    """None for a terminal by lines, which only `ask` and `pick` fit."""

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
