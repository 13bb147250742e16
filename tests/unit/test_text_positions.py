"""Lines and columns of keys and values in TOML and JSON."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.settings.text_positions import positions_in

TOML = '''# a comment with x = 1
model = "x" # y
a.b = 3
[permissions]
allow = ["a", # "c",
  'b']
[providers."my x"]
headers = {a="1", "b" = 2}
text = """ x
[no]
key = 3 ""\\"
"""
last = \'\'\'it's\'\'\'
[[rule]]
x = 1
[[rule]]
x = 2
[rule.deep]
y = { z = [ { q = 1 } ] }
'''


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (("model",), (2, 1, 5)),
        (("a", "b"), (3, 3, 1)),
        (("permissions",), (4, 2, 11)),
        (("permissions", "allow"), (5, 1, 5)),
        (("providers", "my x"), (7, 12, 6)),
        (("providers", "my x", "headers", "b"), (8, 19, 3)),
        (("providers", "my x", "text"), (9, 1, 4)),
        (("providers", "my x", "last"), (13, 1, 4)),
        (("rule", 0, "x"), (15, 1, 1)),
        (("rule", 1, "x"), (17, 1, 1)),
        (("rule", 1, "deep", "y", "z", 0, "q"), (19, 15, 1)),
    ],
)
def test_a_key_of_toml_has_its_place(keys, place):
    assert tomllib.loads(TOML)
    assert positions_in(TOML).keys[keys] == place


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (("model",), (2, 9, 3)),
        (("permissions", "allow", 0), (5, 10, 3)),
        (("permissions", "allow", 1), (6, 3, 3)),
        (("providers", "my x", "headers", "a"), (8, 14, 3)),
        (("providers", "my x", "text"), (9, 8, 5)),
    ],
)
def test_a_value_has_its_place_and_its_length_ends_with_the_line(keys, place):
    assert positions_in(TOML).values[keys] == place


def test_a_key_of_json_has_its_place():
    text = json.dumps({"permissions": {"allow": ["Edit", "x, ]"]}, "max_steps": 3, "a.b": {}}, indent=2)
    found = positions_in(text, is_toml=False)
    assert found.keys["permissions", "allow"] == (3, 5, 7)
    assert found.values["permissions", "allow", 1] == (5, 7, 6)
    assert found.keys["max_steps",] == (8, 3, 11)
    assert found.keys["a.b",] == (9, 3, 5)


def test_the_nearest_place_is_that_of_the_table_around_it():
    found = positions_in(TOML)
    assert found.nearest(("permissions", "unknown", 3)) == (4, 2, 11)
    assert found.nearest(("unknown",)) is None


@pytest.mark.parametrize("text", ["a = ", "[", "a = [1", '{"a": ', "=", "[a", "a = " + "[" * 5000, 'a = "x', "\x00"])
@pytest.mark.parametrize("is_toml", [True, False])
def test_text_that_is_not_valid_ends_the_search_and_raises_nothing(text, is_toml):
    positions_in(text, is_toml=is_toml)


KEYS = st.text("ab_\"'.é \\", min_size=1, max_size=4)
VALUES = st.recursive(
    st.integers() | st.booleans() | st.text("x#]}\"',\\é \n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def paths_in(value: object, above: tuple = ()):
    """The path to each key of tables, and to each item of lists."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*above, key)
        yield from paths_in(inner, (*above, key))


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_value_of_a_json_text_is_found_where_it_is(value):
    text = json.dumps(value, ensure_ascii=False, indent=1)
    lines = text.split("\n")
    found = positions_in(text, is_toml=False)
    for path in paths_in(value):
        line, column, length = found.values[path]
        inner = value
        for key in path:
            inner = inner[key]
        whole = json.dumps(inner, ensure_ascii=False)
        shown = lines[line - 1][column - 1 : column - 1 + length]
        assert shown == whole if not isinstance(inner, dict | list) or not inner else shown == whole[0]


@given(st.text("ab=[]{}\"'#.,\n 1\\", max_size=60))
def test_every_key_of_a_toml_text_is_found(text):
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        positions_in(text)
        return
    found = positions_in(text)
    assert set(paths_in(value)) <= {*found.keys, *found.values}
