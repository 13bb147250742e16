"""Runs the hooks before and after a call, one after the other, in the order they were given."""

from collections.abc import Callable, Sequence

from bradawl.core.events import Event, HookRan
from bradawl.core.messages import ToolCall, ToolResult
from bradawl.core.ports import Hook
from bradawl.shaping.validation import validated

Record = Callable[[Event], object]


async def before_call(hooks: Sequence[Hook], call: ToolCall, record: Record) -> ToolCall | str:
    """The call as the hooks changed it, or the reason of the first hook that refused it.

    A hook that raises refuses the call, because a check that failed must not allow anything.
    """
    for hook in hooks:
        try:
            verdict = await hook.before_call(call)
            verdict = verdict if isinstance(verdict, str) else validated(verdict, ToolCall)
        except Exception as error:
            record(HookRan(hook.name, "before_call", call.id, "failed", f"{type(error).__name__}: {error}"))
            return f"The hook {hook.name} failed, so the call was not run: {error}"
        if isinstance(verdict, str):
            record(HookRan(hook.name, "before_call", call.id, "blocked", verdict))
            return verdict
        if verdict != call:
            record(HookRan(hook.name, "before_call", call.id, "amended"))
        call = verdict
    return call


async def after_call(hooks: Sequence[Hook], call: ToolCall, result: ToolResult, record: Record) -> ToolResult:
    """The result as the hooks changed it. A hook that raises changes nothing."""
    for hook in hooks:
        try:
            amended = validated(await hook.after_call(call, result), ToolResult)
        except Exception as error:
            record(HookRan(hook.name, "after_call", call.id, "failed", f"{type(error).__name__}: {error}"))
            continue
        if amended != result:
            record(HookRan(hook.name, "after_call", call.id, "amended"))
        result = amended
    return result
