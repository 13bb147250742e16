import msgspec

from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile

TOOLS = (Bash(), ReadFile(), WriteFile(), EditFile(), Glob(), Grep(None))


def test_all_schemas_together_are_small_and_plain():
    schemas = [msgspec.json.encode([tool.name, msgspec.json.schema(tool.params)]) for tool in TOOLS]
    assert sum(map(len, schemas)) < 4_096
    assert not [schema for schema in schemas if b"anyOf" in schema or b"\\n" in schema]


def test_every_argument_is_described_and_no_other_is_taken():
    for tool in TOOLS:
        schema = msgspec.json.schema(tool.params)["$defs"][tool.params.__name__]
        assert schema["additionalProperties"] is False
        assert schema["description"]
        assert all(field["description"] for field in schema["properties"].values())
