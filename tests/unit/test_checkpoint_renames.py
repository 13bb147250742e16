"""Files and folders that undo renames back: chains, rings, occupied names, links, and what stays where it is."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.planned_renames import CHANGED, PlannedRenames, Stamp, stamp_of
from bradawl.checkpoints.record import FileState
from bradawl.checkpoints.renames import park, rename, rename_all
from bradawl.checkpoints.restore_plan import PlannedChange

FILE = FileState("file", 0o640)
FOLDER = FileState("folder", 0o750)


class Folder:
    """A folder in which short names stand for paths."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.walk = FolderWalk((os.fsencode(top),))

    def path(self, name: str) -> bytes:
        return os.fsencode(self.top / name)

    def make(self, *names: str) -> None:
        """Files that contain their names; a name with a slash at the end makes a folder."""
        for name in names:
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if name.endswith("/") else path.write_text(name)

    def found(self) -> dict[str, str]:
        """All names; of files with their contents, of folders empty."""
        return {
            str(path.relative_to(self.top)): path.read_text() if path.is_file() else "" for path in self.top.rglob("*")
        }

    def rename_all(self, present: dict[str, str] | None = None, /, **renames: str) -> dict[str, int]:
        """Rename by target=source; the numbers of the errors by target."""
        failed: dict[str, int] = {}
        wanted = {self.path(target): self.path(source) for target, source in renames.items()}
        parked = {self.path(source): self.path(name) for source, name in (present or {}).items()}

        def note(target: bytes, error: OSError) -> None:
            failed[os.path.relpath(os.fsdecode(target), self.top)] = error.errno or 0

        done = dict(rename_all(self.walk, wanted, parked, note))
        assert done == {target: source for target, source in wanted.items() if target not in map(self.path, failed)}
        return failed


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    top = tmp_path.resolve() / "w"
    top.mkdir()
    made = Folder(top)
    yield made
    made.walk.close()


