"""JSON objects of the Responses protocol as encoded fields, so that replayed items stay unchanged. Pure."""

import json

import msgspec

Fields = dict[str, msgspec.Raw]

_decode = msgspec.json.Decoder(Fields).decode


def fields_of(text: msgspec.Raw | str) -> Fields:
    """The fields of an object; empty for other JSON."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}


def decoded(raw: msgspec.Raw) -> object:
    """A decoded value; None if it is not valid JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(bytes(raw), strict=False)  # numbers outside the range of a float
    except (ValueError, RecursionError):
        return None


def value_of(fields: Fields, name: str) -> object:
    """A decoded field; None if missing."""
    raw = fields.get(name)
    return None if raw is None else decoded(raw)


def text_of(fields: Fields, name: str) -> str:
    """A string field; empty if missing or of another type."""
    value = value_of(fields, name)
    return value if isinstance(value, str) else ""


def as_text(value: object) -> str:
    """The value if it is a string; else empty."""
    return value if isinstance(value, str) else ""
