"""The tool `write_file`: writes whole files."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import FileContent
from bradawl.tools.reading.decoding import UTF_8, Encoding, encoding_of, split_lines
from bradawl.tools.reading.path_errors import named_as_given

_READ_LIMIT = 50_000_000


class WriteFileParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write a whole file; folders are made. To overwrite one, read it first."""

    file_path: str
    content: str


def _no_other_name(_: str) -> tuple[str, str]:
    return "", ""


class WriteFile:
    """The tool `write_file`."""

    spec: ToolSpec = ToolSpec("write_file", kind="write", rule_names=("Edit",), shows=("file_path",), result="diff")
    params: type[WriteFileParams] = WriteFileParams

    def __init__(self, name_of: Callable[[str], tuple[str, str]] = _no_other_name) -> None:
        """`name_of` returns another name of a path for the model, and a remark for the result; empty for none."""
        self._name_of = name_of

    def effects(self, params: WriteFileParams, context: CallContext) -> Effects:
        """Writes the file. Raises `ToolError` for a path that can't be one."""
        _check_name(params)
        return Effects(writes=(context.resolve(params.file_path),))

    async def check_can_run(self, params: WriteFileParams, context: CallContext) -> None:
        """Make all checks of `run`; nothing is written. Raises `ToolError`."""
        from bradawl.tools.editing.preconditions import allowed_path

        _check_name(params)
        path = allowed_path(params.file_path, context)
        with named_as_given(path, params.file_path, context):
            if (current := await _existing(path, context)) is None:
                _encoded(params.content, UTF_8)
            else:
                _replacement(current, params, context)

    async def run(self, params: WriteFileParams, context: CallContext) -> ToolOutput:
        """Create the file, or overwrite it if the model has seen its current content."""
        from bradawl.tools.editing.preconditions import allowed_path

        _check_name(params)
        path = allowed_path(params.file_path, context)
        with named_as_given(path, params.file_path, context):
            if (current := await _existing(path, context)) is None:
                return await self._create(path, params, context)
            return await _overwrite(current, params, context)

    async def is_in_place(self, params: WriteFileParams, context: CallContext | None) -> bool:
        """Whether the file has this content already. Without a context it is not read. Raises `ToolError`."""
        if context is None:
            return False
        current = await context.files.read(context.resolve(params.file_path), _READ_LIMIT)
        return current.data == _encoded(params.content, UTF_8)

    async def _create(self, path: str, params: WriteFileParams, context: CallContext) -> ToolOutput:
        data = _encoded(params.content, UTF_8)
        sha256 = await context.files.replace(path, data, None)
        context.seen.saw(FileContent(path, data, sha256))
        name, remark = self._name_of(path)
        return ToolOutput((Text(f"Wrote {_count(params.content)} to {name or context.relative(path)}{remark}"),))


async def _existing(path: str, context: CallContext) -> FileContent | None:
    """The file that would be overwritten; None if there is none. Raises `ToolError` for what can't be overwritten."""
    try:
        return await context.files.read(path, _READ_LIMIT)
    except ToolError as error:
        try:
            await context.files.list(path, 0)
        except ToolError:
            return None
        raise error from None


class _Replacement(NamedTuple):
    """The new content of an existing file, and what the result says of it."""

    before: str
    content: str
    data: bytes
    note: str


def _replacement(current: FileContent, params: WriteFileParams, context: CallContext) -> _Replacement:
    """What the file would hold. Raises `ToolError` if the model does not know what it would overwrite."""
    from bradawl.tools.editing.preconditions import check_all_seen, check_unchanged

    encoding = _encoding_kept(current)
    before = encoding.decode(current.data)
    content, note = _line_endings_kept(before, params.content)
    data = encoding.bom + _encoded(content, encoding)
    if current.data not in (b"", data):  # else nothing can be lost
        if context.seen.sha256(current.path) is None:
            raise ToolError(
                f"{context.relative(current.path)} exists and you have not read it. read_file it first, then write it; "
                "or change parts of it with edit_file"
            )
        check_unchanged(current, context)
        check_all_seen(current, context)
    note += "" if encoding.bom or _is_utf8(current.data) else " (now UTF-8, which it was not)"
    return _Replacement(before, content, data, note)


async def _overwrite(current: FileContent, params: WriteFileParams, context: CallContext) -> ToolOutput:
    from bradawl.tools.editing.diffs import describe_change

    before, content, data, note = _replacement(current, params, context)
    if data == current.data:
        return _same(current, context)
    sha256 = await context.files.replace(current.path, data, current.sha256)
    context.seen.saw(FileContent(current.path, data, sha256))
    added, removed, diff = describe_change(before, content, is_known=True)
    head = f"Wrote {_count(content)} to {context.relative(current.path)}: +{added} -{removed}{note}"
    return ToolOutput((Text(f"{head}\n{diff}".rstrip()),))


def _check_name(params: WriteFileParams) -> None:
    if params.file_path.endswith("/"):
        raise ToolError(f"{params.file_path} names a folder; give the path of a file")


def _same(current: FileContent, context: CallContext) -> ToolOutput:
    context.seen.saw(current)
    return ToolOutput(
        (Text(f"{context.relative(current.path)} has exactly this content already; nothing was written"),)
    )


def _encoding_kept(current: FileContent) -> Encoding:
    """The encoding of the existing file if it has a byte order mark; otherwise UTF-8."""
    try:
        encoding = encoding_of(current.data, current.path)
    except ToolError:
        return UTF_8
    return encoding if encoding.bom else UTF_8


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _line_endings_kept(before: str, content: str) -> tuple[str, str]:
    """Keep CRLF in a file that has nothing else, because the model does not see line endings."""
    if "\r" in content or "\n" not in content or not before.count("\n") == before.count("\r\n") > 0:
        return content, ""
    return content.replace("\n", "\r\n"), " (CRLF line endings kept)"


def _encoded(content: str, encoding: Encoding) -> bytes:
    try:
        return encoding.encode(content)
    except UnicodeEncodeError as error:
        raise ToolError(
            f"content can't be written as {encoding.codec}: {error.reason} at character {error.start}"
        ) from None


def _count(content: str) -> str:
    count = len(split_lines(content))
    return f"{count} line" if count == 1 else f"{count} lines"
