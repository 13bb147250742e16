"""The files that a session has changed or read, as they are on the disk now."""

from collections.abc import Mapping

from bradawl.core.errors import ToolError
from bradawl.core.events import Pin
from bradawl.core.ports import Files
from bradawl.folds.session_state import FileChanged, SessionState
from bradawl.shaping.compaction.summary import harmless
from bradawl.shaping.tokens import estimate

_MOST_LISTED = 40
_MOST_NAMED = 200
_MOST_RESTORED = 5
_MOST_TOKENS = 5_000
"""Of one restored file."""
_LIMIT_BYTES = 200_000


async def changed_files(files: Files, state: SessionState) -> list[str]:
    """A line for each file that calls changed, the last first, with what became of it since."""
    last_first = list(reversed(state.files_changed.items()))
    lines = [
        f"{_shown(path, state)}: {_did(changed)}; {await _now(files, path, state.files_seen)}"
        for path, changed in last_first[:_MOST_LISTED]
    ]
    if before := last_first[_MOST_LISTED:]:
        named = ", ".join(_shown(path, state) for path, _ in before[:_MOST_NAMED])
        lines.append(f"and {len(before)} before: {named}{', ...' if len(before) > _MOST_NAMED else ''}")
    return lines


def _shown(path: str, state: SessionState) -> str:
    return path.removeprefix(f"{(state.cwd or state.project).rstrip('/')}/")


def _did(changed: FileChanged) -> str:
    times = "" if changed.times == 1 else f" {changed.times} times"
    return f"{'created' if changed.was_created else 'changed'}{times}, last in step {changed.step}"


async def _now(files: Files, path: str, seen: Mapping[str, str]) -> str:
    try:
        content = await files.read(path, 50_000_000)
    except ToolError:
        return "it can't be read now"
    known = seen.get(path)
    if known is None:
        return "you have not read it since"
    return "as you left it" if known == content.sha256 else "it has changed since you saw it"


async def restored_files(files: Files, state: SessionState, room: int) -> list[Pin]:
    """The files that the model read or changed last, if they are still as it saw them: at most `room` tokens."""
    found: list[Pin] = []
    for path, sha256 in reversed(state.files_seen.items()):
        if len(found) == _MOST_RESTORED or room < 100:
            break
        text = await _unchanged(files, path, sha256)
        tokens = 0 if text is None else estimate(text)
        if text is None or tokens > min(room, _MOST_TOKENS):
            continue
        name = harmless(" ".join(_shown(path, state).split())).replace('"', "'")
        found.append(
            Pin(f"file:{path}", "restored", f'<file path="{name}" state="as it is now">\n{text.rstrip()}\n</file>')
        )
        room -= tokens + 20
    return found


async def _unchanged(files: Files, path: str, sha256: str) -> str | None:
    try:
        content = await files.read(path, _LIMIT_BYTES)
        text = content.data.decode() if content.sha256 == sha256 else ""
        return text if text and text == harmless(text) else None  # a file could imitate what the user said
    except (ToolError, UnicodeDecodeError):
        return None
