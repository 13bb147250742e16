"""`LocalFiles`: paths, reads, writes and listings of real files; agreement with git on ignored files."""

import asyncio
import errno
import os
import pwd
import resource
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from digests import sha
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.testing.conformance import FILES_CASES
from bradawl.workspace.files import LocalFiles

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def files(tmp_path):
    return LocalFiles(str(tmp_path))


async def replace(files: LocalFiles, path: object, data: bytes, expected: str | None) -> str:
    return await files.replace(str(path), data, expected)


async def read(files: LocalFiles, path: object, limit: int = 1_000_000) -> bytes:
    return (await files.read(str(path), limit)).data


@pytest.mark.parametrize("case", FILES_CASES, ids=lambda case: case.__name__)
async def test_local_files_pass_the_conformance_suite(case, tmp_path):
    await case(lambda: (LocalFiles(), os.path.realpath(tmp_path)))


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "d/" * 3000, "\ud800", "bad\udcff"])
def test_an_invalid_path_is_refused(files, path):
    with pytest.raises(ToolError):
        files.resolve(path, "/")


async def test_folders_below_the_longest_path_do_not_break_a_listing(files, tmp_path):
    (tmp_path / "shallow.txt").write_text("x")
    opened = os.open(tmp_path, os.O_RDONLY)
    for _ in range(40):  # 8,000 bytes: twice the longest path
        os.mkdir("b" * 200, dir_fd=opened)
        below = os.open("b" * 200, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = below
        os.mkdir(".git", dir_fd=opened)
    os.close(opened)
    found, is_cut = await files.list(os.path.realpath(tmp_path), 100)
    assert [Path(each.path).name for each in found] == ["shallow.txt"] and not is_cut
    remove_folder(str(tmp_path / ("b" * 200)))


def test_paths_are_resolved_through_symlinks_also_where_nothing_exists_yet(files, tmp_path):
    real = os.path.realpath(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert files.resolve("link/new/../file", real) == f"{real}/real/file"
    assert files.resolve("~/x", "/") == f"{real}/x"
    assert files.resolve("~", "/") == real
    with pytest.raises(ToolError, match="home"):
        LocalFiles().resolve("~/x", "/")


def test_a_name_after_a_tilde_is_a_user_or_else_part_of_a_file_name(files):
    root = os.path.realpath(pwd.getpwuid(0).pw_dir)
    assert files.resolve("~root/.profile", "/ws") == f"{root}/.profile"
    assert files.resolve("~$report.docx", "/ws") == "/ws/~$report.docx"
    assert files.resolve("~no-such-user/x", "/ws") == "/ws/~no-such-user/x"


async def test_the_error_about_a_missing_file_names_similar_files(files, tmp_path):
    (tmp_path / "settings.py").write_text("")
    with pytest.raises(ToolError, match=r"did you mean settings\.py"):
        await read(files, tmp_path / "setings.py")
    with pytest.raises(ToolError, match=r"in that folder: settings\.py"):
        await read(files, tmp_path / "zzz")
    with pytest.raises(ToolError, match="nor does its folder"):
        await read(files, tmp_path / "no" / "where" / "x")


@pytest.mark.parametrize(
    ("wanted", "there", "suggested"),
    [
        ("clac.py", "calc.py", True),
        ("Calc.PY", "calc.py", True),
        ("calc.py", "calc.ts", True),
        ("README", "README.md", True),
        ("nope.py", "near.py", False),
        ("a.py", "b.py", False),
        ("foo.py", "bar.py", False),
    ],
)
async def test_only_a_similar_name_is_suggested(files, tmp_path, wanted, there, suggested):
    (tmp_path / there).write_text("")
    with pytest.raises(ToolError, match=f"did you mean {there}" if suggested else f"in that folder: {there}"):
        await read(files, tmp_path / wanted)


async def test_unusual_names_are_escaped_on_one_line_of_an_error(files, tmp_path):
    (tmp_path / "x\ny").write_text("")
    (tmp_path / "gr\xf6\xdfe").write_text("")
    with pytest.raises(ToolError, match=r"in that folder: gr\xf6\xdfe, x\\ny$"):
        await read(files, tmp_path / "none")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that takes no new files, also from root")
@pytest.mark.parametrize("path", ["/proc/nope", "/proc/nope/deeper/x", "/sys/nope"])
async def test_the_error_says_that_nothing_can_be_created_in_a_folder(files, path):
    with pytest.raises(ToolError, match=r"nope\S* can't be created: [^/]*; use another place"):
        await replace(files, path, b"x", None)


async def test_a_file_that_was_created_meanwhile_is_not_overwritten(files, tmp_path):
    async def attempt(data: bytes) -> ToolError | None:
        try:
            await LocalFiles().replace(str(tmp_path / "f"), data, None)
        except ToolError as error:
            return error
        return None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt(b"%d" % number)) for number in range(8)]
    errors = [task.result() for task in tasks]
    assert errors.count(None) == 1
    assert (tmp_path / "f").read_bytes() == b"%d" % errors.index(None)
    assert all("exists already" in str(error) for error in errors if error)


