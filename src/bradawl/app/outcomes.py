"""How a turn ended, in words for the user; the same for every front end."""

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from bradawl.app.rendering import failure_text, one_line
from bradawl.safety.name_lists import first_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bradawl.agent.session import TurnResult


class Denied(NamedTuple):
    """A call that was refused for lack of a user."""

    label: str
    """The call on one line, cleaned."""
    hosts: tuple[str, ...] = ()
    """Hosts that its command was refused; without any the whole call was."""


class Outcome(NamedTuple):
    """What to tell the user after a turn."""

    kind: Literal["completed", "cancelled", "stopped", "failed"]
    """`stopped`: by a limit or a refusal; `failed`: by an error."""
    text: str = ""
    """Cleaned, on one line; empty if there is nothing to tell."""


COMPLETED: Final = Outcome("completed")


def outcome_of(turn: "TurnResult", *, user_is_there: bool, refusal: str = "", denials: str = "") -> Outcome:
    """The outcome of a turn. With a user it says how to continue in the conversation, without one what to do next time.

    `refusal` is the model's text if it refused and the front end has not shown it; `denials` is `denials_text`.
    """
    if turn.reason == "completed":
        return COMPLETED if turn.saved or user_is_there else Outcome("completed", f"{_NOT_SAVED}; {_WHOLE}")
    outcome = _outcome(turn, user_is_there=user_is_there, refusal=refusal, denials=denials)
    return outcome if turn.saved or user_is_there else Outcome(outcome.kind, f"{outcome.text} {_NOT_SAVED}.")


def _outcome(turn: "TurnResult", *, user_is_there: bool, refusal: str, denials: str) -> Outcome:
    match turn.reason:
        case "steps" | "budget" | "time" | "limit":
            next_step = "; say `go on` to continue" if user_is_there else _FLAGS.get(turn.reason, "")
            return Outcome("stopped", f"The limit of {_limit(turn)} is reached{next_step}.")
        case "refused":
            return _refused(turn, user_is_there=user_is_there, refusal=refusal, denials=denials)
        case "cancelled":
            text = "Interrupted. What was done so far is kept." if user_is_there else _INTERRUPTED
            return Outcome("cancelled", text)
        case "interrupted" if not user_is_there:
            return Outcome("cancelled", _INTERRUPTED)
        case _:
            return Outcome("failed", failure_text(turn.failure))


_NOT_SAVED: Final = "The session could not be saved, so undo may not know what it changed"
_WHOLE: Final = "the answer itself is whole."
_INTERRUPTED: Final = "The run was interrupted."
_FLAGS: Final = {"steps": "; --max-steps sets another"}


def _limit(turn: "TurnResult") -> str:
    return turn.reason if turn.limit is None else one_line(turn.limit.limit)


def gave_up(turn: "TurnResult") -> bool:
    """Whether the model gave up on a refused call. A refusal of the model or its provider is a failure of the turn."""
    return turn.reason == "refused" and turn.failure is None and bool(turn.denials)


def _refused(turn: "TurnResult", *, user_is_there: bool, refusal: str, denials: str) -> Outcome:
    if gave_up(turn):
        return Outcome("stopped", "The turn ended because a question was not answered." if user_is_there else denials)
    more = f" {denials}" if denials and not user_is_there else ""
    if refusal.strip():
        return Outcome("stopped", f"The model refused: {one_line(refusal)}{more}")
    if turn.failure is not None:
        return Outcome("failed", f"{failure_text(turn.failure)}{more}")
    return Outcome("stopped", f"The model refused.{more}")


def denials_text(turn: "TurnResult", denials: "Sequence[Denied]", advice: str) -> str:
    """How the turn ended with its refused calls, which they are, and the advice; on one line.

    For example `done without 1 refused call: bash(git push). No user is present to be asked; ...`.
    """
    shown = first_of([_named(each) for each in denials], _SHOWN)
    count = f"{len(denials)} refused call{'' if len(denials) == 1 else 's'}"
    what = "refused connections" if all(each.hosts for each in denials) else count
    ended = "the model stopped at " if gave_up(turn) else "done without " if turn.reason == "completed" else ""
    return f"{ended}{what}: {shown}. {advice}"


def _named(call: Denied) -> str:
    return f"{call.label} to {first_of(call.hosts, _SHOWN)}" if call.hosts else call.label


_SHOWN: Final = 3
