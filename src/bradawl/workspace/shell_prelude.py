"""The bash code that runs before a shell line and reports its exit codes, working directory and exports."""

import os
from typing import Final

import msgspec

from bradawl.core.workspace import PROCESS_LIMIT
from bradawl.workspace.exported_variables import export_changes

MARK: Final = "BRADAWL_CALL"
"""Variable that marks the processes of a call by its last word.

Earlier words are the marks of calls inside which the program itself runs.
"""
REPORT_FD: Final = "BRADAWL_REPORT"
"""Variable with the number of the descriptor for the report."""
KEY_LENGTH: Final = 32
_SPARE_FD = 199
HELD_BACK: Final = "BRADAWL_BASH_ENV"
"""Variable with the value of BASH_ENV for the line; bash must not read that file by itself."""

# bash passes an inherited descriptor to all programs it starts. While a group has that number closed, bash keeps a copy
# with close-on-exec, as descriptor 10 or above; a copy of that copy has the flag, too. The key comes over the
# descriptor because environment and arguments of a process can be read in /proc. The group's redirections keep the
# script's `set -x` out of the report. Builtins are used because a script may define functions of any name, quoted
# because of aliases. PIPESTATUS is not joined because a script may set IFS. `local` succeeds only if a function has
# called `exit`: its local variables then hide the exported ones, so exports can't be reported.
PRELUDE: Final = f"""\
__bradawl_fd=${REPORT_FD}
if [[ -v {HELD_BACK} ]]; then export BASH_ENV=${HELD_BACK}; else unset BASH_ENV; fi
if [[ ${PROCESS_LIMIT} ]]; then ulimit -u "${PROCESS_LIMIT}" 2>/dev/null; fi
unset {REPORT_FD} {HELD_BACK} {PROCESS_LIMIT}
for __bradawl_kept in 10 11 12; do
if eval "{{ exec {_SPARE_FD}>&$__bradawl_kept; }} $__bradawl_fd>&- 2>/dev/null; \
read -r -N {KEY_LENGTH} -u {_SPARE_FD} __bradawl_key 2>/dev/null && exec $__bradawl_fd>&{_SPARE_FD}"; then break; fi
done
exec {_SPARE_FD}>&-
[[ $__bradawl_key ]] || read -r -N {KEY_LENGTH} -u "$__bradawl_fd" __bradawl_key
unset __bradawl_kept
{{ printf "\\0%s\\0" "$__bradawl_key"; export -p; printf "\\0"; }} >&"$__bradawl_fd"
trap '{{ __bradawl_code=$? __bradawl_parts=("${{PIPESTATUS[@]}}"); \
\\builtin printf "\\0%s\\0%s\\0" "$__bradawl_key" "$__bradawl_code"; \
\\builtin printf "%s " "${{__bradawl_parts[@]}}"; \
\\builtin printf "\\0"; \\builtin pwd -P; \\builtin printf "\\0"; \
\\builtin local __bradawl_inside || \\builtin export -p; \
\\builtin printf "\\0%s\\0" "$__bradawl_key"; }} 2>/dev/null >&"$__bradawl_fd"' EXIT
"""


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