async def test_the_temporary_file_of_a_write_is_not_listed(files, tmp_path):
    create_files(tmp_path, ".bradawl-0123456789abcdef.tmp", ".bradawl-notes", "x.tmp")
    assert await listed(files, tmp_path) == [".bradawl-notes", "x.tmp"]
    with pytest.raises(ToolError, match=r"in that folder: \.bradawl-notes, x\.tmp$"):
        await read(files, tmp_path / "zzz")


async def test_a_path_that_is_no_regular_file_is_refused_at_once(files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), tmp_path / "loop"):
        with pytest.raises(ToolError):
            await read(files, path)
        with pytest.raises(ToolError):
            await replace(files, path, b"x", sha(b""))


async def test_mode_symlink_and_hard_link_are_kept(files, tmp_path):
    path, link, hard = tmp_path / "file", tmp_path / "link", tmp_path / "hard"
    path.write_bytes(b"0")
    path.chmod(0o751)
    link.symlink_to("file")
    first = await replace(files, files.resolve("link", os.path.realpath(tmp_path)), b"1", sha(b"0"))
    assert link.is_symlink()
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"1", 0o751)
    hard.hardlink_to(path)
    inode = path.stat().st_ino
    await replace(files, path, b"longer than before", first)
    assert hard.read_bytes() == b"longer than before"
    assert path.stat().st_ino == inode
    await replace(files, path, b"", sha(b"longer than before"))
    assert hard.read_bytes() == b""


