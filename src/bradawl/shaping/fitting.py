"""Decodes the arguments of a call, corrects small mistakes of models in them, and describes the other errors."""

import json
import typing
from collections.abc import Iterable, Mapping
from types import UnionType

import msgspec

from bradawl.core.arguments import Arguments, decode, fails_at_the_end, is_object
from bradawl.core.ports import Params
from bradawl.core.tools import JsonParams
from bradawl.shaping import json_fitting
from bradawl.shaping.json_fitting import REMARKS, as_list, read_json

_KINDS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def decoded(arguments: Arguments, params: type[msgspec.Struct] | JsonParams) -> Params:
    """The arguments for the tool, with small mistakes corrected. Raises `ValidationError`, `RecursionError`."""
    if not isinstance(params, JsonParams):
        return msgspec.convert(fit(arguments, params), params, strict=False)
    fitted = json_fitting.fit(arguments, json_fitting.schema_of(params))
    if wrong := params.what_is_wrong(fitted):
        raise msgspec.ValidationError(wrong)
    return fitted


def fit(arguments: Arguments, params: type[msgspec.Struct]) -> Arguments:
    """The arguments without remarks and without nulls for optional fields.

    A single value in place of a list becomes a list of one; a list or object written as JSON text is decoded. A mistake
    with two possible corrections is not corrected.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(params)}
    fitted: Arguments = {}
    for name, value in arguments.items():
        field = fields.get(name)
        if field is None:
            if name not in REMARKS:
                fitted[name] = value
        elif value is not None or field.required:
            fitted[name] = _fitted(value, field.type)
    return fitted


def _fitted(value: object, annotation: object) -> object:
    kind = kind_of(annotation)
    if kind == "list":
        return [_fitted(item, _item_type(annotation)) for item in as_list(value)]
    if kind == "object":
        value = read_json(value, "{")
        params = _struct(annotation)
        return value if params is None or not is_object(value) else fit(value, params)
    # An integer has one spelling as a string; a fraction or a boolean has several.
    return str(value) if kind == "string" and type(value) is int else value


def _struct(annotation: object) -> type[msgspec.Struct] | None:
    plain = _plain(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, msgspec.Struct) else None


def _item_type(annotation: object) -> object:
    return next(iter(typing.get_args(_plain(annotation))), object)


def _plain(annotation: object) -> object:
    """The annotation inside `Annotated[...]`."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def unknown_names(arguments: Arguments, params: type[msgspec.Struct] | JsonParams) -> str:
    """A sentence about unknown names of arguments, with the most similar known ones; empty if all are known."""
    from difflib import get_close_matches  # rarely needed

    if isinstance(params, JsonParams):
        known = json_fitting.closed_names(json_fitting.schema_of(params))
        if known is None:
            return ""
    else:
        known = [field.encode_name for field in msgspec.structs.fields(params)]
    said: list[str] = []
    for name in arguments:
        if name not in known:
            near = [other for other in known if name in other or other in name] or get_close_matches(name, known, 1)
            said.append(f"there is no parameter {name}" + (f" (did you mean {near[0]}?)" if near else ""))
    return "; ".join(said)


def signature(params: type[msgspec.Struct] | JsonParams) -> str:
    """The parameters with their types, on one line."""
    listed = _listed(params)
    shown = ", ".join(f"{name} ({kind}{'' if required else ', optional'})" for name, kind, required in listed)
    return f"Its parameters are: {shown}." if shown else "It has no parameters."


def _listed(params: type[msgspec.Struct] | JsonParams) -> Iterable[tuple[str, str, bool]]:
    if isinstance(params, JsonParams):
        yield from json_fitting.listed(json_fitting.schema_of(params))
        return
    for field in msgspec.structs.fields(params):
        yield field.encode_name, kind_of(field.type), field.required


def kind_of(annotation: object) -> str:
    """The JSON type of an annotation, or its literal values, in words."""
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
    """Why the raw arguments are not a JSON object, as a text for the model."""
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
