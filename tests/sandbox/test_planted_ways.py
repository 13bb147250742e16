"""The ways of `planted_ways`: each starts a program later without a sandbox, and none does after bubblewrap."""

import shutil
import subprocess
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from planted_layouts import LAYOUT_WAYS
from planted_named import NAMED_WAYS
from planted_ways import SETUP, PlantedWay
from planted_ways import WAYS as _WAYS
from sandboxed_session import sandboxed_session

WAYS = (*_WAYS, *NAMED_WAYS, *LAYOUT_WAYS)


def run_line(line: str, top: Path, workspace: str = "parent/ws") -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": f"{top}/home", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    return subprocess.run(
        ["/bin/bash", "-c", line.replace("@MARKER@", f"{top}/marker")],
        cwd=top / workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_planted_way_runs_its_program_at_the_harmless_command_and_not_before(way: PlantedWay, tmp_path: Path):
    if shutil.which(way.needs, path="/usr/bin:/bin") is None and not Path(way.needs).exists():
        pytest.skip(f"{way.needs} is not installed")
    for folder in ("home", "parent/ws"):
        (tmp_path / folder).mkdir(parents=True)
    for line in (SETUP, way.before, way.plant):
        done = run_line(line, tmp_path)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "marker").exists()
    run_line(way.fire, tmp_path)
    assert (tmp_path / "marker").exists()


REPORTED = ("settings of vim", "settings of gdb")
"""Settings of editors and debuggers stay where a command makes them, and the result says so: many tools make them.
"""


@needs_bwrap
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_planted_way_runs_nothing_if_it_was_planted_in_the_sandbox(way: PlantedWay, tmp_path: Path):
    if shutil.which(way.needs, path="/usr/bin:/bin") is None and not Path(way.needs).exists():
        pytest.skip(f"{way.needs} is not installed")
    (tmp_path / "home").mkdir()
    with sandboxed_session(tmp_path / "parent", home=str(tmp_path / "home")) as session:
        for line in (SETUP, way.before):
            done = run_line(line, tmp_path, "parent/ws")
            assert done.returncode == 0, done.stderr
        session.run("true")
        result = session.run(way.plant.replace("@MARKER@", f"{tmp_path}/marker"))
        run_line(way.fire, tmp_path)
        if way.name in REPORTED:
            assert any("/.exrc" in note or "/.gdbinit" in note for note in result.notes), result.notes
        else:
            assert not (tmp_path / "marker").exists()


def test_names_are_unique_and_each_plant_names_the_marker():
    assert len({way.name for way in WAYS}) == len(WAYS) >= 30
    assert all("@MARKER@" in way.plant for way in WAYS)
