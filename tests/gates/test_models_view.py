"""docs/models-view.md is what the model sees now, and no part of the first request has grown over its budget.

A budget is about a tenth above the size. What grows over it is paid in every request: make it shorter, or say in the
commit what it is worth.
"""

import re
import subprocess
import sys

import pytest
from source_tree import REPOSITORY

PAGE = REPOSITORY / "docs" / "models-view.md"
SIZES = {
    name.strip("`"): int(size.replace(",", ""))
    for name, size in re.findall(r"^\| (?:tool )?(.+) \| ([\d,]+) \|$", PAGE.read_text("utf-8"), re.M)
}
BUDGETS = {
    "system prompt: rules": 1_120,
    "system prompt: environment": 450,
    "bash": 770,
    "bash_output": 290,
    "bash_kill": 160,
    "read_file": 520,
    "write_file": 240,
    "edit_file": 430,
    "multi_edit": 450,
    "glob": 320,
    "grep": 700,
    "agent": 500,
    "todo_write": 490,
    "web_fetch": 410,
    "ask_user": 320,
    "exit_plan": 270,
    "all tools": 5_700,
    "first request, as OpenAI Chat Completions": 8_600,
}


def test_the_page_is_up_to_date():
    script = REPOSITORY / "scripts" / "models_view.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"run `make models-view`:\n{done.stdout}{done.stderr[-2_000:]}"


def test_every_part_has_a_budget():
    assert SIZES.keys() == BUDGETS.keys()


@pytest.mark.parametrize("part", BUDGETS)
def test_a_part_stays_within_its_budget(part):
    assert SIZES[part] <= BUDGETS[part]
