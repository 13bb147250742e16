"""The texts of undo for users, and the note for the model."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import structs

from bradawl.app.rendering import call_line, compaction_text, cut, one_line
from bradawl.app.undo_diff import kind_of, shown_path
from bradawl.app.undo_line import LAST_SESSION, UndoLine
from bradawl.app.undo_plan import UndoOutcome, UndoPlan, conflicts_of, has_only_conflicts, restores_nothing
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.core.events import Compacted, Envelope
from bradawl.core.tools import ToolSpec
from bradawl.folds.undo_history import CallChange, UndoHistory, UndoStep
from bradawl.safety.control_characters import escape
from bradawl.safety.name_lists import first_of

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import PlannedChange, RestorePlan

_WIDTH: Final = 100
_MOST_TURNS: Final = 40
_NO_END: Final = 2**63
_MOST_FILES: Final = 12
_MOST_OTHERS: Final = 6
"""Lines of git's data, of conflicts, of calls and of what is not covered: with the files about one screen."""
_IN_NOTE: Final = 10
_SHOWS: Final = ("edits.file_path",)
"""The files of `multi_edit`: the log does not say which argument a tool shows."""
_NEVER: Final = "Never covered: other folders, the network, databases, what was sent or installed elsewhere."
_PARTS: Final = {"code": "the files", "talk": "the conversation", "both": "the files and the conversation"}

_MAIN: Final = "main"

Count = Callable[[Sequence[CallChange]], "tuple[Change, ...] | None"]
"""The changes of calls; None if their records are not kept any more."""


def compactions_in(entries: Iterable[Envelope]) -> tuple[Envelope, ...]:
    """The compactions of the conversation, as `steps_text` takes them."""
    return tuple(each for each in entries if each.agent == _MAIN and isinstance(each.event, Compacted))


def steps_text(history: UndoHistory, count: Count, compactions: Sequence[Envelope] = ()) -> str:
    """The prompts of a session, and below each the steps that changed files and the compactions after it.

    `compactions` are the entries of `Compacted`.
    """
    turns: dict[int, list[UndoStep]] = {}
    for step in history.steps:
        turns.setdefault(step.turn, []).append(step)
    lines: list[str] = []
    starts = [steps[0].start for steps in turns.values()]
    ends = dict(zip(turns, (*starts[1:], _NO_END), strict=False))
    for steps in list(turns.values())[-_MOST_TURNS:]:
        first = steps[0]
        gone = "" if first.is_in_conversation else "  (taken back)"
        lines.append(cut(f"{first.name:<5} {time_text(first.at)}  {one_line(first.prompt)}", _WIDTH - len(gone)) + gone)
        lines += filter(None, (_step_line(step, history, count) for step in steps))
        lines += (_compaction_line(each) for each in compactions if first.start < each.seq <= ends[first.turn])
    if not lines:
        return "The session has no steps yet."
    hidden = len(turns) - _MOST_TURNS
    return "\n".join((*([f"... {hidden} earlier prompts"] if hidden > 0 else []), *lines))


def _compaction_line(entry: Envelope) -> str:
    text = compaction_text(entry.event) if isinstance(entry.event, Compacted) else ""
    return cut(f"  ----- {time_text(entry.at)}  {text}", _WIDTH)


def _step_line(step: UndoStep, history: UndoHistory, count: Count) -> str:
    calls = history.changes_of(step)
    if not calls:
        return ""
    saved = [call for call in calls if call.ref]
    changes = count(saved)
    counts = changes_text(changes) if saved else "not saved"
    labels = ", ".join(label_of(call) for call in _once(calls))
    return cut(f"  {step.name:<5} {counts}  {labels}", _WIDTH)


def _once(calls: Iterable[CallChange]) -> list[CallChange]:
    """The calls, each once: one that leaves a job running has several records."""
    return list({(call.call_id, call.prepared): call for call in calls}.values())


def changes_text(changes: Iterable[Change] | None) -> str:
    """`+1 ~2 -0`: files that were created, changed and removed. None: the records are gone."""
    if changes is None:
        return "not kept any more"
    found = Counter("+" if each.before is None else "-" if each.after is None else "~" for each in changes)
    return " ".join(f"{sign}{found[sign]}" for sign in "+~-")


