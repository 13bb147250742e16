"""Changes of the user's settings files: one at a time, and each file is replaced as a whole."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bradawl.app.config.settings_writer import PRIVATE, locked_folder, replace_text
from bradawl.app.config.toml_edit import edited
from bradawl.app.regular_files import read_linked
from bradawl.core.errors import SettingsError

_LIMIT_BYTES: Final = 1_000_000


def change_file(path: Path, change: Callable[[str], str], *, is_secret: bool = False) -> None:
    """Replace the text of a TOML file by `change(text)`; a missing file is empty. After an error it is as before.

    A link is followed, so that a file that the user keeps elsewhere stays there. Permissions stay; a new file, and one
    with secrets, can be read by its owner only. Raises `SettingsError`.
    """
    try:
        real = Path(os.path.realpath(path))
        with locked_folder(real.parent, is_private=True):
            before, mode = _read(real)
            after = edited(before, change)
            if after != before or (is_secret and mode != PRIVATE):
                replace_text(real, after, PRIVATE, keeps_mode=not is_secret)
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8, so it is left as it is.") from None
    except SettingsError as error:
        raise SettingsError(f"{path} is left as it is. {error}") from error.__cause__


def _read(path: Path) -> tuple[str, int | None]:
    """Text and permissions of a regular file; empty and None if there is none."""
    modes: list[int] = []
    try:
        data = read_linked(path, _LIMIT_BYTES + 1, lambda found: modes.append(stat.S_IMODE(found.st_mode)))
    except FileNotFoundError:
        return "", None
    if len(data) > _LIMIT_BYTES:
        raise OSError(0, f"it is larger than {_LIMIT_BYTES} bytes")
    return data.decode(), modes[0]
