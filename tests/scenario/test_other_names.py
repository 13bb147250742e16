"""A call under the names of another agent: hooks, questions and the log see the tool's own names."""

import json

import pytest
from scripted_agent import build, only, results

from bradawl.core.events import CallPrepared
from bradawl.core.messages import Assistant, ToolCall, calls_of
from bradawl.core.permissions import Policy
from bradawl.testing.fakes import FakeHook, MemoryFiles, RecordingEmit, ScriptedApprover
from bradawl.tools.edit_file import EditFile
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.todo_write import TodoWrite

OTHER = {"path": "a.py", "old_str": "one", "new_str": "two"}
OWN = {"file_path": "a.py", "old_string": "one", "new_string": "two"}


async def test_hooks_questions_and_the_log_get_the_own_names_and_the_transcript_what_the_model_wrote() -> None:
    seen: list[ToolCall] = []
    approver, emit, files = ScriptedApprover([True]), RecordingEmit(), MemoryFiles({"/project/a.py": b"one\n"})
    script = [{"tool_calls": [{"id": "x", "name": "edit_file", "arguments": OTHER}]}, {"text": "ok"}]
    agent, *_ = build(
        script,
        tools=(EditFile(),),
        files=files,
        approver=approver,
        policy=lambda: Policy("default"),
        hooks=(FakeHook(lambda call: seen.append(call) or call),),
    )
    async with agent.open() as session:
        await session.run("go", emit)
        messages = session.transcript.messages
    assert files.files["/project/a.py"] == b"two\n"
    (asked,), (prepared,) = approver.questions, only(list(emit.events), CallPrepared)
    for raw in (seen[0].raw_arguments, asked.call.raw_arguments, prepared.raw_arguments):
        assert json.loads(raw) == OWN
    reply = messages[1]
    assert isinstance(reply, Assistant)
    assert [json.loads(call.raw_arguments) for call in calls_of(reply)] == [OTHER]


async def test_a_contradiction_is_refused_and_names_the_parameters() -> None:
    given = {**OTHER, "file_path": "b.py"}
    agent, *_ = build(
        [{"tool_calls": [{"id": "x", "name": "edit_file", "arguments": given}]}, {"text": "ok"}], tools=(EditFile(),)
    )
    async with agent.open() as session:
        await session.run("go")
        (said,) = results(session.transcript.messages)
    assert said == (
        "edit_file was not run: file_path and path mean the same and differ; give one of them.\nIts parameters are: "
        "file_path (string), old_string (string), new_string (string), replace_all (boolean, optional)."
    )


async def test_a_tool_named_in_other_capitals_runs_and_hooks_get_its_own_name() -> None:
    seen: list[ToolCall] = []
    emit, files = RecordingEmit(), MemoryFiles({"/project/a.py": b"one\n"})
    script = [{"tool_calls": [{"id": "x", "name": "Edit_File", "arguments": OTHER}]}, {"text": "ok"}]
    hooks = (FakeHook(lambda call: seen.append(call) or call),)
    agent, *_ = build(script, tools=(EditFile(),), files=files, hooks=hooks)
    async with agent.open() as session:
        await session.run("go", emit)
        messages = session.transcript.messages
    assert files.files["/project/a.py"] == b"two\n"
    assert [seen[0].name, only(list(emit.events), CallPrepared)[0].name] == ["edit_file", "edit_file"]
    reply = messages[1]
    assert isinstance(reply, Assistant)
    assert [call.name for call in calls_of(reply)] == ["Edit_File"]
    assert results(messages)[0].startswith("Edited a.py: +1 -1\n")


@pytest.mark.parametrize("more", [{}, {"old_string": "", "new_string": None, "replace_all": False}])
async def test_several_edits_of_one_file_are_made_all_or_none(more: dict[str, object]) -> None:
    files = MemoryFiles({"/project/a.py": b"one\ntwo\n"})
    good = {
        "file_path": "a.py",
        "edits": [{"old_string": "one", "new_string": "1"}, {"oldText": "two", "newText": "2"}],
    }
    bad = {
        "file_path": "a.py",
        "edits": [{"old_string": "1", "new_string": "3"}, {"old_string": "x", "new_string": ""}],
    }
    calls = [{"id": f"{n}", "name": "edit_file", "arguments": {**each, **more}} for n, each in enumerate((good, bad))]
    emit = RecordingEmit()
    agent, *_ = build([{"tool_calls": calls}, {"text": "ok"}], tools=(EditFile(), MultiEdit()), files=files)
    async with agent.open() as session:
        await session.run("go", emit)
        made, refused = results(session.transcript.messages)
    assert files.files["/project/a.py"] == b"1\n2\n"
    assert made.startswith("Edited a.py: +2 -2\n")
    assert refused.startswith(
        "1 of 2 edits can't be made, so no file was changed.\nedit 2, a.py: old_string was not found"
    )
    assert [each.name for each in only(list(emit.events), CallPrepared)] == ["multi_edit"] * 2


async def test_an_empty_list_of_edits_changes_nothing_for_edit_file() -> None:
    files = MemoryFiles({"/project/a.py": b"one\n"})
    call = {"id": "x", "name": "edit_file", "arguments": {**OWN, "edits": []}}
    agent, *_ = build([{"tool_calls": [call]}, {"text": "ok"}], tools=(EditFile(), MultiEdit()), files=files)
    async with agent.open() as session:
        await session.run("go")
    assert files.files["/project/a.py"] == b"two\n"


async def test_the_answer_for_an_unknown_tool_lists_only_tools_that_are_offered() -> None:
    todo = TodoWrite()
    todo.is_listed = False
    script = [{"tool_calls": [{"id": "x", "name": "Edit", "arguments": {}}]}, {"text": "ok"}]
    agent, *_ = build(script, tools=(EditFile(), todo))
    async with agent.open() as session:
        await session.run("go")
        (said,) = results(session.transcript.messages)
    assert said == ("There is no tool named 'Edit'; nothing was run. Did you mean edit_file? The tools are: edit_file.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({**OWN, "replace_all": "perhaps"}, "edit_file was not run: Expected bool, got str (in replace_all)."),
        (
            {"file_path": "a.py", "old_string": "x"},
            "edit_file was not run: new_string is missing.\nIts parameters are: file_path (string), "
            "old_string (string), new_string (string), replace_all (boolean, optional).",
        ),
    ],
)
async def test_parameters_are_listed_only_where_a_name_is_wrong(arguments: dict[str, object], said: str) -> None:
    call = {"id": "x", "name": "edit_file", "arguments": arguments}
    agent, *_ = build([{"tool_calls": [call]}, {"text": "ok"}], tools=(EditFile(),))
    async with agent.open() as session:
        await session.run("go")
        assert results(session.transcript.messages) == [said]
