"""Content of a file after a failed or concurrent write: killed at any call, full disk, special files, other writers."""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from digests import sha
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule

from bradawl.core.errors import ToolError
from bradawl.workspace.files import LocalFiles
from patience import no_wait

IS_ROOT = os.geteuid() == 0
OLD, NEW = b"old\n" * 3_000, b"new content\n" * 5_000


async def replace(path: Path, data: bytes, expected: str | None) -> None:
    await LocalFiles().replace(str(path), data, expected)


async def read(path: Path) -> bytes:
    return (await LocalFiles().read(str(path), 10_000_000)).data


def exit_code(*command: str) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


# Runs the real code in a child and kills it at each of its system calls; a killed write has written half of its data.
KILLER = """
import asyncio, os, signal, sys
from pathlib import Path
from bradawl.workspace.files import LocalFiles
from hashlib import sha256

kind, root, when = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
old, new = b"old\\n" * 3_000, b"new content\\n" * 5_000
files = LocalFiles()

def attempt(last):
    count = 0
    def wrapped(name, real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count == last and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if count == last and name == "write":
                arguments = (arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            here = count
            try:
                return real(*arguments, **options)
            finally:
                if here == last:
                    os.kill(os.getpid(), signal.SIGKILL)
        return call
    for name in ("open", "write", "fsync", "replace", "rename", "link", "unlink", "ftruncate", "fchmod", "lseek"):
        setattr(os, name, wrapped(name, getattr(os, name)))
    expected = None if kind == "new" else sha256(old).hexdigest()
    asyncio.run(files.replace(str(root / "f"), new, expected))
    os._exit(0)

for last in range(1, 500):
    for entry in list(root.iterdir()):
        entry.unlink()
    if kind != "new":
        (root / "f").write_bytes(old)
    if kind == "linked":
        (root / "other").hardlink_to(root / "f")
    child = os.fork()
    if not child:
        attempt(last)
    _, status = os.waitpid(child, 0)
    data = asyncio.run(files.read(str(root / "f"), 1 << 30)).data if (root / "f").exists() else None
    allowed = (None, new) if kind == "new" else (old, new)
    assert data in allowed, (kind, last, data and (len(data), data[:20]))
    if kind == "linked":
        assert (root / "other").read_bytes() == data
        assert (root / "f").stat().st_ino == (root / "other").stat().st_ino
    again = asyncio.run(files.read(str(root / "f"), 1 << 30)).sha256 if data is not None else None
    asyncio.run(files.replace(str(root / "f"), b"and on", again))
    if not status:
        print(last, [entry.name for entry in root.iterdir()])
        break
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["new", "there", "linked"])
def test_killed_at_any_call_a_file_has_the_old_or_the_new_content(tmp_path: Path, kind: str, when: str) -> None:
    command = [sys.executable, "-c", KILLER, kind, str(tmp_path), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    last, names = done.stdout.split(" ", 1)
    assert int(last) > 10, "too few calls were interrupted"
    assert eval(names) in (["f"], ["f", "other"], ["other", "f"])  # noqa: S307 - printed by the lines above


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("room", range(0, 60_000, 7_000))
async def test_at_the_limit_of_a_files_size_the_old_content_stays_under_every_name(tmp_path: Path, room: int) -> None:
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(OLD)
    for _ in ("alone", "linked"):
        with largest_file(room), pytest.raises(ToolError, match=r"f: can't write it: "):
            await replace(path, NEW, sha(OLD))
        assert await read(path) == OLD
        if not other.exists():
            other.hardlink_to(path)
    assert other.read_bytes() == OLD
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["f", "other"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KB."""
    if exit_code("mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)):
        pytest.skip("mounting a small disk needs root, and the right to mount")
    try:
        yield tmp_path
    finally:
        subprocess.run(("umount", str(tmp_path)), check=True)


@pytest.mark.skipif(not IS_ROOT, reason="mounting a small disk needs root")
async def test_on_a_full_disk_the_old_content_stays(small_disk: Path) -> None:
    path, other = small_disk / "f", small_disk / "other"
    path.write_bytes(OLD)
    for _ in ("alone", "linked"):
        with pytest.raises(ToolError, match="No space left"):
            await replace(path, b"x" * 100_000, sha(OLD))
        assert path.read_bytes() == OLD
        if not other.exists():
            other.hardlink_to(path)
    with pytest.raises(ToolError, match="No space left"):
        await replace(small_disk / "g", b"x" * 100_000, None)
    assert sorted(entry.name for entry in small_disk.iterdir()) == ["f", "other"]


@pytest.mark.skipif(not IS_ROOT, reason="mounting a small disk needs root")
async def test_on_a_read_only_disk_the_error_says_so(small_disk: Path) -> None:
    (small_disk / "f").write_bytes(OLD)
    assert exit_code("mount", "-o", "remount,ro", str(small_disk)) == 0
    with pytest.raises(ToolError, match="f is read-only; use another file or ask the user"):
        await replace(small_disk / "f", NEW, sha(OLD))
    with pytest.raises(ToolError, match="g can't be created: Read-only file system"):
        await replace(small_disk / "g", NEW, None)


async def test_an_immutable_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    if not shutil.which("chattr"):
        pytest.skip("no chattr here")
    if exit_code("chattr", "+i", str(path)):
        pytest.skip("making a file immutable needs root and a file system that knows it")
    try:
        with pytest.raises(ToolError, match="f is read-only"):
            await replace(path, NEW, sha(OLD))
        assert path.read_bytes() == OLD
    finally:
        assert exit_code("chattr", "-i", str(path)) == 0


async def test_a_file_without_read_permission_is_an_error_except_for_root(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    path.chmod(0)
    if IS_ROOT:  # root ignores permission bits
        assert await read(path) == OLD
        await replace(path, NEW, sha(OLD))
        assert path.stat().st_mode & 0o777 == 0
        return
    with pytest.raises(ToolError, match="no permission to read it"):
        await read(path)


async def test_a_path_that_is_no_file_is_an_error_without_delay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(b"")
    with no_wait():
        for name in (
            "pipe",
            "folder",
            "loop",
            "file/below",
            "folder/.",
            "/dev/null",
            "/dev/tty",
            "/",
            "/proc/self/mem",
        ):
            path = tmp_path / name
            with pytest.raises(ToolError):
                await read(path)
            for expected in (sha(b""), None) if name != "/proc/self/mem" else ():
                with pytest.raises(ToolError):
                    await replace(path, b"x", expected)


def test_a_folder_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    """A write resolves the path again after the check, and follows no link."""
    from bradawl.workspace.atomic_write import create_file
    from bradawl.workspace.safe_open import folder_of

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "f").write_bytes(OLD)
    with pytest.raises(ToolError, match="changed since it was checked"), folder_of(f"{tmp_path}/link/f"):
        pass
    with pytest.raises(ToolError, match="changed since it was checked"):
        create_file(f"{tmp_path}/link/g", NEW)
    assert [entry.name for entry in (tmp_path / "real").iterdir()] == ["f"]


def test_a_name_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    from bradawl.workspace.safe_open import folder_of, locked

    (tmp_path / "secret").write_bytes(OLD)
    (tmp_path / "f").symlink_to("secret")
    with (
        pytest.raises(ToolError, match="has changed since it was checked"),
        folder_of(f"{tmp_path}/f") as (folder, name),
        locked(folder, name, f"{tmp_path}/f"),
    ):
        pass


async def test_a_change_by_another_program_during_a_write_is_not_lost(tmp_path: Path) -> None:
    from bradawl.workspace.atomic_write import replace_content
    from bradawl.workspace.safe_open import folder_of, locked

    path = tmp_path / "f"
    path.write_bytes(OLD)
    with folder_of(str(path)) as (folder, name), locked(folder, name, str(path)) as (descriptor, is_locked):
        assert is_locked
        status = os.fstat(descriptor)
        path.write_bytes(b"theirs")
        with pytest.raises(ToolError, match="has changed at this very moment"):
            replace_content(folder, name, descriptor, NEW, status)
        path.unlink()
        path.write_bytes(OLD)
        with pytest.raises(ToolError, match="has changed at this very moment"):
            replace_content(folder, name, descriptor, NEW, os.fstat(descriptor))
    assert await read(path) == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


async def test_owner_is_kept(tmp_path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("giving files away needs root")
    path = tmp_path / "f"
    path.write_bytes(OLD)
    os.chown(path, 1234, 4321)
    await replace(path, NEW, sha(OLD))
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


async def test_the_undo_copy_of_a_crash_does_not_replace_a_later_write(tmp_path: Path) -> None:
    """A copy that a crash left behind never replaces a later write of another program."""
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(b"a later write")
    other.hardlink_to(path)
    status = path.stat()
    saved = tmp_path / f".bradawl-undo-{status.st_dev:x}-{status.st_ino:x}.tmp"
    saved.write_bytes(b"%d\n" % len(OLD) + OLD + NEW)
    assert await read(path) == b"a later write"
    assert not saved.exists()
    saved.write_bytes(b"7 torn")
    assert await read(other) == b"a later write"


# ------------------------------------------------------------------ concurrent readers and writers

WRITER = """
import asyncio, sys
from bradawl.core.errors import ToolError
from bradawl.workspace.files import LocalFiles

async def main(path, mark, count):
    files = LocalFiles()
    done = 0
    while done < count:
        content = await files.read(files.resolve(path, "/"), 1 << 20)
        try:
            await files.replace(content.path, content.data + mark, content.sha256)
        except ToolError as error:
            assert "has changed" in str(error), error
        else:
            done += 1

asyncio.run(main(sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])))
"""


@pytest.mark.parametrize("is_linked", [False, True])
def test_processes_that_write_one_file_lose_no_update(tmp_path: Path, is_linked: bool) -> None:
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(b"")
    if is_linked:
        other.hardlink_to(path)
    else:
        other.symlink_to("f")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(name), mark, "25"])
        for name, mark in ((path, "a"), (other, "b"), (path, "c"))
    ]
    try:
        assert [writer.wait(50) for writer in writers] == [0, 0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert sorted(path.read_bytes()) == sorted(b"abc" * 25)


class Writers(RuleBasedStateMachine):
    """Sessions that read and replace one file under several names; each knows only what it has read."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        self.names = [root / "f", root / "hard", root / "soft", root / "." / "f"]
        self.names[0].write_bytes(b"")
        self.names[1].hardlink_to(self.names[0])
        self.names[2].symlink_to("f")
        self.content = b""

    @rule(target=known, name=st.integers(0, 3))
    def reads(self, name: int) -> tuple[bytes, str]:
        found = asyncio.run(LocalFiles().read(self._resolved(name), 1 << 20))
        assert found.data == self.content
        return found.data, found.sha256

    @rule(target=known, known=known, name=st.integers(0, 3), mark=st.binary(min_size=1, max_size=3))
    def replaces(self, known: tuple[bytes, str], name: int, mark: bytes) -> tuple[bytes, str]:
        data = known[0] + mark
        try:
            digest = asyncio.run(LocalFiles().replace(self._resolved(name), data, known[1]))
        except ToolError:
            assert known[0] != self.content
            return known
        assert known[0] == self.content
        self.content = data
        return data, digest

    @rule(data=st.binary(max_size=3))
    def another_program_writes(self, data: bytes) -> None:
        self.names[0].write_bytes(data)
        self.content = data

    def _resolved(self, name: int) -> str:
        return LocalFiles().resolve(str(self.names[name]), "/")

    def teardown(self) -> None:
        self.folder.cleanup()


TestWriters = Writers.TestCase
TestWriters.settings = settings(stateful_step_count=12)


async def test_a_reader_never_sees_a_half_written_file(tmp_path: Path) -> None:
    """While a file is replaced again and again, a reader sees either the old or the new content."""
    path = tmp_path / "f"
    path.write_bytes(OLD)
    stopped = threading.Event()
    torn: list[bytes] = []

    def read_repeatedly() -> None:
        while not stopped.is_set():
            data = path.read_bytes()
            if data not in (OLD, NEW):
                torn.append(data)

    thread = threading.Thread(target=read_repeatedly)
    thread.start()
    try:
        for number in range(40):
            before, after = (OLD, NEW) if number % 2 == 0 else (NEW, OLD)
            await replace(path, after, sha(before))
    finally:
        stopped.set()
        thread.join()
    assert not torn


async def test_a_lock_of_another_program_delays_an_edit_for_seconds_only(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "f"
    path.write_bytes(OLD)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with no_wait():  # the other program never lets it go
            await replace(path, NEW, sha(OLD))
    assert path.read_bytes() == NEW


async def test_a_file_that_its_writer_has_locked_is_not_restored_from_the_undo_copy(
    tmp_path: Path,
) -> None:
    fcntl = pytest.importorskip("fcntl")
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(NEW[:10] + OLD[10:])
    other.hardlink_to(path)
    status = path.stat()
    saved = tmp_path / f".bradawl-undo-{status.st_dev:x}-{status.st_ino:x}.tmp"
    saved.write_bytes(b"%d\n" % len(OLD) + OLD + NEW)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert await read(path) == NEW[:10] + OLD[10:]
    assert await read(other) == OLD
    assert not saved.exists()
