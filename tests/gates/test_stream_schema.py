"""docs/stream-json.schema.json is made from the classes of the lines, and is current."""

import subprocess
import sys

from source_tree import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "stream_schema.py"


def test_the_schema_is_current():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"run `.venv/bin/python {SCRIPT.name}`: {done.stdout}"
