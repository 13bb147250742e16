"""`LocalStore` finds, lists and opens sessions; if it can't write, sessions stay in memory with a notice."""

import asyncio
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from session_histories import OPENED
from session_samples import CHOICES, EVENTS, FORK, SUB_AGENT

from bradawl.core.errors import SessionBusy, SessionDamaged, SessionError, SessionNotFound
from bradawl.core.events import Cwd, PromptSubmitted, SessionForked, SessionOpened, StateChanged
from bradawl.core.messages import Image, Text
from bradawl.core.ports import OpenSession
from bradawl.folds.transcript import branch, fold
from bradawl.session.blobs import LocalBlobs
from bradawl.session.journal import Journal, MemoryLog
from bradawl.session.store import LocalStore
from bradawl.session.summaries import project_folder
from bradawl.testing.fakes import FakeClock, FakeIds

GOLDEN = Path(__file__).parent.parent / "golden" / "sessions"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "my project"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path, project):
    return LocalStore(tmp_path / "data", project, FakeClock(), FakeIds())


def talk(store: LocalStore, *texts: str) -> str:
    """Creates a session with these prompts and returns its id."""
    session = store.create()
    session.log.append(OPENED)
    for text in texts:
        session.log.append(PromptSubmitted((Text(text),)))
    assert session.log.close()
    return session.log.session_id


def folder_of(tmp_path: Path, project: Path) -> Path:
    return project_folder(tmp_path / "data", str(project.resolve())) / "sessions"


def age(path: Path, seconds: int) -> None:
    os.utime(path, ns=(seconds * 10**9, seconds * 10**9))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/me/my project", "home-me-my-project"),
        ("/", "root"),
        ("/ä/ö", "root"),
        ("/a/.hidden/../x", "a-.hidden-..-x"),
        ("/" + "x" * 300, "x" * 60),
        ("/tmp/\udcff", "tmp"),
    ],
)
def test_a_project_has_a_readable_folder_of_its_own(path, name):
    folder = project_folder(Path("/data"), path)
    assert folder.parent == Path("/data/projects")
    assert re.fullmatch(re.escape(name) + "-[0-9a-f]{8}", folder.name)
    assert project_folder(Path("/data"), path + "2") != folder


async def test_a_session_is_created_written_and_opened_again(store):
    session = store.create()
    assert session.entries == () and session.notices == ()
    written = [session.log.append(OPENED), session.log.append(PromptSubmitted((Text("hi"),)))]
    assert await session.log.durable(written[-1])
    assert session.log.close()
    again = store.open(session.log.session_id)
    assert again.entries == tuple(written) and again.notices == ()
    again.log.close()


def test_a_project_reached_through_a_symlink_is_the_same(tmp_path, project, store):
    session_id = talk(store, "hi")
    link = tmp_path / "link"
    link.symlink_to(project)
    assert LocalStore(tmp_path / "data", link, FakeClock(), FakeIds()).latest() == session_id


def test_creating_and_querying_a_store_writes_nothing(tmp_path, store):
    assert store.latest() is None and store.list() == ()
    with pytest.raises(SessionNotFound, match="no sessions yet"):
        store.open("01ABCDEF")
    assert not (tmp_path / "data").exists()


def test_a_prefix_of_an_id_in_any_case_is_enough(store):
    first, second = talk(store, "a"), talk(store, "b")
    store.open(second.lower()).log.close()
    with pytest.raises(SessionNotFound, match=f"several sessions.*{first}"):
        store.open(second[:8])
    assert first != second


@pytest.mark.parametrize(
    "name", ["", "  ", "../../etc/passwd", "01FAK", "01FAKE/../x", "01FAKE\0", "*" * 8, "ä" * 8, "x" * 300, "S.jsonl"]
)
def test_no_name_opens_a_file_outside_the_folder(store, name):
    session_id = talk(store, "a")
    with pytest.raises(SessionNotFound, match=session_id):
        store.open(name)


def test_an_id_of_another_folder_is_an_error_that_names_the_folder(tmp_path, store):
    session_id = talk(store, "a")
    other = LocalStore(tmp_path / "data", tmp_path, FakeClock(), FakeIds())
    with pytest.raises(SessionNotFound, match="belongs to the folder /p"):
        other.open(session_id)


def test_an_id_of_a_folder_that_was_moved_is_an_error_that_says_what_to_do(tmp_path, project, store):
    session = store.create()
    session.log.append(SessionOpened(1, str(project), str(project)))
    assert session.log.close()
    moved = project.rename(tmp_path / "moved")
    other = LocalStore(tmp_path / "data", moved, FakeClock(), FakeIds())
    with pytest.raises(SessionNotFound, match="If that folder was renamed or moved, move it back"):
        other.open(session.log.session_id)
    moved.rename(project)
    with pytest.raises(SessionNotFound, match="go on with it there"):
        other.open(session.log.session_id)


