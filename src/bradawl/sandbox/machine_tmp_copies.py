"""Copies what a session wrote at named paths to the machine's `/tmp`, at the end of a turn.

No link is followed, nothing of others is replaced, and nothing gets more permissions than the session's version has.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from bradawl.safety.control_characters import escape
from bradawl.safety.name_lists import first_of
from bradawl.sandbox.copy_records import FOLDER, OWN, Copied, CopyRecord, digest, is_file, pieces, status_of
from bradawl.sandbox.filesystem.atomic_exchange import exchange
from bradawl.sandbox.path_translation import TEMPORARY

MOST_BYTES: Final = 100_000_000
"""Bytes of all files that are copied at the end of one turn."""
MOST_ENTRIES: Final = 1_000
"""Files and folders that are made or replaced at the end of one turn."""
_MOST_SEEN: Final = 20_000
"""Entries that are compared at the end of one turn."""
_DEEPEST: Final = 20
_SETTLED_NS: Final = 50_000_000
"""File systems date two changes alike if less time is between them; then the content is compared."""
_MOST_NAMED: Final = 5
_NOT_OURS: Final = "there is a file of that name that this session did not make"
_CHANGED: Final = "it was changed there since this session wrote it"
_TOO_MUCH: Final = f"more than {MOST_ENTRIES:,} files and folders or {MOST_BYTES:,} bytes are not copied"


class _Refused(Exception):
    """An entry was not copied; the text says why."""


class _Entry(NamedTuple):
    """An entry of the session's folder, and where it belongs in the machine's `/tmp`."""

    name: str
    path: str
    """As commands call it."""
    source: int
    """The open folder that holds it."""
    target: int
    """The open folder for it."""


class Copying:
    """The copies at the end of one turn."""

    def __init__(
        self, scratch: str, record: CopyRecord, objection: Callable[[str], str], is_shown: Callable[[str], bool]
    ) -> None:
        """`objection` returns why a path may not be written, empty if it may. `is_shown`: the machine's is shown there,
        so that the session has no version.
        """
        self._scratch, self._record, self._objection, self._is_shown = scratch, record, objection, is_shown
        self._left, self._bytes, self._unseen = MOST_ENTRIES, MOST_BYTES, _MOST_SEEN
        self._done: list[str] = []
        self._failed: list[str] = []

    def copy(self, path: str) -> None:
        """Copy a file or folder of the session to the same place in the machine's `/tmp`, if the session has one."""
        with contextlib.ExitStack() as opened:
            entry = None
            try:
                if (above := self._own_folders(path, opened)) is None:
                    return
                entry = _Entry(path.rpartition("/")[2], path, above[-1], -1)
                if status_of(entry.name, entry.source) is not None:
                    self._check(path)
                    self._copy(entry._replace(target=self._folder_for(path, above, opened)), _DEEPEST)
            except (OSError, _Refused) as error:
                self._fail(path, error, entry)

    def notices(self) -> tuple[str, ...]:
        """What was copied, in a sentence for the user."""
        done = first_of([_spelled(path) for path in self._done], _MOST_NAMED)
        return (f"written to the machine's /tmp: {done}",) if self._done else ()

    def failures(self) -> tuple[str, ...]:
        """What was not copied, and was not told before, in sentences for the user."""
        more = len(self._failed) - _MOST_NAMED
        if more <= 0:
            return tuple(self._failed)
        rest = f"{more:,} more {'entry was' if more == 1 else 'entries were'} not written to the machine's /tmp. "
        return (*self._failed[:_MOST_NAMED], f"{rest}The session's versions are in {self._scratch}")

    # ------------------------------------------------------------------ folders

    def _own_folders(self, path: str, opened: contextlib.ExitStack) -> list[int] | None:
        """Descriptors of the session's folders above a path, the first one that of `/tmp`; None if one is missing."""
        found: list[int] = []
        for name in (self._scratch, *path[len(TEMPORARY) + 1 :].split("/")[:-1]):
            folder = self._open_source(name, found[-1] if found else None, opened)
            if folder is None:
                return None
            found.append(folder)
        return found

    def _folder_for(self, path: str, above: list[int], opened: contextlib.ExitStack) -> int:
        """A descriptor of the folder in the machine's `/tmp` for a path. Missing folders are made, as `above` are."""
        target, place = os.open(TEMPORARY, FOLDER), TEMPORARY
        opened.callback(os.close, target)
        for name, own in zip(path[len(TEMPORARY) + 1 :].split("/")[:-1], above[1:], strict=True):
            place = f"{place}/{name}"
            if status_of(name, target) is None:  # nothing may be copied into it in the end
                opened.callback(_remove_if_empty, name, target)
            target = self._open_target(_Entry(name, place, -1, target), stat.S_IMODE(os.fstat(own).st_mode))
            opened.callback(os.close, target)
        return target

    def _open_source(self, name: str, folder: int | None, opened: contextlib.ExitStack) -> int | None:
        """A descriptor of a folder of the session; None if it has none there. Raises `OSError` for a link."""
        try:
            found = os.open(name, FOLDER, dir_fd=folder)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            if folder is not None and stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return None
            raise
        opened.callback(os.close, found)
        return found

    def _open_target(self, entry: _Entry, mode: int) -> int:
        """A descriptor of a folder in the machine's `/tmp`, which is made if it is missing."""
        if status_of(entry.name, entry.target) is None:
            self._check(entry.path)
            self._spend(0)
            with contextlib.suppress(FileExistsError):  # another program was faster
                os.mkdir(entry.name, 0o700 | mode & 0o077, dir_fd=entry.target)
                self._record.folder(entry.path, os.stat(entry.name, dir_fd=entry.target, follow_symlinks=False))
        found = os.open(entry.name, FOLDER, dir_fd=entry.target)
        if os.fstat(found).st_uid != os.geteuid():
            os.close(found)
            raise _Refused(f"the folder {_spelled(entry.path)} belongs to another user")
        return found

    def _copy_folder(self, source: int, entry: _Entry, levels: int) -> None:
        mode = stat.S_IMODE(os.fstat(source).st_mode)
        is_new, is_gone = status_of(entry.name, entry.target) is None, self._is_gone(entry)
        inside = self._open_target(entry, mode)
        try:
            for name in sorted(os.listdir(source)):
                self._try(_Entry(name, f"{entry.path}/{name}", source, inside), levels - 1)
            if is_new:  # it was open for its owner while it was filled
                os.fchmod(inside, stat.S_IMODE(os.fstat(inside).st_mode) & mode)
        finally:
            os.close(inside)
        if is_gone:
            _remove_if_empty(entry.name, entry.target)

    def _is_gone(self, entry: _Entry) -> bool:
        """Whether the user removed a folder of the session: without anything new it stays away."""
        return self._record.made_folder(entry.path) and status_of(entry.name, entry.target) is None

    # ------------------------------------------------------------------ entries

    def _try(self, entry: _Entry, levels: int) -> None:
        try:
            self._copy(entry, levels)
        except (OSError, _Refused) as error:
            self._fail(entry.path, error, entry)

    def _copy(self, entry: _Entry, levels: int) -> None:
        if self._is_shown(entry.path):
            return
        self._unseen -= 1
        if self._unseen < 0:
            raise _Refused(f"more than {_MOST_SEEN:,} files and folders are not copied")
        self._check(entry.path)
        status = os.stat(entry.name, dir_fd=entry.source, follow_symlinks=False)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise _Refused("it is not a regular file")
        opened = os.open(entry.name, os.O_RDONLY | os.O_NONBLOCK | OWN, dir_fd=entry.source)
        try:
            status = os.fstat(opened)
            if stat.S_ISREG(status.st_mode):
                self._copy_file(opened, status, entry)
            elif not stat.S_ISDIR(status.st_mode):
                raise _Refused("it is not a regular file")
            elif levels:
                self._copy_folder(opened, entry, levels)
            else:
                raise _Refused("its folders are too deep")
        finally:
            os.close(opened)

    def _copy_file(self, source: int, status: os.stat_result, entry: _Entry) -> None:
        known = self._record.files.get(entry.path)
        if known is not None and self._is_no_news(known, source, status, entry.path):
            return  # the user may have removed or changed it meanwhile
        there = status_of(entry.name, entry.target)
        is_own = there is not None and self._record.is_unchanged(entry.path, entry.name, entry.target)
        if there is not None and not is_own:
            if _has_content(there, source, status, entry):
                return
            raise _Refused(_NOT_OURS if known is None else _CHANGED)
        self._spend(status.st_size)
        self._write(source, status, entry, replaces=is_own)
        self._done.append(entry.path)

    def _is_no_news(self, known: Copied, source: int, status: os.stat_result, path: str) -> bool:
        """Whether a file of the session is the one that was copied before."""
        stamp = _stamp(status)
        if stamp[1] and (*known[-len(stamp) :], known.size) == (*stamp, status.st_size):
            return True
        same = status.st_size == known.size and stat.S_IMODE(status.st_mode) == known.source_mode
        if not same or digest(source, status.st_size) != known.sha256:
            return False
        self._record.made(path, known._replace(source=stamp[0], source_ns=stamp[1]))
        self._record.done(path)
        return True

    def _write(self, source: int, status: os.stat_result, entry: _Entry, *, replaces: bool) -> None:
        """Write a file under a temporary name, and move it to its own if that is still free, or still the session's."""
        temporary = f".bradawl-{os.urandom(8).hex()}.tmp"
        self._record.begin(entry.path, temporary)
        mode = stat.S_IMODE(status.st_mode) & 0o777
        target = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | OWN, mode, dir_fd=entry.target)
        try:
            _copy_content(source, target, status.st_size)
            made = _copied(target, status)
            self._record.made(entry.path, made)
            if replaces:
                self._replace(temporary, made, entry)
            else:
                _move_to_free_name(temporary, entry)
            self._record.done(entry.path)
        except BaseException:
            _unlink_if(temporary, entry.target, os.fstat(target).st_ino)
            with contextlib.suppress(OSError):
                if status_of(temporary, entry.target) is None:  # else the next start looks at it
                    self._record.dropped(entry.path)
            raise
        finally:
            os.close(target)

    def _replace(self, temporary: str, made: Copied, entry: _Entry) -> None:
        """Put the new file in place of the old one. What is taken away is examined again: it may have been replaced
        since it was compared.
        """
        if not exchange(temporary, entry.name, entry.target):
            os.rename(temporary, entry.name, src_dir_fd=entry.target, dst_dir_fd=entry.target)
        elif self._record.is_unchanged(entry.path, temporary, entry.target):
            os.unlink(temporary, dir_fd=entry.target)
        else:
            exchange(temporary, entry.name, entry.target)
            _unlink_if(temporary, entry.target, made.inode)
            raise _Refused("it was changed at this moment")

    def _check(self, path: str) -> None:
        if why := self._objection(path):
            raise _Refused(why.removeprefix(f"{path}: "))  # the path is named anyway

    def _spend(self, size: int) -> None:
        self._left -= 1
        if self._left < 0 or self._bytes < size:
            raise _Refused(_TOO_MUCH)
        self._bytes -= size

    def _fail(self, path: str, error: OSError | _Refused, entry: _Entry | None) -> None:
        why = str(error) if isinstance(error, _Refused) else _reason(error)
        if self._record.is_news(path, why, "" if entry is None else _version(entry)):
            own = _spelled(self._scratch + path[len(TEMPORARY) :])
            what = f"{_spelled(path)} was not written to the machine's /tmp"
            self._failed.append(f"{what}: {why}. The session's version is {own}")


