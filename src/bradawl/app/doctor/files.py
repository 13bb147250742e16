"""Checks of the user's files: settings, keys, and the folders that bradawl writes to."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.data_folder import UNWRITABLE_HINT, unwritable_place
from bradawl.app.doctor.check import Check
from bradawl.app.settings.credentials import read_credentials
from bradawl.app.settings.homes import Homes, homes
from bradawl.app.settings.load import MANAGED_FILE
from bradawl.app.settings.project_files import project_root, read_project_files
from bradawl.app.settings.system_keyring import system_keyring
from bradawl.app.settings.table import SETTINGS
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.safety.name_lists import first_of

_MOST_NAMES: Final = 6
_LITTLE_MB: Final = 200
_TOO_LITTLE_MB: Final = 10
_NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "fuse.sshfs"}
)
_MOUNTS: Final = Path("/proc/self/mounts")


class Disk(NamedTuple):
    """The file system of a folder."""

    kind: str
    """Its type, as the kernel names it; empty if that is not known."""
    free_mb: int


def file_checks(environ: Mapping[str, str], cwd: str) -> list[Check]:
    """Settings files, stored keys, and the folders for sessions and temporary files."""
    try:
        places = homes(environ, cwd)
    except BradawlError as error:
        return [Check("files", "problem", str(error))]
    return [
        _file_check("config.toml", Path(places.config, "config.toml")),
        *_other_settings_checks(places, cwd),
        _keys_check(Path(places.config, "credentials.toml")),
        _keyring_check(),
        _sessions_check(places),
        *_disk_checks(environ, places),
    ]


def _file_check(name: str, path: Path) -> Check:
    return Check(name, "ok", str(path) if os.access(path, os.F_OK) else f"none at {path}")


def _other_settings_checks(places: Homes, cwd: str) -> Iterator[Check]:
    """The files of the project and of the administrator, where there are any."""
    try:
        root = project_root(cwd)
        files, warnings = read_project_files(cwd, root, Path(places.config, "config.toml"), SETTINGS)
    except (BradawlError, OSError) as error:
        yield Check("project files", "warning", str(error))
        return
    if names := [file.name for file in files if file.findings]:
        yield Check("project files", "ok", f"{', '.join(names)} in {root}")
    yield from (Check("project files", "warning", warning) for warning in warnings)
    if os.access(MANAGED_FILE, os.F_OK):
        yield _file_check("managed.toml", MANAGED_FILE)


def _keys_check(path: Path) -> Check:
    """The stored keys, and whether only the user can read them."""
    try:
        stored = read_credentials(path)
    except SettingsError as error:
        return Check("credentials.toml", "problem", str(error))
    if not stored:
        return Check("credentials.toml", "ok", f"{'no key in' if os.access(path, os.F_OK) else 'none at'} {path}")
    names = first_of(sorted(stored), _MOST_NAMES)
    return Check("credentials.toml", "ok", f"{path}, readable by you only; keys of {names}")


def _keyring_check() -> Check:
    if system_keyring() is None:
        return Check("keyring", "ok", "none that can be used: `bradawl login` stores keys in credentials.toml")
    return Check("keyring", "ok", "`bradawl login` stores keys in the system keyring")


def _sessions_check(places: Homes) -> Check:
    if place := unwritable_place(places.data):
        return Check("sessions", "problem", f"{place} can't be written, so no session can be saved.", UNWRITABLE_HINT)
    return Check("sessions", "ok", f"kept below {places.data}")


# ------------------------------------------------------------------ disks


def _disk_checks(environ: Mapping[str, str], places: Homes) -> Iterator[Check]:
    tmp = environ.get("TMPDIR") or tempfile.gettempdir()
    for what, folder in (("settings", places.config), ("sessions", places.data), ("temporary files", tmp)):
        yield disk_check(what, folder, disk_of(folder), is_writable=not unwritable_place(folder))


def disk_check(what: str, folder: str, disk: Disk | None, *, is_writable: bool) -> Check:
    """The file system of a folder: free space, writable, on a network or not."""
    if disk is None:
        return Check("disk", "warning", f"{what}: nothing is known about the file system of {folder}")
    text = f"{what}: {_size_text(disk.free_mb)} free for {folder}"
    if not is_writable:
        return Check("disk", "problem", f"{text}, which can't be written", UNWRITABLE_HINT)
    if disk.free_mb < _TOO_LITTLE_MB:
        return Check("disk", "problem", text, "Free some space: sessions and undo are saved there.")
    if disk.kind in _NETWORK_FILE_SYSTEMS:
        hint = "Locks may not hold there; BRADAWL_HOME can name a folder on a local disk."
        return Check("disk", "warning", f"{text}, on a network file system ({disk.kind})", hint)
    return Check("disk", "warning" if disk.free_mb < _LITTLE_MB else "ok", text)


def disk_of(folder: str) -> Disk | None:
    """The file system of a folder, or of the nearest one above it that exists; None if it can't be asked."""
    path = Path(folder)
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return Disk(_kind_of(os.path.realpath(path)), found.f_bavail * found.f_frsize // 1_000_000)


def _kind_of(path: str) -> str:
    try:
        lines = _MOUNTS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    mounts = (line.split(" ") for line in lines)
    found = [(at, kind) for _, at, kind, *_ in mounts if path == at or path.startswith(f"{at.rstrip('/')}/")]
    return max(found, key=lambda mount: len(mount[0]))[1] if found else ""


def _size_text(megabytes: int) -> str:
    return f"{megabytes / 1000:,.0f} GB" if megabytes >= 10_000 else f"{megabytes:,} MB"
