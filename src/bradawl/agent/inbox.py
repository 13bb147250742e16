"""The notes that wait for the model's next step."""

from collections import deque

from bradawl.core.messages import Note


class QueueInbox:
    """`Inbox` in memory: keeps notes in order of arrival until a step boundary takes them."""

    def __init__(self) -> None:
        self._waiting: deque[Note] = deque()

    def put(self, note: Note) -> None:
        """Queue a note."""
        self._waiting.append(note)

    def drain(self) -> tuple[Note, ...]:
        """Remove and return all waiting notes, oldest first."""
        notes = tuple(self._waiting)
        self._waiting.clear()
        return notes

    def take_back(self) -> Note | None:
        """Remove and return the latest waiting note of the user."""
        note = next((each for each in reversed(self._waiting) if each.source == "user"), None)
        if note is not None:
            self._waiting.remove(note)
        return note

    @property
    def waiting(self) -> tuple[Note, ...]:
        """The waiting notes, oldest first; they stay in the queue."""
        return tuple(self._waiting)

    @property
    def holds_user_note(self) -> bool:
        """True if a note of the user has not been delivered to the model yet."""
        return any(note.source == "user" for note in self._waiting)
