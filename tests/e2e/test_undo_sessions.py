"""After a question in a new session, undo names the earlier session that changed files."""

import json
from pathlib import Path

import pytest
from terminal import START, Terminal
from test_undo_process import Project, bash_call, differences, wait_until

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


def test_what_another_session_restores_while_a_command_runs_stays_at_its_undo(project: Project) -> None:
    project.bash("rm b.txt", is_first=True)
    (first,) = sessions_of(project)
    before = project.state()
    replies = [{"tool_calls": [bash_call("rm c.txt; sleep 3; echo new > n.txt")]}, {"text": "done"}]
    project.replies(*replies)
    with project.started("-y", "-p", "go") as process:
        wait_until(lambda: not (project.root / "c.txt").exists())
        assert project.run("undo", first).returncode == 0
        assert not (project.root / "n.txt").exists(), "the command is over already"
        assert process.wait(60) == 0
    (second,) = (each for each in sessions_of(project) if each != first)
    done = project.run("undo", second)
    assert done.returncode == 0 and "b.txt" not in done.stdout
    changed = differences(project.state(), before)
    assert set(changed) == {"b.txt"} and changed["b.txt"][0] is not None


def test_two_sessions_that_changed_the_same_file_are_undone_one_right_after_the_other(project: Project) -> None:
    before = project.state()
    project.bash("rm b.txt", is_first=True)
    project.bash("cp a.txt b.txt", is_first=True)
    project.bash("rm b.txt", is_first=True)
    for session in reversed(sessions_of(project)):
        assert project.run("undo", session).returncode == 0
    assert differences(project.state(), before) == {}


def test_a_file_that_the_user_edits_while_a_command_runs_is_asked_about(project: Project) -> None:
    project.replies({"tool_calls": [bash_call("rm c.txt; sleep 2; echo new > n.txt")]}, {"text": "done"})
    with project.started("-y", "-p", "go") as process:
        wait_until(lambda: not (project.root / "c.txt").exists())
        (project.root / "b.txt").write_text("mine")
        assert not (project.root / "n.txt").exists(), "the command is over already"
        assert process.wait(60) == 0
    done = project.run("undo")
    assert done.returncode == 1 and "! b.txt: it changed while a command ran that does not name it" in done.stdout
    assert not (project.root / "c.txt").exists()
    done = project.run("undo", "--keep-conflicts")
    assert done.returncode == 0 and (project.root / "b.txt").read_text() == "mine"
    assert (project.root / "c.txt").exists() and not (project.root / "n.txt").exists()


def test_a_session_whose_first_command_was_killed_is_named_and_undone(project: Project) -> None:
    before = project.state()
    project.replies({"tool_calls": [bash_call("rm b.txt && echo removed > gone.txt && sleep 60")]}, {"text": "never"})
    project.kill_when_gone()
    ask(project)
    (killed, _) = sessions_of(project)
    for arguments in (["undo"], ["undo", "--sessions"]):
        done = project.run(*arguments)
        assert killed in done.stdout + done.stderr and "a call did not end" in done.stdout + done.stderr
    assert project.run("undo", killed).returncode == 0
    assert differences(project.state(), before) == {}
    assert killed not in project.run("undo", "--sessions").stdout
