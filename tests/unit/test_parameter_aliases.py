"""Parameters under the names that other agents give them: one table, the same for every tool."""

from typing import Any

import msgspec
import pytest

from bradawl.app.build.tools import build_tools
from bradawl.shaping import fitting
from bradawl.shaping.parameter_aliases import translated
from bradawl.shaping.parameter_values import AmbiguousValue
from bradawl.shaping.tool_schema import schema_of
from bradawl.tools.ask_user import AskUserParams
from bradawl.tools.custom import tool
from bradawl.tools.web_fetch import WebFetchParams

TOOLS = build_tools()
PARAMS: dict[str, Any] = {
    **{each.spec.name: each.params for each in TOOLS},
    "ask_user": AskUserParams,
    "web_fetch": WebFetchParams,
}


def read(name: str, cwd: str = "/project", **arguments: object) -> dict[str, object]:
    """The decoded arguments that differ from the defaults."""
    kind = PARAMS[name]
    params = fitting.decoded(translated(name, arguments, kind, cwd), kind)
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(kind)}
    changed = {key for key, value in defaults.items() if getattr(params, key) != value}
    found = msgspec.json.decode(msgspec.json.encode(params))
    return {key: value for key, value in found.items() if key in changed}


SAME = [
    # file tools
    ("read_file", {"path": "a"}, {"file_path": "a"}),
    ("read_file", {"filePath": "a", "offset": 3, "limit": 4}, {"file_path": "a", "offset": 3, "limit": 4}),
    ("read_file", {"absolute_path": "/a"}, {"file_path": "/a"}),
    ("read_file", {"target_file": "a", "should_read_entire_file": True}, {"file_path": "a"}),
    ("read_file", {"path": "a", "line_offset": 3, "n_lines": 4}, {"file_path": "a", "offset": 3, "limit": 4}),
    ("read_file", {"path": "a", "start_line": 5, "end_line": 9}, {"file_path": "a", "offset": 5, "limit": 5}),
    ("read_file", {"path": "a", "view_range": [5, 9]}, {"file_path": "a", "offset": 5, "limit": 5}),
    ("read_file", {"path": "a", "view_range": [5, -1]}, {"file_path": "a", "offset": 5}),
    ("read_file", {"paths": ["a", "b"]}, {"file_paths": ["a", "b"]}),
    ("read_file", {"path": ["a", "b"]}, {"file_paths": ["a", "b"]}),
    ("read_file", {"file_path": ["a", "b"]}, {"file_paths": ["a", "b"]}),
    ("read_file", {"filePaths": ["a"]}, {"file_paths": ["a"]}),
    ("write_file", {"path": "a", "content": "x"}, {"file_path": "a", "content": "x"}),
    ("write_file", {"path": "a", "file_text": "x"}, {"file_path": "a", "content": "x"}),
    ("write_file", {"filePath": "a", "contents": "", "overwrite": True}, {"file_path": "a", "content": ""}),
    ("write_file", {"path": "a", "content": "x", "mode": "overwrite"}, {"file_path": "a", "content": "x"}),
    (
        "edit_file",
        {"path": "a", "old_str": "x", "new_str": ""},
        {"file_path": "a", "old_string": "x", "new_string": ""},
    ),
    (
        "edit_file",
        {"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": True},
        {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
    ),
    (
        "edit_file",
        {"path": "a", "oldText": "x", "newText": "y"},
        {"file_path": "a", "old_string": "x", "new_string": "y"},
    ),
    (
        "edit_file",
        {"file_path": "a", "instruction": "do", "old_string": "x", "new_string": "y", "expected_replacements": 1},
        {"file_path": "a", "old_string": "x", "new_string": "y"},
    ),
    (
        "multi_edit",
        {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}, {"oldText": "v", "newText": "w"}]},
        {
            "edits": [
                {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": False},
                {"file_path": "a", "old_string": "v", "new_string": "w", "replace_all": False},
            ]
        },
    ),
    (
        "multi_edit",
        {"path": "a", "edits": [{"path": "b", "old_string": "x", "new_string": "y", "replace_all": True}]},
        {"edits": [{"file_path": "b", "old_string": "x", "new_string": "y", "replace_all": True}]},
    ),
    (
        "multi_edit",
        {"path": "a", "edits": '[{"old_str": "x", "new_str": "y"}]'},
        {"edits": [{"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": False}]},
    ),
    # searches
    (
        "grep",
        {"pattern": "x", "path": "src", "glob": "*.py", "output_mode": "files_with_matches", "head_limit": 5},
        {"pattern": "x", "path": "src", "include": "*.py", "output_mode": "files", "limit": 5},
    ),
    ("grep", {"pattern": "x", "-n": True, "-i": True}, {"pattern": "(?i)x"}),
    ("grep", {"pattern": "x", "-i": False, "head_limit": 0, "offset": 0}, {"pattern": "x"}),
    ("grep", {"pattern": "x", "-A": 3, "-B": 1}, {"pattern": "x", "context": 3}),
    ("grep", {"pattern": "x", "-C": 2, "context": 1}, {"pattern": "x", "context": 2}),
    ("grep", {"pattern": "x", "after": "4", "before": 2}, {"pattern": "x", "context": 4}),
    ("grep", {"pattern": "x.y", "ignoreCase": True, "literal": True}, {"pattern": r"(?i)x\.y"}),
    ("grep", {"pattern": "f(x)", "fixed_strings": True}, {"pattern": r"f\(x\)"}),
    ("grep", {"pattern": "a|b", "-w": True}, {"pattern": r"\b(?:a|b)\b"}),
    ("grep", {"pattern": "x", "case_sensitive": True}, {"pattern": "x"}),
    ("grep", {"pattern": "x", "case_sensitive": False}, {"pattern": "(?i)x"}),
    (
        "grep",
        {"query": "x", "include_pattern": "*.ts", "dir_path": "src", "names_only": True, "no_ignore": False},
        {"pattern": "x", "include": "*.ts", "path": "src", "output_mode": "files"},
    ),
    ("grep", {"regex": "x", "file_pattern": "*.ts"}, {"pattern": "x", "include": "*.ts"}),
    ("grep", {"pattern": "x", "output_mode": "count_matches"}, {"pattern": "x", "output_mode": "count"}),
    ("grep", {"pattern": "x", "outputMode": "content", "headLimit": 9}, {"pattern": "x", "limit": 9}),
    ("grep", {"pattern": "x", "path": ["src"]}, {"pattern": "x", "path": "src"}),
    ("glob", {"pattern": "*.py", "directory": "src", "include_dirs": False}, {"pattern": "*.py", "path": "src"}),
    ("glob", {"glob_pattern": "*.py", "dir_path": "src", "limit": 10}, {"pattern": "*.py", "path": "src"}),
    # commands
    ("bash", {"cmd": "ls"}, {"command": "ls"}),
    ("bash", {"command": "ls", "description": "List", "timeout": 120000}, {"command": "ls", "timeout": 120}),
    ("bash", {"command": "ls", "timeout": 90}, {"command": "ls", "timeout": 90}),
    ("bash", {"command": "ls", "timeout": 1800}, {"command": "ls", "timeout": 1800}),
    ("bash", {"command": "ls", "timeout": "60000"}, {"command": "ls", "timeout": 60}),
    ("bash", {"command": "ls", "timeout_ms": 1500}, {"command": "ls", "timeout": 2}),
    ("bash", {"command": "ls", "timeoutSeconds": 15}, {"command": "ls", "timeout": 15}),
    ("bash", {"command": "ls", "is_background": True}, {"command": "ls", "run_in_background": True}),
    ("bash", {"command": "ls", "workdir": "/project"}, {"command": "ls"}),
    ("bash", {"command": "ls", "workdir": "."}, {"command": "ls"}),
    ("bash", {"command": "ls", "directory": ""}, {"command": "ls"}),
    (
        "bash",
        {"cmd": "ls", "yield_time_ms": 1000, "max_output_tokens": 5, "login": True, "tty": False},
        {"command": "ls"},
    ),
    ("bash", {"command": "ls", "dangerouslyDisableSandbox": False}, {"command": "ls"}),
    ("bash_output", {"bash_id": "job-1", "filter": "x"}, {"job_id": "job-1"}),
    ("bash_output", {"task_id": "job-1", "block": True, "timeout": 30000}, {"job_id": "job-1", "wait": 30}),
    ("bash_output", {"task_id": "job-1", "block": False}, {"job_id": "job-1"}),
    ("bash_output", {"task_id": "job-1", "block": True}, {"job_id": "job-1", "wait": 30}),
    ("bash_kill", {"shell_id": "job-1", "reason": "done"}, {"job_id": "job-1"}),
    # the others
    (
        "agent",
        {"description": "d", "prompt": "p", "subagent_type": "general-purpose"},
        {"description": "d", "prompt": "p"},
    ),
    ("agent", {"prompt": "p", "subagent_type": "Explore"}, {"prompt": "p", "kind": "explore"}),
    (
        "todo_write",
        {"todos": [{"content": "a", "status": "pending", "activeForm": "Doing a", "id": 1}]},
        {"todos": [{"content": "a"}]},
    ),
    (
        "todo_write",
        {"plan": [{"step": "a", "status": "in_progress"}, {"title": "b", "status": "done"}], "explanation": "why"},
        {"todos": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "completed"}]},
    ),
    (
        "ask_user",
        {"questions": [{"question": "q", "header": "h", "options": [{"label": "a", "description": "b"}, "c"]}]},
        {"question": "q", "options": ["a: b", "c"]},
    ),
    ("web_fetch", {"url": "https://a.example", "prompt": "sum up"}, {"url": "https://a.example"}),
    ("web_fetch", {"uri": "https://a.example", "format": "markdown"}, {"url": "https://a.example"}),
]


