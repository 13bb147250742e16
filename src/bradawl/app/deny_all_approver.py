"""The approver of runs without a user: it denies every question."""

from collections.abc import Callable
from typing import Final

from bradawl.core.permissions import Answer, Choice, Question

_KEPT_QUESTIONS: Final = 50


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

    def refused_hosts(self) -> dict[str, tuple[str, ...]]:
        """Hosts that commands were refused, by the id of the call."""
        found: dict[str, tuple[str, ...]] = {}
        for question in self.refused:
            effects, call_id = question.request.effects, question.call.id
            if effects.lifts == ("host",):
                found[call_id] = tuple(dict.fromkeys((*found.get(call_id, ()), *effects.hosts)))
        return found

    async def choose(self, choice: Choice) -> str | None:
        """No answer."""
        return None
