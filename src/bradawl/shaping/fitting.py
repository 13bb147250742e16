"""Small slips of models in arguments, put right only where there is one way to read them."""

import json
import typing
from collections.abc import Mapping
from types import UnionType

import msgspec

from bradawl.core.arguments import Arguments, decode, fails_at_the_end, is_object

_REMARKS = frozenset({"description", "explanation", "reason", "reasoning", "thought"})
"""What models like to say beside a call; it changes nothing."""
_KINDS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def fit(arguments: Arguments, params: type[msgspec.Struct]) -> Arguments:
    """The arguments without remarks and nulls for what is optional.

    What stands alone where a list belongs is a list of one; a list or object written as JSON text is read.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(params)}
    fitted: Arguments = {}
    for name, value in arguments.items():
        field = fields.get(name)
        if field is None:
            if name not in _REMARKS:
                fitted[name] = value
        elif value is not None or field.required:
            fitted[name] = _fitted(value, field.type)
    return fitted


def _fitted(value: object, annotation: object) -> object:
    kind = kind_of(annotation)
    if kind == "list":
        return [_fitted(item, _item_type(annotation)) for item in _as_list(value)]
    if kind == "object":
        value = _read(value, "{")
        params = _struct(annotation)
        return value if params is None or not is_object(value) else fit(value, params)
    # A whole number stands for its digits; how a fraction or a truth value was meant to be written can't be told.
    return str(value) if kind == "string" and type(value) is int else value


def _struct(annotation: object) -> type[msgspec.Struct] | None:
    plain = _plain(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, msgspec.Struct) else None


def _as_list(value: object) -> list[object]:
    """A text is a list of one, unless it is a list itself; so is an object where objects are listed."""
    value = _read(value, "[")
    if isinstance(value, list):
        return typing.cast("list[object]", value)
    return [value]


def _read(value: object, opening: str) -> object:
    """What a text says in JSON, if it says a list or an object; else the value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(opening):
        return value
    try:
        return decode(value)
    except (ValueError, RecursionError):
        return value


def _item_type(annotation: object) -> object:
    return next(iter(typing.get_args(_plain(annotation))), object)


def _plain(annotation: object) -> object:
    """An annotation without what only describes it."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def unknown_names(arguments: Arguments, params: type[msgspec.Struct]) -> str:
    """A sentence on names the tool does not have, with the nearest it has; empty if there are none."""
    from difflib import get_close_matches  # only a mistaken model pays for it

    known = [field.encode_name for field in msgspec.structs.fields(params)]
    said: list[str] = []
    for name in arguments:
        if name not in known:
            near = [other for other in known if name in other or other in name] or get_close_matches(name, known, 1)
            said.append(f"there is no parameter {name}" + (f" (did you mean {near[0]}?)" if near else ""))
    return "; ".join(said)


def signature(params: type[msgspec.Struct]) -> str:
    """The parameters with their types, on one line."""
    listed = (
        f"{field.encode_name} ({kind_of(field.type)}{'' if field.required else ', optional'})"
        for field in msgspec.structs.fields(params)
    )
    return f"Its parameters are: {', '.join(listed)}."


def kind_of(annotation: object) -> str:
    """The JSON type of a field's annotation, or the values it may have, as far as a sentence needs it."""
    annotation = _plain(annotation)
    origin = typing.get_origin(annotation) or annotation
    if origin in (list, tuple, set, frozenset):
        return "list"
    if origin in (typing.Union, UnionType):
        return kind_of(typing.get_args(annotation)[0])
    if origin is typing.Literal:
        return f"one of {', '.join(map(str, typing.get_args(annotation)))}"
    return _KINDS.get(origin, "object")


def what_is_wrong(raw: str) -> str:
    """Why text is not a JSON object, in words for the model that wrote it."""
    try:
        value = decode(raw)
        value = decode(value) if isinstance(value, str) else value
    except RecursionError:
        return "they are nested too deeply"
    except json.JSONDecodeError as error:
        if fails_at_the_end(raw, error):
            return f"they end after {len(raw)} characters, before the JSON object does"
        near = raw[max(0, error.pos - 20) : error.pos + 20]
        return f"{error.msg} at character {error.pos + 1}, near {near}"
    except ValueError as error:
        return str(error)
    return f"they are a JSON {type(value).__name__}, not an object"