@pytest.mark.parametrize(("name", "given", "meant"), SAME)
def test_the_names_of_other_agents_mean_the_tools_own_parameters(name: str, given: dict, meant: dict) -> None:
    assert read(name, **given) == meant


REFUSED = [
    ("read_file", {"path": "a", "file_path": "b"}, "file_path and path mean the same and differ; give one of them"),
    ("read_file", {"path": "a", "filePath": "b"}, "path and filePath mean the same and differ; give one of them"),
    ("read_file", {"path": "a", "start_line": 9, "end_line": 5}, "the last line to read is before the first one"),
    (
        "edit_file",
        {"path": "a", "old_string": "", "old_str": "x", "new_str": "y"},
        "old_string and old_str mean the same and differ; give one of them",
    ),
    (
        "edit_file",
        {"path": "a", "old_str": "x", "new_str": "y", "expected_replacements": 3},
        "expected_replacements: old_string has to be unique; set replace_all=true to change every place",
    ),
    ("write_file", {"path": "a", "content": "x", "append": True}, "append: this can't be true here; leave it out"),
    ("write_file", {"path": "a", "content": "x", "mode": "append"}, "mode: this can't be 'append' here; leave it out"),
    ("grep", {"pattern": "x", "offset": 20}, "offset: this can't be 20 here; leave it out"),
    ("grep", {"pattern": "x", "no_ignore": True}, "no_ignore: this can't be true here; leave it out"),
    ("grep", {"pattern": "x", "-A": "many"}, "-A: this has to be a whole number, not 'many'"),
    ("grep", {"pattern": "x", "-i": "perhaps"}, "-i: this has to be true or false, not 'perhaps'"),
    (
        "grep",
        {"pattern": "x", "path": ["a", "b"]},
        "path is one file or folder; search each in a call of its own, or the folder above them",
    ),
    (
        "bash",
        {"command": "ls", "timeout": 5000},
        "the time is in seconds, at most 600; 5000 may mean 5 s in milliseconds: give 5, or 600",
    ),
    (
        "bash",
        {"command": "ls", "workdir": "/project/a b"},
        "there is no parameter workdir: begin the command with cd '/project/a b' &&, or cd once",
    ),
    ("bash", {"command": ["bash", "-lc", "ls"]}, "command is one line of bash, not a list of words"),
    ("bash", {"command": "ls", "tty": True}, "tty: this can't be true here; leave it out"),
    ("bash", {"command": "ls", "cmd": "pwd"}, "command and cmd mean the same and differ; give one of them"),
    (
        "bash",
        {"command": "ls", "timeout": 60, "timeout_ms": 1000},
        "timeout and timeout_ms mean the same and differ; give one of them",
    ),
    (
        "ask_user",
        {"questions": [{"question": "a"}, {"question": "b"}]},
        "questions: ask one question in a call, as question and options",
    ),
]


