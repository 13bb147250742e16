"""The index of folders finds every change below a root, at any depth, whatever programs do to the times."""

import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bradawl.core.effects import is_within
from bradawl.sandbox.discovery.folder_index import FolderIndex, covering, is_git_directory, is_in_any
from bradawl.sandbox.restore.git_directories import GitDirectories
from patience import cpu_limit

NAMES = (".git", "HEAD", "objects", "refs", "config")


def _index(root: Path, **options) -> FolderIndex:
    return FolderIndex(str(root), NAMES, (".code-workspace",), **options)


def _marked(root: Path) -> dict[str, set[str]]:
    """The folders with marked names, by listing all of them."""
    found: dict[str, set[str]] = {}
    for folder, inner, files in os.walk(root):
        names = {name for name in (*inner, *files) if name in NAMES or name.endswith(".code-workspace")}
        if names:
            found[folder] = names
    return found


def _found(index: FolderIndex) -> dict[str, set[str]]:
    index.search()
    return {path: set(folder.names) for path, folder in index.marked.items()}


def _wait_for_tick(file: Path) -> None:
    """Return when a change gets a later time than the changes so far: the kernel's clock advances in steps."""
    file.touch()
    first = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == first:
        file.touch()


def _settle(index: FolderIndex) -> None:
    """Make the index believe that all folders changed long ago, so that it uses what it knows."""
    index._known = {
        path: folder._replace(changed_ns=os.lstat(path).st_ctime_ns) for path, folder in index._known.items()
    }


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_are_found(tmp_path: Path, seed: int) -> None:
    chance, index = random.Random(seed), _index(tmp_path / "root")  # noqa: S311 - no secret depends on it
    clock, tmp_path = tmp_path / "clock", tmp_path / "root"
    (tmp_path / "a").mkdir(parents=True)
    for _ in range(40):
        _settle(index)
        _wait_for_tick(clock)
        folders = [Path(folder) for folder, _, _ in os.walk(tmp_path)]
        place, name = chance.choice(folders), chance.choice((*NAMES, "x", "y", "z.code-workspace", "\udcff"))
        match chance.randrange(5):
            case 0 | 1:
                (place / name).mkdir(exist_ok=True)
            case 2:
                (place / "file").write_text("x") if not (place / "file").is_dir() else None
            case 3 if place != tmp_path:
                goal = chance.choice(folders) / name
                if not goal.exists() and not goal.is_relative_to(place):
                    place.rename(goal)
            case _ if place != tmp_path:
                shutil.rmtree(place)
        for folder in folders:
            if folder.exists():
                os.utime(folder, (1, 1))
        assert _found(index) == _marked(tmp_path)


def test_an_unchanged_folder_is_not_listed_again(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    index = _index(tmp_path)
    index.search()
    _settle(index)
    before = index._known
    index.search()
    assert all(index._known[path] is before[path] for path in before)


def test_a_folder_that_replaced_another_is_listed_although_its_times_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "new/b/.git").mkdir(parents=True)
    index = _index(tmp_path)
    index.search()
    _settle(index)
    (tmp_path / "a").rename(tmp_path / "old")
    (tmp_path / "new").rename(tmp_path / "a")
    shutil.copystat(tmp_path / "old", tmp_path / "a")
    assert _found(index) == {f"{tmp_path}/a/b": {".git"}}


def test_links_are_not_followed_and_other_files_do_not_stop_the_search(tmp_path: Path) -> None:
    (tmp_path / "out/.git").mkdir(parents=True)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("../out")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe")
    (root / "x/.git").mkdir(parents=True)
    assert _found(_index(root)) == {f"{root}/x": {".git"}}


def test_a_root_that_became_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "out/.git").mkdir(parents=True)
    (tmp_path / "root").symlink_to("out")
    assert _found(_index(tmp_path / "root")) == {}


def test_what_was_not_reached_in_time_is_named(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"f{number}").mkdir()
    (tmp_path / "f7/.git").mkdir()
    index = _index(tmp_path, within_s=0)
    index.search()
    assert 0 < index.size < 600
    assert index.rest
    seen = set(index._known)
    assert {f"{tmp_path}/f{number}" for number in range(600)} <= seen | set(index.rest)
    index.search(within_s=60)
    assert index.rest == ()
    assert f"{tmp_path}/f7" in index.marked


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=30), st.integers(1, 5))
@settings(deadline=None)
def test_a_cover_contains_all_paths_and_is_small(parts: list[list[str]], most: int) -> None:
    paths = ["/root/" + "/".join(each) for each in parts]
    found = covering(paths, "/root", most)
    assert len(found) <= most
    assert all(any(path == each or path.startswith(f"{each}/") for each in found) for path in paths)
    assert all(each.startswith("/root") for each in found)


@pytest.mark.parametrize(
    ("names", "is_one"),
    [
        ({"HEAD", "objects", "refs"}, True),
        ({"HEAD", "commondir"}, True),
        ({"HEAD", "objects"}, False),
        ({"objects", "refs", "config"}, False),
    ],
)
def test_git_recognizes_its_data_by_names(names: set[str], is_one: bool) -> None:
    assert is_git_directory(frozenset(names)) is is_one


_PARTS = st.lists(st.sampled_from(["a", "b", "ab", "\udcff"]), max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(_PARTS, st.frozensets(_PARTS, max_size=6))
@settings(deadline=None)
def test_a_path_lies_in_one_of_many_folders_as_it_lies_in_each(path: str, folders: frozenset[str]) -> None:
    assert is_in_any(path, folders) is any(is_within(path, each) for each in folders)


def test_folders_that_no_search_reached_do_not_make_the_end_of_a_program_slow(tmp_path: Path) -> None:
    directories = GitDirectories((str(tmp_path),))
    directories.rest = tuple(f"{tmp_path}/packages/f{number}" for number in range(20_000))
    directories.adopt()
    directories.rest = (f"{tmp_path}/new", *directories.rest)
    with cpu_limit(0.5):
        directories.note_end()
        directories.adopt()
    assert directories.unsearched == (f"{tmp_path}/new",)
    assert directories.is_pending(f"{tmp_path}/new/x") and not directories.is_pending(f"{tmp_path}/packages/f1/x")
