"""Headless runs (`-p`): one prompt or slash command; the answer on stdout, progress and warnings on stderr."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from msgspec import structs

from bradawl.app.console import Console
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import Meter, Result, exit_code, result_of, result_of_command
from bradawl.app.frontend import Frontend, FrontendSession, RunRequest
from bradawl.app.interrupts import Interrupts
from bradawl.app.outcomes import Denied, denials_text, outcome_of
from bradawl.app.progress import Progress
from bradawl.app.rendering import call_line, refusal_text, usage_text
from bradawl.app.session_choice import shown_id
from bradawl.core.deltas import Notice, RetryScheduled
from bradawl.core.events import Envelope, Live, RequestSent
from bradawl.core.messages import Text
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from bradawl.agent.session import Prompt, Session, TurnResult
    from bradawl.app.settings.settings import Settings
    from bradawl.app.slash_commands import CommandResult


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


class HeadlessRun:
    """A run of one prompt or slash command, whose answer is printed when it is complete."""

    def __init__(
        self, request: RunRequest, console: Console, interrupts: Interrupts, without_sandbox: Callable[[], str]
    ) -> None:
        """`without_sandbox`: see `DenyAllApprover`."""
        self._request, self._interrupts = request, interrupts
        self._as_json = request.settings.output_format == "json"
        self._screen = HeadlessScreen(console)
        self.approver = DenyAllApprover(request.settings.user_home, without_sandbox)
        self.emit = self._screen.emit

    async def run(self, frontend: Frontend, session_id: str | None) -> int:
        """Run the request in a session, print the answer, and return the exit code.

        A first signal cancels the turn; what was answered until then is printed. A command that gives a prompt ends as
        a run of this prompt. Raises `SessionError`, `OutputError`, and `SettingsError` if a command can't run.
        """
        self._screen.progress.learn(frontend.agent.tools)
        turn: TurnResult | None = None
        async with frontend.open(session_id) as session:
            done = await session.run_command(self._request.prompt) if self._request.is_command else None
            if done is None:
                turn = await self._run_turn(session, prompt_of(self._request))
            elif done.prompt:
                self.approver.agreed = done.writes
                turn = await self._run_turn(session, done.prompt)
        if turn is None and done is not None:
            return self._print_command(session, done)
        return self._print_turn(session, cast("TurnResult", turn))

    async def _run_turn(self, session: FrontendSession, prompt: "Prompt") -> "TurnResult":
        self._interrupts.target = session.cancel
        try:
            return await session.run(prompt)
        finally:
            self._screen.wait.stop()
            self._interrupts.target = None

    def _print_turn(self, session: FrontendSession, turn: "TurnResult") -> int:
        screen = self._screen
        ended = end_of_turn(session, screen, turn, self._interrupts.exit_code, as_json=self._as_json)
        screen.console.answer(ended.result.to_json() if self._as_json else answer_text(turn.text))
        print_end(screen.progress, turn, ended.told)
        return ended.result.exit_code

    def _print_command(self, session: FrontendSession, done: "CommandResult") -> int:
        ended = end_of_command(session, self._screen, done)
        self._screen.console.answer(ended.result.to_json() if self._as_json else answer_text(done.text))
        for text in ended.told:
            self._screen.progress.error(f"bradawl: {text}")
        return ended.result.exit_code


class TurnEnd(NamedTuple):
    """The end of a turn, for stdout and for stderr."""

    result: Result
    told: tuple[str, ...]
    """Texts for stderr that say how it ended."""


def end_of_turn(
    session: FrontendSession, screen: HeadlessScreen, turn: "TurnResult", signal_code: int, *, as_json: bool
) -> TurnEnd:
    """The result of a turn, whose answer is saved first if settings name a file. `signal_code`: of a cancelled turn."""
    saved, written = turn.saved, not turn.unwritten
    code = exit_code(turn.reason, turn.failure, saved=saved, is_written=written, signal_code=signal_code)
    denials = _denials(turn, session.session, screen.progress)
    refusal = refusal_text(session.session.state.last_reply)
    outcome = outcome_of(turn, user_is_there=False, refusal=refusal, denials=denials)
    errors = (outcome.text,) if outcome.text else ()
    said = (*errors, *turn.unwritten) if as_json else errors  # without JSON the latter are notices
    refusals = _approver(session.session).refusals() if as_json else {}
    settings = session.frontend.settings
    plain = result_of(turn, code, said, screen.meter, refusals)
    result = _with_shown_id(settings, _with_answer_saved(settings, plain, answer_text(turn.text)))
    if denials and turn.reason != "refused":
        errors = (*errors, denials)
    return TurnEnd(result, (*errors, *result.errors[len(said) :]))


def _with_shown_id(settings: "Settings", result: Result) -> Result:
    return structs.replace(result, session_id=shown_id(settings.values.get("session_id"), result.session_id))


def prompt_of(request: RunRequest) -> "Prompt":
    """The prompt; what was piped in besides it is a text of its own, because it is not the user's."""
    return (Text(request.prompt), Text(f"\n\n{request.piped}")) if request.piped else request.prompt


def end_of_command(session: FrontendSession, screen: HeadlessScreen, done: "CommandResult") -> TurnEnd:
    """The result of a slash command without a prompt, after its text was saved where the settings say."""
    plain = result_of_command(done.text, session.id, screen.meter, done.exit_code)
    settings = session.frontend.settings
    result = _with_shown_id(settings, _with_answer_saved(settings, plain, answer_text(done.text)))
    return TurnEnd(result, result.errors[len(plain.errors) :])


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
    asked = getattr(asked, "without_user", asked)  # that of the control channel has one
    return asked if isinstance(asked, DenyAllApprover) else DenyAllApprover()


def _with_answer_saved(settings: "Settings", result: Result, text: str) -> Result:
    if not isinstance(settings.values.get("output_last_message"), str):
        return result
    from bradawl.app.last_answer import with_answer_saved

    return with_answer_saved(settings, result, text)


def answer_text(text: str) -> str:
    """The answer as it is printed: cleaned, with one newline at its end; empty if there is none."""
    answer = clean(text).rstrip("\n")
    return f"{answer}\n" if answer.strip() else ""


def print_end(progress: Progress, turn: "TurnResult", errors: tuple[str, ...]) -> None:
    """Print how a turn ended, and how to continue its session."""
    for error in errors:
        progress.error(f"bradawl: {error}")
    if turn.reason == "completed" and not turn.text.strip():
        progress.line("The model ended without a text.")
    more = f". To continue: bradawl -r {turn.session_id}" if turn.saved else ""
    progress.dim(usage_text(turn.steps, turn.usage, turn.cost) + more)
