"""The approver of runs without a user: it denies every question, except about a file that a command is to write."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Answer, Choice, Question

_KEPT_QUESTIONS: Final = 50


class Refusal(NamedTuple):
    """What was refused about a call."""

    reason: str
    """Why the first question was asked."""
    hosts: tuple[str, ...] = ()
    """Hosts that its command was refused; without any the whole call was."""


class DenyAllApprover:
    """`Approver` that denies questions and keeps the first of them."""

    def __init__(self, home: str = "", without_sandbox: Callable[[], str] = str) -> None:
        """`home` is the user's home folder. `without_sandbox` returns advice on how to get a sandbox."""
        self.home = home
        self.without_sandbox = without_sandbox
        self.refused: list[Question] = []
        """The first questions, to explain at the end how such calls would be allowed."""
        self.agreed = ""
        """The one file that the user asked to have written, by its resolved path; empty for none."""

    async def ask(self, question: Question) -> Answer:
        """Deny, unless the call does no more than write the agreed file."""
        if self.agreed and _only_writes(question.request.effects, self.agreed):
            return Answer(allowed=True, by="user")
        if len(self.refused) < _KEPT_QUESTIONS:
            self.refused.append(question)
        return Answer(False, by="nobody", message="No user is present to be asked.")

    def refusals(self) -> dict[ToolCall, Refusal]:
        """What was refused, by call: models use ids again."""
        found: dict[ToolCall, Refusal] = {}
        for question in self.refused:
            effects, (reason, hosts) = question.request.effects, found.get(question.call, Refusal(question.reason))
            if effects.lifts == ("host",):
                hosts = tuple(dict.fromkeys((*hosts, *effects.hosts)))
            found[question.call] = Refusal(reason, hosts)
        return found

    async def choose(self, choice: Choice) -> str | None:
        """No answer."""
        return None


def _only_writes(effects: Effects, path: str) -> bool:
    rest = msgspec.structs.replace(effects, writes=(), reads=tuple(read for read in effects.reads if read != path))
    return effects.writes == (path,) and rest == Effects()
