"""The approver of runs without a user: it denies every question."""

from collections.abc import Callable
from typing import Final, NamedTuple

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
    """`Approver` that denies every question and keeps the first of them."""

    def __init__(self, home: str = "", without_sandbox: Callable[[], str] = str) -> None:
        """`home` is the user's home folder. `without_sandbox` returns advice on how to get a sandbox."""
        self.home = home
        self.without_sandbox = without_sandbox
        self.refused: list[Question] = []
        """The first questions, to explain at the end how such calls would be allowed."""

    async def ask(self, question: Question) -> Answer:
        """Deny."""
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
