"""The slash command `/status`."""

import os
from typing import Final

from bradawl.app.frontend import FrontendSession
from bradawl.app.git_files import read_whole
from bradawl.app.git_status import GitStatus
from bradawl.app.instructions.told import Told, told_to
from bradawl.app.modes import mode_text, sandbox_text
from bradawl.app.rendering import one_line, usage_text
from bradawl.app.slash_commands import command
from bradawl.core.errors import SessionError
from bradawl.safety.git.config import GitConfig
from bradawl.safety.name_lists import first_of

_SOURCES: Final = {"settings": "as set", "server": "says the server", "assumed": "assumed"}
_LABEL: Final = 14
_MOST_NAMED: Final = 4


@command("status")
async def show_status(session: FrontendSession) -> str:
    """Show what is in force: model, folder, mode, sandbox, trust, tokens, cost and more.

    The name of the session, the branch, added folders, instruction files that the model knows and background jobs are
    shown where there are any.
    """
    inner, settings = session.session, session.frontend.settings
    state, window = inner.state, await inner.model.window()
    used = inner.prefix.context_tokens()
    effort = inner.model.params.effort
    facts = (
        ("session", session.id),
        ("name", inner.choices.now.name),
        ("model", session.model_name + (f", effort {effort}" if effort else "")),
        ("folder", state.cwd or settings.cwd),
        ("added", ", ".join(settings.add_dirs)),
        ("branch", await branch_text(session)),
        ("mode", mode_text(session.mode)),
        ("sandbox", sandbox_text(inner.policy().sandbox)),
        ("trust", "the project is trusted" if settings.is_trusted else "the project is not trusted; see /trust"),
        ("instructions", _instructions_text(session)),
        ("context", f"{used:,} of {window.tokens:,} tokens ({_SOURCES[window.source]})"),
        ("used", usage_text(state.replies, state.usage, state.cost)),
        ("jobs", ", ".join(inner.jobs.running)),
    )
    return "\n".join(f"{label:<{_LABEL}}{one_line(text)}" for label, text in facts if text)


async def branch_text(session: FrontendSession) -> str:
    """The branch of the repository of the working directory; empty outside of one. Starts no program."""
    inner, settings = session.session, session.frontend.settings
    status = GitStatus(GitConfig(read_whole, settings.environment, settings.user_home), inner.agent.processes, None, "")
    return (await status(inner.state.cwd or settings.cwd) or "").removeprefix("git: on ").removeprefix("branch ")


def _instructions_text(session: FrontendSession) -> str:
    """The instruction files that the model knows; those of an untrusted project are material."""
    files = {path: known for path, known in _told(session).files.items() if not known.is_removed}
    if not files:
        return ""
    cwd = session.frontend.settings.cwd
    names = [
        (os.path.relpath(path, cwd) if path.startswith(f"{cwd}/") else path)
        + ("" if known.is_trusted else " (as material)")
        for path, known in files.items()
    ]
    return first_of(names, _MOST_NAMED)


def _told(session: FrontendSession) -> Told:
    inner = session.session
    system, prefix = inner.prefix.system, inner.state.prefix
    if not system and prefix is not None:  # a continued session that has made no request yet
        try:
            system = inner.blobs.get(prefix.system_ref).decode("utf-8", "replace")
        except SessionError:
            system = ""
    return told_to(system, session.messages)
