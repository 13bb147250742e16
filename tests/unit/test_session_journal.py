"""`Journal`: acknowledged entries survive crashes, torn writes and failing disks."""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from session_histories import OPENED, prompt

from bradawl.core.errors import SessionBusy, SessionDamaged
from bradawl.core.events import FORMAT_VERSION, Cwd, SessionOpened, StateChanged
from bradawl.folds.transcript import branch, fold
from bradawl.session.journal import Journal, LoadedSession, load
from bradawl.testing.fakes import FakeClock


def new(folder: Path) -> Journal:
    return Journal.create(folder / "sessions" / "S.jsonl", FakeClock())


def resume(folder: Path, sync=os.fdatasync) -> tuple[Journal, LoadedSession, tuple[str, ...]]:
    return Journal.resume(folder / "sessions" / "S.jsonl", FakeClock(), sync)


def skip_sync(fd: int) -> None:
    """A sync that does nothing, for tests that need no durability."""


def file_of(folder: Path) -> Path:
    return folder / "sessions" / "S.jsonl"


def written(folder: Path, *events) -> bytes:
    """The bytes of a session file with these events."""
    journal = new(folder)
    for event in events:
        journal.append(event)
    assert journal.close()
    return file_of(folder).read_bytes()


def test_entries_are_numbered_and_each_agent_has_its_own_chain(tmp_path):
    journal = new(tmp_path)
    placed = [
        journal.append(OPENED),
        journal.append(prompt("a")),
        journal.append(prompt("b"), "scout"),
        journal.append(prompt("c")),
        journal.append(prompt("d"), "scout"),
    ]
    assert [(entry.seq, entry.parent) for entry in placed] == [(0, None), (1, 0), (2, 1), (3, 1), (4, 2)]
    assert journal.close() is True
    assert load(file_of(tmp_path)).entries == tuple(placed)


def test_an_entry_is_in_the_file_as_soon_as_append_returns(tmp_path):
    journal = new(tmp_path)
    journal.append(OPENED)
    assert file_of(tmp_path).read_bytes().count(b"\n") == 1
    journal.close()


def test_a_session_that_was_never_used_leaves_no_file(tmp_path):
    journal = new(tmp_path)
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["S.lock"]
    assert journal.close() is True and journal.close() is True
    assert list((tmp_path / "sessions").iterdir()) == []


def test_files_and_folders_are_private_to_the_user(tmp_path):
    written(tmp_path / "data", OPENED)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*")}
    assert modes == {"sessions": 0o700, "S.jsonl": 0o600, "S.lock": 0o600}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_a_resumed_session_continues_after_its_last_entry(tmp_path):
    written(tmp_path, OPENED, prompt("a"))
    journal, loaded, notices = resume(tmp_path)
    entry = journal.append(prompt("b"))
    assert (entry.seq, entry.parent, notices) == (2, 1, ())
    assert journal.close()
    assert len(fold((*loaded.entries, entry)).messages) == 2
    assert load(file_of(tmp_path)).entries == (*loaded.entries, entry)


def test_a_second_writer_is_refused_with_the_pid_of_the_first(tmp_path):
    journal = new(tmp_path)
    journal.append(OPENED)
    with pytest.raises(SessionBusy, match=f"this program.*{os.getpid()}.*start a new session"):
        resume(tmp_path)
    journal.close()
    resume(tmp_path)[0].close()


def test_another_process_is_refused_until_the_holder_of_the_lock_ends(tmp_path):
    written(tmp_path, OPENED)
    code = (
        "import sys; from pathlib import Path; from bradawl.session.journal import Journal\n"
        "from bradawl.testing.fakes import FakeClock\n"
        "j = Journal.resume(Path(sys.argv[1]), FakeClock())[0]; print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, file_of(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SessionBusy, match=f"process {holder.pid}"):
            resume(tmp_path)
        holder.kill()
        holder.wait()
        resume(tmp_path)[0].close()


class GatedDisk:
    """A sync that waits for `may_end`, and counts its calls."""

    def __init__(self):
        self.syncs = 0
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, fd):
        self.syncs += 1
        self.has_begun.set()
        assert self.may_end.wait(10)
        os.fdatasync(fd)


