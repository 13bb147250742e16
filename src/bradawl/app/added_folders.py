"""Folders that the user adds to the workspace of a session while it runs."""

import os
from collections.abc import Callable, Mapping, Sequence

from bradawl.app.settings.settings import Settings
from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError

SettingsWith = Callable[[Mapping[str, object]], Settings]
"""Reads the settings again, with options as flags give them. Raises `SettingsError`."""


def added_folders(dirs: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Those of the folders that are not in the workspace of the settings."""
    roots = (os.path.realpath(settings.cwd), *settings.add_dirs)
    return tuple(path for path in dirs if not any(is_within(path, root) for root in roots))


def with_folders(dirs: Sequence[str], settings: Settings, settings_with: SettingsWith | None) -> Settings:
    """The settings with further folders, as `--add-dir` adds them. Raises `SettingsError`."""
    if settings_with is None:
        raise SettingsError("The workspace can't be widened here; use --add-dir.")
    return settings_with({"add_dirs": [*settings.add_dirs, *dirs]})


def with_usable_folders(
    dirs: Sequence[str], settings: Settings, settings_with: SettingsWith | None, notify: Callable[[str], None]
) -> Settings | None:
    """The settings with those of the folders that can be used; a warning for each other one. None for no change."""
    usable: list[str] = []
    found: Settings | None = None
    for path in added_folders(dirs, settings):
        try:
            found, usable = with_folders((*usable, path), settings, settings_with), [*usable, path]
        except SettingsError as error:
            notify(f"{path}, which was added to this session, is left out of the workspace: {error}")
    return found
