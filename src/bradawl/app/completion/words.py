"""What can be completed: the commands, their flags and their values, taken from the parsers of the command line."""

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Mapping
from typing import Final, NamedTuple

from bradawl.app.settings.table import SETTINGS

SHELLS: Final = ("bash", "zsh", "fish")
Words = tuple[str, ...]
Parsers = Mapping[Words, ArgumentParser]
"""Parsers by the words of their command; the parser of a run has none."""

_BY_METAVAR: Final = {
    "[PROVIDER/]MODEL": "model",
    "PROVIDER": "provider",
    "SESSION": "session",
    "ID": "session",
    "KEY": "key",
    "VALUE": "value",
    "DIR": "folder",
    "FILE": "file",
    "FILE|JSON": "file",
    "PATH": "file",
}
ASKED: Final = ("model", "provider", "session", "key", "value", "profile")
"""Kinds of values that are asked for with `bradawl __complete KIND`."""


class Value(NamedTuple):
    """What an option or an argument takes."""

    kind: str
    """`choice`, `folder`, `file`, one of `ASKED`, or `other`, which can't be completed."""
    choices: Words = ()


class Flag(NamedTuple):
    """One option."""

    names: Words
    help: str
    value: Value | None
    """None for a switch."""


class Command(NamedTuple):
    """A command with its options and arguments."""

    words: Words
    help: str
    flags: tuple[Flag, ...]
    arguments: tuple[Value, ...]


def commands_of(parsers: Parsers, helps: Mapping[str, str]) -> tuple[Command, ...]:
    """The commands of these parsers. `helps` are their descriptions."""
    return tuple(_command(words, parser, helps) for words, parser in parsers.items())


def sub_commands(commands: tuple[Command, ...], above: Words = ()) -> tuple[tuple[str, str], ...]:
    """The words that may follow `above` as the name of a command, each with a description."""
    found: dict[str, str] = {}
    for command in commands:
        if command.words[: len(above)] == above and len(command.words) > len(above):
            is_last = len(command.words) == len(above) + 1
            found.setdefault(command.words[len(above)], command.help if is_last else "")
    return tuple(found.items())


def _command(words: Words, parser: ArgumentParser, helps: Mapping[str, str]) -> Command:
    flags: list[Flag] = []
    arguments: list[Value] = []
    for action in parser._actions:  # argparse has no public list of them
        if action.help == SUPPRESS and action.dest not in SETTINGS.rows:
            continue  # flags of other agents, which are understood and not proposed
        if action.option_strings:
            value = None if action.nargs == 0 else _value(action)
            flags.append(Flag(tuple(action.option_strings), _help(action), value))
        else:
            arguments.append(_value(action))
    text = helps.get(" ".join(words)) or (parser.description or "").partition("\n")[0]
    return Command(words, text.rstrip("."), tuple(flags), tuple(arguments) if words else ())


def _value(action: Action) -> Value:
    if action.choices:
        return Value("choice", tuple(map(str, action.choices)))
    row = SETTINGS.rows.get(action.dest)
    if row and row.kind.choices:
        return Value("choice", row.kind.choices)
    if action.dest in ("profile", "in_profile"):
        return Value("profile")
    if action.dest == "network":
        from bradawl.app.settings.network_presets import PRESETS

        return Value("choice", tuple(PRESETS))
    metavar = str(action.metavar)
    if metavar == "MODE":
        return Value("choice", SETTINGS.rows["permission_mode"].kind.choices)
    return Value(_BY_METAVAR.get(metavar, "other"))


def _help(action: Action) -> str:
    if action.help and action.help != SUPPRESS:
        return action.help
    row = SETTINGS.rows.get(action.dest)
    return (row.flag_help or row.help) if row else ""
