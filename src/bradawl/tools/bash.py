"""The tool `bash`: runs a shell line."""

import codecs
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, runtime_checkable

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import ToolError
from bradawl.core.events import Cwd
from bradawl.core.messages import Text
from bradawl.core.permissions import Grant, Sandbox
from bradawl.core.ports import CallContext, Jobs, Process, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import Command, CommandResult
from bradawl.tools.shell.result import (
    KEPT_BYTES,
    LONGEST_S,
    SHOWN,
    SPILLED_BYTES,
    RunConditions,
    body_of,
    ending_of,
    output_of,
)
from bradawl.tools.shell.state import home_folder, keep_state, mark_seen, mark_written, nearest_folder
from bradawl.tools.shell.terminal_programs import needs_terminal

if TYPE_CHECKING:
    from bradawl.safety.shell.allow.path_effects import Entries

_SPEC = ToolSpec("bash", kind="run", rule_names=("Bash",), shows=("command",), result="output")
_PATIENCE_S = 120
_AT_ONCE_S = 0.2
_LOOKS_EVERY_S = 0.25
"""Between two looks whether the user wants the command in the background."""
_PROGRESS_PIECE = 2_000
_SHOWN_PER_S = 300_000.0  # bytes
_OWN_NETWORK = ". Other commands can't connect to it: start server and client in one command"


class UnattendedBashParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run bash. cd (for all tools) and exports stay. No stdin (heredocs work), no terminal. What runs on is ended."""

    command: str
    timeout: Annotated[
        int,
        msgspec.Meta(description="Seconds until it is ended, at most 600. Default: after 120 it goes on as a job."),
    ] = 0
    run_in_background: Annotated[bool, msgspec.Meta(description="As a job: servers, long builds.")] = False
    answer_if_ok: Annotated[
        str,
        msgspec.Meta(
            description="Your final answer, with the last check: ends the task if all calls of the reply and all "
            "commands of this one succeed. Its last line of output is added."
        ),
    ] = ""

    @property
    def lifted(self) -> Literal["", "network", "off"]:
        """The limits of the sandbox that the call asks to lift."""
        return ""


class BashParams(UnattendedBashParams, frozen=True, forbid_unknown_fields=True):
    """Run bash. cd (for all tools) and exports stay. No stdin (heredocs work), no terminal. What runs on is ended."""

    sandbox: Annotated[
        Literal["", "network", "off"],
        msgspec.Meta(description="If the sandbox made it fail: asks the user. Hosts are asked about one by one."),
    ] = ""

    @property
    def lifted(self) -> Literal["", "network", "off"]:
        """The limits of the sandbox that the call asks to lift."""
        return self.sandbox


def _nowhere(_: str) -> bool:
    return False


def _nothing_else(_folder: str, **_: bool) -> tuple[str, ...]:
    return ()


@runtime_checkable
class ChecksGrants(Protocol):
    """`Processes` that can tell before a start that a sandbox can't give what a grant permits."""

    def check_grant(self, command: Command, grant: Grant) -> None:
        """Raises the `ToolError` that `start` would raise."""
        ...


