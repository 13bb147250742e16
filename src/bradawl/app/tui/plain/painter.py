"""Draws events at the terminal: streamed text, dimmed thinking, calls, and the diffs of edits."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from bradawl.app.console import Console, OutputError
from bradawl.app.modes import mode_text
from bradawl.app.progress import MAIN, Progress
from bradawl.app.rendering import command_output, cut, notice_line, refusal_text
from bradawl.app.tui.plain.beside_prompt import BesidePrompt
from bradawl.core.deltas import CallDelta, Notice, RetryScheduled, TextDelta, ThinkingDelta
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    CheckpointTaken,
    Compacted,
    Envelope,
    Event,
    LimitReached,
    Live,
    ModeChosen,
    NoteQueued,
    ReplyWithdrawn,
    RequestSent,
    StateChanged,
    ToolFinished,
)
from bradawl.core.messages import text_of
from bradawl.core.ports import Tool
from bradawl.safety.control_characters import StreamCleaner, clean

_DIFF_LINES: Final = 80
_OUTPUT_LINES: Final = 5
_LINE_WIDTH: Final = 400
_DIM, _RED, _GREEN, _PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"
_DIFF_STYLES: Final = {"+": _GREEN, "-": _RED, "@": _DIM}


class Painter:
    """`emit` is an `Emit`; output goes to stdout, cleaned, warnings to stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colour = console.stdout_colour
        self.beside_prompt = BesidePrompt(console, self._write_as_it_is)
        self._progress = Progress(console.stdout, colour=self._colour, before=self.beside_prompt.step_aside)
        self._cleaner = StreamCleaner()
        self._writing: type[TextDelta] | type[ThinkingDelta] | None = None
        self._has_text = False
        self._is_at_start = True
        self._names: dict[str, str] = {}
        self._held: list[Envelope | Live] | None = None

    def learn(self, tools: Iterable[Tool[Any]]) -> None:
        """Draw calls and results of these tools as they declare it; see `Progress.learn`."""
        self._progress.learn(tools)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """A context in which events are kept back and drawn afterwards, so that a question stays readable."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for item in held:
                self.emit(item)

    def emit(self, item: Envelope | Live) -> None:
        """Draw the event if it is worth showing."""
        if self._held is not None:
            self._held.append(item)
            return
        self._draw(item)
        self.beside_prompt.come_back()

    def _draw(self, item: Envelope | Live) -> None:
        if isinstance(item, Live):
            if item.agent == MAIN or not isinstance(item.item, TextDelta | ThinkingDelta):
                self._live(item)
        else:
            self._event(item)

    def line(self, text: str) -> None:
        """Print a line; ends a text that is being streamed."""
        self._end_text()
        self._progress.line(text)
        self.beside_prompt.come_back()

    def diff(self, text: str) -> None:
        """Print lines, with colours for those that begin like lines of a diff."""
        self._end_text()
        for line in clean(text).splitlines():
            self._progress.line(cut(line, _LINE_WIDTH), _DIFF_STYLES.get(line[:1], ""))
        self.beside_prompt.come_back()

    def dim(self, text: str) -> None:
        """Print a dimmed line."""
        self._end_text()
        self._progress.dim(text)
        self.beside_prompt.come_back()

    def error(self, text: str) -> None:
        """Print a red line."""
        self._end_text()
        self._progress.error(text)
        self.beside_prompt.come_back()

    def _live(self, live: Live) -> None:
        match live.item:
            case TextDelta(_, text) | ThinkingDelta(_, text):
                self._write(type(live.item), text)
            case RetryScheduled():
                self._end_text()
                self._progress.emit(live)
            case CallDelta():
                self._progress.emit(live)
            case Notice() as notice:
                # to stderr: stdout may be read by a program
                self.beside_prompt.step_aside()
                self._console.say(notice_line(notice))
            case _:
                pass

    def _write(self, kind: type[TextDelta] | type[ThinkingDelta], text: str) -> None:
        if self._writing is not kind:
            self._end_text()
        shown = self._cleaner.feed(text)
        if self._writing is None:
            shown = shown.lstrip("\n")
            if not shown.strip():
                return
            self._writing = kind
            if kind is ThinkingDelta:
                shown = (_DIM if self._colour else "(thinking) ") + shown
        self._has_text = self._has_text or kind is TextDelta
        self._is_at_start = shown.endswith("\n") if shown else self._is_at_start
        self._print(shown)

    def _end_text(self) -> None:
        rest = self._cleaner.finish()
        if self._writing is None:
            return
        end = _PLAIN if self._writing is ThinkingDelta and self._colour else ""
        self._writing = None
        self._print(rest + end + ("" if self._is_at_start and not rest else "\n"))

    def _print(self, text: str) -> None:
        self._progress.interrupt()
        self.beside_prompt.step_aside()
        self._write_as_it_is(text)

    def _write_as_it_is(self, text: str) -> None:
        try:
            self._console.draw(text)
        except OutputError:
            return  # `emit` may not raise

    def _event(self, envelope: Envelope) -> None:
        event = envelope.event
        if envelope.agent != MAIN:
            self._sub_agent_event(envelope)
        elif isinstance(event, AssistantReplied):
            self._replied(event)
        elif isinstance(event, RequestSent):
            self._end_text()
            self._has_text = False
        elif not isinstance(event, CheckpointTaken):  # logged while the model answers, and not shown
            self._other(envelope, event)

    def _sub_agent_event(self, envelope: Envelope) -> None:
        """Print one line for each step; other events of a sub-agent do not interrupt streamed text."""
        if isinstance(envelope.event, AssistantReplied | ReplyWithdrawn | LimitReached | Compacted):
            self._end_text()
            self._progress.emit(envelope)

    def _replied(self, replied: AssistantReplied) -> None:
        self._end_text()
        text = clean(text_of(replied.message.parts) or refusal_text(replied.message)).strip("\n")
        if text and not self._has_text:
            self._print(f"{text}\n")

    def _other(self, envelope: Envelope, event: Event) -> None:
        self._end_text()
        if isinstance(event, CallPrepared):
            self._names[event.call_id] = event.name
        self._progress.emit(envelope)
        if isinstance(event, ToolFinished):
            self._show_result(self._names.pop(event.call_id, ""), event)
        elif isinstance(event, NoteQueued) and event.note.source == "user":
            self._progress.dim("  noted; the model reads it at its next step")
        elif self._names and isinstance(event, StateChanged) and isinstance(event.state, ModeChosen):
            # Without running calls the user chose the mode, and the command has answered.
            self._progress.dim(f"  mode {mode_text(event.state.mode)}")

    def _show_result(self, name: str, finished: ToolFinished) -> None:
        result = self._progress.spec_of(name).result
        if result == "diff" and finished.outcome == "ok":
            self._diff(clean(text_of(finished.shown)))
        elif result == "output" and finished.outcome in ("ok", "error"):
            for line in command_output(finished.shown)[-_OUTPUT_LINES:]:
                self._progress.dim("    " + cut(line.expandtabs(4), _LINE_WIDTH))

    def _diff(self, text: str) -> None:
        lines = text.splitlines()
        for line in lines[:_DIFF_LINES]:
            self._progress.line("    " + cut(line, _LINE_WIDTH), _DIFF_STYLES.get(line[:1], ""))
        if len(lines) > _DIFF_LINES:
            self._progress.dim(f"    ... {len(lines) - _DIFF_LINES} more lines")
