"""Where settings are looked for: flags, environment, files. Reads, but does not yet judge values."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    import os

FILE_LIMIT_BYTES: Final = 1_000_000
PROJECT_KEYS: Final = frozenset({"model", "max_steps", "context_window", "effort"})
"""What a file that came with a project may say."""


class Layer(NamedTuple):
    """Settings from one place."""

    values: Mapping[str, object]
    place_of: Callable[[str], str]
    """What to call a setting of this place in a message."""
    kind: Literal["flag", "variable", "project", "user"]


class Found(NamedTuple):
    """A value, not yet judged, and where it stands."""

    value: object
    place: str
    kind: Literal["flag", "variable", "project", "user"]


class Sources(NamedTuple):
    """All layers, the strongest first, and what they said that needs telling."""

    layers: tuple[Layer, ...]
    warnings: list[str]

    def find(self, name: str) -> Found | None:
        """A setting as the strongest layer that has it says."""
        for layer in self.layers:
            if (value := layer.values.get(name)) is not None:
                return Found(value, layer.place_of(name), layer.kind)
        return None

    def without_project(self) -> "Sources":
        """The same, but for what came with the project."""
        return Sources(tuple(layer for layer in self.layers if layer.kind != "project"), self.warnings)


class Homes(NamedTuple):
    """The folders that belong to the user; none of them need exist."""

    user: str
    config: str
    data: str


def homes(environ: Mapping[str, str], cwd: str) -> Homes:
    """Where settings and sessions live: BRADAWL_HOME, else the XDG folders, else those below the home folder."""
    user = environ.get("HOME", "") or _home_of_account()
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


def read_project_files(cwd: str, user_file: Path) -> tuple[list[Layer], list[str]]:
    """Layers of the local and the project file, in that order, and warnings about what in them does not count.

    Raises `SettingsError` for a file that is not TOML.
    """
    layers: list[Layer] = []
    warnings: list[str] = []
    folder = _settings_folder(Path(cwd))
    for path in (folder / "config.local.toml", folder / "config.toml"):
        if _is_same(path, user_file):
            continue
        try:
            table = _read_toml(path)
        except OSError as error:
            warnings.append(f"{path} is ignored, it can't be read: {error.strerror or error}.")
            continue
        warnings.extend(_ignored(path, key) for key in table if key not in PROJECT_KEYS)
        values = {key: value for key, value in table.items() if key in PROJECT_KEYS}
        layers.append(Layer(values, place_in(path), "project"))
    return layers, warnings


def place_in(path: Path) -> Callable[[str], str]:
    """Names a key of a file."""
    return lambda key: f"{path}: {key}"


def _ignored(path: Path, key: str) -> str:
    allowed = ", ".join(sorted(PROJECT_KEYS))
    return f"{path}: `{key}` is ignored; the settings file of a project may only set {allowed}."


def _settings_folder(cwd: Path) -> Path:
    """The nearest `.bradawl` from here up to the top of the git checkout."""
    above = [cwd, *cwd.parents]
    try:
        top = next((i for i, folder in enumerate(above) if (folder / ".git").exists()), 0)
        found = next((folder for folder in above[: top + 1] if (folder / ".bradawl").is_dir()), cwd)
    except OSError:
        return cwd / ".bradawl"
    return found / ".bradawl"


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _read_toml(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> dict[str, object]:
    """Raises `OSError`, or `SettingsError` when it is not TOML; nothing if there is no file."""
    import os
    import stat

    try:
        # Non-blocking, because a checkout may hold a FIFO of that name.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        if check is not None:
            check(found)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(FILE_LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)
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
