"""Renames of what undo does not save, by a command of the model, are undone and redone by `bradawl undo`."""

import json
import os
from pathlib import Path

import pytest
from terminal import run_program

BIG_BYTES = 60_000_000


class Project:
    """A folder with a file over the limit and a folder of packages."""

    def __init__(self, folder: Path) -> None:
        self.root, self.script = folder / "project", folder / "script.json"
        (folder / "home").mkdir()
        (self.root / "node_modules" / "x").mkdir(parents=True)
        (self.root / "node_modules" / "x" / "i.js").write_text("1")
        (self.root / "empty").touch()
        with (self.root / "big").open("wb") as file:
            file.truncate(BIG_BYTES)
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "BRADAWL_MODEL": f"scripted/{self.script}",
        }

    def run(self, *argv: str) -> tuple[int, str]:
        done = run_program(argv, self.root, self.environ)
        return done.returncode, done.stdout + done.stderr

    def model(self, command: str) -> None:
        call = {"id": "c1", "name": "bash", "arguments": {"command": command}}
        self.script.write_text(json.dumps([{"tool_calls": [call]}, {"text": "done"}]))
        code, said = self.run("-y", "-p", "change")
        assert code == 0, said

    def names(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_renamed_files_and_packages_are_renamed_back_and_again(project: Project) -> None:
    before, inode = project.names(), (project.root / "big").stat().st_ino
    project.model("mv big big3; chmod 700 big3; mv node_modules nm_old")
    after = project.names()
    code, said = project.run("undo")
    assert code == 0, said
    assert "Not covered: Files over" not in said
    assert project.names() == before
    assert (project.root / "big").stat().st_ino == inode and (project.root / "big").stat().st_mode & 0o777 != 0o700
    code, said = project.run("undo", "--redo")
    assert code == 0, said
    assert project.names() == after and (project.root / "big3").stat().st_mode & 0o777 == 0o700


def test_removed_packages_are_named_with_exit_code_1(project: Project) -> None:
    project.model("rm -r node_modules; echo 1 > new")
    for argv in (("undo", "--dry-run"), ("undo",)):
        code, said = project.run(*argv)
        assert code == 1, said
        assert "Not covered: node_modules was removed; what was in it is not saved" in said
    assert not (project.root / "new").exists()


def test_a_file_that_was_renamed_and_changed_is_a_conflict(project: Project) -> None:
    project.model("mv big big3; echo more >> big3")
    code, said = project.run("undo")
    assert code == 1 and "big3" in said
    assert (project.root / "big3").stat().st_size == BIG_BYTES + 5


def test_a_renamed_folder_that_a_later_step_changed_goes_back_step_by_step(project: Project) -> None:
    before = project.names()
    project.model("mv node_modules nm_old")
    call = {"id": "c2", "name": "bash", "arguments": {"command": "mv nm_old/x y"}}
    project.script.write_text(json.dumps([{"tool_calls": [call]}, {"text": "done"}]))
    code, said = project.run("-c", "-y", "-p", "again")
    assert code == 0, said
    changed = project.names()
    code, said = project.run("undo", "--to", "1")
    assert code == 1 and "Go back one step at a time" in said, said
    assert project.names() == changed
    for _ in range(2):
        code, said = project.run("undo")
        assert code == 0, said
    assert project.names() == before


@pytest.mark.parametrize(
    ("command", "lost", "copy"),
    [("cp big b2; rm big", "big", "b2"), ("tar cf nm.tar node_modules; rm -r node_modules", "node_modules", "nm.tar")],
)
def test_a_copy_or_an_archive_of_what_is_lost_is_left_alone(
    project: Project, command: str, lost: str, copy: str
) -> None:
    before = project.names()
    project.model(f"{command}; rm empty")
    for argv in (("undo", "--dry-run"), ("undo",)):
        code, said = project.run(*argv)
        assert code == 1 and f"! {copy}: it may hold what was {lost}, which is not saved" in said, said
    code, said = project.run("undo", "--keep-conflicts")
    assert code == 1 and f"Left alone: {copy}: it may hold what was {lost}" in said, said
    gone = {"big"} if lost == "big" else {"node_modules/x", "node_modules/x/i.js"}
    assert project.names() == before - gone | {copy}


def test_a_removed_large_file_comes_back_from_its_hard_link(project: Project) -> None:
    (project.root / "link").hardlink_to(project.root / "big")
    before = project.names()
    project.model("rm big")
    assert "+0 ~0 -1" in project.run("undo", "--list")[1]
    code, said = project.run("undo")
    assert code == 0, said
    assert project.names() == before and (project.root / "big").samefile(project.root / "link")
    assert project.run("undo", "--redo")[0] == 0
    assert project.names() == before - {"big"}
