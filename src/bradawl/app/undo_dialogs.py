"""Undo at a terminal with a live region: a list of the prompts to go back to, and questions with one key each."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, cast

from bradawl.app import undo_text
from bradawl.app.rendering import cut, one_line
from bradawl.app.session_list import age_text
from bradawl.app.symbols import Symbols
from bradawl.app.terminal_user import Dialogs, KeyChoice, Option, Whole
from bradawl.app.undo import Undo
from bradawl.app.undo_files import ChangesSince, comparison_of, counts_text
from bradawl.app.undo_plan import UndoPlan, conflicts_of, has_only_conflicts
from bradawl.checkpoints.record import Change
from bradawl.core.errors import BradawlError
from bradawl.folds.undo_history import Part, UndoHistory, UndoStep

_PROMPT: Final = 200
"""Characters of a prompt that a list shows and searches."""
_TITLE: Final = 40
_MOST_NAMED: Final = 4
Answer = Part | Literal["stay"]


class UndoDialogs:
    """Asks about one undo. The caller closes `undo`."""

    def __init__(self, dialogs: Dialogs, undo: Undo, symbols: Symbols, now_ms: int) -> None:
        self._dialogs, self._undo = dialogs, undo
        self._symbols, self._now_ms = symbols, now_ms

    async def point(self, history: UndoHistory, part: Part | None = None) -> tuple[str, Part] | None:
        """The step and the part that the user chooses; None if the user stays. Raises `UndoRefused`."""
        options, step = self.options(history), ""
        while picked := await self._dialogs.pick_from("Go back to before which prompt?", options, step):
            step = picked
            answer = await self.part(step, part)
            if answer is not None:
                return None if answer == "stay" else (step, answer)
        return None

    def options(self, history: UndoHistory) -> list[Option]:
        """The prompts that can be gone back to, the latest first, with their age and what changed in files since."""
        steps = [step for step in history.steps if step.number == 1 and _can_go_back(history, step)]
        counts = self._counts(history, steps[::-1])
        return [
            Option(
                step.name,
                f"{step.name}. {cut(one_line(step.prompt), _PROMPT)}",
                f"{self._age(step)} {self._symbols.dot} {count}{'' if step.is_in_conversation else ', taken back'}",
            )
            for step, count in zip(steps[::-1], counts, strict=True)
        ]

    def _age(self, step: UndoStep) -> str:
        return age_text(max(0, self._now_ms - step.at) / 1000)

    def _counts(self, history: UndoHistory, steps: Sequence[UndoStep]) -> Iterator[str]:
        """What changed in files since each step; the latest first."""
        comparison = comparison_of(self._undo)
        since = ChangesSince()
        calls = list(history.applied)
        is_whole = is_kept = True
        for step in steps:
            left = len(history.applied) - len(history.changes_since(step.start))
            for call in reversed(calls[left:]):
                is_whole = is_whole and bool(call.ref)
                try:
                    if call.ref:
                        since.add_earlier(self._undo.store.record(call.ref))
                except BradawlError:
                    is_kept = False
            del calls[left:]
            text = counts_text(since.changes, comparison, self._symbols) if is_kept else "not kept any more"
            if not is_whole:
                text = f"{text}, not all saved" if since.changes else "not saved"
            yield text

    async def part(self, step: str, wanted: Part | None = None) -> Answer | None:
        """What is to go back to before a step: the files, the conversation or both; `stay` for nothing.

        None if the user leaves the question. `wanted`: only this is offered. Raises `UndoRefused`.
        """
        plan = await self._undo.plan(step, wanted or "both")
        parts: tuple[Part, ...] = ("both", "talk", "code") if plan.part == "both" and not wanted else (plan.part,)
        files = counts_text(_planned(plan), comparison_of(self._undo), self._symbols) if parts != ("talk",) else ""
        choices = [_choice(part, plan, files) for part in parts]
        choices.append(KeyChoice("n", "Cancel: nothing changes", "stay"))
        prompt = "" if plan.step is None else cut(one_line(plan.step.prompt), _TITLE, self._symbols.ellipsis)
        title = f'Go back to before "{prompt}"?' if prompt else "Go back?"
        answer = await self._dialogs.choose(title, self._what(plan), choices, lambda: self._whole(plan))
        return cast("Answer | None", answer)

    def _what(self, plan: UndoPlan) -> str:
        step = plan.step
        lines = [] if step is None else [f"Step {step.name}, {self._age(step)}."]
        if plan.lock:
            lines.append(f"Nothing would be restored now: {plan.lock}")
        if count := len(conflicts_of(plan)):
            lines.append(f"{_files_text(count)} changed since, by you or another program: you are asked about that.")
        files = plan.files
        if missed := len(plan.uncovered) + (0 if files is None else len(files.impossible) + len(files.staying)):
            lines.append(f"Not all can be restored ({missed}).")
        return "\n".join(lines)

    def _whole(self, plan: UndoPlan) -> Whole:
        return [undo_text.plan_text(plan, self._undo.root), *self._drawn(self._undo.preview(plan))]

    def _drawn(self, changes: Sequence[Change]) -> Whole:
        return comparison_of(self._undo).drawn(changes)

    async def conflicts(self, plan: UndoPlan) -> str:
        """What happens to files that were changed since: `others`, `all`, or empty if nothing is to be restored."""
        paths = set(conflicts_of(plan))
        choices = [
            KeyChoice("n", "Restore nothing", ""),
            KeyChoice("o", "Restore the other files, and leave these as they are", "others"),
            KeyChoice("a", "Restore all files; these changes are lost, until /redo", "all"),
        ]
        if has_only_conflicts(plan):
            del choices[1]
        changes = [each for each in _planned(plan) if each.path in paths]

        def whole() -> Whole:
            text = undo_text.plan_text(plan, self._undo.root)
            return [text, *self._drawn(changes), *self._drawn(self._undo.preview(plan))]

        lines = undo_text.conflict_lines(plan, self._undo.root)
        more = len(lines) - _MOST_NAMED
        text = "\n".join((*lines[:_MOST_NAMED], *([f"... and {more} more"] if more > 0 else [])))
        title = f"{_files_text(len(paths))} changed since. Restore?"
        return await self._dialogs.choose(title, text, choices, whole) or ""


def _choice(part: Part, plan: UndoPlan, files: str) -> KeyChoice:
    """`files` says how much of them would change."""
    count = len(plan.prompts)
    talk = f"{count} prompt{'' if count == 1 else 's'}" if count else "a part of the turn"
    match part:
        case "both":
            return KeyChoice("b", f"Files and conversation ({files}; {talk})", part)
        case "talk":
            return KeyChoice("c", f"Conversation only ({talk}; the files stay)", part)
        case "code":
            return KeyChoice("f", f"Files only ({files}; the conversation stays)", part)


def _planned(plan: UndoPlan) -> list[Change]:
    """The changes that a plan would make to files, with conflicts and git's data."""
    found = () if plan.files is None else (*plan.files.changes, *plan.files.git)
    return [Change(each.path, each.now, each.wanted) for each in found]


def _can_go_back(history: UndoHistory, step: UndoStep) -> bool:
    """Whether the step is in the conversation, or something of its turn is in the files."""
    if step.is_in_conversation:
        return True
    return any(history.changes_of(each) for each in history.steps if each.turn == step.turn)


def _files_text(count: int) -> str:
    return "1 file was" if count == 1 else f"{count:,} files were"
