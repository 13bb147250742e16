"""Named paths below /tmp that the user or the session removes, and prompts that name them again."""

import os
import shutil
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from named_tmp import machine_tmp, unused_name
from scratch_world import ScratchProject, bash, write


@pytest.fixture
def name():
    with unused_name() as path:
        yield path


@pytest.fixture
def project(tmp_path):
    return ScratchProject(tmp_path)


def names_in(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def written(*names: str) -> tuple[str, ...]:
    return (f"written to the machine's /tmp: {' and '.join(names)}",)


# ------------------------------------------------------------------ what was shown is never written


@needs_bwrap
def test_what_was_shown_is_not_made_again_when_the_session_goes_on(project, name):
    Path(f"{name}-log").write_text("x")
    Path(name).mkdir()
    Path(name, "a.log").write_text("x")
    prompt = f"look at {name}-log and {name} and sum up {name} in {name}/sum.md"
    first = project.run(bash(f"cat {name}-log {name}/a.log > {name}/sum.md"), prompt=prompt)
    assert Path(name, "sum.md").read_text() == "xx"
    Path(f"{name}-log").unlink()
    shutil.rmtree(name)
    project.run(bash("true"), prompt="thanks", session=first.session_id)
    assert not os.path.lexists(f"{name}-log") and not os.path.lexists(name)
    assert project.notices == []
    left = names_in(project.scratch / first.session_id)
    assert [each for each in left if each.startswith(name[5:])] == [name[5:], f"{name[5:]}/sum.md"]


def test_a_path_that_was_shown_is_not_to_be_written_when_the_session_goes_on(tmp_path, name):
    Path(name).write_text("x")
    prompt = f"look at {name} and write {name}-2"
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((prompt,))
    machine.end_turn()
    Path(name).unlink()
    for each in (name, f"{name}-2"):
        (own / each[5:]).write_text("the session's")
    for _ in range(2):  # the record is written anew each time
        machine, _ = machine_tmp(tmp_path)
        machine.begin_turn((prompt, "thanks"))
        assert (machine.copies(name), machine.copies(f"{name}-2")) == (False, True)
    assert machine.end_turn().notices == written(f"{name}-2")
    machine.begin_turn((f"write {name}",))
    assert machine.end_turn().notices == written(name)
    machine, _ = machine_tmp(tmp_path)
    machine.begin_turn((prompt, f"write {name}", "thanks"))
    assert machine.copies(name)


def test_mount_points_of_a_program_that_was_killed_are_removed(tmp_path, name):
    Path(name, "a").mkdir(parents=True)
    Path(name, "a/log").write_text("x")
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"look at {name}/a/log",))
    (own / name[5:] / "a").mkdir(parents=True)
    (own / name[5:] / "a/log").touch(0o444)
    (own / "others").touch(0o444)
    shutil.rmtree(name)
    machine, _ = machine_tmp(tmp_path)
    machine.begin_turn((f"look at {name}/a/log", f"build {name}"))
    assert names_in(own) == ["others"]
    (own / name[5:] / "a").mkdir(parents=True)
    (own / name[5:] / "a/log").touch(0o444)  # this one is the session's
    machine.begin_turn(("go on",))
    assert machine.end_turn().notices == written(f"{name}/a/log")


def test_an_empty_file_that_the_session_made_before_is_no_mount_point(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    (own / name[5:]).touch()
    Path(name).write_text("x")
    machine.begin_turn((f"look at {name}",))
    Path(name).unlink()
    machine.begin_turn((f"write {name}",))
    assert machine.end_turn().notices == written(name)


# ------------------------------------------------------------------ shown, removed, to be written


@needs_bwrap
@pytest.mark.parametrize("is_folder", [False, True])
def test_what_was_shown_and_is_gone_can_be_written(project, name, is_folder):
    path = f"{name}/x" if is_folder else name
    if is_folder:
        Path(name).mkdir()
    Path(path).write_text("the user's")
    first = project.run(bash(f"cat {path}"), prompt=f"look at {name}")
    shutil.rmtree(name) if is_folder else Path(name).unlink()
    by_program = bash(f"mkdir -p {name}; echo 2 > {name}/y") if is_folder else bash("true")
    project.run(by_program, write(path), prompt=f"now write {name}", session=first.session_id)
    assert Path(path).read_text() == "text\n", project.results
    assert not is_folder or Path(name, "y").read_text() == "2\n"


def test_in_one_run_what_is_gone_is_no_longer_shown_until_it_is_there_again(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    Path(name).write_text("x")
    machine.begin_turn((f"look at {name}",))
    (own / name[5:]).touch(0o444)
    Path(name).unlink()
    machine.begin_turn(("go on",))
    assert machine.shown() == () and not machine.copies(name) and names_in(own) == []
    Path(name).write_text("y")
    machine.begin_turn(("go on",))
    assert machine.shown() == (name,)
    Path(name).unlink()
    machine.begin_turn((f"now write {name}",))
    assert machine.shown() == () and machine.copies(name)


# ------------------------------------------------------------------ removed by the session


@needs_bwrap
@pytest.mark.parametrize("is_folder", [False, True])
def test_what_the_session_removed_on_its_side_can_be_written_again(project, name, is_folder):
    path = f"{name}/x" if is_folder else name
    make = f"mkdir {name}; " * is_folder
    first = project.run(bash(f"{make}echo 1 > {path}"), prompt=f"write {name}")
    project.run(bash(f"rm -r {name}; touch /tmp/other"), prompt="go on", session=first.session_id)
    assert Path(path).read_text() == "1\n"
    project.run(write(path, "2\n"), prompt=f"write {name} again", session=first.session_id)
    assert Path(path).read_text() == "2\n", project.results


# ------------------------------------------------------------------ removed by the user


@needs_bwrap
@pytest.mark.parametrize("is_folder", [False, True])
def test_what_the_user_lost_is_written_again_if_the_prompt_names_it(project, name, is_folder):
    path = f"{name}/x" if is_folder else name
    first = project.run(write(path), prompt=f"write {name}")
    shutil.rmtree(name) if is_folder else Path(name).unlink()
    project.run(bash("true"), prompt="thanks", session=first.session_id)
    assert not Path(name).exists()
    project.run(bash("true"), prompt=f"I lost it; write {name} again", session=first.session_id)
    assert Path(path).read_text() == "text\n"
    assert project.notices == [f"written to the machine's /tmp: {path}"]
