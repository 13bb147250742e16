"""Lists the folders against whose entries `allow` expands patterns."""

import os

from bradawl.safety.shell.errors import UnsupportedSyntax

_MOST = 2_001


def entries(folder: str) -> dict[str, bool] | None:
    """Names in a folder, True for symbolic links; at most 2,001 of them. None if it is no folder.

    Raises `UnsupportedSyntax` for a folder that can't be listed.
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
        raise UnsupportedSyntax from None
    return names