def label_of(call: CallChange, width: int = 60) -> str:
    """A call with its arguments, cut to so many characters."""
    return call_line(ToolSpec(call.tool, shows=_SHOWS), call.raw_arguments, width) if call.tool else "a call"


def time_text(at_ms: int) -> str:
    """A time of today, or a date with the time, in the local zone; `at_ms` is Unix time in milliseconds."""
    at, now = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(), datetime.now(UTC).astimezone()
    return at.strftime("%H:%M" if at.date() == now.date() else "%Y-%m-%d %H:%M")


# ------------------------------------------------------------------ a plan


def plan_text(plan: UndoPlan, root: str) -> str:
    """What a plan would do, for a dry run: about one screen."""
    lock = [f"Nothing would be restored now: {plan.lock}"] if plan.lock else []
    return "\n".join([*lock, f"Would {_headline(plan)}", *_plan_lines(plan, root), *_coverage_lines(plan)])


def _headline(plan: UndoPlan) -> str:
    if plan.takes_back and plan.resumes is not None:
        return f"take back the {plan.resumes.kind} that stopped in the middle: {_PARTS[plan.part]}."
    if plan.resumes is not None:
        return f"finish the {plan.kind} that stopped in the middle{_since(plan)}: {_PARTS[plan.part]}."
    if plan.completes is not None:
        return f"restore what the last undo{_since(plan)}, could not."
    if plan.step is None:
        return f"redo the last undo: {_PARTS[plan.part]}."
    prompt = cut(one_line(plan.step.prompt), 50)
    return f'go back to before step {plan.step.name} ({time_text(plan.step.at)}, "{prompt}"): {_PARTS[plan.part]}.'


def _plan_lines(plan: UndoPlan, root: str) -> list[str]:
    calls = _once(plan.calls)
    lines = [f"  {label_of(call, _WIDTH - 4)}" for call in calls[:_MOST_OTHERS]]
    if more := len(calls) - len(lines):
        lines.append(f"  ... and {more} more calls")
    if len(plan.prompts) > 1:
        lines.append(f"{len(plan.prompts)} prompts leave the conversation.")
    if plan.files is None:
        return lines
    files = plan.files
    staying = set(files.staying)
    for title, changes, most in (("Files", files.changes, _MOST_FILES), ("Data of git", files.git, _MOST_OTHERS)):
        lines += _changes_group(title, [each for each in _agreed(changes) if each.path not in staying], root, most)
    conflicts = [f"! {shown_path(each.path, root)}: {each.conflict}" for each in files.conflicts if not each.job]
    lines += _group(
        "Changed by you or another program since, useless for git or maybe the only copy; restored only if you say so:",
        conflicts,
    )
    lines += [f"{text}; restored if you say so." for text in _texts_of_jobs(plan, root)]
    lines += _group(
        "Can't be removed:",
        [f"! {shown_path(path, root)}: it holds other files, so it stays" for path in files.staying],
    )
    return lines + _impossible_lines(files, root) + _caches_line(files.caches, root)


def conflict_lines(plan: UndoPlan, root: str) -> list[str]:
    """The files that were changed since, each with the reason why it is restored only if the user says so."""
    conflicts = () if plan.files is None else plan.files.conflicts
    lines = [f"{shown_path(each.path, root)}: {each.conflict}" for each in conflicts if not each.job]
    return lines + _texts_of_jobs(plan, root)


def _impossible_lines(files: "RestorePlan | None", root: str) -> list[str]:
    impossible = () if files is None else files.impossible
    return _group(
        "Can't be restored:", [f"! {shown_path(path, root)}: {_on_one_line(why)}" for path, why in impossible]
    )


def _on_one_line(why: str) -> str:
    """A reason, which may name a file, with all characters visible."""
    return escape(why).replace("\n", "\\n")


def _agreed(changes: "Sequence[PlannedChange]") -> list[Change]:
    return [Change(each.path, each.now, each.wanted) for each in changes if not each.conflict]


