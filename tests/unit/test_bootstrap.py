"""scripts/bootstrap names everything a machine lacks in one run, with the command that installs it."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("sh", "dirname", "cat", "cksum", "id", "rm")
NO_VENV = '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1 ;; esac\nexec {python} "$@"\n'


@pytest.fixture
def machine(tmp_path):
    """Runs bootstrap as a user other than root, with a PATH that has only basic and the given programs."""
    programs, clone = tmp_path / "bin", tmp_path / "a clone ü $x"
    programs.mkdir()
    (clone / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/bootstrap", clone / "scripts")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, clone)
    for name in NEEDED:
        if name != "id":
            (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    write(programs / "id", "#!/bin/sh\necho 1000\n")

    def run(*arguments: str, **texts: str) -> subprocess.CompletedProcess[str]:
        for name, text in texts.items():
            write(programs / name.replace("_", "-"), text)
        command = ["/bin/sh", str(clone / "scripts/bootstrap"), *arguments]
        return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, timeout=50)

    return run


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_everything_that_is_missing_is_named_at_once(machine):
    ended = machine("dev", apt_get="#!/bin/sh\nexit 100\n")
    assert ended.returncode == 1
    assert "needs bash git python3 python3-venv: run `sudo apt-get update" in ended.stderr
    assert "install bash git python3 python3-venv`" in ended.stderr
    assert "Python 3.11 or newer" in ended.stderr


def test_the_program_alone_needs_no_git(machine):
    ended = machine("run")
    assert "needs bash python3 python3-venv: install it with the packages of your system" in ended.stderr


def test_a_python_that_is_too_old_does_not_count(machine):
    ended = machine("dev", bash="", git="", python3="#!/bin/sh\nexit 1\n")
    assert "needs python3 python3-venv" in ended.stderr and "3.11 or newer" in ended.stderr


def test_a_python_from_elsewhere_without_venv_is_not_reported_as_a_missing_package(machine):
    ended = machine("dev", git="", python3=NO_VENV.format(python=shlex.quote(sys.executable)))
    assert ended.returncode == 1
    assert "needs bash: " in ended.stderr
    assert "python3 has no venv, ensurepip, ssl or zlib module" in ended.stderr
    assert "make PYTHON=" in ended.stderr


def test_as_root_all_missing_packages_are_installed_in_one_run(machine, tmp_path):
    log = tmp_path / "apt.log"
    write(tmp_path / "bin" / "id", "#!/bin/sh\necho 0\n")
    ended = machine("dev", apt_get=f"#!/bin/sh\necho \"$@\" >> '{log}'\n")
    assert ended.returncode == 1  # nothing was really installed
    update, install, *_ = log.read_text().splitlines()
    assert update == "update -qq"
    assert install.endswith("bash git python3 python3-venv")
