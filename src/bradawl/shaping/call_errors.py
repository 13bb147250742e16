"""Texts for the model about arguments of a call that can't be used."""

import msgspec

from bradawl.core.arguments import Arguments
from bradawl.core.tools import JsonParams
from bradawl.shaping import fitting

_MISSING = "Object missing required field "
"""What msgspec says (0.20, 2026-11)."""


def unusable(name: str, params: type[msgspec.Struct] | JsonParams, raw: str, status: str) -> str:
    """The result of a call whose arguments were cut off or are no JSON object."""
    if status == "truncated":
        return (
            f"{name} was not run: its arguments were cut off after {len(raw)} characters, "
            "because the reply hit its length limit. Send the call again with less in it, or in several parts."
        )
    wrong = fitting.what_is_wrong(raw)
    return f"{name} was not run: its arguments could not be read: {wrong}.\n{fitting.signature(params)}"


def unfit(name: str, params: type[msgspec.Struct] | JsonParams, arguments: Arguments, error: Exception) -> str:
    """The result of a call with unknown or missing arguments, or with a wrong value."""
    unknown = fitting.unknown_names(arguments, params)
    why = unknown or _readable(error)
    is_about_names = bool(unknown) or why.endswith(" is missing") or isinstance(params, JsonParams)
    listed = f"\n{fitting.signature(params)}" if is_about_names else ""  # a wrong value is described by itself
    return f"{name} was not run: {why}.{listed}"


def _readable(error: Exception) -> str:
    """A message like `Expected int, got str (in timeout)`, without msgspec's path syntax."""
    text = str(error).replace("`", "")
    what, separator, where = text.partition(" - at $")
    if what.startswith(_MISSING):
        what = f"{what.removeprefix(_MISSING)} is missing"
    return f"{what} (in {where.lstrip('.')})" if separator and where.strip(".") else what
