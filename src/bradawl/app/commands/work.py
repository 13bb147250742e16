"""The slash commands about the model's work beside its text: `/todos`, `/agents`, `/jobs`."""

from typing import Final, Literal

from bradawl.app.frontend import FrontendSession
from bradawl.app.rendering import cut, one_line, todo_line, usage_text
from bradawl.app.slash_commands import CommandError, Rest, command
from bradawl.core.workspace import Job
from bradawl.folds.sub_agents import SubAgentWork, sub_agents_in
from bradawl.safety.control_characters import clean
from bradawl.shaping.program_output import exit_text

_LINE: Final = 100
_OUTPUT_LINES: Final = 20


@command("todos")
def show_todos(session: FrontendSession) -> str:
    """Show the model's whole to-do list."""
    todos = session.session.state.todos
    if not todos:
        return "The model has no to-do list."
    done = sum(each.status == "completed" for each in todos)
    lines = (todo_line(each, session.frontend.symbols) for each in todos)
    return "\n".join((f"{done} of {len(todos)} completed", *lines))


@command("agents")
def show_agents(session: FrontendSession) -> str:
    """List the sub-agents of this session: what each was asked, its state, steps and cost."""
    inner = session.session
    found = sub_agents_in(inner.conversation.entries())
    if not found:
        return "No sub-agent was started in this session."
    now_ms = session.frontend.agent.clock.now_ms()
    return "\n".join(line for each in found for line in _agent_lines(each, now_ms))


def _agent_lines(agent: SubAgentWork, now_ms: int) -> tuple[str, str]:
    seconds = max(0, (agent.ended_ms or now_ms) - agent.started_ms) // 1_000
    state = "running" if agent.reason is None else one_line(agent.reason)
    spent = usage_text(agent.steps, agent.usage, agent.cost)
    return (
        f"{one_line(agent.name)} ({one_line(agent.kind)})  {state}, {seconds} s, {spent}",
        f"  {cut(one_line(agent.prompt), _LINE)}",
    )


@command("jobs", needs_user=True)
async def list_or_end_jobs(
    session: FrontendSession, action: Literal["show", "end"] | None = None, job: Rest = ""
) -> str:
    """List the background jobs, show the end of what one printed, or end one.

    JOB is a name such as job-1. /jobs show JOB leaves the output for the model to read. After /jobs end JOB the model
    is told that you ended it.
    """
    inner = session.session
    known = {each.job_id: each for each in inner.jobs.known}
    if action is None:
        return "\n".join(_job_line(each) for each in known.values()) or "No background job was started in this run."
    name = f"job-{job}" if job.isdecimal() else job
    if (found := known.get(name)) is None or (action == "end" and found.result is not None):
        fitting = [each.job_id for each in known.values() if action == "show" or each.result is None]
        which = "running" if action == "end" else "there are"
        there = (
            f"{which}: {', '.join(fitting)}"
            if fitting
            else "none is running"
            if action == "end"
            else "none was started"
        )
        raise CommandError(f"There is no background job {job[:40]!r} to {action}; {there}.")
    if action == "show":
        return "\n".join((_job_line(found), *_output_of(found)))
    await inner.jobs.end(name)
    inner.conversation.note(f"The user ended {name}: {cut(one_line(found.command), 200)}")
    return f"Ended {name}."


def _job_line(job: Job) -> str:
    state = "running" if job.result is None else _ending(job.result.exit_code)
    return f"{job.job_id}  {state}, {job.seconds:.0f} s  {cut(one_line(job.command), _LINE)}"


def _ending(code: int | None) -> str:
    return "ended for printing without end" if code is None else exit_text(code)


def _output_of(job: Job) -> list[str]:
    lines = clean(job.printed.decode("utf-8", "replace")).splitlines()
    shown = [f"  {line}" for line in lines[-_OUTPUT_LINES:]]
    return shown or ["  (nothing printed since it is in the background)"]
