"""Lines of calls as plain text: `✓ Read   app.py  11 lines`. A run that prints none does not load this module."""

from typing import Final

import msgspec

from bradawl.app.call_details import finished_detail, state_of
from bradawl.app.call_words import VERB_CELLS, CallState, call_argument, call_phrase, verb_of
from bradawl.app.durations import duration_text
from bradawl.app.refusal_reasons import shown_reason
from bradawl.app.rendering import command_error, one_line
from bradawl.app.symbols import UNICODE, Symbols
from bradawl.app.text_layout import cells, cut, pad
from bradawl.core.events import ToolFinished
from bradawl.core.messages import ToolCall
from bradawl.core.tools import ToolSpec

_SHORT_S: Final = 0.1
"""Seconds up to which the time of a call is not worth telling."""
_GAP: Final = "  "
_REASON_CELLS: Final = 100
_UNCUT: Final = 10_000


class BegunCall(msgspec.Struct, frozen=True):
    """What the lines of a call name."""

    spec: ToolSpec
    raw_arguments: str = ""
    began_s: float = 0.0
    """Seconds on the caller's clock."""


class CallLines(msgspec.Struct, frozen=True):
    """Lines for a stream. All are at most `width` cells wide, except those of `logged`: a log has room for reasons."""

    width: int
    symbols: Symbols = UNICODE

    def begun(self, call: BegunCall) -> str:
        """`› Run    pytest -q`."""
        return self._whole(call, "running", "")

    def ended(self, call: BegunCall, finished: ToolFinished, elapsed_s: float) -> str:
        """`  ✗ exit code 1: 1 failed · 4.0s`, below the line of the call."""
        end = self._end(call, finished, elapsed_s)
        return self.fitted(f"  {self.symbols.of_call(state_of(call.raw_arguments, finished))} {end}".rstrip())

    def repeated(self, call: BegunCall, finished: ToolFinished, elapsed_s: float) -> str:
        """`✓ Run    pytest -q  4.0s`, where other lines were printed since the call began."""
        return self._whole(call, state_of(call.raw_arguments, finished), self._end(call, finished, elapsed_s))

    def logged(self, call: BegunCall, finished: ToolFinished) -> str:
        """`✗ Run    pytest -q  exit code 1: 1 failed`: without a time, and not cut to the width as a whole."""
        end = self._end(call, finished, 0.0)
        return self._whole(call, state_of(call.raw_arguments, finished), "") + (_GAP + end if end else "")

    def step(self, agent: str, calls: list[tuple[ToolSpec, ToolCall]]) -> str:
        """`  agent-1: Read app.py, Search total`: the calls of a sub-agent's reply."""
        phrases = ", ".join(call_phrase(spec, call.raw_arguments) for spec, call in calls)
        return self.fitted(f"  {agent}: {phrases}")

    def fitted(self, text: str) -> str:
        """`text` in at most `width` cells."""
        return cut(text, self.width, self.symbols.ellipsis)

    def _whole(self, call: BegunCall, state: CallState, end: str) -> str:
        head = f"{self.symbols.of_call(state)} {pad(verb_of(call.spec), VERB_CELLS)} "
        room = self.width - cells(head)
        # A long reason leaves half of the line to the argument.
        argument_room = max(room - len(_GAP) - cells(end), room // 2) if end else room
        argument = cut(call_argument(call.spec, call.raw_arguments), argument_room, self.symbols.ellipsis)
        return self.fitted((head + argument).rstrip() + (_GAP + end if end else ""))

    def _end(self, call: BegunCall, finished: ToolFinished, elapsed_s: float) -> str:
        """What a call did, or why it failed, and how long it took."""
        detail = self._detail(call, finished)
        time = duration_text(elapsed_s) if elapsed_s >= _SHORT_S else ""
        return f" {self.symbols.dot} ".join(filter(None, (detail, time)))

    def _detail(self, call: BegunCall, finished: ToolFinished) -> str:
        if finished.outcome == "ok":
            return finished_detail(call.spec, call.raw_arguments, finished)
        is_of_command = call.spec.result == "output" and finished.outcome == "error"
        reason = (is_of_command and command_error(finished.shown, _UNCUT)) or _first_line(finished)
        reason = cut(reason, _REASON_CELLS, self.symbols.ellipsis)
        return reason if finished.outcome == "error" else f"{finished.outcome}: {reason}"


def _first_line(finished: ToolFinished) -> str:
    """The first line that is not blank of why a call was refused or failed."""
    lines = map(one_line, shown_reason(finished.outcome, finished.shown).splitlines())
    return next(filter(None, lines), "failed")
