"""Finds cycles of the same calls with the same results in a log; `agent.middleware.loop_detection` acts on them."""

import re
from collections.abc import Sequence

import msgspec

from bradawl.core.messages import Assistant, Message, ToolResults, calls_of, text_of

LONGEST_CYCLE = 4
"""The longest cycle to detect, in steps."""
_TIMES = r"\b\d+\.\d+ ?m?s\b"


class Cycle(msgspec.Struct, frozen=True):
    """A cycle of steps at the end of a turn."""

    steps: int
    """Steps per round."""
    rounds: int
    """Consecutive rounds; 1 for steps that are not repeated."""


def cycle_at_end(messages: Sequence[Message], most: int) -> Cycle:
    """The cycle with the most rounds, at most `most`, at the end of a transcript.

    A call with a different result than before, for example output of a running job, is not a repetition.
    """
    steps = _last_steps(messages, LONGEST_CYCLE * most)
    cycles = (Cycle(length, _rounds(steps, length, most)) for length in range(1, LONGEST_CYCLE + 1))
    return max(cycles, key=lambda cycle: cycle.rounds)


_Step = tuple[Assistant, ToolResults]


def _last_steps(messages: Sequence[Message], most: int) -> list[_Step]:
    """Replies with the results of their calls, the latest first, back to the last prompt."""
    steps: list[_Step] = []
    place = len(messages) - 1
    while place > 0 and len(steps) < most:
        results, reply = messages[place], messages[place - 1]
        if not isinstance(results, ToolResults) or not isinstance(reply, Assistant):
            break
        steps.append((reply, results))
        place -= 2
    return steps


def _rounds(steps: Sequence[_Step], length: int, most: int) -> int:
    if len(steps) < length:
        return 1
    rounds = 1
    while rounds < most and (rounds + 1) * length <= len(steps):
        start = rounds * length
        if not all(_same(steps[place], steps[start + place]) for place in range(length)):
            break
        rounds += 1
    return rounds


def _same(one: _Step, other: _Step) -> bool:
    if _asked(one) != _asked(other):
        return False
    first, second = _answered(one), _answered(other)
    return first == second or list(map(_timeless, first)) == list(map(_timeless, second))


def _asked(step: _Step) -> list[tuple[str, str]]:
    return [(call.name, call.raw_arguments) for call in calls_of(step[0])]


def _answered(step: _Step) -> list[str]:
    return [text_of(result.parts) for result in step[1].results]


def _timeless(text: str) -> str:
    """The text without durations, which differ each time."""
    return re.sub(_TIMES, "", text)
