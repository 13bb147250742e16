"""Lists the covers of a program that other programs can remove by replacing a covered path."""

from collections.abc import Iterable, Mapping

from bradawl.core.effects import is_within
from bradawl.safety.permissions.protected_paths import credentials
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.mounts.plan import Mount


class CoverList:
    """The covers of the programs of one layout."""

    def __init__(self, layout: SandboxLayout, system_secrets: Iterable[str]) -> None:
        """`system_secrets` are hidden paths outside of the home folder."""
        hidden = (*layout.own, layout.state, *credentials(layout.home), *system_secrets)
        outside = (path for path in hidden if path and not any(is_within(root, path) for root in layout.roots))
        self._roots = layout.roots
        self._hidden = tuple(Mount(path, "empty") for path in outside)

    def of_program(
        self, mounts: Mapping[str, Mount], uncovered: tuple[str, ...], hidden_now: Iterable[str]
    ) -> tuple[Mount, ...]:
        """The mounts of a program, without those of the roots themselves, and all hidden paths, also missing ones.

        `uncovered` are paths that the program was allowed to use; `hidden_now` are the real paths of those that exist,
        to which links may lead.
        """
        hidden = self._hidden
        if uncovered:
            hidden = tuple(cover for cover in hidden if not _touches(cover.path, uncovered))
        known = {cover.path for cover in hidden}
        more = (Mount(path, "empty") for path in hidden_now if path not in known and path not in mounts)
        return (*(mount for path, mount in mounts.items() if path not in self._roots), *more, *hidden)


def _touches(path: str, shown: tuple[str, ...]) -> bool:
    return any(is_within(path, each) or is_within(each, path) for each in shown)
