"""Jobs that avoid being stopped or examined while the user saves a protected or hidden file."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from forked import as_plain_user
from landlock_programs import SYSTEM_PYTHON, USERS
from replaced_covers import use_covers
from sandboxed_session import SandboxedSession, remove_folder, sandboxed_session

from bradawl.core.ports import Process
from bradawl.core.workspace import Command, CommandResult
from bradawl.sandbox.running_covers.cover_mounter import CoverMounter

pytestmark = needs_bwrap

HOLDS = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
def hold():
    {before}
    while True:
        try:
            held = open(".envrc", "a")
        except OSError:
            time.sleep(0.0001)
            continue
        time.sleep(0.08)
        if os.fstat(held.fileno()).st_ino == os.stat(".envrc").st_ino:
            break  # it was not replaced once more
        held.close()
    open("held", "w")
    time.sleep(2)
    held.write("EVIL")
    held.flush()
if {in_thread}:
    worker = threading.Thread(target=hold)
    worker.start()
open("ready", "w")
worker.join() if {in_thread} else hold()
"""
WRITES = {
    "as a plain program": HOLDS.format(before="pass", in_thread=False),
    "does not show what it has open": HOLDS.format(before="libc.prctl(4, 0)", in_thread=False),
    "in a thread with its own descriptors": HOLDS.format(before="libc.unshare(0x400)", in_thread=True),
}
VFORK = r"""
#include <unistd.h>
#include <fcntl.h>
int main(void) {
    int log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    close(creat("ready", 0644));
    if (vfork() == 0)
        for (;;) { int file = open(".envrc", O_WRONLY | O_APPEND); if (file >= 0) { write(log, "x", 1); close(file); } }
    return 0;
}
"""


async def until(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():  # noqa: ASYNC110 - another program makes it
            await asyncio.sleep(0.01)


def save(path: Path, text: str) -> None:
    path.with_name("new").write_text(text)
    path.with_name("new").rename(path)


async def beside(
    made: SandboxedSession, line: str, act: Callable[[Process], Awaitable[None]], settled_s: float = 0.5
) -> CommandResult:
    """The result of a job during which the user acts."""
    job = await made.processes.start(Command((line,), made.cwd, is_shell=True), made.grant)
    try:
        await until(made.root / "ready")
        await asyncio.sleep(0.2)
        await act(job)
        await asyncio.sleep(settled_s)
    finally:
        await job.end()
    return job.result()


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("user", USERS)
def test_a_program_that_opened_the_saved_file_for_writing_is_ended(how, user, monkeypatch):
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(place))

    def act() -> None:
        with sandboxed_session(place / "own") as made:
            use_covers(made, mounter=CoverMounter(python=SYSTEM_PYTHON if user == "nobody" else ""))
            envrc = made.write(".envrc", "a\n")
            made.write("hold.py", WRITES[how])
            python = SYSTEM_PYTHON if user == "nobody" else "python3"

            async def save_until_held(job: Process) -> None:
                for _ in range(100):
                    save(envrc, "b\n")
                    if await job.wait(0.1) or (made.root / "held").exists():
                        return

            result = asyncio.run(beside(made, f"{python} hold.py", save_until_held, 2.5))
            assert envrc.read_text() == "b\n"
            was_ended = any("was ended" in note and ".envrc" in note for note in result.notes)
            assert was_ended or not (made.root / "held").exists(), result.notes

    try:
        as_plain_user(act) if user == "nobody" else act()
    finally:
        remove_folder(str(place))


def test_the_target_of_a_linked_key_file_is_hidden_again(made):
    target = made.home / "dotfiles/netrc"
    target.parent.mkdir()
    target.write_text("SECRET1\n")
    (made.home / ".netrc").symlink_to("dotfiles/netrc")
    other = made.home / "other/netrc"
    other.parent.mkdir()
    other.write_text("SECRET3\n")
    line = "touch ready; while sleep 0.05; do cat ~/.netrc ~/dotfiles/netrc ~/other/netrc > got 2>&1; done"

    async def save_target(job: Process) -> None:
        save(target, "SECRET2\n")

    async def link_elsewhere(job: Process) -> None:
        (made.home / "link").symlink_to("other/netrc")
        (made.home / "link").rename(made.home / ".netrc")

    for act in (save_target, link_elsewhere):
        result = asyncio.run(beside(made, line, act))
        assert any("consider new keys" in note and "netrc" in note for note in result.notes)
        assert "SECRET2" not in (made.root / "got").read_text() or act is link_elsewhere
    assert "SECRET3" not in (made.root / "got").read_text()


def test_a_later_save_of_a_new_target_is_hidden_as_well(made):
    for name in ("first", "second"):
        (made.home / name).write_text("SECRET\n")
    (made.home / ".netrc").symlink_to("first")
    line = "touch ready; while sleep 0.05; do cat ~/.netrc > got 2>&1; done"

    def act() -> None:
        (made.home / "link").symlink_to("second")
        (made.home / "link").rename(made.home / ".netrc")

    async def twice() -> None:
        job = await made.processes.start(Command((line,), made.cwd, is_shell=True), made.grant)
        await until(made.root / "ready")
        act()
        await asyncio.sleep(0.5)
        save(made.home / "second", "SECRET4\n")
        await asyncio.sleep(0.5)
        assert "SECRET" not in (made.root / "got").read_text()
        await job.end()

    asyncio.run(twice())


def test_a_closed_folder_above_a_cover_does_not_stop_the_others(made):
    made.git_init()
    made.git_init("x/y")
    made.cwd = str(made.root)
    made.write(".env", "OLD\n")
    line = "touch ready; while sleep 0.05; do cat .env > got; done"

    async def act(job: Process) -> None:
        save(made.root / "x/y/.git/config", (made.root / "x/y/.git/config").read_text())
        (made.root / "x").chmod(0)
        save(made.root / ".env", "SECRET\n")

    result = asyncio.run(beside(made, line, act, 1.5))
    (made.root / "x").chmod(0o755)
    assert any(".env" in note for note in result.notes)
    assert "SECRET" not in (made.root / "got").read_text()
    assert made.run("echo still").stdout == b"still\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_child_of_vfork_does_not_go_on_after_the_save(made):
    envrc = made.write(".envrc", "a\n")
    made.write("v.c", VFORK)
    assert made.run("cc -O1 v.c -o v").exit_code == 0

    async def act(job: Process) -> None:
        save(envrc, "b\n")

    asyncio.run(beside(made, "exec ./v", act, 1.5))
    opened = (made.root / "log").stat().st_size
    # At 500 ms without a stop it opens the file some 100,000 times.
    assert opened < 20_000
