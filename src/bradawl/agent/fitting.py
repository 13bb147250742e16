"""Small slips of models in arguments, put right only where there is one way to read them."""

import typing
from collections.abc import Mapping
from types import UnionType

import msgspec

from bradawl.core.arguments import Arguments

_REMARKS = frozenset({"description", "explanation", "reason", "reasoning", "thought"})
"""What models like to say beside a call; it changes nothing."""
_KINDS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def fit(arguments: Arguments, params: type[msgspec.Struct]) -> Arguments:
    """The arguments without remarks and nulls for what is optional; a text where a list belongs is a list of one."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(params)}
    fitted: Arguments = {}
    for name, value in arguments.items():
        field = fields.get(name)
        if field is None and name in _REMARKS:
            continue
        if value is None and field is not None and not field.required:
            continue
        is_list = field is not None and kind_of(field.type) == "list"
        fitted[name] = [value] if is_list and isinstance(value, str) else value
    return fitted


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
    """The JSON type of a field's annotation, as far as a sentence needs it."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    origin = typing.get_origin(annotation) or annotation
    if origin in (list, tuple, set, frozenset):
        return "list"
    if origin in (typing.Union, UnionType):
        return kind_of(typing.get_args(annotation)[0])
    return _KINDS.get(origin, "object")
