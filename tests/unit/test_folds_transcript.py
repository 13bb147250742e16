"""`Transcript`: a fold over the log gives well-formed messages for any order of events, also after a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_histories import BROKEN, OPENED, ORIGIN, History, envelopes, histories, prompt

from bradawl.agent.recovery import repair
from bradawl.core.effects import UNKNOWN
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    Compacted,
    Envelope,
    Event,
    HeadMoved,
    NoteDelivered,
    NoteQueued,
    Pin,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestSent,
    ResultAmended,
    Shortened,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import (
    Assistant,
    Message,
    Note,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
    calls_of,
    text_of,
)
from bradawl.folds.transcript import Transcript, apply, branch, fold


def is_answerable(transcript):
    """True if the next request would be well-formed."""
    return (
        bool(transcript.messages) and not transcript.open_calls and not isinstance(transcript.messages[-1], Assistant)
    )


def applied(events: list[Event], transcript: Transcript | None = None) -> Transcript:
    transcript = transcript or Transcript()
    for envelope in envelopes(events):
        apply(transcript, envelope)
    return transcript


def seen(transcript: Transcript) -> tuple[object, ...]:
    """The state of a transcript, to compare by value."""
    held = (
        transcript.open_calls,
        transcript.prepared,
        transcript.started,
        transcript.waiting_notes,
        transcript.results,
    )
    return (transcript.messages, *held, transcript.turn_is_open, transcript.compactions)


def assert_every_call_is_answered_once_in_order(messages: list[Message]) -> None:
    for index, message in enumerate(messages):
        calls = calls_of(message) if isinstance(message, Assistant) else ()
        following = messages[index + 1] if index + 1 < len(messages) else None
        if calls:
            assert isinstance(following, ToolResults)
            assert [result.call_id for result in following.results] == [call.id for call in calls]
        else:
            assert not isinstance(following, ToolResults)


def reply(*parts: Text | Thinking | ToolCall, step: int = 1, complete: bool = True) -> AssistantReplied:
    return AssistantReplied(step, Assistant(parts, ORIGIN, complete=complete), "tool_use")


def call(call_id: str, name: str = "read_file") -> ToolCall:
    return ToolCall(call_id, name, "{}")


def prepared(call_id: str, *before: Text | Thinking, step: int = 1) -> CallPrepared:
    return CallPrepared(call_id, step, "read_file", "{}", UNKNOWN, before)


def finished(call_id: str, text: str = "done") -> ToolFinished:
    return ToolFinished(call_id, "ok", (Text(text),))


PROMPT = PromptSubmitted((Text("do it"),))

# ------------------------------------------------------------------ whole sessions


@pytest.mark.parametrize("reused_ids", [False, True])
@given(data=st.data())
def test_the_fold_of_a_session_gives_the_messages_of_its_history(data: st.DataObject, reused_ids: bool):
    history = data.draw(histories(reused_ids=reused_ids))
    transcript = applied(history.events)
    assert transcript.messages == history.messages
    assert_every_call_is_answered_once_in_order(transcript.messages)
    assert not transcript.open_calls
    assert not transcript.started
    assert not transcript.turn_is_open


@given(histories())
def test_the_transcript_is_answerable_before_each_request(history: History):
    for place in history.requests:
        assert is_answerable(applied(history.events[:place]))


@given(histories(), st.data())
def test_the_fold_of_a_log_is_each_event_applied_in_turn(history: History, data: st.DataObject):
    events = history.events[: data.draw(st.integers(0, len(history.events)))]
    assert seen(fold(envelopes(events))) == seen(applied(events))


@given(histories(), histories(), st.lists(st.sampled_from(["main", "explore-1"]), max_size=80))
def test_agents_in_one_log_do_not_see_each_others_events(main: History, sub: History, turns: list[str]):
    lanes = {"main": list(main.events), "explore-1": list(sub.events)}
    mixed: list[Envelope] = []
    last: dict[str, int | None] = {"main": None, "explore-1": 0}
    for agent in ["main", *turns, *["main"] * len(main.events), *["explore-1"] * len(sub.events)]:
        if lanes[agent]:
            mixed.append(Envelope(len(mixed), last[agent], 0, agent, lanes[agent].pop(0)))
            last[agent] = len(mixed) - 1
    assert fold(mixed).messages == main.messages
    assert fold(mixed, "explore-1").messages == sub.messages


# ------------------------------------------------------------------ crashes


@pytest.mark.parametrize("reused_ids", [False, True])
@given(data=st.data())
def test_a_log_cut_after_any_event_is_repaired_to_one_that_can_continue(data: st.DataObject, reused_ids: bool):
    history = data.draw(histories(reused_ids=reused_ids))
    events = history.events[: data.draw(st.integers(1, len(history.events)))]
    transcript = applied(events)
    before = list(transcript.messages)
    repaired = applied([*events, *repair(transcript, ORIGIN, 99)])
    assert repaired.messages[: len(before)] == before
    assert_every_call_is_answered_once_in_order(repaired.messages)
    assert not repaired.turn_is_open
    assert repair(repaired, ORIGIN, 99) == ()
    assert is_answerable(applied([PROMPT], repaired))


@given(histories(), st.data())
def test_a_repair_marks_exactly_the_started_calls_as_interrupted(history: History, data: st.DataObject):
    events = history.events[: data.draw(st.integers(1, len(history.events)))]
    transcript = applied(events)
    begun = set(transcript.started)
    answers = {
        event.call_id: event.outcome for event in repair(transcript, ORIGIN, 99) if isinstance(event, ToolFinished)
    }
    assert {call_id for call_id, outcome in answers.items() if outcome == "interrupted"} == begun


@given(histories(), histories(fresh=1000), st.data())
def test_a_repaired_session_continues_like_a_new_one_and_keeps_waiting_notes(
    old: History, new: History, data: st.DataObject
):
    events = old.events[: data.draw(st.integers(1, len(old.events)))]
    transcript = applied(events)
    applied(list(repair(transcript, ORIGIN, 99)), transcript)
    count = len(transcript.messages)
    waiting = dict(transcript.waiting_notes)
    applied(new.events[1:], transcript)
    assert transcript.messages[count:] == new.messages
    assert waiting.items() <= transcript.waiting_notes.items()


def test_a_session_that_ended_well_needs_no_repair():
    assert repair(applied([PROMPT, reply(Text("hi")), TurnFinished("completed")]), ORIGIN, 1) == ()
    assert repair(Transcript(), ORIGIN, 1) == ()


def test_a_started_call_is_interrupted_and_one_that_was_not_started_is_cancelled():
    events = repair(applied([PROMPT, reply(call("a"), call("b")), ToolStarted("b")]), ORIGIN, 1)
    assert [(event.call_id, event.outcome) for event in events[:-1]] == [("a", "cancelled"), ("b", "interrupted")]
    assert "may or may not have happened" in text_of(events[1].shown)
    assert events[-1] == TurnFinished("interrupted")


def test_a_reply_that_was_never_logged_is_rebuilt_from_the_calls_that_had_started():
    text, thought = Text("I look."), Thinking("hm", signature="s")
    events = [PROMPT, RequestSent(1, "h"), prepared("a", thought, text), prepared("b", Text("And.")), prepared("c")]
    events += [ToolStarted("a"), finished("a", "content"), ToolStarted("b")]
    rebuilt, answer, end = repair(applied(events), ORIGIN, 1)
    message = Assistant((thought, text, call("a"), Text("And."), call("b")), ORIGIN, complete=False)
    assert rebuilt == AssistantReplied(1, message, "error", cut=True)
    assert (answer.call_id, answer.outcome, end) == ("b", "interrupted", TurnFinished("interrupted"))
    results = applied([*events, rebuilt, answer, end]).messages[-1]
    assert [(result.call_id, result.is_error) for result in results.results] == [("a", False), ("b", True)]


def test_a_reply_that_was_never_logged_and_started_no_call_is_dropped():
    assert repair(applied([PROMPT, prepared("a", Text("I will"))]), ORIGIN, 1) == (TurnFinished("interrupted"),)


# ------------------------------------------------------------------ results


def test_results_that_come_before_their_reply_wait_for_it():
    transcript = applied([PROMPT, prepared("b"), ToolStarted("b"), finished("b", "early")])
    assert transcript.messages == [User(PROMPT.parts)]
    applied([reply(call("a"), call("b")), ToolStarted("a"), finished("a", "late")], transcript)
    results = (ToolResult("a", "read_file", (Text("late"),)), ToolResult("b", "read_file", (Text("early"),)))
    assert transcript.messages[-1] == ToolResults(results)


def test_a_withdrawn_reply_leaves_no_result_for_a_later_one_with_the_same_ids():
    events = [PROMPT, prepared("call_0"), ToolStarted("call_0"), finished("call_0", "old"), ReplyWithdrawn(1, BROKEN)]
    transcript = applied([*events, reply(call("call_0", "grep"))])
    assert list(transcript.open_calls) == ["call_0"]
    applied([finished("call_0", "new")], transcript)
    assert transcript.messages[-1] == ToolResults((ToolResult("call_0", "grep", (Text("new"),)),))


def test_an_amendment_replaces_a_result_before_and_after_the_batch_is_complete():
    start = [PROMPT, reply(call("a"), call("b")), finished("a", "secret")]
    waiting = applied([*start, ResultAmended("a", (Text("-"),), "hook"), finished("b")])
    whole = applied([*start, finished("b"), ResultAmended("a", (Text("-"),), "hook")])
    assert waiting.messages == whole.messages
    assert waiting.messages[-1].results[0].parts == (Text("-"),)


def test_every_outcome_but_ok_is_an_error_to_the_model():
    ids = ["ok", "error", "refused", "cancelled", "interrupted"]
    finishes = [ToolFinished(outcome, outcome, (Text("x"),)) for outcome in ids]
    results = applied([PROMPT, reply(*map(call, ids)), *finishes]).messages[-1]
    assert [result.is_error for result in results.results] == [False, True, True, True, True]


def test_a_reply_without_parts_is_no_message():
    assert applied([PROMPT, reply()]).messages == [User(PROMPT.parts)]


# ------------------------------------------------------------------ notes

NOTE = Note("n1", "the user says stop", "user")
OTHER = Note("n2", "a job has ended", "job")


def with_notes(*events: Event) -> Transcript:
    return applied([*events, NoteQueued(NOTE), NoteQueued(OTHER), NoteDelivered("n1"), NoteDelivered("n2")])


def test_notes_arrive_inside_the_prompt_or_the_results_that_came_last():
    assert with_notes(PROMPT).messages == [User(PROMPT.parts, (NOTE, OTHER))]
    results = with_notes(PROMPT, reply(call("a")), finished("a")).messages[-1]
    assert (type(results), results.notes) == (ToolResults, (NOTE, OTHER))


def test_notes_after_an_answer_form_a_message_of_their_own():
    transcript = with_notes(PROMPT, reply(Text("hi")))
    assert transcript.messages[-1] == User((), (NOTE, OTHER))
    assert is_answerable(transcript)


def test_a_note_is_seen_only_once_it_is_delivered_and_only_once():
    transcript = applied([PROMPT, NoteQueued(NOTE)])
    assert transcript.messages == [User(PROMPT.parts)]
    applied([NoteDelivered("n1"), NoteDelivered("n1"), NoteDelivered("unknown")], transcript)
    assert transcript.messages == [User(PROMPT.parts, (NOTE,))]


# ------------------------------------------------------------------ branches


def row(seq: int, parent: int | None, event: Event) -> Envelope:
    return Envelope(seq, parent, 0, "main", event)


def prompts(entries: list[Envelope]) -> list[str]:
    return [text_of(message.parts) for message in fold(entries).messages if isinstance(message, User)]


THREE_PROMPTS = [row(0, None, OPENED), row(1, 0, prompt("one")), row(2, 1, prompt("two")), row(3, 2, prompt("three"))]


def test_an_undo_can_be_undone():
    undone = [*THREE_PROMPTS, row(4, 3, HeadMoved(1, "talk"))]
    assert prompts(undone) == ["one"]
    assert prompts([*undone, row(5, 4, HeadMoved(3, "talk"))]) == ["one", "two", "three"]


def test_a_prompt_after_an_undo_starts_a_branch_and_the_old_branch_can_be_restored():
    forked = [*THREE_PROMPTS, row(4, 3, HeadMoved(1, "both")), row(5, 4, prompt("other"))]
    assert prompts(forked) == ["one", "other"]
    back = [*forked, row(6, 5, HeadMoved(3, "both"))]
    assert prompts(back) == ["one", "two", "three"]
    again = [*back, row(7, 6, HeadMoved(5, "both")), row(8, 7, prompt("more"))]
    assert prompts(again) == ["one", "other", "more"]


def test_an_undo_of_everything_leaves_an_empty_conversation():
    assert prompts([*THREE_PROMPTS, row(4, 3, HeadMoved(0, "talk"))]) == []


@given(st.lists(st.integers(0, 60), max_size=30))
def test_after_any_moves_the_branch_holds_the_prompts_on_the_path_to_the_head(choices: list[int]):
    entries, heads = [row(0, None, OPENED)], {0: ()}
    for seq, choice in enumerate(choices, start=1):
        if choice % 3 == 0:
            target = choice % seq
            entries.append(row(seq, seq - 1, HeadMoved(target, "talk")))
            heads[seq] = heads[target]
        else:
            entries.append(row(seq, seq - 1, prompt(str(seq))))
            heads[seq] = (*heads[seq - 1], str(seq))
    assert tuple(prompts(entries)) == heads[len(choices)]


@given(st.lists(st.tuples(st.none() | st.integers(-5, 40), st.none() | st.integers(-5, 40)), max_size=30))
def test_a_branch_is_finite_even_in_a_log_with_invalid_links(links: list[tuple[int | None, int | None]]):
    entries = [
        row(seq, parent, prompt("x") if to is None else HeadMoved(to, "talk")) for seq, (parent, to) in enumerate(links)
    ]
    chain = [entry.seq for entry in branch(entries)]
    assert chain == sorted(set(chain))


HELLO = "What was said so far: hi."
COMPACTED = [PROMPT, RequestSent(1, "h1"), reply(Text("hi")), Compacted("collapse", 2, summary=HELLO, kept_from=2)]
HEAD = User((Text(HELLO),))


def test_after_a_compaction_the_messages_are_its_summary_and_what_follows():
    transcript = applied([*COMPACTED, prompt("next")])
    assert (transcript.compactions, transcript.summary) == (1, HELLO)
    assert transcript.messages == [HEAD, User((Text("next"),))]
    assert fold(envelopes([*COMPACTED, prompt("next")])).messages == transcript.messages


def test_a_second_compaction_replaces_the_summary_of_the_first():
    transcript = applied([*COMPACTED, prompt("next"), Compacted("collapse", 4, summary="All of it.", kept_from=2)])
    assert (transcript.compactions, transcript.messages) == (2, [User((Text("All of it."),))])


def test_a_note_after_a_compaction_leaves_the_summary_as_it_is():
    events = [*COMPACTED, RequestSent(2, "h2"), NoteQueued(Note("n1", "Go on.")), NoteDelivered("n1")]
    assert applied(events).messages == [HEAD, User((), (Note("n1", "Go on."),))]


def test_pins_come_after_the_summary_and_instructions_stay_notes():
    pins = (Pin("request-1", "request", "never push"), Pin("n1", "instructions", "use tabs"))
    transcript = applied([*COMPACTED[:-1], Compacted("collapse", 2, summary=HELLO, pins=pins, kept_from=2)])
    assert transcript.messages == [User((Text(HELLO), Text("never push")), (Note("n1", "use tabs", "instructions"),))]
    assert transcript.pins == pins


def test_a_compaction_that_only_shortens_keeps_the_messages_and_the_first_one():
    results = [reply(ToolCall("c1", "t", "{}")), ToolFinished("c1", "ok", (Text("long"),)), reply(Text("done"))]
    transcript = applied([*COMPACTED, *results, Compacted("snip", 9, shortened=(Shortened(2, 0, "short"),))])
    assert transcript.messages[0] == HEAD and transcript.summary == HELLO
    assert transcript.messages[2] == ToolResults((ToolResult("c1", "t", (Text("short"),)),))
    assert len(transcript.messages) == 4


def test_kept_messages_lose_what_is_bound_to_those_before_them():
    said = (Thinking("hm", "sig"), Text("hi", '{"id": 1}'), Opaque("{}"), ToolCall("c1", "t", "{}", signature="s"))
    events = [PROMPT, reply(*said), ToolFinished("c1", "ok", (Text("1"),)), reply(Thinking("only this", "sig"))]
    messages = applied([*events, Compacted("snip", 4)]).messages
    assert [part for message in messages if isinstance(message, Assistant) for part in message.parts] == [
        Text("hi"),
        ToolCall("c1", "t", "{}", signature="s"),
    ]


def test_a_note_delivered_while_calls_are_open_arrives_with_their_results() -> None:
    note = Note("n", "use tabs", "user")
    reply = Assistant((ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}")), ORIGIN)
    events = [
        PromptSubmitted((Text("go"),)),
        AssistantReplied(1, reply, "tool_use"),
        ToolFinished("a", "ok", (Text("1"),)),
        NoteQueued(note),
        NoteDelivered("n"),
        ToolFinished("b", "ok", (Text("2"),)),
    ]
    last = applied(events).messages[-1]
    assert isinstance(last, ToolResults) and last.notes == (note,) and len(last.results) == 2


# ------------------------------------------------------------------ messages that were sent


def noted(text: str) -> list[Event]:
    return [NoteQueued(Note("n1", text)), NoteDelivered("n1")]


def test_a_note_never_changes_a_message_that_was_sent():
    sent = [PROMPT, RequestSent(1, "h1")]
    transcript = applied([*sent, *noted("Go on.")])
    assert transcript.messages == [User(PROMPT.parts), User((), (Note("n1", "Go on."),))]
    empty = AssistantReplied(1, Assistant((), ORIGIN), "end_turn")
    assert applied([*sent, empty, *noted("Go on.")]).messages == transcript.messages
    assert applied([PROMPT, *noted("Go on.")]).messages == [User(PROMPT.parts, (Note("n1", "Go on."),))]


def test_the_hashes_of_sent_messages_are_kept_by_position_until_a_prefix_opens():
    first = [PROMPT, RequestSent(1, "hash1", marks=("h0", "hash"))]
    second = [reply(Text("a")), PROMPT, RequestSent(2, "hash3", marks=("h2", "h3")), RequestSent(2, "hash3")]
    assert applied(first).sent == {0: "h0", 1: "hash1"}
    assert applied([*first, *second]).sent == {0: "h0", 1: "hash1", 2: "h2", 3: "hash3"}
    opened = PrefixOpened("s", "t", "p", "m", "model")
    assert applied([*first, opened]).sent == {}
    assert applied([*first, opened, *second]).sent == {2: "h2", 3: "hash3"}


def test_the_position_of_the_last_reply_is_known_also_if_it_was_empty():
    assert applied([PROMPT, reply(Text("a")), PROMPT]).replied_at == 2
    assert applied([PROMPT, reply(), PROMPT]).replied_at == 1
