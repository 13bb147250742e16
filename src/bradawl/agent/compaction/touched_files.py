"""The files that a session has changed or read, as they are on the disk now."""

from bradawl.core.errors import ToolError
from bradawl.core.events import Pin
from bradawl.core.ports import Files
from bradawl.core.rules import Rule, speaks_of
from bradawl.folds.session_state import SessionState
from bradawl.folds.work import FileChanged
from bradawl.shaping.compaction.summary import harmless
from bradawl.shaping.ruled_files import names_of
from bradawl.shaping.tokens import estimate

_MOST_LISTED = 40
_MOST_NAMED = 200
_MOST_RESTORED = 5
_MOST_TOKENS = 5_000
"""Of one restored file."""
_LIMIT_BYTES = 200_000
_MOST_TRIED = 20
_SMALLEST_ROOM = 100


class TouchedFiles:
    """The files of one conversation. Files that a rule refuses or asks about are not read."""

    def __init__(self, files: Files, state: SessionState, rules: tuple[Rule, ...]) -> None:
        """`rules` are those about paths."""
        self._files, self._state, self._name_of = files, state, names_of(files)
        self._refused = tuple(rule for rule in rules if rule.on == "read" and rule.verdict != "allow")

    async def changed(self) -> list[str]:
        """A line for each file that calls changed, the last first, with what became of it since."""
        last_first = list(reversed(self._state.work.files_changed.items()))
        lines = [
            f"{self._shown(path)}: {_did(changed)}; {await self._now(path)}"
            for path, changed in last_first[:_MOST_LISTED]
        ]
        if before := last_first[_MOST_LISTED:]:
            named = ", ".join(self._shown(path) for path, _ in before[:_MOST_NAMED])
            lines.append(f"and {len(before)} before: {named}{', ...' if len(before) > _MOST_NAMED else ''}")
        if count := self._state.work.unlisted_changes:
            lines.append(f"{count} command{'s' * (count != 1)} changed files too, which are not listed: see git status")
        return lines

    async def restored(self, room: int, shown: str) -> list[Pin]:
        """The files that the model changed or read last, if they are still as it saw them: at most `room` tokens.

        `shown` is what the conversation shows anyway; a file that is in it is left out.
        """
        found: list[Pin] = []
        seen = self._state.files_seen
        last_first = dict.fromkeys((*reversed(self._state.work.files_changed), *reversed(seen)))
        for path in [path for path in last_first if path in seen][:_MOST_TRIED]:
            if len(found) == _MOST_RESTORED or room < _SMALLEST_ROOM:
                break
            text = await self._unchanged(path, seen[path])
            tokens = estimate(text)
            if not text or text in shown or tokens > min(room, _MOST_TOKENS):
                continue
            name = harmless(" ".join(self._shown(path).split())).replace('"', "'")
            found.append(Pin(f"file:{path}", "restored", f'<file path="{name}" state="as it is now">\n{text}\n</file>'))
            room -= tokens + 20
        return found

    def session(self) -> list[str]:
        """Lines about the working directory, exported variables and running jobs; those that are as usual left out."""
        state = self._state
        lines = [f"working directory: {self._name_of(state.cwd)}"] if state.cwd != state.project else []
        if exported := [name for name, value in state.env.items() if value is not None]:
            lines.append(f"exported for commands: {', '.join(exported)}")
        return [*lines, *(f"{job} runs: {command}" for job, command in state.work.running_jobs.items())]

    def _shown(self, path: str) -> str:
        folder = self._name_of(self._state.cwd or self._state.project).rstrip("/")
        return self._name_of(path).removeprefix(f"{folder}/")

    async def _now(self, path: str) -> str:
        try:
            content = await self._files.read(path, 50_000_000)
        except ToolError:
            return "it can't be read now"
        known = self._state.files_seen.get(path)
        if known is None:
            return "you have not read it since"
        return "as you left it" if known == content.sha256 else "it has changed since you saw it"

    async def _unchanged(self, path: str, sha256: str) -> str:
        """The text of a file that is as the model saw it; empty for another one."""
        if any(speaks_of(rule, path) for rule in self._refused):
            return ""
        try:
            content = await self._files.read(path, _LIMIT_BYTES)
            text = content.data.decode().strip("\n") if content.sha256 == sha256 else ""
        except (ToolError, UnicodeDecodeError):
            return ""
        return text if text == harmless(text) else ""  # a file could imitate what the user said


def _did(changed: FileChanged) -> str:
    times = "" if changed.times == 1 else f" {changed.times} times"
    return f"{'created' if changed.was_created else 'changed'}{times}"
