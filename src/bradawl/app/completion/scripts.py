"""The completion scripts of the shells. Commands, flags and choices are in the script; other values are asked for."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Final

from bradawl.app.completion.bash import bash_script
from bradawl.app.completion.fish import fish_script
from bradawl.app.completion.words import Command, Words, commands_of
from bradawl.app.completion.zsh import zsh_script

_SCRIPTS: Final[Mapping[str, Callable[[tuple[Command, ...]], str]]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}


def script_of(shell: str, parsers: Mapping[Words, ArgumentParser], helps: Mapping[str, str]) -> str:
    """The script for a shell, by the parsers of all commands and their descriptions."""
    return _SCRIPTS[shell](commands_of(parsers, helps))
