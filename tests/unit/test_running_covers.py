"""Covers of running programs are mounted again when a covered path is replaced, and faults don't leave them open."""

import asyncio
import contextlib
import errno
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from covers_world import FakeFreeze, FaultyInotify, World, names, no_inotify, opened, replace, settle

from bradawl.sandbox.mounts.placeholders import Placeholder
from bradawl.sandbox.mounts.plan import Mount
from bradawl.sandbox.running_covers.cover_mounter import LINK, ON
from bradawl.sandbox.running_covers.cover_watch import PathWatch

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/mnt").exists(), reason="needs Linux")


@pytest.fixture
def init() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, like a sandbox's init."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60; :"], start_new_session=True) as program:
        while not Path(f"/proc/{program.pid}/task/{program.pid}/children").read_bytes():
            pass
        yield program
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, 9)


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def test_a_replaced_path_is_covered_while_programs_are_stopped(world, init):
    freeze = FakeFreeze()
    stopped: list[bool] = []
    world.mounter.on_request = lambda: stopped.append(freeze.is_stopped)

    async def act() -> str:
        async with opened(world, init.pid, world.cover(".envrc"), freeze=freeze) as program:
            replace(world.root / ".envrc")
            await settle(lambda: bool(world.mounter.requests))
        return names(program)

    assert str(world.root / ".envrc") in asyncio.run(act())
    assert stopped == [True]
    assert not freeze.is_stopped
    assert (world.root / ".envrc").read_text() == "new"


def test_a_cover_whose_mount_is_there_gives_no_note(world, init):
    path = world.root / ".envrc"
    world.mounter.states[str(path)] = ON

    async def act() -> tuple[str, ...]:
        async with opened(world, init.pid, world.cover(".envrc")) as program:
            replace(path)
            await settle(lambda: bool(world.mounter.requests))
        return program.notes()

    assert asyncio.run(act()) == ()


def test_covers_below_a_replaced_folder_are_asked_for_outermost_first(world, init):
    (world.root / "a/b").mkdir(parents=True)
    (world.root / "a/b/.envrc").touch()
    covers = [world.cover("a/b/.envrc"), world.cover("a", "write"), world.cover("a/b", "write"), world.cover("c")]

    async def act() -> None:
        async with opened(world, init.pid, *covers):
            (world.root / "a").rename(world.root / "old")
            (world.root / "old/copy").mkdir()
            (world.root / "a/b").mkdir(parents=True)
            (world.root / "a/b/.envrc").touch()
            await settle(lambda: bool(world.mounter.requests))

    asyncio.run(act())
    assert [cover.path[len(str(world.root)) :] for cover in world.mounter.requests[0]] == ["/a", "/a/b", "/a/b/.envrc"]


@pytest.mark.parametrize("kind", ["secret", "unreadable", "empty"])
def test_a_hidden_path_that_can_not_be_covered_ends_the_program(world, init, kind):
    world.mounter.error = OSError(errno.EMFILE, "Too many open files")

    async def act() -> str:
        async with opened(world, init.pid, world.cover(".env", kind)) as program:
            replace(world.root / ".env")
            await asyncio.to_thread(init.wait, 10)
        return names(program)

    said = asyncio.run(act())
    assert "ended" in said
    assert "Too many open files" in said


def test_a_defect_while_covering_ends_the_program(world, init):
    def fail() -> None:
        raise KeyError("defect")

    world.mounter.on_request = fail

    async def act() -> str:
        async with opened(world, init.pid, world.cover(".envrc")) as program:
            replace(world.root / ".envrc")
            await asyncio.to_thread(init.wait, 10)
        return names(program)

    assert "KeyError" in asyncio.run(act())


