"""Changes in the text of a TOML file: the value changes, and all else stays."""

import json
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bradawl.app.config.toml_edit import with_items, with_value, without_items, without_key
from bradawl.core.errors import SettingsError

FILE = """\
# my settings

model = "x" # the usual one

# what needs no question
[permissions]
allow = [
  'Edit', # everywhere
  'Read'
  # more to come
]

# the lab
[providers.lab]
base_url = "http://127.0.0.1:9/v1"
"""


@pytest.mark.parametrize(
    ("text", "path", "value", "wanted"),
    [
        ("", ("a",), 5, "a = 5\n"),
        ("a = 1 # why\nb = 2\n", ("a",), 5, "a = 5 # why\nb = 2\n"),
        ("b = 2", ("a",), 5, "b = 2\na = 5\n"),
        ("# top\n\n# of t\n[t]\nb = 1\n", ("a",), 5, "# top\n\na = 5\n\n# of t\n[t]\nb = 1\n"),
        ("# of t\n[t]\nb = 1\n", ("a",), 5, "a = 5\n\n# of t\n[t]\nb = 1\n"),
        ("b = [\n 1,\n]\n# tail\n", ("a",), 5, "b = [\n 1,\n]\na = 5\n# tail\n"),
        ("[t]\nb = 1\n\n# of u\n[u]\n", ("t", "a"), 5, "[t]\nb = 1\na = 5\n\n# of u\n[u]\n"),
        ("[t]\n[u]\n", ("t", "a"), 5, "[t]\na = 5\n[u]\n"),
        ("[t]\nb = 1\n", ("u", "v w", "a"), 5, '[t]\nb = 1\n\n[u."v w"]\na = 5\n'),
        ("t.b = 1\nc = 2\n", ("t", "a"), 5, "t.b = 1\nt.a = 5\nc = 2\n"),
        ("t = { b = 1 }\n", ("t", "a"), 5, "t = { b = 1, a = 5}\n"),
    ],
)
def test_a_value_is_set_where_a_person_would_write_it(text, path, value, wanted):
    assert with_value(text, path, value) == wanted


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model",), "y"),
        (("max_steps",), 3),
        (("permissions", "ask"), ["x"]),
        (("providers", "lab", "api"), "openai_chat"),
    ],
)
def test_a_change_is_one_line(path, value):
    new = with_value(FILE, path, value)
    old_lines, new_lines = FILE.splitlines(), new.splitlines()
    assert [line for line in old_lines if line not in new_lines] in ([], ['model = "x" # the usual one'])
    assert len([line for line in new_lines if line not in old_lines]) == 1


def test_items_of_a_list_come_and_go_and_comments_stay():
    path = ("permissions", "allow")
    more = with_items(FILE, path, ["Bash(ls *)"])
    assert tomllib.loads(more)["permissions"]["allow"] == ["Edit", "Read", "Bash(ls *)"]
    assert all(line in more for line in ("# everywhere", "# more to come", "# the lab"))
    less = without_items(more, path, ["Read", "Bash(ls *)"])
    assert tomllib.loads(less)["permissions"]["allow"] == ["Edit"]
    assert "# everywhere" in less


def test_a_key_is_removed_and_its_neighbours_stay():
    new = without_key(FILE, ("model",))
    assert new == FILE.replace('model = "x" # the usual one\n', "")
    assert tomllib.loads(without_key(FILE, ("providers", "lab")))["permissions"]


def test_a_value_in_the_place_of_a_table_is_an_error():
    with pytest.raises(SettingsError, match="permissions is a value in this file, not a table"):
        with_value("permissions = 3\n", ("permissions", "allow"), ["x"])


KEYS = st.sampled_from(["a", "b", "c d", "é", "x.y"])
TABLES = st.dictionaries(KEYS, st.integers(0, 9) | st.lists(st.text("ab\"'#", max_size=3), max_size=3), max_size=3)


@st.composite
def files(draw) -> str:
    """A file with comments, keys and tables with names of one or two parts."""

    def lines(table: dict) -> str:
        ends = st.sampled_from(["", " # why", "\n", "\n# about\n"])
        return "".join(f"{json.dumps(key)} = {json.dumps(value)}{draw(ends)}\n" for key, value in table.items())

    parts = [draw(st.sampled_from(["", "# head\n\n", "# head\n"])), lines(draw(TABLES))]
    for name in draw(st.lists(st.sampled_from(["t", "u.v", "u.w", "u"]), unique=True, max_size=4)):
        parts += [draw(st.sampled_from(["", "\n", "\n# about the table\n"])), f"[{name}]\n", lines(draw(TABLES))]
    return "".join(parts)


@given(
    files(), st.lists(st.sampled_from(["a", "t", "u", "v", "w", "new", "c d"]), min_size=1, max_size=3), st.integers()
)
def test_any_key_of_any_file_is_set_and_no_comment_is_lost(text, path, value):
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    try:
        new = with_value(text, tuple(path), value)
    except SettingsError:
        return  # a value is in the place of a table
    found = tomllib.loads(new)
    for key in path:
        found = found[key]
    assert found == value
    if not isinstance(_at(tomllib.loads(text), path), dict | list):
        assert [line for line in text.splitlines() if line.startswith("#")] == [
            line for line in new.splitlines() if line.startswith("#")
        ]


def _at(values, path):
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values