async def test_one_sync_serves_all_entries_appended_before_it_without_blocking_the_loop(tmp_path):
    disk = GatedDisk()
    journal = Journal.create(file_of(tmp_path), FakeClock(), sync=disk)
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(journal.durable(journal.append(prompt("early"))))]
    await loop.run_in_executor(None, disk.has_begun.wait)
    tasks += [loop.create_task(journal.durable(journal.append(prompt(str(n))))) for n in range(50)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    disk.may_end.set()
    assert all([await task for task in tasks])
    assert disk.syncs == 2
    assert journal.close() and disk.syncs == 2


async def test_after_a_failed_sync_no_entry_counts_as_durable(tmp_path):
    failures = [OSError(5, "Input/output error")]

    def sync(fd):
        if failures:
            raise failures.pop()

    journal = Journal.create(file_of(tmp_path), FakeClock(), sync=sync)
    assert await journal.durable(journal.append(OPENED)) is False
    assert await journal.durable(journal.append(prompt("b"))) is False
    assert journal.is_saved is False and journal.close() is False


def test_durable_can_be_used_in_successive_event_loops(tmp_path):
    journal = new(tmp_path)
    first = journal.append(OPENED)
    assert asyncio.run(journal.durable(first))
    assert asyncio.run(journal.durable(first))
    assert asyncio.run(journal.durable(journal.append(prompt("b"))))
    assert journal.close()


class LoopWithCallback(asyncio.SelectorEventLoop):
    """Calls `then` after each result of a thread, before the tasks that wait for the result run."""

    then = staticmethod(lambda: None)

    def call_soon_threadsafe(self, callback, *args, context=None):
        def both():
            callback(*args)
            self.then()

        return super().call_soon_threadsafe(both, context=context)


def test_an_entry_appended_between_a_sync_and_its_result_does_not_block_the_loop(tmp_path):
    journal = new(tmp_path)
    late, problems = [], []

    def append_late():
        if not late:
            late.append(journal.durable(journal.append(prompt("late"))))
            late[0].send(None)  # like a task: runs to its first wait, which it must reach

    async def acknowledge():
        asyncio.get_running_loop().then = append_late
        # The loop would only log an exception of a callback, even a test's own timeout.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        return await journal.durable(journal.append(OPENED))

    with asyncio.Runner(loop_factory=LoopWithCallback) as runner:
        assert runner.run(acknowledge())
    assert len(late) == 1 and not problems
    late[0].close()
    assert journal.close()


async def test_cancelling_one_waiter_does_not_cancel_the_sync_of_the_others(tmp_path):
    journal = new(tmp_path)
    entry = journal.append(OPENED)
    gone = asyncio.ensure_future(journal.durable(entry))
    stays = asyncio.ensure_future(journal.durable(entry))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert await stays
    assert journal.close()


async def test_a_log_whose_file_was_removed_does_not_count_as_saved(tmp_path):
    journal = new(tmp_path)
    entry = journal.append(OPENED)
    file_of(tmp_path).unlink()
    assert (await journal.durable(entry)) is False
    assert journal.close() is False


async def test_after_close_nothing_counts_as_saved(tmp_path):
    journal = new(tmp_path)
    journal.append(OPENED)
    assert journal.close()
    late = journal.append(prompt("late"))
    assert (await journal.durable(late)) is False
    assert journal.is_saved is False and journal.close() is False


def test_a_session_cut_at_any_byte_of_its_last_lines_keeps_every_complete_entry(tmp_path):
    whole = written(tmp_path, OPENED, prompt("eins"), prompt("zwei ä €"), prompt("drei \U0001f600"))
    lines = whole.splitlines(keepends=True)
    for cut in range(len(whole) - len(lines[-1]) - len(lines[-2]), len(whole) + 1):
        folder = tmp_path / str(cut)
        (folder / "sessions").mkdir(parents=True)
        file_of(folder).write_bytes(whole[:cut])
        journal, loaded, notices = resume(folder, skip_sync)
        lacks_newline = cut in _ends(lines)
        is_torn = not lacks_newline and not whole[:cut].endswith(b"\n")
        kept = whole[:cut].count(b"\n") + lacks_newline
        assert len(loaded.entries) == kept
        assert len(notices) == is_torn
        assert file_of(folder).with_suffix(".torn").exists() == is_torn
        entry = journal.append(prompt("after"))
        assert journal.close()
        again = load(file_of(folder))
        assert again.entries == (*loaded.entries, entry)
        assert again.reader.notices() == () and not again.torn


def _ends(lines: list[bytes]) -> set[int]:
    """Offsets at which an entry is complete except for its newline."""
    return {sum(map(len, lines[: n + 1])) - 1 for n in range(len(lines))}


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\xe2\x82", b"[1, 2]", b'{"seq": 9}', b"{" * 3000])
def test_a_torn_last_line_is_moved_to_another_file(tmp_path, tail):
    whole = written(tmp_path, OPENED, prompt("a"))
    file_of(tmp_path).write_bytes(whole + tail)
    journal, loaded, (notice,) = resume(tmp_path)
    assert len(loaded.entries) == 2 and str(len(tail)) in notice
    journal.close()
    assert file_of(tmp_path).read_bytes() == whole
    torn = file_of(tmp_path).with_suffix(".torn")
    assert torn.read_bytes() == tail + b"\n" and torn.stat().st_mode & 0o777 == 0o600


def test_reading_changes_nothing(tmp_path):
    whole = written(tmp_path, OPENED, prompt("a")) + b'{"seq":2,'
    file_of(tmp_path).write_bytes(whole)
    before = sorted(path.name for path in (tmp_path / "sessions").iterdir())
    assert len(load(file_of(tmp_path)).entries) == 2
    assert file_of(tmp_path).read_bytes() == whole
    assert sorted(path.name for path in (tmp_path / "sessions").iterdir()) == before


def test_a_session_with_a_torn_first_line_can_begin_again(tmp_path):
    (tmp_path / "sessions").mkdir()
    file_of(tmp_path).write_bytes(b'{"seq":0,"parent":nul')
    journal, loaded, notices = resume(tmp_path)
    assert loaded.entries == () and len(notices) == 1
    assert journal.append(OPENED).seq == 0
    assert journal.close()


def test_a_damaged_session_is_refused_and_not_changed(tmp_path):
    (tmp_path / "sessions").mkdir()
    file_of(tmp_path).write_bytes(b"not a session\nat all")
    for _ in range(2):  # the lock must have been released
        with pytest.raises(SessionDamaged):
            resume(tmp_path)
    assert file_of(tmp_path).read_bytes() == b"not a session\nat all"


def test_a_session_of_another_format_marks_where_entries_of_this_version_begin(tmp_path):
    written(tmp_path, SessionOpened(FORMAT_VERSION + 1, "/p", "/p"), prompt("a"), StateChanged(Cwd("/p/sub")))
    journal, loaded, notices = resume(tmp_path)
    assert "newer" in notices[0]
    entry = journal.append(prompt("b"))
    journal.close()
    again = load(file_of(tmp_path))
    assert again.reader.version == FORMAT_VERSION
    assert again.entries[3].event == SessionOpened(FORMAT_VERSION, "/p", "/p/sub")
    assert branch((*loaded.entries, entry)) == branch(again.entries)


async def test_no_descriptor_is_left_open(tmp_path):
    written(tmp_path, OPENED, prompt("a"))
    before = _open_descriptors()
    for _ in range(20):
        journal, _, _ = resume(tmp_path)
        await journal.durable(journal.append(prompt("b")))
        with pytest.raises(SessionBusy):
            resume(tmp_path)
        journal.close()
    assert _open_descriptors() == before


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class CrashingProgram(RuleBasedStateMachine):
    """Appends, syncs, crashes at any byte and resumes: acknowledged entries are still there, in order."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY)
        self.lives = 0
        self.entries = []
        self.safe_bytes = 0
        self.acknowledged = 0
        self.root = Path(self.folder.name) / "0"
        self.journal = Journal.create(file_of(self.root), FakeClock(), skip_sync)
        self._append(OPENED)

    def _append(self, event, agent="main"):
        self.entries.append(self.journal.append(event, agent))

    @rule(text=st.text(max_size=30), agent=st.sampled_from(["main", "main", "scout"]))
    def append(self, text, agent):
        self._append(prompt(text), agent)

    @rule()
    def sync(self):
        assert asyncio.run(self.journal.durable(self.entries[-1]))
        self.acknowledged = len(self.entries)
        self.safe_bytes = file_of(self.root).stat().st_size

    @rule(data=st.data())
    def crash(self, data):
        whole = file_of(self.root).read_bytes()
        cut = data.draw(st.integers(self.safe_bytes, len(whole)))
        self.journal.close()
        self.lives += 1
        self.root = Path(self.folder.name) / str(self.lives)
        (self.root / "sessions").mkdir(parents=True)
        file_of(self.root).write_bytes(whole[:cut])
        self.journal, loaded, _ = resume(self.root, skip_sync)
        assert list(loaded.entries) == self.entries[: len(loaded.entries)]
        assert len(loaded.entries) >= self.acknowledged
        self.entries = list(loaded.entries)
        if not self.entries:
            self._append(OPENED)

    @rule()
    def close_and_resume(self):
        assert self.journal.close()
        self.journal, loaded, notices = resume(self.root, skip_sync)
        assert list(loaded.entries) == self.entries and notices == ()

    @invariant()
    def file_holds_exactly_the_entries(self):
        assert list(load(file_of(self.root)).entries) == self.entries

    def teardown(self):
        self.journal.close()
        self.folder.cleanup()


TestCrashingProgram = CrashingProgram.TestCase
TestCrashingProgram.settings = settings(stateful_step_count=20)
