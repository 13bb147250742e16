"""Where settings are looked for: flags, environment, files. Reads, but does not yet judge values."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    import os

    from bradawl.safety.trust.findings import Finding

FILE_LIMIT_BYTES: Final = 1_000_000
_MOST_WARNINGS: Final = 10
_LONGEST_KEY: Final = 80
Kind = Literal["flag", "variable", "project", "user"]


class Layer(NamedTuple):
    """Settings from one place."""

    values: Mapping[str, object]
    place_of: Callable[[str], str]
    """What to call a setting of this place in a message."""
    kind: Kind
    folder: str = ""
    """What relative paths in it start from; empty for the working directory."""


class Found(NamedTuple):
    """A value, not yet judged, and where it stands."""

    value: object
    place: str
    kind: Kind
    folder: str = ""
    """What relative paths in it start from; empty for the working directory."""
    rank: int = 0
    """Of the layer it stands in; 0 is the strongest."""


class Sources(NamedTuple):
    """All layers, the strongest first, and what they said that needs telling."""

    layers: tuple[Layer, ...]
    warnings: list[str]

    def find(self, name: str) -> Found | None:
        """A setting as the strongest layer that has it says."""
        return next(self.all(name), None)

    def all(self, name: str) -> Iterator[Found]:
        """What each layer says of a setting, from the strongest on: for lists, which add up."""
        for rank, layer in enumerate(self.layers):
            if (value := layer.values.get(name)) is not None:
                yield Found(value, layer.place_of(name), layer.kind, layer.folder, rank)

    def without_project(self) -> "Sources":
        """The same, but for what came with the project."""
        return Sources(tuple(layer for layer in self.layers if layer.kind != "project"), self.warnings)


class Homes(NamedTuple):
    """The folders that belong to the user; none of them need exist."""

    user: str
    config: str
    data: str


def homes(environ: Mapping[str, str], cwd: str) -> Homes:
    """Where settings and sessions live: BRADAWL_HOME, else the XDG folders, else those below the home folder.

    The home folder is given by its real path, since paths are compared with it after their links were followed.
    """
    import os

    user = environ.get("HOME", "") or _home_of_account()
    user = os.path.realpath(user) if user.startswith("/") else user
    if chosen := environ.get("BRADAWL_HOME", "").strip():
        expanded = user + chosen[1:] if chosen == "~" or chosen.startswith("~/") else chosen
        home = str(Path(cwd, expanded))
        return Homes(user, home, home)
    config = _xdg(environ.get("XDG_CONFIG_HOME", ""), Path(user, ".config"))
    data = _xdg(environ.get("XDG_DATA_HOME", ""), Path(user, ".local", "share"))
    return Homes(user, str(config / "bradawl"), str(data / "bradawl"))


def _xdg(folder: str, otherwise: Path) -> Path:
    """The XDG standard has relative paths ignored."""
    return Path(folder) if folder.startswith("/") else otherwise


def _home_of_account() -> str:
    import os

    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir or "/"
    except (ImportError, KeyError):
        return "/"


def read_user_file(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> dict[str, object]:
    """The user's own settings; nothing if there is no file. `check` may refuse the file that was opened.

    Raises `SettingsError`.
    """
    try:
        return _read_toml(path, check)
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror or error}.") from error


class ProjectFile(NamedTuple):
    """A settings file of a project, as it was read."""

    path: Path
    name: str
    """From the project's root."""
    findings: "tuple[Finding, ...]"


Counts = Callable[[str, object], bool]
"""Whether the user has agreed to what stands under this name, as it is now."""


def project_root(cwd: str) -> str:
    """The top of the checkout a folder lies in, the folder itself outside of one; real if `cwd` is.

    A `.git` decides, whatever is in it: a repository inside another is a project of its own.
    """
    above = (Path(cwd), *Path(cwd).parents)
    try:
        return str(next((folder for folder in above if (folder / ".git").exists()), cwd))
    except OSError:
        return cwd


