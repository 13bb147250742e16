"""Whether bubblewrap works on this machine: inside some containers it is there and may not open a namespace."""

import os
import subprocess

BWRAP = "/usr/bin/bwrap"


def _works() -> bool:
    if not os.access(BWRAP, os.X_OK):
        return False
    try:
        tried = [BWRAP, "--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--ro-bind", "/", "/", "/bin/true"]
        return subprocess.run(tried, capture_output=True, timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


HAS_BWRAP = _works()
"""Without it the tests that need it are skipped, and `.ci/run` says so."""
