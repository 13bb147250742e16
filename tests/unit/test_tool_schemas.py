"""Tools as a model is told of them."""

import msgspec
import pytest

from bradawl.app.build import build_tools
from bradawl.core.ports import ToolSchema
from bradawl.shaping.tool_schema import schemas_of
from bradawl.testing.fakes import ScriptedHttp
from bradawl.tools.web_fetch import WebFetch

SCHEMAS = schemas_of([*build_tools(headless=False), WebFetch(lambda url, addresses: ScriptedHttp([]))])
SPEAK_FOR_THEMSELVES = {
    *("command", "content", "file_path", "file_paths", "job_id", "new_string", "path", "question", "replace_all"),
    "status",
}
"""Parameters whose name says it all."""


def objects(schema):
    """A schema of an object, and those of the objects in it."""
    yield schema
    for field in schema["properties"].values():
        inner = field.get("items", field)
        if inner.get("type") == "object":
            yield from objects(inner)


def test_all_schemas_together_are_small():
    assert sum(len(one.name) + len(one.description) + len(bytes(one.parameters)) for one in SCHEMAS) < 6_600


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: one.name)
def test_a_schema_is_plain_and_stands_alone(schema: ToolSchema):
    text = bytes(schema.parameters)
    assert schema.description
    assert not [word for word in (b"anyOf", b"oneOf", b"$ref", b"$defs", b"\\n", b"null") if word in text]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: one.name)
def test_every_argument_is_described_and_no_other_is_taken(schema: ToolSchema):
    for each in objects(msgspec.json.decode(schema.parameters)):
        assert each["additionalProperties"] is False
        silent = {name for name, field in each["properties"].items() if not field.get("description")}
        assert silent <= SPEAK_FOR_THEMSELVES
