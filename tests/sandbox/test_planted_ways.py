"""Each planted way really starts a program later if no sandbox prevents it: `planted_ways` lists no dead attack."""

import shutil
import subprocess
from pathlib import Path

import pytest
from planted_ways import SETUP, WAYS, PlantedWay


def run_line(line: str, top: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": f"{top}/home", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    return subprocess.run(
        ["/bin/bash", "-c", line.replace("@MARKER@", f"{top}/marker")],
        cwd=top / "parent" / "ws",
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


def test_names_are_unique_and_each_plant_names_the_marker():
    assert len({way.name for way in WAYS}) == len(WAYS) >= 30
    assert all("@MARKER@" in way.plant for way in WAYS)
