"""A sandboxed program can't forge the report of its shell."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from landlock_programs import SYSTEM_PYTHON

FORGE = Path(__file__).parents[1] / "unit/forge_report.py"
# Double quotes, because some lines put it between single quotes. The real path, because an environment may be hidden.
PYTHON = SYSTEM_PYTHON if os.access(SYSTEM_PYTHON, os.X_OK) else f'"{os.path.realpath(sys.executable)}"'
LINES = (
    "{forge}",
    "exec {forge}",
    "({forge})",
    "{forge} & wait",
    "env -i {forge}",
    "trap '{forge}' EXIT",
    "set | {forge} -",
)


@pytest.fixture
def made(either_way):
    shutil.copy(FORGE, either_way.root)
    return either_way


@pytest.mark.parametrize("line", LINES)
def test_no_sandboxed_program_can_forge_the_report_of_its_shell(made, line):
    result = made.run(line.format(forge=f"{PYTHON} -I -S forge_report.py $$"))
    assert result.exit_code == 0, result.stderr
    assert result.cwd in (None, str(made.root))
    assert result.exports == {}
