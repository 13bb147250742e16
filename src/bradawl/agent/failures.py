"""Exceptions inside a turn: which part of the session raised one, and the failure with which it ends the turn."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, cast

from bradawl.core.errors import BradawlError, Failure, ModelFailed, ToolError
from bradawl.core.messages import Origin

T = TypeVar("T")


class PartFailed(Exception):
    """A part of a session, such as a middleware or a codec, raised an exception; the text names both."""

    def __init__(self, part: str, error: Exception) -> None:
        """`part` names the part, and what it was asked to do."""
        super().__init__(f"{part} failed: {type(error).__name__}: {error}")
        self.error = error
        """The exception, with its traceback."""


def model_failed(origin: Origin, error: Exception) -> PartFailed:
    """The exception of a model, or of the codec that it speaks."""
    return PartFailed(f"The model {origin.provider}/{origin.model} (codec {origin.api})", error)


async def answer_of(part: str, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer of a part that an embedding program brought. Raises `PartFailed` with the name `part` if it raises.

    Other errors of bradawl than `ToolError` pass: they are for the caller of the turn. A `CancelledError` passes if the
    turn is cancelled; otherwise the part has waited for something that was.
    """
    try:
        return await ask()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise PartFailed(part, RuntimeError("what it waited for was cancelled")) from error
    except Exception as error:
        if isinstance(error, BradawlError) and not isinstance(error, ToolError):
            raise
        raise PartFailed(part, error) from error


def report(text: str, error: Exception) -> Failure:
    """The failure that ends a turn.

    The event loop's exception handler gets the exception with its traceback, and the key `ends_turn`.
    """
    asyncio.get_running_loop().call_exception_handler({"message": text, "exception": error, "ends_turn": True})
    return Failure("internal", text)


def failure_of(group: BaseExceptionGroup[BaseException]) -> Failure | BaseException:
    """The failure with which these exceptions end a turn, or the one that the caller of the turn has to handle."""
    defects: list[Exception] = []
    for error in _leaves(group):
        if not isinstance(error, Exception):
            return group
        if isinstance(error, BradawlError) and not isinstance(error, ModelFailed):
            return error
        defects.append(error)
    match defects[0]:
        case ModelFailed(failure=failure):
            return failure
        case PartFailed(error=cause) as named:
            return report(str(named), cause)
        case error:
            return report(f"internal error: {type(error).__name__}: {error}", error)


def as_error(failure: Failure | BaseException) -> BaseException:
    """The exception for callers that get no value for a failure."""
    return ModelFailed(failure) if isinstance(failure, Failure) else failure


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(each)
    else:
        yield error
