"""What `bradawl undo` says where it can't do all: by the real program, with its exit codes."""

import os
import resource
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from terminal import START, run_program
from test_undo_process import Project, differences

from bradawl.sandbox.mounts.placeholders import Placeholder, PlaceholderStore

EXIT_REFUSED = 1


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_what_cannot_be_restored_is_listed_and_the_conversation_stays(project: Project, tmp_path: Path) -> None:
    (project.root / "d").mkdir()
    (project.root / "d" / "one").write_text("1")
    project.bash("rm d/one", is_first=True)
    (tmp_path / "out").mkdir()
    (project.root / "d").rmdir()
    (project.root / "d").symlink_to("../out")
    dry = project.run("undo", "--dry-run")
    assert (
        dry.returncode == EXIT_REFUSED and "Nothing is restored, because none of the files can be: d/one" in dry.stdout
    )
    for line in (("undo",), ("-c", "-p", "/undo")):
        done = project.run(*line)
        assert done.returncode != 0 and "none of the files can be: d/one" in done.stderr, done.stderr
    assert "There is nothing to redo" in project.run("undo", "--redo").stderr
    assert "taken back" not in project.run("undo", "--list").stdout
    assert list((tmp_path / "out").iterdir()) == []


def test_the_result_lists_what_could_not_be_restored_of_a_part(project: Project, tmp_path: Path) -> None:
    (project.root / "d").mkdir()
    (project.root / "d" / "one").write_text("1")
    project.bash("rm d/one a.txt", is_first=True)
    (project.root / "d").rmdir()
    (project.root / "d").symlink_to("../out")
    done = project.run("undo")
    assert done.returncode == EXIT_REFUSED
    assert "+ a.txt" in done.stdout and "Can't be restored:\n! d/one: " in done.stdout


def test_a_dry_run_says_that_conflicts_refuse_the_undo(project: Project) -> None:
    project.bash("echo model >> a.txt; rm b.txt", is_first=True)
    (project.root / "a.txt").write_text("the user's")
    dry = project.run("undo", "--dry-run")
    assert dry.returncode == EXIT_REFUSED and dry.stdout.startswith("Nothing is restored, because these files were")
    kept = project.run("undo", "--dry-run", "--keep-conflicts")
    assert kept.returncode == 0 and "Nothing is restored" not in kept.stdout
    done = project.run("undo", "--keep-conflicts")
    assert done.returncode == 0 and "Left alone: a.txt: it was changed since" in done.stdout


def test_a_turn_without_undo_is_named(project: Project) -> None:
    project.bash("echo z >> a.txt", is_first=True)
    before = (project.root / "a.txt").read_bytes()
    project.replies({"tool_calls": [{"id": "c2", "name": "bash", "arguments": {"command": "rm b.txt"}}]}, {"text": "-"})
    assert project.run("-c", "--no-undo", "-y", "-p", "again").returncode == 0
    said = "Not covered: bash(rm b.txt): its changes are not saved and stay, because undo was switched off."
    assert "2     not saved  bash(rm b.txt)" in project.run("undo", "--list").stdout
    assert said in project.run("undo", "--dry-run").stdout
    done = project.run("undo")
    assert done.returncode == 0 and said in done.stdout
    assert (project.root / "a.txt").read_bytes() != before and not (project.root / "b.txt").exists()


