"""Reads requested lines of files too large to load, with the program `part_of_file.py`."""

import sys
from pathlib import Path

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command
from bradawl.tools.reading.decoding import encoding_of
from bradawl.tools.reading.paging import LONGEST_LINE, Page, Span, fitting, range_head, rest_of_line, text_page

_PROGRAM = str(Path(__file__).with_name("part_of_file.py"))
_TIMEOUT_S = 60.0


class _Answer(msgspec.Struct):
    head: str
    encoding: str
    lines: list[tuple[str, bool]]
    has_more: bool
    skipped: int


async def long_page(real: str, size: int, span: Span, context: CallContext) -> Page:
    """The requested lines; their total number stays unknown. Raises `ToolError`."""
    numbers = map(str, (span.first, span.limit, span.most, LONGEST_LINE))
    argv = (sys.executable, "-I", "-S", "-B", _PROGRAM, real, *numbers)
    most = 8 * span.most + 1_000_000
    command = Command(argv, "/", timeout_s=_TIMEOUT_S, output_limit_bytes=most, is_helper=True, unmoved=(real,))
    result = await context.processes.run(command, context.grant)
    if result.exit_code is None:
        raise ToolError(
            f"{span.path} has {size:,} bytes, and line {span.first} was not reached in {_TIMEOUT_S:.0f} s; "
            "use bash (tail -c, split) to get at what is so far down"
        )
    if result.exit_code:
        reason = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ToolError(f"{span.path} can't be read: {reason}")
    return _page(msgspec.json.decode(result.stdout, type=_Answer), size, span)


def _page(answer: _Answer, size: int, span: Span) -> Page:
    head = bytes.fromhex(answer.head)
    if b"\0" in head:
        encoding_of(head, span.path, size)  # raises for data that is not text
        raise ToolError(f"{span.path} is UTF-16 and has {size:,} bytes; use bash (iconv, then sed -n '1,200p')")
    if not answer.lines:
        raise ToolError(f"{span.path} has {answer.skipped} lines or one more; offset={span.first} is past its end")
    lines = [_marked(text, is_cut, number, span) for number, (text, is_cut) in enumerate(answer.lines, span.first)]
    shown = fitting(lines, span)
    last = span.first + len(shown) - 1
    shown.insert(0, range_head(span.first, last, f"a file of {size:,} bytes"))
    if answer.has_more or len(shown) <= len(lines):
        shown.append(f"[{span.rest(last)} shows what follows]")
    else:
        shown.append(f"[line {last} is the last]")
    if answer.encoding == "latin-1":
        shown.append("(not valid UTF-8, read as Latin-1)")
    return text_page("\n".join(shown), f"lines {span.first}-{last}")


def _marked(text: str, is_cut: bool, number: int, span: Span) -> str:
    return f"{text[: LONGEST_LINE - 200]} [... line cut; bash: {rest_of_line(number, span.path)}]" if is_cut else text