class Bash(msgspec.Struct, frozen=True, kw_only=True):
    """The tool `bash`."""

    patience_s: int = _PATIENCE_S
    """Seconds after which a command without a timeout becomes a background job."""
    home: str = ""
    """HOME for bash; if empty, the home folder of `context.files`, else that of the user database."""
    search_path: str = ""
    """PATH for bash. A program that it finds in the workspace, where the model may have put it, is not treated as the
    system's program of that name.
    """
    workspace: tuple[str, ...] = ()
    changeable: tuple[str, ...] = ()
    """Further folders whose programs are not treated as the system's, such as temporary ones."""
    git_is_safe: Callable[[str], bool] = _nowhere
    """Whether git in a folder starts no program that its configuration names."""
    git_reads: Callable[..., tuple[str, ...] | None] = _nothing_else
    """Files git reads there besides its data and the working tree; None if unknown."""
    resolve: Callable[[str, str], str] | None = None
    """Maps a path inside the sandbox to the real one; None if paths are the same."""
    sandbox: Callable[[], Sandbox] = Sandbox
    """Returns the sandbox of commands; called only when needed."""
    entries: "Entries | None" = None
    """Lists folders of a virtual tree; lines can then be analyzed but not run."""
    own: tuple[str, ...] = ()
    """bradawl's own folders outside the home folder: lines may not write there or read keys there."""
    scratch: Callable[[], str] = str
    """The part of them that programs of the session call `/tmp`; empty if there is none."""
    environment: Mapping[str, str] | None = None
    """Environment of bash before the session changes it; None if unknown."""
    user_is_there: bool = True
    """Whether a user can be asked to lift a limit of the sandbox."""

    @property
    def spec(self) -> ToolSpec:
        """Runs programs; a screen shows the end of their output."""
        return _SPEC

    @property
    def params(self) -> type[UnattendedBashParams]:
        """Arguments of a call. Without a user none asks for more than the sandbox gives."""
        return BashParams if self.user_is_there else UnattendedBashParams

    def effects(self, params: UnattendedBashParams, context: CallContext) -> Effects:
        """The effects of the line, as far as analysis can tell. Raises `ToolError` for an invalid timeout or text."""
        return self._judged(params, context)[0]

    def _judged(self, params: UnattendedBashParams, context: CallContext) -> tuple[Effects, Command]:
        """The effects of the line, and the command that its seal covers."""
        if params.timeout < 0:
            raise ToolError(f"timeout is in seconds, from 1 to {LONGEST_S}; it was {params.timeout}")
        _check_text(params.command)
        command = self._command(params, context)
        effects = self._seen(params, command.cwd, context)
        if not self._only_reads_here(effects, command.cwd):
            from bradawl.safety.environment_variables import risky_variables
            from bradawl.safety.shell.executed_files import run_files, sets_what_runs

            argvs = (*effects.commands, *effects.inner)
            runs = run_files(argvs, command.cwd, self.home)
            if runs.is_whole and not effects.understood and not self._is_held(params):
                from bradawl.safety.shell.loaded_code import with_loaded

                runs = with_loaded(runs, argvs, command.cwd)
            command = msgspec.structs.replace(command, runs=runs.names)
            is_told = effects.understood or (runs.is_whole and bool(argvs) and not sets_what_runs(params.command))
            variables = risky_variables(context.env) if context.env else ()
            effects = msgspec.structs.replace(effects, unsealed=effects.unsealed or not is_told, variables=variables)
        effects = msgspec.structs.replace(
            effects,
            seal=context.processes.seal(command),
            lifts=self._lifts(params.lifted),
            session=(*effects.session, "jobs") if params.run_in_background else effects.session,
        )
        return effects, command

    def _only_reads_here(self, effects: Effects, cwd: str) -> bool:
        """Whether the line runs without a question in every mode."""
        folders = (*self.workspace, cwd)
        inside = all(any(is_within(path, folder) for folder in folders) for path in effects.reads)
        return effects.is_read_only and inside

    async def check_can_run(self, params: UnattendedBashParams, context: CallContext) -> None:
        """Raises `ToolError` for what no answer of a user makes possible."""
        effects, command = self._judged(params, context)
        _check_can_run(params, effects, context)
        if context.grant is not None and isinstance(context.processes, ChecksGrants):
            context.processes.check_grant(command, context.grant)

    async def run(self, params: UnattendedBashParams, context: CallContext) -> ToolOutput:
        """Run the line to its end or its timeout. The result contains the exit code."""
        effects, command = self._judged(params, context)
        _check_can_run(params, effects, context)
        progress = _Progress(context)
        began = time.monotonic()
        process, cwd = await _start(command, context, progress)
        timeout_s = min(params.timeout or self.patience_s, LONGEST_S)
        ended = await _wait(process, _AT_ONCE_S if params.run_in_background else timeout_s, context.jobs)
        if ended == "ended":
            result = process.result()
            if effects.understood:
                await mark_seen(effects.reads, result.stdout, context)
            await mark_written(params.command, context)
        elif context.jobs is not None and (params.run_in_background or not params.timeout or ended == "moved"):
            progress.is_over = True
            said = "" if params.run_in_background else f"still running after {timeout_s} s, "
            if ended == "moved":
                said = "the user moved it: it goes on "
            if params.run_in_background and params.timeout:
                said = "without the timeout, which jobs don't have, "
            job = partial(context.jobs.add, process, params.command, context.call_id)
            about = _OWN_NETWORK if self._has_own_network(context) else ""
            output = await _hand_over(process, job, time.monotonic() - began, said, about)
            return msgspec.structs.replace(output, has_failed_part=True)  # how it ends is not known
        else:
            await process.end()
            result = msgspec.structs.replace(process.result(), exit_code=None)
        notes = keep_state(result, cwd, context, may_move=effects.moves, user_is_there=self.user_is_there)
        if cwd != context.project and (result.exit_code or any(result.pipe_status) or result.earlier_failures):
            from bradawl.tools.shell.missing_paths import note_on  # most commands run in the project's folder

            notes = (*notes, *await note_on(params.command, result, cwd, context))
        if result.sandbox and (b".envrc" in result.stdout or b".vscode" in result.stdout):
            from bradawl.tools.shell.placeholder_names import note_on as note_on_placeholders

            notes = (*notes, *note_on_placeholders(result, context.project))
        if params.run_in_background:
            notes = ("[it ended at once, so there is no job]", *notes)
        ending = ending_of(result, timeout_s, params.timeout)
        conditions = RunConditions(
            user_is_there=self.user_is_there,
            by_domain=bool(result.sandbox) and self.sandbox().limits_hosts,
        )
        output = output_of(params.command, result, ending, notes, context.grant, conditions)
        if params.answer_if_ok and _may_hide_failures(params.command, result):
            return msgspec.structs.replace(output, has_failed_part=True)
        return output

    def _has_own_network(self, context: CallContext) -> bool:
        """Whether servers of a command are out of reach for other commands."""
        is_outside = context.grant is not None and context.grant.outside_sandbox
        return not is_outside and self.sandbox().name == "bubblewrap"

    def _command(self, params: UnattendedBashParams, context: CallContext) -> Command:
        """The command that is analyzed, sealed and started."""
        return Command(
            (params.command,),
            nearest_folder(context) if self.entries is None else context.cwd,
            is_shell=True,
            output_limit_bytes=KEPT_BYTES,
            env=context.env,
            spill_limit_bytes=0 if params.run_in_background else SPILLED_BYTES,
            reports_failed_commands=bool(params.answer_if_ok),
        )

    def _seen(self, params: UnattendedBashParams, cwd: str, context: CallContext) -> Effects:
        from bradawl.safety.shell.allow.folder_listing import entries
        from bradawl.safety.shell.analysis import ShellContext, line_effects

        around = ShellContext(
            resolve=self.resolve if self.resolve and params.lifted != "off" else context.files.resolve,
            home=self.home or home_folder(context),
            roots=self.workspace,
            search_path=self.search_path,
            changeable=self.changeable,
            entries=self.entries or entries,
            git_is_safe=self.git_is_safe,
            git_reads=self.git_reads,
            is_confined=lambda: not params.lifted and self.sandbox().holds_anything,
            secrets=partial(self._secrets_below, is_lifted=params.lifted == "off"),
            is_unignored=_is_brought_back,
            rules=context.rules,
            is_covered=partial(self._is_covered, is_lifted=params.lifted == "off"),
            own=self.own,
            scratch=self.scratch(),
            environment=self.environment,
        )
        return line_effects(params.command, cwd, context.env, around)

    def _is_held(self, params: UnattendedBashParams) -> bool:
        """Whether a sandbox confines the line, so that most lines need no question."""
        return self.entries is not None or (not params.lifted and self.sandbox().holds_anything)

    def _secrets_below(self, folder: str, *, is_lifted: bool) -> tuple[str, ...]:
        if self.entries is not None or self._is_covered(is_lifted=is_lifted):
            return ()
        from bradawl.sandbox.discovery.workspace_survey import secrets_below  # only where no sandbox confines them

        return secrets_below(folder)

    def _is_covered(self, *, is_lifted: bool) -> bool:
        """Whether the sandbox hides credentials from the command."""
        sandbox = self.sandbox()
        return bool(sandbox.name) and not is_lifted and "credentials" not in sandbox.lacks

    def _lifts(self, sandbox: Literal["", "network", "off"]) -> tuple[str, ...]:
        """The limits of the sandbox that the call asks to lift; none without a sandbox."""
        if not sandbox or not self.sandbox().name:
            return ()
        return ("sandbox",) if sandbox == "off" else ("network",)


