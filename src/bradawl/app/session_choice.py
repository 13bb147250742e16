"""The session of a run: a new one, one to continue, or a copy of one (`--fork-session`), by the options of the run.

A session id has 128 bits. bradawl spells it in base 32; other agents spell theirs as UUIDs, which are understood too.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from bradawl.core.errors import SessionError, SessionNotFound, SettingsError
from bradawl.core.events import FORMAT_VERSION, SessionForked

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.core.ports import Ids

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MAIN: Final = "main"


def own_id(text: str) -> str:
    """The session id as bradawl spells it; a text that is no UUID is returned as it is."""
    if not re.fullmatch(_UUID, text.strip(), re.IGNORECASE):
        return text
    number = int(text.strip().replace("-", ""), 16)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def parse_new_id(text: str) -> str:
    """The id that a new session is to have. Raises `SettingsError`."""
    found = own_id(text).strip().upper()
    if re.fullmatch(f"[0-7][{_ALPHABET}]{{25}}", found):
        return found
    raise SettingsError(f"--session-id: {text[:60]!r} is no session id: give a UUID, or 26 characters as bradawl does.")


def shown_id(wanted: object, session_id: str) -> str:
    """The id for programs that read it: as `--session-id` spells it, if it names the session."""
    return wanted.strip() if isinstance(wanted, str) and own_id(wanted).strip().upper() == session_id else session_id


class FirstId:
    """`Ids` whose first id is given."""

    def __init__(self, ids: "Ids", first: str) -> None:
        self._ids, self._first = ids, first

    def ulid(self) -> str:
        """The given id, then new ones."""
        first, self._first = self._first, ""
        return first or self._ids.ulid()

    def draw(self) -> float:
        """Uniform in [0, 1)."""
        return self._ids.draw()


def kept_flags(options: Mapping[str, object]) -> frozenset[str]:
    """The settings that flags give and a session keeps for its later runs (`session_settings` records them)."""
    return frozenset(name for name in ("model", "effort", "context_window") if options.get(name) is not None)


def chosen_session(agent: "Agent", options: Mapping[str, object]) -> str | None:
    """Id of the session that the options name; None for a new one. A copy is made here. Raises `SessionError`."""
    origin = _origin(agent, options)
    if origin is None:
        _check_is_new(agent, options)
        return None
    if not options.get("fork_session"):
        return origin
    _check_is_new(agent, options)
    return _copy(agent, origin)


def _origin(agent: "Agent", options: Mapping[str, object]) -> str | None:
    if (resume := options.get("resume")) is not None:
        return own_id(cast("str", resume))
    if not options.get("continues"):
        return None
    latest = agent.store.latest()
    if latest is None:
        raise SessionNotFound("There is no session to continue in this folder; leave out -c to begin one.")
    return latest


def _check_is_new(agent: "Agent", options: Mapping[str, object]) -> None:
    wanted = options.get("session_id")
    if not isinstance(wanted, str):
        return
    try:
        agent.store.open(parse_new_id(wanted)).log.close()
    except SessionNotFound:
        return
    raise SessionError(f"There is a session {wanted} already; `--resume {wanted}` continues it.")


def _copy(agent: "Agent", origin: str) -> str:
    """A new session that continues the last entry of another one, which stays as it is. Raises `SessionError`."""
    opened = agent.store.open(origin)
    last = max((entry.seq for entry in opened.entries if entry.agent == _MAIN), default=None)
    opened.log.close()
    if last is None:
        raise SessionError(f"Session {origin} is empty, so there is nothing to copy.")
    copy = agent.store.create()
    project, version = agent.project, agent.version
    copy.log.append(SessionForked(FORMAT_VERSION, opened.log.session_id, last, project, project, version))
    if not copy.log.close():
        raise SessionError("The copy of the session can't be written to the disk; free some space, and try again.")
    return copy.log.session_id
