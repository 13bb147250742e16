"""Files that programs leave in a workspace neither block bradawl's checks after the program nor make them fail."""

import pytest
from bubblewrap_programs import programs_with

from bradawl.sandbox.filesystem.tree_removal import remove_folder
from patience import no_wait

LEFT = {
    "pipes": "mkdir -p .git/hooks; mkfifo .git/hooks/pre-commit .mcp.json .git/commondir; rm -f .git/index;"
    " mkfifo .git/index",
    "pipes for HEAD": "rm .git/HEAD; mkfifo .git/HEAD",
    "many hooks": "mkdir -p .git/modules/m/hooks; cd .git/modules/m/hooks; seq 2000 | xargs touch",
    "deep folders": "cd .git/refs; for i in $(seq 100); do mkdir ddddddddd; cd ddddddddd; done",
    "deep modules": "mkdir -p .git/modules; cd .git/modules; for i in $(seq 300); do mkdir dddd; cd dddd; done",
    "odd names": "touch $'.git/refs/heads/a\\377b' $'a\\nb\\377'; mkdir -p $'x\\377/.git'",
    "huge files": "truncate -s 1T .git/index .git/commondir; mkdir -p .git/objects/pack; cd .git/objects/pack;"
    " truncate -s 100G pack-$(printf %040d 1).pack; echo > pack-$(printf %040d 1).idx",
    "many references": "cd .git/refs/heads; seq 500 | xargs touch",
    "links in circles": "ln -s loop .git/loop; ln -s . .git/refs/self; rm -rf .git/logs; ln -s / .git/logs",
}


@pytest.fixture(params=["bubblewrap", "landlock"])
def made(request):
    with programs_with(request.param) as here:
        here.bare("rm -rf .git; git init -q; git -c user.name=a -c user.email=b commit -q --allow-empty -m x")
        yield here
        remove_folder(str(here.root))


@pytest.mark.parametrize("left", LEFT)
def test_hostile_files_are_checked_without_failure(made, left):
    for line in (LEFT[left], "true"):
        with no_wait():
            ended = made.sh(line)
        assert len(ended.restored) < 20, ended.restored[:5]
    assert made.sh("test -f .git/HEAD -a ! -p .git/index").code == 0


def test_a_new_folder_with_very_many_hooks_is_moved_aside_as_a_whole(made):
    ended = made.sh(LEFT["many hooks"])
    assert ended.restored == (f"{made.root}/.git/modules/m/hooks",)
    assert not (made.root / ".git/modules/m/hooks").exists()
