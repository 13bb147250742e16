"""Checks a workspace while programs run, for what makes git run a program: a background job can plant that at any time.

The rest is compared when a program has ended: history, files of editors and CI, and whatever honest git has in between,
such as the steps of a rebase that a program itself began, or a repository that is half removed.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from bradawl.sandbox.backend import CheckResult
from bradawl.sandbox.check_failures import NOT_CHECKED, CheckFailures
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_history import WorkspaceWatch
from bradawl.sandbox.restore.harmless_git_files import adds_only_harmless_settings, is_state
from bradawl.sandbox.restore.snapshot import Entry, Snapshot, holds_any

_ALTERNATES: Final = "/objects/info/alternates"
_REDIRECTIONS: Final = ("/commondir", _ALTERNATES)
"""Files of git's data that lead git to other data. Git never creates them in a repository that exists."""


class WorkspaceCheck:
    """`RunningCheck` of one workspace. Its results count only until the next program starts while none runs."""

    def __init__(
        self,
        directories: GitDirectories,
        watch: WorkspaceWatch,
        git_obeys: Callable[[str], bool],
        forget_search: Callable[[], None],
        *,
        beside_command: bool,
    ) -> None:
        """`git_obeys` says whether a path of the workspace can decide what git runs. `forget_search` makes the
        next start search again. `beside_command` says that a command runs whose end checks everything: then only
        `commondir` and `alternates` of repositories that existed before are due.
        """
        self._directories = directories
        self._watch = watch
        self._git_obeys = git_obeys
        self._forget_search = forget_search
        self._beside_command = beside_command
        self._adoptions = directories.adoptions
        self._failures = CheckFailures()
        self.descriptor = -1
        """Can be read when something happens in git's data; -1 if that is not reported."""

    def is_urgent(self) -> bool:
        """Whether a file was made since the last call by which git is led to other data."""
        return self._watch.events.take()

    def shortly(self) -> bool:
        """Search for a few milliseconds; False if `finish` has to be called."""
        if self._beside_command:
            return True  # repositories that existed are known
        self._failures = CheckFailures()
        return self._failures.attempt("", partial(self._directories.searches.shortly, opens=True), default=False)

    def finish(self) -> None:
        """Search to the end. May block for seconds, and may run in another thread."""
        self._failures = CheckFailures()
        self._failures.attempt("", partial(self._directories.searches.finish, opens=True), None)

    def compare(self, *, restores: bool) -> CheckResult:
        """Find what may not stay. With `restores` it is put back or moved away."""
        if not self._watch.is_busy or self._directories.adoptions != self._adoptions:
            return CheckResult()
        if not self._beside_command:
            self._directories.search(is_searched=True)
            self._forget_search()
        found, unchecked = self._watch.check_running(self._is_due, indexes=not self._beside_command, restores=restores)
        if not self._beside_command:
            unchecked += self._directories.failures
        reasons = map(self._failures.reason, self._failures.paths)
        unchecked += tuple(f"the workspace {NOT_CHECKED}{reason})" for reason in reasons)
        return CheckResult(
            found, unchecked, self._watch.take_set_aside() if restores and not self._beside_command else ()
        )

    def _is_due(self, path: str, before: Entry | None, now: Entry | None, snapshot: Snapshot) -> bool:
        if now is None:  # removing a file arms nothing, and a repository may be half removed
            return False
        if path.endswith(_REDIRECTIONS):
            existed = _had_data(path, snapshot)
            return existed if self._beside_command or path.endswith(_ALTERNATES) else self._git_obeys(path)
        if self._beside_command:
            return False
        if is_state(path):
            return before is not None
        if before is not None and adds_only_harmless_settings(path, before, now):
            return False
        return self._git_obeys(path)


def _had_data(path: str, before: Snapshot) -> bool:
    """Whether the repository to which one of `_REDIRECTIONS` belongs existed before."""
    data = path[: -len(next(filter(path.endswith, reversed(_REDIRECTIONS))))]
    return holds_any(before, data)
