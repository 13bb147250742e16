"""What whoever runs the machine decides for all of its users, in a file that only root can write."""

import os
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.settings.files import read_user_file
from bradawl.app.settings.layers import Found
from bradawl.app.settings.permission_values import RuleText, RuleVerdict, SandboxWish, mode_in, sandbox_in
from bradawl.app.settings.values import flag_in, refuse_unknown, rules_in, table_in, texts_in
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Mode

_KEYS: Final = frozenset({"permission_mode", "sandbox", "forbid_bypass", "permissions", "network_commands"})
_LISTS: Final[tuple[RuleVerdict, ...]] = ("deny", "ask", "allow")


class Managed(NamedTuple):
    """What is settled for everybody; None leaves it to them."""

    path: Path
    permission_mode: Mode | None
    sandbox: SandboxWish | None
    may_bypass: bool
    rules: tuple[RuleText, ...]

    def mode_for(self, mode: Mode | None, by: Found | None, warnings: list[str]) -> Mode | None:
        """The mode as it may be. Raises `SettingsError` where a flag or variable wants another."""
        if self.permission_mode is not None:
            if mode not in (None, self.permission_mode):
                self._overrule(by, f"the mode {self.permission_mode}", warnings)
            return self.permission_mode
        if mode == "bypass" and not self.may_bypass:
            self._overrule(by, "questions to be asked", warnings)
            return None
        return mode

    def sandbox_for(self, wish: SandboxWish, by: Found | None, warnings: list[str]) -> SandboxWish:
        """The sandbox as it must be. Raises `SettingsError` where a flag or variable wants it otherwise."""
        if self.sandbox is not None and wish != self.sandbox:
            self._overrule(by, f"sandbox = {self.sandbox}", warnings)
        return self.sandbox or wish

    def _overrule(self, found: Found | None, wanted: str, warnings: list[str]) -> None:
        """Nothing is overruled where nobody said anything."""
        if found is None:
            return
        if found.kind in ("flag", "variable"):
            raise SettingsError(f"{found.place} can't be used here: {self.path} wants {wanted}.")
        warnings.append(f"{found.place} does not count: {self.path} wants {wanted}.")


def read_managed(path: Path, warnings: list[str]) -> Managed | None:
    """The file's word; None where it says nothing, or where others than root could have written it.

    Raises `SettingsError` for a file that can't be understood: nobody runs past rules that can't be read.
    """
    if why := _not_roots(path):
        warnings.append(f"{path} is ignored: {why}.")
        return None
    table = read_user_file(path, _refuse_foreign)
    refuse_unknown(table, _KEYS, str(path))
    mode, sandbox = table.get("permission_mode"), table.get("sandbox")
    return Managed(
        path,
        None if mode is None else mode_in(mode, f"{path}: permission_mode"),
        None if sandbox is None else sandbox_in(sandbox, f"{path}: sandbox"),
        not flag_in(table.get("forbid_bypass", False), f"{path}: forbid_bypass"),
        _rules(table, path),
    )


def _rules(table: dict[str, object], path: Path) -> tuple[RuleText, ...]:
    lists = table_in(table.get("permissions", {}), f"{path}: permissions")
    refuse_unknown(lists, frozenset(_LISTS), f"{path}: permissions")
    found: list[RuleText] = []
    for verdict in _LISTS:
        place = f"{path}: permissions.{verdict}"
        found += [RuleText(verdict, text, place, str(path.parent)) for text in rules_in(lists.get(verdict, []), place)]
    place = f"{path}: network_commands"
    texts = texts_in(table.get("network_commands", []), place)
    return (*found, *(RuleText("network", text, place, str(path.parent)) for text in texts))


def _not_roots(path: Path) -> str:
    """Why a file is not surely the administrator's; empty if it is, or if it is not there."""
    try:
        for place in (path.parent, path):
            if why := _why_foreign(place.stat(), str(place)):
                return why
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it can't be looked at ({error.strerror})"
    return ""


def _refuse_foreign(found: os.stat_result) -> None:
    """The same for the file that was opened, which is the one that counts."""
    if why := _why_foreign(found, "it"):
        raise SettingsError(f"The managed settings changed while they were read: {why}.")


def _why_foreign(found: os.stat_result, name: str) -> str:
    if found.st_uid != 0:
        return f"{name} does not belong to root"
    return f"{name} can be written by others than root" if found.st_mode & 0o022 else ""
