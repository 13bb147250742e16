"""A workspace with links inside and out, for lines of bash to be judged in."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from bradawl.core.effects import Effects
from bradawl.safety.shell.allow.analyzer import shell_effects
from bradawl.workspace.files import LocalFiles

Judge = Callable[..., Effects]
HOME = "/home/u"


def plant(top: Path) -> Path:
    """A workspace with files and folders; `docs/linked` and `away` lead outside, `near` stays within."""
    ws = Path(os.path.realpath(top)) / "ws"
    for folder in ("src/core", "docs", "build", ".git", "../out"):
        (ws / folder).mkdir(parents=True)
    for name in ("README.md", "NOTES.md", "src/a.py", "src/core/b.py", "../out/secret"):
        (ws / name).write_text("text\n")
    for name, target in {"docs/linked": "../../out/secret", "away": "../out", "near": "src"}.items():
        (ws / name).symlink_to(target)
    return ws


def judge_in(ws: Path) -> Judge:
    """Says the effects of a line in the workspace."""

    def effects(line: str, **more) -> Effects:
        return shell_effects(line, cwd=str(ws), home=HOME, resolve=LocalFiles(HOME).resolve, **more)

    return effects


def within(ws: Path, paths: str) -> set[str]:
    """Space-separated names below the workspace, `.` for itself, absolute ones as they are."""
    return {os.path.normpath(ws / name) for name in paths.split()}


def cases(text: str) -> list[str]:
    """Lines of bash, two or more blanks or a line end between them."""

    return [case for case in re.split(r"  +|\n", text) if case]
