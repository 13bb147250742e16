"""Settings files of a project: where they are, and which of their settings take effect."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from bradawl.app.settings.files import FILE_LIMIT_BYTES, read_small_file
from bradawl.app.settings.layers import Layer, place_in
from bradawl.app.settings.table import SettingsTable

if TYPE_CHECKING:
    from bradawl.safety.trust.findings import Finding

_MOST_WARNINGS: Final = 10
_LONGEST_KEY: Final = 80


class ProjectFile(NamedTuple):
    """A settings file of a project, read and reviewed."""

    path: Path
    name: str
    """Path relative to the project's root."""
    findings: "tuple[Finding, ...]"


IsApproved = Callable[[str, object], bool]
"""Whether the user has approved the value of this name (`FILE: KEY`) as it is now."""


def project_root(cwd: str) -> str:
    """The nearest folder upwards that has a `.git`, or the folder itself if there is none; a real path if `cwd` is.

    The contents of `.git` don't matter: a repository inside another is a project of its own.
    """
    above = (Path(cwd), *Path(cwd).parents)
    try:
        return str(next((folder for folder in above if (folder / ".git").exists()), cwd))
    except OSError:
        return cwd


def read_project_files(
    cwd: str, root: str, user_file: Path, table: SettingsTable
) -> tuple[list[ProjectFile], list[str]]:
    """The settings files of a project, the strongest first, and warnings about those that can't be read."""
    files: list[ProjectFile] = []
    warnings: list[str] = []
    for path in _project_files(Path(cwd), Path(root)):
        if _is_same(path, user_file):
            continue
        name = str(path.relative_to(root))
        try:
            data = read_small_file(path)
            if data is None or (path.name == "pyproject.toml" and b"bradawl" not in data):
                continue
            found = _findings(path, data, root, table)
        except (OSError, ValueError, RecursionError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or error
            warnings.append(f"{path} is ignored, it can't be read: {why}.")
            continue
        files.append(ProjectFile(path, name, found))
    return files, warnings


def _project_files(cwd: Path, root: Path) -> Iterator[Path]:
    """The paths of possible settings files, the strongest first. Most projects have none of these files."""
    above = [folder for folder in (cwd, *cwd.parents) if folder == root or root in folder.parents]
    try:
        folder = next((folder for folder in above if (folder / ".bradawl").is_dir()), None)
    except OSError:
        folder = None
    if folder is not None:
        yield from (folder / ".bradawl" / name for name in ("config.local.toml", "config.toml", "settings.json"))
    yield root / "pyproject.toml"


def _findings(path: Path, data: bytes, root: str, table: SettingsTable) -> "tuple[Finding, ...]":
    """Raises `OSError`, `ValueError` or `RecursionError` for a file that can't be read or leads out of the project."""
    from bradawl.safety.trust.settings_review import decode_table, findings

    if not path.resolve().is_relative_to(root):
        raise OSError(0, "it is a link that leads out of the project")
    if len(data) > FILE_LIMIT_BYTES:
        raise OSError(0, f"it is larger than {FILE_LIMIT_BYTES} bytes")
    values = decode_table(data.decode("utf-8-sig"), is_toml=path.suffix == ".toml")
    if path.name == "pyproject.toml":
        tools = values.get("tool")
        own = tools.get("bradawl") if isinstance(tools, dict) else None
        values = own if isinstance(own, dict) else {}
    return findings(values, table.project_settings)


_NARROWING_RULES = ("permissions.deny", "permissions.ask")


def project_layers(
    files: list[ProjectFile], root: str, is_approved: IsApproved, table: SettingsTable
) -> tuple[list[Layer], list[str]]:
    """Layers with the settings that take effect, and warnings about those that do not."""
    layers: list[Layer] = []
    warnings: list[str] = []
    for file in files:
        values: dict[str, object] = {}
        ignored: list[str] = []
        for one in file.findings:
            agreed = one.is_for_trust and not one.is_program and is_approved(f"{file.name}: {one.key}", one.value)
            if one.verdict == "allow" or agreed:
                values[one.name] = one.value
            elif one.name in _NARROWING_RULES and _has_rules(one.value):
                values[one.name] = one.value  # its invalid entries refuse tools, with a warning
            else:
                ignored.append(_ignored(file.path, one, table))
        folder = file.path.parent.parent if file.path.parent.name == ".bradawl" else root
        layers.append(Layer(values, place_in(file.path), "project", str(folder)))
        warnings += ignored[:_MOST_WARNINGS]
        if len(ignored) > _MOST_WARNINGS:
            warnings.append(f"{file.path}: {len(ignored) - _MOST_WARNINGS} more of its settings are ignored.")
    return layers, warnings


def _has_rules(value: object) -> bool:
    """Whether a value is a list with at least one text."""
    return isinstance(value, list) and any(isinstance(text, str) for text in cast("list[object]", value))


def _ignored(path: Path, one: "Finding", table: SettingsTable) -> str:
    if not one.key:
        return f"{path} is ignored: {one.reason}."
    key = one.key if len(one.key) <= _LONGEST_KEY else f"{one.key[:_LONGEST_KEY]}..."
    from bradawl.safety.trust.settings_review import WHY_UNKNOWN

    known = ""
    if one.reason == WHY_UNKNOWN:
        known = f"; untrusted it may set {', '.join(sorted(table.project_settings.untrusted))}"
    return f"{path}: `{key}` is ignored: {one.reason}{known}."


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
