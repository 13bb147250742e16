"""What is copied to the machine's /tmp at the end of a turn, and what is not."""

import os
import stat
import threading
from pathlib import Path

import pytest
from named_tmp import machine_tmp, unused_name

from bradawl.sandbox import machine_tmp_copies as copies
from bradawl.sandbox.copy_records import CopyRecord
from bradawl.sandbox.scratch import COPIED

NOT_WRITTEN = "was not written to the machine's /tmp"


@pytest.fixture
def name():
    with unused_name() as path:
        yield path


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def failures(machine, own: Path) -> list[str]:
    return [text.replace(str(own), "OWN") for text in machine.end_turn().failures]


# ------------------------------------------------------------------ rules


def test_an_entry_with_an_objection_is_not_copied_and_neither_is_a_folder_with_one(tmp_path, name):
    refused = (f"{name}/b", f"{name}/c")
    machine, own = machine_tmp(tmp_path, lambda path: "no" if path in refused else "")
    machine.begin_turn((f"write {name}",))
    folder = own / Path(name).name
    (folder / "c").mkdir(parents=True)
    for each in ("a", "b", "c/d"):
        (folder / each).write_text("x")
    assert not machine.copies(f"{name}/b") and machine.copies(f"{name}/a")
    assert failures(machine, own) == [
        f"{path} {NOT_WRITTEN}: no. The session's version is OWN/{path[5:]}" for path in refused
    ]
    assert [each.name for each in Path(name).iterdir()] == ["a"]


def test_no_folder_is_made_for_a_file_that_is_not_copied(tmp_path, name):
    machine, own = machine_tmp(tmp_path, lambda path: "no" if path == f"{name}/a/b" else "")
    machine.begin_turn((f"write {name}/a/b",))
    (own / Path(name).name / "a").mkdir(parents=True)
    (own / Path(name).name / "a/b").write_text("x")
    assert "no" in failures(machine, own)[0]
    assert not Path(name).exists()


# ------------------------------------------------------------------ permissions


def test_a_copy_never_has_more_permissions_than_the_source(tmp_path, name, umask, monkeypatch):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    folder = own / Path(name).name
    folder.mkdir()
    modes = {"key": 0o600, "run": 0o700, "open": 0o666, "suid": 0o4755}
    for each, mode in modes.items():
        (folder / each).write_text("x")
        (folder / each).chmod(mode)
    folder.chmod(0o550)
    seen = []
    monkeypatch.setattr(
        copies, "_copied", lambda target, origin: seen.append(os.fstat(target).st_mode) or REAL(target, origin)
    )
    machine.end_turn()
    folder.chmod(0o750)
    assert {each: mode_of(f"{name}/{each}") for each in modes} == {
        "key": 0o600,
        "run": 0o700,
        "open": 0o644,
        "suid": 0o755,
    }
    assert sorted(map(stat.S_IMODE, seen)) == [0o600, 0o644, 0o700, 0o755]
    assert mode_of(name) == 0o550
    Path(name).chmod(0o700)


REAL = copies._copied


def test_a_folder_above_the_named_file_has_the_permissions_of_the_sessions(tmp_path, name, umask):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}/report",))
    (own / Path(name).name).mkdir(0o700)
    (own / Path(name).name / "report").write_text("x")
    assert machine.end_turn().failures == ()
    assert mode_of(name) == 0o700


# ------------------------------------------------------------------ files of others


def test_a_file_that_was_changed_is_not_replaced_even_with_the_same_size_and_time(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    mine = own / Path(name).name
    mine.write_text("one")
    machine.end_turn()
    status = Path(name).stat()
    Path(name).write_text("two")
    os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))
    mine.write_text("new")
    assert "it was changed there since" in failures(machine, own)[0]
    assert Path(name).read_text() == "two"


