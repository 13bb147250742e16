"""Other users' homes and the system's secrets are not shown to programs, whoever runs them."""

import os
import tempfile
from pathlib import Path

import msgspec
import pytest
from bubblewrap_house import house_with
from landlock_house import House

from bradawl.core.permissions import Grant
from bradawl.sandbox.discovery.other_users import other_users_folders, readable_system_secrets

IS_ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(not IS_ROOT, reason="others' files can be read by root alone")
SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-")


@pytest.fixture(params=["bubblewrap", "landlock"])
def made(request):
    with house_with(request.param) as here:
        yield here


@pytest.fixture
def other():
    """A home folder beside all others, with a file that everybody may read."""
    Path("/home").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bradawl-other-", dir="/home") as place:
        Path(place).chmod(0o755)
        Path(place, "diary").write_text("PRIVATE")
        (Path(place) / "toolchain/bin").mkdir(parents=True)
        program = Path(place) / "toolchain/bin/bradawl-test-tool"
        program.write_text("#!/bin/sh\necho found\n")
        program.chmod(0o755)
        yield Path(place)


def anew(made: House) -> None:
    """As a session that starts now."""
    made.backend.close()
    if hasattr(made, "hold_anew"):
        made.hold_anew()
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
def test_no_program_looks_into_the_home_of_another_user(made, other, read):
    anew(made)
    ended = made.sh(read.format(other))
    assert "PRIVATE" not in ended.out
    assert other.name not in ended.out and "diary" not in ended.out


def test_the_home_of_root_is_another_users_unless_it_is_ones_own(made):
    with tempfile.NamedTemporaryFile("w", dir="/root", prefix="bradawl-test-") as diary:
        diary.write("PRIVATE")
        diary.flush()
        assert "PRIVATE" not in made.sh(f"cat {diary.name}").out
        assert Path(diary.name).name not in made.sh("ls -a /root").out


def test_programs_on_the_path_are_found_in_anothers_home(made, other):
    anew(made)
    path = f"{other}/toolchain/bin:/usr/bin:/bin"
    program = ("/bin/bash", "-c", f"bradawl-test-tool; cat {other}/diary")
    made._variables = lambda env: {"PATH": path, "HOME": str(made.home), **(env or {})}
    assert made.run(program).out == "found\n"


def test_what_the_session_exports_as_path_shows_nothing(made, other):
    anew(made)
    (other / "bin").mkdir()
    ended = made.sh(f"cat {other}/diary; ls {other}", env={"PATH": f"{other}:{other}/bin:/usr/bin:/bin"})
    assert ended.out == ""


def test_a_workspace_in_anothers_home_is_used_as_any(made, other):
    root = other / "project"
    root.mkdir()
    (root / "file").write_text("text")
    made.root = root
    made.layout = msgspec.structs.replace(made.layout, roots=(str(root),))
    anew(made)
    ended = made.run(("/bin/bash", "-c", "cat file; echo new > made; cat ../diary"), grant=Grant(writable=(str(root),)))
    assert ended.out == "text" and (root / "made").read_text() == "new\n"


def test_what_was_allowed_by_name_is_read(made, other):
    anew(made)
    diary = str(other / "diary")
    assert made.sh(f"cat {diary}", grant=Grant(writable=made.layout.roots, uncovered=(diary,))).out == "PRIVATE"


def test_what_lies_in_a_root_or_is_ones_own_is_none_of_others(other):
    assert "/home" in other_users_folders("/root", ())
    assert "/root" not in other_users_folders("/root", ())
    assert "/root" in other_users_folders("/nonexistent", ())
    assert "/home" not in other_users_folders("/root", ("/home",))
    assert "/etc/shadow" not in readable_system_secrets(("/etc",))


def test_ordinary_files_of_the_system_are_read(made):
    ended = made.sh(
        "cat /etc/passwd /etc/hosts >/dev/null && ls /etc | grep -c passwd && id -un && ls /usr/bin | wc -l"
    )
    assert ended.code == 0, ended
