"""Paths are held from check to use: what was resolved and judged is what is opened, whatever is swapped meanwhile."""

import asyncio
import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from tool_calls import RG, Workspace

from bradawl.agent.calls.context import JudgedFiles
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext
from bradawl.tools.edit_file import EditFile
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.folder_walk import Walk
from patience import is_within

INSIDE, SECRET = b"inside\n", b"secret of somebody else\n"
CHANGED = "changed since it was checked"


def sha(data: bytes) -> str:
    return sha256(data).hexdigest()


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """A workspace with `a/b/f`, and beside it a folder that looks the same and is nobody's business."""
    root = Path(os.path.realpath(tmp_path))
    for place, data in (("ws", INSIDE), ("outside", SECRET)):
        (root / place / "a" / "b").mkdir(parents=True)
        (root / place / "a" / "b" / "f").write_bytes(data)
    return root / "ws"


def swap(ws: Path, part: str) -> None:
    """Put a link to outside where `part` of the workspace was."""
    target = ws.parent / "outside" / part
    place = ws / part
    place.rename(ws.parent / "moved")
    place.symlink_to(target)


ACTIONS: dict[str, Callable[[LocalFiles, str], object]] = {
    "read": lambda files, path: asyncio.run(files.read(path, 1_000)),
    "replace": lambda files, path: asyncio.run(files.replace(path, b"new", sha(INSIDE))),
    "replace it blindly": lambda files, path: asyncio.run(files.replace(path, b"new", sha(SECRET))),
    "create": lambda files, path: asyncio.run(files.replace(path, b"new", None)),
    "create below": lambda files, path: asyncio.run(files.replace(f"{path}.d/x/y", b"new", None)),
    "list": lambda files, path: asyncio.run(files.list(str(Path(path).parent), 10)),
}


@pytest.mark.parametrize("part", ["a", "a/b"])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_folder_that_is_swapped_for_a_link_is_not_followed(ws: Path, part: str, action: str) -> None:
    files = LocalFiles()
    path = files.resolve("a/b/f", str(ws))
    swap(ws, part)
    with pytest.raises(ToolError, match=CHANGED):
        ACTIONS[action](files, path)
    assert sorted(entry.name for entry in (ws.parent / "outside" / "a" / "b").iterdir()) == ["f"]
    assert (ws.parent / "outside/a/b/f").read_bytes() == SECRET


@pytest.mark.parametrize("action", ["read", "replace", "replace it blindly", "create"])
def test_a_file_that_is_swapped_for_a_link_is_not_followed(ws: Path, action: str) -> None:
    files = LocalFiles()
    path = files.resolve("a/b/f", str(ws))
    swap(ws, "a/b/f")
    with pytest.raises(ToolError, match=CHANGED):
        ACTIONS[action](files, path)
    assert (ws.parent / "outside/a/b/f").read_bytes() == SECRET
    assert (ws / "a/b/f").is_symlink()


async def test_a_folder_to_list_that_is_swapped_for_a_link_is_not_followed(ws: Path) -> None:
    path = LocalFiles().resolve("a/b", str(ws))
    swap(ws, "a/b")
    with pytest.raises(ToolError, match=CHANGED):
        await LocalFiles().list(path, 10)


async def test_names_of_a_folder_behind_a_link_are_not_told(ws: Path) -> None:
    swap(ws, "a")
    with pytest.raises(ToolError) as error:
        await LocalFiles().read(f"{ws}/a/b/none", 10)
    assert "f" not in str(error.value).rpartition(";")[2].split()


def test_a_folder_that_is_swapped_while_the_tree_is_walked_is_not_entered(ws: Path) -> None:
    from bradawl.workspace.safe_open import open_folder

    def opened(path: str) -> int | None:
        if path == f"{ws}/a/b":
            swap(ws, "a")
        try:
            return open_folder(path)
        except (OSError, ToolError):
            return None

    (ws / "a" / "g").write_text("")
    found = [entry.path for entry in Walk(str(ws), lambda _: "", opened).files()]
    assert found == [f"{ws}/a/g"]


@pytest.mark.parametrize("path", ["f", "./f", "{}/a/../a/b/f", "/{}/a/b/f", "{}/a//b/f", "{}/a/b/.", "{}/a/b/", ""])
async def test_a_path_that_is_not_resolved_is_refused(ws: Path, path: str) -> None:
    path = path.format(ws)
    files = LocalFiles()
    for action in (files.read(path, 1_000), files.replace(path, b"", None), files.list(path, 10)):
        with pytest.raises(ToolError):
            await action


