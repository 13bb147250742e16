"""`bradawl config edit`: opens a settings file in the user's editor, and checks it afterwards."""

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bradawl.app.config.settings_writer import PRIVATE, SHARED, locked_folder, replace_text
from bradawl.app.config.target import Target, decoded, mistakes_of
from bradawl.app.console import Console
from bradawl.app.settings.files import read_small_file
from bradawl.app.settings.mistakes import FileMistakes
from bradawl.app.settings.table import SettingsTable
from bradawl.core.errors import SettingsError

_USUAL: Final = ("sensible-editor", "nano", "vim", "vi")
_TEMPLATE: Final = """\
# Settings of bradawl. `bradawl config show --all` lists them with their values.
# An editor can check this file: `bradawl config schema > config.schema.json` beside it, and this line at the top:
# #:schema ./config.schema.json
"""
MISTAKES_EXIT: Final = 2
RunEditor = Callable[[Sequence[str]], int]
"""Runs a command at the terminal and returns its exit code. Raises `OSError`."""


def edit_file(
    target: Target,
    table: SettingsTable,
    environ: Mapping[str, str],
    console: Console,
    width: int,
    run: RunEditor = lambda words: subprocess.run(words, check=False).returncode,  # noqa: S603 - the user's editor
) -> int:
    """Open the file until it has no mistakes or the user wants no more; returns the exit code.

    Raises `SettingsError`.
    """
    words = editor_words(environ)
    is_new = _make(target)
    try:
        while True:
            _run(run, [*words, str(target.path)])
            report = check_report(target, table, width)
            if not report:
                console.say(f"{target.name} has no mistakes.")
                return 0
            console.say(report)
            if not _edit_again(console):
                return MISTAKES_EXIT
    finally:
        if is_new:
            _remove_if_untouched(target.path)


def editor_words(environ: Mapping[str, str]) -> list[str]:
    """The command of the editor: $VISUAL, $EDITOR, or the first usual one on PATH. Raises `SettingsError`."""
    for name in ("VISUAL", "EDITOR"):
        if text := environ.get(name, "").strip():
            try:
                return shlex.split(text)
            except ValueError as error:
                raise SettingsError(f"${name} can't be used: {error} in {text!r}.") from error
    import shutil

    found = next((path for each in _USUAL if (path := shutil.which(each, path=environ.get("PATH", os.defpath)))), None)
    if found is None:
        raise SettingsError("No editor was found; set the variable EDITOR, such as EDITOR=nano.")
    return [found]


def check_report(target: Target, table: SettingsTable, width: int) -> str:
    """All mistakes in the file, with their lines; empty if there are none."""
    try:
        mistakes = mistakes_of(target, decoded(target, target.text()), table)
    except FileMistakes as error:
        return error.report(width)
    except SettingsError as error:
        return str(error)
    return FileMistakes(mistakes).report(width) if mistakes else ""


def _make(target: Target) -> bool:
    """Make the file with a comment if there is none; returns whether it was made."""
    is_private = target.kind == "user"
    with locked_folder(target.path.parent, is_private=is_private):
        if target.path.exists():
            return False
        replace_text(target.path, _TEMPLATE, PRIVATE if is_private else SHARED)
    return True


def _remove_if_untouched(path: Path) -> None:
    if read_small_file(path) == _TEMPLATE.encode():
        path.unlink()


def _run(run: RunEditor, words: Sequence[str]) -> None:
    try:
        code = run(words)
    except OSError as error:
        raise SettingsError(f"The editor {words[0]!r} can't be started: {error.strerror or error}.") from error
    if code:
        raise SettingsError(f"The editor {words[0]!r} ended with exit code {code}; the file was not checked.")


def _edit_again(console: Console) -> bool:
    if not console.has_user:
        return False
    console.say("Edit again? [Y/n]")
    answer = console.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")
