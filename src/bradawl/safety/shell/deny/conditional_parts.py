"""Tracks the parts of a text that bash may skip, repeat or run later, by reserved words and control operators."""

from collections.abc import Callable
from functools import partial

from bradawl.safety.shell.deny.variable_state import VariableState

FUNCTION_BODY = "body"
"""Marks the body of a function, which runs later."""
AND_OR = frozenset({"&&", "||"})
_OPENS = frozenset({"if", "while", "until", "for", "select", "case"})
_CLOSES = frozenset({"fi", "done", "esac", "}"})
_BRANCHES = frozenset({"then", "else", "do"})
_REPEATED = frozenset({"while", "until", "for", "select", FUNCTION_BODY})
RESERVED = _OPENS | _BRANCHES | _CLOSES | {"elif", "in", "!", "{", "time", "coproc"}
"""Words with a special meaning in the position of a command's name."""


class ConditionalParts:
    """The open parts; reports their beginnings and ends to the state of the variables."""

    def __init__(self, variables: VariableState, defer: Callable[[Callable[[], object]], None]) -> None:
        """`defer` calls its argument once all earlier commands have been reported."""
        self._variables = variables
        self._defer = defer
        self._open_words: list[str] = []
        """The words that began the open parts, innermost last."""

    def begin(self, word: str) -> None:
        """Begin the part that this word introduces."""
        self._open_words.append(word)
        self._defer(self._variables.begin_branch)
        if word in _REPEATED:
            self._defer(self._variables.widen_all)

    def reserved(self, word: str) -> None:
        """Apply a reserved word: it may begin and end parts."""
        if word in _OPENS:
            self.begin(word)
        elif word in _CLOSES:
            self.end_compound()
        elif word in _BRANCHES or word == "elif":
            self._end_branch()
            if word != "elif":
                self.begin(word)

    def join(self, control: str) -> None:
        """Apply the control operator that ends a pipeline."""
        innermost = self._open_words[-1] if self._open_words else ""
        if control == innermost == "&&":
            return
        if innermost in AND_OR:
            self._end()
            if control == "&":
                self._defer(
                    self._variables.widen_all
                )  # `&` applies to the whole list, so its first command ran in the background too
        if control in AND_OR:
            self.begin(control)
        elif control in (";;", ";&", ";;&") and self._open_words[-1:] == ["case"]:
            self._end()
            self.begin("case")

    def end_compound(self) -> None:
        """End the innermost compound command."""
        self._end_branch()
        if self._open_words:
            self._end()

    def end_all(self) -> None:
        """End all open parts, at the end of the text."""
        while self._open_words:
            self._end()

    def _end_branch(self) -> None:
        while self._open_words and (self._open_words[-1] in AND_OR or self._open_words[-1] in _BRANCHES):
            self._end()

    def _end(self) -> None:
        word = self._open_words.pop()
        self._defer(partial(self._variables.merge_branch, is_body=word == FUNCTION_BODY, is_repeated=word in _REPEATED))