@pytest.mark.parametrize("changes", [True, False])
def test_a_read_only_path_that_can_not_be_covered_is_compared_at_the_end(world, init, changes):
    world.mounter.error = OSError(errno.EPERM, "Operation not permitted")

    async def act() -> str:
        async with opened(world, init.pid, world.cover(".envrc")) as program:
            replace(world.root / ".envrc")
            await settle(lambda: bool(world.mounter.requests))
            if changes:
                (world.root / ".envrc").write_text("EVIL")
        return names(program)

    said = asyncio.run(act())
    assert ("It changed since" in said) == changes
    assert ("not changed since" in said) != changes
    assert init.poll() is None


@pytest.mark.parametrize("kind", ["read", "missing", "secret"])
def test_a_link_at_a_covered_path_is_said_to_be_one(world, init, kind):
    world.mounter.states[str(world.root / ".vscode")] = LINK

    async def act() -> str:
        async with opened(world, init.pid, world.cover(".vscode", kind)) as program:
            (world.root / ".vscode").symlink_to("v2")
            await settle(lambda: bool(world.mounter.requests))
        return names(program)

    said = asyncio.run(act())
    assert f"{world.root}/.vscode -> v2" in said
    assert "not changed since" not in said
    assert init.poll() is None


def test_a_removed_path_gets_a_placeholder_until_the_end(world, init):
    (world.root / ".vscode").mkdir()

    async def act() -> None:
        async with opened(world, init.pid, world.cover(".vscode")):
            (world.root / ".vscode").rmdir()
            await settle(lambda: bool(world.mounter.requests))
            assert (world.root / ".vscode").is_dir()

    asyncio.run(act())
    assert not (world.root / ".vscode").exists()


def test_a_removed_placeholder_is_made_again_and_removed_at_the_end(world, init):
    placeholder = Placeholder(str(world.root / ".idea"), is_folder=True)

    async def act() -> None:
        held = world.store.acquire([placeholder])
        program = world.covers.begin((Mount(placeholder.path, "missing"),), {placeholder.path: placeholder})
        program.open(init.pid, FakeFreeze())
        for _ in range(3):
            (world.root / ".idea").rmdir()
            await settle((world.root / ".idea").is_dir)
        program.close()
        assert (world.root / ".idea").is_dir()
        world.store.release(held)

    asyncio.run(act())
    assert not (world.root / ".idea").exists()


@pytest.mark.parametrize("name", [".vscode", ".git/config"])
def test_programs_stay_stopped_while_a_path_is_missing(world, init, name):
    path = world.root / name
    path.touch()
    freeze = FakeFreeze()
    waited: list[bool] = []

    async def act() -> None:
        async with opened(world, init.pid, world.cover(name), freeze=freeze):
            path.unlink()
            timer = threading.Timer(0.02, lambda: waited.append(freeze.is_stopped) or path.write_text("again"))
            timer.start()
            await settle(lambda: bool(world.mounter.requests))
            timer.join()  # the file exists a moment before its content
            assert waited == [True]

    asyncio.run(act())
    assert path.read_text() == "again"


def test_a_path_that_comes_back_at_once_gets_no_placeholder(world, init):
    path = world.root / ".vscode"
    path.mkdir()

    async def act() -> None:
        async with opened(world, init.pid, world.cover(".vscode")):
            path.rename(world.root / "old")
            path.mkdir()
            (path / "settings.json").touch()
            await settle(lambda: bool(world.mounter.requests))

    asyncio.run(act())
    assert (path / "settings.json").exists()


def test_a_removed_folder_stays_removed_with_the_covers_in_it(world, init):
    (world.root / "sub").mkdir()
    (world.root / "sub/.envrc").touch()

    async def act() -> None:
        async with opened(world, init.pid, world.cover("sub", "write"), world.cover("sub/.envrc")):
            (world.root / "sub/.envrc").unlink()
            (world.root / "sub").rmdir()
            await settle(lambda: bool(world.mounter.requests))

    asyncio.run(act())
    assert not (world.root / "sub").exists()


def test_a_path_that_is_replaced_all_the_time_is_covered_in_the_end(world, init):
    path = world.root / ".envrc"

    def replace_again() -> None:
        if len(world.mounter.requests) < 12:
            replace(path, str(len(world.mounter.requests)))

    world.mounter.on_request = replace_again

    async def act() -> None:
        async with opened(world, init.pid, world.cover(".envrc")):
            replace(path)
            await settle(lambda: len(world.mounter.requests) == 12)

    asyncio.run(act())
    assert path.read_text() == "11"


