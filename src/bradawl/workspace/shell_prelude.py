"""What bash reports about a shell line: exit codes, working directory and exports. `prelude.bash` writes the report."""

import os
import re
from typing import Final

import msgspec

from bradawl.core.workspace import Command
from bradawl.workspace.exported_variables import export_changes

MARK: Final = "BRADAWL_CALL"
"""Variable that marks the processes of a call by its last word.

Earlier words are the marks of calls inside which the program itself runs.
"""
REPORT_FD: Final = "BRADAWL_REPORT"
"""Variable with the number of the descriptor for the report."""
TRAPS: Final = "BRADAWL_TRAPS"
"""Variable with the traps that the prelude sets besides that at the end: `pipelines`, `failures`; see there."""
KEY_LENGTH: Final = 32
HELD_BACK: Final = "BRADAWL_BASH_ENV"
"""Variable with the value of BASH_ENV for the line; bash must not read that file by itself."""

PRELUDE: Final = os.path.realpath(f"{__file__}/../prelude.bash")
"""Path of the file that bash reads before a shell line."""
_PIPE: Final = r"(?<![|>])\|(?!\|)&?\s*"
_NEXT_COMMAND: Final = r";|(?<!\\)\n|\|\||(?<!>)&(?![>\d])"
_OWN_TRAPS: Final = r"\btrap\s|\bextdebug\b"
_TRACE: Final = r"\b(?:set|shopt)\b[^;&|\n]{0,80}?\s(?:[-+]\w*[vxT]\w*|xtrace|verbose|functrace)\b"
"""Shows the commands of a DEBUG trap, or makes functions and subshells run it."""


class Report(msgspec.Struct, frozen=True):
    """What the shell reported about its end; empty where it did not."""

    pipe_status: tuple[int, ...] = ()
    cwd: str | None = None
    exports: dict[str, str | None] = {}
    earlier_failures: tuple[tuple[int, ...], ...] = ()
    """First the codes of at most two different pipelines before the last, whose last part succeeded and another failed;
    141, from SIGPIPE, is no failure. Then the code of the first command that failed outside of conditions, if
    `Command.reports_failed_commands`. What happens in subshells, functions and other programs is not known.
    """


def traps_for(command: Command) -> str:
    """The value of `TRAPS` for a shell line. A line with traps of its own gets none.

    The trap for pipelines takes 4 us for each simple command. A line gets it if something follows a `|`, quoted or not.
    """
    line = command.argv[0]
    if re.search(_OWN_TRAPS, line):
        return ""
    pipe = re.search(_PIPE, line)
    has_earlier = pipe is not None and re.compile(_NEXT_COMMAND).search(line.rstrip(), pipe.end())
    pipelines = "pipelines" if has_earlier and not re.search(_TRACE, line) else ""
    return f"{pipelines} failures".lstrip() if command.reports_failed_commands else pipelines


def parse_report(report: bytes, key: str, exit_code: int | None) -> Report:
    """Exit codes, the last working directory, and changes of the exported variables.

    Only text between two occurrences of `key`, which only the shell knows, counts.
    """
    pieces = report.split(b"\0" + key.encode() + b"\0")
    fields = pieces[-2].split(b"\0") if len(pieces) >= 4 else []
    if len(fields) != 6 or exit_code is None or fields[0] != str(exit_code).encode():
        return Report()
    pipelines = [codes for each in fields[1].split(b",") if len(codes := _codes_in(each)) > 1]
    failure = _codes_in(fields[2])[:1]
    cwd = os.fsdecode(fields[4].removesuffix(b"\n")) if fields[4].endswith(b"\n") else ""
    before, after = pieces[1].partition(b"\0")[0], fields[5]
    exports = export_changes(before, after) if before and after else {}
    return Report(
        _codes_in(fields[3]), cwd if cwd.startswith("/") else None, exports, (*pipelines[:2], *filter(None, (failure,)))
    )


def _codes_in(field: bytes) -> tuple[int, ...]:
    """Exit codes separated by spaces; empty if it contains anything else."""
    codes = field.split()
    return tuple(map(int, codes)) if all(code.isdigit() for code in codes) else ()
