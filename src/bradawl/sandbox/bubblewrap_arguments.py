"""Command line arguments of bubblewrap for hidden paths, mounts and variables."""

import errno
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.sandbox.filesystem.memory_file import file_in_memory
from bradawl.sandbox.mounts.plan import Mount, is_empty_folder
from bradawl.sandbox.path_translation import TEMPORARY
from bradawl.sandbox.shown_in_tmp import OpenedPaths, ShownPath

_CLOSED: Final = ("--perms", "0555")
_HELP_WITHIN_S: Final = 1.0


def bind_parents_in_tmp(places: Iterable[str], shown: Sequence[str], scratch: str) -> Iterator[str]:
    """Bind the parent folders of visible paths below `/tmp`: a program that clears old folders there must not be able
    to move the workspace. Folders in a `shown` one are mounted with it, read-only. Raises `ToolError` if a program
    put something else in the place of such a folder.
    """
    above: set[str] = set()
    for place in places:
        folder = place.rpartition("/")[0] if place.startswith(f"{TEMPORARY}/") else TEMPORARY
        while folder != TEMPORARY and folder not in above:
            above.add(folder)
            folder = folder.rpartition("/")[0]
    above = {folder for folder in above if not any(is_within(folder, each) for each in shown)}
    for folder in sorted(above, key=lambda each: each.split("/")):
        own = scratch + folder[len(TEMPORARY) :]
        try:
            os.mkdir(own, 0o700)  # noqa: PTH102 - a third of the time of `Path.mkdir`, for each command
        except FileExistsError as error:
            if not stat.S_ISDIR(os.lstat(own).st_mode):  # a link of a program would be followed outside of the sandbox
                raise ToolError(
                    f"the sandbox can't show {folder}: a command made a file or link of that name; remove it"
                ) from error
        yield from ("--bind", own, folder)


def show_in_tmp(named: Iterable[ShownPath], opened: OpenedPaths, empties: str) -> Iterator[str]:
    """Mount files and folders of the machine's `/tmp` read-only, and cover what is hidden in them."""
    for each in named:
        yield from ("--ro-bind-fd", str(opened.descriptor(each.path)), each.path)
        for path in each.hidden:
            yield from mount_arguments(Mount(path, _kind_of_hidden(path)), empties)


def _kind_of_hidden(path: str) -> Literal["secret", "unreadable"]:
    try:
        return "secret" if stat.S_ISREG(os.lstat(path).st_mode) else "unreadable"
    except OSError:
        return "unreadable"


def check_visible(cwd: str, hidden: Iterable[str], roots: Iterable[str]) -> None:
    """Raises `ToolError` if the working directory of a program lies in a hidden path outside the workspace."""
    if any(is_within(cwd, each) for each in hidden) and not any(is_within(cwd, root) for root in roots):
        raise ToolError(f"the sandbox hides {cwd}, so nothing can run there; cd elsewhere")


def contains_any(folder: str, seen: Iterable[str]) -> bool:
    """Whether one of the `seen` paths lies inside the folder."""
    inside = f"{folder}/"
    for each in seen:  # noqa: SIM110 - half the time of `any`, for each hidden path of each command
        if each.startswith(inside):
            return True
    return False


def replace_by_empty(path: str, empties: str) -> list[str]:
    """Mount an empty file or folder, read-only, over a path."""
    return ["--ro-bind", f"{empties}/{'folder' if Path(path).is_dir() else 'file'}", path]


def not_hidden_by(places: Iterable[str], mounts: dict[str, Mount]) -> tuple[str, ...]:
    """The paths that no mount already hides: nothing can be mounted inside a folder that is shown empty."""
    gone = [path for path, mount in mounts.items() if mount.kind in ("empty", "unreadable")]
    return tuple(each for each in places if not any(each != path and is_within(each, path) for path in gone))


def hide(path: str, seen: Iterable[str], empties: str) -> list[str]:
    """Mount something empty, in which nothing can be created, over a path; no arguments if the path does not exist.

    A folder gets a tmpfs, the cheapest mount for bubblewrap: for every other kind it scans the list of mounts. Parent
    folders of `seen` paths inside are closed, too.
    """
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return []
    if not is_folder:
        return ["--ro-bind", f"{empties}/file", path]
    arguments = [*_CLOSED, "--tmpfs", path]
    inside = f"{path}/"
    for folder in sorted({way for each in seen if each.startswith(inside) for way in _folders_between(path, each)}):
        arguments += [*_CLOSED, "--dir", folder]
    return arguments


