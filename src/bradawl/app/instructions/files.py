"""The instruction files of a run: those for its working directory, and those of the folders that calls touch."""

import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from bradawl.app.instructions import places
from bradawl.app.instructions.places import Place

if TYPE_CHECKING:
    from bradawl.app.instructions.reading import Reading

_PATIENCE_S: Final = 2.0
"""How long reading may take before it is given up. Only a file system that hangs needs more."""


class InstructionFiles:
    """Finds and reads the instruction files of one workspace. Nothing is kept: each call looks anew."""

    def __init__(
        self,
        cwd: str,
        roots: tuple[str, ...],
        config_home: str,
        home: str,
        trusts: Callable[[str], bool],
        is_refused: Callable[[str], bool],
        *,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """`trusts` says whether the user trusts the project with this top folder, `is_refused` whether a path must not
        be read unasked. `roots` are the folders of the workspace.
        """
        self._cwd, self._roots, self._home = cwd, roots, home
        self._config_home = config_home
        self._trusts, self._is_refused = trusts, is_refused
        self._patience_s = patience_s

    def first(self) -> tuple[Place, ...]:
        """The user's own place, and the folders from the project's top to the working directory."""
        top = places.project_of(self._cwd)
        is_trusted = self._trusts(top)
        folders = places.folders_between(top, self._cwd)
        return (
            places.users_place(self._config_home, self._home),
            *(places.place_in(folder, top, is_trusted=is_trusted) for folder in folders),
        )

    def on_the_way_to(self, folder: str) -> tuple[Place, ...]:
        """The folders below the working directory, or in another one of the workspace, down to this one."""
        within = (root for root in self._roots if places.folders_between(root, folder))
        root = max(within, key=len, default=None)
        if root is None:
            return ()
        return tuple(self._place(each, root) for each in places.folders_between(root, folder) if each != self._cwd)

    def _place(self, folder: str, root: str) -> Place:
        top = places.project_of(folder)
        is_trusted = self._is_trusted(folder, top, root) and self._is_real_trusted(folder, root)
        return places.place_in(folder, top, is_trusted=is_trusted)

    def _is_real_trusted(self, folder: str, root: str) -> bool:
        """The same for the folder that it is a link to, or lies below one: the project may have made the link."""
        real = os.path.realpath(folder)
        return real == folder or self._is_trusted(real, places.project_of(real), os.path.realpath(root))

    def _is_trusted(self, folder: str, top: str, root: str) -> bool:
        return self._trusts(top) and not places.is_of_others(folder, root)

    def read(self, wanted: Iterable[Place]) -> "Reading | None":
        """The files of these places; None if the file system is too slow."""
        from bradawl.app.instructions.reading import read_places  # most folders have no such files

        found: list[Reading] = []

        def read() -> None:
            found.append(read_places(wanted, self._is_refused, self._home, os.path.realpath(self._config_home)))

        thread = threading.Thread(target=read, daemon=True)  # abandoned if the file system hangs
        try:
            thread.start()
        except RuntimeError:  # the system starts no more threads
            read()
        else:
            thread.join(self._patience_s)
        return found[0] if found else None
