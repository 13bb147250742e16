"""Shows text files with line numbers."""

from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import FileSeen
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, FileContent, ToolOutput
from bradawl.tools.decoding import encoding_of, presentable, split_lines
from bradawl.tools.naming import named_as_given, with_suggestion

_READ_LIMIT = 50_000_000
_LONGEST_LINE = 2_000
_MOST_CHARACTERS = 50_000
_LEAST_CHARACTERS = 2_000
_FOLDER_LIMIT = 2_000
_NAMES_SHOWN = 100
_DEFAULT_LIMIT = 2_000


class ReadFileParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Show text files with line numbers (number, tab, line). Give file_path, or file_paths to read several at once."""

    file_path: Annotated[str, msgspec.Meta(description="One file.")] = ""
    file_paths: Annotated[tuple[str, ...], msgspec.Meta(description="Several files.")] = ()
    offset: Annotated[int, msgspec.Meta(description="First line, from 1.")] = 1
    limit: Annotated[int, msgspec.Meta(description="Most lines per file.")] = _DEFAULT_LIMIT


class ReadFile:
    """The tool `read_file`."""

    name: str = "read_file"
    params: type[ReadFileParams] = ReadFileParams

    def effects(self, params: ReadFileParams, context: CallContext) -> Effects:
        """Reads the files. Raises `ToolError` for arguments that make no sense."""
        return Effects(reads=tuple(context.resolve(path) for path in _paths(params)))

    async def run(self, params: ReadFileParams, context: CallContext) -> ToolOutput:
        """The lines asked for; several files each under a header, and one that fails does not hide the others."""
        paths = _paths(params)
        if len(paths) == 1:
            return ToolOutput((Text(await _show(paths[0], params, context, _MOST_CHARACTERS)),))
        sections: list[str] = []
        failures = 0
        room = _MOST_CHARACTERS
        for place, path in enumerate(paths):
            share = max(room // (len(paths) - place), _LEAST_CHARACTERS)
            try:
                shown = await _show(path, params, context, share)
            except ToolError as error:
                failures += 1
                shown = f"Error: {error}"
            sections.append(f"==> {path} <==\n{shown}")
            room -= len(shown)
        return ToolOutput((Text("\n\n".join(sections)),), is_error=failures == len(paths))


def _paths(params: ReadFileParams) -> tuple[str, ...]:
    if bool(params.file_path) == bool(params.file_paths):
        raise ToolError("give either file_path or file_paths, exactly one of the two")
    if params.offset < 0:
        raise ToolError(f"offset is the number of the first line and counts from 1; it was {params.offset}")
    if params.limit < 1:
        raise ToolError(f"limit is a number of lines and must be at least 1; it was {params.limit}")
    return params.file_paths or (params.file_path,)


async def _show(path: str, params: ReadFileParams, context: CallContext, most: int) -> str:
    real = context.resolve(path)
    try:
        content = await context.files.read(real, _READ_LIMIT)
    except ToolError as error:
        listing = await _folder(real, path, context)
        if listing is not None:
            return listing
        with named_as_given(real, path, context):
            raise await with_suggestion(error, real, context) from None
    shown = _numbered(path, content, params, most)
    context.change(FileSeen(content.path, content.sha256))
    return shown


async def _folder(real: str, path: str, context: CallContext) -> str | None:
    """What is in a folder; None when it is none."""
    try:
        entries, cut = await context.files.list(real, _FOLDER_LIMIT)
    except ToolError:
        return None
    if any(entry.path == real for entry in entries):
        return None
    root = len(real.rstrip("/")) + 1
    parts = [entry.path[root:].partition("/") for entry in entries]
    names = sorted({head + slash for head, slash, _ in parts})
    more = (
        f"\n[{len(names) - _NAMES_SHOWN} more]" if len(names) > _NAMES_SHOWN else "\n[there may be more]" if cut else ""
    )
    listing = "\n".join(names[:_NAMES_SHOWN]) if names else "(no files, apart from what git ignores)"
    return presentable(f"{path} is a folder:\n{listing}{more}")


def _numbered(path: str, content: FileContent, params: ReadFileParams, most: int) -> str:
    if not content.data:
        return f"({path} is empty)"
    encoding = encoding_of(content.data, path)
    lines = split_lines(encoding.decode(content.data))
    total = len(lines)
    if not total:
        return f"({path} is empty but for a byte order mark)"
    first = max(params.offset, 1)
    if first > total:
        raise ToolError(f"{path} has {total} line{'' if total == 1 else 's'}; offset={first} is past its end")
    wanted = lines[first - 1 : first - 1 + params.limit]
    shown = _fitting(wanted, first, most, path)
    last = first + len(shown) - 1
    notes = [f"({encoding.note})"] if encoding.note else []
    if last < total:
        notes.append(f"[lines {first}-{last} of {total}; {_rest(path, last, params.limit)} shows what follows]")
    return "\n".join([*shown, *notes])


def _fitting(lines: list[str], first: int, most: int, path: str) -> list[str]:
    """As many numbered lines as there is room for, at least one."""
    shown: list[str] = []
    for number, line in enumerate(lines, first):
        numbered = f"{number}\t{_shortened(line.removesuffix(chr(13)), number, path)}"
        most -= len(numbered) + 1
        if most < 0 and shown:
            break
        shown.append(numbered)
    return shown


def _shortened(line: str, number: int, path: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    import shlex

    what = f"line cut: {len(line)} characters, the first {_LONGEST_LINE} are shown"
    file = shlex.quote(path if not path.startswith("-") else f"./{path}")
    more = f"sed -n '{number}p' {file} | cut -c{_LONGEST_LINE + 1}-{2 * _LONGEST_LINE}"
    return f"{line[:_LONGEST_LINE]} [... {what}; bash: {more}]"


def _rest(path: str, last: int, limit: int) -> str:
    import json

    size = "" if limit == _DEFAULT_LIMIT else f", limit={limit}"
    return f"read_file(file_path={json.dumps(path, ensure_ascii=False)}, offset={last + 1}{size})"
