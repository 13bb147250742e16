"""What is typed behind a slash."""

from typing import Final, Literal, NamedTuple

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
/exit     leave (also /quit, Ctrl+D, Ctrl+C twice)

Enter sends. Alt+Enter, or \\ at the end of a line, begins a new line.
What you type during a turn reaches the model at its next step; commands wait for the turn's end.
Ctrl+C ends the running turn; at the prompt it clears the line."""


class Unknown(NamedTuple):
    """A command there is none of; the text is for the user."""

    text: str


def parse_command(line: str) -> Command | Unknown | None:
    """The command a line gives; None if it is a prompt. A path such as `/etc/hosts` is a prompt."""
    word, _, rest = line.strip().partition(" ")
    if not word.startswith("/") or "/" in word[1:]:
        return None
    command = _ALIASES.get(word[1:].lower())
    if command is None:
        return Unknown(f"There is no command {word}; /help lists those there are.")
    if rest.strip() and command == "model":
        return Unknown("The model can't be changed here; leave and use `bradawl -c -m MODEL`.")
    return command
