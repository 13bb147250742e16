"""Questions of a login at a terminal: lines, keys without echo, and choices from a list."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bradawl.app.console import Console
from bradawl.app.login.key_text import looks_like_key
from bradawl.app.rendering import one_line
from bradawl.app.text_layout import Column, table, wrap

_YES: Final = ("y", "yes")
_NO: Final = ("n", "no")
_MOST_LISTED: Final = 15

ReadSecret = Callable[[Console, str], str]
"""Asks a question at a terminal and returns what was typed, without echo."""


class Choice(NamedTuple):
    """One entry of a list."""

    name: str
    row: tuple[str, ...]
    """Its values in the columns of the list, already cleaned."""
    words: str = ""
    """Further words that a search finds it by."""


class Dialogue:
    """Asks at a terminal. Each question raises `EOFError` at the end of the input."""

    def __init__(self, console: Console, width: int, read_secret: ReadSecret) -> None:
        self._console = console
        self._width = width
        self._read_secret = read_secret

    def say(self, text: str) -> None:
        """Print a text, wrapped by words."""
        self._console.answer("".join(f"{line}\n" for line in wrap(text, self._width)))

    def ask(self, question: str) -> str:
        """Ask for a line; the answer is stripped."""
        self._console.answer(self._laid_out(question))
        line = self._console.stdin.readline()
        if not line:
            self._console.answer("\n")
            raise EOFError
        return line.strip()

    def secret(self, question: str) -> str:
        """Ask for a text that is not shown. Raises `KeyboardInterrupt` and `SettingsError` too."""
        return self._read_secret(self._console, self._laid_out(question))

    def confirm(self, question: str, *, default: bool) -> bool:
        """Ask a question; Enter alone is the default."""
        while True:
            answer = self.ask(f"{question} {'[Y/n]' if default else '[y/N]'}").lower()
            if answer in ("", *_YES, *_NO):
                return answer in _YES or (default and not answer)
            self.say("Answer y or n.")

    def choose(
        self,
        choices: Sequence[Choice],
        columns: Sequence[Column],
        question: str,
        *,
        default: str = "",
        none: str = "",
        takes_other: bool = False,
        most_listed: int = _MOST_LISTED,
    ) -> str:
        """The name of a choice, by its number, its name, or a part of it that only one has.

        Enter alone is the default, if there is one; the answer `none` is an empty name. With `takes_other` a text that
        nothing matches can be the answer; the user confirms it.
        """
        self._show(list(enumerate(choices, 1))[:most_listed], columns, len(choices))
        while True:
            answer = self.ask(question)
            if answer and answer == none:
                return ""
            if not answer:
                if default:
                    return default
            elif (number := _number_in(answer)) is not None:
                if 0 < number <= len(choices):
                    return choices[number - 1].name
                self.say(f"There is no number {answer}.")
            elif (name := self._search(answer, choices, columns, takes_other=takes_other)) is not None:
                return name

    def _search(
        self, answer: str, choices: Sequence[Choice], columns: Sequence[Column], *, takes_other: bool
    ) -> str | None:
        exact = next((one.name for one in choices if one.name.lower() == answer.lower()), None)
        if exact is not None:
            return exact
        found = [(number, one) for number, one in enumerate(choices, 1) if _matches(answer, one)]
        if len(found) == 1:
            return found[0][1].name
        if found:
            self._show(found[:_MOST_LISTED], columns, len(found))
        elif looks_like_key(answer):
            self.say("That is not in the list. If it was a key, it can be read on this screen now: replace it.")
        elif takes_other and self.confirm(f"{one_line(answer)} is not in the list. Use it?", default=False):
            return answer
        elif not takes_other:
            self.say(f"Nothing in the list matches {one_line(answer)}.")
        return None

    def _laid_out(self, question: str) -> str:
        return "\n".join(wrap(question, self._width - 1)) + " "

    def _show(self, numbered: Sequence[tuple[int, Choice]], columns: Sequence[Column], count: int) -> None:
        digits = len(str(numbered[-1][0])) if numbered else 1
        rows = [(f"{number:>{digits}}  {one.row[0]}", *one.row[1:]) for number, one in numbered]
        first = columns[0]._replace(title=" " * (digits + 2) + columns[0].title if columns[0].title else "")
        lines = table(rows, (first, *columns[1:]), self._width) if rows else []
        self._console.answer("".join(f"{line}\n" for line in lines))
        if count > len(numbered):
            self.say(f"and {count - len(numbered)} more: type a part of a name to search")


def _number_in(answer: str) -> int | None:
    return int(answer) if answer.isascii() and answer.isdigit() and len(answer) < 6 else None


def _matches(answer: str, choice: Choice) -> bool:
    text = f"{choice.name} {choice.words}".lower()
    return all(word in text for word in answer.lower().split())
