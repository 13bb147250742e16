"""The slash commands about sessions: `/clear`, `/sessions`, `/resume`, `/fork`, `/rename`."""

import asyncio
from typing import Final

from bradawl.app.frontend import FrontendSession
from bradawl.app.rendering import cut, one_line
from bradawl.app.session_list import ListedSession, list_sessions, session_lines
from bradawl.app.slash_commands import CommandError, CommandFailed, CommandResult, Rest, command
from bradawl.app.terminal_user import Option
from bradawl.core.errors import SessionError
from bradawl.core.events import FORMAT_VERSION, NameSet, SessionForked, StateChanged
from bradawl.session.store import LocalStore

_SHOWN: Final = 20
_LONGEST_NAME: Final = 80


@command("clear", "new", "reset", needs_user=True)
def begin_new_session(session: FrontendSession) -> CommandResult:
    """Begin a new session, with nothing of this one.

    This session stays as it is: /resume comes back to it. Its background jobs end.
    """
    if session.session.conversation.last_event is None:
        return CommandResult(then="new_session")
    lines = (f"To come back to this session: /resume {session.id}", *_ending_jobs(session))
    return CommandResult("\n".join(lines), then="new_session")


@command("sessions")
async def show_sessions(session: FrontendSession, text: Rest = "") -> str:
    """List the sessions of this folder, the latest first.

    With TEXT only those whose name or first prompt has it, or whose id begins with it. /resume continues one,
    /rename gives this one a name.
    """
    found, has_more = await _sessions(session, text)
    if not found:
        return f"No session of this folder has {text[:40]!r}." if text else "This folder has no sessions yet."
    lines = session_lines(found[:_SHOWN], session.id)
    if (left := len(found) - _SHOWN) > 0:
        lines.append(f"and {left} more; /sessions TEXT finds one")
    if has_more:
        lines.append("Older sessions were not read, because there is so much of them: bradawl -r ID continues one.")
    return "\n".join(lines)


@command("resume", needs_user=True)
async def resume_session(session: FrontendSession, text: Rest = "") -> CommandResult:
    """Continue another session of this folder: /resume 01JB3, or /resume the parser.

    TEXT is the beginning of its id, or a part of its name or first prompt. Without TEXT, or if several sessions have
    it, a list opens. This session stays as it is; its background jobs end.
    """
    found = [each for each in (await _sessions(session, text))[0] if each.id != session.id]
    if not found:
        if text and session.id.casefold().startswith(text.casefold()):
            return CommandResult("You are in this session.")
        raise CommandError(
            f"No other session of this folder has {text[:40]!r}; /sessions lists them all."
            if text
            else "This folder has no other session."
        )
    named = [each for each in found if each.title.casefold() == text.casefold()]
    only = named if len(named) == 1 else found
    chosen = only[0].id if len(only) == 1 and text else await _picked(session, found, text)
    if not chosen:
        return CommandResult("You stay in this session.")
    _check_can_be_opened(session, chosen)
    return CommandResult("\n".join(_ending_jobs(session)), then="open_session", session=chosen)


@command("fork")
async def fork_session(session: FrontendSession, name: Rest = "") -> CommandResult:
    """Go on in a new session that begins as this one is now; this one stays as it is.

    NAME is a name for the new one. What is undone in one of them later concerns the files of both.
    """
    inner = session.session
    if inner.conversation.last_event is None:
        raise CommandError("Nothing has happened in this session yet, so there is nothing to fork.")
    _check_name(name)
    if not await inner.conversation.is_on_disk():
        raise CommandFailed("This session is not saved on the disk, so it can't be forked.")
    opened = inner.agent.store.create()
    agent, state = inner.agent, inner.state
    forked = SessionForked(
        FORMAT_VERSION, session.id, inner.conversation.last_seq, agent.project, state.cwd, agent.version
    )
    try:
        entry = opened.log.append(forked)
        if name:
            entry = opened.log.append(StateChanged(NameSet(one_line(name))))
        is_saved = await opened.log.durable(entry)
    finally:
        is_closed = opened.log.close()
    if not (is_saved and is_closed):
        raise CommandFailed(f"The fork could not be written: {'; '.join(opened.notices) or 'the disk may be full'}.")
    lines = [f"The session {opened.log.session_id} goes on from here; {session.id} stays as it is."]
    return CommandResult(
        "\n".join((*lines, *_ending_jobs(session))), then="open_session", session=opened.log.session_id
    )


@command("rename")
async def rename_session(session: FrontendSession, name: Rest = "") -> str:
    """Give this session a name, which lists of sessions show: /rename the parser.

    Without NAME it shows the name; /rename - takes it away.
    """
    choices = session.session.choices
    if not name:
        return (
            f"This session is named {one_line(choices.now.name)!r}."
            if choices.now.name
            else "This session has no name."
        )
    _check_name(name)
    choices.record(NameSet("" if name == "-" else one_line(name)))
    if not await session.session.conversation.is_on_disk():
        raise CommandFailed("The name could not be saved; the disk may be full.")
    return "This session has no name any more." if name == "-" else f"This session is named {one_line(name)!r} now."


# ------------------------------------------------------------------ what they share


async def _sessions(session: FrontendSession, text: str) -> tuple[list[ListedSession], bool]:
    """The sessions of this folder that a text finds, all without a text; and whether older ones were not read."""
    store = session.frontend.agent.store
    if not isinstance(store, LocalStore):
        raise CommandError("The sessions of this program are not in a folder, so they can't be listed.")
    now_s = session.frontend.agent.clock.now_ms() / 1000
    found, has_more = await asyncio.to_thread(list_sessions, store, now_s)
    return [each for each in found if not text or each.has(text)], has_more


async def _picked(session: FrontendSession, found: list[ListedSession], text: str) -> str:
    """The id of the session that the user picked; empty for none."""
    if (user := session.frontend.user) is None:
        lines = "\n".join(session_lines(found[:_SHOWN], session.id))
        which = f"Several sessions have {text[:40]!r}" if text else "Which session"
        raise CommandError(f"{which}? Give the beginning of its id, which is unique:\n{lines}")
    options = [Option(each.id, each.title, f"{each.detail}  {each.id}") for each in found]
    return await user.pick("Which session is to be continued?", options) or ""


def _check_can_be_opened(session: FrontendSession, session_id: str) -> None:
    """Raises `CommandFailed` for one that is open elsewhere or damaged: this one must not end for it."""
    try:
        session.frontend.agent.store.open(session_id).log.close()
    except SessionError as error:
        raise CommandFailed(str(error)) from error


def _check_name(name: str) -> None:
    if len(one_line(name)) > _LONGEST_NAME:
        raise CommandError(f"A name has at most {_LONGEST_NAME} characters; this one has {len(one_line(name))}.")


def _ending_jobs(session: FrontendSession) -> list[str]:
    """A line about the background jobs that end when the user leaves the session."""
    running = session.session.jobs.running
    if not running or not session.frontend.user_is_there:
        return []
    jobs = ", ".join(f"{name} ({cut(one_line(line), 40)})" for name, line in running.items())
    return [f"Ends with it: {jobs}"]
