"""Runs the hooks before and after a call, one after the other, in the order they were given. A hook fails closed."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.events import Event, HookRan
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.ports import Hook
from bradawl.shaping.validation import validated

Record = Callable[[Event], object]


def check_hooks(hooks: Iterable[object]) -> None:
    """Raises `SettingsError` for an object that is not a hook."""
    for hook in hooks:
        kind = hook.__name__ if isinstance(hook, type) else type(hook).__name__
        if isinstance(hook, type):
            raise SettingsError(f"{kind} is a class, not a hook; pass an object of the class: {kind}().")
        missing = [each for each in ("before_call", "after_call") if not callable(getattr(hook, each, None))]
        if missing:
            raise SettingsError(f"An object of the type {kind} is not a hook: it has no method {missing[0]}.")
        name = getattr(hook, "name", None)
        if not isinstance(name, str) or not name:
            raise SettingsError(f"The hook {kind} needs the attribute `name`, a text that names it in the log.")


async def before_call(hooks: Sequence[Hook], call: ToolCall, record: Record) -> ToolCall | str:
    """The call with its arguments as the hooks changed them, or the reason of the first hook that refused it.

    A hook that raises, or changes more than the arguments, refuses the call: a check that failed must allow nothing.
    """
    for hook in hooks:
        try:
            verdict = await hook.before_call(call)
            verdict = verdict if isinstance(verdict, str) else _with_arguments(call, validated(verdict, ToolCall))
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
    """The result with its parts as the hooks changed them.

    A hook that raises, or changes more than the parts, withholds the result: it may have been about to remove a secret.
    """
    for hook in hooks:
        try:
            amended = _with_parts(result, validated(await hook.after_call(call, result), ToolResult))
        except Exception as error:
            record(HookRan(hook.name, "after_call", call.id, "failed", f"{type(error).__name__}: {error}"))
            return withheld(result, f"the hook {hook.name} failed: {error}")
        if amended != result:
            record(HookRan(hook.name, "after_call", call.id, "amended"))
        result = amended
    return result


def withheld(result: ToolResult, why: str) -> ToolResult:
    """The result without its content, and the reason."""
    text = f"[the result of {result.name} is withheld: {why}]"
    return msgspec.structs.replace(result, parts=(Text(text),))


def _with_arguments(call: ToolCall, changed: ToolCall) -> ToolCall:
    if (changed.id, changed.name) != (call.id, call.name):
        raise ValueError(
            f"it made {changed.name!r} ({changed.id}) of {call.name!r} ({call.id}); "
            "a hook may change the arguments of a call, not its name or id"
        )
    return changed


def _with_parts(result: ToolResult, changed: ToolResult) -> ToolResult:
    if msgspec.structs.replace(changed, parts=result.parts) != result:
        raise ValueError("a hook may change the parts of a result, not its call_id, name or is_error")
    return changed
