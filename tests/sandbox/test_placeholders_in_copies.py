"""Commands that stage or copy everything while placeholders of the sandbox exist."""

import subprocess

import pytest
from bwrap import needs_bwrap

pytestmark = needs_bwrap


@pytest.mark.parametrize("line", ["git add -A -f", "git add -f .envrc .claude/nothing keep", "git stage --force ."])
def test_placeholders_are_taken_out_of_the_index_and_the_rest_stays_staged(made, line):
    made.git_init()
    made.write("keep", "x")
    made.write("docs/.envrc/nothing", "of the user")
    result = made.run(line)
    staged = made.bare("git diff --cached --name-only").split()
    assert "keep" in staged
    assert [name for name in staged if name.endswith("/nothing")] == ["docs/.envrc/nothing"] * (
        "." in line.split() or "-A" in line
    )
    (note,) = result.restored
    assert ".claude/nothing" in note and "which only the sandbox shows" in note and "docs" not in note
    assert made.bare("git status --short | grep -v '^A '").strip() in ("", "?? docs/")


def test_an_index_without_placeholders_is_left_alone(made):
    made.git_init()
    made.write(".envrc", "tracked")
    made.write(".vscode/nothing", "tracked")
    made.bare("git add -A -f; git commit -qm two")
    made.write("keep", "x")
    assert made.run("git add -A").restored == ()
    done = subprocess.run(["git", "diff", "--cached", "--name-only"], cwd=made.root, capture_output=True, check=True)
    assert done.stdout == b"keep\n"
