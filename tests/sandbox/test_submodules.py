"""Git data of submodules and above the workspace: changes by programs that redirect git are undone."""

import os
import subprocess
from pathlib import Path

import pytest
from bwrap import HAS_BWRAP
from sandboxed_session import SandboxedSession

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox.landlock import LandlockBackend, why_unavailable
from bradawl.sandbox.path_translation import TEMPORARY

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
_SUBMODULES = ("sm", "libs/x/y/z/w/deep", *(f"many/{number}" for number in range(12)))
_BUILD = f"""set -e
git init -q -b main inner; git -C inner commit -q --allow-empty -m one
git init -q -b main other; git -C other commit -q --allow-empty -m one
git -C other -c protocol.file.allow=always submodule --quiet add "$PWD/inner" nested; git -C other commit -qm nested
git init -q -b main repo; cd repo; mkdir sub; echo hi > sub/f; git add .; git commit -qm one
for name in {" ".join(_SUBMODULES)}; do
git -c protocol.file.allow=always submodule --quiet add "$PWD/../other" $name; done
git -C sm -c protocol.file.allow=always submodule --quiet update --init
git commit -qm submodules
git worktree add -q ../tree
git -C ../tree -c protocol.file.allow=always submodule --quiet update --init sm
"""
_DATA = {
    "repo": (
        ".git/modules/sm",
        ".git/modules/libs/x/y/z/w/deep",
        ".git/modules/many/11",
        ".git/modules/sm/modules/nested",
    ),
    "repo/sub": ("../.git", "../.git/modules/sm"),
    "repo/sm": ("../.git/modules/sm", "../.git/modules/sm/modules/nested"),
    "tree": ("../repo/.git", "../repo/.git/modules/sm", "../repo/.git/worktrees/tree/modules/sm"),
}
_EACH = [(workspace, data) for workspace, all_data in _DATA.items() for data in all_data]


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request):
    if request.param == "bubblewrap" and not HAS_BWRAP:
        pytest.skip("bubblewrap does not work here")
    return request.param


def _session(place, workspace, kind):
    subprocess.run(["bash", "-c", _BUILD], cwd=place, env={**os.environ, **_ENVIRONMENT}, check=True)
    made = SandboxedSession(place, roots=(str(place / workspace),))
    made.root, made.cwd = place / workspace, str(place / workspace)
    if kind == "landlock":
        if why := why_unavailable(made.layout):
            pytest.skip(why)
        made.backend.close()
        Path(made.layout.scratch).mkdir()
        made.backend = LandlockBackend(made.layout)
    return made


@pytest.mark.parametrize(("workspace", "data"), _EACH)
def test_files_that_redirect_git_are_moved_away(tmp_path: Path, kind: str, workspace: str, data: str) -> None:
    canary = tmp_path / "canary"
    made = _session(tmp_path, workspace, kind)
    plant = (
        f"cp -a {data} evil; printf '[core]\\n\\tfsmonitor = touch {canary}; false\\n' >> evil/config;"
        f"echo $PWD/evil > {data}/commondir; mkdir -p {data}/objects/info; echo /else > {data}/objects/info/alternates"
    )
    try:
        result = made.run(plant)
        planted = [made.root / data / name for name in ("commondir", "objects/info/alternates")]
        assert not [path for path in planted if path.exists()]
        assert {os.path.realpath(path) for path in planted} <= set(result.restored)
        made.run("git status; git submodule status", Grant(outside_sandbox=True))
        assert not canary.exists()
    finally:
        made.close()


@pytest.mark.parametrize("workspace", list(_DATA))
def test_ordinary_git_commands_succeed(tmp_path: Path, kind: str, workspace: str) -> None:
    if kind == "landlock" and workspace != "repo" and str(tmp_path).startswith(TEMPORARY):
        pytest.skip("with Landlock the rest of the repository can't be read in the folder for temporary files")
    made = _session(tmp_path, workspace, kind)
    made.env |= _ENVIRONMENT
    try:
        result = made.run("git status --short; echo x > new; git add new; git commit -qm new && git log --oneline")
        assert (result.exit_code, result.restored) == (0, ()), result
        assert b"new" in result.stdout
    finally:
        made.close()


def test_too_many_folders_are_an_error(tmp_path: Path, kind: str) -> None:
    made = _session(tmp_path, "repo", kind)
    try:
        for number in range(2_100):
            (made.root / f".git/modules/x{number}").mkdir()
        with pytest.raises(ToolError, match=r"more (folders of submodules|protected files)"):
            made.run("true")
    finally:
        made.close()
