"""What a hazard check knows about the command besides its words."""

from collections.abc import Callable

import msgspec

from bradawl.safety.shell.argv import Argv
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets


class CommandContext(msgspec.Struct, frozen=True):
    """Protected paths and working directory of one command."""

    protected: ProtectedTargets
    cwd: str | None
    """Working directory; None if unknown."""

    def guards(self, *texts: str, replaces: bool = False) -> str:
        """Why the first protected one of these paths may not be written to, or not be replaced; empty if none is."""
        return self.protected.guards(texts, self.cwd, replaces=replaces)


HazardCheck = Callable[[CommandContext, Argv], str]
"""Returns the reason why a command must not run; empty for none."""
