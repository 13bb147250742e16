"""What a sandbox can't let programs write to is said before a start, with the error of the start."""

import asyncio

import pytest
from bwrap import needs_bwrap
from sandboxed_session import sandboxed_session

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command

pytestmark = needs_bwrap


@pytest.mark.parametrize("name", ["home/new.txt", "home/.config/new.txt", "home/.config/bradawl/x", "home"])
def test_a_grant_that_no_start_accepts_is_refused_before(tmp_path, name):
    """Defect: the user allowed a command, and then the sandbox refused it whatever the answer was."""
    with sandboxed_session(tmp_path) as session:
        command = Command(("true",), session.cwd, is_shell=True)
        grant = Grant(writable=(*session.layout.roots, str(session.place / name)))
        with pytest.raises(ToolError) as before:
            session.processes.check_grant(command, grant)
        with pytest.raises(ToolError) as started:
            asyncio.run(session.processes.run(command, grant))
        assert str(before.value) == str(started.value)


@pytest.mark.parametrize("name", ["outside/new.txt", "outside", "ws/new.txt", "scratch/x"])
def test_a_grant_that_a_start_accepts_is_accepted_before(tmp_path, name):
    with sandboxed_session(tmp_path) as session:
        command = Command(("true",), session.cwd, is_shell=True)
        grant = Grant(writable=(*session.layout.roots, str(session.place / name)))
        session.processes.check_grant(command, grant)
        assert session.run("true", grant).exit_code == 0
