"""Which sandbox holds programs here: chosen once, by how it behaves."""

from collections.abc import Mapping

from bradawl.core.permissions import Sandbox
from bradawl.safety.sandbox.confinement import Confinement, Layout


class SandboxChoice:
    """The sandbox of one workspace."""

    def __init__(self, layout: Layout, environment: Mapping[str, str]) -> None:
        """`environment` is what programs would see without a sandbox. Nothing is looked at before it is asked for."""
        self._layout = layout
        self._environment = environment

    def begin(self) -> None:
        """Start looking, without waiting for what is found."""

    def confinement(self) -> Confinement | None:
        """What holds programs; None where nothing does. Waits for the look to end, the first time."""
        return None

    @property
    def sandbox(self) -> Sandbox:
        """What it is called and what it can't hold."""
        found = self.confinement()
        return Sandbox() if found is None else found.sandbox

    @property
    def why(self) -> tuple[str, ...]:
        """What was found, a line each; for who wonders why it is this one."""
        return ()

    def close(self) -> None:
        """Give back what it holds; safe to call twice."""
