"""Tool schemas as they are sent to a model: small, without references, and fully described."""

import enum
from typing import Annotated

import msgspec
import pytest

from bradawl.app.build.tools import build_tools
from bradawl.core.ports import ToolSchema
from bradawl.shaping.fitting import signature
from bradawl.shaping.tool_schema import schemas_of
from bradawl.testing.fakes import FakeTool, ScriptedHttp
from bradawl.tools.web_fetch import WebFetch

SCHEMAS = schemas_of([*build_tools(headless=False), WebFetch(lambda url, addresses: ScriptedHttp([]))])
UNDESCRIBED = {
    *("command", "content", "file_path", "file_paths", "job_id", "new_string", "old_string"),
    *("path", "pattern", "output_mode", "question", "replace_all", "status"),
}
"""Parameters whose name says it all."""


def objects(schema):
    """The schemas of an object and of all objects nested in it."""
    yield schema
    for field in schema["properties"].values():
        inner = field.get("items", field)
        if inner.get("type") == "object":
            yield from objects(inner)


def test_all_schemas_together_are_small():
    assert sum(len(one.name) + len(one.description) + len(bytes(one.parameters)) for one in SCHEMAS) < 6_000


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: one.name)
def test_a_schema_has_no_unions_and_no_references(schema: ToolSchema):
    text = bytes(schema.parameters)
    assert schema.description
    assert not [word for word in (b"anyOf", b"oneOf", b"$ref", b"$defs", b"\\n", b"null") if word in text]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: one.name)
def test_every_argument_is_described_and_closed_objects_are_not_paid_for(schema: ToolSchema):
    for each in objects(msgspec.json.decode(schema.parameters)):
        assert "additionalProperties" not in each
        assert each.get("required") != []
        silent = {name for name, field in each["properties"].items() if not field.get("description")}
        assert silent <= UNDESCRIBED


class Colour(enum.Enum):
    """A colour."""

    RED = "red"


class Point(msgspec.Struct):
    """A point."""

    x: int


class Tree(msgspec.Struct):
    """A node with its subtrees."""

    name: str
    below: list["Tree"] = []


class NestedParams(msgspec.Struct, frozen=True):
    """Parameters with nested types."""

    by_name: dict[str, Point]
    pair: tuple[Point, Colour]
    rows: list[list[Point]]
    at: Annotated[Point, msgspec.Meta(description="Where it begins.")]
    tree: Tree


class Nested(FakeTool):
    """A tool with such parameters."""

    @property
    def params(self):
        return NestedParams


def test_nested_types_are_inlined():
    text = bytes(schemas_of([Nested()])[0].parameters)
    fields = msgspec.json.decode(text)["properties"]
    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
    }
    assert b"$ref" not in text
    assert fields["by_name"]["additionalProperties"] == point == fields["rows"]["items"]["items"]
    assert fields["pair"]["prefixItems"] == [point, {"description": "A colour.", "enum": ["red"]}]
    assert fields["at"] == {**point, "description": "Where it begins."}
    assert fields["tree"]["properties"]["below"]["items"] == {"type": "object"}


def test_parameters_may_have_the_same_name_as_a_nested_type():
    inner = msgspec.defstruct("Params", [("x", int)], module="elsewhere")
    outer = msgspec.defstruct("Params", [("inner", inner)], module="here")
    nested = type("Same", (FakeTool,), {"params": outer})()
    fields = msgspec.json.decode(schemas_of([nested])[0].parameters)["properties"]
    assert fields["inner"]["properties"] == {"x": {"type": "integer"}}


def test_a_signature_names_the_values_of_a_parameter():
    (grep,) = (each for each in build_tools() if each.spec.name == "grep")
    assert "output_mode (one of content, files, count, optional)" in signature(grep.params)