def test_the_latest_session_is_the_last_written_one_with_a_prompt(tmp_path, project, store):
    folder = folder_of(tmp_path, project)
    old, new, silent, broken = talk(store, "old"), talk(store, "new"), talk(store), talk(store, "broken")
    (folder / f"{broken}.jsonl").write_bytes(b"\0\0\0" + b'"type":"PromptSubmitted"')
    (folder / "zz.jsonl").mkdir()
    (folder / "zzz.jsonl").symlink_to("/dev/zero")
    for seconds, name in enumerate((old, new, silent, broken), start=1_000_000):
        age(folder / f"{name}.jsonl", seconds)
    assert store.latest() == new
    age(folder / f"{old}.jsonl", 2_000_000)
    assert store.latest() == old


def test_a_prompt_far_into_the_file_counts_too(store):
    session = store.create()
    session.log.append(OPENED)
    for number in range(1000):
        session.log.append(StateChanged(Cwd(f"/{number}/" + "x" * 100)))
    session.log.append(PromptSubmitted((Text("late"),)))
    session.log.close()
    assert store.latest() == session.log.session_id


def test_the_list_shows_each_session_with_its_first_prompt(tmp_path, project, store):
    session_id = talk(store, "  Fix\n\tthe \x1b[31mbug " + "very " * 40, "second")
    silent = talk(store)
    (summary, empty) = sorted(store.list(), key=lambda one: one.id)
    path = folder_of(tmp_path, project) / f"{session_id}.jsonl"
    assert summary.id == session_id and empty.id == silent
    assert summary.preview.startswith("Fix the [31mbug very very") and len(summary.preview) == 80
    assert summary.size_bytes == path.stat().st_size and summary.modified_s == path.stat().st_mtime
    assert empty.preview == ""


@pytest.mark.parametrize(
    ("parts", "preview"),
    [
        ((Text("x " * 100_000),), "x"),
        ((Image("image/png", b"x" * 100_000), Text("late")), ""),
        ((Text("say"), Image("image/png", b"x" * 100_000)), "say"),
        ((Text("odd \udcff name"),), "odd name"),
    ],
)
def test_a_preview_shows_the_readable_part_of_a_very_long_prompt(store, parts, preview):
    session = store.create()
    session.log.append(OPENED)
    session.log.append(PromptSubmitted(parts))
    session.log.close()
    assert store.list()[0].preview.startswith(preview)


def test_a_busy_and_a_damaged_session_raise_different_errors(tmp_path, project, store):
    session = store.create()
    session.log.append(OPENED)
    with pytest.raises(SessionBusy):
        store.open(session.log.session_id)
    session.log.close()
    path = folder_of(tmp_path, project) / f"{session.log.session_id}.jsonl"
    path.write_bytes(b"garbage\n")
    with pytest.raises(SessionDamaged, match=re.escape(str(path))):
        store.open(session.log.session_id)


def _forked(store: LocalStore, origin: str, seq: int) -> str:
    session = store.create()
    session.log.append(SessionForked(1, origin, seq, "/p", "/p"))
    session.log.append(PromptSubmitted((Text("other"),)))
    assert session.log.close()
    return session.log.session_id


def test_a_fork_continues_its_origin_up_to_the_named_entry(store):
    origin = talk(store, "a", "b", "c")
    fork = _forked(store, origin, 2)
    again = store.open(_forked(store, fork, 4))
    again.log.close()
    texts = [message.parts[0].text for message in fold(again.entries).messages]
    assert texts == ["a", "b", "other", "other"]
    assert [entry.seq for entry in again.entries] == [0, 1, 2, 3, 4, 5, 6]
    assert again.notices == ()


def test_a_fork_with_a_missing_or_circular_origin_opens_with_a_notice(store):
    for origin in ("01NOBODY", "../x", "01FAKE00000000000000000003"):
        session = store.open(_forked(store, origin, 5))
        session.log.close()
        assert len(session.entries) == 2 and "forked" in session.notices[0]


# ---------------------------------------------------------------- older formats


@pytest.fixture
def golden(tmp_path, project, store):
    folder = folder_of(tmp_path, project)
    folder.mkdir(parents=True)
    for path in GOLDEN.iterdir():
        shutil.copy(path, folder)
    return store


def _opened(store: LocalStore, session_id: str) -> OpenSession:
    session = store.open(session_id)
    session.log.close()
    return session


