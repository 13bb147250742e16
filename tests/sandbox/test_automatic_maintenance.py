"""Git's automatic maintenance ends with the command that started it."""

import pytest
from bwrap import needs_bwrap

pytestmark = needs_bwrap


@pytest.mark.parametrize("setting", ["", "git config gc.autoDetach true;"])
def test_a_commit_packs_the_objects_before_it_ends(made, setting):
    made.git_init()
    made.bare(f"{setting} git config gc.auto 20")
    made.run("true")
    result = made.run("for i in $(seq 600); do echo $i > f$i; done; git add -A && git commit -qm gen")
    assert (result.exit_code, result.ended_background) == (0, False)
    assert list((made.root / ".git/objects/pack").glob("*.pack"))
    assert not (made.root / ".git/gc.pid").exists()


def test_settings_that_the_session_exports_stay(made):
    made.git_init()
    made.run("export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=other")
    assert made.out("git config user.name").strip() == "other"
    assert made.out("git config gc.autoDetach").strip() == ""


def test_the_settings_apply_to_no_program_that_reads_its_own_file(made):
    made.git_init()
    assert made.out("git config -f .git/config gc.autoDetach; git config gc.autoDetach").strip() == "false"
