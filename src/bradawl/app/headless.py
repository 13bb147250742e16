"""One prompt without anybody at the keyboard: the answer on stdout, the way there on stderr."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bradawl.app.approvers import DenyAllApprover
from bradawl.app.console import Console
from bradawl.app.interrupts import Interrupts
from bradawl.app.progress import Progress
from bradawl.app.rendering import failure_text, one_line, refusal_text, usage_text
from bradawl.app.result import NOT_SAVED, Meter, exit_code, result_of
from bradawl.app.window import WindowWatch
from bradawl.core.deltas import RetryScheduled
from bradawl.core.events import AssistantReplied, Envelope, Live, RequestSent
from bradawl.core.messages import ToolCall
from bradawl.safety.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from bradawl.agent.agent import Agent
    from bradawl.agent.session import Session, TurnResult


class Start(NamedTuple):
    """The session a run begins with."""

    session_id: str | None = None
    """The one to continue; None for a new one."""
    prepare: "Callable[[Session], None] | None" = None
    """Called with it before its turn, for example to choose the mode it goes on in."""
    warning: "Callable[[], str]" = str
    """Says what the user should know of the sandbox; it may wait, so it is asked when the first reply has begun."""


class ModelWait:
    """Says once for each request that the model is waited for, when it stays silent. `emit` is an `Emit`."""

    def __init__(self, progress: Progress, patience_s: float) -> None:
        self._progress = progress
        self._patience_s = patience_s
        self._timer: asyncio.TimerHandle | None = None

    def emit(self, item: Envelope | Live) -> None:
        """Begin to wait with a request; anything else that happens ends it. Needs a running loop."""
        if self._timer is not None:
            self.stop()
        if isinstance(item.item if isinstance(item, Live) else item.event, RequestSent | RetryScheduled):
            self._timer = asyncio.get_running_loop().call_later(self._patience_s, self._say)

    def stop(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        self._timer = None
        self._progress.dim("  waiting for the model...")


async def run_headless(
    agent: "Agent",
    prompt: str,
    start: Start,
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
    meter, wait = Meter(), ModelWait(progress, console.model_patience_s)

    warnings = [start.warning]

    def emit(item: Envelope | Live) -> None:
        meter.emit(item)
        wait.emit(item)
        progress.emit(item)
        if warnings and (isinstance(item, Live) or isinstance(item.event, AssistantReplied)):
            _tell(progress, tuple(filter(None, (warnings.pop()(),))))

    async with agent.open(start.session_id) as session:
        if start.prepare is not None:
            start.prepare(session)
        told = session.notices
        _tell(progress, told)
        interrupts.target = session.cancel
        try:
            run = partial(session.run, prompt)
            turn = await (
                run(emit) if watch is None else watch.during(run, emit, lambda said: _tell(progress, (said,)))
            )
        finally:
            wait.stop()
            interrupts.target = None
        _tell(progress, tuple(notice for notice in session.notices if notice not in told))
        if watch is not None and (warning := await watch.look(session.state)) is not None:
            _tell(progress, (warning,))
    code = exit_code(turn.reason, turn.failure, saved=turn.saved, signal_code=interrupts.exit_code)
    denials = denials_text(turn.denials, _advice(session)) if turn.denials else ""
    errors = _errors(turn, code, refusal_text(session.state.last_reply), denials)
    if as_json:
        console.answer(result_of(turn, code, errors, meter).to_json())
    else:
        console.answer(answer_text(turn.text))
    if denials and turn.reason != "refused":
        errors = (*errors, denials)
    _close(progress, turn, errors, continues=turn.saved)
    return code


def _advice(session: "Session") -> str:
    """How what was refused would be allowed."""
    from bradawl.app.advice import how_to_allow

    asked = session.agent.approver
    nobody = asked if isinstance(asked, DenyAllApprover) else DenyAllApprover()
    return how_to_allow(
        nobody.refused,
        session.policy(),
        cwd=session.agent.project,
        home=nobody.home,
        without_sandbox=nobody.without_sandbox,
    )


def answer_text(text: str) -> str:
    """The answer as it is printed: clean, with one newline at its end; nothing if there is none."""
    answer = clean(text).rstrip("\n")
    return f"{answer}\n" if answer.strip() else ""


def _tell(progress: Progress, notices: tuple[str, ...]) -> None:
    for notice in notices:
        progress.line(f"note: {one_line(notice)}")


def _errors(turn: "TurnResult", code: int, refusal: str, denials: str) -> tuple[str, ...]:
    """What went wrong, for people; empty when nothing did. `refusal` is what the model said to that."""
    match turn.reason:
        case "completed":
            return ("The session could not be saved; the answer itself is whole.",) if code == NOT_SAVED else ()
        case "steps":
            return ("The limit of steps is reached; --max-steps sets another.",)
        case "budget" | "time":
            return (f"The limit of {turn.reason} is reached.",)
        case "refused" if turn.denials:
            return (denials,)
        case "refused" if refusal.strip():
            return (f"The model refused: {one_line(refusal)}",)
        case "refused":
            return (failure_text(turn.failure) if turn.failure else "The model refused.",)
        case "cancelled" | "interrupted":
            return ("The run was interrupted.",)
        case _:
            return (failure_text(turn.failure),)


def denials_text(denials: tuple[ToolCall, ...], advice: str) -> str:
    """How many calls nobody could allow, and what to do about it."""
    names = ", ".join(sorted({one_line(call.name) for call in denials}))
    count = len(denials)
    return f"{count} call{'' if count == 1 else 's'} refused ({names}). {advice}"


def _close(progress: Progress, turn: "TurnResult", errors: tuple[str, ...], *, continues: bool) -> None:
    for error in errors:
        progress.error(f"bradawl: {error}")
    if turn.reason == "completed" and not turn.text.strip():
        progress.line("The model ended without a text.")
    more = f". To continue: bradawl -r {turn.session_id}" if continues else ""
    progress.dim(usage_text(turn.steps, turn.usage, turn.cost) + more)