def test_a_session_of_format_1_still_loads(golden):
    session = _opened(golden, "01GOLDEN000000000000000001")
    expected = list(EVENTS)
    place = next(i for i, event in enumerate(expected) if type(event).__name__ == "AgentSpawned")
    expected[place + 1 : place + 1] = SUB_AGENT
    assert [entry.event for entry in session.entries] == expected
    assert [entry.seq for entry in session.entries] == list(range(len(expected)))
    assert session.notices == ()
    assert [entry.seq for entry in branch(session.entries, "scout")] == [place + 1, place + 2]


def test_a_fork_of_format_1_still_loads(golden):
    session = _opened(golden, "01GOLDEN000000000000000002")
    assert [entry.event for entry in session.entries[-2:]] == list(FORK)
    assert [entry.seq for entry in session.entries] == list(range(27))
    assert branch(session.entries)[0].seq == 0 and session.notices == ()


def test_choices_of_the_user_in_format_1_still_load(golden):
    session = _opened(golden, "01GOLDEN000000000000000003")
    assert [entry.event for entry in session.entries] == list(CHOICES) and session.notices == ()


# ---------------------------------------------------------------- unwritable folders


async def _use(session: OpenSession) -> None:
    """Uses a session in memory, which works and never counts as saved."""
    ref = await session.blobs.put(b"data")
    assert session.blobs.get(ref) == b"data"
    with pytest.raises(SessionError):
        session.blobs.path(ref)
    entry = session.log.append(PromptSubmitted((Text("hi"),)))
    assert await session.log.durable(entry) is False
    assert session.log.close() is False


async def test_a_file_in_place_of_the_folder_leaves_the_session_in_memory(tmp_path, store):
    (tmp_path / "data").write_text("in the way")
    session = store.create()
    assert isinstance(session.log, MemoryLog)
    assert session.notices[0].startswith("history is not saved: ") and str(tmp_path) in session.notices[0]
    await _use(session)
    assert store.latest() is None and store.list() == ()