def _check_can_run(params: UnattendedBashParams, effects: Effects, context: CallContext) -> None:
    """Raises `ToolError` for a program that needs a terminal, and for a job where there can be none."""
    if why := needs_terminal((*effects.commands, *effects.inner)):
        raise ToolError(why)
    if params.run_in_background and context.jobs is None:
        raise ToolError("nothing can go on in the background here; run it with a timeout, or without the server")


def _may_hide_failures(command: str, result: CommandResult) -> bool:
    """Whether nothing is known of failures before the end of a line, or of programs that it started."""
    return not result.pipe_status or "trap" in command or result.ended_background


def _is_brought_back(path: str) -> bool:
    from bradawl.safety.ignore_files import is_unignored  # only for a search that covers a file with keys

    return is_unignored(path)


def _check_text(text: str) -> None:
    """Refuse text that bash would truncate, that a screen would hide, or that can't be encoded."""
    if not text.strip():
        raise ToolError("command is empty; give a line of bash")
    if text.isprintable():
        return
    for char in text:
        if char < " " and char not in "\t\n\r\v\f":
            raise ToolError(
                f"the command holds the control character U+{ord(char):04X}, so it was not run; write it as an escape, "
                f"such as $'\\x{ord(char):02x}' or printf '\\{ord(char):03o}'"
            )
        if "\ud800" <= char <= "\udfff":
            raise ToolError("the command holds half a character (a lone surrogate), so it was not run; leave it out")


