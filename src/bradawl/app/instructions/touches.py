"""What the calls of a conversation touched since the last look, as a fold over its events."""

from typing import NamedTuple

from bradawl.core.effects import Effects
from bradawl.core.events import CallPrepared, Cwd, Event, StateChanged, ToolFinished


class Touched(NamedTuple):
    """What was touched in a stretch of a conversation."""

    paths: tuple[str, ...]
    """What calls read, listed, searched or changed, and folders that became the working directory, in order."""
    may_have_changed: bool
    """Files may have changed."""
    wrote: frozenset[str]
    """Files that calls changed, as far as they say."""


class Touches:
    """Collects what calls touch. Refused calls touch nothing."""

    def __init__(self) -> None:
        self._calls: dict[str, Effects] = {}
        self._paths: dict[str, None] = {}
        self._may_have_changed = False
        self.wrote: dict[str, None] = {}
        """Files that calls changed since the last look, as far as they say."""

    def learn(self, event: Event) -> None:
        """Take an event of the conversation."""
        match event:
            case CallPrepared(call_id=call_id, effects=effects):
                self._calls[call_id] = effects
            case ToolFinished(call_id=call_id, outcome=outcome):
                effects = self._calls.pop(call_id, None)
                if effects is not None and outcome != "refused":
                    self._add(effects)
            case StateChanged(Cwd(path)):
                self._paths[path] = None
            case _:
                pass

    def begin_turn(self) -> None:
        """Any file may have changed since the last turn."""
        self._may_have_changed = True

    def take(self) -> Touched:
        """What was touched since the last call of this method."""
        taken = Touched(tuple(self._paths), self._may_have_changed, frozenset(self.wrote))
        self._paths, self._may_have_changed, self.wrote = {}, False, {}
        return taken

    def _add(self, effects: Effects) -> None:
        self._paths.update(dict.fromkeys((*effects.reads, *effects.writes)))
        if effects.is_read_only:
            return
        self._may_have_changed = True
        self.wrote.update(dict.fromkeys(effects.writes))
