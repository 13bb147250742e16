"""Shows Jupyter notebooks cell by cell."""

import re

import msgspec

from bradawl.core.errors import ToolError
from bradawl.tools.reading.paging import Page, Span, sections_that_fit, text_page

_MOST_OUTPUT = 2_000
"""Characters of the outputs of one cell."""


class _Output(msgspec.Struct):
    output_type: str = ""
    text: str | list[str] = ""
    data: dict[str, msgspec.Raw] = {}
    ename: str = ""
    evalue: str = ""


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""
    outputs: list[_Output] = []
    execution_count: int | None = None


class _Notebook(msgspec.Struct):
    cells: list[_Cell]
    nbformat: int


def notebook_page(data: bytes, span: Span) -> Page | None:
    """The requested cells: `first` and `limit` of the span count cells. None if the data is not a notebook."""
    try:
        notebook = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    total = len(notebook.cells)
    if not total:
        return text_page(f"({span.path} is a notebook without cells)", "cells")
    if span.first > total:
        raise ToolError(f"{span.path} has {total} cell{'' if total == 1 else 's'}; offset={span.first} is past its end")
    wanted = notebook.cells[span.first - 1 : span.first - 1 + span.limit]
    shown = sections_that_fit([_cell(cell, number) for number, cell in enumerate(wanted, span.first)], span.most)
    last = span.first + len(shown) - 1
    if last < total:
        shown.append(f"[cells {span.first}-{last} of {total}; {span.rest(last)} shows what follows]")
    head = f"{span.path} is a notebook; an edit has to match its JSON source, not what is shown here:"
    return text_page("\n".join([head, *shown]), f"cells {span.first}-{last}")


def _cell(cell: _Cell, number: int) -> str:
    count = f" [{cell.execution_count}]" if cell.execution_count is not None else ""
    lines = [f"--- cell {number}, {cell.cell_type}{count} ---", _joined(cell.source).rstrip("\n")]
    output = "\n".join(filter(None, map(_output, cell.outputs)))
    if output:
        left_out = len(output) - _MOST_OUTPUT
        more = f"\n[... {left_out:,} more characters of output]" if left_out > 0 else ""
        lines.append(f"--- output ---\n{output[:_MOST_OUTPUT]}{more}")
    return "\n".join(lines)


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _output(output: _Output) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    if output.output_type == "stream":
        return _plain(_joined(output.text))
    pictures = [kind for kind in output.data if kind.startswith("image/")]
    if pictures:
        return f"[{pictures[0]}]"
    if "text/plain" not in output.data:
        return f"[{', '.join(output.data)}]" if output.data else ""
    try:
        return _plain(_joined(msgspec.json.decode(output.data["text/plain"], type=str | list[str])))
    except msgspec.ValidationError:
        return "[text/plain]"


def _plain(text: str) -> str:
    """The text without colours; of a line that was overwritten the last state."""
    if "\x1b" in text:
        text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    lines = text.rstrip("\n").replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
