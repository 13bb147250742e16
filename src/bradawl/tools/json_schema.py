"""Checks values against a JSON Schema: a model's answer, or the arguments of a `JsonTool`.

The validator library is loaded with the first check.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_MOST_ERRORS: Final = 5
_LONGEST_ERROR: Final = 300
_OF_THE_ANSWER: Final = "The JSON Schema for the answer"


def check_for(schema: str | bytes, name: str = _OF_THE_ANSWER) -> Callable[[object], str]:
    """A function that returns the error in a value, or an empty string for a valid one.

    `schema` is JSON text of any draft from 4 to 2020-12; references resolve inside it, and nothing is fetched.
    `name` begins error messages about the schema. Raises `SettingsError`.
    """
    import jsonschema_rs

    try:
        value = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise SettingsError(f"{name} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise SettingsError(f"{name} must be a JSON object.")
    try:
        validator = jsonschema_rs.validator_for(value, retriever=_refuse)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{name} is not a valid schema: {_first_line(error)}") from error

    def what_is_wrong(value: object) -> str:
        try:
            found = [_described(error) for error in validator.iter_errors(value)]
        except (ValueError, RecursionError) as error:
            return _first_line(error)
        more = [f"and {len(found) - _MOST_ERRORS} more"] if len(found) > _MOST_ERRORS else []
        return "; ".join([*found[:_MOST_ERRORS], *more])

    return what_is_wrong


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} lies outside of the schema, and nothing is fetched; put it under $defs")


def _described(error: "ValidationError") -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    return f"{_cut(error.message)} (at ${steps})"


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return _cut(lines[0]) if lines else type(error).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."
