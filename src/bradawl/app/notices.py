"""The one stream of warnings of a run, from the settings to the last turn."""

from bradawl.app.progress import MAIN
from bradawl.core.deltas import Notice
from bradawl.core.events import Live
from bradawl.core.ports import Emit


class NoticeStream:
    """Call it with a warning: `emit` gets it as `Live(Notice)`."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        """Replaced when a front end takes over."""

    def __call__(self, text: str) -> None:
        """Emit one warning at once."""
        self.emit(Live(MAIN, -1, Notice(text)))
