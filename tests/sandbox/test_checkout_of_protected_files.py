"""Git commands that can't replace a protected file say so, name it, and can be taken back as the remark says."""

import pytest
from bwrap import needs_bwrap

from bradawl.tools.shell.sandbox_hints import notes_on

pytestmark = needs_bwrap

SETUP = (
    "mkdir -p .github/workflows; echo 1 > .github/workflows/ci.yml; echo 1 > a; echo 1 > z; git add .;"
    " git commit -qm v1; git checkout -qb other; for f in a z .github/workflows/ci.yml; do echo 2 > $f; done;"
    " echo new > n; git add .; git commit -qm v2; git checkout -q main"
)


@pytest.mark.parametrize("line", ["git checkout other", "git switch other", "git checkout other 2>&1 | tail -5"])
def test_a_checkout_that_reports_success_is_explained_and_can_be_taken_back(made, line):
    made.git_init()
    made.bare(SETUP)
    made.run("true")
    result = made.run(line)
    assert result.exit_code == 0
    (note,) = notes_on(result, made.grant, user_is_there=True)
    assert ".github/workflows/ci.yml" in note and "Don't commit it" in note and "git checkout -" in note
    assert made.bare("git status --short") == " M .github/workflows/ci.yml\n"
    going_back = "git restore --staged --source=@{-1} .github/workflows/ci.yml; git checkout -"
    assert all(each in note.replace("FILE", ".github/workflows/ci.yml") for each in going_back.split("; "))
    assert made.run(going_back).exit_code == 0
    assert made.bare("git status --short --branch") == "## main\n"


@pytest.mark.parametrize(
    "line", ["git reset --hard other", "git merge --ff-only other", "git restore -s other .", "git cherry-pick other"]
)
def test_a_command_that_stops_midway_says_in_what_state_and_how_to_go_back(made, line):
    made.git_init()
    made.bare(SETUP)
    before = made.bare("git rev-parse HEAD")
    made.run("true")
    result = made.run(line)
    assert result.exit_code != 0
    (note,) = notes_on(result, made.grant, user_is_there=True)
    assert ".github/workflows/ci.yml" in note and "stopped midway" in note
    assert made.bare("git rev-parse HEAD") == before
    made.run("git restore --staged --worktree a z; rm -f n; git rm -q --cached --ignore-unmatch n")
    assert made.bare("git status --short") == ""
