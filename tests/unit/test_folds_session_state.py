"""`SessionState`: cwd, todos, seen files, usage and cost as a fold over the log."""

import pytest
from session_histories import ORIGIN, envelopes

from bradawl.core.errors import Failure
from bradawl.core.events import (
    AssistantReplied,
    Cwd,
    Event,
    FileSeen,
    PrefixOpened,
    ReplyWithdrawn,
    RequestSent,
    SessionForked,
    SessionOpened,
    StateChanged,
    Todo,
    TodosSet,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Text
from bradawl.core.usage import Usage
from bradawl.folds.session_state import SessionState, remember


def remembered(*events: Event) -> SessionState:
    state = SessionState()
    for envelope in envelopes(list(events)):
        remember(state, envelope)
    return state


def replied(usage: Usage | None, cost: float | None) -> AssistantReplied:
    return AssistantReplied(1, Assistant((Text("hi"),), ORIGIN), "end_turn", usage=usage, cost=cost)


@pytest.mark.parametrize(
    "opened",
    [SessionOpened(1, "/p", "/p/sub"), SessionForked(1, "01J", 7, "/p", "/p/sub")],
)
def test_a_session_begins_in_the_folder_it_was_opened_in(opened: Event):
    state = remembered(opened)
    assert (state.project, state.cwd) == ("/p", "/p/sub")


def test_the_last_event_about_the_cwd_the_todos_and_each_file_wins():
    todos = (Todo("a", "completed"), Todo("b"))
    changes = [Cwd("/p/x"), Cwd("/q"), TodosSet((Todo("a"),)), TodosSet(todos)]
    changes += [FileSeen("/a", "1"), FileSeen("/b", "2"), FileSeen("/a", "3")]
    state = remembered(SessionOpened(1, "/p", "/p"), *map(StateChanged, changes))
    assert (state.cwd, state.todos, state.files_seen) == ("/q", todos, {"/a": "3", "/b": "2"})
    assert state.project == "/p"
    assert list(state.files_seen) == ["/b", "/a"], "the file seen last is the last one"


def test_usage_and_cost_add_up():
    state = remembered(replied(Usage(input=1, output=2), 0.25), replied(Usage(input=10, cache_read=5), 0.5))
    assert (state.usage, state.cost) == (Usage(input=11, output=2, cache_read=5), 0.75)


@pytest.mark.parametrize("unpriced", [replied(Usage(input=1), None), replied(None, None)])
def test_one_reply_of_unknown_cost_makes_the_total_unknown(unpriced: AssistantReplied):
    assert remembered(replied(Usage(input=1), 0.25), unpriced, replied(Usage(input=1), 0.25)).cost is None


def test_a_reply_without_usage_makes_the_tokens_an_estimate():
    assert remembered(replied(Usage(input=1), 0.25), replied(None, None)).usage.source == "estimated"


def test_the_last_prefix_and_the_last_step_are_remembered():
    first, second = PrefixOpened("s", "t", "openai", "gpt"), PrefixOpened("s2", "t", "openai", "gpt", "model")
    state = remembered(first, RequestSent(1, "h"), RequestSent(2, "h"), second, RequestSent(2, "h"))
    assert (state.prefix, state.steps) == (second, 2)


def test_events_without_state_change_nothing():
    before, after = remembered(), remembered(TurnFinished("completed"))
    assert vars(before) == vars(after)


# ------------------------------------------------------------------ tokens


FAILED = Failure("connection", "It broke.")
OTHER_PREFIX = PrefixOpened("s", "t", "p", "spare", "model")


def test_the_usage_of_a_withdrawn_reply_counts_and_one_without_usage_changes_nothing():
    state = remembered(ReplyWithdrawn(1, FAILED), ReplyWithdrawn(1, FAILED, Usage(5, 2, source="estimated"), 0.5))
    assert (state.usage, state.cost, state.replies) == (Usage(5, 2, source="estimated"), 0.5, 0)
    assert remembered(ReplyWithdrawn(1, FAILED)).usage.source == "reported"
    assert remembered(ReplyWithdrawn(1, FAILED, Usage(5), None)).cost is None


def test_the_reports_of_each_model_calibrate_its_own_estimates():
    first = PrefixOpened("s", "t", "p", "m")
    counted = [RequestSent(1, "h", estimated_tokens=1_000), replied(Usage(1_000, 5, cache_read=500), 0.1)]
    other = [OTHER_PREFIX, RequestSent(2, "h", estimated_tokens=1_000), replied(Usage(700, 5), 0.1)]
    assert remembered(first, *counted).factors == {"p/m": 1.5}
    assert remembered(first, *counted, *other).factors == {"p/m": 1.5, "p/spare": 0.7}
    without_usage = [RequestSent(3, "h", estimated_tokens=1_000), replied(None, None)]
    estimated = replied(Usage(900, 1, source="estimated"), None)
    assert remembered(first, *counted, *without_usage, estimated).factors == {"p/m": 1.5}


def test_reported_usage_is_an_anchor_until_a_prefix_opens_or_usage_is_estimated():
    counted = [PrefixOpened("s", "t", "p", "m"), RequestSent(1, "h"), replied(Usage(100, 5), 0.1)]
    assert remembered(*counted).is_anchored and remembered(*counted).context_tokens == 105
    assert not remembered(*counted, OTHER_PREFIX).is_anchored
    assert not remembered(*counted, replied(Usage(100, 5, source="estimated"), 0.1)).is_anchored
    assert not remembered(*counted, replied(None, None)).is_anchored


def test_the_last_stop_reason_is_remembered():
    assert remembered().last_stop is None and remembered(replied(None, None)).last_stop == "end_turn"
