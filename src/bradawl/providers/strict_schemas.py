"""Whether a JSON Schema fulfils the conditions of OpenAI's `strict` flag. Pure."""

from typing import cast

import msgspec

from bradawl.providers.encoding import Json

_PLACES = frozenset({"items", "anyOf"})


def may_be_strict(schema: str) -> bool:
    """True for the JSON text of an object's schema with which `strict` may be sent."""
    try:
        decoded: object = msgspec.json.decode(schema)
    except msgspec.DecodeError:
        return False
    return isinstance(decoded, dict) and "properties" in decoded and is_strict(cast("Json", decoded))


def is_strict(schema: object) -> bool:
    """True for a JSON Schema whose objects are all closed and whose properties are all required."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in cast("list[object]", schema))
    if not isinstance(schema, dict):
        return True
    fields = cast("Json", schema)
    properties = _object_in(fields, "properties")
    if fields.get("type") == "object" or properties:
        required = fields.get("required")
        listed = set(cast("list[object]", required)) if isinstance(required, list) else set[object]()
        if fields.get("additionalProperties") is not False or listed != set(properties):
            return False
    inner = [*properties.values(), *_object_in(fields, "$defs").values()]
    return all(map(is_strict, inner)) and all(is_strict(fields.get(place)) for place in _PLACES)


def _object_in(fields: Json, name: str) -> Json:
    value = fields.get(name)
    return cast("Json", value) if isinstance(value, dict) else {}
