"""What became of the calls of a turn: whether the model gave up on those that no user was there to allow."""

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.events import CallPrepared, Event, Outcome, PermissionDecided, PromptSubmitted, ToolFinished


class _Attempt(msgspec.Struct):
    """One call of the turn. A turn may have thousands, so their effects are not kept."""

    step: int
    acts: bool
    """It is to do something outside of the session. What a sub-agent does is in its own calls."""
    runs: bool
    """It runs a program whose effects are not known, such as a test."""
    writes: bool
    outcome: Outcome | None = None
    has_failed_part: bool = False
    lacked_user: bool = False
    """The call, or something its command did, was denied because no user was there."""
    inner: "tuple[Attempts, ...]" = ()
    """The calls of the sub-agents that it started."""

    @property
    def was_refused(self) -> bool:
        """A command that was refused a connection and succeeded all the same counts as done."""
        if self.outcome == "ok":
            return False
        return self.lacked_user or any(inner.gave_up for inner in self.inner)

    @property
    def has_acted(self) -> bool:
        """It succeeded, and did more than read and keep notes."""
        return self.outcome == "ok" and (self.acts or any(inner.has_acted for inner in self.inner))


class Attempts:
    """The calls of one agent's last turn, as a fold over its events; `take` updates it in place."""

    def __init__(self) -> None:
        self._made: list[_Attempt] = []
        """In the order of the calls, which does not depend on how long each took."""
        self._by_id: dict[str, _Attempt] = {}

    def take(self, event: Event) -> None:
        """Apply one event. A prompt begins a new turn."""
        match event:
            case PromptSubmitted():
                self._made.clear()
                self._by_id.clear()
            case CallPrepared(call_id, step, effects=effects):
                self._by_id[call_id] = attempt = _attempt(step, effects)  # models use ids again
                self._made.append(attempt)
            case PermissionDecided(call_id, "deny", "nobody") if call_id in self._by_id:
                self._by_id[call_id].lacked_user = True
            case ToolFinished(call_id, outcome, has_failed_part=has_failed_part) if call_id in self._by_id:
                self._by_id[call_id].outcome = outcome
                self._by_id[call_id].has_failed_part = has_failed_part
            case _:
                pass

    def is_first_denied(self, call_id: str) -> bool:
        """Whether a call that was denied for lack of a user is the only such one of its reply so far."""
        step = self._by_id[call_id].step if call_id in self._by_id else None
        return sum(attempt.lacked_user for attempt in self._made if attempt.step == step) == 1

    def add_sub_agent(self, call_id: str, inner: "Attempts") -> None:
        """Add the calls of the sub-agent that a call started."""
        if call_id in self._by_id:
            self._by_id[call_id].inner += (inner,)

    @property
    def has_acted(self) -> bool:
        """Whether a call succeeded that did more than read."""
        return any(attempt.has_acted for attempt in self._made)

    @property
    def gave_up(self) -> bool:
        """Whether the model stopped at a refused call: afterwards nothing succeeded that does more than read.

        False if the work was checked: a call changed files, and the last program that ran since then succeeded in all
        its parts (`npm test | tail` succeeds whatever the tests do). Calls of the same reply as the refused one are not
        another way: the model did not know of the refusal.
        """
        refused_in: int | None = None
        for attempt in self._made:
            if attempt.was_refused:
                refused_in = attempt.step
            elif refused_in is not None and attempt.step > refused_in and attempt.has_acted:
                refused_in = None
        return refused_in is not None and not self._changes()[1]

    def _changes(self) -> tuple[bool, bool]:
        """Whether the calls changed files, and whether the last program that ran since the last change succeeded."""
        has_changed = is_checked = False
        for attempt in self._made:
            for inner_changed, inner_checked in (inner._changes() for inner in attempt.inner):
                has_changed, is_checked = has_changed or inner_changed, inner_checked if inner_changed else is_checked
            if attempt.runs:
                if attempt.was_refused or attempt.outcome == "refused":
                    continue
                is_checked = has_changed and attempt.outcome == "ok" and not attempt.has_failed_part
                has_changed = has_changed or (attempt.outcome == "ok" and attempt.writes)
            elif attempt.outcome == "ok" and attempt.writes:
                has_changed, is_checked = True, False
        return has_changed, is_checked


def _attempt(step: int, effects: Effects) -> _Attempt:
    return _Attempt(
        step,
        acts=not msgspec.structs.replace(effects, session=(), spends=False).is_read_only,
        runs=effects.unknown or (bool(effects.commands) and not effects.understood),
        writes=bool(effects.writes),
    )
