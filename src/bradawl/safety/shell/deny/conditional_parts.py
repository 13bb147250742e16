"""Parts of a text that bash may skip, run again or run later, found by the words and joints around them."""

from collections.abc import Callable
from functools import partial

from bradawl.safety.shell.deny.variable_state import Flow

BODY = "body"
"""Begins what a function will do."""
JOINS = frozenset({"&&", "||"})
_OPENS = frozenset({"if", "while", "until", "for", "select", "case"})
_CLOSES = frozenset({"fi", "done", "esac", "}"})
_BRANCHES = frozenset({"then", "else", "do"})
_REPEATED = frozenset({"while", "until", "for", "select", BODY})
RESERVED = _OPENS | _BRANCHES | _CLOSES | {"elif", "in", "!", "{", "time", "coproc"}
"""Words that mean something in the place of a command's name."""


class Parts:
    """Those that are open, and what the flow of values hears of them."""

    def __init__(self, flow: Flow, say: Callable[[Callable[[], object]], None]) -> None:
        """`say` calls what it is given when all commands before have been told."""
        self._flow = flow
        self._say = say
        self._open: list[str] = []
        """The words that began them, innermost last."""

    def begin(self, word: str) -> None:
        """A part that this word begins."""
        self._open.append(word)
        self._say(self._flow.begin)
        if word in _REPEATED:
            self._say(self._flow.doubt)

    def reserved(self, word: str) -> None:
        """A reserved word was read."""
        if word in _OPENS:
            self.begin(word)
        elif word in _CLOSES:
            self.end_compound()
        elif word in _BRANCHES or word == "elif":
            self._end_branch()
            if word != "elif":
                self.begin(word)

    def join(self, joint: str) -> None:
        """A pipeline ended with this."""
        innermost = self._open[-1] if self._open else ""
        if joint == innermost == "&&":
            return
        if innermost in JOINS:
            self._end()
            if joint == "&":
                self._say(self._flow.doubt)  # its first command was in the background too
        if joint in JOINS:
            self.begin(joint)
        elif joint in (";;", ";&", ";;&") and self._open[-1:] == ["case"]:
            self._end()
            self.begin("case")

    def end_compound(self) -> None:
        """The innermost compound command ends."""
        self._end_branch()
        if self._open:
            self._end()

    def end_all(self) -> None:
        """The text ends."""
        while self._open:
            self._end()

    def _end_branch(self) -> None:
        while self._open and (self._open[-1] in JOINS or self._open[-1] in _BRANCHES):
            self._end()

    def _end(self) -> None:
        word = self._open.pop()
        self._say(partial(self._flow.end_maybe, is_body=word == BODY, is_again=word in _REPEATED))