def test_a_changed_mode_counts_as_a_change(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    (own / Path(name).name).write_text("one")
    machine.end_turn()
    Path(name).chmod(0o600)
    (own / Path(name).name).write_text("two")
    assert "it was changed there since" in failures(machine, own)[0]


def test_a_file_that_is_replaced_at_the_last_moment_comes_back(tmp_path, name, monkeypatch):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    mine = own / Path(name).name
    mine.write_text("one")
    machine.end_turn()
    exchange, users = copies.exchange, Path(f"{name}-users")

    def late(*given):
        if users.exists():
            users.replace(name)
        return exchange(*given)

    monkeypatch.setattr(copies, "exchange", late)
    users.write_text("the user's")
    mine.write_text("two")
    assert "it was changed at this moment" in failures(machine, own)[0]
    assert Path(name).read_text() == "the user's"
    assert [each.name for each in Path("/tmp").glob(".bradawl-*.tmp")] == []


def test_a_file_that_appears_at_the_last_moment_stays(tmp_path, name, monkeypatch):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    (own / Path(name).name).write_text("mine")
    monkeypatch.setattr(copies, "_copied", lambda *given: Path(name).write_text("the user's") and REAL(*given))
    assert "a file of that name was made at this moment" in failures(machine, own)[0]
    assert Path(name).read_text() == "the user's"


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a folder of another user")
def test_a_folder_of_another_user_is_not_used(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name} and {name}-2/report",))
    for each in (Path(name).name, f"{Path(name).name}-2"):
        (own / each).mkdir()
        (own / each / "report").write_text("x")
        Path("/tmp", each).mkdir()
        os.chown(f"/tmp/{each}", 65534, 65534)
    assert [text.partition(": ")[2].partition(". ")[0] for text in failures(machine, own)] == [
        f"the folder {name} belongs to another user",
        f"the folder {name}-2 belongs to another user",
    ]
    assert not any(Path(name).iterdir())


# ------------------------------------------------------------------ folders of the session


def test_a_folder_that_the_session_made_is_still_its_own_when_a_prompt_names_it_again(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"build {name}",))
    (own / Path(name).name).mkdir()
    (own / Path(name).name / "index").write_text("1")
    machine.end_turn()
    Path(name, "users").write_text("the user's")
    (own / Path(name).name / "index").write_text("2")
    (own / Path(name).name / "users").write_text("the session's")
    machine, _ = machine_tmp(tmp_path)
    machine.begin_turn((f"build {name}", f"in {name} change {name}/index"))
    assert machine.shown() == ()
    end = machine.end_turn()
    assert end.notices == (f"written to the machine's /tmp: {name}/index",)
    assert [text.partition(" ")[0] for text in end.failures] == [f"{name}/users"]
    assert (Path(name, "index").read_text(), Path(name, "users").read_text()) == ("2", "the user's")


def test_a_folder_that_the_user_removed_stays_away_until_there_is_something_new(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"build {name}/a",))
    (own / Path(name).name / "a").mkdir(parents=True)
    (own / Path(name).name / "a/one").write_text("1")
    machine.end_turn()
    Path(name, "a/one").unlink()
    Path(name, "a").rmdir()
    Path(name).rmdir()
    assert machine.end_turn() == ((), ()) and not Path(name).exists()
    (own / Path(name).name / "a/two").write_text("2")
    machine.end_turn()
    assert [each.name for each in Path(name, "a").iterdir()] == ["two"]


def test_a_folder_that_the_user_made_in_its_place_is_shown(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"build {name}",))
    (own / Path(name).name).mkdir()
    machine.end_turn()
    Path(name).rename(f"{name}-old")
    Path(name).mkdir()
    machine.begin_turn((f"look at {name}",))
    assert machine.shown() == (name,) and not machine.copies(f"{name}/x")


def test_a_file_of_the_user_in_a_folder_of_the_session_is_shown_and_not_compared(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"build {name}",))
    (own / Path(name).name).mkdir()
    machine.end_turn()
    Path(name, "users").write_text("the user's")
    machine.begin_turn((f"use {name}/users",))
    assert machine.shown() == (f"{name}/users",)
    (own / Path(name).name / "users").write_text("")  # where it is mounted
    assert machine.end_turn() == ((), ())


# ------------------------------------------------------------------ a folder and a missing path in it


