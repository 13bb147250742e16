"""Stores which project folders the user trusts, and which of their contents were approved. `app.trust_question` asks.

One file in the user's data folder, with an entry for the real path of each folder. Names of links don't count, nor the
repository that a checkout claims to belong to.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, cast

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError

FILE_NAME: Final = "trust.json"
_LIMIT_BYTES: Final = 10_000_000
_HASHED_WHOLE_BYTES: Final = 50_000_000
_MOST_WORDS: Final = 1_000


class FolderTrust(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user's answer about one folder."""

    is_trusted: bool = False
    """False if the user was asked and declined."""
    below: bool = False
    """All folders below it are trusted as well."""
    items: dict[str, str] = msgspec.field(default_factory=dict)
    """Digests of the approved items in the folder's files, by item name."""


class _Content(msgspec.Struct, frozen=True):
    version: int = 1
    folders: dict[str, FolderTrust] = msgspec.field(default_factory=dict)


class TrustStore:
    """The user's answers about folders; read when first needed, written immediately.

    If the file can't be read, or others can write it, no folder is trusted.
    """

    def __init__(self, folder: str | Path, home: str = "") -> None:
        """`folder` is the user's data folder. `home` and the folders above it can't be trusted as a whole."""
        self.path = Path(folder, FILE_NAME)
        self._home = os.path.realpath(home) if home else ""
        self._content: _Content | None = None

    def is_trusted(self, path: str) -> bool:
        """Whether the user trusts the folder, or one above it including subfolders."""
        real = os.path.realpath(path)
        if self.refusal(real):
            return False
        folders = self._folders()
        own = folders.get(real)
        if own is not None:
            return own.is_trusted
        return any(one.below and one.is_trusted and is_within(real, folder) for folder, one in folders.items())

    def changed(self, path: str, name: str, digest: str) -> bool:
        """True unless the user has approved this item in its present form, for this very folder."""
        own = self._folders().get(os.path.realpath(path))
        return own is None or not own.is_trusted or own.items.get(name) != digest

    def is_answered(self, path: str, items: Mapping[str, str]) -> bool:
        """Whether the user has been asked about exactly these items, whatever the answer was."""
        own = self._folders().get(os.path.realpath(path))
        return own is not None and all(own.items.get(name) == digest for name, digest in items.items())

    def refusal(self, path: str) -> str:
        """Why a folder can't be trusted as a whole; empty if it can."""
        real = os.path.realpath(path)
        if real == "/" or (self._home and is_within(self._home, real)):
            what = "the home folder" if real == self._home else "a folder above many others"
            return f"{real} is {what}, which can't be trusted as a whole; trust the project's own folder"
        return ""

    def trust(self, path: str, items: Mapping[str, str], *, below: bool = False) -> None:
        """Store consent to the folder and its present items. Raises `SettingsError`."""
        if why := self.refusal(path):
            raise SettingsError(f"{why}.")
        self._put(path, FolderTrust(is_trusted=True, below=below, items=dict(items)))

    def decline(self, path: str, items: Mapping[str, str]) -> None:
        """Store a refusal, so that the same question is not repeated. Raises `SettingsError`."""
        self._put(path, FolderTrust(items=dict(items)))

    def distrust(self, path: str) -> bool:
        """Remove the folder's entry. False if there was none. Raises `SettingsError`."""
        real = os.path.realpath(path)
        if real not in self._folders():
            return False
        self._put(real, None)
        return True

    def trusted(self) -> tuple[tuple[str, FolderTrust], ...]:
        """The trusted folders, sorted by path."""
        return tuple((path, one) for path, one in sorted(self._folders().items()) if one.is_trusted)

    def _folders(self) -> Mapping[str, FolderTrust]:
        if self._content is None:
            try:
                self._content = self._read()
            except (OSError, SettingsError):
                self._content = _Content()
        return self._content.folders

    def _put(self, path: str, word: FolderTrust | None) -> None:
        real = os.path.realpath(path)
        try:
            with self._locked():
                folders = dict(self._read().folders)
                folders.pop(real, None)
                if word is not None:
                    folders[real] = word
                self._content = _Content(folders=folders)
                self._write(msgspec.json.format(msgspec.json.encode(self._content), indent=2) + b"\n")
        except (OSError, ValueError) as error:
            self._content = None
            raise SettingsError(f"{self.path} can't be written: {error}.") from error

    def _read(self) -> _Content:
        """Raises `OSError`, or `SettingsError` for a file that can't be trusted."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return _Content()
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022:
                why = "belongs to another user or can be written by others"
                raise SettingsError(f"{self.path} {why}; check it, then run `chmod 600` on it.")
            data = file.read(_LIMIT_BYTES + 1)
        try:
            return msgspec.json.decode(data, type=_Content)
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"{self.path} can't be read ({error}); remove it to start again.") from error

    def _write(self, data: bytes) -> None:
        fresh = self.path.with_name(f"{FILE_NAME}.{os.getpid()}.{os.urandom(4).hex()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            fresh.replace(self.path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Allow one writer at a time. The kernel releases the lock of a process that dies."""
        import fcntl

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = self.path.with_suffix(".lock")
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


# ------------------------------------------------------------------ digests


def digest(value: object, folder: str) -> str:
    """sha256 of a value and of the files in the project that it names, such as scripts."""
    found = hashlib.sha256(_encoded(value))
    root = os.path.realpath(folder)
    for path in _named_files(value, root):
        found.update(b"\0" + os.fsencode(path) + b"\0" + _content_mark(path))
    return found.hexdigest()


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value, order="deterministic", enc_hook=repr)
    except (ValueError, TypeError, RecursionError):
        return repr(value).encode("utf-8", "surrogatepass")


def _named_files(value: object, root: str) -> list[str]:
    words = [word for text in _texts(value) for word in text.replace("=", " ").replace("'", " ").split()]
    bases = [root, *(str(Path(root, text)) for text in _folders_in(value))]
    found: set[str] = set()
    for word in words[:_MOST_WORDS]:
        for base in bases:
            with suppress(OSError, ValueError):
                path = os.path.realpath(Path(base, word.strip('"')))
                if is_within(path, root) and Path(path).is_file():
                    found.add(path)
    return sorted(found)


def _folders_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        cwd = cast("dict[object, object]", value).get("cwd")
        if isinstance(cwd, str):
            yield cwd


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += cast("dict[object, object]", one).values()
        elif isinstance(one, list | tuple):
            waiting += cast("list[object]", one)


def _content_mark(path: str) -> bytes:
    """The digest of a file; for a very large one its size and modification time."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"unreadable"
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_size > _HASHED_WHOLE_BYTES:
            return f"{found.st_size} {found.st_mtime_ns}".encode()
        return hashlib.file_digest(file, "sha256").digest()
