"""The folder that sandboxed commands see as `/tmp` belongs to the session, and is there again when it goes on."""

import os
import shutil
import stat
import time
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from scratch_world import ScratchProject, bash, call, read, write

from bradawl.sandbox import scratch as scratch_module
from bradawl.sandbox.scratch import SessionScratch, remove_unused

ID = "01M85F1K59CFJ6BRCX1SEN8T2P"


@pytest.fixture
def project(tmp_path):
    return ScratchProject(tmp_path)


@needs_bwrap
def test_files_in_tmp_are_there_again_when_the_session_goes_on(project):
    first = project.run(
        write("/tmp/notes.md", "mine\n"), bash("echo built > /tmp/out; mkdir /tmp/a; cd /tmp/a; touch x")
    )
    project.run(bash("pwd; cat /tmp/notes.md /tmp/out"), read("/tmp/out"), session=first.session_id)
    assert project.results[0].startswith("/tmp/a\nmine\nbuilt\n")
    assert "built" in project.results[1]
    assert not Path("/tmp/notes.md").exists()


@needs_bwrap
def test_the_folder_lies_with_the_session_and_only_its_user_may_enter_it(project):
    turn = project.run(bash("echo x > /tmp/x; chmod 777 /tmp"))
    place = project.scratch / turn.session_id
    assert (place / "x").read_text() == "x\n"
    project.run(bash("true"), session=turn.session_id)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert place.is_relative_to(project.place / "data/projects")


@needs_bwrap
def test_commands_reach_their_folder_by_its_real_path_and_nothing_around_it(project):
    first = project.run(write("/tmp/x"))
    place = project.scratch / first.session_id
    (project.root / "look.py").write_text(
        "import os, pathlib\n"
        f"place = pathlib.Path({str(place)!r})\n"
        "print((place / 'x').read_text(), *(os.listdir(each) for each in list(place.parents)[:4]))\n"
        "(place.parent / 'y').touch()\n"
    )
    project.run(bash("python3 look.py"), session=first.session_id)
    assert project.results[0].startswith(f"text\n ['{place.name}'] ")
    assert not any(f"'{name}'" in project.results[0] for name in ("sessions", "sandbox", "checkpoints"))
    assert not (place.parent / "y").exists()


@needs_bwrap
def test_another_session_has_a_folder_of_its_own_and_does_not_see_the_first(project):
    first = project.run(bash("echo secret > /tmp/mine"))
    place = project.scratch / first.session_id
    second = project.run(bash(f"ls -A /tmp; cat {place}/mine"), read("/tmp/mine"), write(f"{place}/mine", "no"))
    assert first.session_id != second.session_id
    assert "secret" not in project.results[0] + project.results[1]
    assert (place / "mine").read_text() == "secret\n"


@needs_bwrap
@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("of_other_project", [False, True])
def test_file_tools_treat_the_folder_of_another_session_as_bradawls_data(project, is_linked, of_other_project):
    first = project.run(bash("echo SECRET > /tmp/mine"))
    place = str(project.scratch / first.session_id)
    if of_other_project:
        project.root = project.place / "other"
        project.root.mkdir()
    (project.root / "link.sh").write_text(f"ln -s {place} /tmp/link\n")
    session = project.run(bash("sh link.sh")).session_id
    at = "/tmp/link" if is_linked else place
    project.run(
        read(f"{at}/mine"),
        (call("grep", pattern="SECRET", path=at),),
        (call("glob", pattern="*", path=at),),
        write(f"{at}/new"),
        session=session,
    )
    assert all("bradawl's own settings and records" in each for each in project.results)


@needs_bwrap
def test_without_a_sandbox_the_folder_of_a_session_is_bradawls_data(project):
    first = project.run(bash("echo SECRET > /tmp/mine"))
    place = project.scratch / first.session_id
    project.run(bash(f"cat {place}/mine"), read(f"{place}/mine"), sandbox="off", permission_mode="auto")
    assert all("bradawl's own settings and records" in each for each in project.results)


@needs_bwrap
def test_a_session_that_leaves_no_file_in_tmp_leaves_no_folder(project):
    project.run(bash("mktemp -d; mkdir -p /tmp/a/b; echo x > /tmp/c; rm /tmp/c"))
    assert not project.scratch.exists()


