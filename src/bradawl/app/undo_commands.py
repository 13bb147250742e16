"""The slash commands `/undo`, `/redo`, `/rewind` and `/diff`."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

from bradawl.app import undo_text
from bradawl.app.frontend import FrontendSession
from bradawl.app.slash_commands import CommandError, CommandResult, Rest, command
from bradawl.app.undo import Undo, UndoRefused, UndoStopped
from bradawl.app.undo_line import UndoLine, places_of
from bradawl.app.undo_plan import NothingToUndo, UndoPlan, conflicts_of, has_only_conflicts, refused_whole
from bradawl.checkpoints.record import Change
from bradawl.core.errors import BradawlError
from bradawl.folds.undo_history import Part

if TYPE_CHECKING:
    from bradawl.app.undo_dialogs import UndoDialogs

_Part = Annotated[
    Literal["code", "talk", "both"],
    ("files", "code"),
    ("conversation", "talk"),
    ("all", "both"),
    ("everything", "both"),
]
_CONFLICTS: Final = "Restore the [o]ther files, [a]ll files and lose those changes, or n [n] "
_ONLY_CONFLICTS: Final = "Restore [a]ll files and lose those changes, or n [n] "
_PARTS: Final = {"code": "code", "files": "code", "talk": "talk", "conversation": "talk", "both": "both"}


@command("undo")
async def undo_steps(session: FrontendSession, step: str = "", part: _Part | None = None) -> CommandResult:
    """Undo the last step that changed files, or all from a step on: code, talk or both.

    STEP is a number of /rewind: 3 is the third prompt, 3.2 the second step of its turn. PART `code` restores the files
    alone, `talk` takes back the conversation alone; without it both go back. /redo takes an undo back.
    """
    name, wanted = _step_and_part(step, part)
    with _undo_of(session) as undo:
        try:
            plan = await undo.plan(name, wanted or "both")
        except NothingToUndo as error:
            raise UndoRefused(f"{error} {_others_text(session)}".rstrip()) from error
        return await _carry_out(session, undo, plan, _line_of(session).of(name, wanted or "both"))


@command("redo")
async def redo_step(session: FrontendSession) -> CommandResult:
    """Take the last undo back; again for the one before, until the next prompt."""
    with _undo_of(session) as undo:
        return await _carry_out(session, undo, await undo.plan_redo(), _line_of(session).redo())


@command("rewind")
async def rewind_to_step(session: FrontendSession, step: str = "", part: _Part | None = None) -> CommandResult:
    """Choose a prompt to go back to, and what goes back: the files, the conversation or both.

    With STEP it asks about that step at once, with PART about that part alone. In a terminal by lines (--plain) it
    lists the steps. Without a user nothing is asked and nothing changes: use /undo STEP then.
    """
    with _undo_of(session) as undo:
        name, wanted = _step_and_part(step, part)
        if (dialogs := _dialogs(session, undo)) is not None and await _has_points(undo):
            return await _rewind_in_dialogs(session, undo, dialogs, name, wanted)
        if not step:
            return CommandResult(await _listed(session, undo))
        plan = await undo.plan(name, wanted or "both")
        shown = _with_diff(undo_text.plan_text(plan, undo.root), undo, undo.preview(plan))
        if (user := session.frontend.user) is None:
            way = UndoLine(step=name, part=wanted or "both").slash()
            return CommandResult(f"{shown}\n\nNothing was changed. To do it: {way}", style="diff")
        answer = _PARTS.get((await user.ask(shown, "Go back? code, talk, both or n [n] ")).strip().lower())
        if answer is None:
            return CommandResult("Nothing was changed.")
        chosen = cast("Part", answer)
        return await _carry_out(session, undo, await undo.plan(name, chosen), _line_of(session).of(name, chosen))


async def _has_points(undo: Undo) -> bool:
    """Whether there is a step to go back to, and no undo that stopped in the middle has to be finished first."""
    history = await undo.history()
    return bool(history.steps) and undo.unfinished(history) is None


async def _rewind_in_dialogs(
    session: FrontendSession, undo: Undo, dialogs: "UndoDialogs", name: str, part: Part | None
) -> CommandResult:
    if name:
        answer = await dialogs.part(name, part)
        chosen = None if answer is None or answer == "stay" else (name, answer)
    else:
        history = await undo.history()
        if rest := undo.unrestored(history):
            session.session.conversation.warn(undo_text.unrestored_text(len(rest), _line_of(session)))
        chosen = await dialogs.point(history, part)
    if chosen is None:
        return CommandResult("Nothing was changed.")
    return await _carry_out(session, undo, await undo.plan(*chosen), _line_of(session).of(*chosen))


def _dialogs(session: FrontendSession, undo: Undo) -> "UndoDialogs | None":
    """The questions of a terminal that has more than lines."""
    user = session.frontend.user
    if user is None or user.dialogs is None:
        return None
    from bradawl.app.undo_dialogs import UndoDialogs

    return UndoDialogs(user.dialogs, undo, session.frontend.symbols, session.frontend.agent.clock.now_ms())


async def _listed(session: FrontendSession, undo: Undo) -> str:
    from bradawl.checkpoints.restore_intent import unfinished_text

    history = await undo.history()
    intent = undo.unfinished(history)
    compactions = undo_text.compactions_in(session.session.conversation.entries())
    steps = undo_text.steps_text(history, undo.changes_of, compactions)
    if history.last_changed() is None:
        steps = f"{steps}\n{_others_text(session)}".rstrip()
    if intent is not None:
        return f"{unfinished_text(intent, places=_line_of(session).places)}\n{steps}"
    rest = undo.unrestored(history)
    return f"{undo_text.unrestored_text(len(rest), _line_of(session))}\n{steps}" if rest else steps


@command("diff")
async def show_diff(session: FrontendSession, step: str = "", path: Rest = "") -> CommandResult:
    """Show what has changed in the files since the session began, or in one step.

    STEP is a number of /rewind, as 3 or 3.2. With PATH it shows that file alone, or the files of that folder:
    /diff src/app.py. In the terminal a long difference opens on a screen of its own.
    """
    if not step.replace(".", "", 1).isdigit():
        step, path = "", f"{step} {path}".strip()
    with _undo_of(session) as undo:
        changes = await undo.changes(step)
        if path:
            from bradawl.app.undo_files import changes_at

            changes = changes_at(changes, path, undo.root)
        if not changes:
            return CommandResult(f"No file has changed{f' at {path[:200]}' if path else ''}.", style="diff")
        if (user := session.frontend.user) is None or user.dialogs is None:
            return CommandResult(undo.diff(changes), style="diff")
        from bradawl.app.undo_files import comparison_of, summary_text

        summary = summary_text(changes, comparison_of(undo), session.frontend.symbols)
        await user.dialogs.show(summary, "what has changed", comparison_of(undo).drawn(changes))
        return CommandResult()


async def stopped_undo_text(session: FrontendSession) -> str:
    """That an undo of this session stopped in the middle, and how to go on; empty if none did, or it can't be told."""
    from bradawl.checkpoints.restore_intent import unfinished_text

    with contextlib.suppress(BradawlError), _undo_of(session) as undo:
        if (intent := undo.unfinished(await undo.history())) is not None:
            return unfinished_text(intent, places=_line_of(session).places)
    return ""


