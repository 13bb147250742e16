"""The machine's `/tmp` for sessions with one of their own: what the user's prompts name is shown and written there.

Commands see existing files and folders that a prompt names, read-only. What a session writes at a named path where
nothing exists is copied there when the turn ends. Nothing of others is replaced, and no link is followed.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.core.effects import is_within
from bradawl.sandbox.copy_records import Copied, CopyRecord, digest, opened_folder
from bradawl.sandbox.machine_tmp_copies import MOST_BYTES, Copying
from bradawl.sandbox.named_paths import MOST_NAMED, named_in_tmp
from bradawl.sandbox.path_translation import TEMPORARY
from bradawl.sandbox.scratch import COPIED, SessionScratch
from bradawl.sandbox.shown_in_tmp import NotShown, check_named

_MOST_PARTS: Final = 100
"""Entries of a folder that are shown one by one."""
_TOO_MANY: Final = f"the prompt names more than {MOST_NAMED:,} paths below /tmp; only the first were taken"
_MOST_SHOWN: Final = 50
"""Existing paths of one text that are shown: each is a mount of every command."""
_TOO_MANY_SHOWN: Final = (
    f"the prompt names more than {_MOST_SHOWN} existing paths below /tmp; only the first were shown to commands"
)


class TurnEnd(NamedTuple):
    """What happened at the end of a turn, in sentences for the user."""

    notices: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """What was to be copied to the machine's `/tmp` and was not."""


