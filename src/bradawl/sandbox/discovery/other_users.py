"""Finds home folders of other users and system files with secrets that programs must not read.

A plain user can't read most of them anyway, and those are left out; root could read all.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.permissions.home_paths import HOME_PARENTS, ROOT_HOMES
from bradawl.safety.permissions.protected_paths import credentials, system_folders, system_secrets

_FIRST_USER: Final = 1_000
_NOBODY: Final = 65_534
_MOST: Final = 60


class OtherUsersPaths(msgspec.Struct, frozen=True):
    """Paths to hide: absolute, resolved, existing."""

    folders: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def find_other_users_paths(home: str, roots: tuple[str, ...]) -> OtherUsersPaths:
    """Search on this machine as this user; `home` is this user's."""
    return OtherUsersPaths(other_users_folders(home, roots), readable_system_secrets(roots))


def other_users_folders(home: str, roots: Iterable[str]) -> tuple[str, ...]:
    """Home folders of other users, or folders that hold several of them, that this user could enter.

    `home` and `roots` may lie inside them. No result lies inside a root.
    """
    found: dict[str, None] = {}
    for path in (*_folders_with_others(home), *_homes_of_root(), *_homes_in_list()):
        is_own = bool(home) and is_within(home, path) and path not in HOME_PARENTS
        if not is_own and not any(is_within(path, each) for each in (*found, *roots, *((home,) if home else ()))):
            found[path] = None
    return tuple(found)[:_MOST]


def readable_system_secrets(roots: Iterable[str]) -> tuple[str, ...]:
    """System files and folders with secrets that this user could read and that lie in no root."""
    return tuple(path for path in _existing(system_secrets()) if not any(is_within(path, root) for root in roots))


def secrets_within(shown: Iterable[str], others: tuple[str, ...]) -> tuple[str, ...]:
    """Key files of other users in the parts of their homes that are shown because programs lie there."""
    found: dict[str, None] = {}
    for path in shown:
        folder = next((each for each in others if is_within(path, each)), "")
        if folder in HOME_PARENTS:
            folder = "/".join(path.split("/")[:3])
        for name in credentials(folder):
            if is_within(name, path) and os.path.lexists(name):
                found[name] = None
    return tuple(found)


def _existing(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        folder, _, last = name.rpartition("/")
        paths = sorted(map(str, Path(folder).glob(last))) if "*" in last else [name]
        yield from (path for path in paths if os.path.realpath(path) == path and os.access(path, os.R_OK))


def _folders_with_others(home: str) -> Iterator[str]:
    for folder in HOME_PARENTS:
        try:
            inside = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if any(path != home and os.access(path, os.X_OK) for path in inside):
            yield folder


def _homes_of_root() -> Iterator[str]:
    yield from (path for path in ROOT_HOMES if _is_open_folder(path))


def _homes_in_list() -> Iterator[str]:
    """Homes of persons in the user database; accounts of services live in system folders."""
    import pwd

    for user in pwd.getpwall():
        path = user.pw_dir
        is_person = user.pw_uid == 0 or (user.pw_uid >= _FIRST_USER and user.pw_uid != _NOBODY)
        in_system = any(is_within(path, folder) or is_within(folder, path) for folder in system_folders())
        if is_person and path.count("/") > 1 and not in_system and _is_open_folder(path):
            yield path


def _is_open_folder(path: str) -> bool:
    return os.path.realpath(path) == path and Path(path).is_dir() and os.access(path, os.X_OK)
