"""Runs `bradawl config`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bradawl.app.config.target import Target, target_of
from bradawl.app.console import Console
from bradawl.app.settings.homes import Homes, homes
from bradawl.app.settings.load import MANAGED_FILE, SettingsSources, read_settings
from bradawl.app.settings.table import SETTINGS
from bradawl.app.terminal_size import ONE_LINE, terminal_width
from bradawl.core.errors import SettingsError

_NOTHING_SET: Final = 1


class ConfigRun:
    """One run of `bradawl config`."""

    def __init__(
        self,
        options: Mapping[str, object],
        environ: Mapping[str, str],
        console: Console,
        cwd: str,
        notify: Callable[[str], None],
        managed: Path = MANAGED_FILE,
    ) -> None:
        """`notify` is called with each note for the user."""
        self._options = options
        self._environ = environ
        self._console = console
        self._cwd = str(Path(cwd, str(options.get("cwd") or "")))
        self._notify = notify
        self._managed = managed

    def run(self) -> int:
        """Run the action and return the exit code. Raises `SettingsError`."""
        actions: dict[str, Callable[[], int]] = {
            "show": self._show,
            "get": self._get,
            "set": self._set,
            "unset": self._unset,
            "edit": self._edit,
            "path": self._path,
            "schema": self._schema,
        }
        return actions[str(self._options["action"])]()

    @property
    def _home(self) -> Homes:
        return homes(self._environ, self._cwd)

    @property
    def _width(self) -> int:
        return terminal_width(self._console.stdout, self._environ, ONE_LINE)

    def _read(self, options: Mapping[str, object]) -> SettingsSources:
        return read_settings(options, self._environ, self._cwd, self._managed)

    # -------------------------------------------------------------- reading

    def _show(self) -> int:
        from bradawl.app.config.show import shown_json, shown_lines

        read = self._read(self._options)
        is_all = bool(self._options["all"])
        if self._options["json"]:
            text = shown_json(read, is_all=is_all)
        else:
            text = "\n".join(shown_lines(read, self._width, is_all=is_all)) + "\n"
        self._console.answer(text)
        for warning in dict.fromkeys(read.given.sources.warnings):
            self._notify(warning)
        return 0

    def _get(self) -> int:
        from bradawl.app.config.show import value_json, value_lines, value_of

        value = value_of(str(self._options["key"]), self._read(self._options))
        if value in (None, ""):
            self._console.say(f"bradawl: {self._options['key']} is not set.")
            return _NOTHING_SET
        if self._options["json"]:
            self._console.answer(value_json(value))
        else:
            self._console.answer("".join(f"{line}\n" for line in value_lines(value)))
        return 0

    def _path(self) -> int:
        if not self._options["all"]:
            self._console.answer(f"{self._target.path}\n")
            return 0
        from bradawl.app.config.source_files import source_lines

        lines = source_lines(self._options, self._environ, self._home, self._cwd, self._managed, self._width)
        self._console.answer("".join(f"{line}\n" for line in lines))
        return 0

    def _schema(self) -> int:
        from bradawl.app.settings.schema import schema_text

        kind = "project" if self._options["project"] else "managed" if self._options["managed"] else "user"
        self._console.answer(schema_text(SETTINGS, kind))
        return 0

    # -------------------------------------------------------------- changing

    @property
    def _target(self) -> Target:
        return target_of(self._options, self._home, self._cwd)

    def _set(self) -> int:
        from bradawl.app.config.change import set_value
        from bradawl.app.config.show import value_text
        from bradawl.app.config.stronger_sources import notes_after

        target = self._target
        path, file = set_value(self._options, target, SETTINGS, self._home, self._cwd)
        value: object = file.values
        for key in path:
            value = value[key] if isinstance(value, dict) else value
        from bradawl.app.config.effective import masked
        from bradawl.app.config.keys import key_text

        self._console.report(f"{file.source_of(*path)}: {key_text(path)} = {value_text(masked(path, value))}")
        self._say_notes(lambda: notes_after(path, target, self._read({})))
        return 0

    def _unset(self) -> int:
        from bradawl.app.config.change import unset_value
        from bradawl.app.config.keys import key_text
        from bradawl.app.config.stronger_sources import notes_after_removal

        target = self._target
        path, _ = unset_value(self._options, target, SETTINGS)
        self._console.report(f"{target.name}: {key_text(path)} is removed")
        self._say_notes(lambda: notes_after_removal(path, self._read({})))
        return 0

    def _say_notes(self, notes: Callable[[], list[str]]) -> None:
        """Notes on what else decides the setting. Mistakes elsewhere don't undo the change, so they are notes too."""
        try:
            found = notes()
        except SettingsError as error:
            found = str(error).splitlines()
        for note in found:
            self._notify(note)

    def _edit(self) -> int:
        from bradawl.app.config.editor import edit_file

        return edit_file(self._target, SETTINGS, self._environ, self._console, self._width)
