"""The conversation with a user: reads prompts and slash commands, runs turns, says how they ended."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from bradawl._version import __version__
from bradawl.app.answers import answers_of
from bradawl.app.console import Console
from bradawl.app.frontend import Frontend, FrontendSession, RunRequest
from bradawl.app.interrupts import Interrupts
from bradawl.app.outcomes import outcome_of
from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.rendering import cut, one_line
from bradawl.app.slash_commands import CommandFailed, CommandResult, is_command
from bradawl.app.submission import Submission
from bradawl.app.tui.printed_output import PrintedOutput
from bradawl.app.tui.terminal import Terminal
from bradawl.app.tui.turn_end import TurnEnd
from bradawl.core.errors import SessionError, SettingsError
from bradawl.core.events import Pin
from bradawl.core.messages import Message, User, text_of

if TYPE_CHECKING:
    from bradawl.agent.session import Prompt, TurnResult
    from bradawl.app.settings.settings import Settings

_RECALLED_LINES: Final = 12
_NOT_SAVED: Final = (
    "This turn could not be saved; the disk may be full. It can't be resumed, and undo may not know what it changed."
)


async def run_repl(request: RunRequest, console: Console) -> int:
    """Converse until the user leaves, and return the exit code. Raises `SettingsError` and `SessionError`."""
    if not console.is_interactive or console.is_dumb or request.settings.plain:
        from bradawl.app.tui.plain.terminal import plain_terminal

        return await converse(request, console, plain_terminal(console))
    from bradawl.app.tui.live.terminal import with_live_terminal

    return await with_live_terminal(console, request.settings, lambda terminal: converse(request, console, terminal))


async def converse(request: RunRequest, console: Console, terminal: Terminal) -> int:
    """Build the agent, and converse at a terminal. Returns the exit code. Raises as `run_repl`."""
    repl = Repl(terminal)
    has_user = console.has_user  # asked before the terminal may be gone
    with Interrupts(on_interrupt=terminal.interrupt) as interrupts:
        try:
            settings = await _settings_after_trust_question(request, terminal)
            # In a thread, because the user may be typing already.
            frontend = await asyncio.to_thread(_start, request._replace(settings=settings), terminal)
            try:
                session_id = request.choose_session(frontend.agent)
                await asyncio.to_thread(frontend.agent.policy)  # the sandbox is tried out
                await repl.converse(frontend, session_id, is_interactive=console.is_interactive)
            finally:
                await frontend.agent.aclose()
        except asyncio.CancelledError:
            if not interrupts.has_arrived:
                raise
            return interrupts.exit_code
    if repl.had_no_input and session_id is None and not has_user:
        raise SettingsError("The prompt is empty: use `bradawl -p PROMPT`, pipe it in, or talk at a terminal.")
    return 0


def _start(request: RunRequest, terminal: Terminal) -> Frontend:
    settings = request.settings
    memory = RememberedRules(settings.home, settings.cwd, settings.user_home, settings.add_dirs)
    frontend = request.start(
        terminal.approver(memory),
        terminal.emit,
        user_is_there=True,
        warnings=lambda: memory.problems,
        keys_help=terminal.keys_help,
        user=terminal.user,
    )
    frontend.symbols = terminal.symbols
    terminal.learn(frontend.agent.tools)
    return frontend


async def _settings_after_trust_question(request: RunRequest, terminal: Terminal) -> "Settings":
    """The settings after the question whether the project's files take effect, if it has to be asked."""
    from bradawl.app.trust_question import ask_about_trust, trust_question
    from bradawl.safety.control_characters import escape

    settings, user = request.settings, terminal.user
    if user is None or (question := await asyncio.to_thread(trust_question, settings)) is None:
        return settings

    lines: list[str] = []

    async def ask(asked: str) -> str:
        terminal.printer.line("\n".join(lines))  # not as a text with a diff, which drops parts of lines
        lines.clear()
        return await user.ask("", asked)

    is_answered = await ask_about_trust(settings, question, lambda line: lines.append(escape(line)), ask)
    if lines:
        terminal.printer.line("\n".join(lines))
    return request.reload_settings() if is_answered else settings


