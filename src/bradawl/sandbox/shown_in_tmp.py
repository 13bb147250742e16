"""Shows sandboxed programs the files and folders of the machine's `/tmp` that the user's prompts name.

Other users may change what lies there at any moment. So a path is examined again at each start of a program, and opened
step by step: a link in the place of a folder is never followed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.discovery.mount_aliases import MountAliases
from bradawl.sandbox.discovery.present_keys import PresentKeys
from bradawl.sandbox.discovery.tmp_survey import NotSearched, TmpSurvey, holds_keys_by_name
from bradawl.sandbox.path_translation import TEMPORARY

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK: Final = "a link is in the way"
_KEYS: Final = "its name is one of files with keys"
_SPECIAL: Final = "it is neither a file nor a folder"
_OVER_HIDDEN: Final = "it holds or is a part of what is hidden from commands"
_REFUSED: Final = "a permission rule refuses to read it"
_NOT_OPEN: Final = "this bubblewrap can't mount an open file (0.10 and later can), so another could replace it"


class ShownPath(msgspec.Struct, frozen=True):
    """A file or folder of the machine's `/tmp` that a program sees, and the paths in it that are hidden."""

    path: str
    inode: tuple[int, int]
    """Device and number, as they were examined."""
    hidden: tuple[str, ...] = ()


class NotShown(Exception):
    """A named path is not shown; the text says why."""


