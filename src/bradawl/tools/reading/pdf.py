"""Shows the text of PDF files page by page."""

import sys
from pathlib import Path

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command, CommandResult
from bradawl.tools.reading.paging import Page, Span, sections_that_fit, text_page

_PROGRAM = str(Path(__file__).with_name("pdf_text.py"))
_TIMEOUT_S = 60.0
_ENCRYPTED = 3  # exit code of that program


class _Answer(msgspec.Struct):
    total: int
    pages: list[str]


async def pdf_page(real: str, span: Span, context: CallContext) -> Page:
    """The text of the requested pages: `first` and `limit` of the span count pages. Raises `ToolError`."""
    argv = (sys.executable, "-I", "-B", _PROGRAM, real, *map(str, (span.first, span.limit, span.most)))
    most = 12 * span.most + 1_000_000
    command = Command(argv, "/", timeout_s=_TIMEOUT_S, output_limit_bytes=most, is_helper=True, unmoved=(real,))
    result = await context.processes.run(command, context.grant)
    if result.exit_code != 0:
        raise ToolError(f"{span.path} is a PDF document, but {_why(result)}; use bash with another program")
    return _page(msgspec.json.decode(result.stdout, type=_Answer), span)


def _why(result: CommandResult) -> str:
    said = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    kind, _, reason = said.partition(": ")
    if result.exit_code == _ENCRYPTED or kind.endswith("DependencyError"):
        return "it is encrypted"
    if result.exit_code is None or result.exit_code < 0 or kind == "MemoryError":
        return "it took too long or too much memory to read"
    return f"it can't be read: {(reason or kind)[:200]}"


def _page(answer: _Answer, span: Span) -> Page:
    total = answer.total
    if not answer.pages:
        raise ToolError(f"{span.path} has {total} page{'' if total == 1 else 's'}; offset={span.first} is past its end")
    sections = [
        f"--- page {number} of {total} ---\n{text.strip() or '(no text on this page)'}"
        for number, text in enumerate(answer.pages, span.first)
    ]
    shown = sections_that_fit(sections, span.most)
    last = span.first + len(shown) - 1
    if not any(text.strip() for text in answer.pages):
        shown.append("(no text: the pages are probably scanned images; use bash with a program for text recognition)")
    if last < total:
        shown.append(f"[pages {span.first}-{last} of {total}; {span.rest(last)} shows what follows]")
    return text_page("\n".join(shown), f"pages {span.first}-{last}")
