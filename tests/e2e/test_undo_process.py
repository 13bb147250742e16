"""Undo of what real commands did, by the real program: afterwards, and after a redo, every byte is the same."""

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminal import START, Terminal, run_program

GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b.example",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.example",
}
COMMANDS = (
    "mv b.txt m.txt && rm c.txt && chmod 755 run.sh && ln -s a.txt link && mkdir -p empty/inner && echo new > n.txt",
    "git add -A && git commit -qm second && printf 'third\\n' >> a.txt && git commit -qam amended --amend",
    "printf stashed >> a.txt && git stash push -qu && git stash drop -q",
    "printf unsaved >> a.txt && printf staged > s.txt && git add s.txt",
    "git reset -q --hard HEAD~1",
    "git clean -qfdx",
)


class Project:
    """A repository whose filters leave a marker, and the program in it with a scripted model."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home, self.script = folder / "project", folder / "home", folder / "script.json"
        self.marker = folder / "marker"
        self.root.mkdir()
        self.home.mkdir()
        self.environ = {
            **GIT,
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "BRADAWL_MODEL": f"scripted/{self.script}",
        }
        for name in ("a.txt", "b.txt", "c.txt"):
            (self.root / name).write_bytes(f"{name}\r\nsecond line\r\n".encode())
        (self.root / "run.sh").write_text("#!/bin/sh\n")
        (self.root / ".gitignore").write_text("ignored/\n")
        (self.root / "ignored").mkdir()
        (self.root / "ignored" / "kept.bin").write_bytes(bytes(range(256)))
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        (self.root / ".gitattributes").write_text("*.txt eol=crlf filter=mark\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "attributes")
        command = f"sh -c 'echo ran >> {self.marker} 2>/dev/null; cat'"
        self.git("config", "filter.mark.clean", command)
        self.git("config", "filter.mark.smudge", command)
        self.git("config", "core.fsmonitor", f"sh -c 'echo ran >> {self.marker} 2>/dev/null; false'")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=", *arguments],
            cwd=self.root,
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return run_program(argv, self.root, self.environ)

    def bash(self, command: str, *, is_first: bool = False) -> None:
        """A run in which the model makes one call of bash."""
        self.replies({"tool_calls": [bash_call(command)]}, {"text": "done"})
        done = self.run(*([] if is_first else ["-c"]), "-y", "-p", command)
        assert done.returncode == 0, done.stderr
        assert "✓ Run    " in done.stderr, done.stderr

    def started(self, *argv: str, stderr: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        """The program, which runs; a context manager waits for its end."""
        return subprocess.Popen(
            [*START, *argv],
            cwd=self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )

    def kill_when_gone(self, *flags: str, end_all: bool = False) -> None:
        """Run a prompt, and kill the program when `gone.txt` exists; or end all its processes, as a shutdown does."""
        with self.started(*flags, "-y", "-p", "break it") as process:
            wait_until((self.root / "gone.txt").exists)
            if end_all:
                tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
                for pid in (*(int(each) for task in tasks for each in task.read_text().split()), process.pid):
                    os.kill(pid, signal.SIGTERM)
            else:
                process.kill()

    def replies(self, *replies: dict[str, Any]) -> None:
        self.script.write_text(json.dumps(replies))

    def state(self) -> dict[str, object]:
        """All paths with kind, mode and content; of git's data those that decide where branches and the index are."""
        found: dict[str, object] = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if name.startswith((".git/objects", ".git/hooks")) or name.endswith("COMMIT_EDITMSG"):
                continue
            mode = path.lstat().st_mode
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = stat.filemode(mode), path.read_bytes()
            else:
                found[name] = stat.filemode(mode)
        return found


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def bash_call(command: str) -> dict[str, Any]:
    return {"id": f"call_{abs(hash(command))}", "name": "bash", "arguments": {"command": command}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def differences(one: dict[str, object], other: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {name: (one.get(name), other.get(name)) for name in {**one, **other} if one.get(name) != other.get(name)}


@pytest.mark.timeout(300)
def test_discarded_work_comes_back_to_the_byte_and_no_filter_runs(project: Project) -> None:
    states = [project.state()]
    for number, command in enumerate(COMMANDS):
        project.bash(command, is_first=number == 0)
        states.append(project.state())
    project.marker.unlink(missing_ok=True)

    for expected in states[-2::-1]:
        dry = project.run("undo", "--dry-run")
        assert dry.returncode == 0, dry.stderr
        assert len(dry.stdout.splitlines()) <= 50
        done = project.run("undo")
        assert done.returncode == 0, done.stdout + done.stderr
        assert differences(project.state(), expected) == {}, done.stdout
    assert project.run("undo").returncode == 1
    for expected in states[1:]:
        done = project.run("undo", "--redo")
        assert done.returncode == 0, done.stdout + done.stderr
        assert differences(project.state(), expected) == {}, done.stdout

    done = project.run("undo", "--to", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), states[0]) == {}, done.stdout
    assert not project.marker.exists(), "a program of the project's git configuration was started"
    project.git("fsck", "--strict")
    subprocess.run(["git", "status"], cwd=project.root, env=project.environ, check=True, capture_output=True)
    assert project.marker.exists(), "git itself starts them"


def test_a_dry_run_names_what_a_hard_reset_discarded(project: Project) -> None:
    project.bash("printf 'my work' > work.txt && git add -A && printf more >> work.txt", is_first=True)
    (project.root / "mine.txt").write_text("the user's own, never committed")
    project.bash("git add -A && git reset -q --hard")
    assert not (project.root / "work.txt").exists() and not (project.root / "mine.txt").exists()
    dry = project.run("undo", "--dry-run").stdout
    assert "+ work.txt (11 bytes)" in dry and "+ mine.txt" in dry and "git reset" in dry
    assert project.run("undo").returncode == 0
    assert (project.root / "work.txt").read_text() == "my workmore"
    assert (project.root / "mine.txt").read_text() == "the user's own, never committed"
    assert "work.txt" in project.git("diff", "--cached", "--name-only")


def test_undo_and_redo_in_one_conversation_at_a_terminal(project: Project) -> None:
    project.replies(
        {"tool_calls": [bash_call("printf 2 >> a.txt && rm b.txt")]},
        {"text": "finished one"},
        {"tool_calls": [bash_call("rm c.txt")]},
        {"text": "finished two"},
    )
    before = project.state()
    terminal = Terminal([*START, "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("do it\r")
        terminal.wait_for("finished one")
        terminal.wait_for("cost unknown")  # the turn is over: what is typed before waits for its end
        after = project.state()
        terminal.type("/undo\r")
        terminal.wait_for("/redo takes this back")
        assert differences(project.state(), before) == {}
        terminal.type("/redo\r")
        terminal.wait_for("Redone")
        assert differences(project.state(), after) == {}
        terminal.type("again\r")
        terminal.wait_for("finished two")
        terminal.type("/mode\r")  # answered after the end of the turn, when the search is over
        terminal.wait_for("mode bypass")
        (project.root / "c.txt").write_text("mine")
        terminal.type("/undo\r")
        terminal.wait_for("Changed by you or another program since")
        terminal.wait_for("Restore [a]ll files")
        terminal.type("n\r")
        terminal.wait_for("Nothing was changed")
        assert (project.root / "c.txt").read_text() == "mine"
    finally:
        terminal.end()


def test_an_edit_and_its_conversation_are_undone(project: Project) -> None:
    edit = {"file_path": "a.txt", "old_string": "second", "new_string": "2nd"}
    project.replies(
        {"tool_calls": [{"id": "read", "name": "read_file", "arguments": {"file_path": "a.txt"}}]},
        {"tool_calls": [{"id": "edit", "name": "edit_file", "arguments": edit}]},
        {"text": "edited"},
    )
    before = project.state()
    assert project.run("-y", "-p", "edit").returncode == 0
    assert b"2nd" in (project.root / "a.txt").read_bytes()
    done = project.run("-c", "-p", "/undo")
    assert done.returncode == 0, done.stderr
    assert differences(project.state(), before) == {}
    listed = project.run("-c", "-p", "/rewind").stdout
    assert "edit" in listed and "taken back" not in listed.splitlines()[0]


def test_it_refuses_while_a_job_runs(project: Project) -> None:
    job = {"id": "job", "name": "bash", "arguments": {"command": "rm c.txt; sleep 60", "run_in_background": True}}
    project.replies({"tool_calls": [job]}, {"text": "finished one"})
    terminal = Terminal([*START, "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("do it\r")
        terminal.wait_for("finished one")
        terminal.wait_for("cost unknown")  # the turn is over
        terminal.type("/undo\r")
        terminal.wait_for("background job is running")
    finally:
        terminal.end()
    done = project.run("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project.root / "c.txt").exists() and "A background job ran" in done.stdout


def test_a_job_is_ended_at_the_terminal_and_then_undone(project: Project) -> None:
    before = project.state()
    job = {"id": "job", "name": "bash", "arguments": {"command": "rm c.txt; sleep 60", "run_in_background": True}}
    project.replies({"tool_calls": [job]}, {"text": "finished one"}, {"text": "finished two"})
    terminal = Terminal([*START, "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("do it\r")
        terminal.wait_for("finished one")
        terminal.wait_for("cost unknown")  # the turn is over
        terminal.type("/undo\r")
        terminal.wait_for("`/jobs end job-1`")
        terminal.type("/jobs\r")
        terminal.wait_for("job-1  running")
        terminal.type("/jobs end job-2\r")
        terminal.wait_for("There is no background job 'job-2' to end; running: job-1.")
        terminal.type("/jobs end job-1\r")
        terminal.wait_for("Ended job-1.")
        terminal.type("/jobs\r")
        terminal.wait_for("job-1  ended by SIGTERM")
        terminal.type("/undo\r")
        terminal.wait_for("/redo takes this back")
    finally:
        terminal.end()
    assert differences(project.state(), before) == {}


def test_an_undo_after_a_job_ended_takes_back_the_last_step_and_not_all_since_the_job_began(project: Project) -> None:
    line = "while true; do date +%N > tick; sleep 0.05; done"
    job = {"id": "job", "name": "bash", "arguments": {"command": line, "run_in_background": True}}
    project.replies(
        {"tool_calls": [job]},
        {"tool_calls": [bash_call("sleep 0.3; rm b.txt")]},
        {"tool_calls": [bash_call("sleep 0.3; rm c.txt")]},
        {"tool_calls": [bash_call("sleep 0.3")]},
        {"tool_calls": [{"id": "kill", "name": "bash_kill", "arguments": {"job_id": "job-1"}}]},
        {"text": "done"},
    )
    before = project.state()
    assert project.run("-y", "-p", "go").returncode == 0
    dry = project.run("undo", "--dry-run").stdout
    assert "back to before step 1.3" in dry and "+ c.txt" in dry and "b.txt" not in dry, dry
    assert "~ tick" in dry, dry
    done = project.run("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project.root / "c.txt").exists() and not (project.root / "b.txt").exists()
    done = project.run("undo", "--to", "1")
    assert done.returncode == 0 and differences(project.state(), before) == {}, done.stdout


def test_what_a_job_writes_until_the_terminal_is_left_is_undone(project: Project) -> None:
    """The job writes before, during and after another command, and ends because the user leaves."""
    before = project.state()
    line = "for i in $(seq 1000); do echo $i > written; sleep 0.02; done"
    job = {"id": "job", "name": "bash", "arguments": {"command": line, "run_in_background": True}}
    project.replies(
        {"tool_calls": [job]},
        {"tool_calls": [bash_call("sleep 0.3; rm c.txt")]},
        {"text": "finished one"},
        {"text": "finished two"},
    )
    terminal = Terminal([*START, "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("do it\r")
        terminal.wait_for("finished one")
        terminal.wait_for("cost unknown")  # the turn is over: what is typed before goes along with a later prompt
        terminal.type("again\r")
        terminal.wait_for("finished two")
        terminal.type("/exit\r")
        terminal.wait_for("To resume this session")
    finally:
        terminal.end()
    assert (project.root / "written").exists()
    done = project.run("undo", "--to", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


def _beside_a_server(project: Project) -> None:
    """While only the job runs, the user commits, branches and writes a file; then the model writes `a.py`."""
    line = "while true; do date +%N > server.log; sleep 0.05; done"
    job = {"id": "job", "name": "bash", "arguments": {"command": line, "run_in_background": True}}
    write = {"id": "write", "name": "write_file", "arguments": {"file_path": "a.py", "content": "a\n"}}
    kill = {"id": "kill", "name": "bash_kill", "arguments": {"job_id": "job-1"}}
    project.replies(
        {"tool_calls": [job]},
        {"text": "finished one"},
        {"tool_calls": [write]},
        {"text": "finished two"},
        {"tool_calls": [kill]},
        {"text": "finished three"},
    )
    terminal = Terminal([*START, "-y"], project.root, project.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("serve\r")
        terminal.wait_for("finished one")
        terminal.wait_for("cost unknown")
        (project.root / "mine.txt").write_text("mine")
        project.git("add", "mine.txt")
        project.git("commit", "-qm", "mine")
        project.git("branch", "mybranch")
        (project.root / "draft.txt").write_text("draft")
        terminal.type("write\r")
        terminal.wait_for("finished two")
        terminal.type("/mode\r")  # answered after the end of the turn
        terminal.wait_for("mode bypass")
        terminal.type("stop\r")
        terminal.wait_for("finished three")
        terminal.type("/jobs\r")
        terminal.wait_for("job-1  ended by SIGTERM")
        terminal.type("/undo\r")
        terminal.wait_for("While only job-1 ran, these changed, perhaps by you: .git/")
        terminal.wait_for("Restore the [o]ther files")
        terminal.type("n\r")
        terminal.wait_for("Nothing was changed")
    finally:
        terminal.end()


def test_what_the_user_did_beside_a_server_is_undone_only_if_the_user_says_so(project: Project) -> None:
    _beside_a_server(project)
    before, log = project.state(), project.git("log", "--oneline", "--all")
    refused = project.run("undo")
    assert refused.returncode == 1 and project.state() == before, refused.stdout + refused.stderr
    for name in ("mine.txt", "draft.txt", ".git/refs/heads/main", ".git/refs/heads/mybranch", ".git/index"):
        assert name in refused.stdout and name in refused.stderr, refused.stderr
    assert project.run("undo", "--dry-run").returncode == 1
    kept = project.run("undo", "--keep-conflicts")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert "Left alone: while only job-1 ran, these changed, perhaps by you: .git/" in kept.stdout
    assert (project.root / "mine.txt").exists() and (project.root / "draft.txt").exists()
    assert not (project.root / "a.py").exists() and project.git("log", "--oneline", "--all") == log
    assert project.run("undo", "--redo").returncode == 0 and project.state() == before


def test_what_the_user_did_beside_a_server_can_be_undone_too(project: Project) -> None:
    before = project.state()
    _beside_a_server(project)
    refused = project.run("undo", "--to", "1", "--force", "draft.txt")
    named, _, advice = refused.stderr.partition("`")
    assert refused.returncode == 1 and "draft.txt" not in named and "mine.txt" in named, refused.stderr
    assert advice.startswith("bradawl undo --to 1 --force draft.txt --keep-conflicts`")
    done = project.run("undo", "--to", "1", "--force", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}
