import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_every_field_of_an_entry_is_read_from_a_file(tmp_path):
    entry = {
        "text": "t",
        "thinking": "h",
        "tool_calls": [
            {"id": "a", "name": "bash", "arguments": {"command": "ls"}},
            {"name": "x", "arguments": "{oops"},
        ],
        "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "reasoning": 1},
        "stop": "tool_use",
        "expect": "please",
        "faults": {"delay_ms": 5, "cut_at_byte": 7, "status": 429, "headers": {"Retry-After": "1"}, "chunk_bytes": 1},
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps([entry, {}]))
    script = script_from(path)
    first = script.entries[0]
    assert (first.text, first.thinking, first.stop, first.expect) == ("t", "h", "tool_use", "please")
    assert [call.raw_arguments for call in first.tool_calls] == ['{"command":"ls"}', "{oops"]
    assert first.usage is not None
    assert first.usage.cache_write == 4
    assert first.faults.headers == {"Retry-After": "1"}
    assert script.entries[1] == Entry()
    assert script.name == str(path)


def test_a_path_as_text_bytes_and_plain_objects_give_the_same_entries(tmp_path):
    entries = [{"text": "hi"}, {"tool_calls": [{"name": "glob"}]}]
    path = tmp_path / "s.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(entries).encode())
    wanted = script_from(entries).entries
    assert script_from(str(path)).entries == script_from(path.read_bytes()).entries == wanted


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "is not JSON"),
        (b"[{},\n{]", "is not JSON"),
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
    ],
)
def test_a_script_that_is_wrong_is_refused_with_entry_and_field(source, said):
    with pytest.raises(ScriptError) as caught:
        script_from(source)
    assert said in str(caught.value)


def test_broken_json_is_told_with_its_line():
    with pytest.raises(ScriptError, match="line 3"):
        script_from(b'[\n{"text": "a"},\n{"text" "b"}]')


@pytest.mark.parametrize("make", [lambda p: p / "none.json", lambda p: p, lambda p: f"{p}/a\0b"])
def test_a_script_that_cannot_be_opened_is_a_script_error_that_names_it(tmp_path, make):
    with pytest.raises(ScriptError, match="cannot read the script"):
        script_from(make(tmp_path))


def test_entries_that_json_cannot_say_are_refused():
    with pytest.raises(ScriptError, match="what JSON can say"):
        script_from([{"text": object()}])


def test_missing_call_ids_are_numbered_through_the_script_and_never_meet_given_ones():
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
    ("stop", "has_calls", "raw", "ours"),
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
def test_stop_words_are_translated_both_ways(stop, has_calls, raw, ours):
    entry = Entry(
        stop=stop, tool_calls=script_from([{"tool_calls": [{"name": "x"}]}]).entries[0].tool_calls * has_calls
    )
    assert (raw_stop_of(entry), stop_of(entry)) == (raw, ours)


def test_a_request_past_the_end_is_told_how_many_entries_there_are():
    cursor = Cursor(script_from([{"text": "only"}]))
    assert isinstance(cursor.take(""), Entry)
    assert cursor.take("") == "script has 1 entry, and request 2 came"


def test_an_expectation_that_is_not_met_shows_the_text_and_uses_up_its_entry():
    cursor = Cursor(script_from([{"expect": "needle"}, {"expect": "needle"}]))
    failure = cursor.take("only hay")
    assert "needle" in str(failure)
    assert "only hay" in str(failure)
    assert isinstance(cursor.take("hay, needle, hay"), Entry)


def test_a_huge_text_is_shortened_in_the_message():
    failure = Cursor(script_from([{"expect": "needle"}])).take("hay" * 100_000)
    assert len(str(failure)) < 5_000


@given(st.text(), st.integers(1, 20))
def test_fragments_join_to_the_whole_text(text, size):
    assert "".join(words(text)) == text
    assert "".join(fragments(text, size)) == text


def test_a_long_text_comes_in_a_bounded_number_of_fragments():
    assert len(words("a b " * 100_000)) <= 512
    assert len(fragments("x" * 1_000_000)) <= 512
    assert len(words("three short words")) == 3