@pytest.fixture
def mount_disk(tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    mounted = []

    def mount(*options: str) -> None:
        command = ["mount", *options, str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("needs the right to mount")
        mounted.append(place)

    yield mount
    for one in mounted:
        subprocess.run(["umount", "-l", one], check=False)


async def test_a_full_disk_leaves_the_session_in_memory(tmp_path, store, mount_disk):
    mount_disk("-t", "tmpfs", "-o", "size=16k", "tmpfs")
    (tmp_path / "data" / "ballast").write_bytes(b"x" * 16384)
    session = store.create()
    assert session.notices[0].startswith("history is not saved: No space left on device")
    await _use(session)


async def test_a_read_only_session_continues_in_memory(tmp_path, store, mount_disk):
    mount_disk("-t", "tmpfs", "-o", "size=1m", "tmpfs")
    session_id = talk(store, "before")
    before = store.open(session_id)
    kept = await before.blobs.put(b"kept")
    before.log.close()
    mount_disk("-o", "remount,ro")
    session = store.open(session_id)
    assert session.notices[0].startswith("history is not saved: Read-only file system")
    assert len(session.entries) == 2
    assert session.blobs.get(kept) == b"kept" and Path(session.blobs.path(kept)).read_bytes() == b"kept"
    entry = session.log.append(PromptSubmitted((Text("after"),)))
    assert (entry.seq, entry.parent) == (2, 1)
    assert session.log.close() is False


AS_ANOTHER_USER = """
import os, sys
from bradawl.core.errors import SessionError
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
store = LocalStore(sys.argv[1], "/", FakeClock(), FakeIds())
session = store.create()
print(session.notices, store.latest(), store.list())
session.log.close()
try:
    store.open("01ABCDEF")
except SessionError as error:
    print(error)
"""


@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_an_unwritable_home_leaves_the_session_in_memory(mode):
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        home.mkdir()
        Path(place).chmod(0o755)
        home.chmod(mode)
        command = [sys.executable, "-c", AS_ANOTHER_USER, str(home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        home.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert "history is not saved: Permission denied" in done.stdout and "None ()" in done.stdout
    assert "can't be read: Permission denied" in done.stdout or "no sessions yet" in done.stdout


# ---------------------------------------------------------------- blobs


async def test_a_blob_is_a_private_file_named_by_its_hash(tmp_path):
    blobs = LocalBlobs(tmp_path / "p" / "blobs")
    ref = await blobs.put(b"data")
    place = Path(blobs.path(ref))
    assert place.read_bytes() == blobs.get(ref) == b"data" and place.name == ref
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [path.name for path in place.parent.iterdir()] == [ref]


async def test_an_existing_blob_is_written_again_only_if_it_is_truncated(tmp_path):
    ref = await LocalBlobs(tmp_path).put(b"data")
    before = (tmp_path / ref).stat()
    await LocalBlobs(tmp_path).put(b"data")
    assert (tmp_path / ref).stat().st_ino == before.st_ino
    (tmp_path / ref).write_bytes(b"")
    await LocalBlobs(tmp_path).put(b"data")
    assert LocalBlobs(tmp_path).get(ref) == b"data"


@pytest.mark.parametrize("damage", [b"", b"dat", b"dota"])
async def test_a_damaged_blob_is_never_returned(tmp_path, damage):
    ref = await LocalBlobs(tmp_path).put(b"data")
    (tmp_path / ref).write_bytes(damage)
    with pytest.raises(SessionError, match="damaged"):
        LocalBlobs(tmp_path).get(ref)


@pytest.mark.parametrize("ref", ["", "../x", "A" * 64, "/etc/passwd", "g" * 64, "a" * 65])
def test_only_a_hash_names_a_blob(tmp_path, ref):
    for ask in (LocalBlobs(tmp_path).get, LocalBlobs(tmp_path).path):
        with pytest.raises(SessionError, match="sha256"):
            ask(ref)


async def test_many_puts_at_once_leave_one_file_each_and_no_other(tmp_path):
    blobs = LocalBlobs(tmp_path / "blobs")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(blobs.put(b"%d" % (number % 5))) for number in range(40)]
    refs = {task.result() for task in tasks}
    assert {path.name for path in (tmp_path / "blobs").iterdir()} == refs and len(refs) == 5


async def test_a_blob_that_can_not_be_written_stays_in_memory_and_the_session_is_not_saved(tmp_path, store):
    session = store.create()
    blobs = session.blobs
    assert isinstance(blobs, LocalBlobs) and isinstance(session.log, Journal)
    in_the_way = folder_of(tmp_path, tmp_path / "my project").parent / "blobs"
    in_the_way.write_text("")
    session.log.append(OPENED)
    ref = await blobs.put(b"data")
    assert blobs.get(ref) == b"data" and not blobs.is_saved and not session.log.is_saved
    with pytest.raises(SessionError):
        blobs.path(ref)
    in_the_way.unlink()
    assert session.log.close() is True
    assert LocalBlobs(in_the_way).get(ref) == b"data"


# ---------------------------------------------------------------- sessions by what their files hold


def test_sessions_are_found_by_a_text_in_their_file_the_last_written_first(tmp_path, project, store):
    folder = folder_of(tmp_path, project)
    found = [talk(store, "first", "needle 1"), talk(store, "none"), talk(store, "x" * 3_000_000, "needle 2")]
    for seconds, name in enumerate(found):
        age(folder / f"{name}.jsonl", seconds)
    (folder / "01DAMAGED.jsonl").write_bytes(b"needle\n")
    (folder / "01GONE.jsonl").symlink_to(folder / "nothing")
    os.mkfifo(folder / "01FIFO.jsonl")
    everything = list(store.containing(re.compile(b"needle [0-9]"), 10**9))
    assert [(each.id, each.preview[:5]) for each in everything] == [(found[2], "xxxxx"), (found[0], "first")]
    size = (folder / f"{found[2]}.jsonl").stat().st_size
    assert [each.id for each in store.containing(re.compile(b"needle [0-9]"), size)] == [found[2]]
    assert list(store.containing(re.compile(b"needle [0-9]"), 0)) == []


@pytest.mark.parametrize("before", range(1024 * 1024 - 70, 1024 * 1024 + 5, 5))
def test_a_text_is_found_across_the_pieces_in_which_a_file_is_read(tmp_path, project, store, before):
    name = talk(store, "one")
    path = folder_of(tmp_path, project) / f"{name}.jsonl"
    data = path.read_bytes()
    path.write_bytes(data + b" " * (before - len(data)) + b"n" * 60 + b"e")
    assert [each.id for each in store.containing(re.compile(b"n{60}e"), 10**9)] == [name]


def test_entries_that_waited_for_space_on_the_disk_are_read_once_there_is_space_again(store):
    opened = store.create()
    opened.log.append(OPENED)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        waiting = opened.log.append(PromptSubmitted((Text("written while the disk was full"),)))
        assert waiting not in opened.read()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert opened.read()[-1] == waiting
    assert opened.log.close()


def test_the_entries_of_an_open_session_can_be_read(store):
    session = store.create()
    session.log.append(OPENED)
    session.log.append(PromptSubmitted((Text("hi"),)))
    assert session.log.close()
    again = store.open(session.log.session_id)
    assert store.entries(session.log.session_id) == again.entries
    again.log.close()
    with pytest.raises(SessionError):
        store.entries("01NOTHING")