@needs_bwrap
def test_the_sessions_of_one_conversation_have_their_own_folders(project):
    import asyncio

    from bradawl import build_agent

    async def talk() -> list[str]:
        replies = (bash("ls -A /tmp; echo 1 > /tmp/one"), "first", bash("ls -A /tmp; echo 2 > /tmp/two"))
        agent, ids = build_agent(project.settings(replies)), []
        try:
            for _ in range(2):
                async with agent.open() as session:
                    await session.run("go")
                    ids.append(session.id)
        finally:
            await agent.aclose()
        return ids

    first, second = asyncio.run(talk())
    assert [path.name for path in (project.scratch / first).iterdir() if path.is_file()] == ["one"]
    assert [path.name for path in (project.scratch / second).iterdir() if path.is_file()] == ["two"]


@needs_bwrap
def test_a_session_that_is_not_saved_has_a_temporary_folder(project):
    sessions = project.scratch.with_name("sessions")
    sessions.parent.mkdir(parents=True)
    sessions.write_text("in the way")
    turn = project.run(write("/tmp/x"), bash("cat /tmp/x"))
    assert not turn.saved
    assert project.results[0].startswith("Wrote 1 line to /tmp/x (in ")
    assert "until the session ends" in project.results[0]
    assert project.results[1].startswith("text\n")
    assert not project.scratch.exists()


@needs_bwrap
def test_the_first_result_says_where_a_file_in_tmp_is_kept(project):
    turn = project.run(write("/tmp/a.md"), (call("write_file", file_path="/tmp/b.md", content="1\n"),))
    place = project.scratch / turn.session_id
    assert project.results == [
        f"Wrote 1 line to /tmp/a.md (kept in {place}/a.md; the real /tmp is not changed)",
        "Wrote 1 line to /tmp/b.md",
    ]


@needs_bwrap
def test_results_and_errors_of_file_tools_name_files_as_commands_do(project):
    session = project.run(write("/tmp/a.md", "one\n"), bash("mkdir /tmp/d; touch /tmp/d/e")).session_id
    edit = call("edit_file", file_path="/tmp/a.md", old_string="one", new_string="two")
    project.run(
        (call("grep", pattern="one", path="/tmp"),),
        (call("grep", pattern="nothing", path="/tmp"),),
        (call("glob", pattern="*", path="/tmp"),),
        (call("glob", pattern="*.x", path="/tmp"),),
        read("/tmp/a.md"),
        (edit,),
        (edit,),
        read("/tmp/b.md"),
        read("/tmp/x/y/b.md"),
        read("/tmp/d"),
        write("/tmp/a.md", "three\n"),
        write("/tmp/a.md/b"),
        write("/tmp/d/e", "four\n"),
        bash("cd /tmp/d"),
        (call("glob", pattern="*.x"),),
        (call("grep", pattern="nothing"),),
        read("no"),
        session=session,
    )
    assert not [each for each in project.results if "/tmp/01" in each or str(project.place) in each]
    assert "/tmp/a.md" in project.results[0] and project.results[5].startswith("Edited /tmp/a.md")


@needs_bwrap
def test_a_unix_socket_in_the_folder_has_a_short_path_inside(project):
    project.run(bash("python3 -c \"print(len('/tmp/x.sock'), __import__('os').environ.get('TMPDIR'))\""))
    assert project.results[0].startswith("11 None") or project.results[0].startswith("11 /tmp")


@needs_bwrap
def test_something_else_in_the_place_of_the_folder_is_not_followed(project):
    turn = project.run(bash("echo x > /tmp/x"))
    place = project.scratch / turn.session_id
    shutil.rmtree(place)
    place.symlink_to(project.place)
    project.run(bash("echo y > /tmp/y"), session=turn.session_id)
    assert f"temporary folder {place} can't be made" in project.results[0]
    assert not (project.place / "y").exists()


@needs_bwrap
@pytest.mark.parametrize("mode", ["default", "auto"])
def test_no_rule_is_offered_for_files_in_the_folder(project, mode):
    from bradawl.safety.permissions.suggestions import proposals

    asked = []

    class Recorder:
        async def ask(self, question):
            from bradawl.core.permissions import Answer

            asked.append(question)
            return Answer(True, "user")

        async def choose(self, choice):
            return None

    import asyncio

    from bradawl import build_agent

    async def talk() -> None:
        agent = build_agent(project.settings((write("/tmp/rule-test"),), permission_mode=mode), Recorder())
        try:
            async with agent.open() as session:
                await session.run("go")
                for question in asked:
                    roots = session.policy().roots
                    assert (
                        proposals(question.request, cwd=str(project.root), home=str(project.place), roots=roots) == ()
                    )
        finally:
            await agent.aclose()

    asyncio.run(talk())
    assert len(asked) == (mode == "default")


# ------------------------------------------------------------------ what other sessions left


