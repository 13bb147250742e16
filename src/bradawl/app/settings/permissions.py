"""Permission settings from all sources: mode, sandbox, rules, folders of the workspace, kept variables."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bradawl.app.settings.homes import Homes
from bradawl.app.settings.layers import Sources, UncheckedValue
from bradawl.app.settings.permission_values import RULE_SETTINGS, RuleText, SandboxChoice, parse_mode, parse_sandbox
from bradawl.app.settings.values import check_utf8_path, parse_bool, parse_texts, parse_variable_names, split_rules
from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Mode

if TYPE_CHECKING:
    from bradawl.app.settings.managed import Managed

_FOLDER_SETTINGS: Final = ("add_dirs", "permissions.add_dirs")


class PermissionSettings(NamedTuple):
    """The settings about permissions; the fields are those of `Settings`."""

    permission_mode: Mode | None
    sandbox: SandboxChoice
    add_dirs: tuple[str, ...]
    rules: tuple[RuleText, ...]
    kept_variables: tuple[str, ...]
    may_bypass: bool = True
    is_mode_fixed: bool = False


def permission_settings(sources: Sources, cwd: str, home: Homes, managed: "Managed | None") -> PermissionSettings:
    """Combine all sources and the managed settings. Adds warnings to `sources`. Raises `SettingsError`."""
    mode, mode_by = _mode(sources)
    sandbox = sources.find("sandbox")
    is_yolo = mode_by is not None and mode_by == sources.find("yolo")
    choice: SandboxChoice = "off" if is_yolo else "auto"
    if sandbox:
        choice = parse_sandbox(sandbox.value, sandbox.place)
    rules, folders, kept = tuple(_rules(sources, cwd, home.user)), _folders(sources, cwd, home), _kept(sources)
    if managed is None:
        return PermissionSettings(mode, choice, folders, rules, kept)
    held = managed.mode_for(mode, mode_by, sources.warnings)
    if is_yolo and held != "bypass" and not sandbox:
        choice = "auto"  # yolo switches it off only together with the questions
    mode, choice = held, managed.sandbox_for(choice, sandbox, sources.warnings)
    is_fixed = "permission_mode" in managed.values
    return PermissionSettings(mode, choice, folders, (*managed.rules, *rules), kept, managed.may_bypass, is_fixed)


def _mode(sources: Sources) -> tuple[Mode | None, UncheckedValue | None]:
    """The mode, and the setting it comes from: of `permission_mode` and `yolo` the one from the stronger source."""
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
    """Rules from all sources. Adds a warning for each invalid rule of a project: it will refuse calls."""
    for name, verdict in RULE_SETTINGS.items():
        for found in sources.all(name):
            is_projects = found.kind == "project"
            if verdict in ("network", "domain"):
                texts = parse_texts(found.value, found.place)
            else:
                texts = split_rules(found.value, found.place, is_forgiving=is_projects)
            rules = [RuleText(verdict, text, found.place, found.folder or cwd, is_projects) for text in texts]
            if is_projects:
                sources.warnings.extend(filter(None, (_problem_of(rule, home) for rule in rules)))
            elif verdict == "domain":
                from bradawl.app.settings.network_presets import check_domains

                check_domains(texts, found.place)
            yield from rules


def _problem_of(rule: RuleText, home: str) -> str:
    from bradawl.safety.permissions.path_globs import Bases
    from bradawl.safety.permissions.rule_syntax import parse_project_rule

    return parse_project_rule(rule.text, rule.verdict, rule.source, Bases(rule.folder, home, rule.folder))[1]


def _kept(sources: Sources) -> tuple[str, ...]:
    names = (name for found in sources.all("kept_variables") for name in parse_variable_names(found.value, found.place))
    return tuple(dict.fromkeys(names))


# ------------------------------------------------------------------ folders


def _folders(sources: Sources, cwd: str, home: Homes) -> tuple[str, ...]:
    """Real paths of further folders. A folder in a file that can't be used is left out with a warning."""
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


def _folder(text: str, found: UncheckedValue, cwd: str, home: Homes) -> str:
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
    """Why a folder can't belong to the workspace; empty if it can."""
    if path == "/":
        return "it holds the whole system"
    if home.user and is_within(os.path.realpath(home.user), path):
        return "it holds your home folder"
    for own in (home.config, home.data):
        real = os.path.realpath(own)
        if is_within(real, path) or is_within(path, real):
            return f"{own} is bradawl's own"
    return ""