def _reason(error: OSError) -> str:
    return "there is a link in the way" if error.errno in (errno.ELOOP, errno.ENOTDIR) else error.strerror or str(error)


def _spelled(path: str) -> str:
    """A path on one line, with all that can't be seen or is no text spelled out."""
    text = escape(os.fsencode(path).decode("utf-8", "backslashreplace"))
    return text.replace("\n", "\\n").replace("\t", "\\t")


def _version(entry: _Entry) -> str:
    """Changes with the session's file; empty for all that is no file, which is told once."""
    with contextlib.suppress(OSError):
        status = status_of(entry.name, entry.source)
        if status is not None and stat.S_ISREG(status.st_mode):
            return f"{status.st_ino} {status.st_ctime_ns} {status.st_size}"
    return ""


def _has_content(there: os.stat_result, source: int, status: os.stat_result, entry: _Entry) -> bool:
    """Whether the user's file at the target has the content of the session's already."""
    is_own = there.st_uid == os.geteuid() and stat.S_ISREG(there.st_mode)
    if not is_own or not there.st_size == status.st_size <= MOST_BYTES:
        return False
    mode = stat.S_IMODE(there.st_mode)
    same = Copied(there.st_dev, there.st_ino, mode, there.st_size, digest(source, status.st_size))
    return is_file(same, entry.name, entry.target)


