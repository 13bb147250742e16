"""Checks before a change: the model has seen the current content, and the path is the one that was allowed."""

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import FileContent
from bradawl.tools.editing.diffs import change_between
from bradawl.tools.reading.decoding import encoding_of


def check_unchanged(content: FileContent, context: CallContext) -> None:
    """Raises `ToolError` if the model has seen the file, but not with this content; the error shows what changed. If it
    shows all of it, the content counts as seen.
    """
    if context.seen.sha256(content.path) is None or context.seen.has_seen(content):
        return
    shown = context.relative(content.path)
    before = context.seen.data(content.path)
    start = f"{shown} has changed since you last saw it; nothing was written."
    if before is None:
        raise ToolError(f"{start} read_file it again, then repeat the change on what it is now")
    try:
        change = change_between(*(encoding_of(data, shown).decode(data) for data in (before, content.data)))
    except ToolError:
        raise ToolError(f"{start} It is not text any more; examine it with bash") from None
    changes = change.text or "(only its line ends, its mark or its encoding)"
    if not change.is_whole:
        raise ToolError(
            f"{start} What changed:\n{changes}\nread_file it again, then repeat the change on what it is now"
        )
    context.seen.saw(content)
    raise ToolError(f"{start} What changed:\n{changes}\nRepeat the change if it still fits, or adapt it to this")


def allowed_path(given: str, context: CallContext) -> str:
    """The path that `given` resolves to. Raises `ToolError` if the call was not allowed to write it."""
    path = context.resolve(given)
    granted = context.grant.writable if context.grant is not None else ()
    if granted and not any(path == place or path.startswith(place.rstrip("/") + "/") for place in granted):
        raise ToolError(
            f"{given} leads to {path} now, which is not where it led when the call was allowed; nothing was written"
        )
    return path