class Repl:
    """One conversation at a terminal, over one or more sessions."""

    def __init__(self, terminal: Terminal) -> None:
        self.had_no_input = True
        """Nothing has been typed yet."""
        self._leaves = True
        """The program ends after the open session."""
        self._unpriced_session = ""
        """The session of which it was said that its cost is not known."""
        self._terminal = terminal
        self._print = terminal.printer
        self._prompts = terminal.prompts

    async def converse(self, frontend: Frontend, session_id: str | None, *, is_interactive: bool) -> None:
        """Sessions one after the other until the user leaves. Raises `SessionError`."""
        if is_interactive:
            self._greet(frontend)
        if self._terminal.user is not None:
            frontend.announce()
        prompt = frontend.request.prompt
        while True:
            with ExitStack() as after:
                async with frontend.open(session_id) as session:
                    after.callback(self._say_goodbye, session)  # closes the log, which jobs write to until they end
                    self._prompts.begin_session(session)
                    try:
                        await self._recall(session)
                        then = await self._run_session(session, prompt)
                        self._leaves = then.then == "leave"
                    finally:
                        self._prompts.begin_session(None)
            if then.then == "leave":
                return
            session_id, prompt, self._leaves = then.session or None, "", True
            if session_id is None:
                self._print.line("A new session begins.")

    # -------------------------------------------------------------- prompts

    async def _run_session(self, session: FrontendSession, prompt: str) -> CommandResult:
        while True:
            submission = Submission(prompt, prompt) if prompt else await self._prompts.next_prompt()
            prompt = ""
            if submission is None:
                return CommandResult(then="leave")
            self.had_no_input = False
            self._terminal.show_prompt(submission)
            if submission.typed.startswith("!") and submission.text[1:].strip():
                await self._run_user_command(session, submission.text[1:].strip())
                continue
            if not is_command(submission.typed):
                await self._run_turn(session, await self._with_attachments(session, submission))
                continue
            result = await self._run_command(session, submission.text)
            if result.then != "stay":
                return result
            if result.prompt:
                await self._run_turn(session, result.prompt)

    async def _with_attachments(self, session: FrontendSession, submission: Submission) -> "Prompt":
        """The prompt with the files that it names with `@`."""
        if "@" not in submission.typed and not submission.images:
            return submission.text
        from bradawl.app.attachments import attach
        from bradawl.app.listed_files import listed_files

        inner = session.session
        cwd = inner.state.cwd or session.frontend.settings.cwd
        attached = await asyncio.to_thread(attach, submission, cwd, inner.policy(), listed_files)
        for problem in attached.problems:
            self._print.error(one_line(problem))
        if not attached.names:
            return submission.text
        self._print.dim(f"attached: {', '.join(map(one_line, attached.names))}")
        return attached.parts

    async def _run_user_command(self, session: FrontendSession, command: str) -> None:
        """Run a command of the user, and print what it prints, up to a number of lines."""
        printed = PrintedOutput(self._print)
        self._prompts.begin_turn(f"Running {cut(one_line(command), 40)}")
        try:
            inner, settings = session.session, session.frontend.settings
            done = await session.shell.run(command, inner.state.cwd or settings.cwd, settings.environment, printed.show)
            inner.conversation.note(done.note(command))
        except SettingsError as error:
            self._print.error(one_line(str(error)))
            return
        finally:
            self._prompts.end_turn()
        printed.end()
        if done.exit_code != 0:
            self._print.dim("cancelled" if done.exit_code is None else f"exit code {done.exit_code}")

    async def _run_command(self, session: FrontendSession, line: str) -> CommandResult:
        try:
            result = await self._result_of(session, line)
        except (SettingsError, CommandFailed) as error:
            self._print.error(one_line(str(error)))
            return CommandResult()
        if result.context is not None and self._terminal.show_context is not None:
            self._terminal.show_context(result.context)
        elif result.text:
            show = self._print.diff if result.style == "diff" else self._print.line
            show(result.text)
        if result.draft:
            self._terminal.draft(result.draft)
        return result

    async def _result_of(self, session: FrontendSession, line: str) -> CommandResult:
        """Run a command; one that takes long is shown as work."""
        name = line.split()[0]
        if not session.frontend.commands.is_slow(name):
            return await session.run_command(line)
        self._prompts.begin_turn(f"Running {name}")
        try:
            return await session.run_command(line)
        finally:
            self._prompts.end_turn()

    async def _run_turn(self, session: FrontendSession, prompt: "Prompt") -> None:
        session.frontend.announce()
        self._prompts.begin_turn()
        began = time.monotonic()
        try:
            turn = await session.run(prompt)
        except SessionError as error:
            self._print.error(f"bradawl: {one_line(str(error))}")
            return
        finally:
            self._prompts.end_turn()
        self._show_end(turn, time.monotonic() - began)

    def _show_end(self, turn: "TurnResult", seconds: float) -> None:
        outcome = outcome_of(turn, user_is_there=True)
        match outcome.kind:
            case "completed":
                pass
            case "cancelled":
                self._print.line(outcome.text)
            case "stopped":
                self._print.error(outcome.text)
            case "failed":
                self._print.error(f"bradawl: {outcome.text}")
        if not turn.saved:
            self._print.error(_NOT_SAVED)
        is_unknown = turn.cost is None and bool(turn.usage.prompt or turn.usage.output)
        says_unknown = is_unknown and turn.session_id != self._unpriced_session
        self._terminal.show_end(TurnEnd(turn.reason, turn.steps, turn.usage, turn.cost, seconds, says_unknown))
        if is_unknown:
            self._unpriced_session = turn.session_id

    # -------------------------------------------------------------- beginning and end

    def _greet(self, frontend: Frontend) -> None:
        settings = frontend.settings
        self._print.line(f"bradawl {__version__}, {one_line(frontend.model_name)}, in {one_line(settings.cwd)}")
        self._print.dim("/help lists commands" + (", tools run without asking" if settings.yolo else ""))

    async def _recall(self, session: FrontendSession) -> None:
        """Show a resumed session's last exchange, and an undo of it that did not end."""
        if prompt := last_prompt(session.messages, session.session.transcript.pins):
            self._terminal.show_exchange(prompt, answers_of(session).of_turn)
            from bradawl.app.undo_commands import stopped_undo_text

            if text := await stopped_undo_text(session):
                self._print.line(text)

    def _say_goodbye(self, session: FrontendSession) -> None:
        if session.messages and session.close_log() and self._leaves:
            self._print.line(f"To resume this session: bradawl -r {session.id}")


def last_prompt(messages: Sequence[Message], pins: Sequence[Pin] = ()) -> str:
    """The last prompt; empty if there is none.

    With `pins` the first message is that of a compaction, which holds them.
    """
    prompts = [place for place, message in enumerate(messages) if isinstance(message, User) and message.parts]
    own = [place for place in prompts if place or not pins]
    if not prompts:
        return ""
    prompt = messages[own[-1]] if own else None
    pinned = [pin.text.partition("\n")[2].rpartition("\n")[0] for pin in pins if pin.kind == "request"]
    return text_of(prompt.parts) if isinstance(prompt, User) else (pinned or [""])[-1]
