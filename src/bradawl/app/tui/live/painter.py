"""Turns the events of a session into printed lines and the live region: text, thinking, calls, sub-agents, jobs."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from bradawl.app.modes import mode_text
from bradawl.app.progress import MAIN
from bradawl.app.rendering import compaction_text, one_line, refusal_text
from bradawl.app.tui.live.activity import Activity, Hint
from bradawl.app.tui.live.running import Call, RunningAgents, RunningCalls
from bradawl.app.tui.live.screen import Region
from bradawl.app.tui.live.streamed_text import StreamedText
from bradawl.app.tui.render import blocks
from bradawl.app.tui.render.cells import wrap
from bradawl.app.tui.render.diff import unified_lines
from bradawl.app.tui.render.markdown import MarkdownStream
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme
from bradawl.core.deltas import CallDelta, Notice, RetryScheduled, TextDelta, ThinkingDelta, ToolProgress
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    CallPrepared,
    Compacted,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    LimitReached,
    Live,
    ModeChosen,
    NoteDelivered,
    NoteQueued,
    NoteWithdrawn,
    PermissionDecided,
    ReplyWithdrawn,
    RequestSent,
    StateChanged,
    TodosSet,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import text_of
from bradawl.core.ports import Tool
from bradawl.safety.control_characters import clean

_OPENABLE: Final = 400
"""Blocks whose full text Ctrl+O shows."""
_PROGRESS_ROWS: Final = 4
_QUEUE_ROWS: Final = 4
_EDITS: Final = "  ↑ edits it"

Full = Callable[[int], list[str]]
"""The lines of a block in full, for a width."""


class LivePainter:
    """`emit` is an `Emit`. Lines wait here until the screen takes them with the next frame."""

    def __init__(self, theme: Theme, width: Callable[[], int], refresh: Callable[[], None]) -> None:
        """`width` gives the columns of the terminal; `refresh` asks for a frame."""
        self.theme = theme
        self.activity, self.hint = Activity(), Hint(refresh)
        self.status: Callable[[Theme, int], list[str]] = lambda _theme, _width: []
        self.full: deque[Full] = deque(maxlen=_OPENABLE)
        self.calls = RunningCalls()
        self.agents = RunningAgents()
        self.notes: dict[str, str] = {}
        """Messages of the user that the model has not seen, by the ids of their notes."""
        self._width, self._refresh = width, refresh
        self._printed: list[str] = []
        self._needs_gap = False
        """The next block begins with an empty line."""
        self._text = StreamedText()
        self._has_text = False
        self._thinking: list[str] = []
        self._thinking_since = 0.0
        self._todos: tuple[Any, ...] = ()
        self._step = 0
        self._jobs: dict[str, str] = {}
        """Commands of the jobs that run, by job id."""

    def learn(self, tools: Iterable[Tool[Any]]) -> None:
        """Draw calls of these tools as they declare it."""
        self.calls.specs = {tool.spec.name: tool.spec for tool in tools}

    # -------------------------------------------------------------- printing

    def line(self, text: str) -> None:
        """Print a text of one or several lines as a block of its own."""
        self._block(lambda theme, width: _wrapped(text, theme, width, "plain"))

    def dim(self, text: str) -> None:
        """Print what may be skipped, without a gap before it."""
        self._block(lambda theme, width: _wrapped(text, theme, width, "dim"), gap=False)

    def error(self, text: str) -> None:
        """Print what went wrong."""
        self._block(lambda theme, width: _wrapped(text, theme, width, "error"))

    def diff(self, text: str) -> None:
        """Print a text that may have lines of a diff."""
        self._block(lambda theme, width: _with_diff(clean(text), theme, width))

    def prompt(self, text: str) -> None:
        """Print a prompt of the user."""
        self._block(lambda theme, width: blocks.prompt_lines(clean(text), theme, width))

    def _block(self, draw: Callable[[Theme, int], list[str]], *, full: Full | None = None, gap: bool = True) -> None:
        """Print a block; an open text ends before it. Drawn anew, in full, where the user opens it."""
        self._end_text()
        self._end_thinking()
        lines = draw(self.theme, self._width())
        self._add(lines, gap=gap)
        theme = self.theme
        self.full.append(full or (lambda width: draw(theme, width)))

    def _add(self, lines: Sequence[str], *, gap: bool) -> None:
        if not lines:
            return
        if gap and self._needs_gap:
            self._printed.append("")
        self._printed += lines
        self._needs_gap = True
        self._refresh()

    # -------------------------------------------------------------- events

    def emit(self, item: Envelope | Live) -> None:
        """Take an event; it is drawn with the next frame."""
        if isinstance(item, Live):
            self._live(item)
        elif item.agent == MAIN:
            self._main(item.event)
        else:
            self._of_agent(item.agent, item.event)
        self._refresh()

    def _live(self, live: Live) -> None:
        match live.item:
            case TextDelta(_, text) if live.agent == MAIN:
                self._write(text)
            case ThinkingDelta(_, text) if live.agent == MAIN:
                self._think(text)
            case CallDelta(_, _, name) if live.agent == MAIN:
                self.activity.calls(name)
            case RetryScheduled() as retry:
                self._block(lambda theme, width: blocks.retry_lines(retry, theme, width), gap=False)
                self.activity.waits(retry.delay_s)
            case ToolProgress(call_id, text):
                self.calls.progress(call_id, text)
            case Notice() as notice:
                text = clean(notice.text)
                self._block(lambda theme, width: blocks.notice_lines(text, theme, width, kind="warning"), gap=False)
            case _:
                pass

    def _main(self, event: Event) -> None:
        match event:
            case RequestSent(step):
                self._end_text()
                self._has_text, self._step = False, step
                self.activity.waits_for_model()
            case AssistantReplied():
                self._replied(event)
            case CallPrepared(call_id, _, name, raw_arguments):
                self._end_text()
                self._end_thinking()
                self.calls.begin(call_id, name, raw_arguments)
                self.activity.runs(self.calls.label(call_id))
            case ToolStarted(call_id) | PermissionDecided(call_id):
                self.calls.start(call_id)
            case ToolFinished():
                self.calls.finish(event)
                self._print_finished()
            case StateChanged(state):
                self._state(state)
            case _:
                self._note_or_other(event)

    def _note_or_other(self, event: Event) -> None:
        match event:
            case NoteQueued(note) if note.source == "user":
                self.notes[note.id] = note.text
            case NoteWithdrawn(note_id):
                self.notes.pop(note_id, None)
            case NoteDelivered(note_id) if note_id in self.notes:
                text = self.notes.pop(note_id)
                step = self._step + 1
                self._block(lambda theme, width: [blocks.note_delivered_line(clean(text), step, theme, width)])
            case AgentSpawned(name, _, kind, prompt):
                self.agents.begin(name, kind, prompt)
            case AgentEnded():
                draw = self.agents.ended(event)
                self._block(draw)
            case JobStarted(job_id, _, command):
                self._jobs[job_id] = command
                self._block(lambda theme, width: [blocks.job_started_line(job_id, command, theme, width)], gap=False)
            case JobEnded(job_id, exit_code):
                command = self._jobs.pop(job_id, "")
                self._block(
                    lambda theme, width: [blocks.job_ended_line(job_id, exit_code, command, theme, width)], gap=False
                )
            case TurnFinished():
                self._end_text()
                self._end_thinking()
                self.activity.ends()
            case _:
                self._shared("", event)

    def _of_agent(self, agent: str, event: Event) -> None:
        match event:
            case AssistantReplied(_, message):
                self.agents.replied(agent, message, self.calls.specs)
            case _:
                self._shared(f"{agent}: ", event)

    def _shared(self, prefix: str, event: Event) -> None:
        match event:
            case ReplyWithdrawn(_, failure, usage):
                what = "request failed and is sent" if usage is None else "reply broke off and is asked for"
                self._notice(f"{prefix}the {what} again: {one_line(failure.message)}", "warning")
            case Compacted():
                self._notice(f"{prefix}{compaction_text(event)}", "dim")
            case LimitReached(limit, _, maximum):
                self._notice(f"{prefix}limit reached: {limit} {maximum:g}", "error")
            case _:
                pass

    def _notice(self, text: str, role: Role) -> None:
        self._block(lambda theme, width: _wrapped(text, theme, width, role), gap=False)

    def _state(self, state: object) -> None:
        match state:
            case TodosSet(todos):
                before, self._todos = self._todos, todos
                self._block(lambda theme, width: blocks.todo_lines(todos, before, theme, width))
            case ModeChosen(mode) if self.calls.are_running:
                # Without running calls the user chose the mode, and the command has answered.
                self._notice(f"mode {mode_text(mode)}", "dim")
            case _:
                pass

    def show_todos(self) -> None:
        """Print the whole to-do list."""
        todos = self._todos
        if todos:
            self._block(lambda theme, width: blocks.todo_lines(todos, (), theme, width))
        else:
            self.dim("no todos")

    def exchange(self, prompt: str, reply: str) -> None:
        """Print a prompt of an earlier run and the reply to it."""
        self.prompt(prompt)
        if reply.strip():
            self._block(lambda theme, width: _markdown(clean(reply), theme, width))

    # -------------------------------------------------------------- text and thinking

    def _write(self, text: str) -> None:
        if self._text.feed(text, self.theme, self._width()):
            self._end_thinking()
            self._has_text = True
            if self._needs_gap:
                self._printed.append("")
            self._needs_gap = True
            self.activity.writes()

    def _end_text(self) -> None:
        self._printed += self._text.end()

    def _replied(self, replied: AssistantReplied) -> None:
        self._end_text()
        self._end_thinking()
        text = clean(text_of(replied.message.parts) or refusal_text(replied.message)).strip("\n")
        if text and not self._has_text:
            self._write(text)
            self._end_text()
        if text:
            self.full.append(lambda width: _markdown(text, self.theme, width))
        if replied.usage is not None:
            self.activity.used(replied.usage.output)

    def _think(self, text: str) -> None:
        if not self._thinking:
            self._end_text()
            self._thinking_since = time.monotonic()
            self.activity.thinks()
        self._thinking.append(text)

    def _end_thinking(self) -> None:
        if not self._thinking:
            return
        text, self._thinking = clean("".join(self._thinking)), []
        seconds = time.monotonic() - self._thinking_since
        self._add([blocks.thinking_line(seconds, len(text) // 4, self.theme, self._width())], gap=True)
        theme = self.theme
        self.full.append(lambda width: blocks.thinking_lines(text, theme, width))

    # -------------------------------------------------------------- calls

    def _print_finished(self) -> None:
        """Print the calls that ended, in the order in which they began; one that still runs holds later ones up."""
        for call in self.calls.take_finished():
            lines = call.lines(self.theme, self._width(), is_open=False)
            self._add(lines, gap=self.calls.is_first(call))
            self.full.append(partial(_in_full, call, self.theme))
        if not self.calls.are_running:
            self.activity.waits_for_model()

    # -------------------------------------------------------------- drawing

    def region(self, width: int, rows: int, held: tuple[str, ...], *, is_asking: bool = False) -> Region:
        """The lines to print now, and the live region for a width and a number of rows above the input line.

        While a question waits the user is who works, so there is no spinner.
        """
        foot = [*self._queue_lines(held, width), *self.hint.lines(self.theme, width)]
        running = [*self.calls.running_lines(self.theme, width, _PROGRESS_ROWS), *self.agents.lines(self.theme, width)]
        spinner = "" if is_asking else self.activity.line(self.theme, width)
        rest = len(foot) + (2 if spinner else 0)
        room = max(1, rows - rest)
        finished, tail = self._text.frame(width, max(1, room - len(running)))
        self._printed += finished
        printed, self._printed = self._printed, []
        gap = [""] if running and self._needs_gap and self.calls.begins_block else []
        above = [*tail, *gap, *running][-room:]
        if spinner:
            above += ["", spinner] if printed or above or self._needs_gap else [spinner]
        return Region(printed, [*above, *foot], self.status(self.theme, width))

    @property
    def is_active(self) -> bool:
        """Something moves: frames are due without an event."""
        return self.activity.is_active or self.hint.is_shown

    def _queue_lines(self, held: tuple[str, ...], width: int) -> list[str]:
        texts = [*self.notes.values(), *held]
        shown = texts[-_QUEUE_ROWS:]
        lines = [f" {blocks.note_queued_line(clean(text), self.theme, width - len(_EDITS) - 1)}" for text in shown]
        if lines:
            lines[-1] += self.theme.paint(_EDITS, "dim")
        left = len(texts) - len(shown)
        return [self.theme.paint(f"   {left} more", "dim"), *lines] if left else lines


def _in_full(call: Call, theme: Theme, width: int) -> list[str]:
    return call.lines(theme, width, is_open=True)


def _with_diff(text: str, theme: Theme, width: int) -> list[str]:
    """A text that a diff may follow."""
    before, mark, diff = text.partition("\n--- ")
    if text.startswith("--- "):
        before, diff = "", text
    elif mark:
        diff = f"--- {diff}"
    lines = _wrapped(before, theme, width, "plain") if before else []
    return [*lines, *unified_lines(diff, theme, width)] if diff else lines


def _wrapped(text: str, theme: Theme, width: int, role: Role) -> list[str]:
    return [theme.paint(part, role) for line in clean(text).split("\n") for part in wrap(line, width)]


def _markdown(text: str, theme: Theme, width: int) -> list[str]:
    stream = MarkdownStream(theme, width)
    stream.feed(text)
    return stream.finish()
