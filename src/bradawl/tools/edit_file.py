"""The tool `edit_file`: replaces text in a file and keeps every other byte."""

from typing import TYPE_CHECKING, Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import FileContent
from bradawl.tools.reading.path_errors import named_as_given, with_suggestion

if TYPE_CHECKING:  # the engine loads with the first edit: many sessions make none
    from bradawl.tools.editing.plan import Change, Planned
    from bradawl.tools.editing.preconditions import Known

READ_LIMIT = 50_000_000


class EditFileParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace old_string, which must be in the file exactly once, by new_string. No earlier read is needed."""

    file_path: str
    old_string: Annotated[str, msgspec.Meta(description="As it is there, with enough lines to be unique.")]
    new_string: str
    replace_all: bool = False


class EditFile:
    """The tool `edit_file`."""

    spec: ToolSpec = ToolSpec("edit_file", kind="write", rule_names=("Edit",), shows=("file_path",), result="diff")
    params: type[EditFileParams] = EditFileParams

    def effects(self, params: EditFileParams, context: CallContext) -> Effects:
        """Writes the file. Raises `ToolError` for strings that can't be an edit."""
        from bradawl.tools.editing.plan import check_change

        check_change(_change(params))
        return Effects(writes=(context.resolve(params.file_path),))

    async def check_can_run(self, params: EditFileParams, context: CallContext) -> None:
        """Make all checks of `run`; nothing is written. Raises `ToolError`."""
        await _planned(params, context)

    async def run(self, params: EditFileParams, context: CallContext) -> ToolOutput:
        """Replace the one match, or all. The result is a diff, and a note if the match was not exact."""
        content, known, planned = await _planned(params, context)
        with named_as_given(content.path, params.file_path, context):
            sha256 = await context.files.replace(content.path, planned.data, content.sha256)
        summary = change_text(content, planned, known, context, count=planned.count if params.replace_all else 0)
        remember_edit(content, planned.data, sha256, known, context)
        return ToolOutput((Text(summary),))

    async def is_in_place(self, params: EditFileParams, context: CallContext | None) -> bool:
        """Whether the file has the new text already. Without a context it is not read. Raises `ToolError`."""
        from bradawl.tools.editing.in_place import is_made

        return await is_made(params.file_path, _change(params), context)


def _change(params: EditFileParams) -> "Change":
    from bradawl.tools.editing.plan import Change

    return Change(params.old_string, params.new_string, params.replace_all)


async def _planned(params: EditFileParams, context: CallContext) -> "tuple[FileContent, Known, Planned]":
    """The file, what the model knows of it, and the new content. Raises `ToolError` if the edit can't be made."""
    from bradawl.tools.editing.plan import check_change, check_with_grammar, plan
    from bradawl.tools.editing.preconditions import allowed_path, known_for

    check_change(_change(params))
    path = allowed_path(params.file_path, context)
    content = await read_for_edit(path, params.file_path, context)
    known = known_for((_change(params),), content, context)
    planned = plan(content.data, _change(params), context.relative(content.path))
    await check_with_grammar(content, planned, context)
    return content, known, planned


async def read_for_edit(path: str, given: str, context: CallContext) -> FileContent:
    """The file's content. Raises `ToolError` with similar paths if there is no such file."""
    with named_as_given(path, given, context):
        try:
            content = await context.files.read(path, READ_LIMIT)
        except ToolError as error:
            raise await with_suggestion(error, path, context) from None
        if content.path != path:
            raise ToolError(f"{path} is being moved or replaced at this moment; try again")
    return content


def change_text(
    before: FileContent, planned: "Planned", known: "Known", context: CallContext, *, count: int = 0
) -> str:
    """A one-line summary of an edit, its diff, and what changed elsewhere."""
    from bradawl.tools.editing.diffs import describe_change

    texts = (planned.encoding.decode(data) for data in (before.data, planned.data))
    added, removed, diff = describe_change(*texts, is_known=not planned.note)
    notes = [f"{count} replacement{'' if count == 1 else 's'}"] if count else []
    if planned.note:
        notes.append(planned.note)
    more = f" ({'; '.join(notes)})" if notes else ""
    summary = f"Edited {context.relative(before.path)}: +{added} -{removed}{more}"
    return "\n".join([summary, *filter(None, (diff, known.elsewhere))])


def remember_edit(before: FileContent, data: bytes, sha256: str, known: "Known", context: CallContext) -> None:
    """Mark the new content as seen as far as the model knew the file before."""
    from bradawl.tools.editing.seen_lines import lines_of, part_after

    if known.parts:
        lines = (lines_of(each, before.path) for each in (before.data, data))
        context.seen.saw(FileContent(before.path, data, sha256), part_after(known.parts, *lines, is_shown=True))
