"""Turns the events of a session into printed lines and the live region: text, thinking, calls, sub-agents, jobs."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bradawl.app.modes import mode_text
from bradawl.app.progress import MAIN
from bradawl.app.rendering import one_line, refusal_text
from bradawl.app.tui.live.activity import Activity, Hint
from bradawl.app.tui.live.journal import Kept, lines_in_full
from bradawl.app.tui.live.printed import Full, PrintedBlocks
from bradawl.app.tui.live.running import RunningAgents, RunningCalls
from bradawl.app.tui.live.screen import Region
from bradawl.app.tui.live.streamed_text import StreamedText
from bradawl.app.tui.render import blocks
from bradawl.app.tui.render.cells import wrap
from bradawl.app.tui.render.diff import unified_lines
from bradawl.app.tui.render.markdown import markdown_lines
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.spacing import BlockKind
from bradawl.app.tui.render.theme import Theme
from bradawl.app.tui.turn_end import TurnEnd
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
from bradawl.folds.answers import Answers
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.app.context_report import ContextReport

_PROGRESS_ROWS: Final = 4
_QUEUE_ROWS: Final = 4
_EDITS: Final = "  ↑ edits it"


class LivePainter:
    """`emit` is an `Emit`. Lines wait here until the screen takes them with the next frame."""

    def __init__(self, theme: Theme, width: Callable[[], int], refresh: Callable[[], None]) -> None:
        """`width` gives the columns of the terminal; `refresh` asks for a frame."""
        self.theme = theme
        self.activity, self.hint = Activity(), Hint(refresh)
        self.status: Callable[[Theme, int], list[str]] = lambda _theme, _width: []
        self.printed = PrintedBlocks()
        self.read_kept: Callable[[str], Kept | None] = lambda _: None
        """Reads an output of the session that was cut for the model."""
        self.calls = RunningCalls()
        self.agents = RunningAgents()
        self.notes: dict[str, str] = {}
        """Messages of the user that the model has not seen, by the ids of their notes."""
        self._width, self._refresh = width, refresh
        self._text = StreamedText()
        self._answers = Answers()
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
        self._block("line", lambda theme, width: _wrapped(text, theme, width, "plain"))

    def dim(self, text: str) -> None:
        """Print what may be skipped, as part of the block before it."""
        self._remark(text, "dim")

    def error(self, text: str) -> None:
        """Print what went wrong."""
        text = clean(text)
        self._block("error", lambda theme, width: blocks.notice_lines(text, theme, width, kind="error"))

    def diff(self, text: str) -> None:
        """Print a text that may have lines of a diff."""
        self._block("line", lambda theme, width: _with_diff(clean(text), theme, width))

    def context(self, report: "ContextReport") -> None:
        """Print what fills the context window."""
        from bradawl.app.tui.render.context import context_lines, context_summary

        full = partial(context_lines, report, self.theme)
        self._block("line", partial(context_summary, report), full)

    def folded(self, shown: Full, full: Full) -> None:
        """Print a block that is longer where the user opens it."""
        self._block("line", lambda _, width: shown(width), full)

    def prompt(self, text: str) -> None:
        """Print a prompt of the user."""
        self._block("prompt", lambda theme, width: blocks.prompt_lines(clean(text), theme, width))

    def end(self, end: TurnEnd) -> None:
        """Print how a turn ended, and what it took."""
        self._block("end", lambda theme, width: [blocks.turn_end_line(end, theme, width)])

    def _remark(self, text: str, role: Role) -> None:
        self._block("remark", lambda theme, width: _wrapped(text, theme, width, role))

    def _block(self, kind: BlockKind, draw: Callable[[Theme, int], list[str]], full: Full | None = None) -> None:
        """Print a block; an open text ends before it. Drawn anew, or in full, where the user opens it."""
        self._end_text()
        self._end_thinking()
        theme = self.theme
        self._add(kind, draw(theme, self._width()), full or (lambda width: draw(theme, width)))

    def _add(self, kind: BlockKind, lines: Sequence[str], full: Full) -> None:
        self.printed.add(kind, lines)
        self.printed.keep(kind, full)
        self._refresh()

    # -------------------------------------------------------------- events

    def emit(self, item: Envelope | Live) -> None:
        """Take an event; it is drawn with the next frame."""
        if isinstance(item, Live):
            self._live(item)
        else:
            self.printed.saw(item.seq)
            if item.agent == MAIN:
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
                self._block("remark", lambda theme, width: blocks.retry_lines(retry, theme, width))
                self.activity.waits(retry.delay_s)
            case ToolProgress(call_id, text):
                self.calls.progress(call_id, text)
            case Notice() as notice:
                text = clean(notice.text)
                self._block("remark", lambda theme, width: blocks.notice_lines(text, theme, width, kind="warning"))
            case _:
                pass

    def _main(self, event: Event) -> None:
        if answer := self._answers.take(event):
            self._end_text()
            self.printed.keep("text", partial(markdown_lines, clean(answer), self.theme))
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
                self.activity.runs(self.calls.label())
            case ToolStarted(call_id) | PermissionDecided(call_id):
                self.calls.start(call_id, runs=isinstance(event, ToolStarted))
                self.activity.runs(self.calls.label())
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
                self._block("note", lambda theme, width: [blocks.note_delivered_line(clean(text), step, theme, width)])
            case AgentSpawned(name, call_id, kind, prompt):
                self.calls.attach(call_id, self.agents.begin(name, kind, prompt))
            case AgentEnded():
                if draw := self.agents.ended(event):
                    self._block("call", draw)
            case JobStarted(job_id, _, command):
                self._jobs[job_id] = command
                self._block("remark", lambda theme, width: [blocks.job_started_line(job_id, command, theme, width)])
            case JobEnded(job_id, exit_code):
                command = self._jobs.pop(job_id, "")
                self._block(
                    "remark", lambda theme, width: [blocks.job_ended_line(job_id, exit_code, command, theme, width)]
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
                self._remark(f"{prefix}the {what} again: {one_line(failure.message)}", "warning")
            case Compacted():
                self._block("remark", lambda theme, width: blocks.compaction_lines(event, theme, width, prefix))
            case LimitReached(limit, _, maximum):
                self._remark(f"{prefix}limit reached: {limit} {maximum:g}", "error")
            case _:
                pass

    def _state(self, state: object) -> None:
        match state:
            case TodosSet(todos):
                before, self._todos = self._todos, todos
                self._block("line", lambda theme, width: blocks.todo_lines(todos, before, theme, width))
            case ModeChosen(mode) if self.calls.are_running:
                # Without running calls the user chose the mode, and the command has answered.
                self._remark(f"mode {mode_text(mode)}", "dim")
            case _:
                pass

    def show_todos(self) -> None:
        """Print the whole to-do list."""
        todos = self._todos
        if todos:
            self._block("line", lambda theme, width: blocks.todo_lines(todos, (), theme, width))
        else:
            self.dim("no todos")

    def exchange(self, prompt: str, reply: str) -> None:
        """Print a prompt of an earlier run and the reply to it, which Ctrl+O shows from the log."""
        theme, width = self.theme, self._width()
        self.printed.add("prompt", blocks.prompt_lines(clean(prompt), theme, width))
        if reply.strip():
            self.printed.add("text", markdown_lines(clean(reply), theme, width))
        self._refresh()

    # -------------------------------------------------------------- text and thinking

    def _write(self, text: str) -> None:
        if self._text.feed(text, self.theme, self._width()):
            self._end_thinking()
            self._has_text = True
            self.printed.begin("text")
            self.activity.writes()

    def _end_text(self) -> None:
        self.printed.go_on(self._text.end())

    def _replied(self, replied: AssistantReplied) -> None:
        self._end_text()
        self._end_thinking()
        text = clean(text_of(replied.message.parts) or refusal_text(replied.message)).strip("\n")
        if text and not self._has_text:
            self._write(text)
            self._end_text()
        if text:
            self.printed.keep("text", partial(markdown_lines, text, self.theme))
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
        theme = self.theme
        self._add(
            "thinking",
            [blocks.thinking_line(seconds, len(text) // 4, theme, self._width())],
            lambda width: blocks.thinking_lines(text, theme, width),
        )

    # -------------------------------------------------------------- calls

    def _print_finished(self) -> None:
        """Print the calls that ended, in the order in which they began; one that still runs holds later ones up."""
        for call in self.calls.take_finished():
            lines = call.lines(self.theme, self._width(), is_open=False)
            self._add("call", lines, partial(lines_in_full, call, self.read_kept, self.theme))
        if self.calls.are_running:
            self.activity.runs(self.calls.label())
        else:
            self.activity.waits_for_model()

    # -------------------------------------------------------------- drawing

    def region(self, width: int, rows: int, held: tuple[str, ...], *, is_asking: bool = False) -> Region:
        """The lines to print now, and the live region for a width and a number of rows above the input line.

        While a question waits the user is who works, so there is no spinner.
        """
        waiting = [*self.notes.values(), *held]
        foot = [*_queue_lines(waiting, self.theme, width), *self.hint.lines(self.theme, width)]
        running = [*self.calls.running_lines(self.theme, width, _PROGRESS_ROWS), *self.agents.lines(self.theme, width)]
        spinner = "" if is_asking else self.activity.line(self.theme, width)
        rest = len(foot) + (2 if spinner else 0)
        room = max(1, rows - rest)
        finished, tail = self._text.frame(width, max(1, room - len(running)))
        self.printed.go_on(finished)
        printed = self.printed.take()
        gap = [""] if running and self.printed.precedes_blank_line("call") else []
        above = [*tail, *gap, *running][-room:]
        if spinner:
            above += ["", spinner] if above or not self.printed.is_empty else [spinner]
        return Region(printed, [*above, *foot], self.status(self.theme, width))

    @property
    def is_active(self) -> bool:
        """Something moves: frames are due without an event."""
        return self.activity.is_active or self.hint.is_shown


def _queue_lines(texts: Sequence[str], theme: Theme, width: int) -> list[str]:
    """The last of the messages that wait."""
    shown = texts[-_QUEUE_ROWS:]
    lines = [f" {blocks.note_queued_line(clean(text), theme, width - len(_EDITS) - 1)}" for text in shown]
    if lines:
        lines[-1] += theme.paint(_EDITS, "dim")
    left = len(texts) - len(shown)
    return [theme.paint(f"   {left} more", "dim"), *lines] if left else lines


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
