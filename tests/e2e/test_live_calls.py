"""What calls, to-do lists, jobs and sub-agents leave on the screen, and how the rest of what is cut can be seen."""

import re

import pytest
from live_terminal import MARK, bash


def todos(*statuses):
    """A reply that sets one item for each status."""
    items = [{"content": f"item {number}", "status": status} for number, status in enumerate(statuses)]
    return {"tool_calls": [{"name": "todo_write", "arguments": {"todos": items}}]}


def test_a_long_reason_and_a_long_name_can_be_seen_whole(live):
    """Defect: both were cut with no way to see the rest."""
    name = "/".join(f"a-folder-with-a-long-name-{number}" for number in range(8)) + "/file.txt"
    call = {"tool_calls": [{"name": "read_file", "arguments": {"file_path": name}}]}
    talk = live([call, {"text": "No such file."}], "-y")
    talk.wait_idle()
    talk.send("read it")
    talk.wait_turns(1)
    assert "✗" in talk.text
    assert all(len(line) <= 80 for line in talk.whole)
    talk.press("ctrl+o")
    talk.wait_for("q closes")
    assert name in "".join(line.strip() for line in talk.lines)
    talk.press("q")
    talk.wait_idle()
    talk.leave()


def test_a_list_of_todos_is_not_printed_anew_each_time(live):
    """Defect: the full list was."""
    done = [todos(*["completed"] * count, "in_progress", *["pending"] * (9 - count)) for count in range(5)]
    talk = live([*done, {"text": "Planned."}], "-y", size=(60, 80))
    talk.wait_idle()
    talk.send("plan")
    talk.wait_turns(1)
    assert talk.whole_text.count("item 9") == 1, talk.whole_text
    assert all(f"item {number}" in talk.whole_text for number in range(10))
    talk.leave()


def test_the_end_of_a_background_job_is_told_to_the_user(live, project):
    """Defect: it was told to the model only."""
    command = "until [ -e go ]; do sleep 0.05; done; exit 3"
    call = {"tool_calls": [{"name": "bash", "arguments": {"command": command, "run_in_background": True}}]}
    talk = live([call, {"text": "Started."}], "-y")
    talk.wait_idle()
    talk.send("start")
    talk.wait_turns(1)
    talk.wait_for("1 job")
    talk.type("half a line")
    talk.until(lambda: talk.typed == "half a line", "the text")
    (project / "go").touch()
    talk.wait_until_gone("1 job")
    talk.wait_for("job-1")
    assert talk.typed == "half a line" and "3" in next(line for line in reversed(talk.whole) if "job-1" in line)
    talk.press("ctrl+c")
    talk.leave()


def test_sub_agents_are_shown_with_what_they_do_now(live, project):
    agent = {"prompt": "find it", "kind": "explore", "description": "find the place"}
    look = {"tool_calls": [{"name": "bash", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done"}}]}
    script = [
        {"tool_calls": [{"name": "agent", "arguments": agent}]},
        look,
        {"text": "in line 1"},
        {"text": "All done."},
    ]
    talk = live(script, "-y")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for("agent-1 · 1 step", "until [ -e go ]", "esc stops")
    assert talk.text.count("find the place") + talk.text.count("find it") == 2  # the call, and what is running
    (project / "go").touch()
    talk.wait_for("All done.")
    talk.wait_turns(1)
    told = [line for line in talk.whole_text.split("\n") if "Agent" in line or "agent-1" in line]
    assert len(told) == 1 and "find" in told[0] and "2 steps" in told[0], told
    talk.press("ctrl+o")
    talk.wait_for("in line 1")
    talk.press("q")
    talk.wait_idle()
    talk.leave()


def test_output_of_a_running_command_is_shown_while_it_runs(live, project):
    talk = live([bash("for n in 1 2 3 4 5 6 7 8 9; do echo row $n; done; until [ -e go ]; do sleep 0.05; done")], "-y")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for("row 9", "esc stops")
    assert len(talk.lines) <= 24
    (project / "go").touch()
    talk.wait_until_gone("esc stops")
    talk.leave()


def test_calls_that_end_in_another_order_are_printed_in_the_order_of_their_begin(live, project):
    calls = [
        {"id": "a", "name": "bash", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done; echo slow"}},
        {"id": "b", "name": "read_file", "arguments": {"file_path": "script.json", "limit": 1}},
    ]
    talk = live([{"tool_calls": calls}, {"text": "Both."}], "-y")
    talk.wait_idle()
    talk.send("both")
    talk.wait_for("until [ -e go ]", "esc stops")
    (project / "go").touch()
    talk.wait_for("Both.")
    talk.wait_turns(1)
    assert talk.words.index("until [ -e go ]") < talk.words.index("script.json", talk.words.index("both"))
    talk.leave()


@pytest.mark.parametrize("flags", [["-y"], ["-y", "--plain"]], ids=["live", "plain"])
def test_a_pipeline_of_which_a_part_failed_does_not_look_as_if_it_had_passed(live, flags):
    """Defect: its line was that of a command that passed."""
    talk = live([bash("(echo 3 failed; exit 3) | tail -1"), {"text": "Done."}], *flags)
    talk.until(lambda: MARK in talk.text or ">" in talk.text, "a prompt")
    talk.type("go")
    talk.press("enter")
    talk.wait_for("Done.")
    assert "a part failed: exit code 3" in talk.whole_text
    marked = [line.strip() for line in talk.whole if line.strip().startswith("✓")]
    assert [line for line in marked if not re.match(r"✓ [\d.]+s · 2 steps", line)] == []  # how the turn ended
