"""Recognises empty placeholders of the sandbox in the output of a command that lists a folder."""

import os
import re
from pathlib import Path
from typing import Final

from bradawl.core.workspace import CommandResult

_LOOKED_AT: Final = 20_000
_FEWEST: Final = 3
"""One or two of the names may be the subject of the command."""
_NAMES: Final = (
    r"(?m)(?:^|[\s/])(\.(?:bradawl|claude|codex|cursor|envrc|exrc|gemini|idea|mcp\.json|nvim\.lua|vscode|zed))"
    r"/?(?=\s|$)"
)
"""Names that the sandbox keeps commands from creating, by an empty file or folder in their place."""


def note_on(result: CommandResult, folder: str) -> tuple[str, ...]:
    """A note if the output names placeholders in the project's folder."""
    if result.sandbox != "bubblewrap":
        return ()
    names = dict.fromkeys(re.findall(_NAMES, result.stdout[:_LOOKED_AT].decode("utf-8", "replace")))
    placeholders = [name for name in names if _is_empty(Path(folder, name))]
    if len(placeholders) < _FEWEST:
        return ()
    return (f"[{' '.join(placeholders)} are empty placeholders of the sandbox, and no files of the project]",)


def _is_empty(path: Path) -> bool:
    """Whether the path is missing, as after the command, or empty, as while other commands run."""
    try:
        if path.is_dir():
            return not os.listdir(path)  # noqa: PTH208 - shorter than closing an iterator
        return not path.exists() or not path.stat().st_size
    except OSError:
        return False
