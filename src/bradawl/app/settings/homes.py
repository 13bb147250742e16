"""The user's folders: home, configuration, data."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bradawl.app.settings.values import check_utf8_path


class Homes(NamedTuple):
    """The user's folders. They need not exist."""

    user: str
    config: str
    data: str


def homes(environ: Mapping[str, str], cwd: str) -> Homes:
    """The folders of settings and sessions: BRADAWL_HOME, else the XDG folders, else those below the home folder.

    The home folder is a real path, because it is compared with paths whose links have been followed. Raises
    `SettingsError` if the name of a folder is not UTF-8: the sandbox and undo can't use it then.
    """
    import os

    user = environ.get("HOME", "") or _home_of_account()
    user = os.path.realpath(user) if user.startswith("/") else user
    if chosen := environ.get("BRADAWL_HOME", "").strip():
        expanded = user + chosen[1:] if chosen == "~" or chosen.startswith("~/") else chosen
        home = check_utf8_path(str(Path(cwd, expanded)), "BRADAWL_HOME")
        return Homes(user, home, home)
    config = _xdg(environ.get("XDG_CONFIG_HOME", ""), Path(user, ".config"))
    data = _xdg(environ.get("XDG_DATA_HOME", ""), Path(user, ".local", "share"))
    return Homes(
        user,
        check_utf8_path(str(config / "bradawl"), "The folder of settings (BRADAWL_HOME, XDG_CONFIG_HOME or HOME)"),
        check_utf8_path(str(data / "bradawl"), "The folder of sessions (BRADAWL_HOME, XDG_DATA_HOME or HOME)"),
    )


def _xdg(folder: str, otherwise: Path) -> Path:
    """The folder, unless it is relative: the XDG standard says to ignore those."""
    return Path(folder) if folder.startswith("/") else otherwise


def _home_of_account() -> str:
    import os

    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir or "/"
    except (ImportError, KeyError):
        return "/"
