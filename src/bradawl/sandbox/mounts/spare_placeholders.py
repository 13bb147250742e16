"""Empty files and folders kept at hand: to make and remove one each time can take longer than a command does."""

import contextlib
import errno
import os
import stat
from pathlib import Path

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpareFiles:
    """Empty files of which a second name is kept, one for each place: at another place it is never used."""

    def __init__(self, place: str) -> None:
        """`place` is the folder for the second names, made when first needed; empty if there is none."""
        self._place = place
        self._names: dict[str, str] = {}
        self._is_clean = False

    def put(self, path: str) -> None:
        """Let there be an empty file. Raises `OSError`, also where something is already."""
        name = self._names.get(path, "")
        if name and _is_unused(name):
            try:
                os.link(name, path, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:  # it is gone, or another file system lies there now
                pass
            else:
                return
        if name:
            _remove(self._names.pop(path))
        os.close(os.open(path, _NEW, 0o644))
        if self._place:
            self._keep(path)

    def _keep(self, path: str) -> None:
        name = f"{self._place}/{os.urandom(8).hex()}"
        try:
            if not self._is_clean:
                self._clean()
            os.link(path, name, follow_symlinks=False)
        except OSError:  # another file system, or one without links
            self._place = ""
        else:
            self._names[path] = name

    def _clean(self) -> None:
        """Remove what killed agents have left; one that lives makes its own again."""
        Path(self._place).mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.scandir(self._place) as entries:
            for entry in entries:
                _remove(entry.path)
        self._is_clean = True

    def close(self) -> None:
        """Remove the second names; safe to call twice."""
        for name in self._names.values():
            _remove(name)
        self._names.clear()


def _is_unused(name: str) -> bool:
    """Whether a file is as it was made: who has written to it, or given it a name, may do so again."""
    try:
        found = os.lstat(name)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == 0 and found.st_nlink == 1


def _remove(name: str) -> None:
    with contextlib.suppress(OSError):
        Path(name).unlink()


class SpareFolders:
    """Empty folders to be moved to where one is needed and back: to remove one can take longer than a command does."""

    def __init__(self, place: str) -> None:
        """`place` is where they lie between times, also those of agents before; empty if there is none."""
        self._place = place
        self._free: list[str] | None = None

    def put(self, path: str) -> None:
        """Let there be an empty folder. Raises `OSError`, also where something is already."""
        if self._free is None:
            self._free = self._found()
        while self._free and not os.path.lexists(path):
            try:
                os.rename(self._free.pop(), path)  # noqa: PTH104 - pathlib takes twice as long
            except FileNotFoundError:  # another agent has taken it, or the goal can't be there
                continue
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._place, self._free = "", []  # another file system: nothing can be moved
            else:
                return
        Path(path).mkdir(0o755)

    def take_back(self, path: str) -> bool:
        """Move an empty folder away; one in which there is something stays, or comes back."""
        if not self._place:
            return False
        goal = f"{self._place}/{os.urandom(8).hex()}"
        try:
            if _has_entries(path):
                return True
            os.rename(path, goal)  # noqa: PTH104 - pathlib takes twice as long
            if _has_entries(goal):
                os.rename(goal, path)  # noqa: PTH104 - pathlib takes twice as long
                return True
        except OSError:
            return False
        if self._free is not None:
            self._free.append(goal)
        return True

    def _found(self) -> list[str]:
        if not self._place:
            return []
        with contextlib.suppress(OSError):
            Path(self._place).mkdir(mode=0o700, parents=True, exist_ok=True)
            return [str(path) for path in Path(self._place).iterdir()]
        self._place = ""
        return []


def _has_entries(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is not None
