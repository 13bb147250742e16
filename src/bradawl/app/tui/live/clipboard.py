"""Reads an image from the clipboard, with the program of the desktop that can."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_READERS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
)
_PATIENCE_S: Final = 3.0
_LIMIT_BYTES: Final = 20_000_000
_PNG: Final = b"\x89PNG\r\n\x1a\n"


def image_on_clipboard() -> str:
    """Write the image on the clipboard to a file, and return its path; empty if there is none. May block."""
    readers: list[tuple[str, ...]] = [argv for variable, argv in _READERS if os.environ.get(variable)]
    if sys.platform == "darwin":
        readers.append(("pngpaste", "-"))
    for argv in readers:
        try:
            done = subprocess.run(argv, capture_output=True, timeout=_PATIENCE_S, check=False)  # noqa: S603 - fixed arguments, no shell
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.startswith(_PNG) and len(done.stdout) <= _LIMIT_BYTES:
            return _written(done.stdout)
    return ""


def _written(data: bytes) -> str:
    descriptor, path = tempfile.mkstemp(prefix="clipboard-", suffix=".png")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return str(Path(path))
