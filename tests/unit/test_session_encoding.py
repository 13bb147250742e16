"""Events are encoded to lines and decoded by value; a damaged line does not affect the entries around it."""

import json
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_samples import CHOICES, EVENTS, FORK, ORIGIN, PARTS, SHOWN, STATES, SUB_AGENT

from bradawl.core.deltas import PartClosed
from bradawl.core.errors import SessionDamaged
from bradawl.core.events import (
    FORMAT_VERSION,
    Cwd,
    Envelope,
    Event,
    HeadMoved,
    PromptSubmitted,
    SessionOpened,
    State,
    StateChanged,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Message, Opaque, Part, Text, ToolResult, ToolResults, User
from bradawl.folds.transcript import branch, fold
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.codec import ServerEvent
from bradawl.session.encoding import Reader, encode

OPENING = Envelope(0, None, 1, "main", SessionOpened(1, "/p", "/p"))


def entry(seq: int, event: Event | None = None, parent: int | None = -1, agent: str = "main") -> Envelope:
    return Envelope(seq, seq - 1 if parent == -1 else parent, 1, agent, event or PromptSubmitted((Text(str(seq)),)))


def read(*lines: bytes, **options) -> tuple[list[Envelope], Reader]:
    reader = Reader(**options)
    return [found for line in lines for found in reader.feed(line)], reader


def decode(line: bytes) -> Envelope:
    return read(encode(OPENING), *(encode(entry(seq)) for seq in range(1, 7)), line)[0][-1]


def test_the_samples_hold_every_event_state_and_part():
    assert {type(event) for event in (*EVENTS, *FORK, *CHOICES)} == set(get_args(Event))
    later = (event.state for event in CHOICES if isinstance(event, StateChanged))
    assert {type(state) for state in (*STATES, *later)} == set(get_args(State))
    assert {type(part) for part in PARTS} == set(get_args(Part))


@pytest.mark.parametrize("event", [*EVENTS, *SUB_AGENT, *FORK, *CHOICES], ids=lambda event: type(event).__name__)
def test_an_event_is_equal_after_encoding_and_decoding(event):
    line = encode(Envelope(7, 0, 5, "main", event))
    assert line.count(b"\n") == 1
    assert decode(line) == Envelope(7, 0, 5, "main", event)


@pytest.mark.parametrize(
    "message",
    [User(SHOWN), Assistant(PARTS, ORIGIN), ToolResults((ToolResult("c", "n", SHOWN, is_error=True),))],
    ids=lambda message: type(message).__name__,
)
def test_a_message_is_equal_after_encoding_and_decoding(message):
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_a_line_has_the_documented_fields():
    line = encode(Envelope(0, None, 1_700_000_000_000, "main", SessionOpened(1, "/p", "/c")))
    assert line == (
        b'{"seq":0,"parent":null,"at":1700000000000,"agent":"main",'
        b'"event":{"type":"SessionOpened","version":1,"project":"/p","cwd":"/c"}}\n'
    )


@given(st.text(st.characters()), st.text(st.characters(categories=["Cs", "Cc", "Ll"])))
def test_any_text_is_preserved_even_if_utf8_can_not_encode_it(text, strange):
    event = ToolFinished("c", "ok", (Text(text), Text(strange)))
    line = encode(entry(7, event))
    assert line.count(b"\n") == 1
    assert decode(line).event == event


def test_a_file_name_that_is_not_utf8_is_preserved_beside_provider_data():
    event = StateChanged(Cwd("/tmp/\udcff"))
    assert decode(encode(entry(7, event))).event == event
    strange = Assistant((Text("\ud800"), Opaque('{"a":1}')), ORIGIN)
    reply = EVENTS[7]
    assert isinstance(reply, type(EVENTS[7]))
    event = msgspec.structs.replace(reply, message=strange)
    assert decode(encode(entry(7, event))).event == event


def test_provider_data_with_line_breaks_stays_on_one_line():
    parts = (Opaque('{\n  "a": [\r\n1]\n}'),)
    event = msgspec.structs.replace(EVENTS[7], message=Assistant(parts, ORIGIN))
    line = encode(entry(7, event))
    assert line.count(b"\n") == 1
    (part,) = decode(line).event.message.parts
    assert part.provider_data == parts[0].provider_data


@pytest.mark.parametrize("line", [b"garbage\n", b"\0\0\0\n", b"{}\n", encode(entry(0)), b"[1]\n", b"7\n"])
def test_a_file_without_an_opening_entry_is_damaged(line):
    with pytest.raises(SessionDamaged):
        read(line)


def test_entries_of_unknown_kinds_are_skipped_and_counted():
    lines = [encode(OPENING), encode(entry(1))]
    lines += [b'{"seq":2,"parent":1,"at":1,"agent":"main","event":{"type":"Telepathy","x":{"type":1}}}\n']
    lines += [
        b'{"seq":3,"parent":2,"at":1,"agent":"main","event":{"type":"StateChanged","state":{"type":"Mood","m":1}}}\n'
    ]
    lines += [encode(entry(4))]
    entries, reader = read(*lines)
    assert [found.seq for found in entries] == [0, 1, 4]
    assert entries[-1].parent == 1
    assert len(fold(entries).messages) == 2
    assert len(reader.notices()) == 1 and reader.notices()[0].startswith("2 entries")
    assert (reader.next_seq, reader.last) == (5, {"main": 4})


def test_a_head_at_an_unknown_entry_moves_to_its_nearest_known_ancestor():
    unknown = b'{"seq":2,"parent":1,"at":1,"agent":"main","event":{"type":"Telepathy"}}\n'
    lines = [encode(OPENING), encode(entry(1)), unknown, encode(entry(3)), encode(entry(4, HeadMoved(2, "talk")))]
    entries, _ = read(*lines)
    assert [found.seq for found in branch(entries)] == [0, 1, 4]


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 4096 + b"\n",
        b"\xff\xfe garbage\n",
        b'{"seq":2,"parent":1\n',
        b'{"seq":"x","parent":1,"at":1,"agent":"main","event":{}}\n',
        b'{"seq":-4,"parent":1,"at":1,"agent":"main","event":{"type":"X"}}\n',
        b'{"a":' * 5000 + b"\n",
    ],
)
def test_a_damaged_line_is_reported_and_what_follows_is_kept(damage):
    entries, reader = read(encode(OPENING), encode(entry(1)), damage, encode(entry(3)), encode(entry(4)))
    assert [found.seq for found in branch(entries)] == [0, 1, 3, 4]
    assert len(fold(entries).messages) == 3
    assert "skipped: 3." in reader.notices()[0]


