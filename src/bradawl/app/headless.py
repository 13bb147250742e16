"""One prompt without anybody at the keyboard: the answer on stdout, the way there on stderr."""

import os
from typing import TYPE_CHECKING, Final, TextIO

from bradawl.app.console import Console
from bradawl.app.interrupts import Interrupts
from bradawl.app.result import NOT_SAVED, Meter, exit_code, result_of
from bradawl.app.tui.clean import clean
from bradawl.app.tui.render import (
    DEFAULT_WIDTH,
    call_line,
    cut,
    error_line,
    failure_text,
    one_line,
    retry_line,
    usage_text,
)
from bradawl.app.window import WindowWatch
from bradawl.core.deltas import CallDelta, RetryScheduled
from bradawl.core.events import (
    CallPrepared,
    Compacted,
    Envelope,
    Event,
    LimitReached,
    Live,
    ReplyWithdrawn,
    ToolFinished,
)
from bradawl.core.messages import ToolCall
from bradawl.core.ports import Answer, Question

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.agent.session import TurnResult

RERUN: Final = "Nobody is there to be asked; to allow such calls rerun with --yolo."
_DIM: Final = "\x1b[2m"
_RED: Final = "\x1b[31m"
_PLAIN: Final = "\x1b[0m"


class NobodyApprover:
    """`Approver` for a run that nobody watches: every question is answered no."""

    async def ask(self, question: Question) -> Answer:
        """No, and how to get a yes."""
        return Answer(False, by="nobody", message=RERUN)


class Progress:
    """Prints what happens, a line or two for each call. `emit` is an `Emit`."""

    def __init__(self, stream: TextIO, *, colour: bool = False, width: int | None = None) -> None:
        self._stream = stream
        self._colour = colour
        self._width = width or _width_of(stream)
        self._labels: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._last_call = ""
        self._is_closed = False

    def emit(self, item: Envelope | Live) -> None:
        """Print the event if it is one a user wants to see; never raises for a closed stream."""
        if isinstance(item, Live):
            self._live(item)
        else:
            self._event(item.event)

    def line(self, text: str, style: str = "") -> None:
        """Print a line of our own words; what it quotes must be clean."""
        if self._is_closed:
            return
        try:
            self._stream.write(f"{style}{text}{_PLAIN}\n" if style and self._colour else f"{text}\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._is_closed = True

    def dim(self, text: str) -> None:
        """Print a line that matters less."""
        self.line(text, _DIM)

    def error(self, text: str) -> None:
        """Print a line that matters more."""
        self.line(text, _RED)

    def _live(self, live: Live) -> None:
        match live.item:
            case RetryScheduled() as retry:
                self.dim(f"  {retry_line(retry)}")
            case CallDelta(_, call_id, name) if name:
                self._names[call_id] = name
            case _:
                pass

    def _event(self, event: Event) -> None:
        match event:
            case CallPrepared(call_id, _, name, raw_arguments):
                self._begin(call_id, call_line(name, raw_arguments, self._width - 2))
            case ToolFinished():
                self._finish(event)
            case ReplyWithdrawn(_, failure):
                self.dim(f"  the reply broke off and is asked for again: {one_line(str(failure))}")
            case Compacted():
                self.dim("  the conversation was shortened to fit the model's context window")
            case LimitReached(limit, _, maximum):
                self.error(f"  limit reached: {limit} {maximum:g}")
            case _:
                pass

    def _begin(self, call_id: str, label: str) -> None:
        self._labels[call_id] = label
        self._last_call = call_id
        self.line(f"> {label}")

    def _finish(self, finished: ToolFinished) -> None:
        call_id = finished.call_id
        if call_id not in self._labels:
            self._begin(call_id, call_line(self._names.get(call_id, "tool"), "", self._width - 2))
        label = self._labels.pop(call_id)
        which = "" if self._last_call == call_id else f" {label}:" if finished.outcome != "ok" else f" {label}"
        if finished.outcome == "ok":
            self.dim(cut(f"  ok{which}", self._width))
        else:
            self.error(cut(f"  {finished.outcome}:{which} {error_line(finished.shown)}", self._width))


def _width_of(stream: TextIO) -> int:
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns) if stream.isatty() else DEFAULT_WIDTH
    except (OSError, ValueError, AttributeError):
        return DEFAULT_WIDTH


async def run_headless(
    agent: "Agent",
    prompt: str,
    session_id: str | None,
    console: Console,
    interrupts: Interrupts,
    *,
    as_json: bool = False,
    watch: WindowWatch | None = None,
) -> int:
    """Run one prompt, print its answer, and give back the exit code. Raises `SessionError`.

    The answer is printed at the end, because a reply that is still arriving may be withdrawn.
    """
    progress = Progress(console.stderr, colour=console.colour)
    meter = Meter()

    def emit(item: Envelope | Live) -> None:
        meter.emit(item)
        progress.emit(item)

    async with agent.open(session_id) as session:
        told = session.notices
        _tell(progress, told)
        interrupts.target = session.cancel
        try:
            turn = await session.run(prompt, emit)
        finally:
            interrupts.target = None
        _tell(progress, tuple(notice for notice in session.notices if notice not in told))
        if watch is not None and (warning := await watch.look(session.state)) is not None:
            _tell(progress, (warning,))
    code = exit_code(turn.reason, turn.failure, saved=turn.saved, signal_code=interrupts.exit_code)
    errors = _errors(turn, code)
    if as_json:
        console.answer(result_of(turn, code, errors, meter).to_json())
    else:
        console.answer(answer_text(turn.text))
    _close(progress, turn, errors, continues=turn.saved)
    return code


def answer_text(text: str) -> str:
    """The answer as it is printed: clean, with one newline at its end; nothing if there is none."""
    answer = clean(text).rstrip("\n")
    return f"{answer}\n" if answer.strip() else ""


def _tell(progress: Progress, notices: tuple[str, ...]) -> None:
    for notice in notices:
        progress.line(f"note: {one_line(notice)}")


def _errors(turn: "TurnResult", code: int) -> tuple[str, ...]:
    """What went wrong, for people; empty when nothing did."""
    match turn.reason:
        case "completed":
            return ("The session could not be saved; the answer itself is whole.",) if code == NOT_SAVED else ()
        case "steps":
            return ("The limit of steps is reached; --max-steps sets another.",)
        case "budget" | "time":
            return (f"The limit of {turn.reason} is reached.",)
        case "refused" if turn.denials:
            return (denials_text(turn.denials),)
        case "refused":
            return (failure_text(turn.failure) if turn.failure else "The model refused.",)
        case "cancelled" | "interrupted":
            return ("The run was interrupted.",)
        case _:
            return (failure_text(turn.failure),)


def denials_text(denials: tuple[ToolCall, ...]) -> str:
    """How many calls nobody could allow, and what to do about it."""
    names = ", ".join(sorted({one_line(call.name) for call in denials}))
    count = len(denials)
    return f"{count} call{'' if count == 1 else 's'} refused ({names}). {RERUN}"


def _close(progress: Progress, turn: "TurnResult", errors: tuple[str, ...], *, continues: bool) -> None:
    for error in errors:
        progress.error(f"bradawl: {error}")
    if turn.denials and turn.reason != "refused":
        progress.error(denials_text(turn.denials))
    if turn.reason == "completed" and not turn.text.strip():
        progress.line("The model ended without a text.")
    more = f". To continue: bradawl -r {turn.session_id}" if continues else ""
    progress.dim(usage_text(turn.steps, turn.usage, turn.cost) + more)
