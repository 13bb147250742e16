"""The slash commands that give a session away: `/export`, `/save`, `/copy`."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from bradawl.app.answers import answers_of
from bradawl.app.frontend import FrontendSession
from bradawl.app.new_file import write_new_file
from bradawl.app.rendering import one_line
from bradawl.app.slash_commands import CommandError, CommandFailed, Rest, command
from bradawl.app.transcript_export import FORMS, Form, exported
from bradawl.safety.control_characters import clean
from bradawl.session.store import LocalStore

_BLOCK: Final = re.compile(
    r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<code>.*?)^ {0,3}(?P=fence)[`~]*[ \t]*$", re.M | re.S
)


_FORM_OF_SUFFIX: Final[Mapping[str, Form]] = {".htm": "html", ".html": "html", ".json": "json"}


@command("export")
async def export_session(session: FrontendSession, file: Rest = "") -> str:
    """Write the conversation into a file: /export talk.md, /export talk.html, /export json.

    FILE ends with md, html or json; so may the line, as `/export notes.txt md`. Without FILE it is in the working
    directory, named after the session. Markdown and HTML fold calls and thinking; JSON has all entries of the log. The
    file may hold what the model was shown, keys in files included. Another file is not replaced without a question.
    """
    return await _export(session, file)


async def _export(session: FrontendSession, file: str) -> str:
    entries = session.session.conversation.entries()
    if not entries:
        raise CommandError("Nothing has happened in this session yet, so there is nothing to export.")
    path, form = _file_and_form(session, file.strip())
    name = session.session.choices.now.name
    text = await asyncio.to_thread(exported, entries, name or f"Session {session.id}", form)
    if not await _write(session, path, text):
        return f"{one_line(str(path))} stays as it is."
    return f"The conversation is in {one_line(str(path))}."


@command("save")
async def save_session(session: FrontendSession, file: Rest = "") -> str:
    """Say where the session is saved, as it always is, and write what is not on the disk yet.

    With FILE it does what /export does.
    """
    if file.strip():
        return await _export(session, file)
    inner = session.session
    if inner.conversation.last_event is None:
        return "Nothing has happened in this session yet; everything is saved from the first prompt on."
    store = inner.agent.store
    if not await inner.conversation.is_on_disk() or not isinstance(store, LocalStore):
        raise CommandFailed(
            "This session can't be saved: its folder can't be written. /export FILE writes it elsewhere."
        )
    return f"All of it is saved in {one_line(str(store.path(session.id)))}\nTo continue it: bradawl -r {session.id}"


@command("copy")
async def copy_reply(session: FrontendSession, block: int | None = None) -> str:
    """Copy the model's last reply to the clipboard, or its BLOCK-th code block: /copy 1.

    Where the terminal can't be told to, and with -p, the text is written into a file.
    """
    text = answers_of(session).latest
    if not text:
        raise CommandError("There is no reply to copy yet.")
    what = "The last reply"
    if block is not None:
        blocks = code_blocks(text)
        if not 1 <= block <= len(blocks):
            there = f"it has {len(blocks)}" if blocks else "it has none"
            raise CommandError(f"The last reply has no code block {block}; {there}.")
        text, what = blocks[block - 1], f"Code block {block}"
    text = clean(text)
    if session.frontend.user is not None and session.frontend.user.copy(text):
        return f"{what} was sent to the clipboard of the terminal (OSC 52)."
    path = Path(session.frontend.settings.cwd, f"bradawl-{session.id}-copy.txt")
    try:
        await asyncio.to_thread(write_new_file, path, text, replaces=True)
    except OSError as error:
        raise CommandFailed(f"{one_line(str(path))} can't be written: {error.strerror or error}.") from error
    return f"{what} is in {one_line(str(path))}, because no clipboard can be reached."


def code_blocks(text: str) -> list[str]:
    """The contents of the fenced code blocks of a Markdown text, in order."""
    return [found["code"] for found in _BLOCK.finditer(text)]


def _file_and_form(session: FrontendSession, line: str) -> tuple[Path, Form]:
    """The file and the form that a line names. Raises `CommandError` for a folder."""
    head, _, last = line.rpartition(" ")
    form: Form | None = None
    if last.lower() in FORMS:
        form, line = cast("Form", last.lower()), head.strip()
    line = line[1:-1] if len(line) > 1 and line[0] == line[-1] and line[0] in "\"'" else line
    cwd, home = session.frontend.settings.cwd, session.frontend.settings.user_home
    if not line:
        form = form or "md"
        return Path(cwd, f"bradawl-{session.id}.{form}"), form
    path = Path(cwd, home + line[1:] if line == "~" or line.startswith("~/") else line)
    if path.is_dir():
        raise CommandError(f"{one_line(line)} is a folder; name a file in it.")
    return path, form or _FORM_OF_SUFFIX.get(path.suffix.lower(), "md")


async def _write(session: FrontendSession, path: Path, text: str) -> bool:
    """Write a file, after a question if it exists; false if the user says no. Raises `CommandFailed`."""
    try:
        try:
            await asyncio.to_thread(write_new_file, path, text)
        except FileExistsError:
            if (user := session.frontend.user) is None:
                raise CommandError(f"{one_line(str(path))} exists; name another file.") from None
            answer = await user.ask("", f"{one_line(str(path))} exists. Replace it? [y/N] ")
            if answer.strip().lower() not in ("y", "yes"):
                return False
            await asyncio.to_thread(write_new_file, path, text, replaces=True)
    except OSError as error:
        raise CommandFailed(f"{one_line(str(path))} can't be written: {error.strerror or error}.") from error
    return True
