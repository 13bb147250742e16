"""Notes on their way into a session."""

from collections import deque

from bradawl.core.messages import Note


class QueueInbox:
    """Keeps notes in the order they came until a step boundary takes them."""

    def __init__(self) -> None:
        self._waiting: deque[Note] = deque()

    def put(self, note: Note) -> None:
        """Queue a note."""
        self._waiting.append(note)

    def drain(self) -> tuple[Note, ...]:
        """All waiting notes, oldest first."""
        notes = tuple(self._waiting)
        self._waiting.clear()
        return notes

    @property
    def waiting(self) -> tuple[Note, ...]:
        """What waits, oldest first; it stays."""
        return tuple(self._waiting)

    @property
    def holds_user_note(self) -> bool:
        """True when the user has said something the model has not seen."""
        return any(note.source == "user" for note in self._waiting)