async def test_a_new_file_has_the_usual_mode(files, tmp_path):
    (tmp_path / "usual").write_text("")
    await replace(files, tmp_path / "new", b"x", None)
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
async def test_a_read_only_file_is_not_replaced(files, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0")
    path.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        await replace(files, path, b"1", sha(b"0"))


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
async def test_extended_attributes_are_kept(files, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError as error:
        assert error.errno in {errno.ENOTSUP, errno.EPERM}
        pytest.skip("no extended attributes on this file system")
    await replace(files, path, b"1", sha(b"0"))
    assert os.getxattr(path, "user.note") == b"kept"


async def test_a_write_that_fails_leaves_the_old_file_and_no_temporary_one(files, tmp_path):
    path, hard = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        for expected in (sha(b"old"),) * 2:
            with pytest.raises(ToolError, match="too large"):
                await replace(files, path, b"x" * 2000, expected)
            assert path.read_bytes() == b"old"
            if not hard.exists():
                hard.hardlink_to(path)  # the second time it is written in place
        with pytest.raises(ToolError):
            await replace(files, tmp_path / "new", b"x" * 2000, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "other"]


async def test_concurrent_writers_lose_no_update(files, tmp_path):
    path = tmp_path / "count"
    path.write_bytes(b"")
    link = tmp_path / "link"
    link.symlink_to("count")

    async def add(name: Path) -> None:
        while True:
            content = await files.read(files.resolve(str(name), "/"), 1000)
            try:
                await files.replace(content.path, content.data + b"x", content.sha256)
            except ToolError:
                continue
            return

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(add(link if number % 2 else path))
    assert path.read_bytes() == b"x" * 20


async def test_a_cancelled_replace_is_either_done_or_not_begun(files, tmp_path):
    path = tmp_path / "file"

    task = asyncio.create_task(files.replace(str(path), b"new", None))
    await asyncio.sleep(0)
    task.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [entry.name for entry in tmp_path.iterdir()] in ([], ["file"])


async def listed(files: LocalFiles, root: Path, limit: int = 1000) -> list[str]:
    entries, _ = await files.list(os.path.realpath(root), limit)
    return [entry.path[len(os.path.realpath(root)) + 1 :] for entry in entries]


def create_files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


async def test_a_walk_leaves_out_what_git_ignores(files, tmp_path):
    create_files(
        tmp_path, "a.py", "b.log", "keep.log", "build/x", "sub/build/y", "sub/c.tmp", "sub/d.py", "sub/only/e.log"
    )
    create_files(
        tmp_path, ".git/config", ".hidden", "docs/a/b/t.md", "docs/t.md", "x/docs/t.md", "sp ace", "#hash", "!bang"
    )
    (tmp_path / ".gitignore").write_text(
        "*.log\n!keep.log\n/build/\n# note\n\ndocs/**/t.md\nsp\\ ace  \n\\#hash\n\\!bang\r\n"
    )
    (tmp_path / "sub" / ".gitignore").write_text("*.tmp\n!only/e.log\n")
    assert sorted(await listed(files, tmp_path)) == sorted(
        [
            ".gitignore",
            ".hidden",
            "a.py",
            "keep.log",
            "sub/.gitignore",
            "sub/build/y",
            "sub/d.py",
            "sub/only/e.log",
            "x/docs/t.md",
        ]
    )


async def test_ignore_rules_apply_up_to_the_top_of_the_repository(files, tmp_path):
    create_files(tmp_path, "repo/.git/info/exclude", "repo/sub/a.log", "repo/sub/b.txt", "repo/sub/c.tmp")
    (tmp_path / ".gitignore").write_text("*.txt\n")
    (tmp_path / "repo" / ".gitignore").write_text("*.log\n")
    (tmp_path / "repo" / ".git" / "info" / "exclude").write_text("*.tmp\n")
    assert await listed(files, tmp_path / "repo" / "sub") == ["b.txt"]


async def test_a_walk_is_bounded_follows_no_link_and_keeps_any_name(files, tmp_path):
    create_files(tmp_path, "a", "d/b", "new\nline")
    Path(os.fsdecode(bytes(tmp_path) + b"/bad\xff")).write_text("x")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "file-link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    assert await listed(files, tmp_path) == ["a", "bad\udcff", "new\nline", "d/b"]
    assert len(await listed(files, tmp_path, 2)) == 2
    assert await read(files, tmp_path / "bad\udcff") == b"x"


def listed_by_git(root: Path) -> list[str]:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (("init", "-q", "--template="), ("ls-files", "-oz", "--exclude-standard")):
        result = subprocess.run(("git", *command), cwd=root, env=environment, capture_output=True, check=True)
    return result.stdout.decode().split("\0")[:-1]


NAMES = st.sampled_from(["a", "b", "ab", "a.b", "b.a", ".a"])
PATTERNS = st.text("ab*?./!\\[]-# ", min_size=1, max_size=6)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git to compare with")
@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=6), st.lists(PATTERNS, max_size=4))
async def test_ignoring_agrees_with_git(tmp_path_factory, paths, patterns):
    root = tmp_path_factory.mktemp("tree")
    for parts in paths:
        path = root.joinpath(*parts)
        if not any(parent.is_file() for parent in path.parents) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    (root / ".gitignore").write_text("\n".join(patterns))
    assert sorted(await listed(LocalFiles(), root)) == sorted(listed_by_git(root))


async def test_the_limit_of_a_read_holds_for_files_of_unknown_size(files):
    status = files.resolve("/proc/self/status", "/")
    assert b"Name:" in await read(files, status)
    with pytest.raises(ToolError, match="more than"):
        await read(files, status, 10)


def test_a_link_that_may_not_be_followed_is_an_error(tmp_path):
    def real(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    with pytest.raises(ToolError, match="its target can't be determined: Permission denied"):
        LocalFiles(real=real).resolve("/proc/1/root/etc", str(tmp_path))
