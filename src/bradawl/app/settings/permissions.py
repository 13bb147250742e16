"""From all sources: what is asked about, what holds commands, which rules and folders count."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bradawl.app.settings.homes import Homes
from bradawl.app.settings.layers import Found, Sources
from bradawl.app.settings.permission_values import RuleText, RuleVerdict, SandboxWish, parse_mode, parse_sandbox
from bradawl.app.settings.values import check_utf8_path, parse_bool, parse_texts, parse_variable_names, split_rules
from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Mode

if TYPE_CHECKING:
    from bradawl.app.settings.managed import Managed

_LISTS: Final[tuple[tuple[str, RuleVerdict], ...]] = (
    ("disallowed_tools", "deny"),
    ("permissions.deny", "deny"),
    ("permissions.ask", "ask"),
    ("allowed_tools", "allow"),
    ("permissions.allow", "allow"),
    ("network_commands", "network"),
)
_FOLDER_SETTINGS: Final = ("add_dirs", "permissions.add_dirs")


class PermissionSettings(NamedTuple):
    """The part of the settings that decides what may happen; fields as in `Settings`."""

    permission_mode: Mode | None
    sandbox: SandboxWish
    add_dirs: tuple[str, ...]
    rules: tuple[RuleText, ...]
    kept_variables: tuple[str, ...]
    may_bypass: bool = True
    is_mode_fixed: bool = False


def permission_settings(sources: Sources, cwd: str, home: Homes, managed: "Managed | None") -> PermissionSettings:
    """Settle them; adds to the warnings of `sources`. Raises `SettingsError`."""
    mode, mode_by = _mode(sources)
    sandbox = sources.find("sandbox")
    is_yolo = mode_by is not None and mode_by == sources.find("yolo")
    wish: SandboxWish = "off" if is_yolo else "auto"
    if sandbox:
        wish = parse_sandbox(sandbox.value, sandbox.place)
    rules, folders, kept = tuple(_rules(sources, cwd, home.user)), _folders(sources, cwd, home), _kept(sources)
    if managed is None:
        return PermissionSettings(mode, wish, folders, rules, kept)
    held = managed.mode_for(mode, mode_by, sources.warnings)
    if is_yolo and held != "bypass" and not sandbox:
        wish = "auto"  # only running without questions would have switched it off
    mode, wish = held, managed.sandbox_for(wish, sandbox, sources.warnings)
    is_fixed = "permission_mode" in managed.values
    return PermissionSettings(mode, wish, folders, (*managed.rules, *rules), kept, managed.may_bypass, is_fixed)


def _mode(sources: Sources) -> tuple[Mode | None, Found | None]:
    """The mode, and which of two settings says so: the one from the stronger source."""
    said, yolo = sources.find("permission_mode"), sources.find("yolo")
    mode = parse_mode(said.value, said.place) if said else None
    if yolo is None or not parse_bool(yolo.value, yolo.place):
        return mode, said
    if said is None or mode == "bypass" or yolo.rank < said.rank:
        return "bypass", yolo
    if yolo.rank == said.rank:
        raise SettingsError(f"{yolo.place} means the mode bypass, and {said.place} says {mode}; use one of them.")
    return mode, said


def _rules(sources: Sources, cwd: str, home: str) -> Iterator[RuleText]:
    """What of a project's rules can't be read is told: nobody else hears of it before a call is refused for it."""
    for name, verdict in _LISTS:
        for found in sources.all(name):
            is_projects = found.kind == "project"
            if name == "network_commands":
                texts = parse_texts(found.value, found.place)
            else:
                texts = split_rules(found.value, found.place, is_forgiving=is_projects)
            rules = [RuleText(verdict, text, found.place, found.folder or cwd, is_projects) for text in texts]
            if is_projects:
                sources.warnings.extend(filter(None, (_trouble_with(rule, home) for rule in rules)))
            yield from rules


def _trouble_with(rule: RuleText, home: str) -> str:
    from bradawl.safety.permissions.path_globs import Bases
    from bradawl.safety.permissions.rules import parse_project_rule

    return parse_project_rule(rule.text, rule.verdict, rule.source, Bases(rule.folder, home, rule.folder))[1]


def _kept(sources: Sources) -> tuple[str, ...]:
    names = (name for found in sources.all("kept_variables") for name in parse_variable_names(found.value, found.place))
    return tuple(dict.fromkeys(names))


# ------------------------------------------------------------------ folders


def _folders(sources: Sources, cwd: str, home: Homes) -> tuple[str, ...]:
    """Real paths of those that can be used. What a file names wrongly is left out with a warning."""
    folders: list[str] = []
    for found in (each for name in _FOLDER_SETTINGS for each in sources.all(name)):
        separator = os.pathsep if found.kind == "variable" else ""
        for text in parse_texts(found.value, found.place, separator):
            try:
                folders.append(_folder(text, found, cwd, home))
            except SettingsError as error:
                if found.kind in ("flag", "variable"):
                    raise
                sources.warnings.append(str(error))
    return tuple(dict.fromkeys(folder for folder in folders if not is_within(folder, cwd)))


def _folder(text: str, found: Found, cwd: str, home: Homes) -> str:
    place = found.place
    expanded = home.user + text[1:] if text == "~" or text.startswith("~/") else text
    try:
        path = os.path.realpath(Path(found.folder or cwd, expanded))
        is_folder = Path(path).is_dir()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{place}: {text!r} can't be used: {error}.") from error
    if why := _unfit(path, home):
        raise SettingsError(f"{place}: {path} can't belong to the workspace: {why}. Name a folder below it.")
    if not is_folder:
        raise SettingsError(f"{place}: {path} is not a folder.")
    return check_utf8_path(path, place)


def _unfit(path: str, home: Homes) -> str:
    """Why a folder is too much to be written in freely; empty if it is not."""
    if path == "/":
        return "it holds the whole system"
    if home.user and is_within(os.path.realpath(home.user), path):
        return "it holds your home folder"
    for own in (home.config, home.data):
        real = os.path.realpath(own)
        if is_within(real, path) or is_within(path, real):
            return f"{own} is bradawl's own"
    return ""
