"""What undo covers: limits of sizes and times, and folders whose contents are not saved."""

import math
import os
from collections.abc import Container
from typing import Final, Literal

import msgspec

QUIET_FOLDERS: Final = frozenset(
    {
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".cache", ".hypothesis", ".parcel-cache"),
        *(".turbo", ".eslintcache", ".sass-cache", ".ipynb_checkpoints"),
    }
)
"""Caches that programs fill again by themselves. Their changes are not mentioned."""
HEAVY_FOLDERS: Final = QUIET_FOLDERS | {
    *("node_modules", "bower_components", ".tox", ".nox", ".gradle", "Pods", ".next", ".nuxt", ".svelte-kit"),
    *(".terraform", ".dart_tool", ".stack-work", "DerivedData", "elm-stuff", ".pnpm-store"),
}
"""Names of folders that package managers and build tools fill."""
CACHE_TAG: Final = "CACHEDIR.TAG"
CACHE_TAG_START: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""First bytes of a valid tag: bford.info/cachedir, checked 2026-11."""
_VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"

Reason = Literal["", "heavy", "quiet", "limit", "mount", "long"]
"""Why a folder is not entered: empty if it is; `limit` for too many entries, `long` for its path."""


class Coverage(msgspec.Struct, frozen=True):
    """Limits of what is searched and saved. What exceeds them is reported, never silently left out."""

    file_bytes: int = 50_000_000
    """Largest file whose content is saved."""
    baseline_bytes: int = 500_000_000
    """Most content to save at the start; the smallest files first."""
    entries: int = 100_000
    """Most files and folders in the index; the folders next to the root first."""
    search_s: float = math.inf
    """Longest search, without the time for saving contents."""
    reading_s: float = math.inf
    """Longest time for saving contents in one search; the next search continues."""
    path_bytes: int = 4_096
    """Longest path of a folder (Linux' PATH_MAX): programs can't name longer ones in one call."""
    watches: int = 50_000
    """Most folders watched by inotify; more need a full search before each call."""
    heavy_folders: frozenset[str] = HEAVY_FOLDERS
    excluded: frozenset[bytes] = frozenset()
    """Absolute paths of folders that are not searched and not mentioned."""
    sandbox_state: str = ""
    """Folder with the records of sandboxes, whose placeholders are no changes; empty for none."""


def reason_by_name(name: str, limits: Coverage) -> Reason:
    """Why a folder of this name is not entered."""
    if name not in limits.heavy_folders:
        return ""
    return "quiet" if name in QUIET_FOLDERS else "heavy"


def is_cache(path: bytes) -> bool:
    """Whether a folder has the name of a cache that programs fill again by themselves."""
    return os.fsdecode(path.rpartition(b"/")[2]) in QUIET_FOLDERS


def is_virtual_environment(names: Container[str]) -> bool:
    """Whether a folder with entries of these names is a Python virtual environment."""
    return _VIRTUAL_ENVIRONMENT in names
