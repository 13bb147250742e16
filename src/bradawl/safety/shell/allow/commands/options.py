"""Tables of the options that the analysis knows, and a strict parser for them: any other option raises."""

import re
from functools import cache

import msgspec

from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.errors import UnsupportedSyntax

_NUMBER = r"-[0-9]+"
_STDIN = "-"


class Options(msgspec.Struct, frozen=True):
    """The options of one program, made by `options()`. The tables are parsed when first needed."""

    short: str
    """Flags, then letters with a kind: `:` takes a value, `<` takes a file that is read, `?` takes an attached value
    only.
    """
    long: str
    """Names with a kind: none, `=` takes a value, `<` takes a file that is read, `?` takes a value only after `=`."""
    numbers: bool
    """Whether `-5` is an option."""
    mixes: bool
    """Whether options may follow operands. False where systems differ and the difference matters."""


class Call(msgspec.Struct, frozen=True):
    """The parsed arguments of a program."""

    flags: dict[str, str]
    """Letter or name of each option, and the last value it had."""
    operands: tuple[Word, ...]
    reads: tuple[Word, ...]
    """Files that options name."""
    given: tuple[tuple[str, str], ...] = ()
    """As `flags`, with every value of each option."""


def options(short: str, long: str = "", *, numbers: bool = False, mixes: bool = True) -> Options:
    """A table of options in this notation: `"alR n: f<"` and `"all lines= color? file<"`."""
    return Options(short, long, numbers, mixes)


@cache
def _kinds(known: Options) -> tuple[dict[str, str], dict[str, str]]:
    """The kinds of the letters and of the names."""
    letters: dict[str, str] = {}
    for part in known.short.split():
        if part[-1] in ":<?":
            letters[part[0]] = part[1:]
        else:
            letters |= dict.fromkeys(part, "")
    names = {part.rstrip("=<?"): part[len(part.rstrip("=<?")) :] for part in known.long.split()}
    return letters, names


def read_options(known: Options, words: tuple[Word, ...]) -> Call:
    """Parse `words`. Raises `UnsupportedSyntax` for an option that is unknown or incomplete."""
    reader = _Reader(known, words)
    while reader.place < len(words):
        reader.step()
    return Call(reader.flags, tuple(reader.operands), tuple(reader.reads), tuple(reader.given))


class _Reader:
    def __init__(self, known: Options, words: tuple[Word, ...]) -> None:
        self.place = 0
        self.flags: dict[str, str] = {}
        self.operands: list[Word] = []
        self.reads: list[Word] = []
        self.given: list[tuple[str, str]] = []
        self._known = known
        self._letter_kinds, self._name_kinds = _kinds(known)
        self._words = words

    def step(self) -> None:
        word = self._words[self.place]
        self.place += 1
        if word.text == "--":
            self._take_rest()
        elif not word.text.startswith("-") or word.text == _STDIN:
            self.operands.append(word)
            if not self._known.mixes:
                self._check_no_options_follow()
        elif word.text.startswith("--"):
            self._long(word)
        elif word.is_glob:
            raise UnsupportedSyntax
        elif self._known.numbers and re.fullmatch(_NUMBER, word.text):
            self.flags["-"] = word.text
        else:
            self._letters(word.text)

    def _take_rest(self) -> None:
        self.operands += self._words[self.place :]
        self.place = len(self._words)

    def _check_no_options_follow(self) -> None:
        rest = self._words[self.place :]
        if any(word.text.startswith("-") and word.text != _STDIN for word in rest):
            raise UnsupportedSyntax
        self._take_rest()

    def _long(self, word: Word) -> None:
        name, equals, value = word.text[2:].partition("=")
        kind = self._name_kinds.get(name)
        # A pattern in a value expands to names that all begin with `--name=`; which of them is used makes no
        # difference.
        if kind is None or (word.is_glob and (kind == "<" or "*" in name or "?" in name or not equals)):
            raise UnsupportedSyntax
        if kind == "" and equals:
            raise UnsupportedSyntax
        if kind in ("=", "<") and not equals:
            value = self._next()
        self._keep(name, kind, value)

    def _letters(self, text: str) -> None:
        for index, letter in enumerate(text[1:], 1):
            kind = self._letter_kinds.get(letter)
            if kind is None:
                raise UnsupportedSyntax
            if kind == "":
                self._keep(letter, kind, "")
                continue
            attached = text[index + 1 :]
            self._keep(letter, kind, attached if attached or kind == "?" else self._next())
            return

    def _next(self) -> str:
        if self.place == len(self._words) or self._words[self.place].is_glob:
            raise UnsupportedSyntax
        self.place += 1
        return self._words[self.place - 1].text

    def _keep(self, name: str, kind: str, value: str) -> None:
        self.flags[name] = value
        self.given.append((name, value))
        if kind == "<":
            self.reads.append(Word(value))
