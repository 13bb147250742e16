"""Sessions that cover replaced paths in another way than by default, or not at all."""

from sandboxed_session import SandboxedSession

from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.sandbox.running_covers.cover_mounter import CoverMounter
from bradawl.sandbox.running_covers.cover_watch import PathWatch
from bradawl.sandbox.running_covers.running_covers import RunningCovers


class BlindWatch(PathWatch):
    """A watch that reports nothing."""

    def changed(self) -> set[str]:
        super().changed()
        return set()


def use_covers(made: SandboxedSession, watch: PathWatch | None = None, mounter: CoverMounter | None = None) -> None:
    """Replace the part of the backend that covers paths again."""
    layout = made.layout
    store = PlaceholderStore(layout.state)
    made.backend.running_covers = RunningCovers(layout.roots, layout.home, store, watch=watch, mounter=mounter)
