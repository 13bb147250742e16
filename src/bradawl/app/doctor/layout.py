"""The report of `bradawl doctor` as text, for the width that there is."""

from collections.abc import Iterator
from typing import Final

from bradawl.app.doctor.check import Check, Diagnosis
from bradawl.app.rendering import one_line
from bradawl.app.text_layout import cells, pad, wrap
from bradawl.safety.control_characters import clean

_MARKS: Final = {"ok": "ok", "warning": "note", "problem": "PROBLEM"}
_MARK_CELLS: Final = 8
_NAME_CELLS: Final = 17
_BESIDE_FROM: Final = 66
"""Cells of a line from which texts stand beside the names; in a narrower one they stand below."""
_INDENT: Final = "  "


def report_lines(diagnosis: Diagnosis, width: int) -> list[str]:
    """All checks and the verdict. No line is wider than `width`, and no word is broken that fits into a line."""
    lines = [line for check in diagnosis.checks for line in _check_lines(check, width)]
    problems = sum(check.state == "problem" for check in diagnosis.checks)
    verdict = "Everything a run needs is there."
    if problems:
        verdict = f"{problems} problem{'' if problems == 1 else 's'} to solve first."
    return [*lines, "", *wrap(verdict, width)]


def _check_lines(check: Check, width: int) -> Iterator[str]:
    head = f"{_MARKS[check.state]:<{_MARK_CELLS}} "
    text, name = one_line(check.text), one_line(check.name)
    if width >= _BESIDE_FROM and cells(name) <= _NAME_CELLS:
        begin = f"{head}{pad(name, _NAME_CELLS)} "
        below = " " * cells(begin)
        yield from wrap(text, width, begin)
    else:
        below = _INDENT
        yield from wrap(name, width, head)
        yield from wrap(text, width, below)
    for line in clean(check.hint).splitlines():
        command = _INDENT if line.startswith("  ") else ""
        yield from wrap(line, width, below + command, below + command * 2)