def _counts_of(found: Sequence[Change]) -> str:
    """`3 restored, 1 changed back, 2 removed`."""
    back = sum(each.before is None for each in found)
    gone = sum(each.after is None for each in found)
    parts = ((back, "restored"), (len(found) - back - gone, "changed back"), (gone, "removed"))
    return ", ".join(f"{count} {what}" for count, what in parts if count)


def _changes_group(title: str, changes: Sequence[Change], root: str, most: int = _MOST_OTHERS) -> list[str]:
    return _group(f"{title} ({_counts_of(changes)}):", [_line(each, root) for each in changes], most)


def _group(title: str, lines: Sequence[str], most: int = _MOST_OTHERS) -> list[str]:
    """A title and its lines, of which only the first ones; nothing without lines."""
    if not lines:
        return []
    more = len(lines) - most
    return [title, *lines[:most], *([f"  ... and {more} more"] if more > 0 else [])]


def _first(lines: Sequence[str], most: int, what: str) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], *([f"... and {more:,} more {what}"] if more > 0 else [])]


def _line(change: Change, root: str) -> str:
    """A line for a file that is restored: `+` comes back, `-` goes, `~` changes back."""
    name, state = shown_path(change.path, root), change.after
    if state is None:
        return f"- {name}"
    if change.before is None:
        return f"+ {name} ({f'{state.size:,} bytes' if state.kind == 'file' else state.kind})"
    return f"~ {name} ({kind_of(change)})"


def _coverage_lines(plan: UndoPlan) -> list[str]:
    files = plan.files
    uncovered = dict.fromkeys((*plan.uncovered, *(() if files is None else (*files.lost, *files.uncovered))))
    said = tuple(uncovered)[:_MOST_OTHERS]
    more = len(uncovered) - len(said)
    return [
        *(cut(f"Not covered: {one_line(text)}", 4 * _WIDTH) for text in said),
        *([f"... and {more} more that are not covered"] if more else []),
        *_first(plan.doubts, _MOST_OTHERS, "that ran long"),
        "No file is restored." if plan.part == "talk" else _NEVER,
    ]


def refusal_text(plan: UndoPlan, root: str, line: UndoLine = LAST_SESSION, overwrite: Collection[bytes] = ()) -> str:
    """Why a plan is refused: no file can be restored, or the user has not decided about files with later changes.

    `line` is what was asked for.
    """
    if restores_nothing(plan):
        impossible = () if plan.files is None else plan.files.impossible
        names = first_of(
            impossible, _MOST_OTHERS, lambda each: f"{shown_path(each[0], root)} ({_on_one_line(each[1])})"
        )
        return f"Nothing is restored, because none of the files can be: {names}. {_instead(plan, line)}".rstrip()
    return conflicts_text(plan, root, line, overwrite)


def _instead(plan: UndoPlan, line: UndoLine) -> str:
    """What can be done if no file can be restored."""
    if plan.kind == "redo":
        return ""
    if plan.completes is not None:
        return f"`{line.of('STEP', line.part).command()}` or `/undo STEP` goes further back."
    talk = structs.replace(line.of(line.step, "talk"), forced=())
    return f"`{talk.command()}` or `{talk.slash()}` takes back the conversation alone."


def unknown_text(history: UndoHistory, last: UndoStep, unknown: CallChange, line: UndoLine, *, is_late: bool) -> str:
    """Why an undo without a step does not go back to before `last`: a later call may have changed files as well.

    `is_late`: a search for changes may still end.
    """
    step, known = history.steps[unknown.step].name, line.of(last.name, line.part)
    return (
        f"Nothing is undone: it is not known what step {step} changed, {label_of(unknown)}. {unknown.uncovered} "
        f"{'Try again in a moment: the search may end. ' if is_late else ''}"
        f"`{known.slash()}` (outside of a conversation: `{known.command()}`) undoes the last changes "
        "that are known; what this step changed stays."
    )


def unrestored_text(count: int, line: UndoLine = LAST_SESSION) -> str:
    """That the last undo could not restore files, and how to go on."""
    return (
        f"The last undo did not restore {count:,} file{'s' if count > 1 else ''}. "
        f"/undo (outside of a conversation: {line.of('', 'both').command()}) tries again, until the next prompt."
    )


