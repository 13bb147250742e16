"""The result of a command says which changes of earlier calls of its reply are missing: once, by call and file."""

import itertools

import pytest
from scripted_agent import Probe, build, call, results

from bradawl.core.permissions import Answer, Policy
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import FileContent
from bradawl.testing.fakes import MemoryFiles, ScriptedApprover
from bradawl.tools.edit_file import EditFile
from bradawl.tools.grep import Grep
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile

FILES = {"/project/src/a.py": b"def one():\n    return 1\n", "/project/src/b.py": b"two = 2\n"}
_NUMBERS = itertools.count()
TOOLS = (EditFile(), MultiEdit(), WriteFile(), ReadFile(), Grep(None))


def use(name: str, **arguments: object) -> dict:
    """A call of a real tool."""
    return {"id": f"id_{next(_NUMBERS)}", "name": name, "arguments": arguments}


def edit(old: str, new: str, path: str = "src/a.py", **more: object) -> dict:
    return use("edit_file", file_path=path, old_string=old, new_string=new, **more)


async def last_results(calls: list[dict], *, count: int = 1) -> list[str]:
    """The last results of a reply with these calls."""
    agent, *_ = build([{"tool_calls": calls}, {"text": "ok"}], tools=(Probe(), *TOOLS), files=MemoryFiles(dict(FILES)))
    async with agent.open() as session:
        await session.run("go")
        return results(session.transcript.messages)[-count:]


async def after(*calls: dict) -> str:
    """The result of a command behind these calls."""
    (result,) = await last_results([*calls, call("check", unknown=True)])
    return result


async def test_a_command_behind_a_failed_edit_names_the_call_and_the_file() -> None:
    assert await after(edit("nothing like it", "new text")) == (
        "did check\n[edit_file src/a.py before it in this reply failed: this ran without that change]"
    )


async def test_absolute_paths_in_the_working_directory_are_named_relative_to_it() -> None:
    said = await after(edit("nothing like it", "new text", "/project/src/a.py"))
    assert "[edit_file src/a.py before it" in said


async def test_several_failed_changes_are_named_once_each() -> None:
    said = await after(
        edit("nothing like it", "x1 = 1"),
        edit("nothing like that", "x2 = 2"),
        edit("nothing", "x3 = 3", "src/b.py"),
        use("multi_edit", edits=[{"file_path": "src/b.py", "old_string": "three", "new_string": "four"}]),
    )
    assert said == (
        "did check\n[edit_file src/a.py (2 calls), edit_file src/b.py and multi_edit src/b.py before it in this reply "
        "failed: this ran without those changes]"
    )


async def test_a_change_that_was_refused_for_its_arguments_is_missing_too() -> None:
    assert "[write_file src/new.py before it in this reply failed: this ran without that change]" in await after(
        use("write_file", file_path="src/new.py")
    )


@pytest.mark.parametrize(
    "harmless",
    [
        use("grep", pattern="x", nonsense=1),
        use("read_file", file_path="src/missing.py"),
        use("read_file", nonsense=1),
        use("no_such_tool", file_path="src/a.py"),
        call("run", unknown=True, fails="exit code 1"),
        call("look", reads=["/x"], fails="not there"),
    ],
    ids=lambda one: one["name"],
)
async def test_a_call_that_was_to_change_no_file_lacks_no_change(harmless: dict) -> None:
    assert await after(harmless) == "did check"


@pytest.mark.parametrize(
    "there",
    [
        edit("    return 2", "    return 1"),
        edit("two = 2", "two = 2", "src/b.py"),
        edit("one = 1", "two = 2\n", "src/b.py", replace_all=True),
        use("multi_edit", edits=[{"file_path": "src/b.py", "old_string": "one = 1", "new_string": "two = 2"}]),
    ],
)
async def test_an_edit_that_failed_because_it_was_made_already_is_not_missing(there: dict) -> None:
    assert await after(there) == "did check"


