"""Questions to the user: the approver's answers are checked, and those of tools wait for each other."""

import asyncio
from typing import Final

from bradawl.agent.failures import answer_of
from bradawl.core.permissions import Answer, Choice, Question
from bradawl.core.ports import Approver
from bradawl.shaping.validation import validated

_APPROVER: Final = "The approver"


async def permission(approver: Approver, question: Question) -> Answer:
    """The user's answer. Raises `PartFailed` if the approver raises or returns no `Answer`."""

    async def ask() -> Answer:
        return _answer(await approver.ask(question))

    return await answer_of(_APPROVER, ask)


async def _choice(approver: Approver, choice: Choice) -> str | None:
    async def choose() -> str | None:
        return _chosen(await approver.choose(choice))

    return await answer_of(_APPROVER, choose)


def _answer(value: object) -> Answer:
    if not isinstance(value, Answer):
        raise TypeError(f"ask returned an object of the type {type(value).__name__}, not an Answer")
    return validated(value, Answer)


def _chosen(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"choose returned an object of the type {type(value).__name__}, not a str or None")
    return value


class SerializedApprover:
    """`Approver` that waits until no other question of the session is open. Raises as `permission` does."""

    def __init__(self, approver: Approver, asking: asyncio.Lock) -> None:
        """`asking` is held while a question is open."""
        self._approver = approver
        self._asking = asking

    async def ask(self, question: Question) -> Answer:
        """Ask for permission. Waits until the user has answered."""
        async with self._asking:
            return await permission(self._approver, question)

    async def choose(self, choice: Choice) -> str | None:
        """Ask the user to choose or to type an answer; None if there is none."""
        async with self._asking:
            return await _choice(self._approver, choice)
