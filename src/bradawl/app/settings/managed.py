"""Managed settings: what the administrator decides for all users of a machine, in a file that only root can write."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from bradawl.app.settings.file_check import check_file, managed_keys
from bradawl.app.settings.files import SettingsFile, read_settings_file
from bradawl.app.settings.layers import UncheckedValue
from bradawl.app.settings.permission_values import RULE_SETTINGS, RuleText, SandboxChoice
from bradawl.app.settings.table import SettingsTable
from bradawl.app.settings.values import flatten, parse_texts, split_rules
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Mode


class Managed(NamedTuple):
    """The managed settings; the user decides settings that the file leaves out."""

    path: Path
    values: Mapping[str, object]
    """Parsed values by the names of settings, without rules."""
    rules: tuple[RuleText, ...]
    file: SettingsFile

    @property
    def may_bypass(self) -> bool:
        """False: the mode `bypass` is forbidden."""
        return not self.values.get("forbid_bypass", False)

    def mode_for(self, mode: Mode | None, by: UncheckedValue | None, warnings: list[str]) -> Mode | None:
        """The mode in force. Raises `SettingsError` if a flag or variable sets another one."""
        if "permission_mode" in self.values:
            fixed = cast("Mode", self.values["permission_mode"])
            if mode not in (None, fixed):
                self._overrule(by, f"permission_mode = {fixed}", warnings)
            return fixed
        if mode == "bypass" and not self.may_bypass:
            self._overrule(by, "forbid_bypass = true", warnings)
            return None
        return mode

    def sandbox_for(self, choice: SandboxChoice, by: UncheckedValue | None, warnings: list[str]) -> SandboxChoice:
        """The sandbox setting in force. Raises `SettingsError` if a flag or variable sets another one."""
        return cast("SandboxChoice", self.value_for("sandbox", choice, by, warnings))

    def value_for(self, name: str, value: object, by: UncheckedValue | None, warnings: list[str]) -> object:
        """The value of a setting in force. Raises `SettingsError` if a flag or variable sets another one.

        A value from another source is left out with a warning.
        """
        if name not in self.values:
            return value
        if value != self.values[name]:
            self._overrule(by, f"{name} = {self.values[name]}", warnings)
        return self.values[name]

    def _overrule(self, found: UncheckedValue | None, wanted: str, warnings: list[str]) -> None:
        if found is None:  # a default
            return
        if found.kind in ("flag", "variable"):
            raise SettingsError(f"{found.place} can't be used here: {self.path} sets {wanted}. Leave it out.")
        warnings.append(f"{found.place} is ignored: {self.path} sets {wanted}.")


def read_managed(path: Path, table: SettingsTable, warnings: list[str]) -> Managed | None:
    """The file's settings; None with a warning if users other than root can write the file or its folder.

    Raises `SettingsError` for a file with a mistake: a run must not go on without rules that could not be read.
    """
    if why := _not_roots(path):
        warnings.append(f"{path} is ignored: {why}.")
        return None
    file = read_settings_file(path, check=_refuse_foreign)
    check_file(file, managed_keys(table))
    found = flatten(file.values, table.managed_keys())
    places = {name: f"{file.source_of(*name.split('.'))}: {name}" for name in found}
    plain = [name for name in found if name not in RULE_SETTINGS]
    values = {name: table.rows[name].kind.parse(found[name], places[name]) for name in plain}
    rules: list[RuleText] = []
    for name, verdict in RULE_SETTINGS.items():
        if name in found:
            split = parse_texts if verdict in ("network", "domain") else split_rules
            texts = split(found[name], places[name])
            rules += (RuleText(verdict, text, places[name], str(path.parent)) for text in texts)
    return Managed(path, values, tuple(rules), file)


def _not_roots(path: Path) -> str:
    """Why users other than root could have written a file; empty if they could not, or if there is none."""
    try:
        for place in (path.parent, path):
            if why := _why_foreign(place.stat(), str(place)):
                return why
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it can't be examined ({error.strerror})"
    return ""


def _refuse_foreign(found: os.stat_result) -> None:
    """Check the open file, which may have replaced the one that was checked by name."""
    if why := _why_foreign(found, "it"):
        raise SettingsError(f"The managed settings changed while they were read: {why}.")


def _why_foreign(found: os.stat_result, name: str) -> str:
    if found.st_uid != 0:
        return f"{name} does not belong to root"
    return f"{name} can be written by others than root" if found.st_mode & 0o022 else ""
