"""Completes the validation of values by the SDKs' types."""

from collections.abc import Iterable, Mapping


def whole(value):
    """The value with all its items validated. pydantic validates items of an `Iterable` only when it is iterated."""
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Mapping):
        return {name: whole(item) for name, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, Iterable) else value