class _Progress:
    """Shows the output of a command while its call runs; skips most of a flood."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._room = _SHOWN_PER_S
        self._last = time.monotonic()
        self.is_over = False

    def show(self, data: bytes) -> None:
        """Show the end of each piece of output; skip pieces while output comes too fast to read."""
        now = time.monotonic()
        room = min(_SHOWN_PER_S, self._room + (now - self._last) * _SHOWN_PER_S)
        self._room, self._last = room, now
        if self.is_over or room <= 0:
            return
        self._room = max(room - len(data), -_SHOWN_PER_S / 20)
        if text := self._decoder.decode(data[-_PROGRESS_PIECE:]):
            self._context.progress(text)


async def _start(command: Command, context: CallContext, progress: _Progress) -> tuple[Process, str]:
    """The running command and its folder: the working directory or, if that is gone, its nearest existing parent."""
    process = await context.processes.start(command, context.grant, progress.show, context.permit)
    if command.cwd != context.cwd:
        context.change(Cwd(command.cwd))
    return process, command.cwd


async def _wait(process: Process, timeout_s: float, jobs: Jobs | None) -> Literal["ended", "late", "moved"]:
    """Wait for the end of a command, its timeout, or the user's wish to have it in the background."""
    if jobs is None:
        return "ended" if await process.wait(timeout_s) else "late"
    asked, end = jobs.times_asked(), time.monotonic() + timeout_s
    while True:
        left = end - time.monotonic()
        if await process.wait(max(0.0, min(left, _LOOKS_EVERY_S))):
            return "ended"
        if jobs.times_asked() != asked:
            return "moved"
        if left <= _LOOKS_EVERY_S:
            return "late"


async def _hand_over(process: Process, add: Callable[[float], str], ran_s: float, said: str, about: str) -> ToolOutput:
    """Make the process a background job with `add`; returns its output so far. `about` is a sentence on its network."""
    data, dropped = process.printed()
    try:
        job_id = add(ran_s)
    except ToolError:
        await process.end()
        raise
    missing = f"[{dropped:,} bytes in the middle of the output are not shown]\n" if dropped else ""
    note = (
        f"{missing}[{said}in the background as {job_id}; bash_output shows what it prints, bash_kill ends it, and you "
        f"are told when it ends. A cd or export in it does not stay{about}]"
    )
    return ToolOutput((Text(body_of(data, b"") or "(no output yet)"), Text(f"\n{note}")), limit=SHOWN)
