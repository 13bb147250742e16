"""Writes the table of settings into README.md: .venv/bin/python scripts/readme_table.py"""

import re
from pathlib import Path

from bradawl.app.settings.readme_table import readme_table
from bradawl.app.settings.table import SETTINGS

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    """Replace the text between the two markers."""
    text = README.read_text()
    table = readme_table(SETTINGS)
    pattern = r"(<!-- settings: .*? -->\n)(?:\|.*\n)*(?=<!-- end of settings -->)"
    README.write_text(re.sub(pattern, lambda found: found[1] + table, text))


main()
