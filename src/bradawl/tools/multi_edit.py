"""The tool `multi_edit`: several replacements in one or more files, all or none."""

import re
from typing import TYPE_CHECKING, Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import FileContent
from bradawl.tools.edit_file import change_text, read_for_edit, remember_edit
from bradawl.tools.reading.path_errors import named_as_given

if TYPE_CHECKING:  # the engine loads with the first edit
    from bradawl.tools.editing.plan import Change, Planned
    from bradawl.tools.editing.preconditions import Known


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of `edit_file`, without the descriptions that a model has there."""

    file_path: str
    old_string: str
    new_string: str
    replace_all: bool = False


class MultiEditParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several edits as edit_file makes them: all are made, or none."""

    edits: Annotated[tuple[Edit, ...], msgspec.Meta(description="Made in this order.")]


_NOTHING = re.compile(r"; nothing was (?:changed|written)(?=\. )")
"""What the error of one edit says, and that of the call says once."""


class PlannedFile(msgspec.Struct):
    """One file while its edits are checked; nothing is written yet."""

    before: FileContent
    given: str
    data: bytes
    known: "Known"
    planned: "Planned | None" = None
    adapted: "Planned | None" = None
    """The last edit whose new text was adapted to the file."""
    notes: tuple[str, ...] = ()


class MultiEdit:
    """The tool `multi_edit`."""

    spec: ToolSpec = ToolSpec(
        "multi_edit", kind="write", rule_names=("Edit",), shows=("edits.file_path",), result="diff"
    )
    params: type[MultiEditParams] = MultiEditParams
    is_listed: bool = True
    """False: calls are answered, but requests do not offer the tool."""

    def effects(self, params: MultiEditParams, context: CallContext) -> Effects:
        """Writes all the files. Raises `ToolError` without edits, and for strings that can't be an edit."""
        if not params.edits:
            raise ToolError("edits is empty; give at least one edit")
        problems = [
            f"edit {number}, {edit.file_path}: {wrong}"
            for number, edit in enumerate(params.edits, 1)
            if (wrong := _wrong_by_itself(edit))
        ]
        if problems:
            raise _refusal(problems, len(params.edits))
        return Effects(writes=tuple(dict.fromkeys(context.resolve(edit.file_path) for edit in params.edits)))

    async def check_can_run(self, params: MultiEditParams, context: CallContext) -> None:
        """Make all checks of `run`; nothing is written. Raises `ToolError`."""
        await _planned_files(params, context)

    async def run(self, params: MultiEditParams, context: CallContext) -> ToolOutput:
        """Check all edits, then write the files; if one fails, restore those written before."""
        self.effects(params, context)
        files = await _planned_files(params, context)
        written = await _write(files, context)
        for file, digest in zip(files, written, strict=True):
            remember_edit(file.before, file.data, digest, file.known, context)
        return ToolOutput((Text("\n\n".join(_change_text(file, context) for file in files)),))

    async def is_in_place(self, params: MultiEditParams, context: CallContext | None) -> bool:
        """Whether the files have all new texts already. Without a context none is read. Raises `ToolError`."""
        from bradawl.tools.editing.in_place import is_made
        from bradawl.tools.editing.plan import Change

        changes = [(edit.file_path, Change(edit.old_string, edit.new_string)) for edit in params.edits]
        return all([await is_made(path, change, context) for path, change in changes])


def _wrong_by_itself(edit: Edit) -> str:
    from bradawl.tools.editing.plan import Change, check_change

    try:
        check_change(Change(edit.old_string, edit.new_string))
    except ToolError as error:
        return str(error)
    return ""


def _refusal(problems: list[str], count: int) -> ToolError:
    rest = count - len(problems)
    others = "" if not rest else f"\nThe other {rest} would be possible; send all of them again, mended."
    return ToolError(
        f"{len(problems)} of {count} edits can't be made, so no file was changed.\n"
        + _NOTHING.sub("", "\n".join(problems))
        + others
    )


