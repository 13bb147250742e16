"""What restores left that were killed: temporary files, opened folders, and sessions in which the user may go on."""

import contextlib
from collections.abc import Sequence

from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.restore_intent import (
    RestoreIntents,
    close_opened_folders,
    remove_temporary_files,
    unfinished_text,
)
from bradawl.checkpoints.store import ContentStore


class UnfinishedRestores:
    """The killed restores of all sessions in a store."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self._intents = RestoreIntents(store.folder)
        self._sessions: set[str] = set()

    def clean_up(self, roots: Sequence[bytes]) -> list[str]:
        """Remove temporary files and close folders. Returns a sentence for each restore, which the user finishes."""
        texts: list[str] = []
        with contextlib.suppress(OSError):
            for intent in self._intents.left_over():
                self._sessions.add(intent.session)
                with contextlib.suppress(StoreError):
                    changes = self._store.record(intent.ref).changes
                    remove_temporary_files(intent, [each.path for each in changes], roots)
                    close_opened_folders(intent, roots)
                texts.append(unfinished_text(intent, intent.session))
        return texts

    def forget(self, call_id: str) -> None:
        """A session that goes on with a call keeps the files as the restore left them."""
        for session in [session for session in self._sessions if call_id.startswith(f"{session}.")]:
            self._sessions.discard(session)
            with contextlib.suppress(OSError):
                self._intents.abandon(session)
