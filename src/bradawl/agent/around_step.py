"""Calls the middleware of a session in their order and checks what they answer. An exception names its middleware."""

from collections.abc import Sequence
from inspect import iscoroutine

from bradawl.agent.failures import PartFailed
from bradawl.agent.middleware import Continue, Finish, Middleware, Retry, StepOutcome
from bradawl.core.errors import BradawlError, Failure, ModelFailed
from bradawl.core.events import RequestParams, TurnFinished
from bradawl.shaping.validation import validated

Chain = Sequence[Middleware]


def begin_turn(chain: Chain, params: RequestParams) -> None:
    """Begin a turn in each middleware. Raises their `BradawlError`s, and `PartFailed` for another exception."""
    for each in chain:
        try:
            _check_answer(each.begin_turn(params))
        except BradawlError:
            raise
        except Exception as error:
            raise _failed(each, "begin_turn", error) from error


async def before_step(chain: Chain) -> Finish | None:
    """The first answer. Raises `PartFailed`."""
    for each in chain:
        try:
            if (answer := await each.before_step()) is not None:
                _check_answer(answer, Finish)
                return answer
        except ModelFailed:
            raise
        except Exception as error:
            raise _failed(each, "before_step", error) from error
    return None


def adjust(chain: Chain, params: RequestParams) -> RequestParams | Finish:
    """The parameters of the next request, or why it is not sent. Raises `PartFailed`."""
    for each in chain:
        try:
            adjusted = each.adjust(params)
            if not isinstance(adjusted, RequestParams):
                _check_answer(adjusted, Finish, RequestParams)
                return adjusted
        except Exception as error:
            raise _failed(each, "adjust", error) from error
        params = adjusted
    return params


async def after_step(chain: Chain, outcome: StepOutcome) -> Retry | Continue | Finish | None:
    """The first answer. Raises `PartFailed`."""
    for each in chain:
        try:
            if (answer := await each.after_step(outcome)) is not None:
                _check_answer(answer, Retry, Continue, Finish)
                return answer
        except ModelFailed:
            raise
        except Exception as error:
            raise _failed(each, "after_step", error) from error
    return None


def _failed(middleware: Middleware, method: str, error: Exception) -> PartFailed:
    return PartFailed(f"The middleware {type(middleware).__name__} in {method}", error)


def _check_answer(answer: object, *kinds: type) -> None:
    """Raises `TypeError` for an answer of another kind, and `ValidationError` for one with wrong values."""
    if iscoroutine(answer):
        answer.close()
        raise TypeError("it may not be async")
    if not isinstance(answer, (*kinds, type(None))) or (answer is None and RequestParams in kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"it returned {answer!r}, not {names or 'None'}")
    match answer:
        case Finish(finished=finished):
            validated(finished, TurnFinished)
        case Retry(failure=failure):
            validated(failure, Failure)
        case Continue():
            validated(answer, Continue)
        case _:
            pass
