"""In a sandbox no program can report in place of its shell either."""

import shutil
from pathlib import Path

import pytest
from bwrap import HAS_BWRAP
from held import held

from bradawl.core.permissions import Grant
from bradawl.safety.sandbox.landlock import LandlockConfinement, unfit

FORGE = Path(__file__).parents[1] / "unit/forge_report.py"
LINES = (
    "{forge}",
    "exec {forge}",
    "({forge})",
    "{forge} & wait",
    "env -i {forge}",
    "trap '{forge}' EXIT",
    "set | {forge} -",
)


@pytest.fixture(params=["bubblewrap", "landlock", "bare"])
def made(request, tmp_path):
    with held(tmp_path) as here:
        if request.param == "bubblewrap" and not HAS_BWRAP:
            pytest.skip("bubblewrap does not work here")
        if request.param == "landlock":
            if why := unfit(here.layout):
                pytest.skip(why)
            here.confinement.close()
            Path(here.layout.scratch).mkdir()
            here.confinement = LandlockConfinement(here.layout)
        if request.param == "bare":
            here.grant = Grant(outside_sandbox=True)
        shutil.copy(FORGE, here.root)
        yield here


@pytest.mark.parametrize("line", LINES)
def test_no_held_program_can_report_in_place_of_its_shell(made, line):
    result = made.run(line.format(forge="/usr/bin/python3 -I -S forge_report.py $$"))
    assert result.exit_code == 0, result.stderr
    assert result.cwd in (None, str(made.root))
    assert result.exports == {}