def test_a_change_after_the_program_s_end_is_none_of_it(world, init):
    async def act() -> tuple[str, ...]:
        async with opened(world, init.pid, world.cover(".env", "secret")) as program:
            os.killpg(init.pid, 9)
            init.wait()
            replace(world.root / ".env")
            world.covers.take_changes()
        return program.notes()

    assert asyncio.run(act()) == ()
    assert world.mounter.requests == []


def test_a_change_just_before_the_end_is_named(world, init):
    async def act() -> str:
        async with opened(world, init.pid, world.cover(".env", "secret")) as program:
            replace(world.root / ".env")
        return names(program)

    assert str(world.root / ".env") in asyncio.run(act())


def test_a_sandbox_that_is_being_set_up_is_covered_when_it_has_begun(world):
    program = subprocess.Popen(["/bin/sh", "-c", "read x; sleep 60; :"], stdin=subprocess.PIPE, start_new_session=True)

    async def act() -> None:
        async with opened(world, program.pid, world.cover(".envrc")):
            replace(world.root / ".envrc")
            await asyncio.sleep(0.1)
            assert world.mounter.requests == []
            assert program.stdin is not None
            program.stdin.write(b"\n")
            program.stdin.flush()
            await settle(lambda: bool(world.mounter.requests))

    with program:
        try:
            asyncio.run(act())
        finally:
            os.killpg(program.pid, 9)


def test_changes_before_a_program_are_none_of_it(world, init):
    async def act() -> tuple[str, ...]:
        async with opened(world, init.pid, world.cover(".envrc")):
            pass
        replace(world.root / ".envrc")
        async with opened(world, init.pid, world.cover(".envrc")) as program:
            await asyncio.sleep(0.05)
        return program.notes()

    assert asyncio.run(act()) == ()
    assert world.mounter.requests == []


@pytest.mark.parametrize("make", [no_inotify, lambda: FaultyInotify(watches=0)], ids=["EMFILE", "ENOSPC"])
def test_without_inotify_a_replaced_path_is_covered(world, init, make):
    world.made(PathWatch(make))

    async def act() -> None:
        async with opened(world, init.pid, world.cover(".envrc")):
            replace(world.root / ".envrc")
            await settle(lambda: bool(world.mounter.requests))

    asyncio.run(act())


def test_paths_of_all_programs_are_covered(world, init):
    async def act() -> None:
        async with opened(world, init.pid, world.cover("a")), opened(world, init.pid, world.cover("b")):
            replace(world.root / "a")
            await settle(lambda: len(world.mounter.requests) == 1)
            replace(world.root / "b")
            await settle(lambda: len(world.mounter.requests) == 2)

    asyncio.run(act())


def test_two_event_loops_one_after_another(world, init):
    async def act() -> None:
        count = len(world.mounter.requests)
        async with opened(world, init.pid, world.cover("a")):
            replace(world.root / "a")
            await settle(lambda: len(world.mounter.requests) == count + 1)

    asyncio.run(act())
    asyncio.run(act())


def test_a_path_in_the_home_folder_is_covered_where_its_links_lead(world, init):
    (world.home / "dotfiles").mkdir()
    (world.home / ".config").symlink_to("dotfiles")

    async def act() -> None:
        async with opened(world, init.pid, world.cover(".config/token", "empty", world.home)):
            (world.home / "dotfiles/token").touch()
            await settle(lambda: bool(world.mounter.requests))

    asyncio.run(act())
    assert world.mounter.requests[0] == (Mount(str(world.home / "dotfiles/token"), "empty"),)


def held_open(world: World, how: str) -> subprocess.Popen[bytes]:
    """A process that has opened the file `new`."""
    line = f"exec 5{how} {world.root}/new; echo; sleep 60"
    program = subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE)
    assert program.stdout is not None
    program.stdout.readline()
    return program


