"""Writes docs/stream-json.schema.json, the JSON Schema of the lines of a stream, from the classes of the program.

`--check` writes nothing and exits with 1 if the file is out of date.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from bradawl.app.stream_json.lines import LINES

PATH = Path(__file__).parents[1] / "docs" / "stream-json.schema.json"


def schema() -> dict[str, Any]:
    """A line is one of the classes. A field is required unless it can be left out of the JSON."""
    lines, components = msgspec.json.schema_components(LINES, schema_hook=_anything, ref_template="#/$defs/{name}")
    for name, definition in components.items():
        definition["required"] = sorted(_required(name, definition))
        definition.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of bradawl --output-format stream-json",
        "description": "Programs that read lines must accept lines of other types, and other fields.",
        "oneOf": list(lines),
        "$defs": dict(sorted(components.items())),
    }


def _anything(_: type) -> dict[str, Any]:
    return {"description": "Any JSON value."}


def _required(name: str, definition: dict[str, Any]) -> list[str]:
    return [field for field in definition["properties"] if field not in _left_out().get(name, set())]


def _left_out() -> dict[str, set[str]]:
    """Fields that may be missing: those that can be unset, and defaults of classes that omit them."""
    found: dict[str, set[str]] = {}
    for kind in _structs():
        config = kind.__struct_config__
        found[kind.__name__] = {
            field.encode_name
            for field in msgspec.structs.fields(kind)
            if "UnsetType" in str(field.type)
            or field.default is msgspec.UNSET
            or (config.omit_defaults and not field.required)
        }
    return found


def _structs() -> list[type[msgspec.Struct]]:
    from bradawl.app import exit_code
    from bradawl.app.stream_json import content, lines

    every = [each for module in (exit_code, content, lines) for each in vars(module).values()]
    return [each for each in every if isinstance(each, type) and issubclass(each, msgspec.Struct)]


def text() -> str:
    """The content of the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the file, or with `--check` compare it."""
    if "--check" in sys.argv[1:]:
        is_current = PATH.exists() and PATH.read_text(encoding="utf-8") == text()
        sys.stdout.write("" if is_current else f"{PATH.name} is out of date\n")
        return 0 if is_current else 1
    PATH.write_text(text(), encoding="utf-8")
    return 0


sys.exit(main())