async def _planned_files(params: MultiEditParams, context: CallContext) -> list[PlannedFile]:
    """The new content of every file. Raises `ToolError` that names each edit that can't be made."""
    from bradawl.tools.editing.preconditions import allowed_path

    files: dict[str, PlannedFile] = {}
    unreadable: set[str] = set()
    problems: list[str] = []
    for number, edit in enumerate(params.edits, 1):
        try:
            path = allowed_path(edit.file_path, context)
            files[path] = files.get(path) or await _planned_file(path, edit.file_path, params, context, unreadable)
            _apply(files[path], edit, number, context)
        except ToolError as error:
            problems.append(f"edit {number}, {edit.file_path}: {error}")
    for file in files.values() if not problems else ():
        try:
            await _check_syntax(file, context)
        except ToolError as error:
            problems.append(f"{file.given}: {error}")
    if problems:
        raise _refusal(problems, len(params.edits))
    return list(files.values())


async def _planned_file(
    path: str, given: str, params: MultiEditParams, context: CallContext, unreadable: set[str]
) -> PlannedFile:
    from bradawl.tools.editing.preconditions import known_for

    if path in unreadable:
        raise ToolError("the same file, see above")
    unreadable.add(path)
    content = await read_for_edit(path, given, context)
    edits = [_as_change(edit) for edit in params.edits if context.resolve(edit.file_path) == path]
    known = known_for(edits, content, context)
    unreadable.remove(path)
    return PlannedFile(content, given, content.data, known)


def _as_change(edit: Edit) -> "Change":
    from bradawl.tools.editing.plan import Change

    return Change(edit.old_string, edit.new_string, edit.replace_all)


def _apply(file: PlannedFile, edit: Edit, number: int, context: CallContext) -> None:
    from bradawl.tools.editing.plan import plan

    planned = plan(file.data, _as_change(edit), context.relative(file.before.path), is_last=False)
    file.data, file.planned = planned.data, planned
    file.adapted = planned if planned.is_adapted else file.adapted
    if planned.note:
        file.notes += (f"edit {number}: {planned.note}",)


async def _check_syntax(file: PlannedFile, context: CallContext) -> None:
    from bradawl.tools.editing.plan import check_syntax, check_with_grammar

    if file.adapted is not None:
        last = msgspec.structs.replace(file.adapted, data=file.data)
        check_syntax(file.before.data, last, context.relative(file.before.path))
        await check_with_grammar(file.before, last, context)


async def _write(files: list[PlannedFile], context: CallContext) -> list[str]:
    done: list[str] = []
    for place, file in enumerate(files):
        try:
            with named_as_given(file.before.path, file.given, context):
                done.append(await context.files.replace(file.before.path, file.data, file.before.sha256))
        except ToolError as error:
            raise ToolError(f"{error}\n{await _undo(files[:place], context)}") from None
        except BaseException:
            # Cancelled: the last replacement may have been made, so it is undone as well.
            await _undo(files[: place + 1], context)
            raise
    return done


async def _undo(files: list[PlannedFile], context: CallContext) -> str:
    """Restore the files, except those that something else has changed since; returns a text about their state."""
    from hashlib import sha256

    standing: list[str] = []
    for file in files:
        try:
            await context.files.replace(file.before.path, file.before.data, sha256(file.data).hexdigest())
        except ToolError as error:
            standing.append(f"{context.relative(file.before.path)} is changed and could not be put back: {error}")
    if standing:
        return "\n".join(standing)
    return "No file is changed: those already written were put back." if files else "No file was changed."


def _change_text(file: PlannedFile, context: CallContext) -> str:
    planned = file.planned
    if planned is None:
        raise AssertionError("a file has at least one edit")
    planned = msgspec.structs.replace(planned, note="; ".join(file.notes))
    return change_text(file.before, planned, file.known, context)
