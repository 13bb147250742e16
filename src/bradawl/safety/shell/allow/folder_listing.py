"""What is in a folder, for patterns."""

import os

from bradawl.safety.shell.errors import NotUnderstood

_MOST = 2_001


def entries(folder: str) -> dict[str, bool] | None:
    """Names in a folder, True for symlinks; of a very large one only the first. None if it is no folder.

    Raises `NotUnderstood` for a folder that can't be listed.
    """
    names: dict[str, bool] = {}
    try:
        with os.scandir(folder) as found:
            for entry in found:
                names[entry.name] = entry.is_symlink()
                if len(names) == _MOST:
                    break
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        raise NotUnderstood from None
    return names
