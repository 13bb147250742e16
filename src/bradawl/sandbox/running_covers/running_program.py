"""The covers of one running program, and what happened to them."""

import contextlib
import os
import re
import select
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from bradawl.core.effects import is_within
from bradawl.safety.control_characters import in_remark
from bradawl.safety.name_lists import first_of
from bradawl.sandbox.mounts.placeholders import Placeholder
from bradawl.sandbox.mounts.plan import UNREADABLE, Mount
from bradawl.sandbox.running_covers.cover_mounter import ABSENT, COVERED, LINK, ON, CoverMounter
from bradawl.sandbox.running_covers.linked_files import linked_files
from bradawl.sandbox.running_covers.opened_files import OpenedFiles, opened_files, sends_descriptors

_MOST_NAMED: Final = 5
_FILES_OF_GIT: Final = ("config", "config.worktree", "attributes", "commondir", "gitdir", "alternates", ".git")
_WHO: Final = (
    "while {what} ran, files were replaced or made, by another program, or by the command itself where another program"
    " had removed them. "
)
_HIDDEN: Final = (
    _WHO + "They are hidden from it again; for a moment it could read them. Tell the user to consider new keys: {paths}"
)
_READ_ONLY: Final = (
    _WHO + "They are read-only for it again; for a moment it could write them. Tell the user to look at them: {paths}"
)
_AT_THE_END: Final = (
    _WHO + "It could read or write them until it ended. Tell the user to look at them, or replace keys: {paths}"
)
_OPENED: Final = (
    _WHO + "It had hidden ones open, or does not show what it has open. Tell the user to replace the keys in: {paths}"
)
_LINKS: Final = (
    "while {what} ran, links appeared at protected paths. Another program or the command itself made them. Commands can"
    " change what they lead to. Tell the user to remove unknown ones: {paths}"
)
_SENTENCES: Final = (_OPENED, _HIDDEN, _READ_ONLY, _AT_THE_END, _LINKS)
_KILLED: Final = "the command was ended, because {}. Tell the user"
_SENT: Final = "its processes were passing open files to each other when another program replaced {}"
_UNSEEN: Final = "a process of it does not show what it has open, and another program replaced {}"
_LINKED: Final = (
    "files that another program replaced have further names (hard links), by which commands can change them, now and"
    " later: {}. They are compared after each command; replace each by a copy to end that"
)
_CHANGED_BY_LINKS: Final = (
    "protected files were changed while commands ran, perhaps by a further name (hard link) that they have. Tell the"
    " user to look at each, then replace it by a copy: {}"
)
_NOT_COVERED: Final = "another program replaced {}, which could not be protected from the command again: {}. {}"


