"""Words the result of a finished shell command for the model."""

from collections.abc import Iterator
from itertools import chain

import msgspec

from bradawl.core.messages import Text
from bradawl.core.permissions import Grant
from bradawl.core.ports import ToolOutput
from bradawl.core.workspace import CommandResult
from bradawl.shaping.preview import ends_of
from bradawl.shaping.program_output import clean, shell_code, shorten_lines, signal_name

SHOWN = 16_000
LONGEST_S = 600
KEPT_BYTES = 1_000_000
"""Bytes of each stream in memory; the whole output goes to a file."""
SPILLED_BYTES = 100_000_000
_ROOM_FOR_NOTES = 2_000
_NOTHING_COLLECTED = 5  # pytest's exit code for "no tests were collected"
_FINE = (0, 141)
"""Exit codes of a part of a pipeline that are no failure: `head` and others cause 141 in the part before them."""
_SLOW_S = 1.0
_FLOOD_BYTES = 9_000_000_000
_ENDED_BACKGROUND = (
    "[programs it had left running were ended; what is to go on belongs in a call with run_in_background, without &]"
)

_ENDED_IN_OWN_NETWORK = (
    "[programs it had left running were ended; other commands can't connect to a server "
    "started here or in a job: start server and client in one command. What else is to go on belongs in a call with "
    "run_in_background, without &]"
)


class RunConditions(msgspec.Struct, frozen=True):
    """What the result of a command depends on besides its end."""

    user_is_there: bool = True
    by_domain: bool = False
    """The sandbox decides about each host, through a proxy."""


def body_of(stdout: bytes, stderr: bytes) -> str:
    """Both streams, with stderr marked."""
    out, err = clean(stdout), clean(stderr)
    return "\n".join(part for part in (out, f"[stderr]\n{err}" if err else "") if part)


def output_of(
    command: str,
    result: CommandResult,
    ending: str,
    notes: tuple[str, ...],
    grant: Grant | None = None,
    conditions: RunConditions = RunConditions(),  # noqa: B008 - it is frozen
) -> ToolOutput:
    """The whole result; `ending` describes how the command ended, `grant` is what the command was allowed."""
    body = body_of(result.stdout, result.stderr)
    shown, cut = _shown(body, result)
    remarks = [ending, *cut]
    if result.ended_background:
        remarks.append(_ENDED_IN_OWN_NETWORK if result.sandbox == "bubblewrap" else _ENDED_BACKGROUND)
    codes = (result.exit_code, *result.pipe_status, *chain.from_iterable(result.earlier_failures))
    if "pytest" in command and _NOTHING_COLLECTED in codes:
        remarks.append("no tests were collected")
    if result.sandbox or result.notes:
        from bradawl.tools.shell.sandbox_hints import notes_on  # most results need no notes

        there, by_domain = conditions.user_is_there, conditions.by_domain
        hints = notes_on(result, grant, user_is_there=there, by_domain=by_domain, command=command)
        notes = (*notes, *hints)
    full = None if result.spilled or shown == body else body.encode("utf-8", "backslashreplace")
    return ToolOutput(
        (Text(shown or "(no output)"), Text("\n" + "\n".join((*remarks, *notes)))),
        full,
        is_error=result.exit_code != 0,
        limit=SHOWN,
        full_file=result.spilled,
        has_failed_part=_hides_failure(result),
    )


def _hides_failure(result: CommandResult) -> bool:
    """Whether the line may have succeeded although a command, or a part of a pipeline, failed outside of conditions."""
    # The last part of a pipeline fails in conditions, too; elsewhere it is an earlier failure, or the exit code.
    has_failed_part = any(code not in _FINE for code in result.pipe_status[:-1])
    return has_failed_part or bool(result.earlier_failures)


def _shown(body: str, result: CommandResult) -> tuple[str, tuple[str, ...]]:
    """The shown part of the output, and a note about the rest."""
    dropped = result.dropped_bytes
    if not dropped:
        return shorten_lines(body, SHOWN - _ROOM_FOR_NOTES), ()
    total = len(result.stdout) + len(result.stderr) + dropped
    saved = f"; the file holds the first {SPILLED_BYTES:,}" if result.spilled and total > SPILLED_BYTES else ""
    if len(body) <= SHOWN - _ROOM_FOR_NOTES:  # most of the output was overwritten or is binary
        return body, (f"[{dropped:,} of {total:,} bytes, in the middle of the output, are not shown{saved}]",)
    head, tail = ends_of(body, SHOWN - _ROOM_FOR_NOTES)
    head = head.rstrip("\n")
    first = head.count("\n") + 2
    return (
        f"{head}\n[... cut from line {first:,} on; the end follows ...]\n{tail}",
        (
            f"[the output has {total:,} bytes; shown are its first {len(head):,} and its last {len(tail):,} "
            f"characters{saved}]",
        ),
    )


def ending_of(result: CommandResult, timeout_s: float, asked_s: int) -> str:
    """How the command ended: its exit code, failures that the code does not show, and its duration."""
    code = result.exit_code
    if code is None:
        return _cut_short(result, timeout_s)
    parts = [f"[exit code {shell_code(code)}]"]
    if code < 0:
        parts.append(f"(ended by {signal_name(-code)})")
    codes = result.pipe_status
    # The shell keeps the codes of the last pipeline even if `exit` set a different exit code.
    if len(set(codes)) > 1 and codes[-1] == code:
        parts.append(f"(pipeline: {_joined(codes)})")
    parts += _earlier(result)
    if result.seconds > _SLOW_S:
        parts.append(f"({result.seconds:.1f} s)")
    if asked_s > timeout_s:
        parts.append(f"(timeout {asked_s} was taken as {timeout_s:.0f}, the most there is)")
    return " ".join(parts)


def _earlier(result: CommandResult) -> Iterator[str]:
    """Failures before the end of the line. A single command with a code may be the one that gave the exit code."""
    pipelines = [_joined(codes) for codes in result.earlier_failures if len(codes) > 1]
    if pipelines:
        yield f"(earlier pipeline{'s' * (len(pipelines) > 1)}: {'; '.join(pipelines)})"
    if result.exit_code == 0:
        yield from (f"(a command before it failed: {codes[0]})" for codes in result.earlier_failures if len(codes) == 1)


def _joined(codes: tuple[int, ...]) -> str:
    return " ".join(map(str, codes))


def _cut_short(result: CommandResult, timeout_s: float) -> str:
    if result.dropped_bytes > _FLOOD_BYTES:
        return f"[ended after {result.seconds:.1f} s because it printed without end, {result.dropped_bytes:,} bytes]"
    more = f"pass timeout, at most {LONGEST_S}" if timeout_s < LONGEST_S else "the most there is"
    return (
        f"[timed out after {timeout_s:.0f} s ({more}; run_in_background has no limit); "
        "the command and its children were ended]"
    )
