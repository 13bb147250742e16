"""Writes the JSON Schemas of the settings files into docs/: .venv/bin/python scripts/settings_schema.py"""

from pathlib import Path

from bradawl.app.settings.schema import KINDS, schema_text
from bradawl.app.settings.table import SETTINGS

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {"user": "config", "project": "project-config", "managed": "managed"}


def main() -> None:
    """Rewrite the files."""
    for kind in KINDS:
        (DOCS / f"{NAMES[kind]}.schema.json").write_text(schema_text(SETTINGS, kind))


main()
