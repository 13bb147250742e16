"""Mounts that enforce permission rules on programs: paths a rule refuses to read or write."""

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.rules import Rule, Subject, speaks_of
from bradawl.safety.git.tracked_files import tracks_below
from bradawl.safety.path_walk import real_path
from bradawl.safety.permissions.rule_targets import (
    MOST_FOLDERS,
    Match,
    RuleMatcher,
    TooManyFolders,
    UnreadablePath,
)
from bradawl.sandbox.mounts.plan import Mount
from bradawl.sandbox.restore.snapshot import WatchedPath

_MOST: Final = 200
_ANYWHERE: Final = "any folder"
_HIDING: Final = ("unreadable", "empty")
_SYSTEM: Final = {
    "/bin": ("bash", "sh"),
    "/etc": (),
    "/lib": ("ld-linux-aarch64.so.1", "aarch64-linux-gnu/libc.so.6", "x86_64-linux-gnu/libc.so.6"),
    "/lib64": ("ld-linux-x86-64.so.2", "libc.so.6"),
}
"""System folders and files that every program needs."""


class ProgramView(NamedTuple):
    """What a program must see and may write."""

    writable: tuple[str, ...]
    cwd: str
    seen: tuple[str, ...] = ()
    """Visible places outside the workspace that lie inside hidden ones."""
    unseen: tuple[str, ...] = ()
    dispensable: tuple[str, ...] = ()
    """As `seen`, places that programs can do without."""

    def is_writable(self, path: str) -> bool:
        """Whether the program may write to a path."""
        return any(is_within(path, each) for each in self.writable)

    def writable_at(self, path: str) -> tuple[str, ...]:
        """The path if the program may write there, else the writable places below it."""
        return (path,) if self.is_writable(path) else tuple(each for each in self.writable if is_within(each, path))


class RuleMounts:
    """Finds the paths that the rules of a grant refuse; searched again for each program. Not thread-safe."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._tree = RuleMatcher(())
        self._before: frozenset[str] = frozenset()

    def set_rules(self, rules: tuple[Rule, ...]) -> None:
        """Set the rules that apply from now on."""
        if rules != self._tree.rules:
            self._tree = RuleMatcher(rules, self._roots)

    # ------------------------------------------------------------------ covers

    def add_to(self, mounts: dict[str, Mount], wanted: ProgramView) -> dict[str, Mount]:
        """The mounts with those of the rules on top; nothing below a refused path is reopened. Raises `ToolError`."""
        return _laid_over(mounts, [mount for mount in self.mounts(wanted) if self._is_visible(mount.path, wanted)])

    def mounts(self, wanted: ProgramView) -> tuple[Mount, ...]:
        """The mounts for refused paths, and for the folders above them, which must not be moved.

        A file that may not be read is `unreadable`. So is a folder with files that git tracks, which git would take for
        deleted otherwise; other folders are `empty`. What may not be written is `read`. Raises `ToolError` if the rules
        match too much, or a path that the program or the sandbox needs.
        """
        if not self._tree.rules:
            return ()
        matches = tuple(self._matches())
        refused = self._refused("write", matches)
        mounts = {path: Mount(path, "read") for refusal in refused for path in wanted.writable_at(refusal)}
        mounts |= {path: Mount(path, _hiding(path)) for path in self._refused("read", matches)}
        self._check_needed(mounts.values(), matches, wanted)
        for match in matches:
            if not self._may_be_moved(match):
                for folder in self._folders_above(match.path):
                    if wanted.is_writable(folder):
                        mounts.setdefault(folder, Mount(folder, "write"))
        return tuple(mounts.values())

    def _check_needed(self, mounts: Iterable[Mount], matches: Iterable[Match], wanted: ProgramView) -> None:
        """Raises `ToolError` with the rule's text if no program could start."""
        own, system = (*self._roots, *wanted.seen), _needed()
        for mount in (each for each in mounts if each.kind in _HIDING):
            hides_cwd = is_within(wanted.cwd, mount.path) and mount != Mount(wanted.cwd, "empty")
            if hides_cwd or any(is_within(place, mount.path) for place in own):
                what = "the workspace, the working directory or the sandbox's own files"
            elif any(is_within(place, mount.path) for place in system):
                what = "what every program needs"
            else:
                continue
            speaking = (each.rule.text for each in matches if each.rule.on == "read" and _leads_to(each, mount.path))
            raise ToolError(
                f"nothing can run in the sandbox: the permission rule {next(speaking, '')} refuses to read "
                f"{mount.path}, which holds {what}. Change the rule, or ask to run without the sandbox"
            )

    def _is_visible(self, path: str, wanted: ProgramView) -> bool:
        seen = any(is_within(path, each) for each in (*self._roots, *wanted.seen, *wanted.dispensable))
        return seen or not any(is_within(path, each) for each in wanted.unseen)

    def hidden(self) -> tuple[str, ...]:
        """Existing paths outside the workspace that may not be read."""
        return tuple(path for path in self._refused("read", self._matches()) if not self._root_of(path))

    def _refused(self, on: Subject, matches: Iterable[Match]) -> tuple[str, ...]:
        """Real paths that exist, outermost only; for links, their targets."""
        found = {real_path(match.path) for match in matches if match.rule.on == on}
        outermost: list[str] = []
        for path in sorted(found, key=lambda each: each.split("/")):
            if not (outermost and is_within(path, outermost[-1])) and os.path.lexists(path):
                outermost.append(path)
        if len(outermost) > _MOST:
            raise _too_much("; ".join(rule.text for rule in self._tree.rules if rule.on == on), f"{_MOST} paths")
        return tuple(outermost)

    def _matches(self) -> Iterator[Match]:
        try:
            yield from self._tree.matches()
        except TooManyFolders as error:
            raise _too_much(str(error), f"{MOST_FOLDERS:,} folders") from None
        except UnreadablePath as error:
            raise _not_found(error) from error

    def _may_be_moved(self, match: Match) -> bool:
        """Whether a read rule matches the same name in every folder of the workspace."""
        root = self._root_of(match.path)
        name = match.path.rpartition("/")[2]
        if match.rule.on == "write":
            return False
        return not root or match.path == root or speaks_of(match.rule, f"{root}/{_ANYWHERE}/{name}")

    def _folders_above(self, path: str) -> Iterator[str]:
        folder = path.rpartition("/")[0]
        while folder != self._root_of(path) and folder.count("/") > 1:
            yield folder
            folder = folder.rpartition("/")[0]

    def _root_of(self, path: str) -> str:
        """The innermost root that contains a path; empty if none does."""
        return max((root for root in self._roots if is_within(path, root)), key=len, default="")

    # ------------------------------------------------------------------ what appears

    def watched_paths(self) -> Iterator[WatchedPath]:
        """Paths to compare when programs have ended: links, which no mount keeps in place."""
        found = tuple(self._written())
        self._before = frozenset(match.path for match in found)
        return (place for match in found if match.kind == "link" for place in self._place(match.path))

    def all_watched_paths(self) -> Iterator[WatchedPath]:
        """As `watched_paths`, with all existing matches: for backends without mounts."""
        found = tuple(self._written())
        self._before = frozenset(match.path for match in found)
        return (place for match in found for place in self._place(match.path))

    def new_paths(self) -> Iterator[WatchedPath]:
        """Paths that the rules refuse to write and that did not exist before."""
        for match in self._written():
            if match.path not in self._before:
                yield from self._place(match.path)

    def _written(self) -> Iterator[Match]:
        """As far as the search reaches; the next start reports if that is not everything. Raises `ToolError`."""
        try:
            yield from (match for match in self._tree.matches() if match.rule.on == "write")
        except TooManyFolders:
            return
        except UnreadablePath as error:
            raise _not_found(error) from error

    def _place(self, path: str) -> Iterator[WatchedPath]:
        if (root := self._root_of(path)) and path != root:
            yield root, path[len(root) :].strip("/")


