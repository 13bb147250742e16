"""What bash reports about a shell line: exit codes, working directory and exports. `prelude.bash` writes the report."""

import os
from typing import Final

import msgspec

from bradawl.workspace.exported_variables import export_changes

MARK: Final = "BRADAWL_CALL"
"""Variable that marks the processes of a call by its last word.

Earlier words are the marks of calls inside which the program itself runs.
"""
REPORT_FD: Final = "BRADAWL_REPORT"
"""Variable with the number of the descriptor for the report."""
KEY_LENGTH: Final = 32
HELD_BACK: Final = "BRADAWL_BASH_ENV"
"""Variable with the value of BASH_ENV for the line; bash must not read that file by itself."""

PRELUDE: Final = os.path.realpath(f"{__file__}/../prelude.bash")
"""Path of the file that bash reads before a shell line."""


class Report(msgspec.Struct, frozen=True):
    """What the shell reported about its end; empty where it did not."""

    pipe_status: tuple[int, ...] = ()
    cwd: str | None = None
    exports: dict[str, str | None] = {}


def parse_report(report: bytes, key: str, exit_code: int | None) -> Report:
    """Exit codes of the last pipeline, the last working directory, and changes of the exported variables.

    Only text between two occurrences of `key`, which only the shell knows, counts.
    """
    pieces = report.split(b"\0" + key.encode() + b"\0")
    fields = pieces[-2].split(b"\0") if len(pieces) >= 4 else []
    if len(fields) != 4 or exit_code is None or fields[0] != str(exit_code).encode():
        return Report()
    codes = fields[1].split()
    pipe_status = tuple(int(code) for code in codes) if all(code.isdigit() for code in codes) else ()
    cwd = os.fsdecode(fields[2].removesuffix(b"\n")) if fields[2].endswith(b"\n") else ""
    before, after = pieces[1].partition(b"\0")[0], fields[3]
    exports = export_changes(before, after) if before and after else {}
    return Report(pipe_status, cwd if cwd.startswith("/") else None, exports)