@pytest.mark.parametrize(("how", "is_ended"), [(">>", True), ("<>", True), ("<", False)])
def test_a_program_that_opened_a_read_only_file_for_writing_is_ended(world, init, how, is_ended):
    (world.root / "new").touch()

    async def act(holder: int) -> str:
        async with opened(world, init.pid, world.cover(".envrc"), freeze=FakeFreeze(holder)) as program:
            (world.root / "new").rename(world.root / ".envrc")
            await settle(lambda: bool(world.mounter.requests))
        return names(program)

    with held_open(world, how) as holder:
        said = asyncio.run(act(holder.pid))
        holder.kill()
    assert ("for writing" in said) == is_ended
    if is_ended:
        init.wait(10)
    assert (init.poll() is not None) == is_ended


def test_a_hidden_file_that_a_program_had_opened_is_named(world, init):
    (world.root / "new").touch()

    async def act(holder: int) -> str:
        async with opened(world, init.pid, world.cover(".env", "secret"), freeze=FakeFreeze(holder)) as program:
            (world.root / "new").rename(world.root / ".env")
            await settle(lambda: bool(world.mounter.requests))
        return names(program)

    with held_open(world, "<") as holder:
        assert "replace the keys" in asyncio.run(act(holder.pid))
        holder.kill()


def test_the_next_command_names_what_happened_to_a_job_once(world, init):
    async def act() -> list[str]:
        async with opened(world, init.pid, world.cover(".env", "secret")) as job:
            replace(world.root / ".env")
            await settle(lambda: bool(world.mounter.requests))
            said = []
            for _ in range(2):
                async with opened(world, init.pid, world.cover(".env", "secret")) as program:
                    pass
                said.append(names(program))
        return [*said, names(job)]

    first, *others = asyncio.run(act())
    assert "a background job" in first
    assert others == ["", ""]


def test_the_user_is_warned_once(world, init):
    async def act() -> list[tuple[str, ...]]:
        async with opened(world, init.pid, world.cover(".envrc")) as program:
            replace(world.root / ".envrc")
            await settle(lambda: bool(world.mounter.requests))
            said = [program.take_warnings()]
        return [*said, program.take_warnings(), program.notes()]

    first, second, notes = asyncio.run(act())
    assert len(first) == 1
    assert f"Look at them: {world.root}/.envrc" in first[0]
    assert "the user" not in first[0]
    assert second == ()
    assert len(notes) == 1


def test_the_user_is_warned_after_the_end_of_a_program(world, init):
    world.mounter.error = OSError(errno.EMFILE, "Too many open files")

    async def act() -> tuple[str, ...]:
        async with opened(world, init.pid, world.cover(".env", "secret")) as program:
            replace(world.root / ".env")
            await asyncio.to_thread(init.wait, 10)
        return (*program.take_warnings(), *program.take_warnings())

    (said,) = asyncio.run(act())
    assert said.startswith("The command was ended, because another program replaced ")
    assert "the user" not in said


@pytest.mark.parametrize(("is_kept", "name"), [(True, ".envrc"), (False, ".envrc"), (True, ".vscode/tasks.json")])
def test_a_replaced_file_with_a_further_hard_link_ends_the_program(world, init, is_kept, name):
    top, _, inner = name.partition("/")
    path = world.root / "new" / inner if inner else world.root / "new"
    path.parent.mkdir(exist_ok=True)
    other = world.root / "other"

    async def act() -> str:
        async with opened(world, init.pid, world.cover(top)) as program:
            other.write_text("a")
            os.link(other, path)
            (world.root / "new").rename(world.root / top)
            if not is_kept:
                threading.Timer(0.01, other.unlink).start()
            await settle(lambda: bool(world.mounter.requests))
        return names(program)

    said = asyncio.run(act())
    assert ("hard links" in said) == is_kept
    assert (init.poll() is not None or init.wait(10) is not None) if is_kept else init.poll() is None