@pytest.mark.parametrize(("name", "given", "why"), REFUSED)
def test_contradictions_and_values_with_another_meaning_are_refused(name: str, given: dict, why: str) -> None:
    with pytest.raises(AmbiguousValue) as refused:
        translated(name, given, PARAMS[name], "/project")
    assert str(refused.value) == why


@pytest.mark.parametrize("same", [{"path": "a", "file_path": "a"}, {"path": None, "file_path": "a"}])
def test_the_same_value_under_two_names_is_no_contradiction(same: dict) -> None:
    assert read("read_file", **same) == {"file_path": "a"}


@pytest.mark.parametrize(
    "unknown",
    [
        {"nonsense": 1},
        {"dangerouslyDisableSandbox": True},
        {"sandbox_permissions": "require_escalated"},
        {"paths": ["a"]},
    ],
)
def test_unknown_names_stay_and_are_refused_by_name(unknown: dict) -> None:
    given = {"command": "ls", **unknown}
    assert translated("bash", given, PARAMS["bash"]) is given
    with pytest.raises(msgspec.ValidationError):
        read("bash", **given)


@pytest.mark.parametrize("name", PARAMS)
def test_the_tools_own_names_are_never_translated(name: str) -> None:
    fields = msgspec.structs.fields(PARAMS[name])
    given: dict[str, object] = {field.encode_name: "content" for field in fields}
    assert translated(name, given, PARAMS[name]) is given


def test_the_parameters_of_a_users_tool_are_left_alone() -> None:
    @tool
    def bash(path: str, command: str, timeout: int = 5000) -> str:
        """A tool that happens to have the name of one of bradawl's."""
        return path

    @tool
    def deploy(file_path: str) -> str:
        """Another tool."""
        return file_path

    given: dict[str, object] = {"path": "a", "command": "b", "timeout": 5000}
    assert translated("bash", given, bash.params) is given
    assert translated("bash", {"cmd": "a"}, bash.params) == {"cmd": "a"}
    other: dict[str, object] = {"path": "a"}
    assert translated("deploy", other, deploy.params) is other


def test_no_schema_mentions_another_name() -> None:
    for each in TOOLS:
        names = set(msgspec.json.decode(schema_of(each).parameters)["properties"])
        assert names == {field.encode_name for field in msgspec.structs.fields(PARAMS[each.spec.name])}
