"""`bradawl undo`: undoes steps of a session that no other program has open. Needs no model and no key."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import msgspec
from msgspec import structs

from bradawl.app import undo_text
from bradawl.app.console import Console
from bradawl.app.exit_code import CANCELLED, ERROR, OK
from bradawl.app.settings.load import read_settings, settings_with
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.undo import Undo, UndoRefused, UndoStopped, with_answers
from bradawl.app.undo_diff import shown_path
from bradawl.app.undo_line import UndoLine, line_of
from bradawl.app.undo_plan import NothingToUndo, UndoPlan, conflicts_of, refused_whole
from bradawl.app.undo_progress import RestoreWatch
from bradawl.core.errors import SessionNotFound
from bradawl.core.events import Envelope, Live

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.app.settings.settings import Settings

Options = Mapping[str, object]


def run_undo(
    options: Options, environ: Mapping[str, str], console: Console, cwd: str, emit: Callable[[Envelope | Live], None]
) -> int:
    """Undo, redo or list as the options say, print the result, and return the exit code.

    A signal stops between two files; the code is then 128 plus its number. 1: refused, or not everything could be
    restored. `emit` gets the warnings about the session. Raises `SettingsError`, `SessionError`, among them
    `SessionBusy` if another program has the session open, `UndoRefused` and `StoreError`.
    """
    with StopSignals() as signals:
        try:
            return asyncio.run(_run(options, _settings(options, environ, cwd), console, emit, signals))
        except KeyboardInterrupt:
            console.say("bradawl: Interrupted; no file was changed.")
            return signals.exit_code
        except UndoStopped as error:
            console.say(f"bradawl: {error}")
            return signals.exit_code if signals.has_arrived() else ERROR


def _settings(options: Options, environ: Mapping[str, str], cwd: str) -> "Settings":
    given = {"cwd": options.get("cwd"), "add_dirs": options.get("add_dirs")}
    settings = settings_with(read_settings(given, environ, cwd), ModelSettings("none", "none"))  # no model is asked
    return msgspec.structs.replace(settings, user_tools=False)


class StopSignals:
    """A context manager in which SIGINT, SIGTERM and SIGHUP raise `KeyboardInterrupt`, except while `held`.

    Outside of the main thread, where no handler can be set, it does nothing.
    """

    def __init__(self) -> None:
        self.exit_code = CANCELLED
        """128 plus the number of the first signal."""
        self._has_arrived = self._is_held = False
        self._earlier: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_IGN and number != signal.SIGTERM:
                continue  # `nohup`, and a job in the background of a script
            with contextlib.suppress(ValueError):
                self._earlier[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, cast("signal.Handlers", handler))
        self._earlier.clear()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Only note signals; `has_arrived` says so. One that arrives later is only noted, too: the work is done."""
        self._is_held = True
        yield

    def has_arrived(self) -> bool:
        """Whether a signal has arrived."""
        return self._has_arrived

    def _arrived(self, number: int, _: object) -> None:
        if not self._has_arrived:
            self._has_arrived, self.exit_code = True, 128 + number
        if not self._is_held:
            raise KeyboardInterrupt


async def _run(
    options: Options,
    settings: "Settings",
    console: Console,
    emit: Callable[[Envelope | Live], None],
    signals: StopSignals,
) -> int:
    from bradawl.app.build.agent import build_agent
    from bradawl.app.build.undo import build_undo, other_sessions_text
    from bradawl.checkpoints.restore_intent import unfinished_text

    agent = build_agent(settings)
    try:
        if options.get("sessions"):
            console.answer(f"{_sessions_text(agent, settings, line_of(options))}\n")
            return OK
        async with agent.open(_session_id(agent, options, settings.cwd)) as session:
            session.show_with(emit)
            line = line_of(options)
            with build_undo(session, settings, line) as undo:
                for intent in undo.unfinished_elsewhere():
                    console.say(f"bradawl: {unfinished_text(intent, intent.session, line.places)}")
                if options.get("list"):
                    history = await undo.history()
                    if (unfinished := undo.unfinished(history)) is not None:
                        console.say(f"bradawl: {unfinished_text(unfinished, line.session, line.places)}")
                    elif rest := undo.unrestored(history):
                        console.say(f"bradawl: {undo_text.unrestored_text(len(rest), line)}")
                    compactions = undo_text.compactions_in(session.conversation.entries())
                    console.answer(undo_text.steps_text(history, undo.changes_of, compactions) + "\n")
                    if history.last_changed() is None and (others := other_sessions_text(session, settings, line)):
                        console.say(f"bradawl: {others}")
                    return OK
                try:
                    return await _carry_out(undo, options, line, console, signals)
                except NothingToUndo as error:
                    raise UndoRefused(f"{error} {other_sessions_text(session, settings, line)}".rstrip()) from error
    finally:
        await agent.aclose()


