"""What bash runs around a shell line so that it can say how and where it ended."""

import os
from typing import Final

import msgspec

from bradawl.core.workspace import PROCESS_LIMIT
from bradawl.workspace.exported_variables import changes

MARK: Final = "BRADAWL_CALL"
"""Variable that marks a call's processes: whoever carries its last word belongs to the call.

The words before it are those of the calls that the program itself runs in."""
REPORT_FD: Final = "BRADAWL_REPORT"
"""Variable that names the descriptor the report goes to."""
KEY_LENGTH: Final = 32
_SPARE_FD = 199
HELD_BACK: Final = "BRADAWL_BASH_ENV"
"""Variable with the value that BASH_ENV is to have in the line; bash must not read that file by itself."""

# bash passes a descriptor that it was given to all programs it starts. While a group has that number closed, bash
# holds a copy with the flag close-on-exec, as descriptor 10 or above; a copy of that copy has the flag, too. The key
# comes over the descriptor because the environment and the arguments of a process can be read in /proc.
# The group's redirections keep `set -x` of the script out of its output; builtins, because a script may define
# functions of any name, quoted, because of aliases; no joining of PIPESTATUS, because a script may set IFS. `local`
# only succeeds where a function has called `exit`: its own variables still hide those that outlive it, so that exports
# can't be told there.
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
    """What a shell line has said about its end; empty where it did not."""

    pipe_status: tuple[int, ...] = ()
    cwd: str | None = None
    exports: dict[str, str | None] = {}


def parse_report(report: bytes, key: str, exit_code: int | None) -> Report:
    """Codes of the last pipeline's parts, the last working directory, and what became of the exported variables.

    Only what stands between `key`, which no program but the shell knows, counts.
    """
    pieces = report.split(b"\0" + key.encode() + b"\0")
    fields = pieces[-2].split(b"\0") if len(pieces) >= 4 else []
    if len(fields) != 4 or exit_code is None or fields[0] != str(exit_code).encode():
        return Report()
    codes = fields[1].split()
    pipe_status = tuple(int(code) for code in codes) if all(code.isdigit() for code in codes) else ()
    cwd = os.fsdecode(fields[2].removesuffix(b"\n")) if fields[2].endswith(b"\n") else ""
    before, after = pieces[1].partition(b"\0")[0], fields[3]
    exports = changes(before, after) if before and after else {}
    return Report(pipe_status, cwd if cwd.startswith("/") else None, exports)
