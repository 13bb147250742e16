"""`bradawl undo`: undoes steps of a session that no other program has open. Needs no model and no key."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from bradawl.app import undo_text
from bradawl.app.console import Console
from bradawl.app.exit_code import ERROR, OK
from bradawl.app.settings.load import read_settings, settings_with
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.undo import Undo, UndoRefused
from bradawl.app.undo_plan import UndoOutcome, UndoPlan, conflicts_of
from bradawl.core.errors import SessionNotFound
from bradawl.core.events import Envelope, Live

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.app.settings.settings import Settings
    from bradawl.folds.undo_history import Part

Options = Mapping[str, object]


def run_undo(
    options: Options, environ: Mapping[str, str], console: Console, cwd: str, emit: Callable[[Envelope | Live], None]
) -> int:
    """Undo, redo or list as the options say, print the result, and return the exit code.

    1: refused, or not everything could be restored. `emit` gets the warnings about the session. Raises `SettingsError`,
    `SessionError`, among them `SessionBusy` if another program has the session open, `UndoRefused` and `StoreError`.
    """
    return asyncio.run(_run(options, _settings(options, environ, cwd), console, emit))


def _settings(options: Options, environ: Mapping[str, str], cwd: str) -> "Settings":
    given = {"cwd": options.get("cwd"), "add_dirs": options.get("add_dirs")}
    settings = settings_with(read_settings(given, environ, cwd), ModelSettings("none", "none"))  # no model is asked
    return msgspec.structs.replace(settings, user_tools=False)


async def _run(
    options: Options, settings: "Settings", console: Console, emit: Callable[[Envelope | Live], None]
) -> int:
    from bradawl.app.build.agent import build_agent
    from bradawl.app.build.undo import build_undo

    agent = build_agent(settings)
    try:
        async with agent.open(_session_id(agent, options)) as session:
            session.show_with(emit)
            with build_undo(session, settings) as undo:
                if options.get("list"):
                    console.answer(undo_text.steps_text(await undo.history(), undo.changes_of) + "\n")
                    return OK
                return await _carry_out(undo, options, console)
    finally:
        await agent.aclose()


def _session_id(agent: "Agent", options: Options) -> str:
    session_id = cast("str | None", options.get("session")) or agent.store.latest()
    if session_id is None:
        raise SessionNotFound("This folder has no session, so there is nothing to undo; use -C DIR for another folder.")
    return session_id


async def _carry_out(undo: Undo, options: Options, console: Console) -> int:
    plan = await _plan(undo, options)
    if options.get("dry_run"):
        console.answer(f"{undo_text.plan_text(plan, undo.root)}\n")
        return OK
    overwrite = _forced(cast("Sequence[str] | None", options.get("force")) or (), plan, undo.root)
    keep = bool(options.get("keep_conflicts"))
    if not keep and set(conflicts_of(plan)) - set(overwrite):
        console.answer(f"{undo_text.plan_text(plan, undo.root)}\n")
        raise UndoRefused(undo_text.conflicts_text(plan, undo.root))
    outcome = await undo.carry_out(plan, overwrite=overwrite, keep_conflicts=keep)
    console.answer(f"{undo_text.outcome_text(outcome, undo.root)}\n")
    return OK if is_complete(outcome) else ERROR


async def _plan(undo: Undo, options: Options) -> UndoPlan:
    if options.get("redo"):
        return await undo.plan_redo()
    part: Part = "code" if options.get("code_only") else "talk" if options.get("talk_only") else "both"
    return await undo.plan(str(options.get("to") or ""), part)


def _forced(named: Sequence[str], plan: UndoPlan, root: str) -> tuple[bytes, ...]:
    """The conflicting files that are named, relative to the project. Raises `UndoRefused` for any other name."""
    conflicts = conflicts_of(plan)
    forced = tuple(os.fsencode(os.path.normpath(Path(root, name))) for name in named)
    if unknown := [name for name, path in zip(named, forced, strict=True) if path not in conflicts]:
        raise UndoRefused(f"--force {unknown[0]}: this file was not changed since; leave it out.")
    return forced


def is_complete(outcome: UndoOutcome) -> bool:
    """False if something of the plan could not be restored."""
    files, record = outcome.plan.files, outcome.record
    return not (files is not None and files.impossible) and not (record is not None and record.uncovered)
