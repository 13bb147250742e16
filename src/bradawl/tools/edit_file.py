"""Replaces exact text in a file and leaves every other byte as it is."""

from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import FileSeen
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, FileContent, ToolOutput
from bradawl.tools.decoding import UTF_8, Encoding, encoding_of
from bradawl.tools.diffs import describe_change
from bradawl.tools.matching import MOST_MATCHES, Match, explain_absence, find_matches, line_ending_at
from bradawl.tools.naming import named_as_given, with_suggestion

_READ_LIMIT = 50_000_000
_PLACES_NAMED = 10


class EditFileParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace old_string, which must match exactly and only once, by new_string. No earlier read is needed."""

    file_path: Annotated[str, msgspec.Meta(description="Absolute, or from the working directory.")]
    old_string: Annotated[
        str, msgspec.Meta(description="With its indentation, without line numbers, and enough lines to be unique.")
    ]
    new_string: Annotated[str, msgspec.Meta(description="May be empty.")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace every match.")] = False


class EditFile:
    """The tool `edit_file`."""

    name: str = "edit_file"
    params: type[EditFileParams] = EditFileParams

    def effects(self, params: EditFileParams, context: CallContext) -> Effects:
        """Writes the file. Raises `ToolError` for strings that can't be an edit."""
        if not params.old_string:
            raise ToolError("old_string is empty; write_file creates files, edit_file replaces text that is there")
        if params.old_string == params.new_string:
            raise ToolError(
                "old_string and new_string are the same, so nothing would change; give the text as it should be"
            )
        return Effects(writes=(context.resolve(params.file_path),))

    async def run(self, params: EditFileParams, context: CallContext) -> ToolOutput:
        """Replace the one match, or all; shows the change as a diff."""
        (path,) = self.effects(params, context).writes
        with named_as_given(path, params.file_path, context):
            content = await _read(path, context)
        shown = context.relative(content.path)
        encoding = _encoding(content.data, params, shown)
        matches = find_matches(content.data, params.old_string, encoding)
        _check(matches, content.data, params, encoding, shown)
        chosen = _disjoint(matches) if params.replace_all else matches
        if len(matches) == MOST_MATCHES:
            raise ToolError(
                f"old_string matches {MOST_MATCHES:,} times or more in {shown}; use bash (sed) for that many"
            )
        data = _spliced(content.data, chosen, params.new_string, encoding)
        if data == content.data:
            raise ToolError(f"{shown} would not change: old_string and new_string differ in line endings only")
        with named_as_given(content.path, params.file_path, context):
            sha256 = await context.files.replace(content.path, data, content.sha256)
        if context.files_seen.get(content.path) == content.sha256:
            # Who had seen the whole file knows it still; an edit alone shows only a part.
            context.change(FileSeen(content.path, sha256))
        added, removed, diff = describe_change(encoding.decode(content.data), encoding.decode(data))
        times = f" ({len(chosen)} replacements)" if params.replace_all else ""
        return ToolOutput((Text(f"Edited {shown}: +{added} -{removed}{times}\n{diff}"),))


async def _read(path: str, context: CallContext) -> FileContent:
    try:
        return await context.files.read(path, _READ_LIMIT)
    except ToolError as error:
        raise await with_suggestion(error, path, context) from None


def _encoding(data: bytes, params: EditFileParams, shown: str) -> Encoding:
    """The encoding in which to look for the text and to write the new one."""
    encoding = encoding_of(data, shown)
    if encoding.codec == "latin-1" and not params.old_string.isascii() and _encoded(params.old_string, UTF_8) in data:
        encoding = UTF_8  # UTF-8 with a few stray bytes
    try:
        encoding.encode(params.old_string + params.new_string)
    except UnicodeEncodeError:
        raise ToolError(
            f"{shown} is not UTF-8 (it was read as {encoding.codec}), and the strings hold characters "
            "it can't; use only such characters, or convert the file with bash (iconv) first"
        ) from None
    return encoding


def _encoded(text: str, encoding: Encoding) -> bytes:
    return text.encode(encoding.codec, "replace")


def _check(matches: tuple[Match, ...], data: bytes, params: EditFileParams, encoding: Encoding, shown: str) -> None:
    if not matches:
        reason = explain_absence(encoding.decode(data), params.old_string)
        raise ToolError(f"old_string was not found in {shown}; nothing was changed. {reason}")
    if len(matches) > 1 and not params.replace_all:
        feed = encoding.encode("\n")
        numbers = [str(data.count(feed, 0, match.start) + 1) for match in matches[:_PLACES_NAMED]]
        more = ", ..." if len(matches) > _PLACES_NAMED else ""
        raise ToolError(
            f"old_string matches {len(matches)} times in {shown} (lines {', '.join(numbers)}{more}); nothing was "
            "changed. Add lines around it so that it is unique, or set replace_all=true to change every one"
        )


def _disjoint(matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """From the left, leaving out what overlaps one already taken."""
    taken: list[Match] = []
    for match in matches:
        if not taken or match.start >= taken[-1].end:
            taken.append(match)
    return tuple(taken)


def _spliced(data: bytes, matches: tuple[Match, ...], new: str, encoding: Encoding) -> bytes:
    pieces: list[bytes] = []
    place = 0
    for match in matches:
        pieces += (data[place : match.start], encoding.encode(_in_local_lines(data, match, new, encoding)))
        place = match.end
    return b"".join([*pieces, data[place:]])


def _in_local_lines(data: bytes, match: Match, new: str, encoding: Encoding) -> str:
    """New text takes on the line ending of the place it goes to, unless it brings carriage returns of its own."""
    if "\n" not in new or "\r" in new or line_ending_at(data, match, encoding) == "\n":
        return new
    return new.replace("\n", "\r\n")
