"""Writes the list of slash commands into docs/commands.md: .venv/bin/python scripts/commands_page.py"""

import re
from pathlib import Path

from bradawl.app.commands.page import commands_page

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"


def main() -> None:
    """Replace the text between the two markers."""
    text = PAGE.read_text("utf-8")
    pattern = r"(<!-- begin commands -->\n).*?(?=<!-- end commands -->)"
    PAGE.write_text(re.sub(pattern, lambda found: found[1] + commands_page(), text, flags=re.DOTALL), "utf-8")


main()
