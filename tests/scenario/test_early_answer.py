"""An answer that comes with the last check ends the task if all calls of the reply succeed."""

import json
from pathlib import Path
from typing import Any

import pytest
from headless_runs import run_without_user

from bradawl import ModelSettings, Settings, build_agent
from bradawl.agent.agent import Agent
from bradawl.core.deltas import TextDelta
from bradawl.core.events import Live
from bradawl.core.messages import ToolResults, User
from bradawl.folds.answers import answers_in
from bradawl.testing.fakes import RecordingEmit

ANSWER = "The sum was wrong; it is right now."


def bash(command: str, answer: str = ANSWER, **more: Any) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command, "answer_if_ok": answer, **more}}


EDIT = {"name": "write_file", "arguments": {"file_path": "a.txt", "content": "new\n"}}
WRONG_EDIT = {"name": "edit_file", "arguments": {"file_path": "a.txt", "old_string": "x", "new_string": "y"}}
CHECK = bash("touch done && test -e done")


def built(folder: Path, *replies: Any, **changes: Any) -> Agent:
    """An agent whose model sends these calls, texts or entries of a script, and then says `late`."""
    (folder / "work").mkdir(exist_ok=True)
    script = [
        one if isinstance(one, dict) else {"text": one} if isinstance(one, str) else {"tool_calls": one}
        for one in replies
    ]
    (folder / "script.json").write_text(json.dumps([*script, {"text": "late"}]))
    given = {"sandbox": "off", "permission_mode": "bypass", "headless": True, "environment": {"PATH": "/usr/bin:/bin"}}
    model = ModelSettings("scripted", str(folder / "script.json"))
    places = {"cwd": str(folder / "work"), "home": str(folder / "data"), "user_home": str(folder)}
    return build_agent(Settings(model=model, **places, **{**given, **changes}))


async def run(folder: Path, *replies: Any, **changes: Any) -> tuple[str, int, str]:
    """Answer, number of steps, and reason of a turn."""
    agent = built(folder, *replies, **changes)
    try:
        result = await agent.run("go")
        return result.text, result.steps, result.reason
    finally:
        await agent.aclose()


@pytest.mark.parametrize(
    "calls",
    [
        [CHECK],
        [EDIT, CHECK],
        [{"name": "bash", "arguments": {"command": "true"}}, CHECK],
        [bash("true", ""), bash("touch done | cat")],
        [bash("yes | head -0")],
        [EDIT, bash("false || true")],
    ],
)
async def test_the_task_ends_without_another_request(tmp_path, calls):
    assert await run(tmp_path, calls) == (ANSWER, 1, "completed")


@pytest.mark.parametrize(
    "calls",
    [
        [bash("touch done; exit 3")],
        [bash("false | cat")],
        [bash("touch done", timeout=1, run_in_background=False), WRONG_EDIT],
        [WRONG_EDIT, CHECK],
        [bash("sleep 5", timeout=1)],
        [bash("sleep 5", run_in_background=True)],
        [bash("touch done"), {"name": "nothing", "arguments": {}}],
        [bash("touch done", "")],
        [bash("touch done", "  \n")],
        [bash("touch done", 5)],
        [bash("touch done"), EDIT],
        [bash("touch done"), bash("touch more", "")],
        [bash("sleep 20; false", "", run_in_background=True), CHECK],
        [bash("touch done; sleep 20 & echo started")],
        [bash("false; exec touch done")],
        [bash("echo 'a trap here' > done; false; echo ok")],
        [{"name": "glob", "arguments": {"pattern": "*", "answer_if_ok": ANSWER}}],
    ],
)
async def test_the_task_goes_on_if_anything_failed_or_is_not_known(tmp_path, calls):
    assert await run(tmp_path, calls) == ("late", 2, "completed")


@pytest.mark.parametrize(
    ("command", "evidence"),
    [
        ("touch done; echo first; echo '3 passed in 0.1 s'; echo", "\n\nThe check ended with: 3 passed in 0.1 s"),
        ("touch done; printf 'x%.0s' {1..400}", "\n\nThe check ended with: " + "x" * 300),
        ("touch done", ""),
    ],
)
async def test_the_last_line_of_the_check_is_evidence(tmp_path, command, evidence):
    assert (await run(tmp_path, [EDIT, bash(command)]))[0] == ANSWER + evidence


async def test_the_model_is_told_that_its_answer_was_not_given(tmp_path):
    agent = built(tmp_path, [WRONG_EDIT, CHECK])
    try:
        async with agent.open() as session:
            await session.run("go")
            (results,) = [one for one in session.transcript.messages if isinstance(one, ToolResults)]
            assert "The answer in answer_if_ok was not given, because edit_file failed." in [
                note.text for note in results.notes
            ]
    finally:
        await agent.aclose()


async def test_looking_alone_does_not_end_a_task(tmp_path):
    agent = built(tmp_path, [bash("ls", "I will look first.")], permission_mode="auto")
    try:
        async with agent.open() as session:
            assert (await session.run("go")).text == "late"
            (results,) = [one for one in session.transcript.messages if isinstance(one, ToolResults)]
            (note,) = results.notes
            assert note.text == (
                "answer_if_ok did not end the task, because nothing was changed or run in it: it is for the command "
                "that checks your work. Go on, or answer as text without calls."
            )
    finally:
        await agent.aclose()


