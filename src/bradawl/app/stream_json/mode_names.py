"""Permission modes under the names that Claude Code gives them."""

from collections.abc import Mapping
from typing import Final

from bradawl.app.stream_json.lines import Mode as ModeName
from bradawl.core.permissions import Mode

_NAMES: Final[Mapping[Mode, ModeName]] = {
    "default": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "auto": "auto",
    "bypass": "bypassPermissions",
}


def mode_name(mode: Mode) -> ModeName:
    """The mode's name in the stream."""
    return _NAMES[mode]