def test_a_folder_in_which_a_path_is_to_be_written_is_shown_entry_by_entry(tmp_path, name):
    Path(name, "a/b").mkdir(parents=True)
    for each in ("log", "a/one", "a/.env", "a/b/two"):
        Path(name, each).write_text("x")
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"sum up {name} in {name}/a/report.md",))
    assert machine.shown() == (f"{name}/a/b", f"{name}/a/one", f"{name}/log")
    assert machine.copies(f"{name}/a/report.md") and machine.writable() == ()
    (own / Path(name).name / "a").mkdir(parents=True)
    (own / Path(name).name / "a/report.md").write_text("sum")
    assert machine.end_turn().failures == ()
    assert Path(name, "a/report.md").read_text() == "sum"


def test_a_folder_with_too_many_entries_is_shown_as_a_whole_and_not_written(tmp_path, name):
    Path(name).mkdir()
    for number in range(101):
        Path(name, str(number)).touch()
    machine, _ = machine_tmp(tmp_path)
    machine.begin_turn((f"sum up {name} in {name}/report.md",))
    assert machine.shown() == (name,)
    assert not machine.copies(f"{name}/report.md") and machine.writable() == ()


# ------------------------------------------------------------------ /tmp is the machine's


def test_a_path_at_which_something_exists_by_now_may_not_be_written_without_a_question(tmp_path, name):
    machine, _ = machine_tmp(tmp_path, private=False)
    machine.begin_turn((f"write {name}",))
    assert machine.writable() == (name,)
    Path(name).write_text("the user's")
    assert machine.writable() == ()


def test_what_a_file_tool_wrote_at_a_named_path_is_the_sessions_until_it_is_changed(tmp_path, name):
    machine, _ = machine_tmp(tmp_path, private=False)
    machine.begin_turn((f"write {name}",))
    for text in ("one", "two"):
        with machine.writing(name):
            Path(name).write_text(text)
        assert machine.writable() == (name,)
    Path(name).write_text("the user's")
    assert machine.writable() == ()
    with machine.writing(name):  # with the user's permission
        Path(name).write_text("three")
    assert machine.writable() == ()


# ------------------------------------------------------------------ a program that was killed


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["begin", "_copied", "made", "_unlink", "done"])
@pytest.mark.parametrize("had_one", [False, True])
def test_a_copy_that_was_cut_off_is_finished_by_the_next_turn(tmp_path, name, step, had_one, monkeypatch):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    mine = own / Path(name).name
    if had_one:
        mine.write_text("old")
        machine.end_turn()
    mine.write_text("new")
    with monkeypatch.context() as patched:
        kill(patched, step)
        with pytest.raises(Killed):
            machine.end_turn()
    present = Path(name).read_text() if Path(name).exists() else None
    assert present in (("old", "new") if had_one else (None, "new"))
    assert Path(f"{own}{COPIED}").read_bytes().count(b"dropped") == 0
    with Path(f"{own}{COPIED}").open("ab") as file:
        file.write(b'["made", "/tmp/x", 1')  # a line that was cut off
    machine, _ = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}", "go on"))
    machine.end_turn()
    assert Path(name).read_text() == "new"
    assert [each.name for each in Path("/tmp").glob(".bradawl-*.tmp")] == []
    mine.write_text("newer")
    machine.end_turn()
    assert Path(name).read_text() == "newer"


def kill(patched, step: str) -> None:
    """Let the program end at this step, without a chance to tidy up."""

    def die(*_, **__):
        patched.setattr(os, "unlink", die)
        patched.setattr(CopyRecord, "dropped", die)
        raise Killed

    if step in ("begin", "made"):
        real = getattr(CopyRecord, step)
        patched.setattr(CopyRecord, step, lambda *given: (real(*given), die()))
    elif step == "_unlink":
        patched.setattr(os, "unlink", die)
        patched.setattr(CopyRecord, "dropped", die)
    elif step == "done":
        patched.setattr(CopyRecord, "done", die)
    else:
        patched.setattr(copies, step, die)