async def test_a_check_that_only_reads_ends_a_task_in_which_something_was_changed(tmp_path):
    answer, *rest = await run(tmp_path, [EDIT], [bash("cat a.txt")], permission_mode="auto")
    assert (answer, rest) == (f"{ANSWER}\n\nThe check ended with: new", [2, "completed"])


async def test_an_answer_with_a_schema_is_given_as_text(tmp_path):
    agent = built(tmp_path, [CHECK], '{"sum": 3}')
    try:
        result = await agent.run("go", answer_schema={"type": "object", "required": ["sum"]})
        assert (result.answer, result.steps) == ({"sum": 3}, 2)
    finally:
        await agent.aclose()


async def test_what_the_user_said_meanwhile_is_answered(tmp_path):
    agent = built(tmp_path, [CHECK])
    try:
        async with agent.open() as session:

            def speak(item: object) -> None:
                if isinstance(item, Live) or "ToolStarted" not in type(getattr(item, "event", None)).__name__:
                    return
                session.send("and the other file?")

            assert (await session.run("go", speak)).text == "late"
    finally:
        await agent.aclose()


async def test_the_answer_is_shown_and_the_conversation_goes_on(tmp_path):
    emit = RecordingEmit()
    agent = built(tmp_path, [EDIT, CHECK])
    try:
        async with agent.open() as session:
            await session.run("go", emit)
            texts = [one.item.text for one in emit.items if isinstance(one, Live) and isinstance(one.item, TextDelta)]
            assert texts == [ANSWER]
            assert (await session.run("and now?")).text == "late"
            kinds = [type(one).__name__ for one in session.transcript.messages]
            assert kinds == ["User", "Assistant", "ToolResults", "User", "Assistant"]
            assert isinstance(session.transcript.messages[-2], User)
        async with agent.open(session.id) as again:
            assert [type(one).__name__ for one in again.transcript.messages] == kinds
    finally:
        await agent.aclose()


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_headless_run_prints_it(tmp_path, as_json):
    agent = built(tmp_path, [CHECK])
    try:
        code, out, err = await run_without_user(agent, as_json=as_json)
        assert (code, json.loads(out)["result"] if as_json else out.rstrip("\n")) == (0, ANSWER)
        assert "✓ Run    " in err
    finally:
        await agent.aclose()


async def test_a_model_that_gave_up_on_a_refused_call_has_not_completed_the_task(tmp_path):
    refused = {"name": "write_file", "arguments": {"file_path": "../other.txt", "content": ""}}
    answer, *rest = await run(tmp_path, [EDIT], [refused], [bash("ls")], permission_mode="accept-edits")
    assert (answer, rest) == (f"{ANSWER}\n\nThe check ended with: a.txt", [3, "refused"])


@pytest.mark.parametrize("command", ["false | cat", "false | cat; true", "false; true"])
async def test_the_model_is_told_that_a_part_of_the_check_failed(tmp_path, command):
    agent = built(tmp_path, [EDIT, bash(command)])
    try:
        async with agent.open() as session:
            await session.run("go")
            (results,) = [one for one in session.transcript.messages if isinstance(one, ToolResults)]
            assert [note.text for note in results.notes] == [
                "The answer in answer_if_ok was not given, because a part of the command failed, or it still runs: see "
                "the last lines of its result."
            ]
    finally:
        await agent.aclose()


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("3 passed in 0.1 s|ResourceWarning: unclosed file", "3 passed in 0.1 s"),
        ("  12 passing (40ms)|  23 pending", "12 passing (40ms)"),
        ("Ran 3 tests in 0.1s||OK", "OK"),
        ("test result: ok. 4 passed; 0 failed|done", "test result: ok. 4 passed; 0 failed"),
        ("Tests:       2 passed, 2 total|Snapshots:   0 total", "Tests:       2 passed, 2 total"),
        ("ok  \texample.org/x\t0.1s|bye", "bye"),
        ("all|is|well", "well"),
    ],
)
async def test_a_summary_of_tests_is_better_evidence_than_what_follows_it(tmp_path, lines, line):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lines").write_text(lines.replace("|", "\n") + "\n")
    assert (await run(tmp_path, [EDIT, bash("cat lines")]))[0] == f"{ANSWER}\n\nThe check ended with: {line}"


@pytest.mark.parametrize("stop", ["max_tokens", "pause", "error"])
async def test_a_reply_that_may_lack_calls_does_not_end_the_task(tmp_path, stop):
    assert ANSWER not in (await run(tmp_path, {"tool_calls": [CHECK], "stop": stop}))[0]


async def test_a_refused_call_is_nothing_done(tmp_path):
    refused = {"name": "write_file", "arguments": {"file_path": "a.txt", "content": ""}}
    assert (await run(tmp_path, [refused], [bash("ls")], permission_mode="plan"))[0] == "late"


@pytest.mark.parametrize(
    ("replies", "latest"),
    [
        ([[CHECK]], ANSWER),
        ([[bash("touch done && echo 3 passed")]], f"{ANSWER}\n\nThe check ended with: 3 passed"),
        ([[bash("touch done; exit 3")]], "late"),
        ([[WRONG_EDIT, CHECK], "other"], "other"),
    ],
)
async def test_the_log_gives_the_answer_of_the_turn_again(tmp_path, replies, latest):
    agent = built(tmp_path, *replies)
    try:
        async with agent.open() as session:
            result = await session.run("go")
            answers = answers_in(session.conversation.entries())
    finally:
        await agent.aclose()
    assert result.text == answers.latest == answers.of_turn == latest
