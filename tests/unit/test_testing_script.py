"""Scripts of the test kit: how they are read and checked, and how a cursor matches requests to entries."""

import json
from pathlib import Path

import pytest

from bradawl.testing.script import (
    Cursor,
    Entry,
    ScriptError,
    fragments,
    raw_stop_of,
    script_from,
    stop_of,
    words,
)

ENTRY = {
    "text": "t",
    "thinking": "h",
    "tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": "ls"}}, {"name": "x", "arguments": "{oops"}],
    "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "reasoning": 1},
    "stop": "tool_use",
    "expect": "please",
    "faults": {"delay_ms": 5, "cut_at_byte": 7, "status": 429, "headers": {"Retry-After": "1"}, "chunk_bytes": 1},
}


def test_a_script_is_read_from_a_path_from_bytes_and_from_objects(tmp_path):
    path = tmp_path / "script.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([ENTRY, {}]).encode())
    script = script_from(path)
    first, second = script.entries
    assert (first.text, first.thinking, first.stop, first.expect) == ("t", "h", "tool_use", "please")
    assert [call.raw_arguments for call in first.tool_calls] == ['{"command":"ls"}', "{oops"]
    assert first.usage is not None and first.usage.cache_write == 4
    assert first.faults.headers == {"Retry-After": "1"}
    assert (second, script.name) == (Entry(), str(path))
    for source in (str(path), path.read_bytes(), [ENTRY, {}]):
        assert script_from(source).entries == script.entries


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "is not JSON"),
        (b'[\n{"text": "a"},\n{"text" "b"}]', "line 3"),
        ([{"text": object()}], "what JSON can say"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "a script is a JSON array of entries"),
        (b"[1]", "entry 1: Expected `object`, got `int`"),
        (b'[{}, {"txt": ""}]', "entry 2: Object contains unknown field `txt`"),
        (b'[{"faults": {"delay": 1}}]', "entry 1, faults: Object contains unknown field `delay`"),
        (b'[{"faults": {"delay_ms": -1}}]', "entry 1, faults.delay_ms: "),
        (b'[{"faults": {"chunk_bytes": 0}}]', "entry 1, faults.chunk_bytes: "),
        (b'[{"faults": {"status": 99}}]', "entry 1, faults.status: "),
        (b'[{"tool_calls": [{}]}]', "entry 1, tool_calls[0]: Object missing required field `name`"),
        (b'[{"tool_calls": [{"name": "x", "arguments": 3}]}]', "entry 1, tool_calls[0].arguments: "),
        (b'[{"usage": {"input": "3"}}]', "entry 1, usage.input: Expected `int`"),
        (b'[{"tool_calls": [{"name": "x", "id": "a"}, {"name": "y", "id": "a"}]}]', "two calls have the same id"),
        (Path("/nowhere/none.json"), "cannot read the script"),
        (Path("/"), "cannot read the script"),
        ("/a\0b", "cannot read the script"),
    ],
)
def test_an_invalid_script_is_an_error_that_names_entry_and_field(source, message):
    with pytest.raises(ScriptError) as caught:
        script_from(source)
    assert message in str(caught.value)


def test_missing_call_ids_are_numbered_and_never_equal_given_ones():
    script = script_from(
        [
            {"tool_calls": [{"name": "a"}, {"name": "b", "id": "call_3"}]},
            {"tool_calls": [{"name": "c"}, {"name": "d", "id": ""}]},
        ]
    )
    assert [call.id for entry in script.entries for call in entry.tool_calls] == [
        "call_1",
        "call_3",
        "call_3_",
        "call_4",
    ]


@pytest.mark.parametrize(
    ("stop", "has_calls", "raw", "translated"),
    [
        (None, False, "stop", "end_turn"),
        (None, True, "tool_calls", "tool_use"),
        ("end_turn", False, "stop", "end_turn"),
        ("end_turn", True, "stop", "tool_use"),
        ("tool_use", False, "tool_calls", "end_turn"),
        ("max_tokens", True, "length", "max_tokens"),
        ("length", False, "length", "max_tokens"),
        ("content_filter", False, "content_filter", "content_filter"),
        ("insufficient_system_resource", False, "insufficient_system_resource", "error"),
        ("stop_sequence", False, "stop_sequence", "stop_sequence"),
        ("never_heard_of", False, "never_heard_of", "unknown"),
        ("eos", True, "eos", "tool_use"),
        ("pause", False, "pause", "pause"),
    ],
)
def test_stop_words_are_translated_both_ways(stop, has_calls, raw, translated):
    entry = Entry(
        stop=stop, tool_calls=script_from([{"tool_calls": [{"name": "x"}]}]).entries[0].tool_calls * has_calls
    )
    assert (raw_stop_of(entry), stop_of(entry)) == (raw, translated)


def test_an_unexpected_request_uses_an_entry_and_gives_a_short_error():
    cursor = Cursor(script_from([{"expect": "needle"}, {"expect": "needle"}]))
    failure = str(cursor.take("hay" * 100_000))
    assert "needle" in failure and "hay" in failure and len(failure) < 5_000
    assert isinstance(cursor.take("hay, needle, hay"), Entry)
    assert cursor.take("") == "script has 2 entries, and request 3 came"


def test_a_long_text_has_a_bounded_number_of_fragments():
    assert max(len(words("a b " * 100_000)), len(fragments("x" * 1_000_000))) <= 512
    assert len(words("three short words")) == 3
