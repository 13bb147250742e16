"""Which of many known paths exist, found by listing folders."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.safety.permissions.protected_paths import credentials
from bradawl.sandbox.discovery.present_paths import PresentPaths

NAMES = st.sampled_from([f"n{number}" for number in range(14)])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=30, unique=True)


def looked_up(paths):
    return tuple(path for path in paths if os.access(path, os.F_OK))


@given(wanted=PATHS, made=PATHS, links=PATHS)
def test_it_finds_what_looking_up_each_path_finds(tmp_path_factory, wanted, made, links):
    home = tmp_path_factory.mktemp("home")
    for name in made:
        (home / name).mkdir(parents=True, exist_ok=True)
    for name in links:
        if (home / name).parent.is_dir() and not os.path.lexists(home / name):
            (home / name).symlink_to(home / links[0] if name != links[0] else "nothing")
    paths = [f"{home}/{name}" for name in wanted]
    assert PresentPaths(paths).now() == looked_up(paths)


def test_what_appears_or_goes_between_two_questions_is_noticed(tmp_path):
    paths = credentials(str(tmp_path))
    present = PresentPaths(paths)
    assert present.now() == ()
    for path in paths[::3]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if not Path(path).exists():
            Path(path).touch()
    assert present.now() == looked_up(paths)
    Path(paths[0]).unlink()
    assert paths[0] not in present.now()
    assert present.now() == looked_up(paths)


def test_a_folder_with_many_entries_is_listed_once_only(tmp_path, monkeypatch):
    for number in range(500):
        (tmp_path / str(number)).touch()
    listed = []
    of_the_system = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(folder) or of_the_system(folder))
    paths = [f"{tmp_path}/{number}" for number in range(490, 510)]
    present = PresentPaths(paths)
    assert present.now() == tuple(paths[:10])
    (tmp_path / "505").touch()
    assert present.now() == (*paths[:10], f"{tmp_path}/505")
    assert listed == [str(tmp_path)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can list every folder")
def test_a_folder_that_cannot_be_listed_is_looked_up(tmp_path):
    (tmp_path / "k3").touch()
    tmp_path.chmod(0o300)
    try:
        assert PresentPaths(f"{tmp_path}/k{number}" for number in range(20)).now() == (f"{tmp_path}/k3",)
    finally:
        tmp_path.chmod(0o700)
