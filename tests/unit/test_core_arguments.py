"""`parse_arguments` classifies the arguments that models send as ok, truncated or malformed."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.arguments import parse_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)

OK = [
    ("", {}),
    (" \n\t", {}),
    ("{}", {}),
    ("{ }", {}),
    ('{"path": "a.py", "n": 3}', {"path": "a.py", "n": 3}),
    ('\n{"a": [1, {"b": null}]}\r\n', {"a": [1, {"b": None}]}),
    ('"{\\"a\\": 1}"', {"a": 1}),
    ('"{}"', {}),
    ('{"text": "one\ntwo\tthree"}', {"text": "one\ntwo\tthree"}),
    ('{"text": "bell \x07"}', {"text": "bell \x07"}),
    ('"{\\"text\\": \\"one\ntwo\\"}"', {"text": "one\ntwo"}),
    (r'{"text": "\ud800 alone"}', {"text": "\ud800 alone"}),
    (r'{"text": "\ud83d\ude00"}', {"text": "\U0001f600"}),
    ('{"big": 123456789012345678901234567890}', {"big": 123456789012345678901234567890}),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("raw", "arguments"), OK)
def test_an_object_in_any_accepted_spelling_is_ok(raw: str, arguments: dict[str, object], cut: bool):
    assert parse_arguments(raw, cut=cut) == (arguments, "ok")


MALFORMED = [
    '{"a": 1, "a": 2}',
    '{"a": 1, "a": 1}',
    '{"a": 1, "\\u0061": 2}',
    '{"a": {"b": [{"c": 1, "c": 2}]}}',
    '"{\\"a\\": 1, \\"a\\": 2}"',
    "[]",
    "null",
    "true",
    "7",
    '"text"',
    '"[1]"',
    "{'a': 1}",
    '{"a": 1}}',
    '{"a": 1}{"b": 2}',
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": -Infinity}',
    '{"a": 1, }',
    '{"a" 1}',
    "{a: 1}",
    '```json\n{"a": 1}\n```',
    'I will call {"a": 1}',
    '"\\"{}\\""',
    "\ufeff{}",
    '{"a": "\\x"}',
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("raw", MALFORMED)
def test_text_that_no_continuation_makes_valid_is_malformed_even_in_a_cut_reply(raw: str, cut: bool):
    assert parse_arguments(raw, cut=cut) == (None, "malformed")


@pytest.mark.parametrize("raw", ["[" * 200_000, '{"a":' * 200_000, "9" * 10_000, '{"a": ' + "9" * 10_000 + "}"])
def test_very_deep_or_long_input_is_classified_and_never_raises(raw: str):
    assert parse_arguments(raw)[1] in ("ok", "malformed")


SAMPLE = {
    "path": "src/größe.py",
    "emoji": "\U0001f600 and \ud83d",
    "escapes": 'quote " backslash \\ line \n tab \t nul \x00 slash /',
    "numbers": [0, -1, 1.5, -2.5e-7, 1e22],
    "words": [True, False, None],
    "deep": {"a": {"b": [{"c": {}}, []]}},
    "": "empty key",
}


def prefixes_of(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    for end in range(1, len(data)):
        yield data[:end].decode("utf-8", "replace")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_sample_cut_at_every_byte_is_truncated_and_never_malformed(indent: int | None, ascii_only: bool):
    raw = json.dumps(SAMPLE, indent=indent, ensure_ascii=ascii_only)
    statuses = {prefix: parse_arguments(prefix, cut=True)[1] for prefix in prefixes_of(raw)}
    assert [prefix for prefix, status in statuses.items() if status != "truncated"] == []


def test_a_sample_that_was_encoded_twice_cut_at_every_byte_is_truncated():
    raw = json.dumps(json.dumps(SAMPLE))
    statuses = {prefix: parse_arguments(prefix, cut=True)[1] for prefix in prefixes_of(raw)}
    assert [prefix for prefix, status in statuses.items() if status != "truncated"] == []


def test_unfinished_text_of_a_whole_reply_is_malformed():
    assert {parse_arguments(prefix)[1] for prefix in prefixes_of(json.dumps(SAMPLE))} == {"malformed"}


@given(OBJECTS, st.booleans(), st.booleans())
def test_any_object_comes_back_as_it_was_written(arguments: dict[str, object], ascii_only: bool, twice: bool):
    raw = json.dumps(arguments, ensure_ascii=ascii_only)
    assert parse_arguments(json.dumps(raw) if twice else raw) == (arguments, "ok")


@given(OBJECTS, st.booleans(), st.data())
def test_any_object_cut_anywhere_is_truncated(arguments: dict[str, object], ascii_only: bool, data: st.DataObject):
    raw = json.dumps(arguments, ensure_ascii=ascii_only)
    prefix = raw[: data.draw(st.integers(1, len(raw) - 1))]
    assert parse_arguments(prefix, cut=True) == (None, "truncated")


@given(st.text(), st.booleans())
def test_any_text_gets_a_status_and_arguments_come_only_with_ok(raw: str, cut: bool):
    arguments, status = parse_arguments(raw, cut=cut)
    assert (arguments is not None) == (status == "ok")
    assert cut or status != "truncated"
