"""Whether a model goes in circles: the same calls with the same results, again and again."""

import re
from collections.abc import Sequence

import msgspec

from bradawl.core.messages import Assistant, Message, ToolResults, calls_of, text_of

LONGEST_CIRCLE = 4
"""Steps of the longest circle that is looked for."""
_TIMES = r"\b\d+\.\d+ ?m?s\b"


class Circle(msgspec.Struct, frozen=True):
    """The last steps of a turn, as they repeat."""

    steps: int
    """How many make one round."""
    rounds: int
    """How often they came one after the other; 1 for what has not been repeated."""


def circle_at_end(messages: Sequence[Message], most: int) -> Circle:
    """The circle with the most rounds, at most `most`, that a transcript ends with.

    A call whose result is another one than before, such as that of a job which goes on, is no repetition.
    """
    steps = _last_steps(messages, LONGEST_CIRCLE * most)
    circles = (Circle(length, _rounds(steps, length, most)) for length in range(1, LONGEST_CIRCLE + 1))
    return max(circles, key=lambda circle: circle.rounds)


_Step = tuple[Assistant, ToolResults]


def _last_steps(messages: Sequence[Message], most: int) -> list[_Step]:
    """Replies with the answers to their calls, the last first, back to the last prompt."""
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
    """Without how long things took, which is never the same."""
    return re.sub(_TIMES, "", text)
