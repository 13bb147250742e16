"""Builds undo for the sessions of an agent."""

from pathlib import Path
from typing import TYPE_CHECKING

from bradawl.agent.given_changes import GivenChanges
from bradawl.app.build.workspace import folders_of
from bradawl.app.undo import Undo
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.app.settings.settings import Settings
    from bradawl.checkpoints.store import ContentStore


def build_undo(session: "Session", settings: "Settings") -> Undo:
    """Undo for a session of an agent that `build_agent` made with these settings.

    Raises `SettingsError`, also if the agent was built with a `changes` of the caller.
    """
    if isinstance(session.agent.changes, GivenChanges):
        raise SettingsError(
            "The agent was built with a `changes` of your own, whose records undo can't read. Restore the files "
            "yourself, and then move the conversation with `Session.rewind`."
        )
    folders = folders_of(settings)

    def open_store() -> "ContentStore":
        from bradawl.checkpoints.store import ContentStore

        return ContentStore(Path(folders.checkpoints))

    return Undo(session, open_store, folders.roots, _compare)


def _compare(before: str, after: str) -> tuple[int, int, str]:
    from bradawl.tools.editing.diffs import describe_change

    return describe_change(before, after)
