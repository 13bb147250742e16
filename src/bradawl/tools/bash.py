"""Runs a line of bash."""

import codecs
import time
from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import Cwd
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, Jobs, Process, ToolOutput
from bradawl.core.workspace import Command
from bradawl.tools.shell.result import KEPT_BYTES, LONGEST_S, SHOWN, SPILLED_BYTES, body_of, ending_of, output_of
from bradawl.tools.shell.state import keep_state, mark_seen, nearest_folder

_PATIENCE_S = 120
_AT_ONCE_S = 0.2
_PROGRESS_PIECE = 2_000
_SHOWN_PER_S = 300_000.0  # bytes


class BashParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run bash. cd (for all tools) and exports stay. No input, no terminal. What it leaves running is ended."""

    command: str
    timeout: Annotated[
        int,
        msgspec.Meta(description="Seconds, at most 600; then it is ended. Without: after 120 it goes on as a job."),
    ] = 0
    run_in_background: Annotated[
        bool, msgspec.Meta(description="Make it a job at once: servers, long builds. bash_output shows its output.")
    ] = False


class Bash:
    """The tool `bash`."""

    name: str = "bash"
    params: type[BashParams] = BashParams

    def __init__(
        self, patience_s: int = _PATIENCE_S, *, home: str = "", search_path: str = "", workspace: str = ""
    ) -> None:
        """Who was given no timeout goes on in the background after `patience_s`.

        `home` and `search_path` are HOME and PATH as bash gets them: a name that finds a program in the `workspace`,
        where the model may have put it, is not taken for the system's program of that name.
        """
        self._patience_s = patience_s
        self._home = home
        self._search_path = search_path
        self._workspace = workspace

    def effects(self, params: BashParams, context: CallContext) -> Effects:
        """What the line can be seen to do. Raises `ToolError` for a timeout that is no time or no command."""
        if params.timeout < 0:
            raise ToolError(f"timeout is in seconds, from 1 to {LONGEST_S}; it was {params.timeout}")
        if not params.command.strip():
            raise ToolError("command is empty; give a line of bash")
        effects = self._effects_of(params.command, context)
        if params.run_in_background:
            return msgspec.structs.replace(effects, session=(*effects.session, "jobs"))
        return effects

    async def run(self, params: BashParams, context: CallContext) -> ToolOutput:
        """Run it to its end or to the timeout; the result always says which, and the exit code."""
        effects = self.effects(params, context)
        if params.run_in_background and context.jobs is None:
            raise ToolError("nothing can go on in the background here; run it with a timeout, or without the server")
        progress = _Progress(context)
        process, cwd = await _start(params, context, progress)
        timeout_s = min(params.timeout or self._patience_s, LONGEST_S)
        if await process.wait(_AT_ONCE_S if params.run_in_background else timeout_s):
            result = process.result()
            if effects.understood:
                await mark_seen(effects.reads, context)
        elif context.jobs is not None and (params.run_in_background or not params.timeout):
            progress.is_over = True
            said = "" if params.run_in_background else f"still running after {timeout_s} s, "
            if params.run_in_background and params.timeout:
                said = "without the timeout, which jobs don't have, "
            return await _hand_over(process, context.jobs, params.command, context.call_id, said)
        else:
            await process.end()
            result = msgspec.structs.replace(process.result(), exit_code=None)
        notes = keep_state(result, cwd, context, may_move=effects.moves)
        if params.run_in_background:
            notes = ("[it ended at once, so there is no job]", *notes)
        return output_of(params.command, result, ending_of(result, timeout_s, params.timeout), notes)

    def _effects_of(self, command: str, context: CallContext) -> Effects:
        from bradawl.safety.shell_effects import shell_effects
        from bradawl.safety.shell_search import Programs

        programs = Programs(self._search_path, (self._workspace,)) if self._search_path and self._workspace else None
        resolve = context.files.resolve
        return shell_effects(
            command, cwd=context.cwd, home=self._home, resolve=resolve, env=context.env, programs=programs
        )


class _Progress:
    """Shows what a command prints, as long as its call runs. Of a flood only something now and then."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._room = _SHOWN_PER_S
        self._last = time.monotonic()
        self.is_over = False

    def show(self, data: bytes) -> None:
        """The end of each piece; nothing while more comes than anybody can read."""
        now = time.monotonic()
        room = min(_SHOWN_PER_S, self._room + (now - self._last) * _SHOWN_PER_S)
        self._room, self._last = room, now
        if self.is_over or room <= 0:
            return
        self._room = max(room - len(data), -_SHOWN_PER_S / 20)
        if text := self._decoder.decode(data[-_PROGRESS_PIECE:]):
            self._context.progress(text)


async def _start(params: BashParams, context: CallContext, progress: _Progress) -> tuple[Process, str]:
    """The running command, and where it runs: the nearest folder that is left when the working directory is gone."""
    command = Command(
        (params.command,),
        context.cwd,
        is_shell=True,
        output_limit_bytes=KEPT_BYTES,
        env=context.env,
        spill_limit_bytes=0 if params.run_in_background else SPILLED_BYTES,
    )
    try:
        return await context.processes.start(command, context.grant, progress.show), context.cwd
    except ToolError:
        cwd = await nearest_folder(context)
        if cwd == context.cwd:
            raise
    context.change(Cwd(cwd))
    command = msgspec.structs.replace(command, cwd=cwd)
    return await context.processes.start(command, context.grant, progress.show), cwd


async def _hand_over(process: Process, jobs: Jobs, command: str, call_id: str, said: str) -> ToolOutput:
    """Leave it to the session; what it has printed so far is shown."""
    data, dropped = process.printed()
    try:
        job_id = jobs.add(process, command, call_id)
    except ToolError:
        await process.end()
        raise
    missing = f"[{dropped:,} bytes in the middle of the output are not shown]\n" if dropped else ""
    note = (
        f"{missing}[{said}in the background as {job_id}; bash_output shows what it prints, bash_kill ends it, and you "
        "are told when it ends. A cd or export in it does not stay]"
    )
    return ToolOutput((Text(body_of(data, b"") or "(no output yet)"), Text(f"\n{note}")), limit=SHOWN)
