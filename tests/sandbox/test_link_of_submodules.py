"""A link in the place of the list of submodules, through which git would write to another file."""

import pytest
from bwrap import needs_bwrap

pytestmark = needs_bwrap


@pytest.mark.parametrize("before", ["", "echo > .gitmodules; git add .gitmodules; git commit -qm two"])
def test_a_new_link_in_its_place_is_undone_and_an_ordinary_change_stays(made, before):
    made.git_init()
    made.bare(before or "true")
    target = made.home / ".gitconfig"
    target.write_text("[user]\n\tname = u\n")
    result = made.run(f"ln -sf {target} .gitmodules")
    assert result.restored == (f"{made.root}/.gitmodules",)
    assert not (made.root / ".gitmodules").is_symlink()
    assert (
        made.run("git config -f .gitmodules submodule.x.path x; git config -f .gitmodules submodule.x.url /x").restored
        == ()
    )
    assert "path = x" in (made.root / ".gitmodules").read_text()
    assert made.run("rm .gitmodules").restored == ()


def test_a_link_of_the_user_stays(made):
    made.git_init()
    made.write("modules", "")
    (made.root / ".gitmodules").symlink_to("modules")
    assert made.run("echo x > modules; touch a").restored == ()
    assert (made.root / ".gitmodules").is_symlink()
