"""Files with keys below folders that the user can't list are hidden too. Tested as a plain user: root can list all."""

import concurrent.futures.thread  # noqa: F401 - the plain user may not be able to read the modules of this Python
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from forked import as_plain_user
from sandboxed_session import SandboxedSession

from bradawl.core.errors import ToolError
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from patience import cpu_limit

pytestmark = needs_bwrap
KEY = "KEY=very-secret"


@pytest.fixture
def place():
    """A folder that every user can reach, and not below `/tmp`."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    Path(folder).chmod(0o777)
    yield Path(folder)
    remove_folder(folder)


def as_user(place: Path, act: Callable[[SandboxedSession], None]) -> None:
    def in_there() -> None:
        os.environ["TMPDIR"] = str(place)
        made = SandboxedSession(place)
        try:
            act(made)
        finally:
            made.close()

    as_plain_user(in_there)


@pytest.mark.parametrize("mode", [0o000, 0o111, 0o100, 0o400, 0o444, 0o200, 0o311])
def test_files_with_keys_below_a_closed_folder_can_not_be_read(place: Path, mode: int) -> None:
    def act(made: SandboxedSession) -> None:
        made.write("app/deep/.env", KEY)
        assert "very-secret" not in made.out("cat app/deep/.env")
        made.out(f"chmod {mode:o} app")
        assert "very-secret" not in made.out(
            "cat app/deep/.env; chmod -R 777 app; cat app/deep/.env; mv app app2; cat app2/deep/.env"
        )
        assert made.run("echo still here > new && cat new").stdout == b"still here\n"

    as_user(place, act)


@pytest.mark.parametrize("mode", [0o000, 0o111, 0o400])
def test_a_folder_closed_before_the_session_is_hidden(place: Path, mode: int) -> None:
    def act(made: SandboxedSession) -> None:
        made.write("app/.env", KEY)
        (made.root / "app").chmod(mode)
        assert "very-secret" not in made.out("chmod -R 777 app; cat app/.env")
        made.write("plain", "seen")
        assert made.out("cat plain") == "seen"

    as_user(place, act)


def test_a_folder_reopened_from_outside_is_visible_again(place: Path) -> None:
    def act(made: SandboxedSession) -> None:
        made.write("app/file", "seen")
        made.out("chmod 0 app")
        assert made.run("cat app/file").exit_code == 1
        made.bare("chmod 755 app")
        assert made.out("cat app/file") == "seen"

    as_user(place, act)


def test_thousands_of_closed_folders_are_refused_at_once(place: Path) -> None:
    def act(made: SandboxedSession) -> None:
        made.out("mkdir c && cd c && seq 12000 | xargs mkdir -m 0")
        with cpu_limit(3.0), pytest.raises(ToolError, match="more protected files"):
            made.run("true")

    as_user(place, act)
