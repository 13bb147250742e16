"""Headless runs (`-p`): one prompt or slash command; the answer on stdout, progress and warnings on stderr."""

import asyncio
from typing import TYPE_CHECKING, Final

from bradawl.app.console import Console
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import Meter, exit_code, result_of, result_of_command
from bradawl.app.frontend import Frontend, FrontendSession, RunRequest
from bradawl.app.interrupts import Interrupts
from bradawl.app.outcomes import Denied, denials_text, outcome_of
from bradawl.app.progress import Progress
from bradawl.app.rendering import call_line, refusal_text, usage_text
from bradawl.core.deltas import Notice, RetryScheduled
from bradawl.core.events import Envelope, Live, RequestSent
from bradawl.core.messages import Text
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.agent.session import Prompt, Session, TurnResult


_LABEL_WIDTH: Final = 80
"""Characters of a refused call that are shown."""


class ModelWait:
    """Prints one line for each request whose answer takes long. `emit` is an `Emit`."""

    def __init__(self, progress: Progress, patience_s: float) -> None:
        self._progress = progress
        self._patience_s = patience_s
        self._timer: asyncio.TimerHandle | None = None

    def emit(self, item: Envelope | Live) -> None:
        """Start the timer with a request, stop it with any event but a warning. Needs a running loop."""
        if isinstance(item, Live) and isinstance(item.item, Notice):
            return
        if self._timer is not None:
            self.stop()
        if isinstance(item.item if isinstance(item, Live) else item.event, RequestSent | RetryScheduled):
            self._timer = asyncio.get_running_loop().call_later(self._patience_s, self._say)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        self._timer = None
        self._progress.dim("  waiting for the model...")


class HeadlessScreen:
    """Renders a headless run: `emit` prints progress to stderr and measures the turn."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(console.stderr, colour=console.colour)
        self.meter = Meter()
        self.wait = ModelWait(self.progress, console.model_patience_s)

    def emit(self, item: Envelope | Live) -> None:
        """Take and print one event."""
        self.meter.emit(item)
        self.wait.emit(item)
        self.progress.emit(item)


async def run_headless(
    frontend: Frontend, screen: HeadlessScreen, session_id: str | None, interrupts: Interrupts, *, as_json: bool = False
) -> int:
    """Run the prompt of the front end's request in a session, print the answer, and return the exit code.

    A first signal cancels the turn; what was answered until then is printed. Raises `SessionError` and `OutputError`.
    """
    screen.progress.learn(frontend.agent.tools)
    async with frontend.open(session_id) as session:
        turn = await _run_turn(session, screen, interrupts, _prompt_of(frontend.request))
    return _finish(session, screen, turn, interrupts, as_json=as_json)


async def _run_turn(
    session: FrontendSession, screen: HeadlessScreen, interrupts: Interrupts, prompt: "Prompt"
) -> "TurnResult":
    interrupts.target = session.cancel
    try:
        return await session.run(prompt)
    finally:
        screen.wait.stop()
        interrupts.target = None


def _finish(
    session: FrontendSession, screen: HeadlessScreen, turn: "TurnResult", interrupts: Interrupts, *, as_json: bool
) -> int:
    """Print the answer of a turn and how it ended; returns the exit code. Raises `OutputError`."""
    code = exit_code(
        turn.reason,
        turn.failure,
        saved=turn.saved,
        is_written=not turn.unwritten,
        signal_code=interrupts.exit_code,
    )
    denials = _denials(turn, session.session, screen.progress)
    refusal = refusal_text(session.session.state.last_reply)
    outcome = outcome_of(turn, user_is_there=False, refusal=refusal, denials=denials)
    errors = (outcome.text,) if outcome.text else ()
    if as_json:
        refusals = _approver(session.session).refusals()
        said = (*errors, *turn.unwritten)  # without JSON these are notices
        screen.console.answer(result_of(turn, code, said, screen.meter, refusals).to_json())
    else:
        screen.console.answer(answer_text(turn.text))
    if denials and turn.reason != "refused":
        errors = (*errors, denials)
    _print_end(screen.progress, turn, errors)
    return code


def _prompt_of(request: RunRequest) -> "Prompt":
    """The prompt; what was piped in besides it is a text of its own, because it is not the user's."""
    return (Text(request.prompt), Text(f"\n\n{request.piped}")) if request.piped else request.prompt


async def run_headless_command(
    frontend: Frontend, screen: HeadlessScreen, session_id: str | None, interrupts: Interrupts, *, as_json: bool = False
) -> int:
    """Run the slash command in the front end's request, print its text, and return its exit code.

    A command that gives a prompt ends as a run of this prompt. Raises `SettingsError` if it can't run, `OutputError`.
    """
    screen.progress.learn(frontend.agent.tools)
    async with frontend.open(session_id) as session:
        result = await session.run_command(frontend.request.prompt)
        _approver(session.session).agreed = result.writes
        turn = await _run_turn(session, screen, interrupts, result.prompt) if result.prompt else None
    if turn is not None:
        return _finish(session, screen, turn, interrupts, as_json=as_json)
    if as_json:
        screen.console.answer(result_of_command(result.text, session.id, screen.meter, result.exit_code).to_json())
    else:
        screen.console.answer(answer_text(result.text))
    return result.exit_code


def _denials(turn: "TurnResult", session: "Session", progress: Progress) -> str:
    """What was refused for lack of a user, and how to allow it; empty if nothing was."""
    if not turn.denials:
        return ""
    refusals = _approver(session).refusals()
    denied = [
        Denied(
            call_line(progress.spec_of(call.name), call.raw_arguments, _LABEL_WIDTH),
            refusals[call].hosts if call in refusals else (),
        )
        for call in turn.denials
    ]
    return denials_text(turn, denied, _advice(session))


def _advice(session: "Session") -> str:
    """How the refused calls could be allowed."""
    from bradawl.app.refusal_advice import how_to_allow

    approver = _approver(session)
    return how_to_allow(
        approver.refused,
        session.policy(),
        cwd=session.agent.project,
        home=approver.home,
        without_sandbox=approver.without_sandbox,
    )


def _approver(session: "Session") -> DenyAllApprover:
    """The session's approver; one without questions if an embedding program brought its own."""
    asked = session.agent.approver
    return asked if isinstance(asked, DenyAllApprover) else DenyAllApprover()


def answer_text(text: str) -> str:
    """The answer as it is printed: cleaned, with one newline at its end; empty if there is none."""
    answer = clean(text).rstrip("\n")
    return f"{answer}\n" if answer.strip() else ""


def _print_end(progress: Progress, turn: "TurnResult", errors: tuple[str, ...]) -> None:
    for error in errors:
        progress.error(f"bradawl: {error}")
    if turn.reason == "completed" and not turn.text.strip():
        progress.line("The model ended without a text.")
    more = f". To continue: bradawl -r {turn.session_id}" if turn.saved else ""
    progress.dim(usage_text(turn.steps, turn.usage, turn.cost) + more)
