"""Settings files of a project: where they are, and which of their settings take effect."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from bradawl.app.settings.files import FILE_LIMIT_BYTES, SettingsFile, decode_settings, read_small_file
from bradawl.app.settings.layers import Layer
from bradawl.app.settings.table import SettingsTable
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.safety.trust.findings import Finding

_MOST_WARNINGS: Final = 10
_LONGEST_KEY: Final = 80
_TABLES_ABOVE: Final = ("tool", "bradawl")
"""Tables of `pyproject.toml` that the settings are in."""


class ProjectFile(NamedTuple):
    """A settings file of a project, read and reviewed."""

    path: Path
    name: str
    """Path relative to the project's root."""
    findings: "tuple[Finding, ...]"
    file: SettingsFile

    def keys_of(self, one: "Finding") -> tuple[str, ...]:
        """The key of a finding as a path through the tables of the file."""
        above = _TABLES_ABOVE if self.path.name == "pyproject.toml" else ()
        values = _own_table(self.file)
        return (*above, one.key) if one.key in values else (*above, *one.key.split(".", 1))

    def source_of(self, name: str) -> str:
        """File and line of a setting that is in the file."""
        found = next((one for one in self.findings if one.name == name), None)
        return self.file.source_of(*self.keys_of(found)) if found else self.file.name


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
    cwd: str, root: str, user_file: Path, table: SettingsTable, home: str = ""
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
            file = _decoded(path, data, root, home)
        except OSError as error:
            warnings.append(f"{path} is ignored, it can't be read: {error.strerror or error}.")
            continue
        except SettingsError as error:
            warnings.append(f"{str(error).rstrip('.')}. The file is ignored.")
            continue
        from bradawl.safety.trust.settings_review import findings

        files.append(ProjectFile(path, name, findings(_own_table(file), table.project_settings), file))
    return files, warnings


def settings_folder(cwd: Path, root: Path) -> Path | None:
    """The nearest folder upwards, in the project, that has a `.bradawl`; None if there is none."""
    above = [folder for folder in (cwd, *cwd.parents) if folder == root or root in folder.parents]
    try:
        return next((folder for folder in above if (folder / ".bradawl").is_dir()), None)
    except OSError:
        return None


def _project_files(cwd: Path, root: Path) -> Iterator[Path]:
    """The paths of possible settings files, the strongest first. Most projects have none of these files."""
    folder = settings_folder(cwd, root)
    if folder is not None:
        yield from (folder / ".bradawl" / name for name in ("config.local.toml", "config.toml", "settings.json"))
    yield root / "pyproject.toml"


def _decoded(path: Path, data: bytes, root: str, home: str) -> SettingsFile:
    """Raises `OSError` or `SettingsError` for a file that can't be read or leads out of the project."""
    from bradawl.app.settings.mistakes import shown_path

    if not path.resolve().is_relative_to(root):
        raise OSError(0, "it is a link that leads out of the project")
    if len(data) > FILE_LIMIT_BYTES:
        raise OSError(0, f"it is larger than {FILE_LIMIT_BYTES} bytes")
    return decode_settings(data, path, shown_path(path, home))


def _own_table(file: SettingsFile) -> dict[str, object]:
    """The settings in a file: all of it, or `[tool.bradawl]` of a `pyproject.toml`."""
    values = file.values
    for name in _TABLES_ABOVE if file.path.name == "pyproject.toml" else ():
        inner = values.get(name)
        values = cast("dict[str, object]", inner) if isinstance(inner, dict) else {}
    return values


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
                ignored.append(_ignored(file, one, table))
        folder = file.path.parent.parent if file.path.parent.name == ".bradawl" else root
        layers.append(Layer(values, file.source_of, "project", str(folder), is_file=True))
        warnings += ignored[:_MOST_WARNINGS]
        if len(ignored) > _MOST_WARNINGS:
            warnings.append(f"{file.path}: {len(ignored) - _MOST_WARNINGS} more of its settings are ignored.")
    return layers, warnings


def narrowing(layer: Layer) -> Layer:
    """The layer with the rules that allow less, and without all other settings."""
    return layer._replace(values={name: value for name, value in layer.values.items() if name in _NARROWING_RULES})


def _has_rules(value: object) -> bool:
    """Whether a value is a list with at least one text."""
    return isinstance(value, list) and any(isinstance(text, str) for text in cast("list[object]", value))


def _ignored(file: ProjectFile, one: "Finding", table: SettingsTable) -> str:
    if not one.key:
        return f"{file.file.name} is ignored: {one.reason}."
    key = one.key if len(one.key) <= _LONGEST_KEY else f"{one.key[:_LONGEST_KEY]}..."
    return f"{file.file.source_of(*file.keys_of(one))}: `{key}` is ignored: {reason_of(one, table)}"


def reason_of(one: "Finding", table: SettingsTable) -> str:
    """Why a setting of a project's file is ignored, and what was probably meant by an unknown key."""
    from bradawl.safety.trust.settings_review import WHY_UNKNOWN

    if one.reason != WHY_UNKNOWN:
        return f"{one.reason}."
    from difflib import get_close_matches

    allowed = table.project_settings
    near = get_close_matches(one.name, [*allowed.untrusted, *allowed.trusted], 1, 0.75)
    if near and one.name not in table.rows:
        return f"{one.reason}; did you mean {near[0]}?"
    return f"{one.reason}; untrusted it may set {', '.join(sorted(allowed.untrusted))}."


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
