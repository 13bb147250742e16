"""The front end of `--output-format stream-json`: runs the messages of stdin as turns; answers the control channel."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bradawl._version import __version__
from bradawl.app.console import Console
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import (
    CLOSED,
    NOT_SAVED,
    USAGE,
    Meter,
    Result,
    code_of_error,
    result_of_command,
    result_of_failure,
)
from bradawl.app.frontend import Frontend, FrontendSession, RunRequest
from bradawl.app.headless import HeadlessScreen, TurnEnd, end_of_command, end_of_turn, print_end, prompt_of
from bradawl.app.interrupts import Interrupts
from bradawl.app.json_values import json_line, new_uuid
from bradawl.app.rendering import one_line
from bradawl.app.session_choice import shown_id
from bradawl.app.slash_commands import is_command
from bradawl.app.stream_json.approver import ControlApprover
from bradawl.app.stream_json.control_channel import ControlChannel
from bradawl.app.stream_json.control_requests import ControlRequests
from bradawl.app.stream_json.event_lines import EventLines
from bradawl.app.stream_json.incoming import IncomingMessages, Prompt
from bradawl.app.stream_json.input_messages import UserPrompt, WrongPrompt
from bradawl.app.stream_json.line_writer import LineWriter
from bradawl.app.stream_json.lines import Init, Line, NoticeLine, RepeatedMessage, ReplayLine, SessionState
from bradawl.app.stream_json.mode_names import mode_name
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.core.events import Envelope, Live, PromptSubmitted
from bradawl.core.messages import Text
from bradawl.core.ports import Approver

if TYPE_CHECKING:
    from typing import Literal

    from bradawl.app.slash_commands import CommandResult

FOLLOWED_VERSION: Final = "2.1.248"
"""The version of Claude Code whose stream this one has the form of; claude-agent-sdk 0.2.189 was read, 2026-11-28."""
_STATE_IS_READ: Final = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
_NOTHING_CAME: Final = (
    'stdin is empty: --input-format stream-json reads lines such as {"type": "user", "message": {"role": "user", '
    '"content": "..."}} there.'
)


class StreamRun:
    """One run: a session, its turns, and both directions of the control channel."""

    def __init__(
        self, request: RunRequest, console: Console, interrupts: Interrupts, without_sandbox: Callable[[], str]
    ) -> None:
        """`without_sandbox`: see `DenyAllApprover`. Needs a running loop."""
        settings = request.settings
        self._request, self._console, self._interrupts = request, console, interrupts
        self._options = settings.values
        self._reports_state = bool(settings.environment.get(_STATE_IS_READ))
        self._screen = HeadlessScreen(console)
        self._writer = LineWriter(console, self._stop)
        self._lines = EventLines(
            self._write, model=settings.model.name, is_partial=bool(self._options.get("include_partial_messages"))
        )
        self._channel = ControlChannel(self._write)
        self._deny_all = DenyAllApprover(settings.user_home, without_sandbox)
        self._approver = ControlApprover(
            self._channel,
            self._deny_all,
            agent_of=self._lines.agent_of,
            waits=lambda begins: self._tell_state("requires_action" if begins else "running"),
            warn=request.notices,
        )
        self._session: FrontendSession | None = None
        self._requests: ControlRequests | None = None
        """None without messages on stdin."""
        self._incoming = IncomingMessages(self._channel, request.notices)
        self._held_notices: list[NoticeLine] | None = []
        """Warnings from before the first line; None after it."""
        self._is_over = self._is_ending = False
        """No further turn begins; nothing but the last lines is to be written."""
        self._is_answering = self._interrupts_next = False
        """A message is answered; its turn, or the next one, is interrupted as soon as it begins."""

    @property
    def approver(self) -> Approver:
        """Answers the questions of the run."""
        return self._approver if self._options.get("permission_prompt_tool") else self._deny_all

    def emit(self, item: Envelope | Live) -> None:
        """Print one event, on stdout and on stderr."""
        self._screen.emit(item)
        self._lines.emit(item)
        is_prompt = isinstance(item, Envelope) and isinstance(item.event, PromptSubmitted)
        if is_prompt and self._interrupts_next and self._session is not None:
            self._interrupts_next = False
            self._session.cancel()

    async def run(self, frontend: Frontend, session_id: str | None) -> int:
        """Run all turns and return the exit code, which the last line has too.

        Raises `SessionError` and, without any input, `SettingsError`; both before the first line.
        """
        frontend.has_answers = self.approver is self._approver
        self._screen.progress.learn(frontend.agent.tools)
        self._interrupts.target = self._signalled
        try:
            session = self._session = frontend.open(session_id)
            self._lines.session_id = shown_id(self._options.get("session_id"), session.id)
            async with session:
                result = await self._converse(session)
        finally:
            self._is_ending = True
            await self._writer.drain()  # before an error that is raised is printed, too
            self._interrupts.target = None
            self._writer.close()
        return self._exit_code(result)

    def _exit_code(self, result: Result) -> int:
        if self._writer.is_closed or self._writer.is_abandoned:
            return CLOSED if self._writer.is_closed else self._interrupts.exit_code
        if self._writer.error:  # no JSON object tells it: stdout may end within a line
            self._console.say(f"bradawl: {self._writer.error}")
            return NOT_SAVED
        return result.exit_code

    async def _converse(self, session: FrontendSession) -> Result:
        """Answer all messages in order. Returns the last result; it is printed."""
        last: Result | None = None
        self._begin(session)
        while (message := await self._incoming.next()) is not None:
            self._is_answering = True
            last = await self._answer(session, message)
            self._is_answering = False
            if not self._incoming.has_prompt:
                self._tell_state("idle")  # before the result, so that a result is the last line
            self._write(last)
        await self._use_next_model()
        return self._end(last)

    async def _use_next_model(self) -> None:
        if self._requests is None:
            return
        try:
            await self._requests.use_next_model()
        except BradawlError as error:
            self._request.notices(f"set_model: the model stays: {error}")

    def _end(self, last: Result | None) -> Result:
        """The result of the whole run: that of the last turn, unless something happened after it."""
        code = self._interrupts.exit_code
        if self._interrupts.has_arrived and (last is None or last.exit_code != code):
            return self._failed("Interrupted.", code, reason="cancelled")
        if self._incoming.problem and not self._is_over:
            return self._failed(self._incoming.problem, USAGE)
        if last is not None:
            return last
        if not self._incoming.lines:
            raise SettingsError(_NOTHING_CAME)
        done = result_of_command("", self._lines.session_id, Meter())
        self._write(done)
        return done

    def _failed(self, text: str, code: int, *, reason: str = "error") -> Result:
        self._console.say(f"bradawl: {one_line(text)}")
        result = result_of_failure(text, code, reason=reason, session_id=self._lines.session_id)
        self._write(result)
        return result

    # ------------------------------------------------------------------ turns

    async def _answer(self, session: FrontendSession, message: Prompt) -> Result:
        """Run the turn of one message."""
        self._screen.meter = Meter()
        self._approver.declined.clear()
        self._deny_all.refused.clear()
        self._tell_state("running")
        await self._use_next_model()
        self._write(self._init(session))
        self._release_notices()
        if isinstance(message, WrongPrompt):
            return self._without_turn(message.problem, USAGE, message.uuid)
        self._replay(message)
        try:
            ended = await self._run(session, message)
        except BradawlError as error:
            return self._without_turn(str(error), code_of_error(error), message.uuid)
        finally:
            self._screen.wait.stop()
            self._interrupts_next = False
        return self._with_message(ended.result, message.uuid)

    async def _run(self, session: FrontendSession, message: UserPrompt) -> TurnEnd:
        first = message.parts[0]
        text = first.text if len(message.parts) == 1 and isinstance(first, Text) else ""
        if is_command(text) and not message.is_verbatim:
            done = await session.run_command(text.strip())
            self._deny_all.agreed = done.writes
            if not done.prompt:
                return self._command_ended(session, done)
            prompt = done.prompt
        else:
            prompt = message.parts
        turn = await session.run(prompt)
        ended = end_of_turn(session, self._screen, turn, self._interrupts.exit_code, as_json=True)
        if not self._writer.error:  # a reader that has closed the stream wants no more
            print_end(self._screen.progress, turn, ended.told)
        return ended

    def _command_ended(self, session: FrontendSession, done: "CommandResult") -> TurnEnd:
        ended = end_of_command(session, self._screen, done)
        for text in ended.told:
            self._screen.progress.error(f"bradawl: {text}")
        return ended

    def _without_turn(self, problem: str, code: int, uuid: str) -> Result:
        self._console.say(f"bradawl: {one_line(problem)}")
        result = result_of_failure(problem, code, session_id=self._lines.session_id)
        return self._with_message(result, uuid)

    def _with_message(self, result: Result, uuid: str) -> Result:
        """The result with the message that it answers, and the calls that an answer of the channel refused."""
        from msgspec.structs import replace

        denials = (*result.permission_denials, *self._approver.declined)
        result = replace(result, permission_denials=denials)
        return replace(result, user_message_uuid=uuid, user_message_uuids=(uuid,)) if uuid else result

    # ------------------------------------------------------------------ lines

    def _write(self, line: Line) -> None:
        if isinstance(line, NoticeLine) and self._held_notices is not None:
            self._held_notices.append(line)
            return
        self._writer.write(json_line(line))

    def _release_notices(self) -> None:
        """Print the warnings that came before the first line, which is `init`."""
        held, self._held_notices = self._held_notices or [], None
        for line in held:
            self._write(line)

    def _init(self, session: FrontendSession) -> Init:
        frontend = session.frontend
        tools = tuple(each.spec.name for each in frontend.agent.tools if getattr(each, "is_listed", True))
        return Init(
            cwd=frontend.settings.cwd,
            model=session.model_name,
            tools=tools,
            permission_mode=mode_name(session.mode),
            slash_commands=tuple(each.name for each in frontend.commands.commands if not each.needs_user),
            bradawl_version=__version__,
            claude_code_version=FOLLOWED_VERSION,
            session_id=self._lines.session_id,
            uuid=new_uuid(),
        )

    def _replay(self, message: UserPrompt) -> None:
        if self._options.get("replay_user_messages"):
            repeated = RepeatedMessage(content=message.content)
            line = ReplayLine(message=repeated, session_id=self._lines.session_id, uuid=message.uuid or new_uuid())
            self._write(line)

    def _tell_state(self, state: "Literal['running', 'requires_action', 'idle']") -> None:
        if self._reports_state:
            self._write(SessionState(state=state, session_id=self._lines.session_id, uuid=new_uuid()))

    # ------------------------------------------------------------------ beginning and end

    def _begin(self, session: FrontendSession) -> None:
        """Begin to read stdin; without it the prompt of the command line is the only message."""
        if self._options.get("input_format") != "stream-json":
            prompt = prompt_of(self._request)
            parts = (Text(prompt),) if isinstance(prompt, str) else prompt
            self._incoming.put(UserPrompt(parts, self._request.prompt, is_verbatim=not self._request.is_command))
            self._incoming.end()
            return
        requests = ControlRequests(session, self._approver, interrupt=self._interrupt, warn=self._request.notices)
        self._requests = requests
        self._channel.handlers = requests.handlers()
        self._approver.cancel, self._approver.set_mode = session.cancel, requests.choose_mode
        self._incoming.read(self._console.stdin)

    def _interrupt(self) -> None:
        """End the running turn; one that has not begun ends as soon as it does."""
        if self._session is not None and self._session.is_running:
            self._session.cancel()
        else:
            self._interrupts_next = self._is_answering or self._incoming.has_prompt

    def _signalled(self) -> None:
        if self._is_ending:
            self._writer.abandon()
        self._stop()

    def _stop(self) -> None:
        """End the run: cancel the turn and begin no other."""
        self._is_over = True
        self._incoming.stop()
        if self._session is not None:
            self._session.cancel()
