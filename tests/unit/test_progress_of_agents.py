"""Headless progress and the terminal show sub-agents with one line a step, and todos as a list or a summary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_events import ORIGIN, envelope, painted, progress
from tool_specs import spec_of

from bradawl.app.rendering import call_line, todo_lines, todos_line
from bradawl.app.text_layout import cells
from bradawl.core.deltas import CallDelta, RetryScheduled, TextDelta, ThinkingDelta
from bradawl.core.effects import Effects
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    CallPrepared,
    Cwd,
    LimitReached,
    Live,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestSent,
    StateChanged,
    Todo,
    TodosSet,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Text, ToolCall
from bradawl.core.usage import Usage

SUB_AGENT = "agent-1"


def replied(*parts):
    return AssistantReplied(1, Assistant(parts, ORIGIN), "tool_calls")


def prepared(call_id, name, raw="{}"):
    return CallPrepared(call_id, 1, name, raw, Effects())


def finished(call_id, outcome="ok", text=""):
    return ToolFinished(call_id, outcome, (Text(text),))


READS = replied(
    Text("I look."), ToolCall("x", "read_file", '{"file_path": "a.py"}'), ToolCall("y", "grep", '{"pattern": "z"}')
)
LIFE = (
    envelope(AgentSpawned(SUB_AGENT, "a", "explore", "find\nit \x1b[2J" + "x" * 300)),
    *(
        envelope(event, SUB_AGENT)
        for event in (
            PromptSubmitted((Text("find it"),)),
            RequestSent(1, ""),
            prepared("x", "read_file"),
            finished("x", "error", "no such file"),
            READS,
            replied(Text("It is in a.py.")),
            TurnFinished("completed"),
        )
    ),
    envelope(AgentEnded(SUB_AGENT, "completed", Usage(10, 2), 0.5)),
)


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_sub_agent_has_a_line_at_its_start_at_each_step_and_at_its_end(is_watched):
    first, *rest = progress(*LIFE, is_watched=is_watched).splitlines()
    assert first.startswith("  agent-1 (explore): find it xxx") and len(first) <= 100
    assert rest == [
        "  agent-1: Read a.py, Search z",
        "  agent-1: completed, 2 steps, 10 tokens in, 2 out, $0.50",
    ]


@pytest.mark.parametrize("is_watched", [False, True])
def test_wide_characters_of_prompts_calls_and_todos_are_counted_in_cells(is_watched):
    wide = "日本語" * 40
    read = replied(ToolCall("x", "read_file", f'{{"file_path": "{wide}"}}'))
    items = (
        envelope(AgentSpawned(SUB_AGENT, "a", "explore", wide)),
        envelope(read, SUB_AGENT),
        envelope(StateChanged(TodosSet((Todo(wide, "in_progress"),)))),
    )
    lines = progress(*items, is_watched=is_watched, width=40).splitlines()
    assert [cells(line) for line in lines] == pytest.approx([40] * 3, abs=1)
    assert all(line.endswith("…") for line in lines)


def test_the_terminal_shows_the_same_lines():
    assert painted(*LIFE) == progress(*LIFE)


def test_streamed_text_is_not_interrupted_by_events_of_a_sub_agent():
    busy = (
        envelope(RequestSent(1, ""), SUB_AGENT),
        Live(SUB_AGENT, 0, TextDelta(0, "inner")),
        Live(SUB_AGENT, 0, ThinkingDelta(0, "inner")),
        Live(SUB_AGENT, 0, CallDelta(0, "x", "bash", "{")),
        envelope(prepared("x", "bash"), SUB_AGENT),
        envelope(finished("x"), SUB_AGENT),
        envelope(StateChanged(Cwd("/")), SUB_AGENT),
    )
    text = replied(Text("One two."))
    items = (Live("main", 0, TextDelta(0, "One ")), *busy, Live("main", 0, TextDelta(0, "two.")), envelope(text))
    assert painted(*items) == "One two.\n"


def test_calls_of_two_agents_with_the_same_id_are_not_mixed_up():
    items = (
        envelope(prepared("a", "bash", '{"command": "outer"}')),
        envelope(prepared("a", "read_file"), SUB_AGENT),
        envelope(finished("a", "error", "inner"), SUB_AGENT),
        envelope(finished("a")),
    )
    assert progress(*items) == painted(*items) == "✓ Run    outer\n"


def test_failures_of_a_sub_agent_name_the_sub_agent():
    failure = Failure("overloaded", "busy")
    items = (
        Live(SUB_AGENT, 0, RetryScheduled(1, 2.0, failure)),
        envelope(ReplyWithdrawn(1, failure), SUB_AGENT),
        envelope(LimitReached("steps", 50, 50), SUB_AGENT),
    )
    lines = progress(*items).splitlines()
    assert len(lines) == 3 and all(line.startswith("  agent-1: ") for line in lines)
    assert painted(*items).splitlines() == lines


def test_a_call_of_a_sub_agent_is_named_by_its_description():
    assert call_line(spec_of("agent"), '{"prompt": "a long text", "description": "find it"}') == "agent(find it)"
    assert call_line(spec_of("agent"), '{"prompt": "a long text"}') == "agent(a long text)"


# ------------------------------------------------------------------ todos

TODOS = (Todo("look", "completed"), Todo("mend\x1b[2J\nit", "in_progress"), Todo("test"))
WRITTEN = (
    envelope(prepared("t", "todo_write", '{"todos": []}')),
    envelope(StateChanged(TodosSet(TODOS))),
    envelope(finished("t")),
)


def test_at_a_terminal_the_list_of_todos_replaces_the_call():
    assert progress(*WRITTEN, is_watched=True) == "  ☑ look\n  ◐ mend it\n  ☐ test\n"


def test_without_a_terminal_todos_are_one_line_with_the_number_completed():
    assert progress(*WRITTEN) == painted(*WRITTEN) == "  todos: 1 of 3 completed, now: mend it\n"
    assert progress(envelope(StateChanged(TodosSet(())))) == "  todos: 0 of 0 completed\n"


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_rejected_list_of_todos_is_shown_as_a_failed_call(is_watched):
    items = (envelope(prepared("t", "todo_write")), envelope(finished("t", "error", "2 todos are in_progress")))
    assert "2 todos are in_progress" in progress(*items, is_watched=is_watched)


def test_todos_of_a_sub_agent_are_not_shown_as_those_of_the_main_agent():
    items = [envelope(item.event, SUB_AGENT) for item in WRITTEN]
    assert progress(*items, is_watched=True) == painted(*items) == ""


@given(st.lists(st.sampled_from(["pending", "in_progress", "completed"]), max_size=60))
def test_a_shortened_list_always_shows_the_next_open_todo(statuses):
    todos = tuple(Todo(f"todo {number}", status) for number, status in enumerate(statuses))
    lines = todo_lines(todos)
    assert len(lines) <= 22
    if todos and (open_ := [todo for todo in todos if todo.status != "completed"]):
        assert any(line.endswith(open_[0].content) for line in lines)
    assert f"of {len(todos)} completed" in todos_line(todos)
    hidden = sum(int(line.split()[1]) for line in lines if line.startswith("..."))
    assert hidden + sum(line.startswith(("☑", "◐", "☐")) for line in lines) == len(todos)