async def test_the_root_folder_is_a_folder() -> None:
    with pytest.raises(ToolError, match="/ is a folder"):
        await LocalFiles().read("/", 10)
    assert (await LocalFiles().list("/", 0)) == ((), True)


class Storm(threading.Thread):
    """Swaps a folder for a link and back, as fast as it can, until it is told to stop."""

    def __init__(self, folder: Path, target: Path) -> None:
        super().__init__()
        self.folder, self.link, self.other = folder, folder.with_name("link"), folder.with_name("other")
        self.link.symlink_to(target)
        self.is_over = threading.Event()
        self.swaps = 0

    def run(self) -> None:
        while not self.is_over.is_set():
            self.folder.rename(self.other)
            with contextlib.suppress(OSError):  # somebody made a folder of that name, because there was none
                self.link.rename(self.folder)
                self.folder.rename(self.link)
            self.put_back()
            self.swaps += 1

    def put_back(self) -> None:
        while self.other.exists():
            try:
                self.other.rename(self.folder)
            except OSError:
                shutil.rmtree(self.folder, ignore_errors=True)


async def work_below(ws: Path) -> tuple[int, int]:
    """Read, replace, list and create below `a`; gives back how often that went well, and how often not."""
    files, done, refused = LocalFiles(), 0, 0
    end = time.monotonic() + 1.0
    while time.monotonic() < end or (not (done and refused) and time.monotonic() < end + 20):
        try:
            content = await files.read(f"{ws}/a/b/f", 1_000)
            assert content.data.startswith(INSIDE)
            await files.replace(f"{ws}/a/b/f", INSIDE + str(done).encode(), content.sha256)
            entries, _ = await files.list(f"{ws}/a", 10)
            assert all(entry.path.endswith(("/f", "/new")) and ".." not in entry.path for entry in entries)
            assert all(entry.size != len(SECRET) for entry in entries)
            await files.replace(f"{ws}/a/b/{done}/new", b"", None)
            done += 1
        except ToolError:
            refused += 1
    return done, refused


async def test_in_a_storm_of_swaps_nothing_outside_is_ever_read_or_written(ws: Path) -> None:
    outside = ws.parent / "outside"
    storm = Storm(ws / "a", outside / "a")
    storm.start()
    try:
        done, refused = await work_below(ws)
    finally:
        storm.is_over.set()
        storm.join()
    assert done and refused and storm.swaps
    assert sorted(str(place.relative_to(outside)) for place in outside.rglob("*")) == ["a", "a/b", "a/b/f"]
    assert (outside / "a/b/f").read_bytes() == SECRET


# ------------------------------------------------------------------ calls that were judged


class Judged(Workspace):
    """Judges a call, lets something happen, and then runs it as it was judged."""

    def after(self, happens: Callable[[], None], tool, /, **arguments):
        params = tool.params(**arguments)
        effects = tool.effects(params, self.context())
        happens()
        shared = self.context()
        files = JudgedFiles(self.files, effects)
        context = CallContext(
            **{name: getattr(shared, name) for name in shared.__struct_fields__ if name not in ("files", "grant")},
            files=files,
            grant=Grant(writable=(self.cwd,)),
        )
        return asyncio.run(tool.run(params, context))


CALLS = {
    "read_file": (ReadFile(), {"file_path": "a/b/f"}),
    "read_file, several": (ReadFile(), {"file_paths": ("a/b/f", "a/b/f")}),
    "grep": (Grep(RG), {"pattern": "secret", "path": "a/b"}),
    "glob": (Glob(RG), {"pattern": "*", "path": "a/b"}),
    "glob by its pattern": (Glob(None), {"pattern": "a/b/*"}),
    "write_file": (WriteFile(), {"file_path": "a/b/f", "content": "new"}),
    "edit_file": (EditFile(), {"file_path": "a/b/f", "old_string": "secret", "new_string": "new"}),
    "multi_edit": (
        MultiEdit(),
        {"edits": [EditFile.params(file_path="a/b/f", old_string="secret", new_string="new")]},
    ),
}


