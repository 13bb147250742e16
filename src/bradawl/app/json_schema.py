"""Checks values against a JSON Schema; the library for it is loaded when the first schema comes."""

from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

    from bradawl.agent.answer import WhatIsWrong

_MOST_ERRORS: Final = 5
_LONGEST_ERROR: Final = 300


def check_for(schema: str) -> "WhatIsWrong":
    """The check for a JSON Schema of any draft from 4 to 2020-12, given as text. Raises `SettingsError`.

    References lead into the schema itself only: nothing is fetched from anywhere.
    """
    import jsonschema_rs

    try:
        value = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise SettingsError(f"The JSON Schema for the answer is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise SettingsError("The JSON Schema for the answer must be a JSON object.")
    try:
        validator = jsonschema_rs.validator_for(value, retriever=_refuse)
    except (ValueError, RecursionError) as error:
        reason = _first_line(error)
        raise SettingsError(f"The JSON Schema for the answer is no valid schema: {reason}") from error

    def what_is_wrong(answer: object) -> str:
        """All that does not satisfy the schema, as far as it fits into a few lines."""
        try:
            found = [_described(error) for error in validator.iter_errors(answer)]
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