@pytest.fixture
def left(tmp_path):
    """Makes the folder of a session, with its log."""
    (tmp_path / "sessions").mkdir()

    def make(name: str, size: int = 1, days: float = 0, *, has_log: bool = True) -> Path:
        folder = tmp_path / "tmp" / name
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * size)
        used = time.time() - days * 86_400
        if has_log:
            log = tmp_path / "sessions" / f"{name}.jsonl"
            log.touch()
            os.utime(log, (used, used))
        os.utime(folder, (used, used))
        return folder

    return make


def names(number: int) -> str:
    return f"01M85F1K59CFJ6BRCX1SEN8T{number:02}"


def test_folders_of_deleted_and_of_old_sessions_are_removed(tmp_path, left):
    deleted, old = left(names(1), has_log=False), left(names(2), days=31)
    recent, own = left(names(3), days=29), left(names(4), days=40)
    foreign, record = tmp_path / "tmp/notes", tmp_path / "tmp" / f"{names(1)}.copied"
    foreign.mkdir()
    record.touch()
    remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), str(own))
    assert [each.exists() for each in (deleted, old, recent, own, foreign)] == [False, False, True, True, True]
    assert not record.exists()


def test_above_the_limit_the_longest_unused_folders_go_first(tmp_path, left, monkeypatch):
    monkeypatch.setattr(scratch_module, "MOST_BYTES", 25_000)
    oldest, older, newer = (left(names(number), size=12_000, days=9 - number) for number in (1, 2, 3))
    remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), "")
    assert [each.exists() for each in (oldest, older, newer)] == [False, True, True]


def test_a_file_with_many_names_counts_once(tmp_path, left, monkeypatch):
    monkeypatch.setattr(scratch_module, "MOST_BYTES", 40_000)
    old, own = left(names(1), size=12_000, days=5), left(names(2), size=12_000)
    for number in range(20):
        (own / str(number)).hardlink_to(own / "file")
    remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), str(own))
    assert old.exists()


def test_the_time_of_a_folder_that_commands_can_set_does_not_count(tmp_path, left, monkeypatch):
    monkeypatch.setattr(scratch_module, "MOST_BYTES", 25_000)
    hostile, recent, newest = (left(names(number), size=12_000, days=9 - number) for number in (1, 2, 3))
    os.utime(hostile, (4e9, 4e9))
    (tmp_path / "sessions" / f"{names(4)}.jsonl").touch()
    old = left(names(4), days=31)
    os.utime(old, (4e9, 4e9))
    remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), "")
    assert [each.exists() for each in (hostile, recent, newest, old)] == [False, True, True, False]


def test_a_folder_that_is_too_large_to_measure_goes_before_others(tmp_path, left, monkeypatch):
    monkeypatch.setattr(scratch_module, "_MOST_ENTRIES", 5)
    monkeypatch.setattr(scratch_module, "MOST_BYTES", 25_000)
    old, endless = left(names(1), size=12_000, days=9), left(names(2), size=12_000)
    for number in range(5):
        (endless / str(number)).write_bytes(b"x" * 12_000)
    remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), "")
    assert [each.exists() for each in (old, endless)] == [True, False]


def test_the_folder_of_a_session_that_is_open_elsewhere_stays(tmp_path, left):
    import fcntl

    old = left(names(1), days=31)
    with (tmp_path / "sessions" / f"{names(1)}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), "")
        assert old.exists()
    remove_unused(str(tmp_path / "tmp"), str(tmp_path / "sessions"), "")
    assert not old.exists()


def test_without_a_session_and_where_nothing_can_be_made_the_folder_is_temporary(tmp_path):
    closed = tmp_path / "closed"
    closed.write_text("")
    for chosen in (SessionScratch(str(tmp_path / "tmp"), "/t"), SessionScratch(f"{closed}/tmp", "/t")):
        assert chosen.known == ""
        if chosen.folder.startswith(str(closed)):
            chosen.choose(ID)
        assert chosen.place().startswith("/t/bradawl-") and not chosen.is_kept
        assert chosen.place() == chosen.known


def test_a_session_gets_the_folder_of_its_id(tmp_path):
    chosen = SessionScratch(str(tmp_path / "tmp"), "/t")
    chosen.choose(ID)
    assert (chosen.place(), chosen.is_kept) == (f"{tmp_path}/tmp/{ID}", True)


@needs_bwrap
def test_a_session_removes_what_deleted_sessions_left(project):
    first = project.run(bash("echo x > /tmp/x"))
    (project.scratch.with_name("sessions") / f"{first.session_id}.jsonl").unlink()
    project.run(bash("true"))
    assert not (project.scratch / first.session_id).exists()
