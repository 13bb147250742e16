"""Questions of the model, todos and sub-agents at a real pseudo-terminal."""

import json
import subprocess

import pytest
from plain_terminal import PlainTerminal
from terminal import START

AGENTS = {
    "tool_calls": [
        {"name": "agent", "arguments": {"prompt": "find it", "kind": "explore", "description": "find the place"}}
    ]
}
TODOS = {
    "tool_calls": [
        {
            "name": "todo_write",
            "arguments": {
                "todos": [{"content": "look", "status": "completed"}, {"content": "mend", "status": "in_progress"}]
            },
        }
    ]
}
LOOK = {"tool_calls": [{"name": "read_file", "arguments": {"file_path": "script.json", "limit": 1}}]}
ASK = {
    "text": "I must know.",
    "tool_calls": [{"name": "ask_user", "arguments": {"question": "Which one?", "options": ["red", "blue"]}}],
}


@pytest.fixture
def talk(tmp_path):
    terminals = []

    def start(script, *argv):
        terminals.append(PlainTerminal(tmp_path, script, *argv))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def test_the_model_asks_and_the_user_answers_with_a_number(talk):
    terminal = talk([ASK, {"text": "So it is.", "expect": "The user says: blue"}], "--yolo", "go")
    terminal.wait_for("Your answer:")
    assert "1. red" in terminal.text and "2. blue" in terminal.text
    terminal.type("2\r")
    terminal.wait_for("So it is.")


def test_ctrl_c_at_a_question_is_no_answer_and_the_turn_goes_on(talk):
    terminal = talk([ASK, {"text": "I decided.", "expect": "No answer"}], "--yolo", "go")
    terminal.wait_for("Your answer:")
    terminal.type("\x03")
    terminal.wait_for("I decided.")


def test_sub_agents_and_todos_are_shown(talk):
    script = [TODOS, AGENTS, LOOK, {"text": "in line 1"}, {"text": "All done.", "expect": "in line 1"}]
    terminal = talk(script, "--yolo", "go")
    terminal.wait_for("All done.")
    shown = terminal.text
    for line in ("☑ look", "◐ mend", "› Agent  find the place", "agent-1 (explore): find it", "agent-1: completed"):
        assert line in shown, shown
    assert "agent-1: Read script.json" in shown


def test_a_headless_run_asks_nothing_and_prints_a_line_for_each_step(tmp_path):
    script = [TODOS, AGENTS, LOOK, {"text": "in line 1"}, ASK, {"text": "All done.", "expect": "no tool named"}]
    (tmp_path / "script.json").write_text(json.dumps(script))
    run = subprocess.run(
        [*START, "-p", "go", "--yolo", "-m", "scripted/script.json", "--output-format", "json"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=50,
    )
    assert run.returncode == 0, run.stderr
    assert "  agent-1: Read script.json\n" in run.stderr
    assert "  todos: 1 of 2 completed, now: mend\n" in run.stderr
    result = json.loads(run.stdout)
    assert (result["result"], result["num_turns"]) == ("All done.", 4)
    assert result["usage"]["output_tokens"] == sum(used["outputTokens"] for used in result["modelUsage"].values())
