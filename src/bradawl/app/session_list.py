"""The sessions of a folder as the user sees them: name, first prompt, age, number of prompts."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from bradawl.app.rendering import cut, one_line
from bradawl.core.errors import SessionError
from bradawl.core.events import PromptSubmitted
from bradawl.core.messages import text_of
from bradawl.session.store import LocalStore, SessionSummary

MOST_BYTES: Final = 2_000_000_000
"""Of files that a list reads: some seconds."""
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_DAY_S: Final = 86_400
_SHOWN_CHARS: Final = 80


class ListedSession(NamedTuple):
    """A session in a list."""

    id: str
    title: str
    """The user's name for it, else its first prompt; for a fork that of its origin."""
    age: str
    """`5 min ago`."""
    prompts: int
    is_fork: bool
    preview: str
    """The first prompt."""

    @property
    def detail(self) -> str:
        """`5 min ago, 3 prompts`."""
        count = f"{self.prompts} prompt{'' if self.prompts == 1 else 's'}"
        return f"{self.age}, {count}{', a fork' if self.is_fork else ''}"

    def has(self, text: str) -> bool:
        """Whether its id begins with a text, or its name or first prompt holds it."""
        wanted = text.casefold()
        return self.id.casefold().startswith(wanted) or any(
            wanted in each.casefold() for each in (self.title, self.preview)
        )


def list_sessions(
    store: LocalStore, now_s: float, most_bytes: int = MOST_BYTES
) -> tuple[tuple[ListedSession, ...], bool]:
    """The sessions with a prompt, and forks, the last written first; and whether older ones were left out.

    Reads their files until there are more bytes, so call it in a thread.
    """
    found: list[ListedSession] = []
    for summary in store.list():
        if most_bytes <= 0:
            return tuple(found), True
        most_bytes -= summary.size_bytes
        if (one := _listed(store, summary, now_s)) is not None:
            found.append(one)
    return tuple(found), False


def _listed(store: LocalStore, summary: SessionSummary, now_s: float) -> ListedSession | None:
    try:
        details = store.details(summary.id)
    except OSError:
        return None
    if not details.prompts and not details.forked_from:
        return None
    preview = summary.preview
    if details.forked_from:
        preview = _first_prompt(store, summary.id) or preview
    title = cut(one_line(details.name or preview), _SHOWN_CHARS) or "(no text)"
    age = age_text(now_s - summary.modified_s)
    return ListedSession(summary.id, title, age, details.prompts, bool(details.forked_from), preview)


def _first_prompt(store: LocalStore, session_id: str) -> str:
    """Of a fork that is the first prompt of its origin."""
    try:
        events = (entry.event for entry in store.entries(session_id))
        return next((one_line(text_of(each.parts)) for each in events if isinstance(each, PromptSubmitted)), "")
    except SessionError:
        return ""


def age_text(seconds: float) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `2 days ago`."""
    if seconds < _MINUTE_S:
        return "just now"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S:.0f} min ago"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S:.0f} h ago"
    days = int(seconds // _DAY_S)
    return f"{days} day{'' if days == 1 else 's'} ago"


def session_lines(sessions: Sequence[ListedSession], here: str) -> list[str]:
    """Two lines for each session; `here` is the id of the one that is open."""
    lines: list[str] = []
    for each in sessions:
        mark = " (this one)" if each.id == here else ""
        lines += [f"{each.id}  {each.detail}{mark}", f"  {each.title}"]
    return lines
