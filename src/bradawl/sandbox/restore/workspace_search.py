"""Searches a workspace before and after programs; a large one in two parts, of which the second may run in a thread."""

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.safety.control_characters import in_remark
from bradawl.safety.name_lists import first_of
from bradawl.safety.permissions.protected_paths import run_later_endings
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.check_failures import CheckFailures
from bradawl.sandbox.discovery.folder_index import covering
from bradawl.sandbox.discovery.workspace_survey import SurveyResult
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_history import WorkspaceWatch
from bradawl.sandbox.restore.repositories import Repositories, data_of_roots, git_obeys
from bradawl.sandbox.restore.running_check import WorkspaceCheck

_MOST_CLOSED = 30
_MOST_NAMED = 5
_GO_ON = (
    "move what is not needed out of the workspace, start bradawl in a folder of it, or ask to run without the sandbox"
)
_PARTLY = (
    "the workspace has more folders than can be searched for repositories in the time for it, so these are read-only "
    f"for commands: {{}}. To change that, {_GO_ON}"
)
_CANCELLED = "the command was cancelled meanwhile"
_NOT_EXAMINED = (
    "the command left more folders than can be searched for repositories in the time for it. Tell the user not to run "
    "git in these before the next command has searched them: {}"
)
_FAILED = (
    "the search for repositories that the command made failed. Tell the user not to run git in these before the next "
    "command has searched them: {}"
)
_RUN_LATER_FAILED = (
    "it could not be determined whether the command made or changed files that editors, agents, CI or git run or obey "
    "later"
)
_RUN_LATER = (
    "the command made or changed files that editors, agents, CI or git hooks run or obey later; tell the user: {}"
)


class WorkspaceSearch:
    """The searches of one workspace. Its methods are called from one thread, except `ChangeSearch.finish`."""

    def __init__(self, directories: GitDirectories, others: Iterable[Callable[[], None]] = ()) -> None:
        """`others` are further searches, done with this one in a large workspace; they may run in a thread."""
        self._directories = directories
        self._others = tuple(others)
        self._is_done = self._has_said = False

    def ahead(self) -> "AheadSearch | None":
        """Search before the next `around`. Returns what is left to do, which may run in a thread, or None."""
        self._directories.searches.allow()
        self._is_done = self._directories.search_shortly()
        return None if self._is_done else AheadSearch(self._directories, self._others, self._note_done)

    def _note_done(self) -> None:
        self._is_done = True

    def around(self) -> "ChangeSearch":
        """Search before a program starts, unless `ahead` has just done it. Returns the search after it."""
        self._directories.searches.allow()
        if not self._is_done:
            self._directories.search()
        self._is_done = False
        return ChangeSearch(self._directories)

    def check_running(
        self, watch: WorkspaceWatch, repositories: Repositories, *, beside_command: bool
    ) -> WorkspaceCheck | None:
        """A check of the workspace; None if no program runs that is watched."""
        if not watch.is_busy:
            return None
        check = WorkspaceCheck(
            self._directories,
            watch,
            partial(git_obeys, repositories),
            self._forget,
            beside_command=beside_command,
        )
        check.descriptor = watch.events.watch(data_of_roots(repositories))
        return check

    def _forget(self) -> None:
        self._is_done = False

    def add_to(self, found: SurveyResult, root: str, named: tuple[str, ...]) -> SurveyResult:
        """The result of a survey with what this search found in the root, and paths `named` by git's configuration."""
        directories = self._directories
        closed = (path for path in directories.closed if is_within(path, root))
        return msgspec.structs.replace(
            found,
            repositories=directories.near(root),
            closed=tuple(dict.fromkeys((*found.closed, *closed))),
            run_later=directories.run_later(root),
            named=named,
            unsearched=self._unsearched(root),
        )

    def _unsearched(self, root: str) -> tuple[str, ...]:
        """Folders of a root that have to be read-only, because no search reached them.

        Raises `ToolError` if that would be the whole root.
        """
        rest = [path for path in self._directories.rest if is_within(path, root)]
        closed = covering(rest, root, _MOST_CLOSED)
        if root in closed:
            raise too_large(root)
        return closed

    def notes(self) -> tuple[str, ...]:
        """What to say about an incomplete search before a program; once per session."""
        rest = self._directories.rest
        if not rest or self._has_said:
            return ()
        self._has_said = True
        return (_PARTLY.format(_shortened(covering(rest, "/", _MOST_CLOSED))),)