def conflicts_text(plan: UndoPlan, root: str, line: UndoLine = LAST_SESSION, overwrite: Collection[bytes] = ()) -> str:
    """Why a plan is refused, with the files that were changed since, except those to overwrite."""
    changed = () if plan.files is None else plan.files.conflicts
    conflicts = sorted(each.path for each in changed if not each.job and each.path not in overwrite)
    others = (
        "these files were changed by you or another program since, "
        f"git could not use them, or they may be the only copy of something: {_paths_text(conflicts, root)}"
    )
    reasons = [others] if conflicts else []
    reasons += [f"{text[0].lower()}{text[1:]}" for text in _texts_of_jobs(plan, root, overwrite)]
    rest = "goes back without them" if has_only_conflicts(plan) else "restores the other files"
    return (
        f"Nothing is restored, because {'; and '.join(reasons)}. "
        f"`{line.command('--keep-conflicts')}` {rest}; "
        f"`{line.command('--force', 'PATH')}` also restores that file, or all of these in a folder."
    )


def _texts_of_jobs(plan: UndoPlan, root: str, left_out: Collection[bytes] = ()) -> list[str]:
    """For each job, which files changed while only it ran; git's data first, because they decide about commits."""
    if plan.files is None:
        return []
    paths: dict[str, list[bytes]] = {}
    for each in (*plan.files.git, *plan.files.changes):
        if each.job and each.path not in left_out:
            paths.setdefault(each.job, []).append(each.path)
    return [
        f"While only {job} ran, these changed, perhaps by you: {_paths_text(each, root)}" for job, each in paths.items()
    ]


def _paths_text(paths: Sequence[bytes], root: str) -> str:
    return first_of(paths, _MOST_FILES, lambda path: shown_path(path, root))


# ------------------------------------------------------------------ an outcome


def outcome_text(outcome: UndoOutcome, root: str, line: UndoLine = LAST_SESSION) -> str:
    """What was done, what was not, and how to take it back; `line` is what was asked for."""
    plan, record = outcome.plan, outcome.record
    lines = [_outcome_line(plan, is_any_restored=record is None or bool(record.changes))]
    if record is not None:
        planned = set() if plan.files is None else {each.path for each in plan.files.git}
        files = [each for each in record.changes if each.path not in planned]
        git = [each for each in record.changes if each.path in planned]
        lines += _changes_group("Files", files, root, _MOST_FILES)
        lines += _changes_group("Data of git", git, root)
        missed = [f"Not restored: {one_line(text)}" for text in record.uncovered]
        lines += _first(missed, _MOST_FILES, "that were not restored")
        lines += _caches_line(record.stayed, root)
    lines += _impossible_lines(plan.files, root)
    why = {} if plan.files is None else {each.path: each.conflict for each in plan.files.conflicts if not each.job}
    kept = [f"Left alone: {shown_path(path, root)}: {why[path]}" for path in outcome.kept if path in why]
    lines += _first(kept, _MOST_FILES, "that were left alone")
    restored = set(conflicts_of(plan)) - set(outcome.kept)
    lines += [f"Left alone: {text[0].lower()}{text[1:]}." for text in _texts_of_jobs(plan, root, restored)]
    left = f"{len(plan.prompts)} prompts left the conversation. The first" if len(plan.prompts) > 1 else "The prompt"
    lines += [f'{left} was: "{cut(one_line(prompt), 200)}"' for prompt in plan.prompts[:1]]
    lines += _coverage_lines(plan)
    if record is not None and record.unrestored and plan.kind == "undo" and not plan.takes_back:
        lines.append(unrestored_text(len(record.unrestored), structs.replace(line, forced=())))
    if plan.kind == "undo" and not plan.takes_back:
        lines.append(f"/redo takes this back (outside of a conversation: {line.redo().command()}).")
    return "\n".join(lines)


def _caches_line(caches: Sequence[bytes], root: str) -> list[str]:
    if not caches:
        return []
    return [f"Caches that stay: {first_of(caches, _MOST_OTHERS, lambda path: shown_path(path, root))}."]


