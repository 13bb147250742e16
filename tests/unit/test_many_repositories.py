"""The check of a command takes time for each repository, not for each pair of repositories."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bradawl.core.effects import is_within
from bradawl.sandbox.restore.new_repositories import NewRepositoryFiles
from bradawl.sandbox.restore.removable_data import RemovableData
from bradawl.sandbox.restore.snapshot import Baseline, Entry, holds_any, take_snapshot
from patience import cpu_limit

FILE = Entry("file", b"/ws", (), content=b"[core]\n")
PARTS = st.lists(st.sampled_from(["a", "b", "ab", ".git"]), min_size=1, max_size=4).map(
    lambda each: "/" + "/".join(each)
)


@given(PARTS, st.frozensets(PARTS, max_size=6))
@settings(deadline=None)
def test_a_folder_of_a_snapshot_is_found_as_by_comparing_all_entries(folder: str, paths: frozenset[str]) -> None:
    found = dict.fromkeys(paths, FILE)
    assert holds_any(Baseline(found), folder) is holds_any(found, folder)


@given(PARTS, st.frozensets(PARTS, max_size=6), st.frozensets(PARTS, max_size=2))
@settings(deadline=None)
def test_lost_data_are_found_as_by_comparing_all_folders(
    tmp_path_factory: pytest.TempPathFactory, path: str, folders: frozenset[str], there: frozenset[str]
) -> None:
    top = tmp_path_factory.mktemp("ws")
    for each in there:
        Path(f"{top}{each}").mkdir(parents=True, exist_ok=True)
    data = RemovableData(f"{top}{each}" for each in folders)
    around = [f"{top}{each}" for each in folders if is_within(path, each) or is_within(each, path)]
    assert data.has_lost(f"{top}{path}") is any(not os.path.lexists(each) for each in around)


def test_files_of_new_repositories_are_judged_without_comparing_them_with_all_that_existed() -> None:
    before = Baseline({f"/ws/old{number}/.git/f{name}": FILE for number in range(1_000) for name in range(10)})
    new = NewRepositoryFiles(("/ws",))
    made = frozenset(f"/ws/made{number}/.git" for number in range(1_000))
    with cpu_limit(0.5):
        for number in range(1_000):
            assert new.is_harmless(f"/ws/new{number}/.git/config", FILE, before)
            assert not new.is_harmless(f"/ws/old{number}/.git/config", FILE, before)
            assert not new.is_harmless_in_made(f"/ws/new{number}/.git/config", FILE, made, made)


def test_folders_on_the_way_to_many_names_are_examined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b/c/.git").mkdir(parents=True)
    seen: list[str] = []
    lstat = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path, **options: seen.append(str(path)) or lstat(path, **options))
    take_snapshot([(str(tmp_path), f"a/b/c/.git/f{number}") for number in range(10)], {})
    assert seen.count(f"{tmp_path}/a/b") == 1 and f"{tmp_path}/a/b/c/.git/f9" in seen
