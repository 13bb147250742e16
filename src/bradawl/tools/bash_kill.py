"""The tool `bash_kill`: ends a command in the background."""

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.tools.bash_output import jobs_of, output_of


class BashKillParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End a background job; shows its last output."""

    job_id: str


class BashKill:
    """The tool `bash_kill`."""

    spec: ToolSpec = ToolSpec("bash_kill", kind="run", rule_names=("Bash", "KillShell"), shows=("job_id",))
    params: type[BashKillParams] = BashKillParams

    def effects(self, params: BashKillParams, context: CallContext) -> Effects:
        """Changes which jobs run."""
        return Effects(session=("jobs",))

    async def run(self, params: BashKillParams, context: CallContext) -> ToolOutput:
        """End the job: SIGTERM first, SIGKILL after two seconds. Raises `ToolError` for an unknown job.

        An end that was asked for is no failure, whatever the exit code.
        """
        output = output_of(await jobs_of(context).end(params.job_id.strip()))
        return msgspec.structs.replace(output, has_failed_part=False)
