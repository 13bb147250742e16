"""The tool `read_file`: shows files: text, images, text of PDF documents, cells of notebooks."""

from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Image, Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import FileContent, FileEntry
from bradawl.tools.reading.decoding import encoding_of, notes_on, presentable, split_lines
from bradawl.tools.reading.paging import (
    DEFAULT_LIMIT,
    LONGEST_LINE,
    MOST_CHARACTERS,
    Page,
    Span,
    fitting,
    range_head,
    text_page,
    without_held,
)
from bradawl.tools.reading.path_errors import named_as_given, with_suggestion

_READ_LIMIT = 50_000_000
_LEAST_CHARACTERS = 2_000
_IMAGES_AT_ONCE = 10
_NAMED = 20
_IMAGE_BYTES_AT_ONCE = 15_000_000


class ReadFileParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Show files: text (code over 24 KB as an outline), images, PDF, notebooks."""

    file_path: str = ""
    file_paths: tuple[str, ...] = ()
    symbols: Annotated[tuple[str, ...], msgspec.Meta(description="Only these definitions of it: Container.remove")] = ()
    offset: Annotated[int, msgspec.Meta(description="First line, page or cell, from 1.")] = 0
    limit: Annotated[int, msgspec.Meta(description="How many, per file.")] = DEFAULT_LIMIT


class ReadFile:
    """The tool `read_file`."""

    spec: ToolSpec = ToolSpec("read_file", rule_names=("Read",), read_rules="exact", shows=("file_path", "file_paths"))
    params: type[ReadFileParams] = ReadFileParams

    def effects(self, params: ReadFileParams, context: CallContext) -> Effects:
        """Reads the files. Raises `ToolError` for invalid arguments."""
        return Effects(reads=tuple(dict.fromkeys(context.resolve(path) for path in _paths(params))))

    async def run(self, params: ReadFileParams, context: CallContext) -> ToolOutput:
        """The file, or several files under headers. An error in one file does not hide the others."""
        paths = _paths(params)
        reading = Reading(context)
        output = await _one(paths[0], params, reading) if len(paths) == 1 else await _several(paths, params, reading)
        # Recorded when the result is complete: a call that is cancelled before shows nothing.
        for content, part in reading.shown:
            context.seen.saw(content, part)
        return output


class Reading(msgspec.Struct, frozen=True):
    """One call: what its result shows so far."""

    context: CallContext
    shown: list[tuple[FileContent, str]] = msgspec.field(default_factory=list[tuple[FileContent, str]])
    """Contents with the names of the parts that are shown."""


async def _one(path: str, params: ReadFileParams, reading: Reading) -> ToolOutput:
    span = Span(path, max(params.offset, 1), params.limit, MOST_CHARACTERS)
    return ToolOutput((await _show(span, params, _IMAGE_BYTES_AT_ONCE, reading)).parts, limit=None)


async def _several(paths: tuple[str, ...], params: ReadFileParams, reading: Reading) -> ToolOutput:
    parts: list[Text | Image] = []
    failures = 0
    room = MOST_CHARACTERS
    for place, path in enumerate(paths):
        if room <= 0:
            parts.append(Text(_left_out(paths[place:])))
            break
        share = max(room // (len(paths) - place), _LEAST_CHARACTERS)
        span = Span(path, max(params.offset, 1), params.limit, share)
        try:
            page = await _show(span, params, _room_for_images(parts), reading)
        except ToolError as error:
            failures += 1
            page = text_page(f"Error: {error}", "")
        head = f"{chr(10) * 2 if place else ''}==> {path} <==\n"
        parts += (Text(head), *page.parts)
        room -= len(head) + len(page.text)
    has_failed = failures == len(paths)
    return ToolOutput(_merged(parts), is_error=has_failed, limit=None, has_failed_part=failures > 0 and not has_failed)


def _names(params: ReadFileParams) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(params.symbols) if name.strip())  # models pass empty placeholders


def _left_out(paths: tuple[str, ...]) -> str:
    named = ", ".join(paths[:_NAMED]) + (", ..." if len(paths) > _NAMED else "")
    return f"\n\n[not shown, because this answer is full: {named} ({len(paths)} in all); read them in another call]"


def _room_for_images(parts: list[Text | Image]) -> int:
    """The number of bytes that another image may have."""
    sizes = [len(part.data) for part in parts if isinstance(part, Image)]
    return _IMAGE_BYTES_AT_ONCE - sum(sizes) if len(sizes) < _IMAGES_AT_ONCE else 0


def _merged(parts: list[Text | Image]) -> tuple[Text | Image, ...]:
    """The parts with neighbouring texts joined."""
    merged: list[Text | Image] = []
    for part in parts:
        if merged and isinstance(part, Text) and isinstance(before := merged[-1], Text):
            merged[-1] = Text(before.text + part.text)
        else:
            merged.append(part)
    return tuple(merged)


def _paths(params: ReadFileParams) -> tuple[str, ...]:
    several = tuple(path for path in params.file_paths if path)  # models pass empty names as placeholders
    if bool(params.file_path) == bool(several):
        raise ToolError("give either file_path or file_paths, exactly one of the two")
    if params.offset < 0:
        raise ToolError(f"offset is the number of the first line and counts from 1; it was {params.offset}")
    if _names(params) and len(several or (params.file_path,)) > 1:
        raise ToolError("symbols needs file_path: give one file")
    if params.limit < 1:
        raise ToolError(f"limit is a number of lines and must be at least 1; it was {params.limit}")
    return several or (params.file_path,)


async def _show(span: Span, params: ReadFileParams, room_for_images: int, reading: Reading) -> Page:
    context = reading.context
    real = context.resolve(span.path)
    try:
        content = await context.files.read(real, _READ_LIMIT)
    except ToolError as error:
        return await _unread(error, real, span, context)
    if outline := await _outline(content, span, params, context):
        return outline  # it shows no lines, so nothing of the file counts as seen
    page = await _requested(content, span, params, context, frozenset(context.seen.parts(content, held=True)))
    is_held = page.what in context.seen.parts(content, held=True) or (content, page.what) in reading.shown
    if page.what and is_held and not page.is_short:
        return text_page(f"({span.path} has not changed: the earlier answer with {page.what} still holds)", page.what)
    if any(isinstance(part, Image) and len(part.data) > room_for_images for part in page.parts):
        raise ToolError(f"{span.path} is one image too many for one answer; read it by itself")
    reading.shown.append((content, page.what))
    return page


async def _outline(content: FileContent, span: Span, params: ReadFileParams, context: CallContext) -> Page | None:
    """The outline of a large file with code; None for other files, and if lines or definitions are asked for."""
    from bradawl.tools.outlines.thresholds import WHOLE_BYTES  # not loaded before the first read

    if _names(params) or params.offset or params.limit != DEFAULT_LIMIT or len(content.data) <= WHOLE_BYTES:
        return None
    from bradawl.tools.reading.code import outline_page

    return await outline_page(content, span, context)


async def _requested(
    content: FileContent, span: Span, params: ReadFileParams, context: CallContext, held: frozenset[str]
) -> Page:
    if not (names := _names(params)):
        return await _page(content, span, context, held)
    from bradawl.tools.reading.code import symbols_page

    return await symbols_page(content, names, span, context)


async def _unread(error: ToolError, real: str, span: Span, context: CallContext) -> Page:
    """The page for what can't be read as a whole: the listing of a folder, or lines of a file that is too large."""
    try:
        entries, _ = await context.files.list(real, 0)
    except ToolError:
        with named_as_given(real, span.path, context):
            raise await with_suggestion(error, real, context) from None
    if entries:
        return await _unloaded(error, entries[0], span, context)
    from bradawl.tools.reading.listing import FOLDER_LIMIT, listing

    found, is_cut = await context.files.list(real, FOLDER_LIMIT)
    return text_page(presentable(listing(span.path, real, found, is_cut=is_cut)), "")


