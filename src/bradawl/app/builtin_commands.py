"""bradawl's slash commands: `/help`, `/clear`, `/status`, `/model`, `/mode`, `/plan`, `/compact`, `/jobs`, `/exit`.

To add a command, write one function here: its docstring is its help, its annotations check its arguments. `/undo`,
`/redo`, `/rewind` and `/diff` are in `undo_commands`, `/context` is in `context_command`, `/init` in `init_command`.
"""

from typing import Annotated, Final, Literal

from bradawl.app.frontend import FrontendSession
from bradawl.app.modes import mode_text, sandbox_text
from bradawl.app.rendering import compaction_text, cut, one_line, usage_text
from bradawl.app.slash_commands import CommandError, CommandRegistry, CommandResult, Rest, command, commands_in
from bradawl.core.permissions import Mode

_SOURCES: Final = {"settings": "as set", "server": "says the server", "assumed": "assumed"}


@command("help", "?")
def show_help(session: FrontendSession, name: str = "") -> str:
    """List the commands, or explain one."""
    commands = session.frontend.commands
    if name:
        return commands.find(name).help
    lines = commands.help_lines(user_is_there=session.frontend.user_is_there)
    keys = session.frontend.keys_help
    return "\n".join((*lines, *(("", keys) if keys else ())))


@command("clear", "new", needs_user=True)
def begin_new_session(session: FrontendSession) -> CommandResult:
    """Begin a new session."""
    return CommandResult(then="new_session")


@command("status")
async def show_status(session: FrontendSession) -> str:
    """Show session, model, folder, mode, sandbox, tokens and cost."""
    inner, settings = session.session, session.frontend.settings
    state, window = inner.state, await session.frontend.agent.model.window()
    used = state.context_tokens if state.is_anchored else inner.prefix.context_tokens()
    lines = (
        f"session    {session.id}",
        f"model      {one_line(session.frontend.model_name)}",
        f"folder     {one_line(state.cwd or settings.cwd)}",
        f"mode       {mode_text(session.mode)}",
        f"sandbox    {one_line(sandbox_text(inner.policy().sandbox))}",
        f"context    {used:,} of {window.tokens:,} tokens ({_SOURCES[window.source]})",
        f"used       {usage_text(state.replies, state.usage, state.cost)}",
    )
    return "\n".join(lines)


@command("model")
def show_model(session: FrontendSession, name: str = "") -> str:
    """Show the model that answers.

    The model of a running conversation can't be changed.
    """
    if name:
        raise CommandError("The model can't be changed here; leave and use `bradawl -c -m MODEL`.")
    return one_line(session.frontend.model_name)


@command("mode")
def show_or_choose_mode(
    session: FrontendSession, mode: Annotated[Mode, ("bypassPermissions", "bypass")] | None = None
) -> str:
    """Show what is asked about, or choose it: default, accept-edits, plan or auto.

    The mode holds from the next step on, and when the session is continued.
    """
    if mode is not None:
        session.choose_mode(mode)
    return f"mode {mode_text(session.mode)}"


@command("plan")
def toggle_plan_mode(session: FrontendSession) -> str:
    """Enter plan mode: nothing changes until you approve a plan; once more leaves it.

    Type what is to be planned as the next prompt.
    """
    session.toggle_plan_mode()
    return f"mode {mode_text(session.mode)}"


@command("compact")
async def compact_conversation(session: FrontendSession, focus: Rest = "") -> str:
    """Summarise the conversation to make room in the context window.

    What you asked for, the plan, open todos and changed files are kept word for word. FOCUS says what the summary is
    to keep above all: /compact the failing tests. A full window is compacted without being asked for.
    """
    event = await session.session.compact(focus.strip())
    if event is None:
        return "Nothing to gain: all of it is short, or new since the last compaction."
    return "" if session.frontend.user_is_there else compaction_text(event)  # the terminal shows the event


@command("jobs", needs_user=True)
async def list_or_end_jobs(session: FrontendSession, action: Literal["end"] | None = None, job: str = "") -> str:
    """List the background jobs that run, or end one: /jobs end job-1.

    The model is told that you ended the job.
    """
    inner = session.session
    running = inner.jobs.running
    if action is None:
        lines = (f"{name}  {cut(one_line(line), 100)}" for name, line in running.items())
        return "\n".join(lines) or "No background job is running."
    if job not in running:
        known = f"running: {', '.join(running)}" if running else "none is running"
        raise CommandError(f"There is no background job {job[:40]!r}; {known}.")
    await inner.jobs.end(job)
    inner.conversation.note(f"The user ended {job}: {cut(one_line(running[job]), 200)}")
    return f"Ended {job}."


@command("exit", "quit", needs_user=True)
def leave(session: FrontendSession) -> CommandResult:
    """Leave the conversation."""
    return CommandResult(then="leave")


def builtin_commands() -> CommandRegistry:
    """All commands of this module, `/context`, `/init`, and those of undo."""
    from bradawl.app import context_command, init_command, undo_commands

    modules = (globals(), vars(context_command), vars(init_command), vars(undo_commands))
    return CommandRegistry(each for module in modules for each in commands_in(module))
