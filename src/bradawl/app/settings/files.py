"""Reading of settings files: regular files of bounded size, parsed as TOML or JSON."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    import os

    from bradawl.app.settings.mistakes import Mistake
    from bradawl.app.settings.text_positions import Keys, Positions

FILE_LIMIT_BYTES: Final = 1_000_000


class SettingsFile:
    """A settings file that was read: its values, and where they are in its text."""

    def __init__(
        self, path: Path, name: str, text: str = "", values: Mapping[str, object] | None = None, *, is_toml: bool = True
    ) -> None:
        """`name` is the file's name for messages. `values` are what its text holds."""
        self.path = path
        self.name = name
        self.text = text
        self.values: dict[str, object] = dict(values or {})
        self._is_toml = is_toml

    @cached_property
    def positions(self) -> "Positions":
        """Where keys and values are. The text is scanned when this is first used."""
        from bradawl.app.settings.text_positions import positions_in

        return positions_in(self.text, is_toml=self._is_toml)

    def source_of(self, *keys: str) -> str:
        """`FILE:LINE` of a key, for messages; without the line if it is unknown."""
        line = self.positions.line_of(*keys)
        return f"{self.name}:{line}" if line else self.name

    def mistake(self, keys: "Keys", message: str, *, is_value: bool = True) -> "Mistake":
        """A mistake in the value of a key, or in the key itself."""
        from bradawl.app.settings.mistakes import located

        return located(self.name, self.text, self.positions.nearest(keys, is_value=is_value), message)


def read_settings_file(
    path: Path, name: str = "", check: "Callable[[os.stat_result], None] | None" = None
) -> SettingsFile:
    """A TOML file, or JSON if its name ends so; without values if there is no file. Raises `SettingsError`.

    `name` is its name for messages. `check` is called with the status of the open file and may raise.
    """
    name = name or str(path)
    try:
        data = read_small_file(path, check)
    except OSError as error:
        raise SettingsError(f"{name} can't be read: {error.strerror or error}.") from error
    return SettingsFile(path, name) if data is None else decode_settings(data, path, name)


def decode_settings(data: bytes, path: Path, name: str, *, is_toml: bool | None = None) -> SettingsFile:
    """The contents of a settings file; `is_toml` is decided by its name if it is not given. Raises `SettingsError`."""
    is_toml = path.suffix != ".json" if is_toml is None else is_toml
    if len(data) > FILE_LIMIT_BYTES:
        raise SettingsError(f"{name} is larger than {FILE_LIMIT_BYTES} bytes, too large for a settings file.")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{name} is not UTF-8, see line {line}.") from error
    try:
        return SettingsFile(path, name, text, _decoded(text, is_toml=is_toml), is_toml=is_toml)
    except (ValueError, RecursionError) as error:
        from bradawl.app.settings.syntax_mistakes import syntax_mistake

        raise syntax_mistake(name, text, error, is_toml=is_toml) from error


def _decoded(text: str, *, is_toml: bool) -> dict[str, object]:
    """Raises `ValueError` or `RecursionError`."""
    if is_toml:
        import tomllib

        return tomllib.loads(text)
    from bradawl.safety.trust.settings_review import decode_table

    return decode_table(text, is_toml=False)


def read_user_file(path: Path, check: "Callable[[os.stat_result], None] | None" = None) -> dict[str, object]:
    """The table in a settings file; empty if there is no file. Raises `SettingsError`.

    `check` is called with the status of the open file and may raise.
    """
    return read_settings_file(path, check=check).values


def is_there(path: Path) -> bool:
    """Whether a path exists. False if that can't be determined."""
    try:
        return path.exists()
    except OSError:
        return False


def read_small_file(path: Path, check: "Callable[[os.stat_result], None] | None" = None) -> bytes | None:
    """The bytes of a regular file, at most `FILE_LIMIT_BYTES` + 1; None if there is no file. Raises `OSError`.

    `check` is called with the status of the open file and may raise.
    """
    from bradawl.app.regular_files import read_linked  # many folders have none of the files

    try:
        return read_linked(path, FILE_LIMIT_BYTES + 1, check or _accept)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _accept(_: "os.stat_result") -> None: ...


def why_foreign(found: "os.stat_result") -> str:
    """Why another user could have written a file; empty if only the user and root could."""
    import os

    if os.geteuid() and found.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid != os.getegid()):
        return "can be written by others"
    return ""
