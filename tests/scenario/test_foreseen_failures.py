"""A call that can only fail is answered with its error; the user is not asked about it."""

from collections.abc import Callable
from typing import Any

import pytest
from scripted_agent import assert_valid, build, results

from bradawl.core.permissions import Answer, Choice, Policy, Question
from bradawl.testing.fakes import MemoryFiles
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile

ASKS = Policy(roots=("/project",))
TEXT = b"one = 1\ntwo = 2\ntwo = 2\n"


def edit(old: str, new: str, path: str = "a.py") -> dict[str, Any]:
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return {"id": "c", "name": "edit_file", "arguments": arguments}


def edits(*pairs: tuple[str, str]) -> dict[str, Any]:
    given = [{"file_path": "a.py", "old_string": old, "new_string": new} for old, new in pairs]
    return {"id": "c", "name": "multi_edit", "arguments": {"edits": given}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"id": "c", "name": "write_file", "arguments": {"file_path": path, "content": content}}


class User:
    """Allows every call, after a change of the files."""

    def __init__(self, files: MemoryFiles, change: Callable[[MemoryFiles], None]) -> None:
        self.files, self.change, self.asked = files, change, 0

    async def ask(self, question: Question) -> Answer:
        del question
        self.asked += 1
        self.change(self.files)
        return Answer(True, "user")

    async def choose(self, choice: Choice) -> str | None:
        del choice
        return None


async def run(
    call: dict[str, Any], policy: Policy = ASKS, change: Callable[[MemoryFiles], None] = lambda _: None
) -> tuple[str, int, dict[str, bytes]]:
    """The result of the call, the number of questions, and the files afterwards."""
    files = MemoryFiles({"/project/a.py": TEXT, "/project/folder/x": b"", "/other/secret.py": TEXT})
    user = User(files, change)
    tools = (EditFile(), MultiEdit(), WriteFile(), ReadFile(), Bash())
    agent, *_ = build(
        [{"tool_calls": [call]}, {"text": "done"}], tools=tools, files=files, approver=user, policy=lambda: policy
    )
    async with agent.open() as session:
        await session.run("go")
        assert_valid(session.transcript.messages)
        return results(session.transcript.messages)[0], user.asked, files.files


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (edit("three = 3", "x"), "was not found"),
        (edit("two = 2", "x"), "2"),
        (edit("one = 1", "x", "gone.py"), "does not exist"),
        (edit("one = 1", "x", "folder"), "folder"),
        (edits(("one = 1", "one = 2"), ("three", "four")), "1 of 2 edits can't be made"),
        (write("a.py", "new\n"), "you have not read it"),
        (write("folder/", "new\n"), "names a folder"),
        ({"id": "c", "name": "bash", "arguments": {"command": "vim a.py"}}, "terminal"),
    ],
)
async def test_what_can_only_fail_is_not_asked_about(call, said):
    shown, asked, files = await run(call)
    assert asked == 0
    assert said in shown
    assert files["/project/a.py"] == TEXT


@pytest.mark.parametrize("call", [edit("one = 1", "one = 3"), edits(("one = 1", "one = 3")), write("b.py", "1\n")])
async def test_what_can_succeed_is_asked_about_once_and_done(call):
    shown, asked, files = await run(call)
    assert asked == 1
    assert shown.startswith(("Edited", "Wrote"))
    assert files != {"/project/a.py": TEXT}


async def test_the_error_is_the_one_that_the_tool_raises_when_it_runs():
    call = edit("three = 3", "x")
    foreseen, _, _ = await run(call)
    ran, asked, _ = await run(call, Policy("bypass"))
    assert foreseen == ran and asked == 0


async def test_a_file_that_changes_while_the_user_is_asked_is_not_changed():
    def change(files: MemoryFiles) -> None:
        files.files["/project/a.py"] = b"uno = 1\n"

    shown, asked, files = await run(edit("one = 1", "one = 3"), change=change)
    assert asked == 1
    assert not shown.startswith("Edited")
    assert files["/project/a.py"] == b"uno = 1\n"


async def test_a_file_that_may_not_be_read_without_a_question_is_not_read_before_it():
    for old in ("one = 1", "three = 3"):  # else the answers would tell what is in it
        _, asked, _ = await run(edit(old, "x", "/other/secret.py"))
        assert asked == 1
