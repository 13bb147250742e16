"""Edits a text in the user's editor, which ends when bradawl ends."""

import asyncio
import contextlib
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_EDITORS: Final = ("editor", "nano", "vim", "vi")
"""Where the environment names none."""
_PATIENCE_S: Final = 1.0


async def edit(text: str, environ: Mapping[str, str]) -> str | None:
    """The text as the user edited it; None if no editor could be started, or it failed.

    Cancelling ends the editor.
    """
    with tempfile.TemporaryDirectory(prefix="bradawl-") as folder:
        path = Path(folder, "prompt.md")
        _write(path, text)
        for argv in _commands(environ):
            with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
                code = await _run([*argv, str(path)])
                return _read(path) if code == 0 else None
    return None


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", "replace")


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace").removesuffix("\n")


def _commands(environ: Mapping[str, str]) -> list[list[str]]:
    """The commands to try, one after the other."""
    named = [environ[name] for name in ("VISUAL", "EDITOR") if environ.get(name, "").strip()]
    commands = []
    for each in named:
        with contextlib.suppress(ValueError):  # a quotation mark without its other one
            commands.append(shlex.split(each))
    return [*filter(None, commands), *([each] for each in _EDITORS)]


async def _run(argv: list[str]) -> int:
    process = await asyncio.create_subprocess_exec(*argv)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _PATIENCE_S)
        if process.returncode is None:
            process.kill()
            await process.wait()
