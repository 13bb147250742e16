"""What bash runs around a shell line so that it can say how and where it ended."""

import os

MARK = "BRADAWL_CALL"
"""Variable that marks a call's processes: whoever carries it belongs to the call."""
REPORT_FD = "BRADAWL_REPORT"
"""Variable that names the descriptor the report goes to."""

# The group's redirections keep `set -x` of the script out of its output; builtins, because a script may
# define functions of any name; no joining of PIPESTATUS, because a script may set IFS.
PRELUDE = f"""\
__bradawl_fd=${REPORT_FD}
__bradawl_mark=${MARK}
unset BASH_ENV {REPORT_FD}
trap '{{ __bradawl_code=$? __bradawl_parts=("${{PIPESTATUS[@]}}"); \
builtin printf "\\0%s\\0%s\\0" "$__bradawl_mark" "$__bradawl_code"; \
builtin printf "%s " "${{__bradawl_parts[@]}}"; \
builtin printf "\\0"; builtin pwd -P; }} 2>/dev/null >&"$__bradawl_fd"' EXIT
"""


def parse_report(report: bytes, mark: str, exit_code: int | None) -> tuple[tuple[int, ...], str | None]:
    """Codes of the last pipeline's parts, and the last working directory; nothing if the shell did not say.

    Whatever else programs wrote to the descriptor is passed over.
    """
    fields = report.rpartition(b"\0" + mark.encode() + b"\0")[2].split(b"\0")
    if len(fields) != 3 or exit_code is None or fields[0] != str(exit_code).encode():
        return (), None
    codes = fields[1].split()
    pipe_status = tuple(int(code) for code in codes) if all(code.isdigit() for code in codes) else ()
    cwd = os.fsdecode(fields[2].removesuffix(b"\n")) if fields[2].endswith(b"\n") else ""
    return pipe_status, cwd if cwd.startswith("/") else None