def _laid_over(mounts: dict[str, Mount], added: Iterable[Mount]) -> dict[str, Mount]:
    merged = dict(mounts)
    for mount in added:
        known = merged.get(mount.path)
        if known is None and mount.kind == "write" and _nearest(mounts, mount.path) != "write":
            continue
        if known is None or known.kind == "write" or mount.kind in _HIDING:
            merged[mount.path] = mount
    hidden = [path for path, mount in merged.items() if mount.kind in _HIDING]
    closed = hidden + [mount.path for mount in added if mount.kind == "read"]
    return {
        path: mount
        for path, mount in merged.items()
        if not any(path != each and is_within(path, each) for each in (closed if mount.kind == "write" else hidden))
    }


@cache
def _needed() -> tuple[str, ...]:
    """Real paths without which no program starts."""
    system = (f"{folder}/{name}" for folder, names in _SYSTEM.items() for name in names)
    return tuple(dict.fromkeys(map(os.path.realpath, (*_SYSTEM, *system))))


def _leads_to(match: Match, path: str) -> bool:
    return real_path(match.path) == path


def _nearest(mounts: dict[str, Mount], path: str) -> str:
    """Kind of the innermost mount above a path; empty if there is none."""
    while path:
        path = path.rpartition("/")[0]
        if path in mounts:
            return mounts[path].kind
    return ""


def _hiding(path: str) -> Literal["empty", "unreadable"]:
    return "empty" if Path(path).is_dir() and not _tracks_below(path) else "unreadable"


def _tracks_below(folder: str) -> bool:
    for above in Path(folder).parents:
        if os.path.lexists(above / ".git"):
            return tracks_below(folder, str(above))
    return False


def _too_much(rules: str, limit: str) -> ToolError:
    return ToolError(
        f"nothing can run in the sandbox: a permission rule refuses more than it can cover ({limit}): {rules[:300]}. "
        "Change the rule so that it begins with the name of a folder, or ask to run without the sandbox"
    )


def _not_found(error: UnreadablePath) -> ToolError:
    return ToolError(
        f"nothing can run in the sandbox: what permission rules refuse can't be found: {error}. Try again, or ask to "
        "run without the sandbox"
    )