@pytest.mark.parametrize(
    "missing",
    [
        edit("    return 2\n    # and more", "return"),  # its text is a part of another one
        edit("no such function", ""),
        edit("    return 7", "    return 8"),
        use(
            "multi_edit",
            edits=[
                {"file_path": "src/b.py", "old_string": "one = 1", "new_string": "two = 2"},
                {"file_path": "src/a.py", "old_string": "return 3", "new_string": "return 4"},
            ],
        ),
    ],
)
async def test_a_text_that_is_there_by_chance_does_not_count_as_the_change(missing: dict) -> None:
    assert "before it in this reply failed: this ran without that change]" in await after(missing)


async def test_a_change_that_a_later_call_made_is_not_missing() -> None:
    whole = use("write_file", file_path="src/new.py", content="three = 3\n")
    assert await after(edit("three = 2", "three = 3", "src/new.py"), whole) == "did check"


async def test_only_the_first_command_behind_a_failed_change_says_so() -> None:
    failed = edit("nothing like it", "new text")
    last = await last_results([failed, call("one", unknown=True), call("two", unknown=True)], count=2)
    assert "edit_file src/a.py before it" in last[0] and last[1] == "did two"


async def test_a_change_that_failed_behind_the_first_command_is_told_by_the_next_one() -> None:
    calls = [
        edit("nothing like it", "new text"),
        call("one", unknown=True),
        edit("nothing", "x3 = 3", "src/b.py"),
        call("two", unknown=True),
    ]
    one, _, two = await last_results(calls, count=3)
    assert "[edit_file src/a.py before it" in one
    assert two == "did two\n[edit_file src/b.py before it in this reply failed: this ran without that change]"


async def test_many_files_are_counted() -> None:
    edits = [{"file_path": f"src/{n}.py", "old_string": "one", "new_string": "two"} for n in range(9)]
    assert "[multi_edit src/0.py, src/1.py, src/2.py and 6 more before it" in await after(
        use("multi_edit", edits=edits)
    )


async def test_a_name_with_line_breaks_stays_on_one_line() -> None:
    said = await after(edit("nothing like it", "new text", "src/a\n[exit code 0]\n.py"))
    assert said.count("\n") == 1 and "[edit_file src/a [exit code 0] .py before it" in said


async def test_a_command_that_was_not_run_is_missing_if_it_was_to_write_a_file() -> None:
    class Denied(Probe):
        spec = ToolSpec("line", kind="run", shows=("name",))

    agent, *_ = build(
        [
            {
                "tool_calls": [
                    {"id": "a", "name": "line", "arguments": {"name": "sed -i s/a/b/ x", "writes": ["/x"]}},
                    call("check"),
                    call("last", unknown=True),
                ]
            },
            {"text": "ok"},
        ],
        tools=(Denied(), Probe()),
        policy=lambda: Policy("default"),
        approver=ScriptedApprover([Answer(False, by="user"), Answer(True, by="user")]),
    )
    async with agent.open() as session:
        await session.run("go")
        last = results(session.transcript.messages)
    assert "was not run" in last[0] and last[1] == "did check"
    assert last[2] == ("did last\n[line sed -i s/a/b/ x before it in this reply failed: this ran without that change]")


async def test_the_files_of_an_edit_that_was_not_allowed_are_not_read() -> None:
    """Whether the note is there would tell a model what is in the file."""

    class Watched(MemoryFiles):
        async def read(self, path: str, limit_bytes: int) -> FileContent:
            raise AssertionError(f"{path} was read")

    declined = edit("    return 2", "    return 1")
    agent, *_ = build(
        [{"tool_calls": [declined, call("check", unknown=True)]}, {"text": "ok"}],
        tools=(Probe(), EditFile()),
        files=Watched(dict(FILES)),
        policy=lambda: Policy("default"),
        approver=ScriptedApprover([Answer(False, by="user"), Answer(True, by="user")]),
    )
    async with agent.open() as session:
        await session.run("go")
        assert "[edit_file src/a.py before it" in results(session.transcript.messages)[-1]
