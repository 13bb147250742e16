"""Prints the progress of a run: a line or two for each call, a line for each step of a sub-agent."""

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO

from msgspec import structs

from bradawl.app.rendering import (
    DEFAULT_WIDTH,
    compaction_text,
    notice_line,
    one_line,
    retry_line,
    todo_lines,
    todos_line,
    usage_text,
)
from bradawl.core.deltas import CallDelta, Notice, RetryScheduled
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    CallPrepared,
    Compacted,
    Envelope,
    Event,
    LimitReached,
    Live,
    PermissionDecided,
    ReplyWithdrawn,
    StateChanged,
    Todo,
    TodosSet,
    ToolFinished,
    ToolStarted,
)
from bradawl.core.messages import calls_of
from bradawl.core.ports import Tool
from bradawl.core.tools import ToolSpec
from bradawl.core.usage import Usage
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.app.call_lines import BegunCall, CallLines

MAIN: Final = "main"
_DIM: Final = "\x1b[2m"
_RED: Final = "\x1b[31m"
_PLAIN: Final = "\x1b[0m"
_UNCUT: Final = 10_000


class Progress:
    """Prints events. `emit` is an `Emit`.

    At a terminal a call has a line when it begins and one with its time when it ends; elsewhere one line when it
    ends, so that a log contains each call once, and logs of equal runs are equal.
    A sub-agent has a line when it begins, one for each step, and one when it ends.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool = False,
        width: int | None = None,
        is_watched: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """`is_watched`: print for a terminal; default: whether the stream is one. `clock` returns seconds; `before` is
        called before each line.
        """
        self._before = before
        self._stream = stream
        self._colour = colour
        self._width = width or _width_of(stream)
        self._is_watched = _is_terminal(stream) if is_watched is None else is_watched
        self._specs: dict[str, ToolSpec] = {}
        self._names: dict[str, str] = {}
        self._clock = clock
        self._begun: dict[str, BegunCall] = {}
        self._call_lines: CallLines | None = None
        self._last_begun = ""
        self._steps: dict[str, int] = {}
        """Replies so far of each running sub-agent."""
        self._is_closed = False

    def learn(self, tools: Iterable[Tool[Any]]) -> None:
        """Show calls of these tools as the tools declare; calls of other tools, such as removed ones, by default."""
        self._specs = {tool.spec.name: tool.spec for tool in tools}

    def spec_of(self, name: str) -> ToolSpec:
        """The declaration of a tool; the default for one that was not learned."""
        return self._specs.get(name) or ToolSpec(name)

    def emit(self, item: Envelope | Live) -> None:
        """Print the event if it is worth a line. Never raises for a closed stream."""
        if isinstance(item, Live):
            self._live(item)
        elif item.agent != MAIN:
            self._step(item.agent, item.event)
        else:
            self._event(item.event)

    def line(self, text: str, style: str = "") -> None:
        """Print a line, or several, cleaned."""
        self.interrupt()
        if self._is_closed:
            return
        text = clean(text)
        self._before()
        try:
            self._stream.write(f"{style}{text}{_PLAIN}\n" if style and self._colour else f"{text}\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._is_closed = True

    def dim(self, text: str) -> None:
        """Print a line, dimmed where colours are on."""
        self.tell(text, _DIM)

    def error(self, text: str) -> None:
        """Print a line, red where colours are on."""
        self.tell(text, _RED)

    def tell(self, text: str, style: str = "") -> None:
        """Print a message: at a terminal wrapped by words, elsewhere on one line."""
        if self._is_watched and len(text) > self._width // 2:
            from bradawl.app.text_layout import fitted

            text = fitted(clean(text), self._width)
        self.line(text, style)

    def interrupt(self) -> None:
        """Note that something else was printed: the next end of a call repeats its line."""
        self._last_begun = ""

    def _live(self, live: Live) -> None:
        match live.item:
            case RetryScheduled() as retry:
                self.dim(f"  {_agent_prefix(live.agent)}{retry_line(retry)}")
            case Notice() as notice:
                self.tell(notice_line(notice))
            case CallDelta(_, call_id, name) if name and live.agent == MAIN:
                self._names[call_id] = name
            case _:
                pass

    def _event(self, event: Event) -> None:
        match event:
            case CallPrepared(call_id, _, name, raw_arguments):
                self._begin(call_id, self.spec_of(name), raw_arguments)
            case PermissionDecided(call_id) | ToolStarted(call_id):
                self._restart(call_id)
            case ToolFinished():
                self._finish(event)
            case StateChanged(TodosSet(todos)):
                self._todos(todos)
            case AgentSpawned(name, _, kind, prompt):
                self._steps[name] = 0
                self.dim(self._lines.fitted(f"  {name} ({kind}): {one_line(prompt)}"))
            case AgentEnded(name, reason, usage, cost):
                used = usage_text(self._steps.pop(name, 0), usage or Usage(), cost)
                self.dim(f"  {name}: {reason}, {used}")
            case _:
                self._shared_event(MAIN, event)

    def _shared_event(self, agent: str, event: Event) -> None:
        match event:
            case ReplyWithdrawn(_, failure, usage):
                what = "request failed and is sent" if usage is None else "reply broke off and is asked for"
                self.dim(f"  {_agent_prefix(agent)}the {what} again: {one_line(failure.message)}")
            case Compacted():
                self.dim(f"  {_agent_prefix(agent)}{compaction_text(event)}")
            case LimitReached(limit, _, maximum):
                self.error(f"  {_agent_prefix(agent)}limit reached: {limit} {maximum:g}")
            case _:
                pass

    def _step(self, agent: str, event: Event) -> None:
        """Print one line for each reply of a sub-agent; the results of its calls are not printed."""
        if not isinstance(event, AssistantReplied):
            self._shared_event(agent, event)
            return
        self._steps[agent] = self._steps.get(agent, 0) + 1
        if calls := calls_of(event.message):
            self.dim(self._lines.step(agent, [(self.spec_of(call.name), call) for call in calls]))

    def _todos(self, todos: tuple[Todo, ...]) -> None:
        lines = todo_lines(todos, _UNCUT, self._lines.symbols) if self._is_watched else [todos_line(todos, _UNCUT)]
        for line in lines:
            self.line(self._lines.fitted(f"  {line}"))

    @property
    def _lines(self) -> "CallLines":
        if self._call_lines is None:
            # A run without calls does not need these modules.
            from bradawl.app.call_lines import CallLines
            from bradawl.app.symbols import symbols_for

            symbols = symbols_for(getattr(self._stream, "encoding", None))
            self._call_lines = CallLines(self._width, symbols)
        return self._call_lines

    def _begin(self, call_id: str, spec: ToolSpec, raw_arguments: str = "") -> None:
        from bradawl.app.call_lines import BegunCall

        call = self._begun[call_id] = BegunCall(spec, raw_arguments, self._clock())
        if self._is_watched and spec.result != "state":
            self.line(self._lines.begun(call))
            self._last_begun = call_id

    def _restart(self, call_id: str) -> None:
        """Leave the wait for a permission or for other calls out of the time of a call."""
        if call := self._begun.get(call_id):
            self._begun[call_id] = structs.replace(call, began_s=self._clock())

    def _finish(self, finished: ToolFinished) -> None:
        call_id = finished.call_id
        name = self._names.pop(call_id, "")
        if call_id not in self._begun:
            self._begin(call_id, self.spec_of(name or "an earlier call"))
        call = self._begun.pop(call_id)
        if call.spec.result == "state" and finished.outcome == "ok":
            return
        print_line = (self.line if finished.has_failed_part else self.dim) if finished.outcome == "ok" else self.error
        elapsed_s = self._clock() - call.began_s
        if not self._is_watched:
            print_line(self._lines.logged(call, finished))
        elif self._last_begun == call_id:
            print_line(self._lines.ended(call, finished, elapsed_s))
        else:
            print_line(self._lines.repeated(call, finished, elapsed_s))


def _agent_prefix(agent: str) -> str:
    return "" if agent == MAIN else f"{agent}: "


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def _width_of(stream: TextIO) -> int:
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError, AttributeError):
        return DEFAULT_WIDTH
    return max(20, columns) if columns else DEFAULT_WIDTH  # some terminals report 0
