"""What a model means by the name of a tool that does not exist."""

import pytest

from bradawl.shaping.tool_names import meant_by

OFFERED = (
    "bash",
    "bash_output",
    "bash_kill",
    "read_file",
    "write_file",
    "edit_file",
    "multi_edit",
    "glob",
    "grep",
    "agent",
)


@pytest.mark.parametrize(
    ("meant", "names"),
    [
        ("read_file", "Read view cat open_file ReadFile functions.read_file read_fil"),
        ("edit_file", "Edit str_replace str_replace_editor str_replace_based_edit_tool apply_patch"),
        ("write_file", "Write create_file"),
        ("bash (ls)", "ls list_dir LS list_directory"),
        ("bash", "shell execute_bash run_terminal_cmd terminal run_shell_command"),
        ("grep", "search search_files ripgrep Grep_Search"),
        ("agent", "Task dispatch_agent"),
        ("multi_edit", "multiedit multi_edits"),
    ],
)
def test_tools_of_other_agents_are_known(meant: str, names: str):
    assert {name: meant_by(name, OFFERED) for name in names.split()} == dict.fromkeys(
        names.split(), f"Did you mean {meant}?"
    )


@pytest.mark.parametrize("name", ["rm_rf", "todo", "web_fetch", "database", "", "compile", "mcp__github__create_issue"])
def test_nothing_is_guessed_without_a_good_reason(name: str):
    assert meant_by(name, OFFERED) == ""


@pytest.mark.parametrize("name", ["ask_user", "AskUserQuestion", "ask_followup_question"])
def test_where_nobody_can_answer_that_is_said(name: str):
    assert meant_by(name, OFFERED).startswith("Nobody can answer here: ")
    assert meant_by(name, (*OFFERED, "ask_user")) == "Did you mean ask_user?"