def open_named(path: str) -> int:
    """A descriptor (`O_PATH`) of a regular file or a folder below `/tmp`. Raises `OSError`, also for a link in it."""
    parts = path[len(TEMPORARY) + 1 :].split("/")
    folder = os.open(TEMPORARY, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        opened = os.open(parts[-1], _ANY, dir_fd=folder)
    finally:
        os.close(folder)
    mode = os.fstat(opened).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return opened
    os.close(opened)
    raise OSError(errno.ELOOP if stat.S_ISLNK(mode) else errno.EINVAL, "", path)


def check_named(path: str, scratch: str) -> os.stat_result:
    """The status of a named path that can be shown, as far as its own name decides.

    `scratch` is the session's folder. Raises `NotShown`, and `FileNotFoundError` if nothing exists there.
    """
    if holds_keys_by_name(path[len(TEMPORARY) :]):
        os.lstat(path)
        raise NotShown(_KEYS)
    try:
        opened = open_named(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotShown(_reason(error)) from error
    try:
        status = os.fstat(opened)
    finally:
        os.close(opened)
    _check_place(path, status.st_mode, scratch)
    return status


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.ELOOP | errno.ENOTDIR:
            return _LINK
        case errno.EINVAL:
            return _SPECIAL
        case _:
            return error.strerror or str(error)


def _check_place(path: str, mode: int, scratch: str) -> None:
    """Raises `NotShown` where commands have put something in the way of the mount: it would be at a link's target, or
    could not be made.
    """
    own = scratch
    parts = path[len(TEMPORARY) + 1 :].split("/")
    for number, part in enumerate(parts, 1):
        own = f"{own}/{part}"
        try:
            found = os.lstat(own).st_mode
        except FileNotFoundError:
            return
        except OSError as error:
            raise NotShown(_reason(error)) from error
        wanted = stat.S_IFMT(mode) if number == len(parts) else stat.S_IFDIR
        if stat.S_IFMT(found) != wanted:
            raise NotShown(f"a command made something else, {'/'.join((TEMPORARY, *parts[:number]))}; remove that")


class NamedPathsAtStart:
    """Determines for each start of a program what it sees of the named paths. Not thread-safe."""

    def __init__(self, layout: SandboxLayout, keys: PresentKeys, aliases: MountAliases, *, opens: bool = True) -> None:
        """`keys` are those of the home folder, and `aliases` other paths of what is hidden. `opens`: the sandbox uses
        open files; without that nothing is shown.
        """
        self._opens = opens
        self._layout, self._keys, self._aliases = layout, keys, aliases
        self._survey = TmpSurvey()
        self._remarks: dict[str, str] = {}
        self._said: set[str] = set()

    def shown(
        self, hidden: Iterable[str], refused_now: Callable[[], Sequence[str]], uncovered: Sequence[str]
    ) -> tuple[ShownPath, ...]:
        """What is shown now, outermost paths only.

        `hidden` is hidden from programs, besides bradawl's own folders. `refused_now` returns what permission rules
        refuse to read. `uncovered` is what they allow by name.
        """
        for path, why in self._layout.not_shown_in_tmp().items():
            self.leave_out(path, why)
        named = self._layout.shown_in_tmp()
        for path in () if self._opens else named:
            self.leave_out(path, _NOT_OPEN)
        if not named or not self._opens:
            return ()
        found: list[ShownPath] = []
        away, refused = self._in_tmp(hidden), refused_now()
        for path in sorted(named, key=lambda each: each.split("/")):
            if not any(is_within(path, each.path) for each in found):
                try:
                    found.append(self._examined(path, away, refused, uncovered))
                except FileNotFoundError:
                    continue
                except (NotShown, NotSearched) as error:
                    self.leave_out(path, str(error))
                except OSError as error:
                    self.leave_out(path, _reason(error))
        return tuple(found)

    def opened(
        self,
        into: "OpenedPaths",
        hidden: Iterable[str],
        refused_now: Callable[[], Sequence[str]],
        uncovered: Sequence[str],
    ) -> tuple[ShownPath, ...]:
        """As `shown`, the paths that could be opened."""
        return tuple(filter(into.open, self.shown(hidden, refused_now, uncovered)))

    def leave_out(self, path: str, why: str) -> None:
        """Note that a path is not shown."""
        self._remarks[path] = f"{path} of the machine's /tmp is not shown to commands: {why}"

    def take_remarks(self) -> tuple[str, ...]:
        """Sentences about paths that are not shown, each once."""
        new = [each for each in self._remarks.values() if each not in self._said]
        self._remarks.clear()
        self._said.update(new)
        return tuple(new)

    def _in_tmp(self, hidden: Iterable[str]) -> tuple[str, ...]:
        """What must stay hidden below `/tmp`, also under other paths, and where links of key folders lead there."""
        layout = self._layout
        real = {os.path.realpath(path) for path in (*layout.own, layout.state, *hidden) if path}
        others = (*self._keys.targets_in(TEMPORARY), *self._aliases.of(real, layout.roots))
        return tuple(path for path in (*real, *others) if is_within(path, TEMPORARY))

    def _examined(self, path: str, away: Sequence[str], refused: Sequence[str], uncovered: Sequence[str]) -> ShownPath:
        if any(is_within(path, each) for each in refused):
            raise NotShown(_REFUSED)
        if any(is_within(path, each) for each in away):
            raise NotShown(_OVER_HIDDEN)
        status = check_named(path, self._layout.scratch)
        if not stat.S_ISDIR(status.st_mode):
            return ShownPath(path, (status.st_dev, status.st_ino))
        hidden = (*self._survey.hidden_in(path), *(each for each in away if is_within(each, path)))
        if not os.path.samestat(os.lstat(path), status):
            raise NotShown("it was replaced while it was examined")
        kept = (each for each in hidden if not any(is_within(each, one) for one in uncovered))
        return ShownPath(path, (status.st_dev, status.st_ino), tuple(_outermost(kept)))


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    last = ""
    for path in sorted(paths, key=lambda each: each.split("/")):
        if not last or not is_within(path, last):
            yield path
            last = path


class OpenedPaths:
    """Open descriptors of shown paths. Its owner calls `close`, or passes them on by `take`."""

    def __init__(self) -> None:
        self._opened: dict[str, int] = {}

    def open(self, shown: ShownPath) -> bool:
        """Open a path; False if something else is there by now."""
        try:
            opened = open_named(shown.path)
        except OSError:
            return False
        status = os.fstat(opened)
        if (status.st_dev, status.st_ino) != shown.inode:
            os.close(opened)
            return False
        self._opened[shown.path] = opened
        return True

    def descriptor(self, path: str) -> int:
        """The descriptor of an open path."""
        return self._opened[path]

    def take(self) -> tuple[int, ...]:
        """The descriptors, which the caller now closes."""
        taken, self._opened = tuple(self._opened.values()), {}
        return taken

    def close(self) -> None:
        """Close what was not taken."""
        for each in self.take():
            os.close(each)
