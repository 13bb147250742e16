"""Questions to the user: the approver's answers are checked, and those of tools wait for each other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from bradawl.agent.failures import PartFailed
from bradawl.core.errors import BradawlError, ToolError
from bradawl.core.permissions import Answer, Choice, Question
from bradawl.core.ports import Approver
from bradawl.shaping.validation import validated

T = TypeVar("T")
_APPROVER: Final = "The approver"


async def permission(approver: Approver, question: Question) -> Answer:
    """The user's answer. Raises `PartFailed` if the approver raises or returns no `Answer`."""

    async def ask() -> Answer:
        return _answer(await approver.ask(question))

    return await _answered(ask)


async def _choice(approver: Approver, choice: Choice) -> str | None:
    async def choose() -> str | None:
        return _chosen(await approver.choose(choice))

    return await _answered(choose)


def _answer(value: object) -> Answer:
    if not isinstance(value, Answer):
        raise TypeError(f"ask returned an object of the type {type(value).__name__}, not an Answer")
    return validated(value, Answer)


def _chosen(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"choose returned an object of the type {type(value).__name__}, not a str or None")
    return value


async def _answered(ask: Callable[[], Awaitable[T]]) -> T:
    try:
        return await ask()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        cause = RuntimeError("what it waited for was cancelled")
        raise PartFailed(_APPROVER, cause) from error  # the turn itself was not cancelled
    except Exception as error:
        if isinstance(error, BradawlError) and not isinstance(error, ToolError):
            raise  # for the caller of the turn
        raise PartFailed(_APPROVER, error) from error


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