def test_undo_after_a_run_without_it_says_that_it_was_off(project: Project) -> None:
    project.replies({"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"command": "rm b.txt"}}]}, {"text": "-"})
    assert project.run("--no-undo", "-y", "-p", "go").returncode == 0
    done = project.run("undo")
    assert done.returncode == EXIT_REFUSED and "bash(rm b.txt): its changes are not saved" in done.stderr


def test_slash_commands_of_undo_need_no_model(project: Project) -> None:
    before = project.state()
    project.bash("rm b.txt", is_first=True)
    after = project.state()
    del project.environ["BRADAWL_MODEL"]
    for command, expected in (("/undo", before), ("/redo", after), ("/rewind", after), ("/diff", after)):
        done = project.run("-c", "-p", command)
        assert done.returncode == 0, done.stderr
        assert differences(project.state(), expected) == {}
    assert "No provider is set up" in project.run("-c", "-p", "/cost").stderr
    assert "No provider is set up" in project.run("-c", "-p", "undo it").stderr


def _no_bytes() -> None:
    """Let every write to a file fail, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))


def test_a_store_that_cannot_be_written_refuses_with_its_reason(project: Project) -> None:
    before = project.state()
    project.bash("rm b.txt; echo more >> a.txt", is_first=True)
    after = project.state()

    def run(limit: Callable[[], None] | None, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*START, *argv],
            cwd=project.root,
            env={**project.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # its files would be cut too, without an error
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=limit,
        )

    dry = run(_no_bytes, "undo", "--dry-run")
    assert dry.returncode == 0 and "+ b.txt" in dry.stdout and "Can't be restored" not in dry.stdout, dry.stderr
    done = run(_no_bytes, "undo")
    assert done.returncode == EXIT_REFUSED, done.stdout
    assert "Nothing was restored" in done.stderr and os.strerror(27) in done.stderr, done.stderr
    assert "checkpoints" in done.stderr and "internal error" not in done.stderr
    assert differences(project.state(), after) == {}
    assert run(None, "undo").returncode == 0
    assert differences(project.state(), before) == {}


def test_a_redo_does_not_repeat_what_the_undo_could_not_restore(project: Project) -> None:
    project.bash("mkdir q; echo 1 > q/made; rm b.txt", is_first=True)
    after = project.state()
    (project.root / "q" / "own").write_text("the user's")
    done = project.run("undo")
    assert done.returncode == EXIT_REFUSED and "the folder holds other files" in done.stdout
    redone = project.run("undo", "--redo")
    assert redone.returncode == 0 and "the folder holds other files" not in redone.stdout
    (project.root / "q" / "own").unlink()
    assert differences(project.state(), after) == {}


def test_a_diff_shows_the_files_before_git_s_data(project: Project) -> None:
    project.bash("echo more >> a.txt; git add a.txt", is_first=True)
    shown = project.run("-c", "-p", "/diff").stdout
    assert 0 <= shown.index("a.txt") < shown.index(".git/index")


def test_a_file_in_a_folder_that_is_not_added_is_named_and_comes_back_later(project: Project) -> None:
    other = project.root.parent / "other"
    other.mkdir()
    (other / "f").write_text("outside")
    project.replies(
        {"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"command": "rm b.txt ../other/f"}}]}, {"text": "-"}
    )
    assert project.run("--add-dir", str(other), "-y", "-p", "go").returncode == 0
    dry = project.run("undo", "--dry-run")
    assert dry.returncode == EXIT_REFUSED and f"--add-dir {other}" in dry.stdout
    done = project.run("undo")
    assert done.returncode == EXIT_REFUSED and (project.root / "b.txt").exists()
    assert f"! {other}/f: it is outside of the folders that undo covers; give its folder with --add-dir {other}" in (
        done.stdout
    )
    assert "The last undo did not restore 1 file." in project.run("undo", "--list").stderr
    again = project.run("undo")
    assert again.returncode == EXIT_REFUSED and f"--add-dir {other}" in again.stderr
    added = project.run("undo", "--add-dir", str(other))
    assert added.returncode == 0, added.stderr
    assert (other / "f").read_text() == "outside"


def test_a_dry_run_says_that_a_lock_would_stop_the_undo(project: Project) -> None:
    project.bash("git rm -q --cached b.txt", is_first=True)
    lock = project.root / ".git" / "index.lock"
    lock.touch()
    dry = project.run("undo", "--dry-run")
    assert dry.returncode == EXIT_REFUSED and dry.stdout.startswith("Nothing would be restored now: ")
    done = project.run("undo")
    assert done.returncode == EXIT_REFUSED and "Nothing was restored" in done.stderr and "index.lock" in done.stderr
    lock.unlink()
    assert project.run("undo", "--dry-run").returncode == 0
    assert project.run("undo").returncode == 0


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_the_sandbox_of_a_killed_program_left_is_removed_and_that_of_a_running_one_stays(
    project: Project, is_killed: bool
) -> None:
    project.bash("mkdir made && rm b.txt", is_first=True)
    (state,) = project.home.glob(".local/share/bradawl/projects/*/checkpoints")
    store = PlaceholderStore(str(state.with_name("sandbox")))
    held = store.acquire(Placeholder(str(project.root / name), is_folder=True) for name in (".vscode", "made/.envrc"))
    assert len(held) == 2
    if is_killed:
        os.close(store._record)
        for each in store._held.values():
            os.close(each.lock)
    done = project.run("undo")
    assert (project.root / "b.txt").exists() and (project.root / ".vscode").exists() is not is_killed
    assert done.returncode == (0 if is_killed else EXIT_REFUSED) and (project.root / "made").exists() is not is_killed
    if not is_killed:
        store.close()


def test_in_a_folder_of_the_project_undo_names_the_project(project: Project) -> None:
    project.bash("rm b.txt", is_first=True)
    deep = project.root / "with a space" / "deep"
    deep.mkdir(parents=True)
    done = run_program(("undo",), deep, project.environ)
    assert done.returncode == EXIT_REFUSED
    command = f"bradawl undo -C {shlex.quote(str(project.root))}"
    assert f"This folder has no session. The last one of a folder above it: `{command}`." in done.stderr
    assert project.run(*shlex.split(command)[1:]).returncode == 0 and (project.root / "b.txt").exists()
    (project.home / "other").mkdir()
    elsewhere = run_program(("undo",), project.home / "other", project.environ)
    assert "This folder has no session, so there is nothing to undo; use -C DIR" in elsewhere.stderr
