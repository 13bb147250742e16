"""Finds mistakes in rows of the table of settings. Tests check bradawl's own table; a start doesn't pay for it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from bradawl.app.settings.table import Setting
from bradawl.app.settings.values import SWITCH, ValueKind
from bradawl.core.errors import SettingsError

INTERNAL_FIELDS: Final = frozenset(
    {"fallback", "small", "project", "home", "config_home", "user_home", "may_bypass", "is_mode_fixed", "rules"}
    | {"is_trusted", "answer_schema", "values", "environment", "key_names", "warnings"}
)
"""Fields of `Settings` that are not settings of this name."""
_OPTIONS: Final = frozenset(
    {"words", "print", "prompt", "continues", "resume", "command", "help", "version", "demo", "provider"}
    | {"folder", "below", "list", "remove", "show", "json", "providers", "models", "api_key"}
)
"""Options of the command line, and keys of the user's file, that are not settings."""
_FLAGS: Final = ("-p", "--print", "--prompt", "-c", "--continue", "-r", "--resume", "-v", "--version", "-h", "--help")
_VARIABLES: Final = ("BRADAWL_HOME", "BRADAWL_CALL", "BRADAWL_REPORT")
_NAME: Final = r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?"
LONGEST_HELP: Final = 180
"""Characters: three lines of `--help`."""
_FLAG: Final = r"-[A-Za-z]|--[A-Za-z][A-Za-z0-9-]*"


def table_problems(rows: Iterable[Setting]) -> tuple[str, ...]:
    """A sentence for each mistake in the rows, with what to do about it; empty if there is none."""
    rows = tuple(rows)
    return (*_repeated(rows), *(f"{row.name}: {problem}" for row in rows for problem in _row_problems(row)))


def _repeated(rows: tuple[Setting, ...]) -> Iterator[str]:
    flags = (*_FLAGS, *(flag for row in rows if isinstance(row.flags, tuple) for flag in row.flags))
    variables = (*_VARIABLES, *(row.variable for row in rows if row.has_variable))
    for what, given in (("name", [row.name for row in rows]), ("flag", flags), ("variable", variables)):
        for each, times in Counter(given).items():
            if times > 1:
                yield f"the {what} {each} is given twice; choose another one"


def _row_problems(row: Setting) -> Iterator[str]:
    if not re.fullmatch(_NAME, row.name):
        yield "a name has a-z, 0-9 and _, with one dot for a key of a table"
    if row.name in INTERNAL_FIELDS | _OPTIONS:
        yield "bradawl uses this name for something else; choose another one"
    if not isinstance(row.kind, ValueKind):
        yield f"its kind is {row.kind!r}; use a ValueKind such as COUNT or one_of(...)"
        return
    if row.project_may_set not in ("no", "yes", "if trusted"):
        yield f'project_may_set is {row.project_may_set!r}; it is "no", "yes" or "if trusted"'
    yield from _flag_problems(row)
    if "." in row.name and row.has_variable:
        yield "the key of a table has no variable; add has_variable=False"
    yield from _help_problems(row)
    if row.is_plain and row.default is not None and (problem := _default_problem(row)):
        yield problem


def _flag_problems(row: Setting) -> Iterator[str]:
    if not isinstance(row.flags, tuple):
        yield f"flags is {row.flags!r}; it is a tuple: ({row.flags!r},)"
        return
    for flag in row.flags:
        if not re.fullmatch(_FLAG, flag):
            yield f"the flag {flag!r} is neither like -x nor like --long-name"
    if row.flags and not any(flag.startswith("--") for flag in row.flags):
        yield "it has only short flags; add a long one, which messages name"
    if row.flags and (row.kind is SWITCH) == bool(row.metavar):
        yield "a flag with a value has a metavar, and a switch has none"


def _help_problems(row: Setting) -> Iterator[str]:
    if not row.help:
        yield "it has no help, which --help, the README and editors show"
    if row.flags and row.kind is SWITCH and row.default is True and not row.flag_help:
        yield "its flag switches it off, and flag_help does not say that"
    for text in (row.help, row.flag_help):
        if text.startswith(" ") or text.endswith((".", " ")):
            yield "its help is no sentence: no full stop and no blank at its ends"
        if len(text) > LONGEST_HELP:
            yield f"its help has more than {LONGEST_HELP} characters"


def _default_problem(row: Setting) -> str:
    """Why the default can't be the value of the setting. An empty text or list means that nothing is set."""
    if row.default in ("", ()):
        return "" if row.kind is not SWITCH else "its default is empty; it is True or False"
    try:
        parsed = row.kind.parse(row.default, "its default")
    except SettingsError as error:
        return str(error)
    return "" if parsed == row.default and type(parsed) is type(row.default) else f"its default must be {parsed!r}"
