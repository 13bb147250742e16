"""Tool arguments as models really send them: what can be trusted to run, and what can't."""

import json
import re
from typing import NoReturn, TypeGuard

from bradawl.core.messages import ArgumentsStatus

Arguments = dict[str, object]


def is_object(value: object) -> TypeGuard[Arguments]:
    """True for what came from a JSON object."""
    return isinstance(value, dict)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _with_each_name_once(pairs: list[tuple[str, object]]) -> Arguments:
    """What is said twice is read one way by this and another way by that reader."""
    found: Arguments = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:100]!r} is given twice")
        found[name] = value
    return found


def decode(raw: str) -> object:
    """What JSON text says, also with the raw control characters and lone surrogates that models send.

    Raises `ValueError`, also where an object has a name twice, and `RecursionError`.
    """
    return json.loads(raw, strict=False, parse_constant=_reject_constant, object_pairs_hook=_with_each_name_once)


_UNFINISHED = r"t(r(ue?)?)?|f(a(l(se?)?)?)?|n(u(ll?)?)?|-|\.|[eE][+-]?"
# The place of the error is behind the backslash; four digits at the very end are still in doubt.
_UNFINISHED_ESCAPE = r"\\?u[0-9a-fA-F]{0,4}"


def fails_at_the_end(raw: str, error: ValueError) -> bool:
    """True when more text could still have made it JSON."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = raw[error.pos :].strip()
    if error.msg.startswith("Invalid \\u"):
        return bool(re.fullmatch(_UNFINISHED_ESCAPE, rest))
    return not rest or error.msg.startswith("Unterminated string") or bool(re.fullmatch(_UNFINISHED, rest))


def parse_arguments(raw: str, *, cut: bool = False) -> tuple[Arguments | None, ArgumentsStatus]:
    """Decode the arguments of a call; nothing is ever repaired.

    Nothing at all means no arguments. A JSON string that holds the object (some chat
    templates encode twice) is opened. `cut` says that the reply ended early (token limit
    or broken stream): only then can unfinished text be `truncated` instead of `malformed`.
    """
    if not raw.strip():
        return {}, "ok"
    try:
        value = decode(raw)
        if isinstance(value, str):
            value = decode(value)
    except RecursionError:
        return None, "malformed"
    except ValueError as error:
        return None, "truncated" if cut and fails_at_the_end(raw, error) else "malformed"
    return (value, "ok") if is_object(value) else (None, "malformed")
