"""What calls changed comes back although the program was killed; what the user changed since is asked about."""

import subprocess
import time
from pathlib import Path

import pytest
from test_undo_process import Project, bash_call, differences, wait_until


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def wait_for_search(project: Project) -> None:
    """Wait until the last changes of the killed program were searched for."""
    wait_until(lambda: not list(project.home.rglob("*.calls")))


def test_what_an_interrupted_command_removed_comes_back(project: Project) -> None:
    """The program is killed in the middle of a command; `bradawl undo` finds what the command had done."""
    project.bash("printf 1 > first.txt", is_first=True)
    before = project.state()
    command = "rm -r a.txt b.txt ignored && echo removed > gone.txt && sleep 60"
    project.replies({"tool_calls": [bash_call(command)]}, {"text": "never"})
    project.kill_when_gone("-c")
    dry = project.run("undo", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "+ a.txt" in dry.stdout and "+ ignored/kept.bin" in dry.stdout, dry.stdout
    done = project.run("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


def test_what_an_interrupted_command_removed_comes_back_if_an_undo_is_killed_while_it_searches(
    project: Project,
) -> None:
    before = project.state()
    command = "rm -r a.txt b.txt ignored && echo removed > gone.txt && sleep 60"
    project.replies({"tool_calls": [bash_call(command)]}, {"text": "never"})
    project.kill_when_gone()
    assert project.run("undo", "--list").returncode == 0
    (log,) = project.home.rglob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    closed = next(number for number, line in enumerate(lines, 1) if b'"type":"TurnFinished"' in line)
    assert any(b'"type":"CheckpointTaken"' in line for line in lines[closed:])
    log.write_bytes(b"".join(lines[:closed]))  # as the first undo leaves it if it is killed then
    assert "a call did not end" in project.run("undo", "--sessions").stdout
    done = project.run("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


def test_what_an_ended_command_removed_comes_back_if_all_processes_get_a_signal(project: Project) -> None:
    before = project.state()
    command = "rm -r a.txt b.txt ignored && echo removed > gone.txt && sleep 60"
    project.replies({"tool_calls": [bash_call(command)]}, {"text": "never"})
    project.kill_when_gone(end_all=True)
    done = project.run("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


def test_what_the_user_changes_after_the_program_is_killed_is_asked_about(project: Project) -> None:
    project.bash("printf 1 > first.txt", is_first=True)
    before = project.state()
    command = "rm a.txt && echo model > b.txt && echo model > new.txt && echo removed > gone.txt && sleep 60"
    project.replies({"tool_calls": [bash_call(command)]}, {"text": "never"})
    project.kill_when_gone("-c")
    wait_for_search(project)
    (project.root / "c.txt").write_text("mine")
    (project.root / "new.txt").write_text("mine")
    refused = project.run("undo")
    assert refused.returncode == 1 and "maybe you changed it" in refused.stderr + refused.stdout, refused
    assert (project.root / "c.txt").read_text() == (project.root / "new.txt").read_text() == "mine"
    assert not (project.root / "a.txt").exists()
    kept = project.run("undo", "--keep-conflicts")
    assert set(differences(project.state(), before)) == {"c.txt", "new.txt"}, kept


def test_what_a_job_and_a_command_changed_comes_back_if_the_program_is_killed(project: Project) -> None:
    before = project.state()
    job = {
        "id": "job",
        "name": "bash",
        "arguments": {
            "command": "rm b.txt; echo 1 >> log.txt; while sleep 0.05; do echo 2 >> log.txt; done",
            "run_in_background": True,
        },
    }
    last = bash_call("until [ -e log.txt ]; do sleep 0.05; done; rm a.txt; sleep 0.3; echo > gone.txt; sleep 60")
    project.replies({"tool_calls": [job]}, {"tool_calls": [last]}, {"text": "never"})
    project.kill_when_gone()
    wait_for_search(project)
    (project.root / "c.txt").write_text("mine")
    asked = project.run("undo", "--to", "1")
    assert asked.returncode == 1 and "! c.txt: " in asked.stderr + asked.stdout, asked
    assert "! a.txt" not in asked.stderr + asked.stdout, "the command alone ran when it removed the file"
    done = project.run("undo", "--to", "1", "--force", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


def test_what_a_sub_agent_changed_comes_back_if_the_program_is_killed(project: Project) -> None:
    before = project.state()
    task = {"id": "task", "name": "agent", "arguments": {"prompt": "go", "description": "go"}}
    command = "rm -r a.txt ignored && echo model > b.txt && echo > gone.txt && sleep 60"
    project.replies({"tool_calls": [task]}, {"tool_calls": [bash_call(command)]}, {"text": "never"})
    project.kill_when_gone()
    done = project.run("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


@pytest.mark.parametrize("delay_s", [0, 0.5])
def test_the_last_step_comes_back_if_the_program_is_killed_while_the_model_answers(
    project: Project, delay_s: float
) -> None:
    project.bash("printf 1 > first.txt", is_first=True)
    before = project.state()
    late = {"text": "never", "faults": {"delay_ms": 60_000}}
    project.replies({"tool_calls": [bash_call("rm -r a.txt ignored")]}, {"tool_calls": [bash_call("rm b.txt")]}, late)
    with project.started("-c", "-y", "-p", "break it", stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while b"rm b.txt" not in process.stderr.readline():  # the last call is announced when it has ended
            assert process.poll() is None
        time.sleep(delay_s)
        process.kill()
    listed = project.run("undo", "--list").stdout
    assert "b.txt" in listed, listed
    done = project.run("undo", "--to", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert differences(project.state(), before) == {}


def test_a_command_that_changes_nothing_is_no_doubt_if_the_program_is_killed_while_it_runs(project: Project) -> None:
    project.bash("printf 1 > first.txt", is_first=True)
    before = project.state()
    project.replies(
        {"tool_calls": [bash_call("rm -r a.txt ignored")]}, {"tool_calls": [bash_call("sleep 60")]}, {"text": "-"}
    )
    with project.started("-c", "-y", "-p", "break it") as process:
        (log,) = project.home.rglob("*.jsonl")
        wait_until(lambda: log.read_text().count('"type":"ToolStarted"') >= 3)
        process.kill()
    done = project.run("undo")
    assert done.returncode == 0 and "not known" not in done.stdout, done.stdout + done.stderr
    assert differences(project.state(), before) == {}
