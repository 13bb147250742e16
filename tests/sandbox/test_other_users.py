"""Homes of other users and secrets of the system are hidden from programs of any user."""

import os
import tempfile
from pathlib import Path

import msgspec
import pytest
from bubblewrap_programs import programs_with
from landlock_programs import SandboxedPrograms

from bradawl.core.permissions import Grant
from bradawl.sandbox.discovery.other_users import other_users_folders, readable_system_secrets

IS_ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(not IS_ROOT, reason="others' files can be read by root alone")
SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-")


@pytest.fixture(params=["bubblewrap", "landlock"])
def made(request):
    with programs_with(request.param) as here:
        yield here


@pytest.fixture
def other():
    """The home folder of another user, with a world-readable file."""
    Path("/home").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bradawl-other-", dir="/home") as place:
        Path(place).chmod(0o755)
        Path(place, "diary").write_text("PRIVATE")
        (Path(place) / "toolchain/bin").mkdir(parents=True)
        program = Path(place) / "toolchain/bin/bradawl-test-tool"
        program.write_text("#!/bin/sh\necho found\n")
        program.chmod(0o755)
        yield Path(place)


def restart_backend(made: SandboxedPrograms) -> None:
    """Use a new backend, as a new session does."""
    made.backend.close()
    if hasattr(made, "restart_backend"):
        made.restart_backend()
    else:
        from bradawl.sandbox.landlock import LandlockBackend

        made.backend = LandlockBackend(made.layout)


@pytest.mark.parametrize(
    "read", ["cat {0}", "cp {0} copy; cat copy", "ln {0} hard; cat hard", "cat /proc/self/root{0}"]
)
@pytest.mark.parametrize("path", [path for path in SECRETS if Path(path).exists()])
def test_no_program_reads_the_passwords_of_the_system(made, path, read):
    first = Path(path).read_text().partition(":")[0] + ":"
    assert first not in made.sh(read.format(path)).out


@pytest.mark.parametrize(
    "read",
    [
        "cat {0}/diary",
        "ls -R {0}",
        "ls /home",
        "cat {0}/../*/diary",
        "cat /proc/self/root{0}/diary",
        "tar cf - {0}",
        "cd {0} && cat diary",
    ],
)
def test_no_program_can_read_the_home_of_another_user(made, other, read):
    restart_backend(made)
    ended = made.sh(read.format(other))
    assert "PRIVATE" not in ended.out
    assert other.name not in ended.out and "diary" not in ended.out


def test_the_home_of_root_is_hidden_from_other_users(made):
    with tempfile.NamedTemporaryFile("w", dir="/root", prefix="bradawl-test-") as diary:
        diary.write("PRIVATE")
        diary.flush()
        assert "PRIVATE" not in made.sh(f"cat {diary.name}").out
        assert Path(diary.name).name not in made.sh("ls -a /root").out


def test_programs_on_path_in_the_home_of_another_user_can_be_started(made, other):
    restart_backend(made)
    path = f"{other}/toolchain/bin:/usr/bin:/bin"
    program = ("/bin/bash", "-c", f"bradawl-test-tool; cat {other}/diary")
    made._variables = lambda env: {"PATH": path, "HOME": str(made.home), **(env or {})}
    assert made.run(program).out == "found\n"


def test_a_path_exported_by_the_session_makes_nothing_visible(made, other):
    restart_backend(made)
    (other / "bin").mkdir()
    ended = made.sh(f"cat {other}/diary; ls {other}", env={"PATH": f"{other}:{other}/bin:/usr/bin:/bin"})
    assert ended.out == ""


def test_a_workspace_in_the_home_of_another_user_is_usable(made, other):
    root = other / "project"
    root.mkdir()
    (root / "file").write_text("text")
    made.root = root
    made.layout = msgspec.structs.replace(made.layout, roots=(str(root),))
    restart_backend(made)
    ended = made.run(("/bin/bash", "-c", "cat file; echo new > made; cat ../diary"), grant=Grant(writable=(str(root),)))
    assert ended.out == "text" and (root / "made").read_text() == "new\n"


def test_files_uncovered_by_a_grant_can_be_read(made, other):
    restart_backend(made)
    diary = str(other / "diary")
    assert made.sh(f"cat {diary}", grant=Grant(writable=made.layout.roots, uncovered=(diary,))).out == "PRIVATE"


def test_workspace_roots_and_the_own_home_are_not_other_users_folders(other):
    assert "/home" in other_users_folders("/root", ())
    assert "/root" not in other_users_folders("/root", ())
    assert "/root" in other_users_folders("/nonexistent", ())
    assert "/home" not in other_users_folders("/root", ("/home",))
    assert "/etc/shadow" not in readable_system_secrets(("/etc",))


def test_ordinary_system_files_can_be_read(made):
    ended = made.sh(
        "cat /etc/passwd /etc/hosts >/dev/null && ls /etc | grep -c passwd && id -un && ls /usr/bin | wc -l"
    )
    assert ended.code == 0, ended
