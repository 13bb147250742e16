"""Covers that are mounted in running programs as well, because what they cover is new since those began."""

import asyncio
import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from covers_world import FakeFreeze, World, opened, replace, settle

from bradawl.sandbox.mounts.plan import Mount
from bradawl.sandbox.running_covers.cover_mounter import LINK, ON

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
    for name in (".github", "pkg/.vscode"):
        (made.root / name).mkdir(parents=True)
    yield made
    made.close()


def beside(world: World, pid: int, *covers: Mount, before: tuple[Mount, ...] = ()) -> set[str]:
    """The names of the paths that a running program can't change after `covers` were mounted for it."""

    async def act() -> frozenset[str]:
        async with opened(world, pid, *before):
            return world.covers.cover_also(covers)

    return {os.path.relpath(path, world.root) for path in asyncio.run(act())}


def test_without_programs_all_are_covered_and_nothing_is_mounted(world):
    cover = world.cover(".github")
    assert world.covers.cover_also((cover,)) == {cover.path}
    assert world.mounter.requests == []


def test_outer_paths_are_mounted_first_while_all_programs_are_stopped(world, init):
    inner, outer = world.cover("pkg/.vscode"), world.cover("pkg", "write")
    assert beside(world, init.pid, inner, outer) == {"pkg", "pkg/.vscode"}
    assert world.mounter.requests == [(outer, inner)]


def test_a_cover_that_the_program_has_is_not_mounted_again(world, init):
    cover = world.cover(".github")
    assert beside(world, init.pid, cover, before=(cover,)) == {".github"}
    assert world.mounter.requests == []


@pytest.mark.parametrize("state", [LINK, "Operation not permitted"])
def test_what_can_not_be_mounted_is_left_out(world, init, state):
    world.mounter.states[str(world.root / ".github")] = state
    assert beside(world, init.pid, world.cover(".github"), world.cover("pkg/.vscode")) == {"pkg/.vscode"}


def test_what_is_mounted_already_and_what_does_not_exist(world, init):
    world.mounter.states[str(world.root / ".github")] = ON
    assert beside(world, init.pid, world.cover(".github"), world.cover("gone")) == {".github"}


def test_an_error_leaves_all_out(world, init):
    world.mounter.error = OSError(errno.EMFILE, "Too many open files")
    assert beside(world, init.pid, world.cover(".github")) == set()


def test_nothing_is_covered_beside_a_program_that_is_about_to_start(world):
    cover = world.cover(".github")
    program = world.covers.begin((), {})
    assert world.covers.cover_also((cover,)) == frozenset()
    program.close()
    assert world.covers.cover_also((cover,)) == {cover.path}


def test_a_program_that_has_ended_does_not_count(world, init):
    cover = world.cover(".github")

    async def act() -> frozenset[str]:
        async with opened(world, init.pid):
            os.killpg(init.pid, 9)
            init.wait()
            return world.covers.cover_also((cover,))

    assert asyncio.run(act()) == {cover.path}
    assert world.mounter.requests == []


def test_one_program_that_could_change_it_is_enough(world, init):
    world.mounter.states[str(world.root / ".github")] = LINK
    cover = world.cover(".github")

    async def act() -> frozenset[str]:
        async with opened(world, init.pid), opened(world, init.pid, cover):
            return world.covers.cover_also((cover,))

    assert asyncio.run(act()) == frozenset()


def test_it_is_covered_again_when_it_is_replaced_later(world, init):
    cover, freeze = world.cover(".envrc"), FakeFreeze()
    (world.root / ".envrc").write_text("1")

    async def act() -> None:
        async with opened(world, init.pid, freeze=freeze):
            assert world.covers.cover_also((cover,)) == {cover.path}
            replace(world.root / ".envrc")
            await settle(lambda: len(world.mounter.requests) == 2)

    asyncio.run(act())
    assert world.mounter.requests == [(cover,), (cover,)]
    assert freeze.times == 2


def test_closed_paths_are_named_once(world, init):
    async def act() -> list[tuple[str, ...]]:
        notes: list[tuple[str, ...]] = []
        for paths in (["/a"], ["/a", "/b"], ["/b"], []):
            world.covers.note_closed(paths)
            async with opened(world, init.pid) as program:
                pass
            notes.append(program.notes())
        return notes

    first, second, *others = asyncio.run(act())
    assert ["/a" in first[0], "/a" in second[0], "/b" in second[0]] == [True, False, True]
    assert others == [(), ()]
