"""Finds the references of a repository that programs removed or damaged, and restores them.

Changes by git itself, such as deleting a branch or packing references, stay.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from bradawl.safety.git.small_files import named_in, read_start
from bradawl.safety.path_walk import real_path
from bradawl.sandbox.discovery.git_folders import folders_in
from bradawl.sandbox.restore.restore_path import put_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder
from bradawl.sandbox.restore.snapshot import (
    Entry,
    Snapshot,
    WatchedPath,
    is_changed,
    take_partial_snapshot,
    take_snapshot,
)

_NAMES: Final = (
    "HEAD",
    "packed-refs",
    "refs",
    "logs",
    "reftable",
    "index",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "FETCH_HEAD",
    "shallow",
)
_NEEDED: Final = ("HEAD", "packed-refs", "refs", "refs/heads", "reftable", "reftable/tables.list")
_OF_TREES: Final = ("HEAD", "commondir", "gitdir", "index", "ORIG_HEAD", "MERGE_HEAD", "logs", "refs")
_NEEDED_OF_TREES: Final = ("HEAD", "commondir", "gitdir")
_MOST_TREES: Final = 100
_FILE_BYTES: Final = 33_554_432
"""Of the largest file that is restored: lists of references and indexes have some megabytes in large projects."""
_LARGEST_LIST: Final = 1 << 30
_START_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 8_192
_HEAD: Final = re.compile(rb"(?:ref: refs/[^\0-\x20]+|(?!0+\s*$)[0-9a-f]{40}(?:[0-9a-f]{24})?)\s*")
_OBJECT: Final = rb"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_ANY_OBJECT: Final = re.compile(rb"(?<![0-9a-f])%b(?![0-9a-f])" % _OBJECT)
_LISTS: Final = {
    "packed-refs": re.compile(rb"(?:(?:#.*|\^%b|%b refs/[^\0-\x20]+)\n)+" % (_OBJECT, _OBJECT)),
    "shallow": re.compile(rb"(?:%b\n)+" % _OBJECT),
    "index": re.compile(rb"DIRC.*", re.DOTALL),
}
"""The lines that git writes in these files. Git fails at any other line; without a line in the first file it finds no
references.
"""
_TABLE: Final = re.compile(r"0x([0-9a-f]{12})-0x([0-9a-f]{12})-[0-9a-f]+\.(?:ref|log)")
_MOST_SHOWN: Final = 3


class References:
    """The references of one repository, its reflogs and its index, also those of its linked working trees."""

    def __init__(self, data: str, place: str) -> None:
        """`data` is the folder of git's data, `place` a folder around it that programs can't move."""
        self.data = data
        self._place = place
        self._known: Snapshot = {}
        self._owed: Snapshot = {}
        """What could not be put back yet."""
        self._gone: frozenset[str] = frozenset()
        """What the last call of `missing` did not find."""

    @property
    def known(self) -> Snapshot:
        """The entries to which references are restored."""
        return self._known

    def resume(self, known: Snapshot) -> None:
        """Compare with what another agent took."""
        self._known = known

    def take(self) -> bool:
        """Take everything as it is now. Call while no program runs; True if a file changed since the last call.

        Raises `ToolError` if there are too many references.
        """
        before = self._known
        self._known = take_snapshot(self._places(), before, file_bytes=_FILE_BYTES)
        self._owed = {path: entry for path, entry in self._owed.items() if not os.path.lexists(path)}
        self._known |= self._owed
        return before.keys() != self._known.keys() or any(
            before[path] is not entry for path, entry in self._known.items() if entry.kind == "file"
        )

    def take_changes(self, lost: list[str]) -> None:
        """Take what has changed, but nothing of what is `lost`, while programs run. `lost` is what `missing` returned.

        A reference that changed while a program ran all day must not be restored to the state of the morning.
        """
        before, now = self._known, self._now(self._places())
        judged = self._gone.difference(lost)
        now |= {path: entry for path, entry in before.items() if path not in now and path not in judged}
        now |= {
            path: before[path]
            for path, entry in now.items()
            if path in before and path not in judged and not self._may_follow(path, entry)
        }
        self._known = now

    def _may_follow(self, path: str, now: Entry) -> bool:
        return now.kind == self._known[path].kind and self._is_sound(path, now)

    def _places(self) -> Iterator[WatchedPath]:
        yield from ((self.data, name) for name in _NAMES)
        for tree in folders_in(f"{self.data}/worktrees")[:_MOST_TREES]:
            yield from ((self.data, f"{tree[len(self.data) + 1 :]}/{name}") for name in _OF_TREES)

    def was_repository(self) -> bool:
        """Whether git recognized a repository before."""
        return _is_head(self._known.get(f"{self.data}/HEAD"))

    def folders(self) -> list[str]:
        """The folders with references, outermost first."""
        return sorted(path for path, entry in self._known.items() if entry.kind == "folder")

    # ------------------------------------------------------------------ what is missing

    def missing(self, has_new_objects: Callable[[], bool]) -> list[str]:
        """References to restore: all lost ones if it is not a repository any more, else those that git did not delete
        itself. `has_new_objects` says whether git may have fetched what a shallow repository lacked.
        """
        lost = {path: None for path, entry in self._known.items() if _is_gone(path, entry)}
        self._gone = frozenset(lost)
        damaged = (*self._damaged(), *self._lost_tables(lost))
        if self._is_broken():
            head = () if self._has_head() else (f"{self.data}/HEAD",)
            return list(dict.fromkeys((*lost, *damaged, *head)))
        packed = self._packed_now() if lost else {}
        packed_before = _packed(self._known.get(f"{self.data}/packed-refs")) if lost else {}
        kept = [path for path in lost if not self._is_deleted(path, packed, packed_before)]
        shallow = f"{self.data}/shallow"
        if shallow in lost and shallow not in kept and not has_new_objects():
            kept.append(shallow)
        return list(dict.fromkeys((*kept, *damaged, *self._lost_trees(lost))))

    def _is_deleted(self, path: str, packed: dict[str, str], packed_before: dict[str, str]) -> bool:
        """Whether git may have deleted or packed a file that is gone: it deletes the log with a reference, and packs a
        reference with its current value.
        """
        if (kind := stat.S_IFMT(_mode(path))) and kind != stat.S_IFDIR:
            return False  # a pipe or link, or it is closed; a folder has branches whose names begin with this one
        name, entry = path[len(self.data) + 1 :], self._known[path]
        if name.startswith("logs/"):
            of_log = name.removeprefix("logs/")
            is_there = of_log in packed or stat.S_IFMT(_mode(f"{self.data}/{of_log}")) in (stat.S_IFREG, stat.S_IFLNK)
            return not is_there or entry.kind != "file" or not entry.content
        if not name.startswith("refs/") or entry.kind != "file":
            return True
        value = packed.get(name, "")
        if value and (value == os.fsdecode(entry.content or b"").strip() or value != packed_before.get(name)):
            return True
        return not self._has_log(name)

    def _has_log(self, name: str) -> bool:
        return stat.S_ISREG(_mode(f"{self.data}/logs/{name}"))

    def _damaged(self) -> list[str]:
        """Changed files that git would not have written so; of new files, the lists only."""
        names = f"{self.data}/refs/"
        lists = [f"{self.data}/{name}" for name in _LISTS]
        changed = [
            path
            for path, entry in self._known.items()
            if entry.kind == "file" and path.startswith(names) and is_changed(path, entry)
        ]
        now = self._now((self.data, path[len(self.data) + 1 :]) for path in (*changed, *lists))
        return [path for path in (*changed, *lists) if path in now and not self._is_sound(path, now[path])]

    def _is_sound(self, path: str, now: Entry) -> bool:
        name = path[len(self.data) + 1 :]
        if now.kind != "file" or now is self._known.get(path):
            return True
        if now.content is None:
            return not _is_too_large(path, name)
        if name == "packed-refs" and self._has_lost_names(now):
            return False
        if name in _LISTS:
            return bool(_LISTS[name].fullmatch(now.content))
        if name != "HEAD" and not name.startswith("refs/"):
            return True
        is_loop = now.content.strip() == f"ref: {name}".encode(errors="surrogateescape")
        return bool(_HEAD.fullmatch(now.content)) and not is_loop

    def _has_lost_names(self, now: Entry) -> bool:
        """Whether names are missing from the list that git did not delete: git deletes their logs with them."""
        lost = _packed(self._known.get(f"{self.data}/packed-refs")).keys() - _packed(now).keys()
        return any(self._has_log(name) and not os.path.lexists(f"{self.data}/{name}") for name in lost)

    def _is_broken(self) -> bool:
        had = (f"{self.data}/{name}" for name in _NEEDED)
        return not self._has_head() or any(path in self._known and not os.path.lexists(path) for path in had)

    def _has_head(self) -> bool:
        return _is_head(self._now([(self.data, "HEAD")]).get(f"{self.data}/HEAD"))

    def _lost_tables(self, lost: dict[str, None]) -> list[str]:
        """The tables of references, and their list, unless the list names the tables that are there, and those have
        all that the earlier ones had.
        """
        folder = f"{self.data}/reftable"
        if f"{folder}/tables.list" not in self._known:
            return []
        now = self._now([(self.data, "reftable")])
        listed, before = _tables(now.get(f"{folder}/tables.list")), _tables(self._known[f"{folder}/tables.list"])
        tables = {name: now.get(f"{folder}/{name}") for name in listed or ()}
        if listed and all(map(self._is_table, tables, tables.values())) and _cover(listed, before or ()):
            return []
        changed = (path for path, entry in now.items() if path in self._known and entry is not self._known[path])
        mine = (*(path for path in lost if path.startswith(f"{folder}/")), *changed)
        return [path for path in mine if self._known[path].kind == "file"]

    def _is_table(self, name: str, now: Entry | None) -> bool:
        """Git never changes a table. It gives a new one another name."""
        before = self._known.get(f"{self.data}/reftable/{name}")
        if now is None or now.kind != "file":
            return False
        if before is None:
            return now.content is None or now.content.startswith(b"REFT")
        return now is before or (now.content is not None and now.content == before.content)

    def _lost_trees(self, lost: dict[str, None]) -> list[str]:
        """What is gone of linked working trees that still exist. A sandboxed `git worktree prune` does not see all."""
        start = f"{self.data}/worktrees/"
        trees = {f"{start}{path[len(start) :].partition('/')[0]}" for path in lost if path.startswith(start)}
        used = tuple(f"{tree}/" for tree in trees if self._is_in_use(tree))
        return [path for path in lost if used and path.startswith(used)]

    def _is_in_use(self, tree: str) -> bool:
        """Whether a linked working tree exists whose data lack something without which git fails in it."""
        named = self._known.get(f"{tree}/gitdir")
        dot_git = os.path.normpath(Path(tree, os.fsdecode((named.content if named else b"") or b"").strip()))
        back = named_in(dot_git, "gitdir: ")
        is_there = back and real_path(Path(dot_git).parent / back) == tree
        had = (f"{tree}/{name}" for name in _NEEDED_OF_TREES)
        return bool(is_there) and any(path in self._known and _is_gone(path, self._known[path]) for path in had)

    def _now(self, places: Iterable[WatchedPath]) -> Snapshot:
        return take_partial_snapshot(places, self._known, file_bytes=_FILE_BYTES)

    def _packed_now(self) -> dict[str, str]:
        return _packed(self._now([(self.data, "packed-refs")]).get(f"{self.data}/packed-refs"))

    # ------------------------------------------------------------------ putting back

    def put_back(self, missing: list[str], aside: SetAsideFolder) -> list[str]:
        """Restore references. Returns their paths, with a remark if that failed."""
        restored: list[str] = []
        for path in sorted(missing):
            entry = self._known.get(path)
            self._owed.pop(path, None)
            try:
                put_back(path, self._place, entry, aside)
            except OSError as error:
                restored.append(f"{path} (could not be put back: {error.strerror})")
                if entry is not None and entry.kind == "file" and entry.content is not None:
                    self._owed[path] = entry
            else:
                restored.append(path)
        return shortened(restored, f"{self.data}/refs", "references and their logs")

    def named_objects(self, missing: list[str]) -> frozenset[str]:
        """The objects to which references and reflogs lead, also those that are `missing`, which git never prunes."""
        now = self._now(self._places())
        now |= {path: self._known[path] for path in missing if path in self._known}
        contents = (entry.content or b"" for entry in now.values() if entry.kind == "file")
        found = (_ANY_OBJECT.findall(content) for content in contents if not content.startswith(b"DIRC"))
        return frozenset(match.decode() for matches in found for match in matches)


def shortened(paths: list[str], folder: str, what: str) -> list[str]:
    """The paths if they are few, else one line with their number."""
    return paths if len(paths) <= _MOST_SHOWN else [f"{folder} ({len(paths)} {what})"]


def _is_head(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "file" and bool(_HEAD.fullmatch(entry.content or b""))


def _is_gone(path: str, entry: Entry) -> bool:
    """Whether it is missing, unreadable, or not a regular file any more, such as a pipe."""
    if entry.kind == "file":
        mode = _mode(path)
        return not stat.S_ISREG(mode) or (entry.mode & stat.S_IRUSR) > (mode & stat.S_IRUSR)
    return entry.kind in ("folder", "link") and not os.path.lexists(path)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _is_too_large(path: str, name: str) -> bool:
    """Whether a file is larger than git makes it, or a list too large to be read does not begin with its lines."""
    try:
        size = os.lstat(path).st_size
    except OSError:
        return False
    is_reference = name == "HEAD" or name.startswith("refs/")
    if size <= _FILE_BYTES or not (is_reference or name in _LISTS):
        return False
    start = read_start(path, _START_BYTES)
    lines = start if name == "index" else start[: start.rfind(b"\n") + 1]
    is_cut_line = len(start) - len(lines) < _LONGEST_LINE
    return is_reference or size > _LARGEST_LIST or not is_cut_line or not _LISTS[name].fullmatch(lines)


def _packed(found: Entry | None) -> dict[str, str]:
    """Names and values in a packed-refs file."""
    lines = ((found.content if found else b"") or b"").splitlines()
    pairs = (os.fsdecode(line).partition(" ") for line in lines if not line.startswith((b"#", b"^")))
    return {name: value for value, _, name in pairs}


def _tables(found: Entry | None) -> tuple[str, ...] | None:
    """The names in a list of tables; None if it is none."""
    if found is None or found.kind != "file" or found.content is None:
        return None
    names = tuple(map(os.fsdecode, found.content.split()))
    return names if all(map(_TABLE.fullmatch, names)) else None


def _cover(tables: tuple[str, ...], before: tuple[str, ...]) -> bool:
    """Whether the updates in each earlier table are in one of these: a name has the numbers of the first and last."""
    spans = [(int(match[1], 16), int(match[2], 16)) for match in map(_TABLE.fullmatch, tables) if match]
    needed = [(int(match[1], 16), int(match[2], 16)) for match in map(_TABLE.fullmatch, before) if match]
    return all(any(low <= first and last <= high for low, high in spans) for first, last in needed)
