"""What the system prompt says about a project: its files, and how its tests are run."""

import threading
from time import monotonic

from bradawl.app.project_commands import command_lines
from bradawl.app.project_listing import listing
from bradawl.app.project_survey import survey_of

_TIME_S = 0.02
_MORE_S = 0.01
"""Further time to count the lines of files."""
_PATIENCE_S = 0.2
"""How long the whole may take before it is given up. Only a file system that hangs, or a cold disk, needs more."""


class ProjectOverview:
    """Lines about the project in a folder.

    They are found in a thread of their own. If the file system hangs, the thread is abandoned: it does not keep the
    program alive.
    """

    def __init__(
        self, root: str, search_path: str, home: str = "", time_s: float = _TIME_S, *, with_commands: bool = True
    ) -> None:
        """`search_path` is PATH of the model's commands. Of the user's `home` folder and of `/`, which are no projects,
        only the names are read. `with_commands`: the lines say how the tests are run.
        """
        self._root = root
        self._is_project = root not in {"/", home.rstrip("/")}
        self._search_path = search_path
        self._with_commands = with_commands
        self._time_s = time_s
        self._found: list[str] = []
        self._thread: threading.Thread | None = threading.Thread(target=self._find, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system starts no more threads
            self._thread = None
            self._find()

    def lines(self) -> list[str]:
        """The lines. Blocks until they are known, for 0.2 s at most."""
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
            if self._thread.is_alive():
                return ["files here: not listed, the file system is slow"]
        return self._found

    def _find(self) -> None:
        end = monotonic() + self._time_s
        survey = survey_of(self._root, end, enters=self._is_project)
        if survey is not None:
            commands = command_lines(survey, self._search_path) if self._with_commands else ()
            self._found = [*listing(survey, end + _MORE_S), *commands]
