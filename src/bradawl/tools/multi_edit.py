"""Several replacements, in one file or many, of which all are made or none."""

from typing import TYPE_CHECKING, Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import FileContent
from bradawl.tools.edit_file import EditFileParams, read_for_edit, remember_edit, told_change
from bradawl.tools.reading.naming import named_as_given

if TYPE_CHECKING:  # the engine loads with the first edit
    from bradawl.tools.editing.plan import Planned


class MultiEditParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several edits in one call, as edit_file makes them: all are checked first, and all are made or none."""

    edits: Annotated[
        tuple[EditFileParams, ...],
        msgspec.Meta(description="Made in this order; a later one sees what earlier ones of its file did."),
    ]


class Draft(msgspec.Struct):
    """One file while the edits are being checked; nothing is written yet."""

    before: FileContent
    given: str
    data: bytes
    planned: "Planned | None" = None
    notes: tuple[str, ...] = ()


class MultiEdit:
    """The tool `multi_edit`."""

    spec: ToolSpec = ToolSpec(
        "multi_edit", kind="write", rule_names=("Edit",), shows=("edits.file_path",), result="diff"
    )
    params: type[MultiEditParams] = MultiEditParams

    def effects(self, params: MultiEditParams, context: CallContext) -> Effects:
        """Writes all the files. Raises `ToolError` when there is nothing to do, or a string can't be an edit."""
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

    async def run(self, params: MultiEditParams, context: CallContext) -> ToolOutput:
        """Check everything, then replace file after file; what was replaced is put back if a later one fails."""
        self.effects(params, context)
        drafts = await _drafts(params, context)
        written = await _write(drafts, context)
        for draft, digest in zip(drafts, written, strict=True):
            remember_edit(draft.before, draft.data, digest, context)
        return ToolOutput((Text("\n\n".join(_told(draft, context) for draft in drafts)),))


def _wrong_by_itself(edit: EditFileParams) -> str:
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
        f"{len(problems)} of {count} edits can't be made, so no file was changed.\n" + "\n".join(problems) + others
    )


async def _drafts(params: MultiEditParams, context: CallContext) -> list[Draft]:
    """Every file as it would be. Raises `ToolError` that names each edit that can't be made."""
    from bradawl.tools.editing.seen import allowed_path

    drafts: dict[str, Draft] = {}
    unreadable: set[str] = set()
    problems: list[str] = []
    for number, edit in enumerate(params.edits, 1):
        try:
            path = allowed_path(edit.file_path, context)
            drafts[path] = drafts.get(path) or await _draft(path, edit.file_path, context, unreadable)
            _apply(drafts[path], edit, number, context)
        except ToolError as error:
            problems.append(f"edit {number}, {edit.file_path}: {error}")
    if problems:
        raise _refusal(problems, len(params.edits))
    return list(drafts.values())


async def _draft(path: str, given: str, context: CallContext, unreadable: set[str]) -> Draft:
    if path in unreadable:
        raise ToolError("the same file, see above")
    unreadable.add(path)
    content = await read_for_edit(path, given, context)
    unreadable.remove(path)
    return Draft(content, given, content.data)


def _apply(draft: Draft, edit: EditFileParams, number: int, context: CallContext) -> None:
    from bradawl.tools.editing.plan import Change, plan

    change = Change(edit.old_string, edit.new_string, edit.replace_all)
    planned = plan(draft.data, change, context.relative(draft.before.path))
    draft.data, draft.planned = planned.data, planned
    if planned.note:
        draft.notes += (f"edit {number}: {planned.note}",)


async def _write(drafts: list[Draft], context: CallContext) -> list[str]:
    done: list[str] = []
    for place, draft in enumerate(drafts):
        try:
            with named_as_given(draft.before.path, draft.given, context):
                done.append(await context.files.replace(draft.before.path, draft.data, draft.before.sha256))
        except ToolError as error:
            raise ToolError(f"{error}\n{await _undo(drafts[:place], context)}") from None
        except BaseException:
            # Cancelled: the replace under way may have been finished, so it is undone as well.
            await _undo(drafts[: place + 1], context)
            raise
    return done


async def _undo(drafts: list[Draft], context: CallContext) -> str:
    """Put back what was there, as far as nobody else has changed it since; says what stands now."""
    from hashlib import sha256

    standing: list[str] = []
    for draft in drafts:
        try:
            await context.files.replace(draft.before.path, draft.before.data, sha256(draft.data).hexdigest())
        except ToolError as error:
            standing.append(f"{context.relative(draft.before.path)} is changed and could not be put back: {error}")
    if standing:
        return "\n".join(standing)
    return "No file is changed: those already written were put back." if drafts else "No file was changed."


def _told(draft: Draft, context: CallContext) -> str:
    planned = draft.planned
    if planned is None:
        raise AssertionError("a draft has at least one edit")
    return told_change(draft.before, msgspec.structs.replace(planned, note="; ".join(draft.notes)), context)
