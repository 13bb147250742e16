"""Notes for the model about background commands that ended or wait for input."""

import re
from typing import Final

from bradawl.shaping.program_output import clean, ended_how

_LINES_SHOWN: Final = 5
_LINE_SHOWN: Final = 200
_COMMAND_SHOWN: Final = 100
LAST_BYTES: Final = 4_000
"""Bytes of the end of the output, enough for a note."""
_ASKS: Final = (
    r"(?i)\?\s*$|[\[(][^\[\]()]{0,40}/[^\[\]()]{0,40}[\])]\W*$|\b(?:password|passphrase|passcode|username|login)\b.*:\s*$"
    r"|\b(?:press|hit|type)\b.{0,60}(?:\.|:|key|enter|return|continue)\W*$"
)
_ASKS_ON_AN_OPEN_LINE: Final = r"[:>]\s?$"


def last_lines(output: bytes, most: int = _LINES_SHOWN) -> str:
    """The last lines that are not blank, as a terminal would show them."""
    lines = clean(output[-LAST_BYTES:]).split("\n")
    return "\n".join([line.rstrip()[:_LINE_SHOWN] for line in lines if line.strip()][-most:])


def asks(output: bytes) -> bool:
    """Whether the last output looks like a prompt for input."""
    last = last_lines(output, 1)
    return bool(re.search(_ASKS, last) or (output[-1:] != b"\n" and re.search(_ASKS_ON_AN_OPEN_LINE, last)))


def named(job_id: str, command: str) -> str:
    """The job as a note names it."""
    line = " ".join(command.split())
    return f"{job_id} ({line if len(line) <= _COMMAND_SHOWN else line[:_COMMAND_SHOWN] + '...'})"


def ended(name: str, exit_code: int | None, seconds: float, unread: bytes, dropped: int = 0) -> tuple[str, bool]:
    """Note that a job has ended, and how; and whether it tells all the `unread` output, of which more was `dropped`."""
    how = "for printing without end" if exit_code is None else ended_how(exit_code)
    lines = [line.rstrip() for line in clean(unread).split("\n") if line.strip()]
    tells_all = not dropped and last_lines(unread) == "\n".join(lines)
    said = f"has ended {how} after {seconds:.0f} s."
    if not lines:
        return f"{name} {said} It printed nothing new.", tells_all
    more = "" if tells_all else " (bash_output shows all that is new)"
    return f"{name} {said} Its last lines{more}:\n{last_lines(unread)}", tells_all


def stalled(name: str, seconds: float, output: bytes) -> str:
    """Note that a job seems to wait for input."""
    return (
        f"{name} has printed nothing for {seconds:.0f} s and seems to wait for an answer. No user can give one: its "
        f"input is closed. Its last line:\n{last_lines(output, 1)}\n"
        "If it does wait, end it with bash_kill and start it so that it does not ask."
    )


def put_back(lines: tuple[str, ...], set_aside: tuple[str, ...], *, for_user: bool = False) -> str:
    """Note that files were put back while jobs ran. `lines` come from `restored_lines`, `set_aside` are
    the folders with what was moved away.
    """
    whose = "you changed it yourself, it is there" if for_user else "the user changed it in another program, tell them"
    kept = f" What was moved away is kept for 30 days in {', '.join(set_aside)}. If {whose}." if set_aside else ""
    return f"bradawl checked the workspace, in which a background job runs or ran: {'. '.join(lines)}.{kept}"


def lost(name: str) -> str:
    """Note that a job of an earlier run of the session has ended."""
    return f"{name} ended when the session was left. Start it again if it is needed."


def ended_before(name: str) -> str:
    """Why nothing can be done with a job of an earlier run of the session."""
    return f"{name} ended with the run of the session that started it, and its output is gone; start it again if needed"


def ended_with_run(name: str) -> str:
    """Note that a running job was ended because the session was closed."""
    return f"{name} was still running and was ended with the run."


def killed(commands: tuple[str, ...]) -> str:
    """Note that jobs were killed because one of them made the same protected file again and again."""
    names = ", ".join(each if len(each) <= _COMMAND_SHOWN else f"{each[:_COMMAND_SHOWN]}..." for each in commands)
    return f"The background jobs were ended, because what was put back was made again each time: {names}"
