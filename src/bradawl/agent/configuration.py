"""The configuration of an agent: its model, tools, ports and limits."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Never, Protocol

import msgspec

from bradawl.agent.calls.hooks import check_hooks
from bradawl.agent.middleware import MiddlewareFactory
from bradawl.core.errors import SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.permissions import Policy
from bradawl.core.ports import (
    Approver,
    Clock,
    Files,
    Hook,
    Ids,
    Model,
    Processes,
    SessionStore,
    Tool,
    WorkspaceChanges,
)
from bradawl.core.retry import RetryBudget
from bradawl.shaping.compaction.limits import CompactionLimits
from bradawl.shaping.json_answer import CheckFor
from bradawl.shaping.tool_list import check_tools


class Limits(msgspec.Struct, frozen=True):
    """Limits of a turn; None means unlimited."""

    max_steps: int | None = None
    """Steps per turn: replies, however often their requests had to be repeated."""
    tells_last_step: bool = False
    """Before the last step the model is asked for its conclusion. Sub-agents are always asked."""
    parallel_calls: int = 10
    """Calls of one reply that may run at the same time."""
    calls_per_reply: int = 100
    """Calls of one reply that are run; the others are answered without being run."""
    same_rounds: int | None = 5
    """Consecutive rounds of the same calls with the same results that end a turn."""


class TurnEnd(msgspec.Struct, frozen=True):
    """What happened when a turn ended, in sentences for the user."""

    notices: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """What the user asked for and did not get. The model is told, too, when the session goes on."""


class AroundTurns(Protocol):
    """Acts before and after the turns of a session, on the user's words. Not called for sub-agents."""

    def begin_turn(self, texts: Iterable[str], policy: Callable[[], Policy]) -> None:
        """Called with the texts of the user since the last call: prompts, also earlier ones of a resumed session, and
        messages sent during a turn. The last one is the present one. `policy` returns the session's at that moment.
        """
        ...

    def end_turn(self) -> TurnEnd:
        """Called when a turn has ended, however it did; blocks no longer than a second. It must not raise."""
        ...


class AgentConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a session is made from. Immutable and shared by all sessions of an agent.

    Raises `SettingsError` for a tool, a hook or a middleware that is none, and for a name that is wrong or used twice.
    """

    model: Model
    small_model: Model | None = None
    """For sub-agents that only read; None for `model`."""
    tools: tuple[Tool[Never], ...]
    store: SessionStore
    files: Files
    processes: Processes
    approver: Approver
    clock: Clock
    ids: Ids
    policy: Callable[[], Policy]
    """Called before each tool call, so that a change of mode takes effect at once."""
    system_prompt: Callable[[], Awaitable[str]]
    """Called once, when a session opens its first prefix."""
    project: str
    """Real path of the folder the session belongs to; its first working directory."""
    version: str = ""
    limits: Limits = Limits()
    compaction: CompactionLimits = CompactionLimits()
    """When a conversation that fills the model's window is compacted."""
    params: RequestParams = RequestParams()
    retry: RetryBudget = RetryBudget()
    hooks: tuple[Hook, ...] = ()
    middleware: tuple[MiddlewareFactory, ...] = ()
    """Each makes a further middleware for a session; they are called in this order, after bradawl's own and before the
    check of the final answer."""
    changes: WorkspaceChanges | None = None
    """Saves what calls change, for undo; None to save nothing."""
    check_for: CheckFor | None = None
    """Makes the check of an answer from a JSON Schema; needed only for answers that must satisfy one."""
    around_turns: AroundTurns | None = None
    """Called around each turn; None for nothing."""
    on_close: Callable[[], None] | None = None
    """Called by `Agent.aclose`, to release what the adapters hold."""

    def __post_init__(self) -> None:
        check_tools(self.tools)
        check_hooks(self.hooks)
        for make in self.middleware:
            if not callable(make):
                kind = type(make).__name__
                raise SettingsError(
                    f"The middleware {kind} is an object; pass its class, of which each session makes one."
                )
