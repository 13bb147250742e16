"""A writable folder that another program replaces by a link while bubblewrap starts does not open the link's target.

Jobs of the same session are stopped meanwhile; those of another session, in a folder above, and the user's own programs
are not.
"""

import stat
import tempfile
from pathlib import Path

import pytest
from bwrap import BINDS_DESCRIPTORS, BWRAP, needs_bwrap
from sandboxed_session import SandboxedSession, remove_folder, sandboxed_session

from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.bubblewrap_arguments import binds_descriptors

pytestmark = [needs_bwrap, pytest.mark.timeout(60)]

SWAPPING = """#!/bin/sh
cp -r {place}/. {place}/../{target} && mv {place} {place}.moved && ln -s {target} {place}
exec {bwrap} "$@"
"""


@pytest.fixture
def made():
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))  # what is in /tmp has other mounts around it
    with sandboxed_session(place) as session:
        yield session
    remove_folder(str(place))


def swapping(made: SandboxedSession, place: Path, target: str, *, checks: bool) -> None:
    """Let a link take the folder's place when bubblewrap starts, before it mounts anything. Its target has the same
    placeholders, so that all mounts succeed.
    """
    program = made.place / "swapping-bwrap"
    program.write_text(SWAPPING.format(place=place, target=target, bwrap=BWRAP))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    features = BubblewrapFeatures(str(program), binds_descriptors=checks)
    made.backend.close()
    made.backend = BubblewrapBackend(made.layout, features)


def put_back(place: Path) -> None:
    place.unlink()
    Path(f"{place}.moved").rename(place)


def write_by_a_moved_root(made: SandboxedSession, *, checks: bool) -> set[str]:
    """What is in the folder outside after a command of a session whose root became a link to it."""
    swapping(made, made.root, "outside", checks=checks)
    made.run("echo planted > planted; echo planted > ../outside/planted")
    put_back(made.root)
    return {each.name for each in made.outside.iterdir() if not each.name.startswith(".")}


def test_without_descriptors_the_target_of_the_link_is_written(made):
    assert "planted" in write_by_a_moved_root(made, checks=False)


@pytest.mark.skipif(not BINDS_DESCRIPTORS, reason="this bubblewrap can't mount by descriptors")
def test_with_descriptors_nothing_outside_is_written_or_made(made):
    assert write_by_a_moved_root(made, checks=True) == {"file"}


@pytest.mark.skipif(not BINDS_DESCRIPTORS, reason="this bubblewrap can't mount by descriptors")
def test_a_program_does_not_inherit_the_descriptors_of_the_mounts(made):
    made.backend.close()
    made.backend = BubblewrapBackend(made.layout, BubblewrapFeatures(BWRAP, binds_descriptors=True))
    listed = made.run("ls /proc/$$/fd; ls -l /proc/$$/fd").stdout.decode()
    assert str(made.root) not in listed
    assert made.run("echo a > file && cat file").stdout == b"a\n"


@pytest.mark.skipif(not BINDS_DESCRIPTORS, reason="this bubblewrap can't mount by descriptors")
def test_a_root_that_is_a_link_before_the_start_is_an_error_that_names_it(made):
    made.backend.close()
    made.backend = BubblewrapBackend(made.layout, BubblewrapFeatures(BWRAP, binds_descriptors=True))
    assert made.run("true").exit_code == 0
    made.root.rename(made.place / "elsewhere")
    made.root.symlink_to("elsewhere")
    with pytest.raises(Exception, match="replaced by a link"):
        made.run("true")


def test_a_program_that_is_no_bubblewrap_can_not_bind_descriptors(tmp_path):
    assert not binds_descriptors("/bin/true")
    assert not binds_descriptors(str(tmp_path / "missing"))
