"""Builds undo for the sessions of an agent."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bradawl.agent.given_changes import GivenChanges
from bradawl.app.build.workspace import folders_of
from bradawl.app.undo import Undo
from bradawl.app.undo_line import LAST_SESSION, UndoLine
from bradawl.core.errors import SettingsError
from bradawl.core.ports import SessionStore

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.app.settings.settings import Settings
    from bradawl.app.undo_sessions import ChangedSessions
    from bradawl.checkpoints.record import ChangeRecord
    from bradawl.checkpoints.store import ContentStore


def build_undo(session: "Session", settings: "Settings", line: UndoLine = LAST_SESSION) -> Undo:
    """Undo for a session of an agent that `build_agent` made with these settings.

    Texts that name commands repeat what `line` says about the session and its folders. Placeholders that the sandbox of
    a killed agent left in the workspace are removed.
    Raises `SettingsError`, also if the agent was built with a `changes` of the caller.
    """
    if isinstance(session.agent.changes, GivenChanges):
        raise SettingsError(
            "The agent was built with a `changes` of your own, whose records undo can't read. Restore the files "
            "yourself, and then move the conversation with `Session.rewind`."
        )
    from bradawl.sandbox.mounts.placeholders import PlaceholderStore

    folders = folders_of(settings)
    PlaceholderStore(folders.state).clean_up_after_others()  # a folder that a killed agent made would not be empty
    return Undo(
        session,
        lambda: _content_store(folders.checkpoints),
        folders.roots,
        _compare,
        partial(_restores_elsewhere, session, folders.checkpoints),
        line,
    )


def _restores_elsewhere(session: "Session", folder: str, since_ms: int) -> "list[ChangeRecord]":
    """What undos and redos of other sessions of the project restored since then."""
    from bradawl.app.undo_sessions import SessionLogs, undo_refs
    from bradawl.checkpoints.errors import StoreError
    from bradawl.session.store import LocalStore

    store = session.agent.store
    found: list[ChangeRecord] = []
    if isinstance(store, LocalStore):
        refs = tuple(undo_refs(SessionLogs(store.containing, store.entries), session.id, since_ms))
        with _content_store(folder) as contents:
            for ref in refs:
                with contextlib.suppress(StoreError):  # dropped to keep the quota
                    found.append(contents.record(ref))
    return found


@contextlib.contextmanager
def build_changed_sessions(store: SessionStore, settings: "Settings") -> Iterator["ChangedSessions | None"]:
    """The sessions of the folder with changes that are not undone; None if the store is not on the disk."""
    from bradawl.app.undo_restore import changes_of
    from bradawl.app.undo_sessions import ChangedSessions, SessionLogs
    from bradawl.session.store import LocalStore

    if not isinstance(store, LocalStore):
        yield None
        return
    with _content_store(folders_of(settings).checkpoints) as contents:
        logs = SessionLogs(store.containing, store.entries, store.interrupted)
        yield ChangedSessions(logs, lambda calls: changes_of(calls, contents))


def folder_with_sessions(store: SessionStore, cwd: str) -> str:
    """The innermost folder above one that has sessions; empty for none."""
    from bradawl.session.store import LocalStore

    if not isinstance(store, LocalStore):
        return ""
    return next((str(folder) for folder in Path(cwd).parents if store.of(folder).latest() is not None), "")


def other_sessions_text(session: "Session", settings: "Settings") -> str:
    """A sentence that names other sessions of the folder that changed files; empty if there are none."""
    with build_changed_sessions(session.agent.store, settings) as sessions:
        return sessions.others_text(session.id) if sessions is not None else ""


def _content_store(folder: str) -> "ContentStore":
    from bradawl.checkpoints.store import ContentStore

    return ContentStore(Path(folder))


def _compare(before: str, after: str) -> tuple[int, int, str]:
    from bradawl.tools.editing.diffs import describe_change

    return describe_change(before, after)
