"""What is hidden stays hidden at its other paths: of a file system that is mounted twice, and behind a link.

The tests mount in a namespace of their own, because what lies in `/tmp` is hidden anyway.
"""

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

_LINKED = """
import subprocess
from pathlib import Path
from sandboxed_session import SandboxedSession

subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
session = SandboxedSession(Path("/mnt/place"))
keys = session.home / "dotfiles/aws/credentials"
keys.parent.mkdir(parents=True)
keys.write_text("PRIVATE")
(session.home / "dotfiles/plain").write_text("PLAIN")
(session.home / ".aws").mkdir()
(session.home / ".aws/credentials").symlink_to("../dotfiles/aws/credentials")
read = f"cd {session.home}; cat dotfiles/plain dotfiles/aws/credentials"
print("BARE", session.bare(read))
print("SANDBOX", session.out(read))
session.close()
"""


def _can_mount() -> bool:
    program = shutil.which("unshare")
    return (
        program is not None
        and Path("/mnt").is_dir()
        and subprocess.run((*_UNSHARE, "true"), check=False, capture_output=True).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not _can_mount(), reason="mounting in a namespace of its own is not permitted")


def _outputs(script: str, *words: str) -> tuple[str, str]:
    """What a script prints without and in the sandbox."""
    paths = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    done = subprocess.run(
        (*_UNSHARE, sys.executable, "-c", script, *words),
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    bare, _, sandboxed = done.stdout.partition("SANDBOX")
    assert done.returncode == 0, done.stderr
    return bare, sandboxed


@needs_bwrap
@needs_mounts
def test_keys_are_hidden_at_the_second_path_of_a_bound_folder(tmp_path: Path) -> None:
    bare, sandboxed = _outputs(_SCRIPT, str(tmp_path))
    assert bare.count("PRIVATE") == 3 and "WORKSPACE" in bare
    assert "PRIVATE" not in sandboxed and "WORKSPACE" not in sandboxed
    assert "outside" in sandboxed and not (tmp_path / "ws/new").exists()


@needs_bwrap
@needs_mounts
def test_a_file_to_which_a_link_in_a_folder_of_keys_leads_is_hidden() -> None:
    bare, sandboxed = _outputs(_LINKED)
    assert "PLAINPRIVATE" in bare
    assert "PLAIN" in sandboxed and "PRIVATE" not in sandboxed
