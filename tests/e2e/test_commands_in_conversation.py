"""A whole conversation with commands that open other sessions: the real program, agent and store, in one process."""

import io
import json
import re
from pathlib import Path

import pytest

from bradawl.app.cli import run
from bradawl.app.console import Console


class Talk:
    """Runs of the program in one project."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project, self.shared = (folder / name for name in ("home", "project", "shared"))
        for place in (self.home, self.project, self.shared):
            place.mkdir()
        self.environ = {"HOME": str(self.home), "BRADAWL_SANDBOX": "off", "BRADAWL_MODEL": "scripted/s.json"}

    def script(self, name: str, *replies: dict | str) -> str:
        entries = [{"text": each} if isinstance(each, str) else each for each in replies]
        (self.project / name).write_text(json.dumps(entries))
        return f"scripted/{name}"

    def type(self, *lines: str, argv: tuple[str, ...] = ()) -> str:
        """What the program prints for these lines."""
        out = io.StringIO()
        console = Console(io.StringIO("".join(f"{line}\n" for line in lines)), out, out, self.environ, patience_s=0.05)
        assert run(["-C", str(self.project), *argv], self.environ, console) == 0
        return out.getvalue()


@pytest.fixture
def talk(tmp_path) -> Talk:
    return Talk(tmp_path)


def ids_in(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", text)))


def test_a_conversation_goes_through_forks_models_and_folders_and_all_is_there_the_next_day(talk):
    talk.script("s.json", "One.", "Two.")
    other = talk.script("o.json", "By the other.", "Once more.")
    shown = talk.type(
        "Fix the parser",
        "/rename the parser",
        "/fork another way",
        f"/model {other}",
        "go on",
        "/clear",
        "/resume the parser",
        "/add-dir ../shared",
        "/permissions deny Bash(make:*)",
        "/exit",
    )
    first, fork = sorted(ids_in(shown))[:2]
    assert "By the other." in shown and f"To come back to this session: /resume {fork}" in shown
    assert f"{talk.shared} belongs to the workspace from now on." in shown
    assert f"this session goes on with scripted/{talk.project}/o.json, as you chose in this run" in shown

    status = talk.type("/status", "/permissions", argv=("-r", first))
    assert f"added         {talk.shared}" in status and "name          the parser" in status
    assert " 1  deny  Bash(make:*)  (this session)" in status and "s.json" in status
    status = talk.type("/status", argv=("-r", fork))
    assert "name          another way" in status and "o.json" in status and "added" not in status


def test_a_file_in_an_added_folder_is_written_and_taken_back(talk):
    target = talk.shared / "a.txt"
    target.write_text("before\n")
    call = {"name": "write_file", "arguments": {"file_path": str(target), "content": "after\n"}}
    read = {"name": "read_file", "arguments": {"file_path": str(target)}}
    talk.script("s.json", "Hello.", {"tool_calls": [read]}, {"tool_calls": [call]}, "Written.")
    talk.environ["BRADAWL_PERMISSION_MODE"] = "accept-edits"
    talk.type("hello", "/add-dir ../shared", "/exit")
    talk.script("s.json", {"tool_calls": [read]}, {"tool_calls": [call]}, "Written.")
    shown = talk.type("write it", "/exit", argv=("-c",))
    assert "Written." in shown and target.read_text() == "after\n"
    assert "a.txt" in talk.type("/undo code", "/exit", argv=("-c",))
    assert target.read_text() == "before\n"
