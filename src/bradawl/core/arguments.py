"""Decodes the JSON arguments of tool calls as models really write them, and tells usable ones from broken ones."""

import json
import re
from typing import NoReturn, TypeGuard

from bradawl.core.messages import ArgumentsStatus

Arguments = dict[str, object]


def is_object(value: object) -> TypeGuard[Arguments]:
    """True for the value of a JSON object."""
    return isinstance(value, dict)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _with_each_name_once(pairs: list[tuple[str, object]]) -> Arguments:
    """Refuses a repeated name: JSON readers disagree about which value counts."""
    found: Arguments = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:100]!r} is given twice")
        found[name] = value
    return found


def decode(raw: str) -> object:
    """The value of JSON text, also with raw control characters. Raises `ValueError` and `RecursionError`."""
    return json.loads(raw, strict=False, parse_constant=_reject_constant, object_pairs_hook=_with_each_name_once)


_UNFINISHED = r"t(r(ue?)?)?|f(a(l(se?)?)?)?|n(u(ll?)?)?|-|\.|[eE][+-]?"
# The error is reported behind the backslash; four digits at the very end may still be continued.
_UNFINISHED_ESCAPE = r"\\?u[0-9a-fA-F]{0,4}"


def fails_at_the_end(raw: str, error: ValueError) -> bool:
    """True if more text could have made it valid JSON."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = raw[error.pos :].strip()
    if error.msg.startswith("Invalid \\u"):
        return bool(re.fullmatch(_UNFINISHED_ESCAPE, rest))
    return not rest or error.msg.startswith("Unterminated string") or bool(re.fullmatch(_UNFINISHED, rest))


def parse_arguments(raw: str, *, cut: bool = False) -> tuple[Arguments | None, ArgumentsStatus]:
    """Decode the arguments of a call, without repairs.

    Blank text means no arguments. A JSON string that holds the object is decoded again: some chat templates encode
    twice. `cut`: the reply ended early; only then is unfinished text `truncated` instead of `malformed`.
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