async def _unloaded(error: ToolError, entry: FileEntry, span: Span, context: CallContext) -> Page:
    if entry.size <= _READ_LIMIT:
        with named_as_given(entry.path, span.path, context):
            raise error
    from bradawl.tools.reading.long_file import long_page

    return await long_page(entry.path, entry.size, span.of_size(entry.size), context)


async def _page(content: FileContent, span: Span, context: CallContext, held: frozenset[str]) -> Page:
    data = content.data
    if data.startswith(b"%PDF-"):
        from bradawl.tools.reading.pdf import pdf_page

        return await pdf_page(content.path, span, context)
    if data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")):
        from bradawl.tools.reading.images import image_page, media_type_of

        if media_type := media_type_of(data):
            return image_page(data, media_type, span.path)
    if span.path.endswith(".ipynb"):
        from bradawl.tools.reading.notebook import notebook_page

        if (page := notebook_page(data, span)) is not None:
            return page
    return _text_page(data, span.of_size(len(data)), held)


def _text_page(data: bytes, span: Span, held: frozenset[str]) -> Page:
    if not data:
        return text_page(f"({span.path} is empty)", "")
    encoding = encoding_of(data, span.path)
    lines = split_lines(encoding.decode(data))
    total = len(lines)
    if not total:
        return text_page(f"({span.path} is empty but for a byte order mark)", "")
    if span.first > total:
        end = f"its last lines begin at offset={max(1, total - 19)}"
        raise ToolError(
            f"{span.path} has {total} line{'' if total == 1 else 's'}, so nothing is at {span.first}; {end}"
        )
    span, before = without_held(span, total, held)
    shown = fitting(lines[span.first - 1 : span.first - 1 + span.limit], span)
    last = span.first + len(shown) - 1
    head = [*before, range_head(span.first, last, total)] if len(shown) < total else []
    notes = notes_on(shown, encoding)
    if last < total and (span.limit == DEFAULT_LIMIT or len(shown) < span.limit):  # less than was asked for
        notes.append(f"[{span.rest(last)} shows what follows]")
    is_cut = max(map(len, lines[span.first - 1 : last])) > LONGEST_LINE
    what = f"lines {span.first}-{last}{', long ones cut' if is_cut else ''}"
    return text_page("\n".join([*head, *shown, *notes]), what)