class AheadSearch:
    """What is left of a search before a program."""

    def __init__(
        self, directories: GitDirectories, others: tuple[Callable[[], None], ...], on_done: Callable[[], None]
    ) -> None:
        self._directories = directories
        self._others = others
        self._on_done = on_done
        self._is_stopped = False

    def __call__(self) -> None:
        """Search to the end. May run in another thread."""
        for search in self._others:
            if self._is_stopped:
                return
            search()
        self._directories.searches.finish()
        if not self._is_stopped:
            self._directories.search(is_searched=True)
            self._on_done()

    def stop(self) -> None:
        """Let the search end soon. It is repeated before the next program."""
        self._is_stopped = True
        self._directories.searches.stop()


class ChangeSearch:
    """The search for what one program changed. Call after it has ended. No method raises an `Exception`: what could
    not be searched is named by `notes`, and counts as not searched when the next program starts.
    """

    def __init__(self, directories: GitDirectories) -> None:
        self._directories = directories
        self._is_done = False
        self._failures = CheckFailures()
        self._notes: tuple[str, ...] = ()
        self._run_later = directories.watch_run_later()

    def shortly(self) -> bool:
        """Search for a few milliseconds; False if `finish` has to be called."""
        self._is_done = CheckFailures().attempt("", lambda: self._directories.search_shortly(opens=True), default=False)
        return self._is_done

    def finish(self) -> None:
        """Search to the end, unless that is done. May run in another thread."""
        if not self._is_done:
            self._failures.attempt("", lambda: self._directories.search(opens=True), None)
            self._is_done = True

    def stop(self) -> None:
        """Let the search in another thread end soon. The workspace counts as not searched."""
        self._is_done = True
        self._failures.add("", _CANCELLED)
        self._directories.searches.stop()

    def conclude(self) -> None:
        """Record what the search found. Call before files are restored, and `notes` afterwards."""
        self.finish()
        self._failures.attempt("", self._directories.note_end, None)
        if self._failures.paths:
            self._directories.note_end(self._failures.reason(""))
        made = CheckFailures().attempt("", self._made_to_run_later, (_RUN_LATER_FAILED,))
        rest = CheckFailures().attempt("", self._not_searched, (_FAILED.format("the workspace"),))
        self._notes = (*made, *rest)

    def add_notes(self, notes: tuple[str, ...]) -> None:
        """Add sentences about what was restored. Call after `conclude`."""
        self._notes += notes

    def _made_to_run_later(self) -> tuple[str, ...]:
        made = self._run_later.made_or_changed()
        return (_RUN_LATER.format(_by_name(made)),) if made else ()

    def _not_searched(self) -> tuple[str, ...]:
        rest, failures = self._directories.unsearched, self._directories.failures
        if failures and rest:
            return (_FAILED.format(_shortened(failures)),)
        return (_NOT_EXAMINED.format(_shortened(covering(rest, "/", _MOST_CLOSED))),) if rest else ()

    def notes(self) -> tuple[str, ...]:
        """Sentences for the program's result."""
        return self._notes


def writes_in_workspace(grant: Grant, layout: SandboxLayout) -> bool:
    """Whether a program may write anything in a root of the workspace."""
    return any(is_within(path, root) or is_within(root, path) for path in grant.writable for root in layout.roots)


def too_large(root: str) -> ToolError:
    """The refusal to start a program in a workspace that can't be searched."""
    return ToolError(
        f"nothing can run in the sandbox: {root} has more folders than can be searched for repositories in the time "
        f"for it. To go on, {_GO_ON}; the next command continues the search"
    )


def _by_name(paths: tuple[str, ...]) -> str:
    """The paths, shortened for each name alone: many files of one kind must not hide a file of another."""
    named: dict[str, list[str]] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        named.setdefault(next(filter(name.endswith, run_later_endings()), name), []).append(path)
    return ", ".join(_shortened(tuple(each)) for each in named.values())


def _shortened(paths: tuple[str, ...]) -> str:
    return first_of(paths, _MOST_NAMED, in_remark)
