"""Where git's configuration is that applies in every repository, besides the home folder."""

from collections.abc import Mapping
from typing import Final

from bradawl.safety.path_walk import real_path

SYSTEM_FILES: Final = (
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/usr/etc/gitconfig",
)


def configs_elsewhere(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Configuration files of git that apply in every repository and are not in the home folder: those of the machine,
    and those that variables of the user's environment name.
    """
    folder, named = environment.get("XDG_CONFIG_HOME", ""), environment.get("GIT_CONFIG_GLOBAL", "")
    paths = (f"{folder}/git/config" if folder else "", named, environment.get("GIT_CONFIG_SYSTEM", ""))
    return (*SYSTEM_FILES, *(real_path(path) for path in paths if path.startswith("/")))
