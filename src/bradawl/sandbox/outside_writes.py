"""Where outside of the workspace programs in bubblewrap may be allowed to write."""

from typing import Final

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.path_translation import TEMPORARY, nearest_existing

NOT_BOUND: Final = ("/dev", "/proc", "/sys")
"""Folders of which the sandbox has its own."""


def is_bound(path: str, layout: SandboxLayout) -> bool:
    """Whether a path outside the workspace is to be the machine's own in the sandbox."""
    places = (layout.scratch, *NOT_BOUND)
    return nearest_existing(path) != TEMPORARY and not any(is_within(path, each) for each in places)


def place_outside(path: str, layout: SandboxLayout) -> str:
    """The nearest existing path, which becomes writable. Raises `ToolError` if that would unprotect what is kept."""
    place = nearest_existing(path)
    kept = (*layout.own, layout.state, layout.home, "/")
    if any(each and is_within(each, place) for each in kept) or any(is_within(place, own) for own in layout.own):
        raise ToolError(f"the sandbox can't let a program write to {place} for {path}; use another folder")
    return place


def check_outside(grant: Grant, layout: SandboxLayout) -> None:
    """Raises `ToolError` for a path of the grant to which no program may write."""
    for path in grant.writable:
        if not any(is_within(path, root) for root in layout.roots) and is_bound(path, layout):
            place_outside(path, layout)