def _sessions_text(agent: "Agent", settings: "Settings", line: UndoLine) -> str:
    from bradawl.app.build.undo import build_changed_sessions

    with build_changed_sessions(agent.store, settings) as sessions:
        return sessions.listed(line) if sessions is not None else ""


def _session_id(agent: "Agent", options: Options, cwd: str) -> str:
    from bradawl.app.build.undo import folder_with_sessions

    session_id = cast("str | None", options.get("session")) or agent.store.latest()
    if session_id is None:
        if above := folder_with_sessions(agent.store, cwd):
            line = structs.replace(line_of(options), places=("-C", above)).command()
            raise SessionNotFound(f"This folder has no session. The last one of a folder above it: `{line}`.")
        raise SessionNotFound(
            "This folder has no session, so there is nothing to undo; use -C DIR for another folder. If it was renamed "
            "or moved, move it back first: sessions belong to the path of their folder."
        )
    return session_id


async def _carry_out(undo: Undo, options: Options, line: UndoLine, console: Console, signals: StopSignals) -> int:
    plan = await undo.plan_redo() if line.is_redo else await undo.plan(line.step, line.part)
    overwrite = _forced(cast("Sequence[str] | None", options.get("force")) or (), plan, undo.root)
    keep = bool(options.get("keep_conflicts"))
    is_refused = refused_whole(plan, overwrite, keep_conflicts=keep)
    if options.get("dry_run"):
        refused = [undo_text.refusal_text(plan, undo.root, line, overwrite)] if is_refused else []
        decided = with_answers(plan, overwrite, undo.store, keep_conflicts=keep)
        console.answer("\n".join([*refused, undo_text.plan_text(decided, undo.root), ""]))
        return ERROR if is_refused or decided.is_partial or decided.lock else OK
    if is_refused:
        console.answer(f"{undo_text.plan_text(plan, undo.root)}\n")
        raise UndoRefused(undo_text.refusal_text(plan, undo.root, line, overwrite))
    with signals.held():
        watch = RestoreWatch(plan, lambda text: console.say(f"bradawl: {text}"), signals.has_arrived, overwrite)
        outcome = await undo.carry_out(plan, overwrite=overwrite, keep_conflicts=keep, should_stop=watch)
        console.answer(f"{undo_text.outcome_text(outcome, undo.root, line)}\n")
    return OK if outcome.is_complete else ERROR


def _forced(named: Sequence[str], plan: UndoPlan, root: str) -> tuple[bytes, ...]:
    """The conflicting files that are named, or that are in a named folder. Raises `UndoRefused` for any other name.

    A name is relative to the project, or as a list of conflicts shows it.
    """
    forced: dict[bytes, None] = {}
    for name in named:
        path, shown = os.fsencode(os.path.normpath(Path(root, name))), name.rstrip("/")
        found = [each for each in conflicts_of(plan) if _is_in(each, path) or _is_shown_as(each, shown, root)]
        if not found:
            shown = shown_path(os.fsencode(name), root)
            raise UndoRefused(f"--force {shown}: this file was not changed since, nor one in it; leave it out.")
        forced.update(dict.fromkeys(found))
    return tuple(forced)


def _is_in(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def _is_shown_as(path: bytes, name: str, root: str) -> bool:
    shown = shown_path(path, root)
    return shown == name or shown.startswith(f"{name}/")