def read_project_files(cwd: str, root: str, user_file: Path) -> tuple[list[ProjectFile], list[str]]:
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
            found = _findings(path, data, root)
        except (OSError, ValueError, RecursionError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or error
            warnings.append(f"{path} is ignored, it can't be read: {why}.")
            continue
        files.append(ProjectFile(path, name, found))
    return files, warnings


def _project_files(cwd: Path, root: Path) -> Iterator[Path]:
    """Those that may be there, the strongest first; most projects have none."""
    above = [folder for folder in (cwd, *cwd.parents) if folder == root or root in folder.parents]
    try:
        folder = next((folder for folder in above if (folder / ".bradawl").is_dir()), None)
    except OSError:
        folder = None
    if folder is not None:
        yield from (folder / ".bradawl" / name for name in ("config.local.toml", "config.toml", "settings.json"))
    yield root / "pyproject.toml"


def _findings(path: Path, data: bytes, root: str) -> "tuple[Finding, ...]":
    """Raises `OSError`, `ValueError` or `RecursionError` for what is no table of the project's own."""
    from bradawl.safety.trust.settings_review import decode_table, findings

    if not path.resolve().is_relative_to(root):
        raise OSError(0, "it is a link that leads out of the project")
    if len(data) > FILE_LIMIT_BYTES:
        raise OSError(0, f"it is larger than {FILE_LIMIT_BYTES} bytes")
    table = decode_table(data.decode("utf-8-sig"), is_toml=path.suffix == ".toml")
    if path.name == "pyproject.toml":
        tools = table.get("tool")
        own = tools.get("bradawl") if isinstance(tools, dict) else None
        table = own if isinstance(own, dict) else {}
    return findings(table)


_NARROWING_RULES = ("permissions.deny", "permissions.ask")


def project_layers(files: list[ProjectFile], root: str, counts: Counts) -> tuple[list[Layer], list[str]]:
    """What of a project's files counts, and warnings about what does not."""
    layers: list[Layer] = []
    warnings: list[str] = []
    for file in files:
        values: dict[str, object] = {}
        ignored: list[str] = []
        for one in file.findings:
            agreed = one.is_for_trust and not one.is_program and counts(f"{file.name}: {one.key}", one.value)
            if one.verdict == "allow" or agreed:
                values[one.name] = one.value
            elif one.name in _NARROWING_RULES and _has_rules(one.value):
                values[one.name] = one.value  # what of it can't be read refuses tools, and that is told
            else:
                ignored.append(_ignored(file.path, one))
        folder = file.path.parent.parent if file.path.parent.name == ".bradawl" else root
        layers.append(Layer(values, place_in(file.path), "project", str(folder)))
        warnings += ignored[:_MOST_WARNINGS]
        if len(ignored) > _MOST_WARNINGS:
            warnings.append(f"{file.path}: {len(ignored) - _MOST_WARNINGS} more of its settings are ignored.")
    return layers, warnings


def _has_rules(value: object) -> bool:
    """Whether there are texts in a list, though not all of it are."""
    return isinstance(value, list) and any(isinstance(text, str) for text in cast("list[object]", value))


def _ignored(path: Path, one: "Finding") -> str:
    if not one.key:
        return f"{path} is ignored: {one.reason}."
    key = one.key if len(one.key) <= _LONGEST_KEY else f"{one.key[:_LONGEST_KEY]}..."
    from bradawl.safety.trust.settings_review import NARROWING, WHY_UNKNOWN

    known = f"; untrusted it may set {', '.join(NARROWING)}" if one.reason == WHY_UNKNOWN else ""
    return f"{path}: `{key}` is ignored: {one.reason}{known}."


def place_in(path: Path) -> Callable[[str], str]:
    """Names a key of a file."""
    return lambda key: f"{path}: {key}"


def is_there(path: Path) -> bool:
    """Whether there is something; what can't be looked at is taken to be missing."""
    try:
        return path.exists()
    except OSError:
        return False


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def read_small_file(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> bytes | None:
    """A regular file's bytes, at most one more than a settings file may have; None if there is none.

    `check` may refuse what was opened. Raises `OSError`.
    """
    import os
    import stat

    try:
        # Non-blocking, because a checkout may hold a FIFO of that name.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        if check is not None:
            check(found)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)


def _read_toml(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> dict[str, object]:
    """Raises `OSError`, or `SettingsError` when it is not TOML; nothing if there is no file."""
    data = read_small_file(path, check)
    if data is None:
        return {}
    if len(data) > FILE_LIMIT_BYTES:
        raise SettingsError(f"{path} is larger than {FILE_LIMIT_BYTES} bytes; that can't be a settings file.")
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path} is not UTF-8, see line {line}.") from error
    except (ValueError, RecursionError) as error:
        why = str(error).replace("at end of document", f"at the end, line {len(data.splitlines())}")
        raise SettingsError(f"{path} is not valid TOML: {why}.") from error
