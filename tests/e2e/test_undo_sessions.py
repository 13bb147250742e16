"""After a question in a new session, undo names the earlier session that changed files."""

import json
from pathlib import Path

import pytest
from terminal import START, Terminal
from test_undo_process import Project, differences

NOTHING = "There is nothing to undo: no step has changed a file that was saved."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def ask(project: Project) -> None:
    """A new session with a question."""
    project.replies({"text": "an answer"})
    assert project.run("-p", "what did you do?").returncode == 0


def sessions_of(project: Project) -> list[str]:
    """Ids of the sessions, the oldest first."""
    return sorted(path.stem for path in project.home.rglob("*.jsonl"))


def test_undo_names_the_earlier_session_and_its_command_undoes_it(project: Project) -> None:
    before = project.state()
    project.bash("rm b.txt", is_first=True)
    ask(project)
    (changed, _) = sessions_of(project)
    for arguments in (["undo"], ["undo", "--dry-run"], ["-c", "-p", "/undo"]):
        done = project.run(*arguments)
        assert done.returncode == 1 and NOTHING in done.stderr
        assert f"{changed} (" in done.stderr and '"rm b.txt", +0 ~0 -1)' in done.stderr
        assert f"`bradawl undo {changed}` undoes the last step of that one" in done.stderr
    assert changed in project.run("undo", "--list").stderr and changed in project.run("-c", "-p", "/rewind").stdout
    done = project.run("undo", changed)
    assert done.returncode == 0 and differences(project.state(), before) == {}
    done = project.run("undo")
    assert done.returncode == 1 and "undone already" in done.stderr and changed not in done.stderr


def test_all_sessions_that_changed_files_are_listed(project: Project) -> None:
    assert "no session" in project.run("undo").stderr
    assert "No session of this folder has changed files" in project.run("undo", "--sessions").stdout
    project.bash("rm b.txt", is_first=True)
    project.bash("echo more >> a.txt; echo new > n.txt", is_first=True)
    ask(project)
    done = project.run("undo", "--sessions")
    first, second, how = done.stdout.splitlines()
    assert done.returncode == 0 and "`bradawl undo SESSION`" in how
    older, newer, _ = sessions_of(project)
    assert first.startswith(f"{newer}  ") and first.endswith("+1 ~1 -0  echo more >> a.txt; echo new > n.txt")
    assert second.startswith(f"{older}  ") and second.endswith("+0 ~0 -1  rm b.txt")
    project.run("undo", newer)
    assert newer not in project.run("undo", "--sessions").stdout


def test_a_damaged_log_and_a_missing_store_do_not_stop_the_list(project: Project) -> None:
    project.bash("rm b.txt", is_first=True)
    project.bash("rm c.txt", is_first=True)
    older, newer = sessions_of(project)
    (log,) = project.home.rglob(f"{newer}.jsonl")
    log.write_bytes(b"\xff\n" + log.read_bytes())
    done = project.run("undo", "--sessions")
    assert done.returncode == 0 and older in done.stdout and newer not in done.stdout
    for path in next(project.home.rglob("checkpoints")).iterdir():
        path.unlink()
    done = project.run("undo", "--sessions")
    assert done.returncode == 0 and "not kept any more" in done.stdout


def test_at_a_terminal_a_new_conversation_names_the_earlier_session(project: Project) -> None:
    project.bash("rm b.txt", is_first=True)
    (changed,) = sessions_of(project)
    project.script.write_text(json.dumps([{"text": "an answer"}]))
    terminal = Terminal([*START], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("/undo\r")
        terminal.wait_for("nothing to undo")
        terminal.wait_for(changed[:20])
    finally:
        terminal.end()
