"""Prompts, thinking, notes, notices, todos, sub-agents, jobs and the end of a turn as lines."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.durations import duration_text
from bradawl.app.tui.render import blocks
from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.theme import theme_named
from bradawl.app.tui.turn_end import TurnEnd
from bradawl.core.deltas import RetryScheduled
from bradawl.core.errors import Failure
from bradawl.core.events import Compacted, Todo
from bradawl.core.usage import Usage

PLAIN = theme_named("plain", "none")
DARK = theme_named("dark", "true")
USAGE = Usage(input=48_100, output=2_104)
FAILURE = Failure("overloaded", "the server is overloaded")
TODOS = (Todo("read", "completed"), Todo("fix", "in_progress"), Todo("test"), Todo("write"))
ANY_TEXT = st.text(max_size=120) | st.sampled_from(["日本語" * 30, "\x1b[2J\x1b]0;x\x07 y", "a\nb\tc\r", "x" * 300])


def every_block(text: str, theme, cells: int) -> list[str]:
    todos = (Todo(text, "in_progress"), *TODOS)
    return [
        *blocks.prompt_lines(text, theme, cells, limit=5),
        blocks.thinking_line(12, 340, theme, cells),
        *blocks.thinking_lines(text, theme, cells),
        *blocks.notice_lines(text, theme, cells, kind="warning"),
        blocks.note_queued_line(text, theme, cells),
        blocks.note_delivered_line(text, 5, theme, cells),
        blocks.turn_end_line(TurnEnd("cancelled", 3, USAGE, 0.1, 34), theme, cells),
        *blocks.todo_lines(todos, (), theme, cells),
        *blocks.todo_lines(todos, TODOS, theme, cells),
        blocks.agent_started_line(text, "explore", text, theme, cells),
        blocks.agent_step_line("agent-1", text, theme, cells),
        blocks.agent_ended_line(text, "error", 4, USAGE, None, theme, cells),
        blocks.job_started_line("job-1", text, theme, cells),
        blocks.job_ended_line("job-1", 1, text, theme, cells),
        *blocks.compaction_lines(Compacted(text, 3), theme, cells),
        *blocks.retry_lines(RetryScheduled(1, 2.0, Failure("overloaded", text)), theme, cells),
    ]


@given(ANY_TEXT, st.sampled_from([1, 3, 9, 20, 80]))
def test_each_line_fits_and_passes_no_escape_sequence_but_colours(text: str, cells: int):
    for theme in (PLAIN, DARK):
        for line in every_block(text, theme, cells):
            assert width(line) <= cells
            assert not re.search(r"[\x00-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[0-9;]*m", "", line))
            assert "\x1b" not in line or line.rpartition("\x1b[")[2].startswith("0m")


def test_a_prompt_is_wrapped_behind_its_symbol():
    assert blocks.prompt_lines("fix the failing test\nnow", PLAIN, 16) == ["❯ fix the", "  failing test", "  now"]


def test_a_long_prompt_is_shown_by_its_ends():
    text = "\n".join(str(number) for number in range(200))
    lines = blocks.prompt_lines(text, PLAIN, 60, limit=5)
    assert lines == ["❯ 0", "  1", "  … 196 more lines (Ctrl+O shows all)", "  198", "  199"]


def test_thinking_is_one_line_or_open():
    assert blocks.thinking_line(12, 340, PLAIN, 60) == "∴ thought for 12s · 340 tokens"
    assert blocks.thinking_lines("one two", PLAIN, 60) == ["∴ one two"]


def test_a_note_is_shown_when_it_waits_and_when_the_model_saw_it():
    assert blocks.note_queued_line("check the README too", PLAIN, 60) == '↳ queued: "check the README too"'
    assert (
        blocks.note_delivered_line("check the README too", 5, PLAIN, 60) == '↳ "check the README too" · seen in step 5'
    )
    assert blocks.note_delivered_line("x " * 99, 5, PLAIN, 40).endswith('…" · seen in step 5')


def test_the_end_of_a_turn_says_what_it_took():
    used = Usage(input=3_522, output=23)
    assert blocks.turn_end_line(TurnEnd("completed", 2, used, 0.12, 4.1), PLAIN, 90) == (
        "✓ 4.1s · 2 steps · 3.5k in · 23 out · $0.12"
    )
    assert blocks.turn_end_line(TurnEnd("cancelled", 1, Usage(), None, 2), PLAIN, 90) == "■ 2.0s · 1 step"
    guessed = Usage(input=999, output=48_100, source="estimated")
    assert blocks.turn_end_line(TurnEnd("error", 1, guessed, 0.5, 125), PLAIN, 90) == (
        "✗ 2m 05s · 1 step · ~999 in · ~48.1k out · ~$0.50"
    )


def test_an_unknown_cost_is_named_only_where_it_is_new():
    new, known = (TurnEnd("completed", 1, USAGE, None, 1, says_unknown_cost=says) for says in (True, False))
    assert blocks.turn_end_line(new, PLAIN, 90).endswith(" out · cost unknown")
    assert blocks.turn_end_line(known, PLAIN, 90).endswith("2.1k out")
    assert new.sentence(has_time=False) == "1 step, 48.1k tokens in, 2,104 out, cost unknown"
    assert known.sentence(has_time=True) == "1 step, 48.1k tokens in, 2,104 out, 1.0s"


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (43, "✓ 4.1s · 2 steps · 3.5k in · 23 out · $0.12"),
        (42, "✓ 4.1s · 3.5k in · 23 out · $0.12"),
        (30, "✓ 4.1s · 3.5k in · $0.12"),
        (20, "✓ 4.1s · $0.12"),
        (10, "✓ 4.1s"),
    ],
)
def test_a_narrow_terminal_keeps_duration_and_cost(cells: int, line: str):
    end = TurnEnd("completed", 2, Usage(input=3_522, output=23), 0.12, 4.1)
    assert blocks.turn_end_line(end, PLAIN, cells) == line


def test_a_todo_list_is_whole_once_and_then_what_changed():
    assert blocks.todo_lines(TODOS, (), PLAIN, 60) == ["☑ read", "◐ fix", "☐ test", "☐ write"]
    later = (TODOS[0], Todo("fix", "completed"), Todo("test", "in_progress"), TODOS[3])
    assert blocks.todo_lines(later, TODOS, PLAIN, 60) == ["todos: 2 of 4 completed", "☑ fix", "◐ test"]
    assert blocks.todo_lines(TODOS, TODOS, PLAIN, 60) == []
    assert blocks.todo_lines(TODOS[:3], TODOS, PLAIN, 60) == ["todos: 1 of 3 completed", "⊘ write (removed)"]
    assert blocks.todo_lines((), TODOS, PLAIN, 60) == ["no todos left"]
    assert blocks.todo_lines((), (), PLAIN, 60) == []


def test_a_sub_agent_leaves_a_trace_also_if_it_was_refused():
    assert blocks.agent_started_line("agent-1", "explore", "find it", PLAIN, 60) == "› agent-1 (explore): find it"
    line = blocks.agent_ended_line("agent-1", "completed", 4, USAGE, 0.5, PLAIN, 90)
    assert line == "✓ agent-1 done · 4 steps, 48.1k tokens in, 2,104 out, $0.50"


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (0, "with exit code 0"),
        (1, "with exit code 1"),
        (-15, "by SIGTERM"),
        (-9, "by SIGKILL"),
        (None, "and its exit code is unknown"),
    ],
)
def test_the_end_of_a_job_is_shown(code: int | None, how: str):
    assert blocks.job_ended_line("job-1", code, "npm run dev", PLAIN, 80) == f"» job-1 ended {how}: npm run dev"


def test_a_retry_is_shown_whole():
    lines = blocks.retry_lines(RetryScheduled(1, 2.0, FAILURE), PLAIN, 40)
    assert lines == ["↻ trying again in 2.0 s (attempt 1): the", "  server is overloaded"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0s"), (9.94, "9.9s"), (9.96, "10s"), (59.6, "1m 00s"), (125, "2m 05s"), (3_780, "1h 03m"), (-1, "0.0s")],
)
def test_durations(seconds: float, text: str):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0s"), (9.9, "9s"), (59.9, "59s"), (125.9, "2m 05s"), (-1, "0s")])
def test_a_duration_that_grows_has_only_whole_seconds(seconds: float, text: str):
    assert duration_text(seconds, grows=True) == text
