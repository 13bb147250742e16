"""Builds the struct for the arguments of a `@tool` function from its signature."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from bradawl.core.ports import CallContext

_SHOWN_DEFAULTS: Final = (str, int, float, bool)
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

Field = tuple[str, Any, object]


class Parameters(msgspec.Struct, frozen=True):
    """The parameters of a function."""

    struct: type[msgspec.Struct]
    """The struct of the arguments a model passes. Defaults that JSON can't express are UNSET."""
    defaults: Mapping[str, Any]
    """The function's default for each UNSET field; None for a parameter that may be None and has no default."""
    context_name: str
    """The parameter that takes the `CallContext`; empty if there is none."""


def parameters_of(function: Callable[..., object], name: str) -> Parameters:
    """Read a function's signature. Raises `TypeError` with the reason if it does not fit a schema."""
    hints = _hints(function)
    fields: list[Field] = []
    defaults: dict[str, Any] = {}
    context_name = ""
    for each in inspect.signature(function).parameters.values():
        if each.kind not in _BY_NAME:
            raise TypeError(f"the parameter {each} can't be given by its name, as models do")
        if each.name not in hints:
            raise TypeError(f"the parameter {each.name} has no annotation")
        if hints[each.name] is CallContext:
            context_name = each.name
            continue
        fields.append(_field(each, hints[each.name]))
        defaults[each.name] = None if each.default is inspect.Parameter.empty else each.default
    # Required parameters first, as a struct demands.
    fields.sort(key=lambda field: field[2] is not msgspec.NODEFAULT)
    struct = msgspec.defstruct(
        f"{name}_params",
        fields,
        namespace={"__doc__": inspect.cleandoc(function.__doc__ or "")},
        frozen=True,
        forbid_unknown_fields=True,
    )
    return Parameters(struct, defaults, context_name)


def holds_paths(parameters: Parameters, name: str) -> bool:
    """Whether the values of a parameter can be a text or a list of texts."""
    hint = next(field.type for field in msgspec.structs.fields(parameters.struct) if field.name == name)
    schema = msgspec.json.schema(hint)
    return _is_text(schema.get("items", {}) if schema.get("type") == "array" else schema)


def _is_text(schema: Mapping[str, Any]) -> bool:
    """Whether values arrive as `str`. An annotation such as `Any` has an empty schema, which says nothing."""
    if "enum" in schema:
        return all(isinstance(each, str) for each in schema["enum"])
    is_plain = not {"format", "contentEncoding", "$ref"} & set(schema)
    return is_plain and schema.get("type", "string") == "string"


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"an annotation names what does not exist here: {error}") from error


def _field(parameter: inspect.Parameter, annotation: object) -> Field:
    plain, description = _described(annotation)
    plain, may_be_none = _without_none(plain)
    default: object = parameter.default
    if default is inspect.Parameter.empty and not may_be_none:
        default = msgspec.NODEFAULT
    elif type(default) not in _SHOWN_DEFAULTS:
        default = UNSET
    _check(parameter.name, plain)
    if default is UNSET:
        plain = reduce(or_, (plain, UnsetType))
    extra = (msgspec.Meta(description=description),) if description else ()
    return parameter.name, Annotated[(plain, *extra)] if extra else plain, default


def _described(annotation: object) -> tuple[object, str]:
    """An annotation without its description, and the description."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, ""
    plain, *extras = typing.get_args(annotation)
    description = next((extra for extra in extras if isinstance(extra, str)), "")
    kept = tuple(extra for extra in extras if isinstance(extra, msgspec.Meta))
    return (Annotated[(plain, *kept)] if kept else plain), description


def _without_none(annotation: object) -> tuple[object, bool]:
    """The type without `| None`, and whether it had it; a model omits such an argument."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    members = typing.get_args(annotation)
    others = tuple(member for member in members if member is not types.NoneType)
    return reduce(or_, others), len(others) < len(members)


def _check(name: str, annotation: object) -> None:
    try:
        schema = msgspec.json.schema(annotation)
    except TypeError as error:
        what = getattr(annotation, "__name__", str(annotation))
        raise TypeError(
            f"the parameter {name} is a {what}, which JSON can't hold; use str, int, float, bool, list, dict, Literal, "
            "an enum, a dataclass or a msgspec Struct"
        ) from error
    if b'"anyOf"' in msgspec.json.encode(schema):
        raise TypeError(
            f"the parameter {name} may be of several types, which models get wrong; give it one type, or a default "
            "in place of None"
        )