class RunningProgram:
    """One program in its sandbox, from the moment when its mounts are planned. Its owner calls `close()`."""

    def __init__(
        self, covers: tuple[Mount, ...], placeholders: Mapping[str, Placeholder], roots: Collection[str]
    ) -> None:
        self._covers = covers
        self._placeholders = placeholders
        self._roots = roots
        self._changed: dict[str, Mount] = {}
        self._init, self._pidfd = 0, -1
        self._for_model: dict[str, dict[str, None]] = {text: {} for text in _SENTENCES}
        self._for_user: dict[str, dict[str, None]] = {text: {} for text in _SENTENCES}
        self._not_covered: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._killed = ""
        self._failures: tuple[str, ...] = ()
        self.linked: tuple[str, ...] = ()
        """Read-only files that had further hard links when their covers were mounted last."""
        self.to_watch: list[str] = []
        """Further paths whose changes have to be noted."""
        self.held: list[str] = []
        """Placeholders created for it again, to be released at its end."""
        self.has_ended = False

    def set_init(self, pid: int) -> None:
        """Set the PID of its namespace's init. Must be called while init exists."""
        self._init = pid
        with contextlib.suppress(OSError):
            self._pidfd = os.pidfd_open(pid)

    def has_begun(self) -> bool:
        """Whether its mounts are made: init then starts the program."""
        if self.has_ended:
            return True
        try:
            return bool(Path(f"/proc/{self._init}/task/{self._init}/children").read_bytes())
        except OSError:
            return True  # it has ended, or the kernel does not say

    def is_running(self) -> bool:
        """Whether processes may run in its namespace. Forgets changes after their end, except at its `close`."""
        if self.has_ended:
            self._note_late()
            return False
        if self._pidfd >= 0 and _is_readable(self._pidfd):
            self._changed.clear()
            return False
        return self._init > 0

    # ------------------------------------------------------------------ changes

    @property
    def is_changed(self) -> bool:
        """Whether covers have to be examined."""
        return bool(self._changed)

    def note_changed(self, paths: Collection[str]) -> None:
        """Note that these paths were created, deleted or replaced."""
        for cover in self._covers:
            if any(is_within(cover.path, path) for path in paths):
                self._changed[cover.path] = cover

    def missing(self) -> Iterator[tuple[str, Placeholder | None]]:
        """Changed paths that do not exist, in folders that do, with their placeholders. Git can't work with some
        placeholders: those are None.
        """
        for cover in self._changed.values():
            if cover.kind in ("read", "missing") and not os.path.lexists(cover.path):
                folder, _, name = cover.path.rpartition("/")
                if os.path.isdir(folder):  # noqa: PTH112 - `Path.is_dir` raises for a closed folder
                    made = None if name in _FILES_OF_GIT else Placeholder(cover.path, is_folder=True)
                    yield cover.path, self._placeholders.get(cover.path, made)

    def cover_again(self, mounter: CoverMounter, pids: Collection[int]) -> None:
        """Mount the changed covers that are gone, while its processes `pids` are stopped. Kills the program if a hidden
        path can't be hidden, or if a process can write a read-only one all the same: by a descriptor, by a folder that
        it is in, or by a further hard link.
        """
        self.linked = ()
        changed, self._changed = self._changed, {}
        covers = {real: Mount(real, each.kind) for each in changed.values() for real in (self._real_path(each),)}
        ordered = [covers[path] for path in sorted(covers, key=lambda path: path.split("/"))]
        if not ordered:
            return
        self._take_over(ordered)
        try:
            states = mounter.mount(self._init, ordered)
        except OSError as error:
            states = {cover.path: error.strerror or str(error) for cover in ordered if os.path.lexists(cover.path)}
        covered: list[Mount] = []
        for cover in ordered:
            state = states.get(cover.path, ABSENT if not os.path.lexists(cover.path) else "no answer")
            if state == COVERED:
                covered.append(cover)
            elif state not in (ON, ABSENT):
                self._note_failure(cover, state)
        self._note_covered([cover for cover in covered if cover.kind != "write"], pids)

    def _take_over(self, covers: Iterable[Mount]) -> None:
        """Keep these covers from now on: links to hidden files may lead elsewhere than before."""
        known = frozenset(cover.path for cover in self._covers)
        new = tuple(cover for cover in covers if cover.path not in known)
        self._covers += new
        self.to_watch += [cover.path for cover in new]

    def cover_also(self, covers: Collection[Mount], mounter: CoverMounter, pids: Collection[int]) -> frozenset[str]:
        """Mount further covers while its processes `pids` are stopped, and keep them from now on.

        Returns those that it can't get around: nothing was opened there, or below a new cover above it, with which it
        could change something, and no file has a further hard link. Raises `OSError`.
        """
        known = frozenset(cover.path for cover in self._covers)
        paths = frozenset(cover.path for cover in covers) - self._changed.keys()
        left = [cover for cover in covers if cover.path in paths - known]
        if not left:
            return paths
        if sends_descriptors(pids, self._init):
            return paths & known
        left = _not_below(left, self._ways_in(left, pids))
        ordered = sorted(left, key=lambda cover: cover.path.split("/"))
        states = mounter.mount(self._init, ordered) if ordered else {}
        made = [cover for cover in ordered if states.get(cover.path) in (ON, COVERED)]
        self._covers += tuple(made)
        return paths & known | {cover.path for cover in made}

    def _ways_in(self, covers: Collection[Mount], pids: Collection[int]) -> frozenset[str]:
        """Files and folders at or below new covers that its processes could change in spite of them."""
        paths = [cover.path for cover in covers]
        opened = opened_files(pids, self._init, paths)
        if not opened.is_complete:
            return frozenset(paths)
        linked = linked_files(cover.path for cover in covers if cover.kind == "read")
        return frozenset((*(each.path for each in opened.files if each.is_writable), *linked))

    def _real_path(self, cover: Mount) -> str:
        """Programs can't change links in the home folder; in the workspace they could make links to anything."""
        is_inside = any(is_within(cover.path, root) for root in self._roots)
        return os.path.realpath(cover.path) if cover.kind in UNREADABLE and not is_inside else cover.path

    def _note_covered(self, covered: Collection[Mount], pids: Collection[int]) -> None:
        hidden = [cover.path for cover in covered if cover.kind in UNREADABLE]
        others = [cover.path for cover in covered if cover.path not in hidden and cover.path not in self.held]
        self._note(_HIDDEN, hidden)
        self._note(_READ_ONLY, others)
        if hidden or others:
            self._note_opened(opened_files(pids, self._init, (*hidden, *others)), hidden, others)
        if others:
            self._note_other_ways(others, pids)

    def _note_opened(self, opened: OpenedFiles, hidden: Collection[str], read_only: Collection[str]) -> None:
        for each in opened.files:
            if any(is_within(each.path, path) for path in hidden):
                self._note(_OPENED, [each.path])
            elif each.is_writable:
                self.kill(f"it had opened {in_remark(each.path)} for writing when another program replaced that file")
        if not opened.is_complete:
            self._note(_OPENED, hidden)
            if read_only:
                self.kill(_UNSEEN.format(shortened(read_only)))

    def _note_other_ways(self, read_only: Collection[str], pids: Collection[int]) -> None:
        """Ways to write files that are read-only by their paths."""
        if sends_descriptors(pids, self._init):
            self.kill(_SENT.format(shortened(read_only)))
        self.linked = linked_files(read_only)
        if self.linked:
            self.kill(_LINKED.format(shortened(self.linked)))

    def _note_failure(self, cover: Mount, reason: str) -> None:
        if reason == LINK:  # what it leads to could be read, or written, before
            if cover.kind != "write":
                self._note(_LINKS, [_with_target(cover.path)])
        elif cover.kind in UNREADABLE:
            self.kill(f"another program replaced {in_remark(cover.path)}, which could not be hidden again: {reason}")
        elif cover.kind != "write":
            self._not_covered[cover.path] = reason, _stamp(cover.path)

    def _note_late(self) -> None:
        changed, self._changed = self._changed, {}
        for cover in changed.values():
            if cover.kind != "write" and os.path.lexists(cover.path):
                self._note(_AT_THE_END, [cover.path])

    def _note(self, sentence: str, paths: Iterable[str]) -> None:
        self._for_model[sentence].update(dict.fromkeys(paths))
        self._for_user[sentence].update(dict.fromkeys(paths))

    def kill(self, reason: str) -> None:
        """End all processes of its namespace. `reason` becomes a note."""
        self._killed = self._killed or reason
        with contextlib.suppress(OSError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            elif self._init:
                os.kill(self._init, signal.SIGKILL)

    # ------------------------------------------------------------------ its end

    def take_notes(self, what: str) -> tuple[str, ...]:
        """Sentences about replaced paths since the last call. `what` names the program, such as `the command`."""
        return _taken(self._for_model, what)

    def take_warnings(self) -> tuple[str, ...]:
        """As `take_notes`, for the user."""
        return tuple(map(for_user, _taken(self._for_user, "a command")))

    def final_notes(self) -> tuple[str, ...]:
        """Sentences about its end. Call after `close`."""
        return (*((_KILLED.format(self._killed),) if self._killed else ()), *self._failures)

    def close(self) -> None:
        """Release its descriptor, and compare files that could not be covered again. Safe to call twice."""
        self._failures = tuple(
            _NOT_COVERED.format(
                in_remark(path),
                reason,
                "It changed since: tell the user to look at it"
                if _stamp(path) != stamp
                else "It has not changed since",
            )
            for path, (reason, stamp) in self._not_covered.items()
        )
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def _not_below(covers: Collection[Mount], opened: Collection[str]) -> list[Mount]:
    """The covers without those that share an outermost cover with something opened: programs reach what is in an opened
    folder without the mounts that were made over it later.
    """
    paths = [cover.path for cover in covers]
    tops = {path: min((each for each in paths if is_within(path, each)), key=len) for path in paths}
    closed = {top for top in tops.values() if any(is_within(each, top) for each in opened)}
    return [cover for cover in covers if tops[cover.path] not in closed]


def for_user(note: str) -> str:
    """A note for the model as the user reads it."""
    said = re.sub(r"([Tt])ell the user(?: to (\w))?", lambda found: _in_case_of(found[1], found[2] or ""), note).strip()
    return said[:1].upper() + said[1:]


def _in_case_of(letter: str, text: str) -> str:
    return text.upper() if letter.isupper() else text


def _taken(notes: Mapping[str, dict[str, None]], what: str) -> tuple[str, ...]:
    taken = tuple(text.format(what=what, paths=shortened(paths)) for text, paths in notes.items() if paths)
    for paths in notes.values():
        paths.clear()
    return taken


def changed_by_links(paths: Collection[str]) -> tuple[str, ...]:
    """Sentences about read-only files that were changed by a further hard link."""
    return (_CHANGED_BY_LINKS.format(shortened(paths)),) if paths else ()


def _with_target(path: str) -> str:
    try:
        return f"{path} -> {os.readlink(path)}"  # noqa: PTH115 - as it is written
    except OSError:
        return f"{path} -> {os.path.realpath(path)}"  # a folder above it is the link


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()  # `select.select` takes no descriptor above 1,023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def shortened(paths: Collection[str]) -> str:
    """The first paths, for a note."""
    return first_of(paths, _MOST_NAMED, in_remark)