def test_an_entry_after_a_block_of_nuls_is_still_read():
    entries, reader = read(encode(OPENING), b"\0" * 500 + encode(entry(2)), encode(entry(3)))
    assert [found.seq for found in branch(entries)] == [0, 2, 3]
    assert "skipped: 2." in reader.notices()[0]


def test_entries_joined_on_one_line_are_separated():
    fused = encode(entry(1))[:-1] + encode(entry(2))[:40] + encode(entry(3))
    entries, _ = read(encode(OPENING), fused, encode(entry(4)))
    assert [found.seq for found in branch(entries)] == [0, 1, 3, 4]


def test_a_repeated_entry_is_read_once():
    entries, _ = read(encode(OPENING), encode(entry(1)), encode(entry(1)), encode(entry(2)))
    assert [found.seq for found in entries] == [0, 1, 2]


def test_new_entries_never_reuse_numbers_of_damaged_entries():
    _, reader = read(encode(OPENING), encode(entry(1)), b"junk\n", b"junk\n")
    assert reader.next_seq == 4


def test_a_sub_agent_keeps_its_link_to_the_entry_that_spawned_it():
    entries, _ = read(encode(OPENING), encode(entry(1)), encode(entry(2, parent=1, agent="scout")))
    assert entries[-1].parent == 1


def test_a_newer_format_opens_with_a_notice():
    opening = encode(msgspec.structs.replace(OPENING, event=SessionOpened(FORMAT_VERSION + 8, "/p", "/p")))
    entries, reader = read(opening.replace(b'"project"', b'"colour":3,"project"'), encode(entry(1)))
    assert len(entries) == 2
    assert f"format {FORMAT_VERSION + 8}" in reader.notices()[0]


def _rename_prompt(plain):
    if plain["event"]["type"] == "Asked":
        plain["event"] = {"type": "PromptSubmitted", "parts": [{"type": "Text", "text": plain["event"]["text"]}]}
    return plain


def test_entries_of_an_older_format_are_upcast_until_the_file_declares_a_newer_one():
    asked = b'{"seq":1,"parent":0,"at":1,"agent":"main","event":{"type":"Asked","text":"hi"}}\n'
    newer = encode(Envelope(2, 1, 1, "main", SessionOpened(3, "/p", "/p")))
    lines = [encode(OPENING), asked, newer, encode(entry(3)), asked.replace(b'"seq":1', b'"seq":4')]
    entries, reader = read(*lines, upcasters={1: _rename_prompt, 2: lambda plain: plain}, current=3)
    assert entries[1] == Envelope(1, 0, 1, "main", PromptSubmitted((Text("hi"),)))
    assert [found.seq for found in entries] == [0, 1, 2, 3]
    assert reader.version == 3
    assert reader.notices()[0].startswith("1 entry")


@given(st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=6))
def test_no_bytes_make_the_reader_fail_or_lose_the_entries_around_them(noise):
    entries, reader = read(encode(OPENING), *noise, encode(entry(50, parent=0)))
    assert [found.seq for found in branch(entries)] == [0, 50]
    assert reader.next_seq == 51


def test_a_finished_turn_is_read_as_it_was_written():
    assert decode(encode(entry(7, TurnFinished("completed")))).event == TurnFinished("completed")


def test_a_call_decoded_from_a_recorded_stream_is_preserved_by_the_journal():
    decoder = OpenAIChat().decoder()
    call = {"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{}"}}
    delta = {"reasoning": "hm", "tool_calls": [call]}
    chunk = json.dumps({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]})
    parts = [
        delta.part
        for data in (chunk, "[DONE]")
        for delta in decoder.feed(ServerEvent("", data))
        if isinstance(delta, PartClosed)
    ]
    assert len(parts) == 2
    event = msgspec.structs.replace(EVENTS[7], message=Assistant(tuple(parts), ORIGIN))
    line = encode(entry(7, event))
    assert json.loads(line) and decode(line).event == event
