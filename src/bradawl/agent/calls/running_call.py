"""What a running call may ask: permission for further effects, and its tool's own questions to the user."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from bradawl.agent.calls.authorize import authorize
from bradawl.agent.calls.call import Prepared, Refused
from bradawl.agent.calls.connections import CallConnections, is_connection
from bradawl.agent.calls.context import CallServices
from bradawl.agent.calls.questions import SerializedApprover
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Answer, Choice, Grant, Question
from bradawl.shaping.validation import declared

T = TypeVar("T")


class QuestionFailed(Exception):
    """A question during a call failed, through no fault of the tool: the turn ends with `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class CallQuestions:
    """`Permit` and `Approver` of one call. Keeps the first failure: a tool can catch it, but it still ends the turn."""

    def __init__(self, services: CallServices, prepared: Prepared, grant: Grant) -> None:
        self._services = services
        self._prepared = prepared
        self._connections = CallConnections(services, prepared, grant)
        self._approver = SerializedApprover(services.approver, services.asking)
        self._failure: Exception | None = None
        self.is_over = False
        """The call has ended; about connections of what it left running nothing is asked any more."""

    async def permit(self, effects: Effects) -> None:
        """Judge effects found while the call runs. Raises `ToolError` if they are refused."""
        effects = declared(effects)
        if is_connection(self._prepared, effects):
            await self._keeping_failure(self._connections.permit(effects.hosts, is_over=self.is_over))
        else:
            await self._keeping_failure(self._authorize(effects))

    async def ask(self, question: Question) -> Answer:
        """See `Approver`. Waits until no other question of the session is open."""
        return await self._keeping_failure(self._approver.ask(_checked(question, Question)))

    async def choose(self, choice: Choice) -> str | None:
        """See `Approver`. Waits until no other question of the session is open."""
        return await self._keeping_failure(self._approver.choose(_checked(choice, Choice)))

    def check(self) -> None:
        """Raises `QuestionFailed` if a question failed."""
        if self._failure is not None:
            raise QuestionFailed(self._failure)

    async def _authorize(self, effects: Effects) -> None:
        begun = asyncio.Event()
        begun.set()
        found = await authorize(self._services, msgspec.structs.replace(self._prepared, effects=effects), begun)
        if isinstance(found, Refused):
            raise ToolError(found.text)

    async def _keeping_failure(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except ToolError:
            raise
        except Exception as error:
            self._failure = self._failure or error
            raise


def _checked(value: object, kind: type[T]) -> T:
    """The value. Raises `TypeError`, which is the tool's fault, if it is of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"expected a {kind.__name__}, got an object of the type {type(value).__name__}")
    return value