def test_a_file_of_the_user_that_was_exchanged_when_the_program_was_killed_comes_back(tmp_path, name, monkeypatch):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    mine = own / Path(name).name
    mine.write_text("one")
    machine.end_turn()
    exchange = copies.exchange

    def late(*given):
        Path(f"{name}-users").write_text("the user's")
        Path(f"{name}-users").replace(name)
        exchange(*given)
        kill(monkeypatch, "_unlink")
        raise Killed

    mine.write_text("two")
    with monkeypatch.context() as patched:
        patched.setattr(copies, "exchange", late)
        with pytest.raises(Killed):
            machine.end_turn()
    monkeypatch.undo()
    assert Path(name).read_text() == "two"
    machine, _ = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    assert Path(name).read_text() == "the user's"
    assert [each.name for each in Path("/tmp").glob(".bradawl-*.tmp")] == []


# ------------------------------------------------------------------ notices


@pytest.mark.parametrize("has_folder", [True, False])
def test_nothing_is_said_about_a_named_path_that_the_session_did_not_write(tmp_path, name, has_folder):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"what is {name}, {name}/a/b, {name}-2/c and /tmp/{'a' * 300}?",))
    (own / f"{Path(name).name}-2").write_text("a file")
    if not has_folder:
        (own / f"{Path(name).name}-2").unlink()
        own.rmdir()
    assert machine.end_turn() == ((), ())


def test_many_entries_are_counted_and_the_first_are_named(tmp_path, name, monkeypatch):
    monkeypatch.setattr(copies, "MOST_ENTRIES", 11)
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    (own / Path(name).name).mkdir()
    for number in range(20):
        (own / Path(name).name / f"{number:02}").write_text("x")
    end = machine.end_turn()
    assert len(list(Path(name).iterdir())) == 10
    assert end.notices == (
        f"written to the machine's /tmp: {', '.join(f'{name}/0{number}' for number in range(5))} and 5 more",
    )
    assert len(end.failures) == 6
    assert end.failures[-1] == (
        f"5 more entries were not written to the machine's /tmp. The session's versions are in {own}"
    )


def test_folders_count_too(tmp_path, name, monkeypatch):
    monkeypatch.setattr(copies, "MOST_ENTRIES", 5)
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    for number in range(9):
        (own / Path(name).name / str(number)).mkdir(parents=True)
    assert len(machine.end_turn().failures) == 5
    assert len(list(Path(name).iterdir())) == 4


def test_a_failure_is_said_once_and_again_when_the_file_was_changed(tmp_path, name):
    machine, own = machine_tmp(tmp_path, lambda path: "no" if path == name else "")
    machine.begin_turn((f"write {name}",))
    (own / Path(name).name).write_text("x")
    assert len(machine.end_turn().failures) == 1
    assert machine.end_turn().failures == ()
    machine, _ = machine_tmp(tmp_path, lambda path: "no" if path == name else "")
    machine.begin_turn((f"write {name}",))
    assert machine.end_turn().failures == ()
    (own / Path(name).name).write_text("longer")
    assert len(machine.end_turn().failures) == 1


def test_names_are_spelled_out(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    folder = os.fsencode(own / Path(name).name)
    (own / Path(name).name).mkdir()
    for each in (b"a\nb\x1b[31m", b"c\xff", "\u202ed".encode()):
        os.symlink("x", folder + b"/" + each)  # noqa: PTH211 - names that are no text
    assert [text.partition(" ")[0][len(name) + 1 :] for text in machine.end_turn().failures] == [
        "a\\nb\\x1b[31m",
        "c\\xff",
        "\\u202ed",
    ]


def test_more_paths_than_can_be_taken_are_said(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((" ".join((name, *(f"{name}-{number}" for number in range(1_001)))),))
    (own / Path(name).name).write_text("x")
    assert machine.end_turn().notices == (
        "the prompt names more than 1,000 paths below /tmp; only the first were taken",
        f"written to the machine's /tmp: {name}",
    )


def test_a_file_that_grows_while_it_is_copied_is_not_copied(tmp_path, name, monkeypatch):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    mine = own / Path(name).name
    mine.write_text("x")
    pieces = copies.pieces

    def growing(source):
        writer = threading.Thread(target=mine.write_text, args=("x" * 10,))
        writer.start()
        writer.join()
        yield from pieces(source)

    monkeypatch.setattr(copies, "pieces", growing)
    assert "it is still being written" in failures(machine, own)[0]
    assert not Path(name).exists()
