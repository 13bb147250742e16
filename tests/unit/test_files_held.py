"""`LocalFiles` opens only the path that was checked, although folders are swapped for links after the check."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from digests import sha
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
from patience import no_wait

INSIDE, SECRET = b"inside\n", b"secret of another user\n"
CHANGED = "changed since it was checked"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """A workspace with `a/b/f`, and beside it a folder `outside` with the same layout."""
    root = Path(os.path.realpath(tmp_path))
    for place, data in (("ws", INSIDE), ("outside", SECRET)):
        (root / place / "a" / "b").mkdir(parents=True)
        (root / place / "a" / "b" / "f").write_bytes(data)
    return root / "ws"


def swap(ws: Path, part: str) -> None:
    """Replace `part` of the workspace by a link to the same part of `outside`."""
    target = ws.parent / "outside" / part
    place = ws / part
    place.rename(ws.parent / "moved")
    place.symlink_to(target)


ACTIONS: dict[str, Callable[[LocalFiles, str], Awaitable[object]]] = {
    "read": lambda files, path: files.read(path, 1_000),
    "replace": lambda files, path: files.replace(path, b"new", sha(INSIDE)),
    "replace it blindly": lambda files, path: files.replace(path, b"new", sha(SECRET)),
    "create": lambda files, path: files.replace(path, b"new", None),
    "create below": lambda files, path: files.replace(f"{path}.d/x/y", b"new", None),
    "list": lambda files, path: files.list(str(Path(path).parent), 10),
}


@pytest.mark.parametrize("part", ["a", "a/b"])
@pytest.mark.parametrize("action", ACTIONS)
async def test_a_folder_that_is_swapped_for_a_link_is_not_followed(ws: Path, part: str, action: str) -> None:
    files = LocalFiles()
    path = files.resolve("a/b/f", str(ws))
    swap(ws, part)
    with pytest.raises(ToolError, match=CHANGED):
        await ACTIONS[action](files, path)
    assert sorted(entry.name for entry in (ws.parent / "outside" / "a" / "b").iterdir()) == ["f"]
    assert (ws.parent / "outside/a/b/f").read_bytes() == SECRET


@pytest.mark.parametrize("action", ["read", "replace", "replace it blindly", "create"])
async def test_a_file_that_is_swapped_for_a_link_is_not_followed(ws: Path, action: str) -> None:
    files = LocalFiles()
    path = files.resolve("a/b/f", str(ws))
    swap(ws, "a/b/f")
    with pytest.raises(ToolError, match=CHANGED):
        await ACTIONS[action](files, path)
    assert (ws.parent / "outside/a/b/f").read_bytes() == SECRET
    assert (ws / "a/b/f").is_symlink()


async def test_a_folder_to_list_that_is_swapped_for_a_link_is_not_followed(ws: Path) -> None:
    path = LocalFiles().resolve("a/b", str(ws))
    swap(ws, "a/b")
    with pytest.raises(ToolError, match=CHANGED):
        await LocalFiles().list(path, 10)


async def test_names_in_a_folder_behind_a_link_are_not_in_the_error(ws: Path) -> None:
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


async def test_the_root_folder_is_listed_as_a_folder() -> None:
    with pytest.raises(ToolError, match="/ is a folder"):
        await LocalFiles().read("/", 10)
    assert (await LocalFiles().list("/", 0)) == ((), True)


class Swapper(threading.Thread):
    """Swaps a folder for a link and back, without pause, until `is_over` is set."""

    def __init__(self, folder: Path, target: Path) -> None:
        super().__init__()
        self.folder, self.link, self.other = folder, folder.with_name("link"), folder.with_name("other")
        self.link.symlink_to(target)
        self.is_over = threading.Event()
        self.swaps = 0

    def run(self) -> None:
        while not self.is_over.is_set():
            self.folder.rename(self.other)
            with contextlib.suppress(OSError):  # the test has created a folder of that name meanwhile
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
    """Read, replace, list and create below `a`; return how often all succeeded, and how often one was refused."""
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


async def test_during_constant_swaps_nothing_outside_is_read_or_written(ws: Path) -> None:
    outside = ws.parent / "outside"
    swapper = Swapper(ws / "a", outside / "a")
    swapper.start()
    try:
        done, refused = await work_below(ws)
    finally:
        swapper.is_over.set()
        swapper.join()
    assert done and refused and swapper.swaps
    assert sorted(str(place.relative_to(outside)) for place in outside.rglob("*")) == ["a", "a/b", "a/b/f"]
    assert (outside / "a/b/f").read_bytes() == SECRET


# ------------------------------------------------------------------ calls of tools after their permission check


class CheckedCalls(Workspace):
    """Determines the effects of a call, runs an action, and then runs the call with these effects."""

    async def run_after(self, action: Callable[[], None], tool, /, **arguments):
        params = tool.params(**arguments)
        effects = tool.effects(params, self.context())
        action()
        shared = self.context()
        files = JudgedFiles(self.files, effects)
        context = CallContext(
            **{name: getattr(shared, name) for name in shared.__struct_fields__ if name not in ("files", "grant")},
            files=files,
            grant=Grant(writable=(self.cwd,)),
        )
        return await tool.run(params, context)


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
async def test_an_allowed_call_does_not_follow_a_link_created_after_the_check(ws: Path, name: str, part: str) -> None:
    tool, arguments = CALLS[name]
    calls = CheckedCalls(ws)
    try:
        output = await calls.run_after(lambda: swap(ws, part), tool, **arguments)
        assert output.is_error
        said = str(output.parts)
    except ToolError as error:
        said = str(error)
    finally:
        calls.processes.close()
    assert CHANGED in said
    assert "secret of" not in said
    assert (ws.parent / "outside/a/b/f").read_bytes() == SECRET


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_runs_as_usual_where_nothing_was_swapped(ws: Path, name: str) -> None:
    tool, arguments = CALLS[name]
    calls = CheckedCalls(ws)
    (ws / "a/b/f").write_bytes(b"a secret\n")
    await calls.text(ReadFile(), file_path="a/b/f")
    try:
        assert not (await calls.run_after(lambda: None, tool, **arguments)).is_error
    finally:
        calls.processes.close()


# ------------------------------------------------------------------ devices, pipes and cycles of links


@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/0", "/dev/zero", "/dev/tty", "/proc/self/fd/0", "/dev/null"])
async def test_devices_and_descriptors_are_refused_quickly(path: str) -> None:
    files = LocalFiles()
    with no_wait():
        read_end, write_end = os.pipe()
        saved = os.dup(0)
        try:
            os.dup2(read_end, 0)  # a read of it would block
            for action in ("read", "replace", "create"):
                with pytest.raises(ToolError):
                    await ACTIONS[action](files, files.resolve(path, "/"))
        finally:
            os.dup2(saved, 0)
            for descriptor in (read_end, write_end, saved):
                os.close(descriptor)


async def test_a_pipe_is_refused_without_being_opened(tmp_path: Path) -> None:
    path = os.path.realpath(tmp_path) + "/pipe"
    os.mkfifo(path)
    opened = threading.Event()

    def write() -> None:
        with Path(path).open("wb"):  # blocks until the other end is opened
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
async def test_a_search_follows_no_link_out_of_the_workspace_and_no_cycle(looped: Path, rg: str | None) -> None:
    calls = Workspace(looped)
    try:
        assert (await calls.text(Glob(rg), pattern="**/*")).splitlines() == ["a/b/f"]
        assert "secret" not in await calls.text(Grep(RG), pattern="secret|inside")
        assert "a/b/f" in await calls.text(Grep(RG), pattern="inside")
    finally:
        calls.processes.close()


def reads_of(calls: Workspace, tool, /, **arguments):
    return tool.effects(tool.params(**arguments), calls.context()).reads


@pytest.mark.parametrize(("path", "where"), [("everything", "/"), ("everything/etc", "/etc"), ("up", "..")])
def test_the_effects_of_a_search_below_a_link_name_its_target(looped: Path, path: str, where: str) -> None:
    calls = Workspace(looped)
    real = os.path.realpath(looped / where)
    for tool, arguments in (
        (Grep(RG), {"pattern": "x", "path": path}),
        (Glob(RG), {"pattern": "*", "path": path}),
        (Glob(RG), {"pattern": f"{path}/*"}),
        (ReadFile(), {"file_path": path}),
    ):
        assert real in reads_of(calls, tool, **arguments)
    calls.processes.close()


async def test_a_cycle_of_links_is_an_error(ws: Path) -> None:
    (ws / "x").symlink_to("y")
    (ws / "y").symlink_to("x")
    files = LocalFiles()
    for path in ("x", "x/below", "x/../x"):
        with pytest.raises(ToolError):
            await ACTIONS["read"](files, files.resolve(path, str(ws)))
        with pytest.raises(ToolError):
            await ACTIONS["create"](files, files.resolve(path, str(ws)))
    shutil.rmtree(ws)