def _others_text(session: FrontendSession) -> str:
    from bradawl.app.build.undo import other_sessions_text

    return other_sessions_text(session.session, session.frontend.settings, _line_of(session))


def _with_diff(text: str, undo: Undo, changes: Sequence[Change]) -> str:
    return f"{text}\n\n{undo.diff(changes)}" if changes else text


def _undo_of(session: FrontendSession) -> Undo:
    from bradawl.app.build.undo import build_undo

    return build_undo(session.session, session.frontend.settings, _line_of(session))


def _line_of(session: FrontendSession) -> UndoLine:
    settings = session.frontend.settings
    return UndoLine(session=session.session.id, places=places_of(settings.cwd, settings.add_dirs), is_slash=True)


def _step_and_part(step: str, part: Part | None) -> tuple[str, Part | None]:
    """`/undo code` names a part and no step."""
    if part is None and (found := _PARTS.get(step.lower())) is not None:
        return "", cast("Part", found)
    if step and not step.replace(".", "", 1).isdigit():
        raise CommandError(f"{step[:20]!r} is not a step; /rewind lists them.")
    return step, part


async def _carry_out(session: FrontendSession, undo: Undo, plan: UndoPlan, line: UndoLine) -> CommandResult:
    """Carry the plan out; a user decides about files that were changed since. A signal stops it between two files."""
    from bradawl.app.undo_command import StopSignals
    from bradawl.app.undo_progress import RestoreWatch

    overwrite, keep = (), False
    if conflicts := conflicts_of(plan):
        answer = await _answer_to_conflicts(session, undo, plan, line)
        if answer not in (("o", "others", "a", "all") if not has_only_conflicts(plan) else ("a", "all")):
            is_no = answer in ("", "n", "no")
            return CommandResult(
                "Nothing was changed." if is_no else f"Nothing was changed: {answer[:20]!r} is no answer."
            )
        overwrite, keep = (conflicts, False) if answer.startswith("a") else ((), True)
    if refused_whole(plan, keep_conflicts=True):
        raise UndoRefused(undo_text.refusal_text(plan, undo.root, line))
    with StopSignals() as signals, signals.held():
        watch = RestoreWatch(plan, session.session.conversation.warn, signals.has_arrived, overwrite)
        try:
            outcome = await undo.carry_out(plan, overwrite=overwrite, keep_conflicts=keep, should_stop=watch)
        except UndoStopped as error:
            if session.frontend.user_is_there:
                raise
            session.session.conversation.warn(str(error))  # now: the signal may end the run before a result is shown
            return CommandResult("", exit_code=signals.exit_code)
    code = 0 if outcome.is_complete else 1
    text = undo_text.outcome_text(outcome, undo.root, line)
    return CommandResult(text, style="diff", exit_code=code, draft=_draft(plan))


async def _answer_to_conflicts(session: FrontendSession, undo: Undo, plan: UndoPlan, line: UndoLine) -> str:
    """What the user says about files that were changed since. Raises `UndoRefused` without a user."""
    if (user := session.frontend.user) is None:
        raise UndoRefused(undo_text.conflicts_text(plan, undo.root, line))
    if (dialogs := _dialogs(session, undo)) is not None:
        return await dialogs.conflicts(plan)
    question = _ONLY_CONFLICTS if has_only_conflicts(plan) else _CONFLICTS
    return (await user.ask(undo_text.plan_text(plan, undo.root), question)).strip().lower()


def _draft(plan: UndoPlan) -> str:
    """The prompt that the conversation was taken back to before: the user may want to send it otherwise."""
    is_at_prompt = plan.kind == "undo" and plan.part != "code" and plan.step is not None and plan.step.number == 1
    return plan.prompts[0] if is_at_prompt and plan.prompts else ""