class MachineTmp:
    """What the prompts of the present session name below `/tmp`."""

    def __init__(
        self,
        scratch: SessionScratch,
        kept_apart: Iterable[str],
        is_private: Callable[[], bool],
        judge: Callable[[], Callable[[str], str]] = lambda: _no_objection,
    ) -> None:
        """`kept_apart` are the folders with rules of their own: workspace, home, bradawl's.

        `is_private` returns whether the session has a `/tmp` of its own; it may block while sandboxes are probed.
        `judge` returns a function that gives the reason of a rule against writing a path, empty if there is none.
        """
        self._scratch = scratch
        self._kept_apart = tuple(each for each in kept_apart if each)
        self._is_private = is_private
        self._judge = judge
        self._session = ""
        self._existing: tuple[str, ...] = ()
        """Named files and folders that existed when they were named."""
        self._shown: tuple[str, ...] = ()
        self._not_shown: dict[str, str] = {}
        self._wanted: tuple[str, ...] = ()
        """Named paths where nothing exists but what the session made."""
        self._record = CopyRecord()
        self._notices: tuple[str, ...] = ()

    def shown(self) -> tuple[str, ...]:
        """Existing files and folders of the machine's `/tmp` that commands may read."""
        return self._shown

    def not_shown(self) -> Mapping[str, str]:
        """Existing paths of the machine's `/tmp` that prompts name, and why commands may not read them."""
        return self._not_shown

    def copies(self, path: str) -> bool:
        """Whether a path below `/tmp` is copied to the machine's at the end of the turn, because a prompt named it."""
        is_wanted = any(is_within(path, each) for each in self._wanted) and not self._is_shown(path)
        return is_wanted and self._is_free(path) and not self._judge()(path)

    def writable(self) -> tuple[str, ...]:
        """Paths that file tools may write because a prompt named them, and `/tmp` is the machine's for them.

        Nothing exists there but what the session made itself.
        """
        if not self._wanted or self._is_private():
            return ()
        return tuple(path for path in self._wanted if self._is_free(path))

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[None]:
        """Around a write of a file tool: what it writes at a wanted path is the session's own from then on."""
        is_own = path in self._wanted and self._is_free(path)
        yield
        if is_own:
            with contextlib.suppress(OSError):
                self._remember(path)

    def begin_turn(self, texts: Iterable[str]) -> None:
        """Take the paths that prompts of the user name into account. The last text is the present one."""
        self._begin_session()
        found = [named_in_tmp(text) for text in texts]
        for number, named in enumerate(found, 1):
            known = len(self._existing)
            for readings in named[:MOST_NAMED]:
                self._take(readings, is_present=number == len(found))
            if len(named) > MOST_NAMED:
                self._notices += (_TOO_MANY,)
            if len(self._existing) > known + _MOST_SHOWN:
                self._existing = self._existing[: known + _MOST_SHOWN]
                self._notices += (_TOO_MANY_SHOWN,)
        still = [path for path in self._existing if self._may_be_shown(path)]
        self._shown = tuple(dict.fromkeys(part for path in still for part in self._parts(path)))
        self._note_mount_points()

    def end_turn(self) -> TurnEnd:
        """Copy what the session wrote at named paths to the machine's `/tmp`."""
        notices, self._notices = self._notices, ()
        scratch = self._scratch.known
        if not self._wanted or not scratch or scratch != self._session or not self._is_private():
            return TurnEnd(notices)
        turn = Copying(scratch, self._record, self._judge(), self._is_shown)
        for path in self._wanted:
            turn.copy(path)
        return TurnEnd((*notices, *turn.notices()), turn.failures())

    # ------------------------------------------------------------------ the session

    def _begin_session(self) -> None:
        if self._session and self._session == self._scratch.known:
            return
        self._session, self._existing, self._shown, self._wanted = self._scratch.place(), (), (), ()
        self._not_shown = {}
        self._record = CopyRecord(self._session + COPIED if self._scratch.is_kept else "")

    def _take(self, readings: tuple[str, ...], *, is_present: bool) -> None:
        names = [path for path in readings if not any(_overlap(path, each) for each in self._apart())]
        if not names:
            return
        existing, is_wanted = next((path for path in names if self._may_be_shown(path)), ""), False
        if existing:
            self._existing = tuple(dict.fromkeys((*self._existing, existing)))
        elif all(map(self._is_free, names)):
            self._not_shown.pop(names[0], None)
            is_wanted = is_present or self._record.was_wanted(names[0])
        if is_wanted:
            self._wanted = tuple(dict.fromkeys((*self._wanted, names[0])))
        if is_wanted and is_present and not os.path.lexists(names[0]):
            with contextlib.suppress(OSError):
                self._record.forget(names[0])  # so that all of it is copied again
        self._record.named(names[0], is_wanted=is_wanted)

    def _apart(self) -> tuple[str, ...]:
        return (*self._kept_apart, self._session)

    def _is_free(self, path: str) -> bool:
        """Whether nothing exists there but what the session made."""
        return not os.path.lexists(path) or self._record.is_own(path)

    def _remember(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with opened_folder(folder) as opened:
            made = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            try:
                status = os.fstat(made)
                mode, sha256 = stat.S_IMODE(status.st_mode), digest(made, MOST_BYTES)
                self._record.files[path] = Copied(status.st_dev, status.st_ino, mode, status.st_size, sha256)
            finally:
                os.close(made)

    # ------------------------------------------------------------------ what is shown

    def _is_shown(self, path: str) -> bool:
        return any(is_within(path, each) for each in self._shown)

    def _may_be_shown(self, path: str) -> bool:
        """Whether it is an existing file or folder, not by way of a link, that the session did not write itself."""
        self._not_shown.pop(path, None)
        try:
            check_named(path, self._session)
        except NotShown as why:
            self._not_shown[path] = str(why)
            return False
        except OSError:
            return False
        return not (self._record.is_own(path) and os.path.lexists(self._session) and self._is_private())

    def _parts(self, path: str) -> Iterator[str]:
        """What is shown of a named path: its entries one by one if a path in it is to be written, else all of it.

        A folder that is shown as a whole can't be written.
        """
        holds_wanted = any(each != path and is_within(each, path) for each in self._wanted)
        if not (holds_wanted and self._is_private()):
            yield path
            return
        with contextlib.suppress(OSError):
            names = sorted(os.listdir(path))  # noqa: PTH208 - names suffice
            if len(names) > _MOST_PARTS:
                yield path
                return
            for each in (f"{path}/{name}" for name in names):
                if self._may_be_shown(each):
                    yield from self._parts(each)

    def _note_mount_points(self) -> None:
        """Record which entries the sandbox makes in the session's folder to mount what is shown, and remove those of
        what is no longer shown: they are no files of the session.
        """
        used = {place for path in self._shown for place in _down_to(path)}
        released = [path for path in self._record.mount_points if path not in used]
        for path in reversed(released):
            _remove_empty(self._session + path[len(TEMPORARY) :])
        self._record.released(released)
        self._record.mounted(
            path for path in sorted(used) if not os.path.lexists(self._session + path[len(TEMPORARY) :])
        )


def _no_objection(_: str) -> str:
    return ""


def _overlap(one: str, other: str) -> bool:
    return is_within(one, other) or is_within(other, one)


def _down_to(path: str) -> Iterator[str]:
    """The folders below `/tmp` that lead to a path, and the path."""
    while path != TEMPORARY:
        yield path
        path = path.rpartition("/")[0]


def _remove_empty(path: str) -> None:
    """Remove an empty file or folder; nothing else."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            Path(path).rmdir()
        elif stat.S_ISREG(status.st_mode) and not status.st_size:
            Path(path).unlink()
