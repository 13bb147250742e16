"""Collects the mounts of several mount plans for one program."""

import os
from collections.abc import Iterable

from bradawl.core.effects import is_within
from bradawl.core.permissions import Grant
from bradawl.sandbox.discovery.git_folders import data_folders
from bradawl.sandbox.mounts.placeholders import Placeholder
from bradawl.sandbox.mounts.plan import Mount, MountPlan
from bradawl.sandbox.shown_in_tmp import ShownPath


class MountSet:
    """Mounts and placeholders for one program."""

    def __init__(self, unprotected: frozenset[str]) -> None:
        self.unprotected = unprotected
        self.roots: list[str] = []
        self.repositories: tuple[str, ...] = ()
        self.mounts: dict[str, Mount] = {}
        self.placeholders: dict[str, Placeholder] = {}
        self.named: tuple[ShownPath, ...] = ()
        """What is shown of the machine's `/tmp`."""

    def is_writable_by_path(self) -> dict[str, bool]:
        """Whether programs may write to a path, for each path that is mounted."""
        return {path: mount.kind == "write" for path, mount in self.mounts.items()}

    def replaceable(self, grant: Grant, immovable: frozenset[str]) -> tuple[Mount, ...]:
        """The mounts that a running program could swap for a link before bubblewrap mounts them, because bubblewrap
        would follow the link. `immovable` are the paths that none of them can move.
        """
        return tuple(
            mount
            for path, mount in self.mounts.items()
            if mount.kind in ("read", "write")
            and not (path in immovable or path in self.roots or path in grant.writable)
            and any(is_within(path, root) for root in self.roots)
        )

    def close(self, replaceable: Iterable[Mount]) -> None:
        """Make read-only mounts unreadable, and drop writable ones."""
        for mount in replaceable:
            if mount.kind == "write":
                del self.mounts[mount.path]
            else:
                self.mounts[mount.path] = Mount(mount.path, "unreadable")

    def hidden(self) -> tuple[str, ...]:
        """The paths whose contents are not shown."""
        return tuple(path for path, mount in self.mounts.items() if mount.kind in ("secret", "unreadable"))

    def add(self, mounts: Iterable[Mount], uncovered: tuple[str, ...]) -> None:
        """Add mounts. The strictest kind for a path wins, unless the path was allowed by name."""
        for mount in mounts:
            known = self.mounts.get(mount.path)
            is_allowed = mount.kind != "write" and any(
                is_within(mount.path, path) or (is_within(path, mount.path) and not os.path.lexists(path))
                for path in uncovered
            )
            if not is_allowed and (known is None or known.kind == "write"):
                self.mounts[mount.path] = mount

    def add_all(self, plan: MountPlan, uncovered: tuple[str, ...]) -> None:
        """Add the mounts and placeholders of a plan; see `add`."""
        self.placeholders |= plan.placeholders
        self.add(plan.mounts.values(), uncovered)

    def add_data_folders(self, home: str, uncovered: tuple[str, ...]) -> None:
        """Add git's data outside the roots to which files in the roots lead."""
        for folder in data_folders(self.roots, self.repositories, home):
            self.add_all(MountPlan(folder, self.unprotected).for_data_folder(), uncovered)
