"""Files as one call may see them: its paths lead where they led when it was judged, or nowhere."""

from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import ToolError
from bradawl.core.ports import Files


class JudgedFiles:
    """`Files` for a call that declares which files it touches: `resolve` finds no others any more."""

    def __init__(self, files: Files, effects: Effects) -> None:
        """Programs resolve paths by themselves: a call that runs some, or declares no paths, is not held to any."""
        self._files = files
        runs = effects.unknown or effects.commands or effects.seal
        self._places = () if runs else (*effects.reads, *effects.writes)
        self.read = files.read
        self.replace = files.replace
        self.list = files.list

    def resolve(self, path: str, cwd: str) -> str:
        """Raises `ToolError` also for a path that leads elsewhere than when the call was allowed."""
        real = self._files.resolve(path, cwd)
        if self._places and not any(is_within(real, place) for place in self._places):
            raise ToolError(
                f"{path} has changed since it was checked: it leads to {real} now; nothing was done, so try again"
            )
        return real
