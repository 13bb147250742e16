"""Every sandbox backend has the members of the port and keeps what they promise without a program."""

import inspect
import sys
from pathlib import Path

import pytest

from bradawl.sandbox.backend import SandboxBackend, SandboxLayout
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.discovery.other_users import OtherUsersPaths
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.macos import SandboxExecBackend

MEMBERS = {name: member for name, member in vars(SandboxBackend).items() if not name.startswith("_")}
BACKENDS = {
    BubblewrapBackend: lambda layout: BubblewrapBackend(
        layout, BubblewrapFeatures("/usr/bin/bwrap"), ("tcp",), others=OtherUsersPaths()
    ),
    LandlockBackend: LandlockBackend,
    SandboxExecBackend: SandboxExecBackend,
}


def test_the_port_has_at_most_four_members():
    assert len(MEMBERS) <= 4


@pytest.mark.parametrize("kind", BACKENDS)
def test_a_backend_has_each_member_with_the_same_parameters(kind):
    for name, member in MEMBERS.items():
        own = inspect.getattr_static(kind, name)
        assert isinstance(own, type(member)), name
        if not isinstance(member, property):
            assert list(inspect.signature(own).parameters) == list(inspect.signature(member).parameters), name


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these backends need Linux")
@pytest.mark.parametrize("kind", BACKENDS)
def test_a_backend_that_started_no_program_leaves_no_file(kind, tmp_path: Path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "home").mkdir()
    place = str(tmp_path.resolve())
    layout = SandboxLayout((f"{place}/ws",), f"{place}/home", scratch=f"{place}/scratch", state=f"{place}/state")
    backend: SandboxBackend = BACKENDS[kind](layout)
    assert backend.sandbox.name
    assert set(backend.sandbox.lacks) <= set(GUARANTEES)
    for path in ("/usr/bin/env", f"{place}/ws/file"):
        assert backend.host_path(path) == path
    for _ in range(2):
        backend.close()
    assert {path.name for path in tmp_path.iterdir()} == {"ws", "home"}