def _folders_between(folder: str, path: str) -> Iterator[str]:
    """The folders between a folder and a path in it, innermost first."""
    if path.startswith(f"{folder}/"):
        while (path := path.rpartition("/")[0]) != folder:
            yield path


def mount_arguments(mount: Mount, empties: str) -> Iterator[str]:
    """The arguments for one mount; none if its path does not exist."""
    path, kind = mount.path, mount.kind
    if kind == "secret":
        yield from ("--ro-bind", f"{empties}/secret", path)
    elif not os.path.lexists(path):
        return  # a placeholder that could not be created, or removed since
    elif kind == "missing" and is_empty_folder(path):
        yield from ("--ro-bind", f"{empties}/gap", path)
        yield from ("--ro-bind", f"{empties}/ignore", f"{path}/.gitignore")
    elif kind == "unreadable":
        yield from ("--ro-bind", f"{empties}/closed-{'folder' if Path(path).is_dir() else 'file'}", path)
    elif kind == "empty":
        yield from ("--ro-bind", f"{empties}/folder", path)
    else:
        yield from ("--bind" if kind == "write" else "--ro-bind", path, path)


def set_variables(environment: dict[str, str]) -> Iterator[str]:
    """Set the environment of the program."""
    for name, value in environment.items():
        yield from ("--setenv", name, value)


def binds_descriptors(program: str) -> bool:
    """Whether a bubblewrap can mount an open folder (0.10, and the distributions' updates of older ones)."""
    try:
        listed = subprocess.run(  # noqa: S603 - a trusted program, outside of the workspace
            [program, "--help"], capture_output=True, timeout=_HELP_WITHIN_S, env={}, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--bind-fd" in listed.stdout


def _by_descriptors(arguments: Sequence[str], roots: Sequence[str], opened: list[int]) -> Iterator[str]:
    """The arguments with writable binds in the roots by open folders and files, which are added to `opened`.

    bubblewrap follows links in a path that it binds. Another session, in a folder above, may have put one there since
    the path was examined, and the target would be writable. Raises `OSError` for a path that leads through a link.
    """
    place = 0
    while place < len(arguments):
        word, *paths = arguments[place : place + 3]
        if word == "--bind" and len(set(paths)) == 1 and any(is_within(paths[0], root) for root in roots):
            opened.append(open_in_place(paths[0]))
            yield from ("--bind-fd", str(opened[-1]), paths[0])
            place += 3
        else:
            yield word
            place += 1


def open_in_place(path: str) -> int:
    """A descriptor (`O_PATH`) of the file or folder with this absolute name. Raises `OSError` if a link is in it."""
    opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    if _name_of(opened) == path and not stat.S_ISLNK(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _name_of(opened: int) -> str:
    """The path by which the kernel knows an open file now; it contains no link."""
    try:
        return os.readlink(f"/proc/self/fd/{opened}")  # noqa: PTH115 - names need not be UTF-8
    except OSError:
        return ""


class StartDescriptors:
    """The descriptors of one start. Their caller closes them: `given` after the start, the others at the end."""

    def __init__(
        self,
        arguments: Sequence[str],
        rules: bytes,
        *,
        waits: bool,
        roots: Sequence[str] = (),
        opened: Iterable[int] = (),
    ) -> None:
        """`rules` is the system call filter. With `waits` the program starts when `release_fd` is closed. Writable
        binds in the `roots` are made by descriptors. `opened` are further ones that the arguments name.

        Raises `OSError`; then nothing is open.
        """
        self.release_fd = -1
        opened = [*opened]
        try:
            rules_fd = file_in_memory("filter", rules)
            opened.append(rules_fd)
            self.info_fd, info_sink = os.pipe()
            opened += (info_sink, self.info_fd)
            words = [*_by_descriptors(arguments, roots, opened)]
            words += ("--seccomp", str(rules_fd), "--info-fd", str(info_sink))
            if waits:
                block_fd, self.release_fd = os.pipe()
                opened += (block_fd, self.release_fd)
                words += ("--block-fd", str(block_fd))
            opened.append(file_in_memory("arguments", os.fsencode("\0".join((*words, "")))))
        except OSError:
            for each in opened:
                os.close(each)
            raise
        self.given = tuple(each for each in opened if each not in (self.info_fd, self.release_fd))
        """Descriptors that bubblewrap inherits; the last one holds its arguments."""
