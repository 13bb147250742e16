"""`ProtectedFiles` restores protected files after a program changed them, and keeps the changed versions aside."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.safety.permissions.protected_paths import protected_names, watched_names
from bradawl.sandbox.restore import restore_path as putting_back
from bradawl.sandbox.restore.protected_files import ProtectedFiles
from bradawl.sandbox.restore.restore_path import forget_old, put_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder


class ProtectedWorkspace:
    """A workspace with a repository, and its protected files."""

    def __init__(self, place: Path) -> None:
        self.root, self.kept, self.outside = place / "ws", place / "state/changed", place / "outside"
        for folder in (self.root / ".git/hooks", self.root / ".git/info", self.root / ".vscode", self.outside):
            folder.mkdir(parents=True)
        (self.root / ".git/config").write_text("[core]\n\tbare = false\n")
        hook = self.root / ".git/hooks/pre-commit"
        hook.write_text("#!/bin/sh\nmake lint\n")
        hook.chmod(0o755)
        (self.root / ".vscode/tasks.json").write_bytes(b'{"v": "\xff"}')
        self.files = self.new_instance()

    def new_instance(self) -> ProtectedFiles:
        root = os.path.realpath(self.root)
        names = (*protected_names(), *watched_names())
        return ProtectedFiles(lambda: [(root, name) for name in names], str(self.kept))

    def after(self, *acts, allowed: tuple[str, ...] = ()) -> set[str]:
        self.files.begin()
        for act in acts:
            act(self.root)
        given = tuple(os.path.realpath(self.root / name) for name in allowed)
        restored = self.files.end(given)
        self.files.close()
        return {path.removeprefix(f"{os.path.realpath(self.root)}/") for path in restored}

    def kept_files(self) -> list[bytes]:
        return [path.read_bytes() for path in self.kept.rglob("*") if path.is_file()]

    def snapshot(self) -> dict[str, tuple]:
        return {
            str(path.relative_to(self.root)): (
                stat.S_IFMT(path.lstat().st_mode),
                path.lstat().st_mode & 0o111 if path.is_file() else 0,
                str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
            )
            for path in self.root.rglob("*")
            if path.relative_to(self.root).parts[0] in (".git", ".vscode", ".bradawl", ".mcp.json", ".envrc")
            and path.relative_to(self.root).parts[1:2] not in (("objects",), ("HEAD",))
        }


@pytest.fixture
def checked(tmp_path) -> ProtectedWorkspace:
    return ProtectedWorkspace(tmp_path)


def write(name: str, text: str = "bad"):
    def act(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    return act


def replace(name: str, text: str = "bad"):
    def act(root: Path) -> None:
        (root / "new").write_text(text)
        (root / "new").replace(root / name)

    return act


def remove(name: str):
    def act(root: Path) -> None:
        path = root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    return act


def rename(name: str, to: str):
    return lambda root: (root / name).replace(root / to)


def link(name: str, target: str):
    return lambda root: (root / name).symlink_to(target)


ATTACKS = {
    "a file is written over": (write(".git/config"),),
    "a file is replaced": (replace(".git/config"),),
    "a file keeps its size and times": (
        lambda root: (
            write(".git/config", "[core]\n\tbare = fslse\n")(root),
            os.utime(root / ".git/config", (1, 1)),
        ),
    ),
    "a file is removed": (remove(".git/config"),),
    "a file becomes a folder": (remove(".git/config"), write(".git/config/deep/inside")),
    "a file becomes a link": (remove(".git/config"), link(".git/config", "/etc/hostname")),
    "a file becomes a pipe": (remove(".git/config"), lambda root: os.mkfifo(root / ".git/config")),
    "a hook is added": (write(".git/hooks/post-checkout"),),
    "a hook can be run": (lambda root: (root / ".git/config").chmod(0o777),),
    "a hook can't be run": (lambda root: (root / ".git/hooks/pre-commit").chmod(0o644),),
    "the folder is moved away": (rename(".git/hooks", ".git/old"),),
    "the folder is moved and replaced": (rename(".git/hooks", "old"), write(".git/hooks/pre-commit")),
    "the folder becomes a link": (rename(".git/hooks", "old"), link(".git/hooks", "../old")),
    "the repository is moved and replaced": (rename(".git", "old"), write(".git/config")),
    "the repository becomes a link": (rename(".git", "old"), link(".git", "old"), write("old/config")),
    "the repository becomes a file": (rename(".git", "old"), write(".git", "gitdir: old\n"), write("old/config")),
    "the repository is removed": (remove(".git"),),
    "files are made that were missing": (write(".mcp.json"), write(".envrc"), write(".git/info/attributes")),
    "folders are made that were missing": (write(".bradawl/settings.toml"), write(".idea/a/b/c")),
    "an empty folder is made": (lambda root: (root / ".bradawl").mkdir(),),
    "a dangling link is made": (link(".mcp.json", "nowhere"),),
    "a submodule's settings are made": (write(".git/modules/a/b/config"),),
    "another data folder is named": (write(".git/commondir", "../elsewhere"),),
}


@pytest.mark.parametrize("acts", ATTACKS.values(), ids=ATTACKS.keys())
def test_changes_by_a_program_are_undone_and_reported(checked, acts):
    before = checked.snapshot()
    assert checked.after(*acts)
    now = checked.snapshot()
    assert {name: now.get(name) for name in before} == before
    added = {name for name in now if name not in before}
    assert added <= {".git/old", ".git/old/pre-commit", ".git/modules", ".git/modules/a", ".git/modules/a/b"}
    assert checked.after() == set()


def test_changed_versions_are_kept_aside(checked):
    assert checked.after(write(".git/config", "mine"), write(".bradawl/x", "yours")) == {".git/config", ".bradawl"}
    assert sorted(checked.kept_files()) == [b"mine", b"yours"]


def test_nothing_is_reported_or_kept_if_nothing_changed(checked):
    rewritten = replace(".git/config", "[core]\n\tbare = false\n")
    assert checked.after(rewritten, write("src/main.py"), write(".git/HEAD"), write(".git/objects/aa/b")) == set()
    assert checked.kept_files() == []


def test_changes_to_files_allowed_by_name_stay(checked):
    assert (
        checked.after(write(".git/config", "a"), write(".mcp.json", "b"), allowed=(".git/config", ".mcp.json")) == set()
    )
    assert (checked.root / ".git/config").read_text() == "a"
    assert checked.after(write(".git/config", "c")) == {".git/config"}
    assert (checked.root / ".git/config").read_text() == "a"


def test_nothing_is_written_through_a_link_that_a_program_created(checked):
    """A restored hook must not be written to the target of a link."""
    away = checked.outside
    (away / "pre-commit").write_text("outside")
    checked.after(remove(".git/hooks"), lambda root: (root / ".git/hooks").symlink_to(away))
    assert (away / "pre-commit").read_text() == "outside"
    assert (checked.root / ".git/hooks/pre-commit").read_text() == "#!/bin/sh\nmake lint\n"
    assert not (checked.root / ".git/hooks").is_symlink()


def test_settings_behind_a_link_in_the_workspace_are_protected_with_the_link(tmp_path):
    checked = ProtectedWorkspace(tmp_path)
    (checked.root / ".git").replace(checked.root / "data")
    (checked.root / ".git").symlink_to("data")
    assert checked.after(write("data/config")) == {"data/config"}
    assert (checked.root / "data/config").read_text() == "[core]\n\tbare = false\n"
    assert checked.after(remove(".git"), write(".git/config")) == {".git"}
    assert (checked.root / ".git").is_symlink()


def test_a_new_repository_that_runs_nothing_stays(tmp_path):
    checked = ProtectedWorkspace(tmp_path)
    shutil.rmtree(checked.root / ".git")

    def git(*words: str):
        return lambda root: subprocess.run(["git", "-C", str(root), *words], check=True)

    made = git("-c", "init.templateDir=", "init", "-q")
    remote = git("remote", "add", "origin", "https://example.org/a.git")
    assert checked.after(made, remote, write(".git/hooks/pre-commit.sample")) == set()
    assert (checked.root / ".git/config").exists()


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = touch x\n",
        "[core] fsmonitor = touch x\n",
        "[core]\nbare = false \\\n\n[alias]\nx=!y",
        '[remote "o"]\nurl = ext::sh -c x',
        "[include]\npath = ../evil",
        '[filter "a"]\nclean = x',
        "[CORE]\nSSHCommand = x",
        "[core]\nhookspath = hooks",
        "[core]\nworktree = ../..",
        "\x00[core]",
    ],
)
def test_settings_that_run_programs_are_removed_from_a_new_repository(tmp_path, text):
    checked = ProtectedWorkspace(tmp_path)
    shutil.rmtree(checked.root / ".git")
    assert checked.after(write(".git/config", text), write(".git/hooks/pre-commit")) == {
        ".git/config",
        ".git/hooks/pre-commit",
    }
    assert not (checked.root / ".git/hooks/pre-commit").exists()


def test_overlapping_programs_share_one_reference_state(checked):
    """Changes by the first program must not become the reference state of the second."""
    checked.files.begin()
    write(".git/config")(checked.root)
    checked.files.begin()
    assert len(checked.files.end()) == 1
    write(".git/config")(checked.root)
    assert len(checked.files.end()) == 1
    checked.files.close()
    assert (checked.root / ".git/config").read_text() == "[core]\n\tbare = false\n"


def test_the_user_may_change_protected_files_between_programs(checked):
    checked.after()
    write(".git/config", "by hand")(checked.root)
    assert checked.after() == set()
    assert (checked.root / ".git/config").read_text() == "by hand"


def test_a_file_too_large_to_copy_is_reported_and_not_restored(checked):
    (checked.root / ".vscode/index.db").write_bytes(b"x" * 2_000_000)
    (message,) = checked.after(write(".vscode/index.db", "y"))
    assert message == ".vscode/index.db (could not be put back: it is too large for a copy)"


def test_a_large_file_in_the_place_of_a_small_one_is_moved_away(checked):
    assert checked.after(write(".mcp.json", "x" * 3_000_000), write(".git/config", "y" * 3_000_000)) == {
        ".mcp.json",
        ".git/config",
    }
    assert [len(data) for data in checked.kept_files()] == [3_000_000, 3_000_000]


def test_files_with_unusual_names_are_restored(checked):
    odd = os.fsdecode(b"odd \xff\n name")
    (checked.root / ".git/hooks" / odd).write_bytes(b"\0")
    assert len(checked.after(remove(f".git/hooks/{odd}"))) == 1
    assert (checked.root / ".git/hooks" / odd).read_bytes() == b"\0"


def test_a_deep_tree_made_by_a_program_is_moved_away(checked):
    def dig(root: Path) -> None:
        here = os.open(root, os.O_RDONLY)
        for name in (".bradawl", *["d" * 200] * 60):
            os.mkdir(name, dir_fd=here)
            inner = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(here)

    assert checked.after(dig) == {".bradawl"}
    assert not (checked.root / ".bradawl").exists()
    subprocess.run(["rm", "-rf", str(checked.kept)], check=True)


def test_a_removed_root_is_not_created_again(checked):
    assert all("could not be put back" in each for each in checked.after(lambda root: shutil.rmtree(root)))
    assert not checked.root.exists()


_KILLED = """
import os, sys
from bradawl.sandbox.restore.protected_files import ProtectedFiles
root, kept = sys.argv[1:]
files = ProtectedFiles(lambda: [(root, ".git/config"), (root, ".mcp.json")], kept)
files.begin()
for name in (".git/config", ".mcp.json"):
    with open(f"{root}/{name}", "w") as file:
        file.write("bad")
