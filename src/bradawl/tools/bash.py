"""Runs a line of bash."""

import codecs
import re
from collections.abc import Callable
from typing import Annotated

import msgspec

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import Cwd
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, Command, CommandResult, ToolOutput

_LONGEST_TIMEOUT_S = 600
_SHOWN = 30_000
_PROGRESS_PIECE = 2_000
_NOTHING_COLLECTED = 5  # pytest's exit code for it
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class BashParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run bash; cd stays for later calls. No input, no terminal. Background programs end with the call."""

    command: Annotated[str, msgspec.Meta(description="Any bash script.")]
    timeout: Annotated[int, msgspec.Meta(description="Seconds, at most 600.")] = 120


class Bash:
    """The tool `bash`."""

    name: str = "bash"
    params: type[BashParams] = BashParams

    def effects(self, params: BashParams, context: CallContext) -> Effects:
        """Not known. Raises `ToolError` for a timeout out of range or no command."""
        if not 1 <= params.timeout <= _LONGEST_TIMEOUT_S:
            raise ToolError(f"timeout is in seconds, from 1 to {_LONGEST_TIMEOUT_S}; it was {params.timeout}")
        if not params.command.strip():
            raise ToolError("command is empty; give a line of bash")
        return UNKNOWN

    async def run(self, params: BashParams, context: CallContext) -> ToolOutput:
        """Run it to its end or to the timeout; the result always says which, and the exit code."""
        self.effects(params, context)
        command = Command((params.command,), context.cwd, is_shell=True, timeout_s=params.timeout)
        result = await context.processes.run(command, context.grant, _progress(context))
        stdout, stderr = _clean(result.stdout), _clean(result.stderr)
        body = "\n".join(part for part in (stdout, f"[stderr]\n{stderr}" if stderr else "") if part)
        is_cut = len(body) > _SHOWN or result.dropped_bytes > 0
        shown = _cut_middle(body, result.dropped_bytes) if is_cut else body
        notes = [shown or "(no output)", _ending(params, result)]
        if "pytest" in params.command and _NOTHING_COLLECTED in (result.exit_code, *result.pipe_status):
            notes.append("no tests were collected")
        if result.cwd and result.cwd != context.cwd:
            context.change(Cwd(result.cwd))
            notes.append(f"[working directory is now {result.cwd}]")
        full = _full(result) if is_cut else None
        return ToolOutput((Text("\n".join(notes)),), full, is_error=result.exit_code != 0)


def _progress(context: CallContext) -> Callable[[bytes], None]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(data: bytes) -> None:
        # Of a flood only the end of each piece: nobody reads faster, and decoding it all costs.
        if text := decoder.decode(data[-_PROGRESS_PIECE:]):
            context.progress(text)

    return show


def _clean(data: bytes) -> str:
    """Output as it would stand on a screen at the end, without colours and trailing blank lines."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))
    return _CONTROLS.sub("\ufffd", text).rstrip("\n")


def _last_state(line: str) -> str:
    """What a line that was rewritten by carriage returns shows in the end."""
    return line.rstrip("\r").rpartition("\r")[2]


def _ending(params: BashParams, result: CommandResult) -> str:
    code = result.exit_code
    if code is None:
        return f"[timed out after {params.timeout} s; the command and its children were ended]"
    parts = [f"[exit code {code if code >= 0 else 128 - code}]"]
    if code < 0:
        parts.append(f"(ended by {_signal_name(-code)})")
    codes = result.pipe_status
    # The shell keeps the codes of the last pipeline even when `exit` gave the line another one.
    if len(set(codes)) > 1 and codes[-1] == code:
        parts.append(f"(pipeline: {' '.join(map(str, codes))})")
    if result.seconds > 1:
        parts.append(f"({result.seconds:.1f} s)")
    return " ".join(parts)


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cut_middle(body: str, dropped_bytes: int) -> str:
    """Its beginning and its end, at line breaks where there are any, and what is missing between them."""
    half = min(_SHOWN, len(body)) // 2
    head, tail = body[:half], body[len(body) - half :]
    if "\n" in head[half // 2 :]:
        head = head[: head.rindex("\n") + 1]
    if "\n" in tail[: half // 2]:
        tail = tail[tail.index("\n") + 1 :]
    return f"{head.rstrip(chr(10))}\n[... {_missing(body, head, tail, dropped_bytes)} cut ...]\n{tail}"


def _missing(body: str, head: str, tail: str, dropped_bytes: int) -> str:
    total = body.count("\n") + 1
    first, last = head.count("\n") + 1, total - tail.count("\n") - 1
    count = f"{'at least ' if dropped_bytes else ''}{total}"
    is_whole = head.endswith("\n") and body[: len(body) - len(tail)].endswith("\n")
    if is_whole and first <= last:
        text = f"lines {first}-{last} of {count}"
    else:
        text = (
            f"characters {len(head) + 1}-{len(body) - len(tail)} of {len(body)}, lines {first}-{last + 1} of {count},"
        )
    return f"{text} and {dropped_bytes:,} bytes that were not kept" if dropped_bytes else text


def _full(result: CommandResult) -> bytes:
    pieces = [result.stdout]
    if result.stderr:
        pieces += [b"\n[stderr]\n", result.stderr]
    if result.dropped_bytes:
        pieces.append(f"\n[{result.dropped_bytes} bytes in the middle of the output were not kept]\n".encode())
    return b"".join(pieces)
