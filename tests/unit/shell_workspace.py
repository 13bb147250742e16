"""A workspace with links inside and out, the effects of lines, the scan of lines, and tables of lines."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from bradawl.core.effects import Effects
from bradawl.safety.shell.allow.analyzer import shell_effects
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.scanner import ScanResult, scan
from bradawl.workspace.files import LocalFiles

Judge = Callable[..., Effects]
HOME, WS = "/home/u", "/ws"
PROTECTED = ProtectedTargets(HOME, (WS,), LocalFiles(HOME).resolve)


def create_workspace(top: Path) -> Path:
    """Creates a workspace with files and folders; `docs/linked` and `away` are links to outside, `near` to inside."""
    ws = Path(os.path.realpath(top)) / "ws"
    for folder in ("src/core", "docs", "build", ".git", "../out"):
        (ws / folder).mkdir(parents=True)
    for name in ("README.md", "NOTES.md", "src/a.py", "src/core/b.py", "../out/secret"):
        (ws / name).write_text("text\n")
    for name, target in {"docs/linked": "../../out/secret", "away": "../out", "near": "src"}.items():
        (ws / name).symlink_to(target)
    return ws


def judge_in(ws: Path) -> Judge:
    """Returns a function that determines the effects of a line in the workspace."""

    def effects(line: str, **more) -> Effects:
        return shell_effects(line, cwd=str(ws), home=HOME, resolve=LocalFiles(HOME).resolve, **more)

    return effects


def scanned(line: str) -> ScanResult:
    """What the scan for forbidden commands finds in a line that runs in the workspace `/ws`, which need not exist."""
    return scan(line, cwd=WS, protected=PROTECTED)


def within(ws: Path, paths: str) -> set[str]:
    """Absolute paths from names separated by blanks: names below the workspace, `.` for itself, absolute ones
    unchanged.
    """
    return {os.path.normpath(ws / name) for name in paths.split()}


def cases(text: str) -> list[str]:
    """Splits a text into lines of bash, at two or more blanks or a newline."""

    return [case for case in re.split(r"  +|\n", text) if case]


def lines(text: str) -> list[str]:
    """Splits a text into lines without the blanks around each."""
    return [line.strip() for line in text.strip().split("\n")]
