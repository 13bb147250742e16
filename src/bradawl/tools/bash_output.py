"""The tool `bash_output`: shows what a command in the background has printed."""

from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, Jobs, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import Job
from bradawl.shaping.program_output import clean, ended_how
from bradawl.tools.shell.sandbox_hints import notes_on

_LONGEST_WAIT_S = 600


class BashOutputParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Show what a background job has printed since the last look, and whether it runs."""

    job_id: str
    wait: Annotated[int, msgspec.Meta(description="Seconds to wait for its end, at most 600.")] = 0


class BashOutput:
    """The tool `bash_output`."""

    spec: ToolSpec = ToolSpec("bash_output", kind="run", rule_names=("Bash", "BashOutput"), shows=("job_id",))
    params: type[BashOutputParams] = BashOutputParams

    def effects(self, params: BashOutputParams, context: CallContext) -> Effects:
        """Changes `jobs`, because output is shown once. Raises `ToolError` for an invalid wait."""
        if params.wait < 0:
            raise ToolError(f"wait is in seconds, from 0 to {_LONGEST_WAIT_S}; it was {params.wait}")
        return Effects(session=("jobs",))

    async def run(self, params: BashOutputParams, context: CallContext) -> ToolOutput:
        """New output and state of the job. Raises `ToolError` for an unknown job."""
        self.effects(params, context)
        jobs = jobs_of(context)
        return output_of(await jobs.read_output(params.job_id.strip(), min(params.wait, _LONGEST_WAIT_S)))


def jobs_of(context: CallContext) -> Jobs:
    """The session's jobs. Raises `ToolError` where the session can have none."""
    if context.jobs is None:
        raise ToolError("nothing runs in the background here; there are no jobs")
    return context.jobs


def output_of(job: Job) -> ToolOutput:
    """Text about a job. If the job failed, the call still succeeds."""
    missing = f"[{job.dropped_bytes:,} bytes before or in the middle of this are lost]\n" if job.dropped_bytes else ""
    hints = () if job.result is None else notes_on(job.result, None, user_is_there=False)
    notes = "".join(f"\n{note}" for note in hints)
    text = (Text(clean(job.printed) or "(no new output)"), Text(f"\n{missing}[{_state(job)}]{notes}"))
    return ToolOutput(text, has_failed_part=job.result is None or job.result.exit_code != 0)


def _state(job: Job) -> str:
    if job.result is None:
        return f"{job.job_id} is running, for {job.seconds:.0f} s so far"
    code = job.result.exit_code
    how = "because it printed without end" if code is None else ended_how(code)
    left = "; programs it had left running were ended" if job.result.ended_background else ""
    return f"{job.job_id} has ended {how} after {job.seconds:.1f} s{left}"
