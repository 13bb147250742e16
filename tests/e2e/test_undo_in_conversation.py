"""`/undo` at a terminal: it can be stopped, and says what is needed where the project's folder is gone."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from terminal import START, Terminal
from test_undo_process import Project, differences


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def bash(command: str) -> dict[str, Any]:
    return {"id": "c1", "name": "bash", "arguments": {"command": command}}


def removes_many_files(project: Project) -> dict[str, object]:
    """Let the model remove 4,000 files. Returns the state of the project before that."""
    many = project.root / "many"
    many.mkdir()
    for number in range(4_000):
        (many / str(number)).write_text(str(number))
    project.replies({"tool_calls": [bash("rm -r many")]}, {"text": "finished one"})
    return project.state()


def test_ctrl_c_stops_an_undo_of_many_files_in_a_conversation(project: Project) -> None:
    before = removes_many_files(project)
    terminal = Terminal([*START, "--plain", "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("do it\r")
        terminal.wait_for("cost unknown")
        terminal.type("/undo\r")
        while not (project.root / "many/0").exists():
            assert terminal.process.poll() is None
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("of 4,001 files were restored. Run `/undo` again to finish, or `/redo` to go back to")
        terminal.type("/undo\r")
        terminal.wait_for("/redo takes this back")
        assert differences(project.state(), before) == {}
    finally:
        terminal.end()


def test_a_terminal_that_goes_on_with_a_session_says_that_its_undo_was_killed(project: Project) -> None:
    before = removes_many_files(project)
    assert project.run("-y", "-p", "do it").returncode == 0
    undo = subprocess.Popen(
        [*START, "undo"], cwd=project.root, env=project.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (project.root / "many/0").exists():
        assert undo.poll() is None
    undo.kill()
    undo.wait()
    terminal = Terminal([*START, "--plain", "-y", "-c"], project.root, project.environ)
    try:
        terminal.wait_for("stopped in the middle")
        terminal.wait_for("> ")
        terminal.type("/undo\r")
        terminal.wait_for("/redo takes this back")
    finally:
        terminal.end()
    assert differences(project.state(), before) == {}


def test_a_project_that_was_removed_comes_back_once_its_folder_exists(project: Project) -> None:
    before = project.state()
    project.replies(
        {"tool_calls": [bash("python3 -c 'import os, shutil; shutil.rmtree(os.getcwd())'")]}, {"text": "finished one"}
    )
    terminal = Terminal([*START, "--plain", "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("do it\r")
        terminal.wait_for("cost unknown")
        assert not project.root.exists()
        terminal.type("/undo\r")
        terminal.wait_for("Make it again")
        project.root.mkdir()
        terminal.type("/undo\r")
        terminal.wait_for("Restore the [o]ther files")  # git has no objects any more for the rest
        terminal.type("o\r")
        terminal.wait_for("/redo takes this back")
    finally:
        terminal.end()
    after = project.state()
    changed = differences(before, after)
    assert not [name for name in changed if not name.startswith(".git/")], changed


def test_an_undo_without_a_terminal_that_a_signal_stops_says_how_far_it_came(project: Project) -> None:
    many = project.root / "many"
    many.mkdir()
    for number in range(4_000):
        (many / str(number)).write_text(str(number))
    project.bash("rm -r many", is_first=True)
    with subprocess.Popen(
        [*START, "-c", "-p", "/undo"],
        cwd=project.root,
        env=project.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (project.root / "many/0").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert re.search(r"Stopped: [\d,]+ of 4,001 files were restored. Run `/undo` again to finish", said), said
