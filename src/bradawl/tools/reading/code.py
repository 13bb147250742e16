"""Shows files with code: an outline of a large one, or the definitions that are asked for."""

import json
from collections.abc import Sequence

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import FileContent
from bradawl.tools.outlines.definitions import Definition, find, near_names, with_comments
from bradawl.tools.outlines.languages import symbols_of
from bradawl.tools.outlines.mentions import mentioned
from bradawl.tools.outlines.outline import outline
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.outlines.thresholds import NAMED_CHARACTERS, OUTLINE_CHARACTERS, WHOLE_BYTES
from bradawl.tools.reading.decoding import encoding_of, notes_on, split_lines
from bradawl.tools.reading.paging import DEFAULT_LIMIT, Page, Span, fitting, range_head, text_page

_MOST_SYMBOLS = 50
_NAMES_LISTED = 20
_OTHER_LINES = 100
"""Lines that a search for definitions may find besides."""
_BEGINNINGS = {
    **dict.fromkeys(("py", "pyi", "pyw"), r"^\s*(async )?(def|class) "),
    **dict.fromkeys(("rb", "rake"), r"^\s*(def|class|module) "),
    "go": "^(func|type) ",
    "rs": r"^\s*(pub\S* )?((async|unsafe|const) )*(fn|struct|enum|trait|impl|mod)\b",
}
_LONG_LINES = 300
"""Bytes of a line on average that code written by people does not reach."""


async def outline_page(content: FileContent, span: Span, context: CallContext) -> Page | None:
    """The outline of a large file with code, and the definitions in it that the conversation names.

    None for a file that is shown as it is: a small one, one of an unknown language, one without classes and functions.
    """
    if len(content.data) <= WHOLE_BYTES:
        return None
    symbols = await symbols_of(content, context)
    if not symbols or all(one.kind == "constant" for one in symbols):
        return None
    encoding = encoding_of(content.data, span.path)
    lines = split_lines(encoding.decode(content.data))
    if len(content.data) > _LONG_LINES * len(lines):  # minified: its definitions have no lines of their own
        return None
    listed = outline(symbols, min(OUTLINE_CHARACTERS, span.most // 2))
    named = with_comments(mentioned(symbols, content.path, context.messages()), lines)
    shown, others = _that_fit(named, lines, span, min(NAMED_CHARACTERS, span.most // 2))
    head = f"({span.path} is long: {len(lines)} lines, {len(content.data):,} bytes. Its outline, with line numbers:)"
    if shown:
        shown = ["", "(definitions that this conversation names:)", *shown]
    if others:
        names = ", ".join(one.symbol.name for one in others[:_NAMES_LISTED])
        shown.append(f"[named as well, but too long to show here: {names}]")
    shown = [head, *listed, *shown]
    is_cut = listed[-1].startswith("[")
    return text_page("\n".join([*shown, *notes_on(shown, encoding), _how_to_go_on(symbols, span, is_cut)]), "")


def _that_fit(named: list[Definition], lines: list[str], span: Span, room: int) -> tuple[list[str], list[Definition]]:
    """The definitions that fit into `room` characters, each below its lines and name, and the other definitions."""
    shown: list[str] = []
    others: list[Definition] = []
    for one in named:
        text = _beginning(one, lines, span, room)
        if len(text) < one.last - one.first + 1:
            others.append(one)
            continue
        shown += [_head(one, one.last), *text]
        room -= sum(len(line) + 1 for line in text)
    return shown, others


def _head(one: Definition, last: int) -> str:
    return range_head(one.first, last, "", one.symbol.name)


def _beginning(one: Definition, lines: list[str], span: Span, room: int) -> list[str]:
    """Its lines, as many as fit."""
    if room <= 0:
        return []
    return fitting(lines[one.first - 1 : one.last], Span(span.path, one.first, DEFAULT_LIMIT, room))


def _how_to_go_on(symbols: Sequence[Symbol], span: Span, is_cut: bool) -> str:
    names = [one.name for one in symbols if one.kind != "constant"]
    public = [name for name in names if "_" not in (name[0], name.rpartition(".")[2][0])]
    path = json.dumps(span.path, ensure_ascii=False)
    name = json.dumps(next((name for name in public if "." in name), (public or names)[0]), ensure_ascii=False)
    return (
        f"[read_file(file_path={path}, symbols=[{name}]) shows definitions; "
        f"read_file(file_path={path}, offset=1, limit=400) lines{_search(path, len(symbols)) if is_cut else ''}]"
    )


def _search(path: str, count: int) -> str:
    """The search that lists all definitions, for languages where a word begins them."""
    pattern = _BEGINNINGS.get(path.strip('"').rpartition(".")[2])
    limit = f", limit={count + _OTHER_LINES}" if count > _OTHER_LINES else ""
    return f"; grep(pattern={json.dumps(pattern)}, path={path}{limit}) all definitions" if pattern else ""


async def symbols_page(content: FileContent, names: tuple[str, ...], span: Span, context: CallContext) -> Page:
    """The definitions with these names. Raises `ToolError` if the file has none of them, or no definitions at all."""
    symbols = await symbols_of(content, context)
    if symbols is None:
        raise ToolError(f"no definitions are found in files such as {span.path}; use offset and limit, or grep")
    encoding = encoding_of(content.data, span.path)
    lines = split_lines(encoding.decode(content.data))
    found: list[Symbol] = []
    notes: list[str] = []
    for name in names:
        of_name = find(symbols, name)
        found += of_name
        if not of_name:
            notes.append(_unknown(name, symbols, span))
        elif len(of_name) > 1:
            notes.append(f"[{name} is the name of {len(of_name)} definitions]")
    if not found:
        raise ToolError("\n".join(notes))
    what = f"the definitions {', '.join(names)}"
    shown = _definitions(with_comments(found, lines), lines, span)
    return text_page("\n".join([*shown, *notes_on(shown, encoding), *notes]), what)


def _unknown(name: str, symbols: Sequence[Symbol], span: Span) -> str:
    near = near_names(symbols, name)
    hint = f"did you mean {', '.join(near)}?" if near else "read_file without symbols shows the file or its outline"
    return f"{span.path} defines no {name}; {hint}"


def _places(symbols: Sequence[Symbol]) -> str:
    shown = [f"{one.name} ({one.first}-{one.last})" for one in symbols[:_NAMES_LISTED]]
    return ", ".join([*shown, *(["..."] if len(symbols) > _NAMES_LISTED else [])])


def _definitions(definitions: list[Definition], lines: list[str], span: Span) -> list[str]:
    """Each below its lines and name, as far as they fit, and how to see the rest."""
    shown: list[str] = []
    room = span.most
    for place, one in enumerate(definitions[:_MOST_SYMBOLS]):
        text = _beginning(one, lines, span, room)
        room -= sum(len(line) + 1 for line in text)
        if len(text) < one.last - one.first + 1:
            last = one.first + len(text) - 1
            rest = Span(span.path, one.first, one.last - last, span.most).rest(last)
            names = [each.symbol for each in definitions[place + 1 :]]
            others = f"; not shown: {_places(names)}" if names else ""
            head = [_head(one, last)] if text else []
            return [*shown, *head, *text, f"[{one.symbol.name} goes on: {rest}{others}]"]
        shown += [_head(one, one.last), *text]
    if rest := [each.symbol for each in definitions[_MOST_SYMBOLS:]]:
        shown.append(f"[not shown: {_places(rest)}]")
    return shown
