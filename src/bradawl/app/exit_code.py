"""The exit code of a run without a user, and the object that JSON output ends with. The code is a field of the object.

Every end of a run is a `Result`, made by one of the functions `result_of...`. Without JSON only its code is used.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bradawl.app.json_values import Stop, call_input, json_line, new_uuid, stop_of
from bradawl.app.settings.settings import NoSandbox
from bradawl.core.errors import BradawlError, Failure, ModelFailed, SessionBusy, SettingsError
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Envelope,
    Live,
    PrefixOpened,
    ReplyWithdrawn,
    RequestSent,
    TurnFinished,
)
from bradawl.core.messages import StopReason, ToolCall
from bradawl.core.usage import Usage, add_costs

if TYPE_CHECKING:
    from bradawl.agent.session import TurnResult
    from bradawl.app.deny_all_approver import Refusal

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
NO_SANDBOX: Final = 3
"""A sandbox is required and not available."""
LIMIT: Final = 4
REFUSED: Final = 5
NOT_WRITTEN: Final = 73
"""EX_CANTCREAT: the answer is complete, but a file that the prompt asks for is not in the machine's `/tmp`."""
NOT_SAVED: Final = 74
"""EX_IOERR: the answer is complete, but the session is not on disk, or not all of it."""
TRY_AGAIN: Final = 75
"""EX_TEMPFAIL: the same run may succeed later."""
CANCELLED: Final = 130
CLOSED: Final = 141
"""128 plus the number of SIGPIPE: nobody reads the stream any more."""
TERMINATED: Final = 143
_SIGNALS: Final = 128
"""Exit codes above it are those of runs that a signal ended."""

_MAIN: Final = "main"
Subtype = Literal["success", "error_max_turns", "error_max_budget_usd", "error_during_execution"]


def exit_code(
    reason: str, failure: Failure | None, *, saved: bool, is_written: bool = True, signal_code: int = CANCELLED
) -> int:
    """The exit code of a turn; `signal_code` is returned for a cancelled one."""
    match reason:
        case "completed":
            return NOT_SAVED if not saved else OK if is_written else NOT_WRITTEN
        case "steps" | "budget" | "time" | "limit":
            return LIMIT
        case "refused":
            return REFUSED
        case "cancelled":
            return signal_code
        case _:
            return TRY_AGAIN if failure and failure.retryable else ERROR


def code_of_error(error: BradawlError) -> int:
    """The exit code of a run that ends with this error."""
    match error:
        case NoSandbox():
            return NO_SANDBOX
        case SettingsError():
            return USAGE
        case SessionBusy():
            return TRY_AGAIN
        case ModelFailed(failure=failure):
            return exit_code("error", failure, saved=True)
        case _:
            return ERROR


