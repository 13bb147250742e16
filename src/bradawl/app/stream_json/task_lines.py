"""Lines about what runs beside the main agent: sub-agents and background commands."""

from collections.abc import Callable
from signal import SIGTERM
from typing import Final, Literal, NamedTuple

from bradawl.app.stream_json.lines import (
    Line,
    LineIds,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskStatus,
    TaskUsage,
)
from bradawl.core.events import AgentEnded, AgentSpawned, AssistantReplied, Envelope, JobEnded, JobStarted, TurnReason
from bradawl.core.messages import calls_of
from bradawl.core.usage import Usage
from bradawl.shaping.program_output import exit_text

_SHOWN: Final = 200


class _SubAgent(NamedTuple):
    """A sub-agent that runs, and what it has used so far."""

    call_id: str
    description: str
    began_s: float
    usage: Usage = Usage()
    calls: int = 0


class TaskLines:
    """Prints `task_started`, `task_progress` and `task_notification` lines."""

    def __init__(
        self, ids: Callable[[], LineIds], write: Callable[[Line], None], monotonic: Callable[[], float]
    ) -> None:
        self._ids, self._write, self._monotonic = ids, write, monotonic
        self._agents: dict[str, _SubAgent] = {}
        self._jobs: dict[str, tuple[str, str]] = {}
        """The call and the command of each background command."""

    def call_of(self, agent: str) -> str | None:
        """The call that started a running sub-agent."""
        return self._agents[agent].call_id if agent in self._agents else None

    def emit(self, item: Envelope) -> None:
        """Print the line of an event about a task; does nothing for another."""
        match item.event:
            case AgentSpawned(spawned, call_id, _, prompt):
                self._agents[spawned] = _SubAgent(call_id, _on_one_line(prompt), self._monotonic())
                self._started(spawned, call_id, prompt, "local_agent")
            case AgentEnded(spawned, reason):
                self._agent_ended(spawned, reason)
            case JobStarted(job_id, call_id, command):
                self._jobs[job_id] = (call_id, _on_one_line(command))
                self._started(job_id, call_id, command, "local_bash")
            case JobEnded(job_id, code):
                self._job_ended(job_id, code)
            case _:
                pass

    def replied(self, name: str, event: AssistantReplied) -> None:
        """Count a reply of a sub-agent; does nothing for the main agent."""
        if (known := self._agents.get(name)) is None:
            return
        calls = calls_of(event.message)
        usage = known.usage + (event.usage or Usage())
        agent = self._agents[name] = known._replace(usage=usage, calls=known.calls + len(calls))
        line = TaskProgress(
            task_id=name,
            tool_use_id=agent.call_id,
            description=agent.description,
            usage=self._used(agent),
            last_tool_name=calls[-1].name if calls else None,
            **self._ids(),
        )
        self._write(line)

    def _started(self, task_id: str, call_id: str, text: str, kind: Literal["local_agent", "local_bash"]) -> None:
        description = _on_one_line(text)
        line = TaskStarted(task_id=task_id, tool_use_id=call_id, description=description, task_type=kind, **self._ids())
        self._write(line)

    def _agent_ended(self, name: str, reason: TurnReason) -> None:
        agent = self._agents.pop(name, None) or _SubAgent("", name, self._monotonic())
        status: TaskStatus = "stopped" if reason == "cancelled" else "completed" if reason == "completed" else "failed"
        line = TaskNotification(
            task_id=name,
            tool_use_id=agent.call_id or None,
            status=status,
            summary=f"{agent.description}: {reason}",
            usage=self._used(agent),
            **self._ids(),
        )
        self._write(line)

    def _job_ended(self, job_id: str, code: int | None) -> None:
        call_id, command = self._jobs.pop(job_id, (None, job_id))
        status: TaskStatus = "stopped" if code in (None, -SIGTERM) else "failed" if code else "completed"
        how = "exit code unknown" if code is None else exit_text(code)
        summary = f"{command}: {how}"
        self._write(
            TaskNotification(task_id=job_id, tool_use_id=call_id, status=status, summary=summary, **self._ids())
        )

    def _used(self, agent: _SubAgent) -> TaskUsage:
        elapsed_ms = round((self._monotonic() - agent.began_s) * 1000)
        return TaskUsage(agent.usage.prompt + agent.usage.output, agent.calls, elapsed_ms)


def _on_one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