@pytest.mark.parametrize("part", ["a", "a/b"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_was_allowed_does_not_follow_a_link_that_came_since(ws: Path, name: str, part: str) -> None:
    tool, arguments = CALLS[name]
    house = Judged(ws)
    try:
        output = house.after(lambda: swap(ws, part), tool, **arguments)
        assert output.is_error
        said = str(output.parts)
    except ToolError as error:
        said = str(error)
    finally:
        house.processes.close()
    assert CHANGED in said
    assert "secret of" not in said
    assert (ws.parent / "outside/a/b/f").read_bytes() == SECRET


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_as_usual_where_nothing_was_swapped(ws: Path, name: str) -> None:
    tool, arguments = CALLS[name]
    house = Judged(ws)
    (ws / "a/b/f").write_bytes(b"a secret\n")
    asyncio.run(house.text(ReadFile(), file_path="a/b/f"))
    try:
        assert not house.after(lambda: None, tool, **arguments).is_error
    finally:
        house.processes.close()


# ------------------------------------------------------------------ what is no file of the workspace


@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/0", "/dev/zero", "/dev/tty", "/proc/self/fd/0", "/dev/null"])
def test_devices_and_descriptors_are_refused_quickly(path: str) -> None:
    files = LocalFiles()
    began = time.monotonic()
    read_end, write_end = os.pipe()
    saved = os.dup(0)
    try:
        os.dup2(read_end, 0)  # a read of it would wait for ever
        for action in ("read", "replace", "create"):
            with pytest.raises(ToolError):
                ACTIONS[action](files, files.resolve(path, "/"))
    finally:
        os.dup2(saved, 0)
        for descriptor in (read_end, write_end, saved):
            os.close(descriptor)
    assert is_within(time.monotonic() - began, 2)


async def test_a_pipe_is_not_even_opened(tmp_path: Path) -> None:
    path = os.path.realpath(tmp_path) + "/pipe"
    os.mkfifo(path)
    opened = threading.Event()

    def write() -> None:
        with Path(path).open("wb"):  # waits until somebody opens the other end
            opened.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(ToolError, match="not a regular file"):
            await LocalFiles().read(path, 10)
        assert not opened.is_set()
    finally:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        writer.join()


@pytest.fixture
def looped(ws: Path) -> Path:
    """A workspace with a link to the folder above it and one to the root of the disk."""
    (ws / "up").symlink_to("..")
    (ws / "a" / "again").symlink_to("..")
    (ws / "everything").symlink_to("/")
    return ws


@pytest.mark.parametrize("rg", [RG, None])
async def test_a_search_neither_leaves_the_workspace_through_a_link_nor_goes_round_in_it(
    looped: Path, rg: str | None
) -> None:
    house = Workspace(looped)
    try:
        assert (await house.text(Glob(rg), pattern="**/*")).splitlines() == ["a/b/f"]
        assert "secret" not in await house.text(Grep(RG), pattern="secret|inside")
        assert "a/b/f" in await house.text(Grep(RG), pattern="inside")
    finally:
        house.processes.close()


def reads_of(house: Workspace, tool, /, **arguments):
    return tool.effects(tool.params(**arguments), house.context()).reads


@pytest.mark.parametrize(("path", "where"), [("everything", "/"), ("everything/etc", "/etc"), ("up", "..")])
def test_a_search_below_a_link_is_judged_by_where_it_leads(looped: Path, path: str, where: str) -> None:
    house = Workspace(looped)
    real = os.path.realpath(looped / where)
    for tool, arguments in (
        (Grep(RG), {"pattern": "x", "path": path}),
        (Glob(RG), {"pattern": "*", "path": path}),
        (Glob(RG), {"pattern": f"{path}/*"}),
        (ReadFile(), {"file_path": path}),
    ):
        assert real in reads_of(house, tool, **arguments)
    house.processes.close()


def test_links_in_a_circle_end_in_an_error(ws: Path) -> None:
    (ws / "x").symlink_to("y")
    (ws / "y").symlink_to("x")
    files = LocalFiles()
    for path in ("x", "x/below", "x/../x"):
        with pytest.raises(ToolError):
            ACTIONS["read"](files, files.resolve(path, str(ws)))
        with pytest.raises(ToolError):
            ACTIONS["create"](files, files.resolve(path, str(ws)))
    shutil.rmtree(ws)