class Denial(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call, or connections of its command, denied because no user was there to allow it."""

    tool_name: str
    tool_use_id: str
    tool_input: dict[str, object]
    hosts: tuple[str, ...] = ()
    """Hosts that the command was refused; without any the whole call was."""
    reason: str = ""
    """Why it needed a permission."""


class ModelUsage(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens and cost of one model."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    cost_usd: float | None = msgspec.field(name="costUSD")


class TokenCounts(msgspec.Struct, frozen=True):
    """Tokens in disjoint buckets."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The one object of `--output-format json`."""

    type: Literal["result"] = "result"
    subtype: Subtype
    is_error: bool
    result: str = ""
    num_turns: int = 0
    duration_ms: int = 0
    duration_api_ms: int = 0
    total_cost_usd: float | None = None
    usage: TokenCounts = TokenCounts()
    model_usage: dict[str, ModelUsage] = msgspec.field(default_factory=dict, name="modelUsage")
    denials: tuple[Denial, ...] = ()
    """The calls of the turn that were refused for lack of a user, whether or not the turn ended because of them."""
    permission_denials: tuple[Denial, ...] = ()
    """The same without reasons, under the name and in the form that other programs parse."""
    session_id: str = ""
    answer: object = msgspec.UNSET
    """The value of `result`, where it had to satisfy a JSON Schema."""
    structured_output: object = msgspec.UNSET
    """`answer`, under the name that other programs parse."""
    errors: tuple[str, ...] = ()
    reason: str = "error"
    exit_code: int = ERROR
    stop_reason: Stop | None = None
    """Why the last reply of the turn ended, in the words of the Anthropic Messages API."""
    terminal_reason: str | msgspec.UnsetType = msgspec.UNSET
    """`reason` where other programs know a name for it: `completed`, `max_turns`, `aborted_streaming`."""
    api_error_status: int | msgspec.UnsetType = msgspec.UNSET
    """The HTTP status with which the last request failed."""
    user_message_uuid: str | msgspec.UnsetType = msgspec.UNSET
    """The `uuid` of the message from stdin that the turn answers, if it has one."""
    user_message_uuids: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    uuid: str = msgspec.field(default_factory=new_uuid)

    def to_json(self) -> str:
        """One line, with its newline; control characters are escaped."""
        return json_line(self)


def result_of(
    turn: "TurnResult",
    code: int,
    errors: tuple[str, ...],
    meter: "Meter",
    refusals: "Mapping[ToolCall, Refusal] | None" = None,
) -> Result:
    """The object for a turn that was run. `refusals` say what was refused about its calls, where that is known."""
    denials = tuple(_denial(call, (refusals or {}).get(call)) for call in turn.denials)
    status = turn.failure.status if turn.failure else None
    return msgspec.structs.replace(
        _ended(code, turn.reason),
        result=turn.text,
        num_turns=turn.steps,
        duration_ms=meter.elapsed_ms(),
        duration_api_ms=meter.waited_ms(),
        total_cost_usd=turn.cost,
        usage=counts(turn.usage),
        model_usage=meter.by_model(),
        denials=denials,
        permission_denials=tuple(msgspec.structs.replace(denial, reason="") for denial in denials),
        session_id=turn.session_id,
        answer=msgspec.UNSET if turn.answer is None else turn.answer,
        structured_output=msgspec.UNSET if turn.answer is None else turn.answer,
        errors=errors,
        stop_reason=stop_of(meter.last_stop),
        api_error_status=msgspec.UNSET if status is None else status,
    )


def result_of_command(text: str, session_id: str, meter: "Meter", code: int = OK) -> Result:
    """The object for a slash command: its text is the result, and no step was taken."""
    reason = "completed" if code == OK else "cancelled" if code > _SIGNALS else "error"
    return msgspec.structs.replace(
        _ended(code, reason),
        result=text,
        duration_ms=meter.elapsed_ms(),
        session_id=session_id,
        errors=() if code == OK else (text,),
    )


def result_of_failure(message: str, code: int, *, reason: str = "error", session_id: str = "") -> Result:
    """The object for a run, or a message from stdin, that failed before its turn ended. The code is not 0."""
    return msgspec.structs.replace(_ended(code, reason), errors=(message,), session_id=session_id)


def with_code(result: Result, code: int) -> Result:
    """The same result, if the run ends with this code."""
    return msgspec.structs.replace(result, subtype=_subtype(result.reason, code), is_error=code != OK, exit_code=code)


def _ended(code: int, reason: str) -> Result:
    """The fields that say how a run ended. They agree with the code, because they follow from it."""
    terminal = _TERMINAL.get(reason, msgspec.UNSET)
    return with_code(Result(subtype="success", is_error=False, reason=reason, terminal_reason=terminal), code)


_TERMINAL: Final[Mapping[str, str]] = {
    "completed": "completed",
    "steps": "max_turns",
    "cancelled": "aborted_streaming",
}


def _subtype(reason: str, code: int) -> Subtype:
    if code == OK:
        return "success"
    if reason == "steps":
        return "error_max_turns"
    return "error_max_budget_usd" if reason == "budget" else "error_during_execution"


def counts(usage: Usage) -> TokenCounts:
    """Tokens under the names of the Anthropic Messages API."""
    return TokenCounts(usage.input, usage.output, usage.cache_read, usage.cache_write)


def _denial(call: ToolCall, refusal: "Refusal | None") -> Denial:
    reason, hosts = refusal or ("", ())
    return Denial(call.name, call.id, call_input(call.raw_arguments), hosts, reason)


class Meter:
    """Measures a run from its events: time, and the usage of each model."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._sent: dict[str, float] = {}
        self._waited = 0.0
        self._usage: dict[str, tuple[Usage, float | None]] = {}
        self._models: dict[str, str] = {}
        """The model of each agent, by the agent's name."""
        self.last_stop: StopReason | None = None
        """Why the last reply of the main agent ended."""

    def emit(self, item: Envelope | Live) -> None:
        """Take one event into account."""
        if isinstance(item, Live):
            return
        match item.event:
            case RequestSent():
                self._sent[item.agent] = self._monotonic()
            case AssistantReplied(usage=usage, cost=cost) as replied:
                self._received(item.agent)
                self.last_stop = replied.stop if item.agent == _MAIN else self.last_stop
                self._models[item.agent] = model = replied.model or replied.message.origin.model
                self._add(model, usage, cost)
            case Compacted(usage=usage, cost=cost):
                self._add(self._models.get(item.agent, ""), usage, cost)
            case ReplyWithdrawn(usage=usage, cost=cost):
                self._received(item.agent)
                self._add(self._models.get(item.agent, ""), usage, cost)
            case TurnFinished():
                self._received(item.agent)
            case PrefixOpened(model=model):
                self._models[item.agent] = model
            case _:
                pass

    def _received(self, agent: str) -> None:
        if (sent := self._sent.pop(agent, None)) is not None:
            self._waited += self._monotonic() - sent

    def _add(self, model: str, usage: Usage | None, cost: float | None) -> None:
        if usage is not None:
            before, paid = self._usage.get(model, (Usage(), 0.0))
            self._usage[model] = (before + usage, add_costs(paid, cost))

    def elapsed_ms(self) -> int:
        """Milliseconds since this object was created."""
        return round((self._monotonic() - self._began) * 1000)

    def waited_ms(self) -> int:
        """Milliseconds between requests and the ends of their replies."""
        return round(self._waited * 1000)

    def by_model(self) -> dict[str, ModelUsage]:
        """The usage of each model, by the name in its replies."""
        return {
            name: ModelUsage(usage.input, usage.output, usage.cache_read, usage.cache_write, cost)
            for name, (usage, cost) in self._usage.items()
        }
