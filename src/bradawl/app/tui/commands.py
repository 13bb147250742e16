"""What is typed behind a slash."""

from typing import Final, Literal, NamedTuple

from bradawl.core.permissions import MODES, Mode

Command = Literal["help", "exit", "clear", "status", "model"]

_ALIASES: Final[dict[str, Command]] = {
    "help": "help",
    "?": "help",
    "exit": "exit",
    "quit": "exit",
    "clear": "clear",
    "new": "clear",
    "status": "status",
    "model": "model",
}

HELP: Final = """\
/help     this list
/clear    begin a new session
/status   session, model, folder, tokens and cost
/model    the model that answers
/mode     what is asked about; /mode default, accept-edits, plan or auto chooses
/plan     plan mode: nothing changes until you approve a plan; once more leaves it
/exit     leave (also /quit, Ctrl+D, Ctrl+C twice)

Enter sends. Alt+Enter, or \\ at the end of a line, begins a new line.
What you type during a turn reaches the model at its next step; commands wait for the turn's end.
Ctrl+C ends the running turn; at the prompt it clears the line."""


class Unknown(NamedTuple):
    """A command there is none of; the text is for the user."""

    text: str


class ModeWish(NamedTuple):
    """Another permission mode; without one it is only to be said, `toggle` goes into plan mode and out of it."""

    mode: Mode | None = None
    toggle: bool = False


def parse_command(line: str) -> Command | ModeWish | Unknown | None:
    """The command a line gives; None if it is a prompt. A path such as `/etc/hosts` is a prompt."""
    word, _, rest = line.strip().partition(" ")
    if not word.startswith("/") or "/" in word[1:]:
        return None
    if word.lower() in ("/mode", "/plan"):
        return _mode_wish(word.lower(), rest.strip())
    command = _ALIASES.get(word[1:].lower())
    if command is None:
        return Unknown(f"There is no command {word}; /help lists those there are.")
    if rest.strip() and command == "model":
        return Unknown("The model can't be changed here; leave and use `bradawl -c -m MODEL`.")
    return command


def _mode_wish(word: str, rest: str) -> ModeWish | Unknown:
    if word == "/plan":
        return (
            Unknown("/plan takes nothing; type what is to be planned as a prompt.") if rest else ModeWish(toggle=True)
        )
    if not rest:
        return ModeWish()
    named = rest.lower().replace("_", "-").replace("acceptedits", "accept-edits").replace("bypasspermissions", "bypass")
    mode: Mode | None = next((mode for mode in MODES if mode == named), None)
    return ModeWish(mode) if mode else Unknown(f"There is no mode {rest[:40]}; there are {', '.join(MODES)}.")
