"""docs/architecture.md agrees with the code."""

import re
import subprocess
import sys

from source_tree import PACKAGE, REPOSITORY

PAGE = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")


def test_tables_and_picture_are_up_to_date():
    script = REPOSITORY / "scripts" / "architecture.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"run `make architecture`:\n{done.stdout}{done.stderr}"


def test_every_path_on_the_page_exists():
    names = re.findall(r"`((?:app|agent|core|folds|providers|safety|sandbox|tests|tools|workspace)/[\w/.]*)`", PAGE)
    missing = [name for name in names if not ((PACKAGE / name).exists() or (REPOSITORY / name).exists())]
    assert len(names) > 40
    assert missing == [], f"docs/architecture.md names what does not exist; mend the page: {missing}"