os.kill(os.getpid(), 9)
"""


def test_the_next_agent_undoes_changes_made_before_the_last_one_was_killed(checked):
    subprocess.run([sys.executable, "-c", _KILLED, os.path.realpath(checked.root), str(checked.kept)], check=False)
    assert (checked.root / ".git/config").read_text() == "bad"
    assert checked.after() == {".git/config", ".mcp.json"}
    assert (checked.root / ".git/config").read_text() == "[core]\n\tbare = false\n"
    assert checked.after() == set()
    assert not list(checked.kept.glob("before-*"))


@pytest.mark.parametrize("way", ["the record", "a file"])
def test_nothing_starts_while_what_a_killed_agent_left_can_not_be_compared(checked, monkeypatch, way):
    subprocess.run([sys.executable, "-c", _KILLED, os.path.realpath(checked.root), str(checked.kept)], check=False)
    (record,) = checked.kept.glob("before-*")
    path = str(record) if way == "the record" else f"{os.path.realpath(checked.root)}/.mcp.json"
    name = "open" if way == "the record" else "lstat"
    call = getattr(os, name)

    def fail(*arguments, **options):
        if str(arguments[0]) == path:
            raise OSError(24, "Too many open files", path)
        return call(*arguments, **options)

    files = checked.new_instance()
    with monkeypatch.context() as patched:
        patched.setattr(os, name, fail)
        for _ in range(2):
            with pytest.raises(ToolError, match="could not be checked: Too many open files"):
                files.begin()
    assert record.exists()
    files.begin()
    assert {os.path.relpath(each, os.path.realpath(checked.root)) for each in files.end()} >= {".mcp.json"}
    files.close()
    assert (checked.root / ".git/config").read_text() == "[core]\n\tbare = false\n"
    assert not (checked.root / ".mcp.json").exists()


def test_the_record_of_a_running_agent_is_not_used(checked):
    checked.files.begin()
    write(".git/config")(checked.root)
    other = checked.new_instance()
    other.begin()
    assert other.end() == ()
    other.close()
    assert len(checked.files.end()) == 1
    checked.files.close()


def test_an_invalid_record_is_ignored(checked):
    checked.kept.mkdir(parents=True)
    (checked.kept / "before-00").write_bytes(b"\xc1garbage")
    assert checked.after() == set()


def test_kept_versions_are_removed_after_a_month(checked):
    checked.after(write(".git/config", "old"))
    (folder,) = checked.kept.iterdir()
    checked.files = checked.new_instance()
    checked.after(write(".git/config", "new"))
    assert sorted(checked.kept_files()) == [b"new", b"old"]
    os.utime(folder, (1, 1))
    checked.files = checked.new_instance()
    checked.after()
    assert checked.kept_files() == [b"new"]


_NAMES = st.sampled_from(
    [".git", ".git/config", ".git/hooks", ".git/hooks/pre-commit", ".mcp.json", ".vscode", ".bradawl"]
)
_CHANGES = st.one_of(
    st.tuples(st.just("write"), _NAMES, st.sampled_from(["a", "b"])),
    st.tuples(st.just("remove"), _NAMES, st.none()),
    st.tuples(st.just("rename"), _NAMES, _NAMES),
    st.tuples(st.just("link"), _NAMES, st.sampled_from(["/etc", "nowhere", "..", ".git", "config"])),
)


@given(st.lists(_CHANGES, max_size=8))
def test_any_sequence_of_changes_is_undone(tmp_path_factory, acts):
    place = tmp_path_factory.mktemp("any")
    checked = ProtectedWorkspace(place)
    before = checked.snapshot()
    makers = {"write": write, "remove": lambda name, _: remove(name), "rename": rename, "link": link}

    def all_acts(root: Path) -> None:
        for what, name, more in acts:
            try:
                makers[what](name, more)(root)
            except OSError:
                continue

    restored = checked.after(all_acts)
    assert not [each for each in restored if "could not" in each]
    now = checked.snapshot()
    assert {name: now.get(name) for name in before} == before
    assert {name for name in now if name.split("/")[0] in (".bradawl", ".mcp.json", ".envrc")} == set()
    assert checked.after() == set()
    shutil.rmtree(place)


OTHER_FILE_SYSTEM = Path("/dev/shm")
OBSTACLES = ["mkfifo x", "mkdir x; mkfifo x/p; echo a > x/f; ln -s / x/l", "truncate -s 2T x", "echo a > x"]


@pytest.mark.parametrize("line", OBSTACLES)
def test_obstacles_are_moved_aside_even_to_another_file_system(tmp_path, line):
    if not os.access(OTHER_FILE_SYSTEM, os.W_OK) or OTHER_FILE_SYSTEM.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    with tempfile.TemporaryDirectory(dir=OTHER_FILE_SYSTEM) as kept:
        put_back(f"{tmp_path}/x", str(tmp_path), None, SetAsideFolder(kept))
        assert not os.path.lexists(tmp_path / "x")
        names = {path.name[4:] if path.parent.parent == Path(kept) else path.name for path in Path(kept).rglob("*")}
        assert ("f" in names) == ("echo a > x/f" in line)
        assert sum(path.lstat().st_size for path in Path(kept).rglob("*") if path.is_file()) < 10_000


def test_moved_obstacles_are_removed_when_old_or_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(putting_back, "_KEPT_BYTES", 100_000)
    now = time.time()
    for name, age_s, size in (("old", 31 * 86_400, 1), ("more", 200, 90_000), ("middle", 100, 60_000), ("new", 1, 1)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "file").write_bytes(b"x" * size)
        os.utime(folder, (now - age_s, now - age_s))
    (tmp_path / "link").symlink_to(tmp_path.parent)
    forget_old(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"new", "middle", "link"}
    monkeypatch.setattr(putting_back, "_KEPT_BYTES", 10)
    forget_old(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"new", "link"}
