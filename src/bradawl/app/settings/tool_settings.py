"""Reads the settings of a user's tools: environment variables, and files that only the user and root can write.

Nothing is run. A file is refused if it is in the workspace, if it is a link into the workspace, or if other users can
replace it or write to it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG, S_ISVTX
from typing import Final, NamedTuple

from bradawl.app.settings.files import FILE_LIMIT_BYTES, read_small_file
from bradawl.core.effects import is_within

_WRITABLE_BY_GROUP_OR_OTHERS: Final = 0o022
_WRITABLE_BY_OTHERS: Final = 0o002
_MOST_FOLDERS_OF_PATH: Final = 200
_LONGEST_SHOWN: Final = 300


class NamedUrl(NamedTuple):
    """A URL as a setting names it; it may be any text."""

    text: str
    place: str
    """The variable, or the file and the key, as the user wrote them."""
    replaces_default: bool = False
    """The tool uses this index instead of its default one."""


class ToolSettings:
    """Variables and files of a user's tools. Files that can't be used are recorded."""

    def __init__(
        self, environment: Mapping[str, str], home: str, roots: Sequence[str] = (), prefixes: Sequence[str] = ()
    ) -> None:
        """`home` is the home folder, `roots` are the resolved folders of the workspace: no file in them is read.

        `prefixes` are installations of Python that are searched after those on PATH.
        """
        self.environment = environment
        self.home = Path(home or "/dev/null/none")
        self.problems: list[str] = []
        """Settings files that could not be used, each as a path and a reason."""
        self.refused: list[str] = []
        """Files of installed tools that could not be used, likewise."""
        self._roots = tuple(roots)
        self._prefixes = tuple(prefixes)

    def variable(self, name: str, *, replaces_default: bool = False) -> Iterator[NamedUrl]:
        """The whole value of a variable; nothing if it is not set or empty."""
        if value := self.environment.get(name, "").strip():
            yield NamedUrl(value, name, replaces_default)

    def words(self, name: str) -> Iterator[NamedUrl]:
        """The words of a variable."""
        return (NamedUrl(word, name) for word in self.environment.get(name, "").split())

    def folder(self, variable: str, *otherwise: str) -> Path:
        """The folder that a variable names, else a folder below the home folder."""
        named = self.environment.get(variable, "")
        return Path(named) if named.startswith("/") else self.home.joinpath(*otherwise)

    def named_file(self, *variables: str) -> Path | None:
        """The file that the first of these variables names. A relative path is a problem."""
        for variable in variables:
            named = self.environment.get(variable, "")
            if named.startswith("/"):
                return Path(named)
            if named:
                self.problems.append(f"{variable}: {shown(named)} is not an absolute path")
        return None

    def text(self, path: Path) -> str:
        """The text of a settings file; empty if there is none, or if it can't be used, which is recorded."""
        return self._text(path, self.problems)

    def installed_text(self, path: Path) -> str:
        """The text of a file of an installed tool; empty if there is none. A file that can't be used is recorded."""
        return self._text(path, self.refused)

    def archived_text(self, archive: Path, name: str) -> str:
        """The text of a file in a wheel of an installed tool, under the same conditions as `installed_text`."""
        import zipfile
        import zlib

        try:
            real = Path(os.path.realpath(archive))
            self._check_place(archive, real)
            _check_file(real.stat())
            with zipfile.ZipFile(real) as wheel, wheel.open(name) as file:
                return file.read(FILE_LIMIT_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            self.refused.append(f"{shown(str(archive))}: {shown(str(error))}")
            return ""

    def table(self, path: Path) -> dict[str, object]:
        """The table in a TOML file; empty if there is none or it is not valid, which is recorded."""
        text = self.text(path)
        if not text:
            return {}
        import tomllib

        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError):
            self.problems.append(f"{shown(str(path))}: it is not valid TOML")
            return {}

    def programs(self, *names: str) -> Iterator[Path]:
        """Files with these names in the folders of PATH. They need not be programs."""
        folders = self.environment.get("PATH", "").split(os.pathsep)[:_MOST_FOLDERS_OF_PATH]
        for folder in dict.fromkeys(folders):
            paths = (Path(folder, name) for name in names if folder.startswith("/"))
            yield from (path for path in paths if _exists(path))

    def prefixes(self, *names: str) -> Iterator[Path]:
        """Installations (folders above `bin`) of the programs with these names on PATH, then of bradawl's Python."""
        found: dict[Path, None] = {}
        for path in self.programs(*names):
            found[path.parent.parent] = None
            found[Path(os.path.realpath(path)).parent.parent] = None
        return iter(dict.fromkeys((*found, *map(Path, self._prefixes))))

    def is_in_workspace(self, path: Path) -> bool:
        """Whether a path is in the workspace, by its text or after links are followed."""
        places = (os.path.realpath(path), os.path.normpath(path))
        return any(is_within(place, root) for root in self._roots for place in places)

    def _text(self, path: Path, problems: list[str]) -> str:
        try:
            data = self._data(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else ""
            problems.append(f"{shown(str(path))}: {why or error}")
            return ""
        return data.decode("utf-8", "replace")

    def _data(self, path: Path) -> bytes:
        real = Path(os.path.realpath(path))
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        self._check_place(path, real)
        data = read_small_file(real, _check_file)
        if data is None:
            return b""
        if len(data) > FILE_LIMIT_BYTES:
            raise ValueError(f"it is larger than {FILE_LIMIT_BYTES} bytes")
        return data

    def _check_place(self, path: Path, real: Path) -> None:
        if self.is_in_workspace(path):
            raise ValueError("it is in the workspace")
        for folder in real.parents:
            if folder.exists():
                _check_folder(folder)


def shown(text: str) -> str:
    """A text for a message: at most 300 characters in one line of ASCII."""
    return ascii(text[:_LONGEST_SHOWN])[1:-1] + ("..." if len(text) > _LONGEST_SHOWN else "")


def shown_url(text: str) -> str:
    """A URL for a message, without its user name and password."""
    start, mark, rest = text.rpartition("@")
    scheme, slashes, _ = start.partition("//")
    return shown(f"{scheme if slashes else ''}{slashes}...@{rest}" if mark else text)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _check_file(found: os.stat_result) -> None:
    _check_owner(found, "it")
    if not S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")
    if found.st_mode & _WRITABLE_BY_GROUP_OR_OTHERS:
        raise ValueError("other users can write it")


def _check_folder(path: Path) -> None:
    found = path.stat()
    _check_owner(found, "a folder above it")
    if found.st_mode & _WRITABLE_BY_OTHERS and not found.st_mode & S_ISVTX:
        raise ValueError("other users can replace it")


def _check_owner(found: os.stat_result, what: str) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise ValueError(f"{what} belongs to another user")