def _copy_content(source: int, target: int, size: int) -> None:
    for piece in pieces(source):
        size -= len(piece)
        if size < 0:
            raise _Refused("it is still being written")
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]


def _copied(target: int, origin: os.stat_result) -> Copied:
    made = os.fstat(target)
    sha256 = digest(target, made.st_size)
    mode = stat.S_IMODE(made.st_mode)
    return Copied(made.st_dev, made.st_ino, mode, made.st_size, sha256, *_stamp(origin))


def _stamp(origin: os.stat_result) -> tuple[int, int, int]:
    is_settled = time.time_ns() - origin.st_ctime_ns > _SETTLED_NS
    return origin.st_ino, origin.st_ctime_ns if is_settled else 0, stat.S_IMODE(origin.st_mode)


def _move_to_free_name(temporary: str, entry: _Entry) -> None:
    """Raises `_Refused` if something has the name by now."""
    try:
        os.link(temporary, entry.name, src_dir_fd=entry.target, dst_dir_fd=entry.target, follow_symlinks=False)
    except FileExistsError:
        raise _Refused("a file of that name was made at this moment") from None
    os.unlink(temporary, dir_fd=entry.target)


def _remove_if_empty(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=folder)


def _unlink_if(name: str, folder: int, inode: int) -> None:
    """Remove a name if it is this file."""
    with contextlib.suppress(OSError):
        status = status_of(name, folder)
        if status is not None and status.st_ino == inode:
            os.unlink(name, dir_fd=folder)
