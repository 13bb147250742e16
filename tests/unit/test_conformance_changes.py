"""The conformance suite of `WorkspaceChanges`, run against the shipped adapter, the fake, and broken ones."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from bradawl.checkpoints.client import LocalChanges
from bradawl.checkpoints.store import ContentStore
from bradawl.core.workspace import Checkpoint
from bradawl.testing import changes_conformance as suite
from bradawl.testing.changes_conformance import ChangesSetup
from bradawl.testing.fakes import FakeChanges, MemoryFiles

Check = Callable[[suite.MakeChanges], Awaitable[None]]
PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[suite.MakeChanges]:
    root, store = tmp_path / "workspace", tmp_path / "store"
    root.mkdir()
    changes = LocalChanges((str(root),), str(store), environment={})

    def write(path: str, content: bytes | None) -> None:
        if content is None:
            Path(path).unlink()
        else:
            Path(path).write_bytes(content)

    def before(ref: str, path: str) -> bytes | None:
        with ContentStore(store) as saved:
            change = next(each for each in saved.record(ref).changes if each.path == os.fsencode(path))
            return None if change.before is None else saved.read(change.before.content)

    yield lambda: ChangesSetup(changes, str(root), write, before)
    changes.close()


def fake(changes_type: type[FakeChanges] = FakeChanges) -> ChangesSetup:
    files = MemoryFiles()
    changes = changes_type(files)

    def write(path: str, content: bytes | None) -> None:
        if content is None:
            del files.files[path]
        else:
            files.files[path] = content

    return ChangesSetup(changes, "/workspace", write, lambda ref, path: changes.changed[ref][path][0])


@pytest.mark.parametrize("check", suite.CASES)
async def test_the_shipped_adapter_conforms(check: Check, local: suite.MakeChanges) -> None:
    await check(local)


@pytest.mark.parametrize("check", suite.CASES)
async def test_the_fake_conforms(check: Check) -> None:
    await check(fake)


class Late(FakeChanges):
    """Saves at the end of a call."""

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        found = await super().begin(call_id, paths)
        self._before = {}
        return found


class Silent(FakeChanges):
    """Has no answer for calls that changed nothing."""

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        return tuple(each for each in await super().settle(owner) if each.ref)


class Repeating(FakeChanges):
    """Returns what it has returned before."""

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        return tuple(each for named, each in self._ended if named == owner)


class Mixing(FakeChanges):
    """Returns the checkpoints of all owners."""

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        found, self._ended = tuple(each for _, each in self._ended), []
        return found


class Whole(FakeChanges):
    """Uses the whole name of a call in its checkpoints."""

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        return tuple(Checkpoint(f"{owner}/{each.call_id}", each.ref) for each in await super().settle(owner))


class Careless(FakeChanges):
    """Takes a call that it does not know for one that changed nothing."""

    def end(self, call_id: str) -> None:
        self._begun.add(call_id)
        super().end(call_id)


class Old(FakeChanges):
    """Saves the state before the first call alone."""

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        before = self._before
        found = await super().begin(call_id, paths)
        self._before = before or self._before
        return found


@pytest.mark.parametrize("broken", [Late, Silent, Repeating, Mixing, Whole, Careless, Old])
async def test_a_broken_adapter_fails_a_case(broken: type[FakeChanges]) -> None:
    failed = 0
    for check in suite.CASES:
        try:
            await check(lambda: fake(broken))
        except (AssertionError, KeyError):
            failed += 1
    assert failed


def test_the_page_names_all_cases() -> None:
    named = re.findall(r"^\| .+ \| `(check_\w+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert named == [check.__name__ for check in suite.CASES]
