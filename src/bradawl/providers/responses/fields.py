"""JSON objects of the Responses format, field by field as they were written: what goes back must not change. Pure."""

import json

import msgspec

Fields = dict[str, msgspec.Raw]

_decode = msgspec.json.Decoder(Fields).decode


def fields_of(text: msgspec.Raw | str) -> Fields:
    """The fields of an object; none if the text is something else."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}


def decoded(raw: msgspec.Raw) -> object:
    """A value; None for what nobody can read."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(bytes(raw), strict=False)  # numbers beyond a float's range
    except (ValueError, RecursionError):
        return None


def value_of(fields: Fields, name: str) -> object:
    """One field, decoded; None when it is missing."""
    raw = fields.get(name)
    return None if raw is None else decoded(raw)


def text_of(fields: Fields, name: str) -> str:
    """One field if it is a string, else nothing."""
    value = value_of(fields, name)
    return value if isinstance(value, str) else ""


def as_text(value: object) -> str:
    """A string, or nothing."""
    return value if isinstance(value, str) else ""
