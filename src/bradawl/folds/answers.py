"""What the model answered, as a fold over the log; also an answer that came with the last check of a turn."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bradawl.core.arguments import parse_arguments
from bradawl.core.events import AssistantReplied, Envelope, Event, PromptSubmitted, ToolFinished, TurnFinished
from bradawl.core.messages import Assistant, Document, Image, Text, ToolCall, calls_of, text_of
from bradawl.folds.transcript import branch

PARAMETER = "answer_if_ok"
"""The parameter of `TOOL` with the answer."""
TOOL = "bash"
_LONGEST_LINE = 300
_SEARCHED_LINES = 15
_SUMMARY = r"\b\d+ (?:\w+ )?(?:tests?|passed|passing|examples?|specs?)\b|^(?:test result|Tests:|Ran \d+|OK\b)|\bok\s*$"
"""Lines in which a test program sums up; others may print warnings after it."""
_NO_OUTPUT = "(no output)"
_ENDS = ("completed", "refused")
"""Reasons of turns that an answer with a call has ended."""

Shown = Sequence[Text | Image | Document]


class EarlyText(NamedTuple):
    """An answer that came with a call."""

    call_id: str
    text: str


def early_text(reply: Assistant, shown: Mapping[str, Shown]) -> EarlyText | None:
    """The answer of the reply for the case that its calls succeed, with what the check printed last.

    `shown` are results by the ids of their calls. None if no call carries an answer.
    """
    for call in calls_of(reply):
        if answer := _answer_of(call):
            return EarlyText(call.id, f"{answer}{_last_line(shown.get(call.id, ()))}")
    return None


class Answers:
    """What the model said last. `take` gets the events of the main agent's branch."""

    def __init__(self) -> None:
        self.latest = ""
        """The latest text that is not blank."""
        self.of_turn = ""
        """The text of the latest reply since the latest prompt; empty for a reply with calls alone."""
        self._reply: Assistant | None = None
        self._results: dict[str, ToolFinished] = {}

    def take(self, event: Event) -> str:
        """Take an event. Returns the answer of a turn that ends with it and has no reply of its own, else nothing."""
        match event:
            case PromptSubmitted():
                self._reply, self.of_turn = None, ""
                self._results.clear()
            case AssistantReplied(message=message):
                self._reply = message
                self._say(text_of(message.parts))
            case ToolFinished(call_id):
                self._results[call_id] = event
            case TurnFinished(reason) if reason in _ENDS and (text := self._early()):
                self._say(text)
                return text
            case _:
                pass
        return ""

    def _say(self, text: str) -> None:
        self.of_turn = text
        self.latest = text if text.strip() else self.latest

    def _early(self) -> str:
        if self._reply is None:
            return ""
        results = {call.id: self._results.get(call.id) for call in calls_of(self._reply)}
        if any(each is None or each.outcome != "ok" or each.has_failed_part for each in results.values()):
            return ""
        found = early_text(self._reply, {call_id: each.shown for call_id, each in results.items() if each is not None})
        return found.text if found is not None else ""


def answers_in(entries: Iterable[Envelope]) -> Answers:
    """What the model said last in the conversation as it is now."""
    answers = Answers()
    for entry in branch(entries):
        answers.take(entry.event)
    return answers


def _answer_of(call: ToolCall) -> str:
    if call.name != TOOL or PARAMETER not in call.raw_arguments:
        return ""
    arguments, _ = parse_arguments(call.raw_arguments)
    answer = arguments.get(PARAMETER) if arguments else None
    return answer.strip() if isinstance(answer, str) else ""


def _last_line(shown: Shown) -> str:
    """The last line with a sum of tests that the check printed, else its last line; empty if it printed nothing."""
    lines = shown[0].text.strip().splitlines() if len(shown) > 1 and isinstance(shown[0], Text) else []
    if not lines or lines == [_NO_OUTPUT]:
        return ""
    summary = next((line for line in reversed(lines[-_SEARCHED_LINES:]) if re.search(_SUMMARY, line)), lines[-1])
    return f"\n\nThe check ended with: {summary.strip()[:_LONGEST_LINE]}"
