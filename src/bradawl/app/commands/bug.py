"""The slash command `/bug`."""

import asyncio
from pathlib import Path
from typing import Final

from bradawl.app.bug_report import bug_report
from bradawl.app.commands.project import doctor_report
from bradawl.app.frontend import FrontendSession
from bradawl.app.new_file import write_new_file
from bradawl.app.rendering import one_line
from bradawl.app.slash_commands import CommandFailed, Rest, command
from bradawl.safety.control_characters import clean

_WITH_CONTENT: Final = "--with-content"


@command("bug")
async def write_bug_report(session: FrontendSession, text: Rest = "") -> str:
    """Write a report about a defect into a file; nothing is sent.

    TEXT says what happened. The file has versions, terminal, settings without keys, what /doctor finds, the last error
    report and the last events of the session without their contents. /bug --with-content TEXT keeps the contents.
    Read it before you give it away: paths and names of the project are in it.
    """
    with_content = _WITH_CONTENT in text.split()
    words = " ".join(word for word in text.split(" ") if word != _WITH_CONTENT)
    front = session.frontend
    doctor, _ = await doctor_report(session, as_json=True)
    report = await asyncio.to_thread(
        bug_report,
        clean(words),
        front.settings,
        session.model,
        session.id,
        session.session.conversation.entries(),
        doctor,
        with_content=with_content,
    )
    path = Path(front.settings.home, "reports", f"bug-{front.agent.clock.now_ms()}.md")
    try:
        await asyncio.to_thread(_write, path, report)
    except OSError as error:
        raise CommandFailed(f"{one_line(str(path))} can't be written: {error.strerror or error}.") from error
    contents = "the contents of the last events too" if with_content else "without the contents of the conversation"
    return f"The report is in {one_line(str(path))}, {contents}. Nothing was sent. Read it before you give it away."


def _write(path: Path, report: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_new_file(path, report)
