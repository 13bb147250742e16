"""docs/library.md agrees with the program: its examples run, and the fields that it names exist."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import build, results
from test_connections import AUTO, CommandTool, run_of

from bradawl import Agent, ModelSettings, Settings, build_agent
from bradawl.app.build.undo import build_undo
from bradawl.core.errors import SettingsError
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Answer, Choice, Question

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text()


def example(name: str) -> dict[str, Any]:
    """The names that an example of the page defines."""
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found, name
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(found[1], "docs/library.md", "exec", dont_inherit=True), namespace)  # noqa: S102 - the project's own page
    return namespace


def write(name: str, text: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": name, "name": "write_file", "arguments": {"file_path": name, "content": text}}]}


def settings_of(root: Path, script: list[dict[str, Any]], mode: Any = None) -> Settings:
    """Settings of an agent with this script; the workspace is the folder `project` in `root`."""
    (root / "project").mkdir(parents=True, exist_ok=True)
    (root / "script.json").write_text(json.dumps(script))
    return Settings(
        model=ModelSettings("scripted", str(root / "script.json")),
        cwd=str(root / "project"),
        home=str(root / "home"),
        permission_mode=mode,
        sandbox="off",
    )


# ------------------------------------------------------------------ the approver


async def test_the_approver_of_the_page_tells_connections_from_calls() -> None:
    hosts = ("files.example.org", "other.example", "files.example.org:8080")
    script = [run_of(*hosts, name="c"), run_of("files.example.org", name="d"), {"text": "ok"}]
    approver = example("an approver")["MyApprover"]()
    agent, *_ = build(script, tools=(CommandTool(),), policy=lambda: AUTO, approver=approver)
    async with agent.open() as session:
        turn = await session.run("go")
        shown = results(session.transcript.messages)
    assert shown[0].split("; ") == [
        "files.example.org: reached",
        "other.example: the user declined. They said: other.example is not on our list.",
        "files.example.org:8080: the user declined. They said: files.example.org:8080 is not on our list.",
    ]
    assert shown[1] == "files.example.org: reached"
    assert [call.id for call in turn.denials] == ["c"] and turn.reason == "completed"


async def test_the_approver_of_the_page_allows_edits_and_ends_turns_that_need_more(tmp_path: Path) -> None:
    command = {"tool_calls": [{"id": "b", "name": "bash", "arguments": {"command": "touch made"}}]}
    settings = settings_of(tmp_path, [write("new", "1"), command, {"text": "ok"}])
    agent = build_agent(settings, example("an approver")["MyApprover"]())
    try:
        turn = await agent.run("go")
    finally:
        await agent.aclose()
    assert (tmp_path / "project/new").read_text() == "1" and not (tmp_path / "project/made").exists()
    assert [call.name for call in turn.denials] == ["bash"] and turn.reason == "refused"
    assert await example("an approver")["MyApprover"]().choose(Choice("?", ("a", "b"))) == "a"


def test_the_fields_that_the_page_names_exist() -> None:
    table = dict(re.findall(r"^\| (`\w.*?`) \| (.*) \|$", PAGE, re.MULTILINE))
    named = {name for cell in table for name in re.findall(r"`([\w.]+)`", cell)}
    question = Question(ToolCall("c", "bash", "{}"), None, "")  # type: ignore[arg-type]  # only its fields are looked up
    assert {name.partition(".")[0] for name in named} == set(question.__struct_fields__)
    assert {name.partition(".")[2] for name in named if "." in name} == {"tool", "effects"}
    assert Answer(True, "user").scope == "once"


@pytest.mark.parametrize("parameter", ["approver", "changes", "model"])
def test_a_part_that_is_a_class_or_lacks_a_method_is_refused(tmp_path: Path, parameter: str) -> None:
    settings = settings_of(tmp_path, [])

    class Nothing:
        pass

    given: Any = {parameter: Nothing}
    with pytest.raises(SettingsError, match=f"`{parameter}` is the class Nothing; pass an object of the class"):
        build_agent(settings, **given)
    method = {"approver": "ask", "changes": "begin", "model": "open"}[parameter]
    given = {parameter: Nothing()}
    message = f"`{parameter}` is an object of the type Nothing, which has no method {method}"
    with pytest.raises(SettingsError, match=message):
        build_agent(settings, **given)


class EmptyApprover:
    """An approver that counts as false."""

    def __len__(self) -> int:
        return 0

    async def ask(self, question: Question) -> Answer:
        return Answer(True, "user")

    async def choose(self, choice: Choice) -> str | None:
        return None


async def test_an_approver_that_counts_as_false_is_used(tmp_path: Path) -> None:
    agent = build_agent(settings_of(tmp_path, [write("new", "1"), {"text": "ok"}]), EmptyApprover())
    try:
        assert (await agent.run("go")).reason == "completed"
    finally:
        await agent.aclose()
    assert (tmp_path / "project/new").exists()


# ------------------------------------------------------------------ undo


async def test_undo_of_the_page_undoes_the_last_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_of(tmp_path, [write("a", "1"), {"text": "one"}, write("b", "2"), {"text": "two"}], "bypass")
    project = tmp_path / "project"
    agent = build_agent(settings)
    try:
        async with agent.open() as session:
            await session.run("first")
            await session.run("second")
        undo_last_step = example("undo")["undo_last_step"]
        (project / "b").write_text("the user's")
        assert await undo_last_step(agent, settings, session.id) == [str(project / "b").encode()]
        (project / "b").write_text("2")
        capsys.readouterr()
        redo = await undo_last_step(agent, settings, session.id)
        assert redo.kind == "redo"
        printed = capsys.readouterr().out
        assert "2 second\n" in printed and printed.endswith(f"[{str(project / 'b').encode()!r}]\n")
        assert (project / "a").exists() and not (project / "b").exists()
        async with agent.open(session.id) as session:
            with build_undo(session, settings) as undo:
                await undo.carry_out(await undo.plan_redo())
        assert (project / "b").read_text() == "2"
    finally:
        await agent.aclose()


async def test_rewind_moves_the_conversation_to_before_a_step_and_back(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, [{"text": "one"}, {"text": "two"}, {"text": "three"}])
    agent = build_agent(settings)
    try:
        async with agent.open() as session:
            await session.run("first")
            await session.run("second")
            before = list(session.transcript.messages)
            with build_undo(session, settings) as undo:
                step = (await undo.history()).steps[1]
            assert step.name == "2"
            entries = session.conversation.entries()
            assert await session.rewind(step.start, "talk")
            assert [repr(each) for each in session.transcript.messages] == [repr(each) for each in before[:2]]
            assert session.conversation.entries()[: len(entries)] == entries, "no entry is deleted"
            assert await session.rewind(entries[-1].seq, "talk")
            assert len(session.transcript.messages) == len(before)
            await session.run("third")
        assert [repr(each) for each in agent.model.requests[2]][: len(before)] == [repr(each) for each in before]  # type: ignore[attr-defined]  # it is the scripted model
    finally:
        await agent.aclose()


# ------------------------------------------------------------------ changes of the program's own


def agent_with_copies(root: Path, script: list[dict[str, Any]], **changes: Any) -> tuple[Agent, Any, Settings]:
    settings = settings_of(root, script, "bypass")
    (root / "copies").mkdir(exist_ok=True)
    copies = example("changes")["FolderCopies"](root / "project", root / "copies")
    return build_agent(settings, changes=copies, **changes), copies, settings


async def test_changes_of_the_page_are_undone_with_the_files_and_the_conversation(tmp_path: Path) -> None:
    bash = {"id": "r", "name": "bash", "arguments": {"command": "rm a; mkdir d; ln -s nowhere d/link"}}
    script = [write("a", "1"), {"text": "one"}, {"tool_calls": [bash]}, write("a", "2"), {"text": "two"}]
    agent, copies, settings = agent_with_copies(tmp_path, script)
    project = tmp_path / "project"
    try:
        async with agent.open() as session:
            await session.run("first")
            first = tuple(session.transcript.messages)
            await session.run("second")
            assert (project / "a").read_text() == "2" and (project / "d/link").is_symlink()
            await example("changes")["undo_step"](session, copies, "2")
            assert (project / "a").read_text() == "1" and not (project / "d").exists()
            assert tuple(session.transcript.messages) == first
            with pytest.raises(SettingsError, match="built with a `changes` of your own"):
                build_undo(session, settings)
    finally:
        await agent.aclose()
    assert not copies.running and not list(tmp_path.glob("home/projects/*/checkpoints")), "bradawl saved nothing itself"


async def test_a_checkpoint_of_the_program_is_in_the_log(tmp_path: Path) -> None:
    agent, copies, _ = agent_with_copies(tmp_path, [write("a", "1"), {"text": "ok"}])
    try:
        async with agent.open() as session:
            await session.run("go")
            taken = [each.event for each in session.conversation.entries() if hasattr(each.event, "checkpoint_ref")]
    finally:
        await agent.aclose()
    (copy,) = (tmp_path / "copies").iterdir()
    assert [(each.call_id, each.checkpoint_ref) for each in taken] == [("a", copy.name)] and not copies.ended


# ------------------------------------------------------------------ several agents


async def test_several_agents_run_at_once_in_one_loop(tmp_path: Path) -> None:
    agents = [
        build_agent(settings_of(tmp_path / str(n), [write("a", str(n)), {"text": f"did {n}"}], "bypass"))
        for n in range(3)
    ]
    try:
        assert await example("several agents")["run_all"](agents, ["go"] * 3) == ["did 0", "did 1", "did 2"]
    finally:
        for agent in agents:
            await agent.aclose()
    assert [(tmp_path / str(n) / "project/a").read_text() for n in range(3)] == ["0", "1", "2"]


def test_several_agents_run_at_once_in_threads(tmp_path: Path) -> None:
    found: dict[int, str] = {}
    together = threading.Barrier(3)

    def run(n: int) -> None:
        settings = settings_of(tmp_path / str(n), [write("a", str(n)), {"text": f"did {n}"}], "bypass")
        together.wait()
        found[n] = build_agent(settings).run_sync("go").text

    threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: f"did {n}" for n in range(3)}
    assert [(tmp_path / str(n) / "project/a").read_text() for n in range(3)] == ["0", "1", "2"]