def _outcome_line(plan: UndoPlan, *, is_any_restored: bool) -> str:
    if plan.takes_back and plan.resumes is not None:
        return f"Taken back: the {plan.resumes.kind} that stopped in the middle. The files are as before it."
    if not is_any_restored and plan.resumes is None:
        moved = f"{'Redone' if plan.kind == 'redo' else 'Undone'}: the conversation{_since(plan)}. "
        return f"{moved if plan.part == 'both' else ''}No file was restored."
    if plan.completes is not None:
        return f"Restored what the last undo{_since(plan)}, could not."
    return f"{'Redone' if plan.kind == 'redo' else 'Undone'}: {_PARTS[plan.part]}{_since(plan)}."


def _kind_of(plan: UndoPlan) -> str:
    """Whether it is an undo or a redo, which a plan that resumes one may take back."""
    return plan.kind if plan.resumes is None else plan.resumes.kind


def stopped_text(plan: UndoPlan, done: int, total: int, line: UndoLine) -> str:
    """Where an undo or redo was stopped, and how to go on."""
    kind = _kind_of(plan)
    lines = structs.replace(line.of("", "both"), forced=()), line.redo()
    undo, redo = (each.slash() if line.is_slash else each.command() for each in lines)
    finish, back = (undo, redo) if kind == "undo" else (redo, undo)
    return (
        f"Stopped: {done:,} of {total:,} files were restored. Run `{finish}` again to finish, "
        f"or `{back}` to go back to the state before it."
    )


def not_written_text(plan: UndoPlan, error: OSError) -> str:
    """That a restored file may not be on the disk, and how to go on."""
    kind = _kind_of(plan)
    return (
        f"The files were restored, but it is not certain that they are on the disk: {error.strerror}: "
        f"{error.filename!r}. So the {kind} is not finished. Free some space or check the disk, then run the same "
        "command again."
    )


def _since(plan: UndoPlan) -> str:
    return "" if plan.step is None else f", to before step {plan.step.name}"


# ------------------------------------------------------------------ the model


def note_for_model(plan: UndoPlan, record: ChangeRecord | None, kept: Sequence[bytes], root: str) -> str:
    """The note for the model about files that are not as its conversation says; empty if they agree."""
    if plan.part == "code" and plan.completes != "both" and record is not None and record.changes:
        names = _names([each.path for each in record.changes], root)
        if plan.kind == "redo":
            return (
                f"The user took back an undo: these files hold the changes again: {names}. What an earlier note says "
                "about undoing them no longer applies. Read the files before you edit them."
            )
        return (
            "The user undid changes of yours in the files, not in this conversation. These are again as before: "
            f"{names}. That was on purpose: don't repeat those edits unasked, and read the files before you edit them."
        )
    if plan.part == "talk" and plan.kind == "undo":
        return "The user took this conversation back to here. Files may hold changes that came later: read them again."
    if plan.completes == "both" and record is not None and record.changes:
        names = _names([each.path for each in record.changes], root)
        return f"These files were restored later than the others, and are now as before: {names}."
    if plan.part == "both" and (others := _as_they_were(plan, record, kept)):
        names = _names(others, root)
        if plan.kind == "redo":
            return f"The user took back an undo, but these files are not as this conversation says: {names}."
        return f"The user took the session back to here, but these files hold later changes: {names}."
    return ""


def _as_they_were(plan: UndoPlan, record: ChangeRecord | None, kept: Sequence[bytes]) -> list[bytes]:
    """The paths that should have been restored and were not, sorted."""
    if plan.files is None:
        return []
    restored = {each.path for each in record.changes} if record is not None else set[bytes]()
    planned = {each.path for each in (*plan.files.changes, *plan.files.git)}
    return sorted((planned - restored) | {path for path, _ in plan.files.impossible} | set(kept))


def _names(paths: Sequence[bytes], root: str) -> str:
    names = ", ".join(shown_path(path, root) for path in paths[:_IN_NOTE])
    more = len(paths) - _IN_NOTE
    return cut(names, 1_000) + (f" and {more} more" if more > 0 else "")
