"""The planted sessions are real sessions with facts in them, and CoreCoder's compaction loses most of these."""

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from corecoder_context import collapsed, compacted, one_result_each, snipped, summarised, summary_input
from fact_measures import Measure, held, missing, pinned_held, table, texts_of, tokens, visible_text
from planted_sessions import KINDS, PINNED_TOKENS, PlantedSession, planted_session

from bradawl.core.arguments import parse_arguments
from bradawl.core.events import (
    AssistantReplied,
    Envelope,
    NoteDelivered,
    NoteQueued,
    PromptSubmitted,
    RequestSent,
    StateChanged,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Image, Message, Text, Thinking, ToolResults, User, calls_of, text_of
from bradawl.folds.transcript import Transcript, apply, fold
from bradawl.shaping.tokens import estimate

SEEDS = range(50)
each_seed = pytest.mark.parametrize("seed", SEEDS)


@cache
def session(seed: int) -> PlantedSession:
    return planted_session(seed)


def envelopes(planted: PlantedSession) -> list[Envelope]:
    return [Envelope(seq, seq - 1 if seq else None, 0, "main", event) for seq, event in enumerate(planted.events)]


@cache
def messages(seed: int) -> list[Message]:
    return fold(envelopes(session(seed))).messages


# ------------------------------------------------------------------ the log


def test_a_seed_always_gives_the_same_session():
    assert planted_session(3) == planted_session(3)
    assert planted_session(3) != planted_session(4)


@each_seed
def test_the_log_folds_and_every_request_can_be_answered(seed: int):
    transcript = Transcript()
    for envelope in envelopes(session(seed)):
        if isinstance(envelope.event, RequestSent):
            assert not transcript.open_calls
            assert not isinstance(transcript.messages[-1], Assistant)
        apply(transcript, envelope)
    assert not transcript.open_calls
    assert not transcript.waiting_notes
    assert not transcript.held_notes
    assert not transcript.turn_is_open


@each_seed
def test_every_call_has_its_result_and_arguments_that_can_be_read(seed: int):
    conversation = messages(seed)
    for message, after in zip(conversation, [*conversation[1:], None], strict=True):
        if not isinstance(message, Assistant) or not (calls := calls_of(message)):
            continue
        assert isinstance(after, ToolResults)
        assert [(call.id, call.name) for call in calls] == [(each.call_id, each.name) for each in after.results]
        assert all(parse_arguments(call.raw_arguments)[0] for call in calls)


@each_seed
def test_a_session_has_the_size_of_a_long_one(seed: int):
    planted = session(seed)
    size = tokens(messages(seed))
    assert 25_000 <= size <= 80_000
    assert 0.69 <= size / planted.window <= 0.81
    assert 50 <= sum(isinstance(event, AssistantReplied) for event in planted.events) <= 160
    assert 3 <= sum(isinstance(event, PromptSubmitted) for event in planted.events) <= 6
    assert sum(isinstance(event, TurnFinished) for event in planted.events) >= 3


def test_sessions_hold_what_real_ones_hold():
    events = [event for seed in SEEDS for event in session(seed).events]
    parts = [
        part for seed in SEEDS for message in messages(seed) if isinstance(message, Assistant) for part in message.parts
    ]
    sources = Counter(event.note.source for event in events if isinstance(event, NoteQueued))
    assert min(sources[source] for source in ("user", "instructions", "mode", "job")) >= 20
    assert sum(isinstance(event, NoteDelivered) for event in events) == sources.total()
    assert any(isinstance(part, Thinking) and part.signature for part in parts)
    assert {event.outcome for event in events if isinstance(event, ToolFinished)} == {"ok", "error", "cancelled"}
    kinds = {type(event.state).__name__ for event in events if isinstance(event, StateChanged)}
    assert {"TodosSet", "FileSeen", "Cwd", "ModeChosen"} <= kinds
    shown = [event.shown for event in events if isinstance(event, ToolFinished)]
    assert any(isinstance(part, Image) for each in shown for part in each)
    lengths = [len(text_of(each)) for each in shown]
    assert min(lengths) < 40
    assert 25_000 < max(lengths) <= 31_000
    prompts = [estimate(text_of(event.parts)) for event in events if isinstance(event, PromptSubmitted)]
    assert min(prompts) < 40
    assert max(prompts) > 4_000
    assert all(len(calls_of(event.message)) < 5 for event in events if isinstance(event, AssistantReplied))


# ------------------------------------------------------------------ the facts


@each_seed
def test_all_facts_of_all_kinds_are_in_the_session(seed: int):
    facts = session(seed).facts
    assert 20 <= len(facts) <= 40
    assert min(Counter(fact.kind for fact in facts)[kind] for kind in KINDS) >= 2
    assert not missing(messages(seed), facts)
    assert all(found == total for found, total in held(messages(seed), facts).values())
    assert all(5 <= len(fact.text) <= 140 and "\n" not in fact.text for fact in facts)


@each_seed
def test_a_fact_is_unique(seed: int):
    facts = session(seed).facts
    text = visible_text(messages(seed))
    for fact in facts:
        assert not any(fact.text in other.text for other in facts if other is not fact)
        assert fact.kind == "path" or text.count(fact.text) == 1 + (
            fact.place in {"call", "plan"} and text.count(fact.text) == 2
        )


@each_seed
def test_facts_are_where_they_say(seed: int):
    places = {
        "prompt": lambda m: isinstance(m, User) and bool(m.parts),
        "long prompt": lambda m: isinstance(m, User) and estimate(text_of(m.parts)) > PINNED_TOKENS,
        "note": lambda m: any(note.source == "user" for note in getattr(m, "notes", ())),
        "answer": lambda m: isinstance(m, ToolResults) and m.results[0].name == "ask_user",
        "instructions": lambda m: any(note.source == "instructions" for note in getattr(m, "notes", ())),
        "plan": lambda m: "exit_plan" in str(m),
        "reply": lambda m: isinstance(m, Assistant) and any(isinstance(part, Text) for part in m.parts),
        "call": lambda m: isinstance(m, Assistant) and bool(calls_of(m)),
        "result": lambda m: isinstance(m, ToolResults),
    }
    for fact in session(seed).facts:
        holding = [m for m in messages(seed) if any(fact.text in text for text in texts_of(m))]
        assert any(places[fact.place](m) for m in holding), fact
        assert fact.is_pinned == (fact.place in {"prompt", "note", "answer"}), fact


def test_most_facts_are_in_the_first_part_of_a_session_and_some_near_its_end():
    shares = [
        fact.step / sum(isinstance(event, AssistantReplied) for event in session(seed).events)
        for seed in SEEDS
        for fact in session(seed).facts
    ]
    early = sum(share < 0.7 for share in shares) / len(shares)
    assert 0.7 < early < 0.9
    assert sum(share < 0.3 for share in shares) > 200
    assert sum(share > 0.8 for share in shares) > 80


def test_many_templates_are_used():
    used = {kind: {f.template for seed in SEEDS for f in session(seed).facts if f.kind == kind} for kind in KINDS}
    assert {kind: len(templates) for kind, templates in used.items() if len(templates) < 12} == {}
    assert len(used["error"]) > 60
    assert sum(map(len, used.values())) > 180
    assert len({fact.text for seed in SEEDS for fact in session(seed).facts}) > 1_400


def test_errors_are_in_all_parts_of_outputs_and_often_without_the_word():
    errors = [(seed, fact) for seed in SEEDS for fact in session(seed).facts if fact.kind == "error"]
    places = []
    for seed, fact in errors:
        text = next(text for message in messages(seed) for text in texts_of(message) if fact.text in text)
        places.append(text.index(fact.text) / len(text))
    assert min(sum(low <= place < low + 1 / 3 for place in places) for low in (0, 1 / 3, 2 / 3)) > len(places) / 6
    named = [fact for _, fact in errors if "error" in fact.text.lower()]
    assert len(named) < len(errors) / 4


def test_measures_find_facts_in_escaped_arguments():
    call = messages(0)
    facts = session(0).facts
    assert held([], facts) == {kind: (0, total) for kind, (_, total) in held(call, facts).items()}
    assert pinned_held([], facts)[0] == 0


# ------------------------------------------------------------------ CoreCoder


def corecoder_measures() -> dict[str, Measure]:
    """What is left of 50 sessions after each layer, and after the layers that the thresholds start."""
    ways: dict[str, Callable[[list[Message], int], list[Message]]] = {
        "its thresholds": compacted,
        "the same, half the window": lambda m, window: compacted(m, window // 2),
        "snip": lambda m, _: snipped(m),
        "summary without a model": lambda m, _: summarised(snipped(m)),
        "summary of a perfect model": lambda m, _: summarised(snipped(m), with_perfect_model=True),
        "collapse": lambda m, _: collapsed(snipped(m)),
    }
    measures = {name: Measure() for name in ways}
    for seed in SEEDS:
        planted, before = session(seed), one_result_each(messages(seed))
        size = tokens(before)
        for name, way in ways.items():
            measures[name].add(size, way(before, planted.window), planted.facts)
    return measures


def test_corecoder_frees_most_of_the_context_and_loses_most_of_what_matters():
    measures = corecoder_measures()
    print("\n" + table(measures))
    assert all(measure.freed > 0.4 for measure in measures.values())
    snip = measures["snip"]
    assert snip.share("pinned") == snip.share("decision") == snip.share("path") == 1
    assert 0.45 < snip.share("error") < 0.75
    assert 0.65 < snip.share("number") < 0.95
    for name in ("summary without a model", "collapse"):
        assert measures[name].share("pinned") < 0.1
        assert max(measures[name].share(kind) for kind in KINDS) < 0.25
    assert 0.35 < measures["summary of a perfect model"].share("pinned") < 0.65
    assert measures["summary of a perfect model"].share("error") < 0.25
    assert 0.2 < measures["the same, half the window"].share("pinned") < 0.5


def test_corecoder_keeps_calls_and_results_together_and_sums_up_the_oldest_part_alone():
    conversation = one_result_each(messages(1))
    for kept in (summarised(conversation)[2:], collapsed(conversation)[2:]):
        assert not isinstance(kept[0], ToolResults)
    assert len(summary_input(conversation)) == 15_000
    late = [fact for fact in session(1).facts if fact.step > 50]
    assert not any(fact.text in summary_input(conversation) for fact in late)
