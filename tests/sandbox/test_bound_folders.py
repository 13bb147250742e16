"""What is hidden stays hidden at the other paths of a file system that is mounted twice."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bwrap import needs_bwrap

_UNSHARE = ("unshare", "-rm", "--propagation", "private")
_SCRIPT = """
import subprocess, sys
from pathlib import Path
from sandboxed_session import SandboxedSession

place = Path(sys.argv[1])
session = SandboxedSession(place)
session.write("app/.env", "KEY=WORKSPACE")
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)  # /tmp is the session's own
for source, target in (("home", "bound"), ("home/.ssh", "keys"), ("ws", "again"), ("outside", "plain")):
    Path("/mnt", target).mkdir()
    subprocess.run(["mount", "--bind", str(place / source), f"/mnt/{target}"], check=True)
read = "cd /mnt; cat bound/.ssh/id_ed25519 keys/id_ed25519 bound/.config/bradawl/credentials again/app/.env"
print("BARE", session.bare(read))
print("SANDBOX", session.out(f"{read}; cat plain/file; echo x > again/new"))
session.close()
"""


def _can_mount() -> bool:
    program = shutil.which("unshare")
    return (
        program is not None
        and Path("/mnt").is_dir()
        and subprocess.run((*_UNSHARE, "true"), check=False, capture_output=True).returncode == 0
    )


@needs_bwrap
@pytest.mark.skipif(not _can_mount(), reason="mounting in a namespace of its own is not permitted")
def test_keys_are_hidden_at_the_second_path_of_a_bound_folder(tmp_path: Path) -> None:
    paths = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    done = subprocess.run(
        (*_UNSHARE, sys.executable, "-c", _SCRIPT, str(tmp_path)),
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    bare, _, sandboxed = done.stdout.partition("SANDBOX")
    assert bare.count("PRIVATE") == 3 and "WORKSPACE" in bare, done.stderr
    assert "PRIVATE" not in sandboxed and "WORKSPACE" not in sandboxed
    assert "outside" in sandboxed and not (tmp_path / "ws/new").exists()
