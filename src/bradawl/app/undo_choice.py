"""Chooses the steps that an undo takes back, and what of them can go back."""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from bradawl.app.undo_line import UndoLine
from bradawl.app.undo_plan import NothingToUndo, UndoRefused
from bradawl.app.undo_text import label_of, unknown_text
from bradawl.folds.undo_history import CallChange, Part, UndoHistory, Undone, UndoStep

_EMPTY: Final = "There is nothing to undo: the session has no steps."


def named_step(history: UndoHistory, name: str, line: UndoLine) -> UndoStep:
    """The step with this name. Raises `UndoRefused`."""
    step = history.named(name)
    if step is None:
        listed = f"/rewind and `{structs.replace(line.of('', 'both'), forced=()).command('--list')}` list them"
        raise UndoRefused(f"There is no step {name[:20]}; {listed}." if history.steps else _EMPTY)
    return step


def chosen_step(history: UndoHistory, line: UndoLine, *, is_late: bool = False) -> UndoStep:
    """The step that a line names; without one the last step that changed files, or the last prompt for `talk`.

    `is_late`: a search for changes did not end in time, and still may. Raises `UndoRefused`, without a name also if it
    is not known what a later step changed.
    """
    if line.step:
        return named_step(history, line.step, line)
    if not history.steps:
        raise NothingToUndo(_EMPTY)
    if line.part == "talk":
        if (last := history.last_prompt()) is None:
            raise UndoRefused("There is no prompt left in the conversation.")
        return last
    if (last := history.last_changed()) is None:
        missed = _missed_text(history.applied)
        if history.has_undone:
            redo = f" /redo takes the last undo back (outside of a conversation: {line.redo().command()})."
            said = f"what the steps changed was undone already.{redo if history.undone else ''}"
        else:
            said = "no step has changed a file that was saved."
        raise NothingToUndo(f"There is nothing to undo: {said}{missed}")
    if (unknown := history.unknown_since(last)) is not None:
        raise UndoRefused(unknown_text(history, last, unknown, line, is_late=is_late))
    return last


def possible_part(
    history: UndoHistory, step: UndoStep, part: Part, calls: Sequence[CallChange], *, has_rest: bool
) -> Part:
    """What can go back of what was asked for. Raises `UndoRefused` for nothing."""
    has_files = has_rest or any(call.ref for call in calls)
    wants_files, wants_talk = part != "talk" and has_files, part != "code" and history.can_take_back_conversation(step)
    if wants_files and wants_talk:
        return "both"
    if wants_files:
        return "code"
    if wants_talk:
        return "talk"
    if part == "code":
        raise UndoRefused(f"No file has changed since step {step.name} that undo can restore.{_missed_text(calls)}")
    raise UndoRefused(f"Step {step.name} is not in the conversation any more.{_missed_text(calls)}")


def _missed_text(calls: Sequence[CallChange]) -> str:
    """What the last of these calls may have changed that is not saved, as a further sentence; else empty."""
    missed = (each for each in reversed(calls) if each.uncovered)
    return next((f" Not covered: {label_of(each)}: {each.uncovered}" for each in missed), "")


def redone_calls(history: UndoHistory, last: Undone) -> tuple[CallChange, ...]:
    """The calls whose changes a redo brings back, oldest first."""
    present = set(history.applied)
    return tuple(call for call in last.applied if call not in present)


def undone_calls(history: UndoHistory) -> tuple[CallChange, ...]:
    """The calls whose changes were undone since the last prompt and not redone, oldest first."""
    present = set(history.applied)
    return tuple(call for call in (history.undone[0].applied if history.undone else ()) if call not in present)


def uncovered_texts(calls: Sequence[CallChange], jobs: Sequence[str]) -> tuple[str, ...]:
    """Sentences about what calls without a change record, and jobs with these commands, may have changed."""
    # The records of the other calls, and so the plan of the files, have the same sentences.
    said = dict.fromkeys(f"{label_of(call)}: {call.uncovered}" for call in calls if call.uncovered and not call.ref)
    said |= dict.fromkeys(f"A background job ran: {job}" for job in jobs)
    return tuple(said)


def jobs_from(history: UndoHistory, step: UndoStep) -> tuple[str, ...]:
    """Commands of the background jobs that were started since this step and are not undone yet, oldest first."""
    undone = [each.to for each in history.undone if each.part != "talk"]
    steps = (each for each in history.steps if each.start >= step.start)
    left = (each for each in steps if each.is_in_conversation or history.changes_of(each))
    return tuple(job for each in left if all(each.start < to for to in undone) for job in each.jobs)


def prompts_from(history: UndoHistory, step: UndoStep) -> tuple[str, ...]:
    """The prompts that leave the conversation with this step, oldest first."""
    gone = (each for each in history.steps if each.is_in_conversation and each.start >= step.start)
    return tuple(each.prompt for each in gone if each.number == 1)
