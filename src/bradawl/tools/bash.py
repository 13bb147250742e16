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
_FEW_STRANGE = 8
_ENDED_BACKGROUND = "[programs it had left running were ended; start, use and stop a server within one call]"
_NOTHING_COLLECTED = 5  # pytest's exit code for it
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class BashParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run bash. cd stays for later calls, variables don't. No input, no terminal. What it leaves running is ended."""

    command: Annotated[str, msgspec.Meta(description="Any bash script.")]
    timeout: Annotated[int, msgspec.Meta(description="Seconds, at most 600.")] = 120


class Bash:
    """The tool `bash`."""

    name: str = "bash"
    params: type[BashParams] = BashParams

    def effects(self, params: BashParams, context: CallContext) -> Effects:
        """Not known. Raises `ToolError` for a timeout that is no time or no command."""
        if params.timeout < 1:
            raise ToolError(f"timeout is in seconds, from 1 to {_LONGEST_TIMEOUT_S}; it was {params.timeout}")
        if not params.command.strip():
            raise ToolError("command is empty; give a line of bash")
        return UNKNOWN

    async def run(self, params: BashParams, context: CallContext) -> ToolOutput:
        """Run it to its end or to the timeout; the result always says which, and the exit code."""
        self.effects(params, context)
        result, cwd = await _run(params, context)
        stdout, stderr = _clean(result.stdout), _clean(result.stderr)
        body = "\n".join(part for part in (stdout, f"[stderr]\n{stderr}" if stderr else "") if part)
        is_cut = len(body) > _SHOWN or result.dropped_bytes > 0
        shown = _cut_middle(body, result.dropped_bytes) if is_cut else body
        notes = [shown or "(no output)", _ending(params, result)]
        if result.ended_background:
            notes.append(_ENDED_BACKGROUND)
        if "pytest" in params.command and _NOTHING_COLLECTED in (result.exit_code, *result.pipe_status):
            notes.append("no tests were collected")
        if cwd != context.cwd:
            notes.append(f"[working directory {context.cwd} is gone; this ran in {cwd}]")
        if result.cwd and result.cwd != cwd:
            context.change(Cwd(result.cwd))
            notes.append(f"[working directory is now {result.cwd}]")
        full = _full(result) if is_cut else None
        return ToolOutput((Text("\n".join(notes)),), full, is_error=result.exit_code != 0)


async def _run(params: BashParams, context: CallContext) -> tuple[CommandResult, str]:
    """How it ended, and where it ran: in the nearest folder that is left when the working directory is gone."""
    timeout_s = min(params.timeout, _LONGEST_TIMEOUT_S)
    command = Command((params.command,), context.cwd, is_shell=True, timeout_s=timeout_s)
    try:
        return await context.processes.run(command, context.grant, _progress(context)), context.cwd
    except ToolError:
        cwd = await _nearest_folder(context)
        if cwd == context.cwd:
            raise
    context.change(Cwd(cwd))
    command = msgspec.structs.replace(command, cwd=cwd)
    return await context.processes.run(command, context.grant, _progress(context)), cwd


async def _nearest_folder(context: CallContext) -> str:
    folder = context.cwd
    while folder != "/" and not await _is_folder(folder, context):
        folder = folder.rpartition("/")[0] or "/"
    return folder


async def _is_folder(path: str, context: CallContext) -> bool:
    try:
        entries, _ = await context.files.list(path, 0)
    except ToolError:
        return False
    return not any(entry.path == path for entry in entries)


def _progress(context: CallContext) -> Callable[[bytes], None]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(data: bytes) -> None:
        # Of a flood only the end of each piece: nobody reads faster, and decoding it all costs.
        if text := decoder.decode(data[-_PROGRESS_PIECE:]):
            context.progress(text)

    return show


def _clean(data: bytes) -> str:
    """Output as it would stand on a screen at the end, without colours and trailing blank lines; no binary data."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))
    shown, controls = _CONTROLS.subn("\ufffd", text)
    if _is_binary(data, controls, shown.count("\ufffd") - controls):
        return f"[binary output, {len(data):,} bytes]"
    return shown.rstrip("\n")


def _is_binary(data: bytes, controls: int, undecodable: int) -> bool:
    """Few such bytes may stand in any text, and lists whose names end in NUL have a control in every line."""
    undecodable -= data.count(b"\xef\xbf\xbd")
    strange = undecodable + controls
    return strange > _FEW_STRANGE and (undecodable * 10 > len(data) or strange * 3 > len(data))


def _last_state(line: str) -> str:
    """What a line that was rewritten by carriage returns shows in the end."""
    return line.rstrip("\r").rpartition("\r")[2]


def _ending(params: BashParams, result: CommandResult) -> str:
    code = result.exit_code
    if code is None:
        timeout_s = min(params.timeout, _LONGEST_TIMEOUT_S)
        more = f"pass timeout, at most {_LONGEST_TIMEOUT_S}" if timeout_s < _LONGEST_TIMEOUT_S else "the most there is"
        return f"[timed out after {timeout_s} s ({more}); the command and its children were ended]"
    parts = [f"[exit code {code if code >= 0 else 128 - code}]"]
    if code < 0:
        parts.append(f"(ended by {_signal_name(-code)})")
    codes = result.pipe_status
    # The shell keeps the codes of the last pipeline even when `exit` gave the line another one.
    if len(set(codes)) > 1 and codes[-1] == code:
        parts.append(f"(pipeline: {' '.join(map(str, codes))})")
    if result.seconds > 1:
        parts.append(f"({result.seconds:.1f} s)")
    if params.timeout > _LONGEST_TIMEOUT_S:
        parts.append(f"(timeout {params.timeout} was taken as {_LONGEST_TIMEOUT_S}, the most there is)")
    return " ".join(parts)


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cut_middle(body: str, dropped_bytes: int) -> str:
    """Its beginning and its end, at line breaks where there are any, and what is missing between them."""
    if len(body) <= _SHOWN:  # much was printed over itself, or is binary
        return f"{body}\n[{dropped_bytes:,} bytes in the middle of the output were not kept]"
    half = _SHOWN // 2
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
