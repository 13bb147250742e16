"""Blocks of a session that were shown in an earlier run, from its log; each is drawn when it is looked at."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from bradawl.app.transcript_blocks import Block, Called, Prompt, Remark, Said, Thought, blocks_of
from bradawl.app.tui.live.printed import DrawnBlock
from bradawl.app.tui.live.running import Call
from bradawl.app.tui.render import blocks
from bradawl.app.tui.render.calls import INDENT
from bradawl.app.tui.render.cells import wrap
from bradawl.app.tui.render.markdown import markdown_lines
from bradawl.app.tui.render.theme import Theme
from bradawl.core.errors import SessionError
from bradawl.core.tools import ToolSpec
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.agent.session import Session

MOST_SHOWN: Final = 1_000_000
"""Characters of an output that are shown; the file has all of it."""


class Kept(NamedTuple):
    """All of an output that was cut for the model."""

    text: str
    path: str
    """The file that holds it."""


def reader_of(session: "Session") -> Callable[[str], Kept | None]:
    """Reads kept outputs of a session by their names; None for one that is not there any more."""

    def read(ref: str) -> Kept | None:
        try:
            return Kept(session.blobs.get(ref).decode("utf-8", "replace"), session.blobs.path(ref))
        except SessionError:
            return None

    return read


def earlier_blocks(
    session: "Session",
    before: int | None,
    specs: Mapping[str, ToolSpec],
    theme: Theme,
) -> list[DrawnBlock]:
    """The blocks of entries before one of the log, or of all. Raises `SessionError` if the log can't be read."""
    entries = session.conversation.entries()
    known = blocks_of(entry for entry in entries if before is None or entry.seq < before)
    read = reader_of(session)
    found = [_drawn(block, specs, theme, read) for block in known]
    return [each for each in found if each is not None]


def _drawn(
    block: Block, specs: Mapping[str, ToolSpec], theme: Theme, read: Callable[[str], Kept | None]
) -> DrawnBlock | None:
    match block:
        case Prompt(number, text):
            return "prompt" if number else "note", lambda width: blocks.prompt_lines(clean(text), theme, width)
        case Said(text):
            return "text", partial(markdown_lines, clean(text), theme)
        case Thought(text):
            return "thinking", lambda width: blocks.thinking_lines(clean(text), theme, width)
        case Remark(text):
            return "remark", lambda width: [theme.paint(line, "dim") for line in wrap(clean(text), width)]
        case Called(name, raw_arguments, finished=finished) if finished is not None:
            call = Call(specs.get(name) or ToolSpec(name), raw_arguments)
            call.finished = finished
            return "call", partial(lines_in_full, call, read, theme)
        case _:
            return None


def lines_in_full(call: Call, read: Callable[[str], Kept | None], theme: Theme, width: int) -> list[str]:
    """A call with all of its output, also what was cut for the model, and the file that holds it."""
    ref = call.finished.full_ref if call.finished is not None else None
    if ref is None or (kept := read(ref)) is None:
        return call.lines(theme, width, is_open=True)
    lines = call.lines(theme, width, is_open=True, output=kept.text[:MOST_SHOWN])
    left = len(kept.text) - MOST_SHOWN
    where = f"{f'{left:,} more characters; ' if left > 0 else ''}all of it: {kept.path}"
    return [*lines, *(INDENT + theme.paint(line, "dim") for line in wrap(clean(where), max(1, width - len(INDENT))))]
