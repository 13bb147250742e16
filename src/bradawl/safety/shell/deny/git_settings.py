"""Configuration that a command line sets for git, and the commands that its aliases stand for."""

import re
import shlex
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from bradawl.safety.shell.argv import Argv, name_of
from bradawl.safety.shell.program_options import git_words

Values = Callable[[str], tuple[str, ...]]
"""Possible values of an environment variable."""

_MAX_VARIABLES = 16
_IS_FALSE = re.compile(r"(?i:false|no|off|0|)")


class GitSettings(msgspec.Struct, frozen=True):
    """Configuration keys with their values; keys in lower case."""

    entries: tuple[tuple[str, str], ...] = ()

    def values(self, key: str) -> Argv:
        """The values of the keys that match a regular expression in full."""
        return tuple(value for name, value in self.entries if re.fullmatch(key, name))

    def is_on(self, key: str) -> bool:
        """Whether one of these keys has a value that does not mean false."""
        return any(not _IS_FALSE.fullmatch(value) for value in self.values(key))


class GitCommand(msgspec.Struct, frozen=True):
    """A git command, with its options before the subcommand interpreted."""

    words: Argv
    """The subcommand and its arguments; at least one word, which may be empty."""
    folder: str = "."
    """The value of `-C`: the folder it runs in."""
    settings: GitSettings = GitSettings()
    """What the command line and the environment set, also `git config` itself."""
    alias: Argv = ()
    """The command that the subcommand stands for if it is an alias of `settings`; else empty."""


def git_command(words: Argv, values: Values) -> GitCommand | None:
    """Interpret a command as one of git, with `git-push` as `git push`; None if its program is not git."""
    name = name_of(words).lower()
    if name.startswith("git-"):
        words = ("git", name[4:], *words[1:])
    elif name not in ("git", "hub"):  # hub passes git's commands on
        return None
    split = git_words(words)
    options = [value for option, value in split.options if option == "-C" and value]
    rest = split.rest or ("",)
    entries = tuple((key.lower(), value) for key, value in (*_given(split.options, values), *_set_by_config(rest)))
    settings = GitSettings(entries)
    before = words[: len(words) - len(split.rest)]
    return GitCommand(rest, "/".join(options) or ".", settings, _expanded(before, rest, settings))


def _given(options: tuple[tuple[str, str], ...], values: Values) -> Iterator[tuple[str, str]]:
    """What `-c`, `--config-env` and variables set."""
    for option, value in options:
        key, equals, setting = value.partition("=")
        if option == "-c":
            yield key, setting if equals else "true"
        elif option == "--config-env":
            yield from ((key, each) for each in values(setting))
    for number in range(_MAX_VARIABLES if any(map(str.strip, values("GIT_CONFIG_COUNT"))) else 0):
        for key in values(f"GIT_CONFIG_KEY_{number}"):
            yield from ((key, each) for each in values(f"GIT_CONFIG_VALUE_{number}"))
    for text in values("GIT_CONFIG_PARAMETERS"):
        for entry in _split(text):
            key, equals, setting = entry.partition("=")
            yield key, setting if equals else "true"


def _set_by_config(rest: Argv) -> Iterator[tuple[str, str]]:
    """What `git config KEY VALUE` sets."""
    if rest[0] == "config":
        yield from ((word, after) for word, after in pairwise(rest[1:]) if "." in word and word[:1] != "-")


def _expanded(before: Argv, rest: Argv, settings: GitSettings) -> Argv:
    """The command that an alias stands for. Of `git config alias.x VALUE` it is the command that `x` would be."""
    if rest[0] == "config":
        values, arguments = settings.values(r"alias\..*"), ()
    else:
        values, arguments = settings.values(re.escape(f"alias.{rest[0].lower()}")), rest[1:]
    if not values or not rest[0]:
        return ()
    value = values[-1].strip()
    if value.startswith("!"):
        return ("sh", "-c", f'{value[1:]} "$@"', value, *arguments)
    found = tuple(_split(value))
    return (*before, *found, *arguments) if found and found[0] != rest[0] else ()


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # unbalanced quotes
        return text.split()