@pytest.mark.parametrize(
    "renames",
    [
        {"b": "a", "c": "b", "d": "c"},
        {"d": "c", "b": "a", "c": "b"},
        {"a": "b", "b": "a"},
        {"a": "b", "b": "c", "c": "a"},
        {"a": "b", "b": "a", "c": "d", "d": "c"},
        {"e": "a", "a": "b", "c": "d", "d": "c"},
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_chains_and_rings_are_renamed(renames: dict[str, str], kind: str, folder: Folder):
    names = sorted({*renames.values()})
    for name in names:
        if kind == "link":
            (folder.top / name).symlink_to(f"to {name}")
        else:
            folder.make(f"{name}/{name}" if kind == "folder" else name)
    inodes = {name: (folder.top / name).lstat().st_ino for name in names}
    assert folder.rename_all(**renames) == {}
    assert {path.name: path.lstat().st_ino for path in folder.top.iterdir()} == {
        target: inodes[source] for target, source in renames.items()
    }


@pytest.mark.parametrize(
    ("source", "existing", "error"),
    [
        ("file", "file", errno.EEXIST),
        ("file", "folder/", errno.EEXIST),
        ("file", "folder/x", errno.EEXIST),
        ("folder/", "file", errno.EEXIST),
        ("folder/x", "folder/y", errno.ENOTEMPTY),
    ],
)
def test_nothing_is_replaced(source: str, existing: str, error: int, folder: Folder):
    folder.make(
        source.replace("file", "a").replace("folder", "a"), existing.replace("file", "b").replace("folder", "b")
    )
    folder.make("c")
    before = folder.found()
    assert folder.rename_all(b="a", d="c") == {"b": error}
    assert folder.found() == {("d" if name == "c" else name): text for name, text in before.items()}


@pytest.mark.parametrize("source", ["a", "a/x"])
def test_a_link_is_not_replaced(source: str, folder: Folder):
    folder.make(source)
    (folder.top / "b").symlink_to("missing")
    assert folder.rename_all(b="a") == {"b": errno.EEXIST}
    assert str((folder.top / "b").readlink()) == "missing"
    assert (folder.top / source).read_text() == source


def test_a_folder_may_take_the_place_of_an_empty_one(folder: Folder):
    folder.make("a/x", "b/")
    assert folder.rename_all(b="a") == {}
    assert folder.found() == {"b": "", "b/x": "a/x"}


def test_on_a_file_system_without_hard_links_nothing_is_replaced(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", refuse)
    folder.make("a", "b", "c")
    (folder.top / "l").symlink_to("c")
    assert folder.rename_all(b="a", x="c", l="b") == {"b": errno.EEXIST, "l": errno.EEXIST}
    assert folder.found() == {"a": "a", "b": "b", "x": "c", "l": ""}


def test_after_an_error_the_rest_of_a_chain_replaces_nothing(folder: Folder):
    folder.make("a", "b", "c")
    assert folder.rename_all(b="a", c="b") == {"b": errno.EEXIST, "c": errno.EEXIST}
    assert folder.found() == {"a": "a", "b": "b", "c": "c"}


def test_a_ring_whose_files_are_gone_and_missing_folders_are_errors(folder: Folder):
    folder.make("x", "c", "d")
    assert folder.rename_all(a="b", b="a", y="x", c="d", d="c") == {"a": errno.ENOENT, "b": errno.ENOENT}
    assert folder.found() == {"y": "x", "c": "d", "d": "c"}
    assert folder.rename_all(**{"no/y": "y", "z": "y2"}) == {"no/y": errno.ENOENT, "z": errno.ENOENT}
    assert folder.found() == {"y": "x", "c": "d", "d": "c"}


def test_no_link_is_followed(folder: Folder, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("x")
    folder.make("a")
    (folder.top / "link").symlink_to(outside)
    assert folder.rename_all(**{"link/a": "a", "y": "link/x"}) == {"link/a": errno.ENOTDIR, "y": errno.ENOTDIR}
    assert folder.rename_all(moved="link") == {}
    assert (folder.top / "moved").readlink() == outside
    (folder.top / "to file").symlink_to(outside / "x")
    assert folder.rename_all(moved2="to file") == {}
    assert (folder.top / "moved2").readlink() == outside / "x"
    assert [path.name for path in outside.iterdir()] == ["x"]
    assert folder.rename_all(**{"../outside/a": "a"}) == {"../outside/a": errno.EPERM}


def test_a_parked_file_is_renamed_from_its_temporary_name(folder: Folder):
    folder.make("a", "sub/b")
    parked = park(folder.walk, folder.path("sub/b"), folder.path("a"))
    name = os.path.relpath(os.fsdecode(parked), folder.top)
    assert name.startswith(".bradawl-") and name.endswith(".renamed")
    assert parked != park(folder.walk, parked, folder.path("a"))
    name = next(name for name in folder.found() if name.endswith(".renamed"))
    assert folder.rename_all({"sub/b": name}, **{"c": "sub/b", "sub/b": "a"}) == {}
    assert folder.found() == {"c": "sub/b", "sub": "", "sub/b": "a"}


def test_a_renamed_folder_is_not_entered_by_its_old_name(folder: Folder):
    folder.make("old/x")
    folder.walk.folder(folder.path("old"))
    rename(folder.walk, folder.path("old"), folder.path("new"))
    with pytest.raises(FileNotFoundError):
        rename(folder.walk, folder.path("old/x"), folder.path("y"))
    rename(folder.walk, folder.path("new/x"), folder.path("y"))
    assert folder.found() == {"new": "", "y": "old/x"}


# ------------------------------------------------------------------ as a plan says


class Renames:
    """The renames of a plan: by target its source; further paths with the state that they get."""

    def __init__(
        self, folder: Folder, renames: dict[str, str], other: dict[str, FileState | None], failed: dict[str, str]
    ) -> None:
        sources, paths = set(renames.values()), {*renames, *renames.values(), *other}
        states = {name: self._state(folder.top / source) for name, source in renames.items()}
        self.changes = {
            folder.path(name): PlannedChange(
                folder.path(name),
                None,
                states.get(name, other.get(name)),
                source=folder.path(renames[name]) if name in renames else b"",
                moves_away=name in sources,
            )
            for name in paths
        }
        self.failed = {folder.path(name): why for name, why in failed.items()}
        self.stamps: dict[bytes, Stamp | None] = {path: self._stamp(path) for path in self.changes}
        self.folder = folder

    @staticmethod
    def _state(path: Path) -> FileState | None:
        return FOLDER if path.is_dir() else FILE

    @staticmethod
    def _stamp(path: bytes) -> Stamp | None:
        try:
            return stamp_of(os.lstat(path))
        except OSError:
            return None

    def begin(self) -> PlannedRenames:
        return PlannedRenames(self.folder.walk, self.changes, self.failed, self.stamps)

    def reasons(self) -> dict[str, str]:
        return {os.path.relpath(os.fsdecode(path), self.folder.top): why for path, why in self.failed.items()}


def prepared(
    folder: Folder, renames: dict[str, str], other: dict[str, FileState | None] | None = None, **failed: str
) -> Renames:
    return Renames(folder, renames, other or {}, failed)


def mode_of(folder: Folder, name: str) -> int:
    return stat.S_IMODE((folder.top / name).lstat().st_mode)


def test_renames_of_a_plan_are_carried_out_with_the_modes_that_it_says(folder: Folder):
    folder.make("a", "sub/b", "old/x")
    (folder.top / "old").chmod(0o755)
    plan = prepared(folder, {"a2": "a", "b": "sub/b", "new": "old"})
    renames = plan.begin()
    assert renames.by_target == {
        folder.path(new): folder.path(old) for new, old in (("a2", "a"), ("b", "sub/b"), ("new", "old"))
    }
    above = {os.fsencode(each) for each in (folder.top / "sub/b").parents if each != Path("/")}
    assert renames.folders_of_sources() == above
    renames.park()
    renames.carry_out()
    assert mode_of(folder, "new") == 0o755, "until the end the folder can be entered"
    folder.walk.finish()
    assert plan.failed == {}
    assert folder.found() == {"a2": "a", "b": "sub/b", "sub": "", "new": "", "new/x": "old/x"}
    assert [mode_of(folder, name) for name in ("a2", "b", "new")] == [0o640, 0o640, 0o750]
    assert {name: plan.stamps[folder.path(name)] for name in ("a", "sub/b", "old")} == dict.fromkeys(
        ("a", "sub/b", "old")
    )


def test_if_one_half_is_left_alone_the_other_half_and_all_that_depends_on_it_are_too(folder: Folder):
    folder.make("a", "b", "c", "x")
    plan = prepared(folder, {"b": "a", "c": "b", "d": "c", "y": "x"}, a="it was changed")
    renames = plan.begin()
    assert renames.by_target == {folder.path("y"): folder.path("x")}
    top = folder.top
    assert plan.reasons() == {
        "a": "it was changed",
        "b": f"{top}/a was left alone",
        "c": f"{top}/b was left alone",
        "d": f"{top}/c was left alone",
    }
    renames.park()
    renames.carry_out()
    assert folder.found() == {"a": "a", "b": "b", "c": "c", "y": "x"}


def test_a_rename_whose_target_or_source_is_no_part_of_the_plan_is_left_out(folder: Folder):
    folder.make("a", "b")
    for missing, failed in (("a", "b"), ("c", "a")):
        plan = prepared(folder, {"c": "a"}, {"b": None})
        del plan.changes[folder.path(missing)]
        assert plan.begin().by_target == {}
        if missing == "a":
            assert plan.reasons() == {"c": f"{folder.top}/a was left alone", "a": f"{folder.top}/c was left alone"}
        else:
            assert plan.reasons() == {failed: "what it holds can't be renamed back"}


@pytest.mark.parametrize("change", ["content", "other file", "removed"])
def test_a_file_that_has_changed_since_the_plan_stays(change: str, folder: Folder):
    folder.make("a", "b")
    plan = prepared(folder, {"c": "a", "d": "b"})
    renames = plan.begin()
    if change == "content":
        (folder.top / "a").write_text("later content")
    else:
        (folder.top / "a").rename(folder.top / "away")
    if change == "other file":
        folder.make("a")
    expected = folder.found()
    renames.park()
    renames.carry_out()
    assert plan.reasons() == {"c": CHANGED, "a": CHANGED}
    assert folder.found() == {("d" if name == "b" else name): text for name, text in expected.items()}


def test_a_target_that_appeared_is_kept_and_both_paths_say_why(folder: Folder):
    folder.make("a", "b", "f/x")
    plan = prepared(folder, {"c": "a", "d": "b", "g": "f"})
    renames = plan.begin()
    renames.park()
    folder.make("c", "g")
    renames.carry_out()
    assert plan.reasons() == dict.fromkeys(("c", "a", "g", "f"), "File exists")
    assert folder.found() == {"a": "a", "c": "c", "d": "b", "f": "", "f/x": "f/x", "g": "g"}


def test_a_file_where_a_folder_must_be_made_gets_out_of_the_way(folder: Folder):
    """`mv d/big x; rm -r d; mv x d`, undone."""
    folder.make("d")
    plan = prepared(folder, {"d/big": "d"}, {"d": FOLDER})
    renames = plan.begin()
    renames.park()
    assert not (folder.top / "d").exists()
    assert renames.folders_of_sources() == set()
    (folder.top / "d").mkdir()
    renames.carry_out()
    assert plan.failed == {}
    assert folder.found() == {"d": "", "d/big": "d"}


@pytest.mark.parametrize("wanted", [FileState("file", 0o644, "1"), FileState("link", 0o777, target=b"x")])
def test_a_file_in_a_folder_that_something_else_replaces_is_moved_beside_it(wanted: FileState, folder: Folder):
    folder.make("d/e/big", "keep/big2")
    plan = prepared(folder, {"big": "d/e/big", "big2": "keep/big2"}, {"d": wanted, "keep": FOLDER, "d/e": None})
    renames = plan.begin()
    renames.park()
    assert [path.name for path in (folder.top / "d/e").iterdir()] == []
    assert (folder.top / "keep/big2").exists()
    assert sum(path.name.endswith(".renamed") for path in folder.top.iterdir()) == 1
    assert folder.path("d/e") not in renames.folders_of_sources()
    assert folder.path("keep") in renames.folders_of_sources()
    renames.carry_out()
    assert plan.failed == {}
    assert folder.found() == {"big": "d/e/big", "big2": "keep/big2", "d": "", "d/e": "", "keep": ""}


def test_a_file_in_a_folder_that_another_folder_replaces_is_moved_out_first(folder: Folder):
    """`mv d other; mkdir d; mv big d`, undone."""
    folder.make("d/big", "other/x")
    plan = prepared(folder, {"big": "d/big", "d": "other"})
    renames = plan.begin()
    renames.park()
    (folder.top / "d").rmdir()
    renames.carry_out()
    assert plan.failed == {}
    assert folder.found() == {"big": "d/big", "d": "", "d/x": "other/x"}


def test_a_plan_without_a_wanted_state_keeps_the_mode(folder: Folder):
    folder.make("a")
    (folder.top / "a").chmod(0o600)
    plan = prepared(folder, {"b": "a"})
    path = folder.path("b")
    plan.changes[path] = PlannedChange(path, None, None, source=folder.path("a"))
    renames = plan.begin()
    renames.park()
    renames.carry_out()
    assert plan.failed == {}
    assert mode_of(folder, "b") == 0o600


def test_a_link_to_the_file_does_not_pass_for_it(folder: Folder):
    folder.make("a")
    plan = prepared(folder, {"b": "a"})
    renames = plan.begin()
    (folder.top / "a").rename(folder.top / "away")
    (folder.top / "a").symlink_to("away")
    renames.park()
    renames.carry_out()
    assert plan.reasons() == {"b": CHANGED, "a": CHANGED}
    assert (folder.top / "a").is_symlink()


def test_after_one_that_has_changed_the_others_still_get_out_of_the_way(folder: Folder):
    folder.make("a", "d")
    plan = prepared(folder, {"c": "a", "d/big": "d"}, {"d": FOLDER})
    renames = plan.begin()
    (folder.top / "a").write_text("later content")
    renames.park()
    assert not (folder.top / "d").exists()
    (folder.top / "d").mkdir()
    renames.carry_out()
    assert plan.reasons() == {"c": CHANGED, "a": CHANGED}
    assert folder.found() == {"a": "later content", "d": "", "d/big": "d"}


def test_what_can_not_get_out_of_the_way_stays_and_says_why(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    folder.make("d")
    plan = prepared(folder, {"d/big": "d"}, {"d": FOLDER})
    renames = plan.begin()
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", refuse)
        patched.setattr(os, "rename", refuse)
        renames.park()
    renames.carry_out()
    assert plan.reasons() == dict.fromkeys(("d", "d/big"), "Read-only file system")
    assert folder.found() == {"d": "d"}


def test_a_mode_that_can_not_be_set_is_said_and_the_file_is_renamed(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    folder.make("a")
    (folder.top / "a").chmod(0o600)
    plan = prepared(folder, {"b": "a"})
    renames = plan.begin()
    renames.park()
    with monkeypatch.context() as patched:
        patched.setattr(os, "chmod", refuse)
        patched.setattr(os, "fchmod", refuse)
        renames.carry_out()
    assert plan.reasons() == {"b": "its mode was not restored: Operation not permitted"}
    assert folder.found() == {"b": "a"}
    assert mode_of(folder, "b") == 0o600


def test_a_path_that_does_not_exist_has_no_stamp(folder: Folder):
    folder.make("a")
    assert stamp_of(None) is None
    assert stamp_of(os.lstat(folder.path("a"))) != stamp_of(folder.top.lstat())
