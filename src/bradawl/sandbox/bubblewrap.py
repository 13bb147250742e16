"""Sandbox backend for bubblewrap: own namespaces, a read-only file system and a system call filter."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant, Sandbox
from bradawl.safety.git.named_paths import NamedPaths
from bradawl.safety.permissions.protected_paths import credentials
from bradawl.sandbox.backend import Launch, Program, SandboxLayout, agent_search_path
from bradawl.sandbox.bubblewrap_arguments import (
    StartDescriptors,
    bind_parents_in_tmp,
    check_visible,
    contains_any,
    hide,
    mount_arguments,
    not_hidden_by,
    replace_by_empty,
    set_variables,
    show_in_tmp,
)
from bradawl.sandbox.bubblewrap_environment import made_cache, program_environment
from bradawl.sandbox.bubblewrap_errors import explain_setup_error
from bradawl.sandbox.check_failures import ending, in_parts
from bradawl.sandbox.discovery.mount_aliases import MountAliases
from bradawl.sandbox.discovery.other_users import OtherUsersPaths, find_other_users_paths, secrets_within
from bradawl.sandbox.discovery.present_keys import PresentKeys
from bradawl.sandbox.discovery.workspace_survey import SurveyResult, WorkspaceSurvey
from bradawl.sandbox.mounts.mask_sources import make_mask_sources
from bradawl.sandbox.mounts.mount_set import MountSet
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.sandbox.mounts.plan import UNREADABLE, Mount, MountPlan
from bradawl.sandbox.mounts.rule_mounts import ProgramView, RuleMounts
from bradawl.sandbox.network.session_network import SessionNetwork, is_proxied
from bradawl.sandbox.outside_writes import NOT_BOUND, check_outside, is_bound, place_outside
from bradawl.sandbox.path_translation import (
    TEMPORARY,
    PathTranslator,
    emptied_folders,
    interface_folders,
    is_replaced,
    nearest_existing,
    reexposed_paths,
)
from bradawl.sandbox.process_limit import PROCESSES, ProcessLimit
from bradawl.sandbox.removed_folders import removed_folders
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_history import GitHistory, WorkspaceWatch
from bradawl.sandbox.restore.git_indexes import GitIndexes
from bradawl.sandbox.restore.index_places import IndexPlaces
from bradawl.sandbox.restore.protected_files import ChangeRules, ProtectedFiles
from bradawl.sandbox.restore.repositories import Repositories, suspect_since
from bradawl.sandbox.restore.running_check import WorkspaceCheck
from bradawl.sandbox.restore.workspace_search import AheadSearch, ChangeSearch, WorkspaceSearch, writes_in_workspace
from bradawl.sandbox.running_covers.cover_list import CoverList
from bradawl.sandbox.running_covers.running_covers import RunningCovers
from bradawl.sandbox.scratch import make_scratch
from bradawl.sandbox.seccomp import filter_for
from bradawl.sandbox.shown_in_tmp import NamedPathsAtStart, OpenedPaths

NAME: Final = "bubblewrap"
_OnEnd = Callable[[], tuple[str, ...]]
_PARTLY: Final = (
    "{} has more folders than could be searched for files with keys (.env and the like). Commands can read those "
    "in the rest of them until they are found, which goes on with each command"
)


class BubblewrapFeatures(msgspec.Struct, frozen=True):
    """What bubblewrap can do on this machine."""

    program: str
    own_proc: bool = True
    """Mounts a `/proc` that shows the sandbox's processes only; if it can't, programs see the machine's."""
    disables_namespaces: bool = True
    binds_descriptors: bool = False
    """Mounts open folders, so that no link can take a folder's place meanwhile."""


class BubblewrapBackend:
    """`SandboxBackend` with bubblewrap for one workspace. Not thread-safe."""

    def __init__(
        self,
        layout: SandboxLayout,
        features: BubblewrapFeatures,
        lacks: tuple[str, ...] = (),
        *,
        others: OtherUsersPaths | None = None,
        most_processes: int = PROCESSES,
        network: SessionNetwork | None = None,
        search_within_s: float = math.inf,
    ) -> None:
        """Nothing is created before the first launch. `close` removes `layout.scratch`, unless it is kept.
        `others` are paths of other users to hide; by default they are searched for. `network` is closed by `close`.
        `search_within_s` limits the search of each root for repositories, before and after a command.
        """
        hidden = find_other_users_paths(layout.home, layout.roots) if others is None else others
        self._layout = layout
        self._features = features
        self._lacks = lacks
        self._processes = ProcessLimit(most_processes)
        self._network = network or SessionNetwork()
        memory = f"{layout.state}/tracked-keys" if layout.state else ""
        self._surveys = {root: WorkspaceSurvey(root, follows=True, memory=memory) for root in layout.roots}
        self._placeholders = PlaceholderStore(layout.state)
        self._covers = CoverList(layout, hidden.secrets)
        self.running_covers = RunningCovers(layout.roots, layout.home, self._placeholders)
        """Keeps the covers on running programs. May be replaced before the first launch."""
        named = NamedPaths(layout.home, layout.git_configs)
        self._directories = GitDirectories(layout.roots, run_later=named.hook_folder_names(), within_s=search_within_s)
        self._search = WorkspaceSearch(self._directories, [each.begin for each in self._surveys.values()])
        found = self._repositories = Repositories(
            layout.roots, layout.home, self._directories, has_mounts=True, state=layout.state, named=named
        )
        self._rule_mounts = RuleMounts(layout.roots)
        self._watched = _watch(layout, found, self._rule_mounts, self._directories) if layout.state else None
        self._others, self._system_secrets = hidden.folders, hidden.secrets
        self._secrets = credentials(layout.home)
        self._present_secrets, self._aliases = PresentKeys(self._secrets, layout.home, layout.roots), MountAliases()
        self._named = NamedPathsAtStart(layout, self._present_secrets, self._aliases, opens=features.binds_descriptors)
        self._opened = OpenedPaths()
        self._shown: tuple[str, ...] = ()
        self._shown_secrets: tuple[str, ...] = ()
        self._shown_for: str | None = None
        self._is_ready = self._has_scratch = self._has_said = False
        real = filter(None, (*layout.roots, *layout.readable, layout.cache, layout.home))
        self._translator = PathTranslator(
            layout.scratch, [path for path in real if is_within(path, TEMPORARY)], layout.shown_in_tmp
        )

    @property
    def sandbox(self) -> Sandbox:
        """Its name and the guarantees it lacks."""
        return Sandbox(NAME, self._lacks)

    def host_path(self, path: str) -> str:
        """Path on the host of what programs call `path`. Creates the folder behind `/tmp` if it does not exist yet."""
        place = self._translator.host_path(path)
        if place != path and not self._has_scratch:
            self._make_scratch()
        return place

    def close(self) -> None:
        """Remove the temporary folder and all else it created; safe to call twice."""
        if self._watched:
            self._watched.close()
        self._network.close()
        self.running_covers.close()
        self._placeholders.close()
        self._processes.close()
        for survey in self._surveys.values():
            survey.close()
        self._is_ready = self._has_scratch = False

    # ------------------------------------------------------------------ a start

    def search_ahead(self, grant: Grant) -> AheadSearch | None:
        """Search the workspace for the next `launch`, if programs may write there; see `SearchesAhead`."""
        return self._search.ahead() if self._watched and writes_in_workspace(grant, self._layout) else None

    def check_running(self, *, beside_command: bool) -> WorkspaceCheck | None:
        """See `ChecksWhileRunning`."""
        watch, found = self._watched, self._repositories
        return self._search.check_running(watch, found, beside_command=beside_command) if watch else None

    def check_grant(self, grant: Grant) -> None:
        """See `ChecksGrants`."""
        check_outside(grant, self._layout)

    def launch(self, program: Program, grant: Grant) -> Launch:
        """The command that starts a program within a grant. Raises `ToolError` if it can't be confined."""
        with contextlib.closing(self._opened):
            return self._launched(program, grant)

    def _launched(self, program: Program, grant: Grant) -> Launch:
        self._make_ready(program)
        is_watched = self._watched is not None and writes_in_workspace(grant, self._layout)
        search = self._search.around() if is_watched else None
        if self._watched:
            self._watched.check_again()  # before mounts are planned: it may move files
        with contextlib.ExitStack() as cached:
            for each in (*self._surveys.values(), self._repositories):
                cached.enter_context(each.caching())
            plan, release, withdraw = self._prepared_mounts(program, grant, search)
        hidden = self._hidden(grant, plan)
        with contextlib.ExitStack() as undo:
            undo.callback(withdraw)
            listed = self._covers.of_program(plan.mounts, grant.uncovered, hidden)
            covers = self.running_covers.begin(listed, plan.placeholders)
            undo.pop_all()
            place = next(iter(plan.roots), "/")
            on_end = ending(place, covers.close, release)
            undo.callback(ending(place, covers.close, withdraw))
            environment = program_environment(self._layout, self._translator, program, grant)
            arguments = [*self._arguments(program, grant, plan, hidden), *set_variables(environment)]
            launch = self._launch(program, grant, arguments, on_end)
            undo.pop_all()
            return msgspec.structs.replace(launch, search_after=search, covers=covers)

    def _notes(self) -> tuple[str, ...]:
        """Notes for the program's result; each is given once per session."""
        partly = next((root for root, survey in self._surveys.items() if not survey.is_whole), "")
        is_new, self._has_said = bool(partly) and not self._has_said, self._has_said or bool(partly)
        return (*((_PARTLY.format(partly),) if is_new else ()), *self._search.notes())

    def _found(self, root: str) -> SurveyResult:
        """What is to be covered in a root: files with keys by the survey, the rest by the index of folders."""
        found = self._surveys[root].result()
        return self._search.add_to(found, root, self._repositories.named_by_config(root)) if self._watched else found

    def _prepared_mounts(
        self, program: Program, grant: Grant, search: ChangeSearch | None
    ) -> tuple[MountSet, _OnEnd, _OnEnd]:
        """The mounts for the program, and the functions to call when it has ended, or if it does not start."""
        plan = MountSet(frozenset())
        if self._watched and grant.writable:
            removed = () if self._watched.is_busy else removed_folders(program, self._translator.host_path(program.cwd))
            plan = MountSet(_checked_afterwards(self._repositories, removed, is_busy=self._watched.is_busy))
        for path in grant.writable:
            self._add_writable(path, grant, plan)
        for root in self._layout.roots:
            if root not in plan.roots:
                plan.add(MountPlan(root).for_read_only_root(self._surveys[root].result()), grant.uncovered)
        if plan.roots:
            plan.add_data_folders(self._layout.home, grant.uncovered)
        if self._watched:
            _close_replaceable(plan, grant, self._watched, self.running_covers, can_write=search is not None)
        self._rule_mounts.set_rules(grant.rules)
        hidden = (*self._others, *self._system_secrets, *self._present_secrets.now())
        plan.named = self._named.opened(self._opened, hidden, self._rule_mounts.hidden, grant.uncovered)
        if grant.rules:
            seen = tuple(path for path in (*self._layout.readable, *self._shown, self._layout.cache) if path)
            unseen = (TEMPORARY, *NOT_BOUND, *emptied_folders(), *self._hidden(grant, plan))
            view = ProgramView(grant.writable, program.cwd, seen, unseen, tuple(each.path for each in plan.named))
            plan.mounts = self._rule_mounts.add_to(plan.mounts, view)
        watched = self._watched if search else None
        return plan, *_hold_placeholders(self._placeholders, plan, grant, watched, search)

    def _launch(self, program: Program, grant: Grant, arguments: list[str], on_end: _OnEnd) -> Launch:
        """Pass the arguments by a descriptor: the program's variables must not reach bubblewrap itself, where they
        could load code.
        """
        if "\0".join(arguments).count("\0") != len(arguments) - 1:
            raise ValueError("embedded null byte")
        rules = filter_for(internet=True, streams_only=True)
        try:
            roots = self._layout.roots if self._features.binds_descriptors else ()
            waits, named = is_proxied(program, grant), self._opened.take()
            opened = StartDescriptors(arguments, rules, waits=waits, roots=roots, opened=named)
        except OSError as error:
            raise ToolError(
                f"the sandbox can't be set up now: {' '.join(filter(None, (error.filename, error.strerror)))}; "
                "end other programs, or try again later"
            ) from error
        network = None
        if opened.release_fd >= 0:
            network = self._network.command(program.permit, opened.release_fd, whole_network=grant.network)
        return Launch(
            argv=(self._features.program, "--args", str(opened.given[-1]), "--", *program.argv),
            cwd="/",
            environment={},
            inherited=(*opened.given, *program.inherited),
            close_after_start=opened.given,
            info_fd=opened.info_fd,
            network=network,
            reports_signals_as_codes=True,
            on_end=on_end,
            explain_setup_error=explain_setup_error,
            notes=(*self._notes(), *self._named.take_remarks()),
            limit_processes=self._processes.limit_processes,
        )

    # ------------------------------------------------------------------ what is made once

    def _make_ready(self, program: Program) -> None:
        path = agent_search_path(program)
        if path != self._shown_for:
            self._shown, self._shown_for = reexposed_paths(self._layout, path, self._others), path
            self._shown_secrets = secrets_within(self._shown, self._others)
        if self._is_ready:
            return
        self._placeholders.clean_up_after_others()
        if not self._has_scratch:
            self._make_scratch()
        try:
            make_mask_sources(Path(self._empties))
        except OSError as error:
            raise ToolError(
                f"the sandbox needs a temporary folder, and {error.filename} can't be made: {error.strerror}"
            ) from error
        self._is_ready = True

    def _make_scratch(self) -> None:
        make_scratch(self._layout, self._placeholders)
        self._has_scratch = True

    @property
    def _empties(self) -> str:
        return f"{self._layout.state or self._layout.scratch + '.state'}/empty"

    # ------------------------------------------------------------------ what is writable

    def _add_writable(self, path: str, grant: Grant, plan: MountSet) -> None:
        """Add a path of the grant with the mounts of the root it lies in."""
        layout = self._layout
        root = next((each for each in layout.roots if is_within(path, each)), "")
        if not root:
            if is_bound(path, layout):
                _plan_outside(path, grant, plan, layout)
            return
        if os.path.realpath(root) != root:
            raise ToolError(f"the workspace {root} has been replaced by a link; end this session and start anew")
        found = self._found(root)
        whole = MountPlan(root, plan.unprotected).for_workspace(found).add_installation(self._layout.installation)
        if path == root:
            plan.roots.append(root)
            plan.repositories += (root, *found.repositories)
            plan.add_all(whole, grant.uncovered)
        elif not any(is_within(path, mount.path) for mount in whole.mounts.values() if mount.kind != "write"):
            plan.add([Mount(nearest_existing(path), "write")], ())
            plan.add([each for each in whole.mounts.values() if is_within(each.path, path)], grant.uncovered)

    # ------------------------------------------------------------------ arguments

    def _arguments(self, program: Program, grant: Grant, plan: MountSet, hidden: tuple[str, ...]) -> list[str]:
        """All arguments. Cheap mounts come last: for each bind, bubblewrap scans the list of existing mounts."""
        features, layout = self._features, self._layout
        arguments = ["--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--new-session"]
        arguments += ["--disable-userns"] * features.disables_namespaces
        arguments += ["--ro-bind", "/", "/"]
        seen = [*layout.readable, *program.readable, *plan.mounts, *layout.roots, layout.cache, *grant.uncovered]
        seen += (*self._shown, layout.scratch)
        last: list[str] = []
        for folder in not_hidden_by(emptied_folders(), plan.mounts):
            (arguments if contains_any(folder, seen) else last).extend(("--tmpfs", folder))
        for path in not_hidden_by((*self._others, *self._system_secrets), plan.mounts):
            (arguments if contains_any(path, seen) else last).extend(hide(path, seen, self._empties))
        last += [word for folder in interface_folders() for word in hide(folder, (), self._empties)]
        arguments += ["--bind", layout.scratch, TEMPORARY]
        named = [each.path for each in plan.named]
        arguments += bind_parents_in_tmp((*seen, *named), self._shown, layout.scratch)
        arguments += show_in_tmp(plan.named, self._opened, self._empties)
        arguments += [word for path in self._shown for word in ("--ro-bind", path, path)]
        for path in not_hidden_by(hidden, plan.mounts):
            if path in self._secrets and not contains_any(path, seen):  # read-only, to refuse programs that write there
                arguments += replace_by_empty(path, self._empties)
            else:
                (arguments if contains_any(path, seen) else last).extend(hide(path, seen, self._empties))
        arguments += ["--bind", layout.scratch, layout.scratch]  # it may lie in a folder that is hidden
        for path in (*layout.readable, *program.readable):
            if os.path.lexists(path) and self._is_covered_up(path, hidden):
                arguments += ["--ro-bind", path, path]
        covered = [root for root in layout.roots if self._is_covered_up(root, hidden)]
        arguments += _mount_all(plan, grant, covered, made_cache(layout.cache, grant), self._empties)
        # As root, a program could write the kernel's settings, one of which names a program that the kernel starts.
        arguments += ["--proc", "/proc", "--remount-ro", "/proc"] * features.own_proc
        return [*arguments, "--dev", "/dev", *last, "--chdir", self._place_of(program.cwd, hidden), "--clearenv"]

    def _hidden(self, grant: Grant, plan: MountSet) -> tuple[str, ...]:
        """The hidden folders and files that exist, as real paths, and other paths of what is hidden in any way."""
        layout = self._layout
        found: dict[str, None] = {}
        for path in (*layout.own, layout.state, *self._present_secrets.now(), *self._shown_secrets):
            if path and os.access(path, os.F_OK):
                real = os.path.realpath(path)
                if os.path.lexists(real) and not any(is_within(real, each) for each in (*found, *grant.uncovered)):
                    found[real] = None
        away = (*emptied_folders(), TEMPORARY, *NOT_BOUND, *layout.roots, *grant.uncovered)
        return (*found, *self._aliases.of((*found, *self._others, *self._system_secrets, *plan.hidden()), away))

    def _place_of(self, cwd: str, hidden: tuple[str, ...]) -> str:
        away = () if any(is_within(cwd, each) for each in self._shown) else self._others
        place = self._translator.host_path(cwd)
        check_visible(place, (*hidden, *away), (*self._layout.roots, self._layout.scratch))
        return self._translator.sandbox_path(place)

    def _is_covered_up(self, path: str, hidden: tuple[str, ...]) -> bool:
        return is_replaced(path, (*self._others, *self._system_secrets, *hidden))


def _mount_all(plan: MountSet, grant: Grant, covered: list[str], cache: str, empties: str) -> Iterator[str]:
    """Outer folders first: mounts inside a folder must come after the mount of the folder. `covered` are roots in
    folders that are hidden or replaced.
    """
    mounts = {**plan.mounts, **({cache: Mount(cache, "write")} if cache else {})}
    for root in covered:  # before the mounts on parts of them
        if root not in mounts:
            yield from ("--ro-bind", root, root)
    for path in sorted(mounts, key=lambda each: each.split("/")):
        yield from mount_arguments(mounts[path], empties)
    for path in grant.uncovered:
        if os.path.lexists(path) and not any(is_within(path, each) for each in NOT_BOUND):
            is_writable = any(is_within(path, each) for each in grant.writable)
            yield from ("--bind" if is_writable else "--ro-bind", path, path)


def _close_replaceable(
    plan: MountSet, grant: Grant, watched: WorkspaceWatch, covers: RunningCovers, *, can_write: bool
) -> None:
    """Make what is new since other programs began read-only for them as well, so that they can't replace it. What can't
    be covered for all of them is closed for the new program.
    """
    immovable = watched.immovable(plan.mounts)
    others = plan.replaceable(grant, immovable)
    if read_only := [mount.path for mount in others if mount.kind == "read"]:
        # No more than needed: a folder that is only kept in its place could be one that a program moves.
        around = (each for each in others if any(map(partial(_are_nested, each.path), read_only)))
        immovable |= covers.cover_also(tuple(around))
        others = plan.replaceable(grant, immovable)
        covers.note_closed(mount.path for mount in others if mount.kind == "read")
    plan.close(others)
    if can_write:
        watched.set_immovable(immovable)


def _are_nested(path: str, other: str) -> bool:
    return is_within(path, other) or is_within(other, path)


def _checked_afterwards(found: Repositories, removed: tuple[str, ...], *, is_busy: bool) -> frozenset[str]:
    """Repositories without mounts: those that programs created, and those in folders that the program removes."""
    to_remove = found.expect_removal(removed)
    return found.harmless_new_ones(is_busy=is_busy) | to_remove


def _watch(
    layout: SandboxLayout, found: Repositories, rule_mounts: RuleMounts, directories: GitDirectories
) -> WorkspaceWatch:
    files = ProtectedFiles(
        lambda: (*found.watched_paths(), *rule_mounts.watched_paths()),
        f"{layout.state}/put-back",
        in_parts(found.new_paths, rule_mounts.new_paths),
        ChangeRules(found.may_stay, found.may_be_new, found.without_programs),
        prevents_changes=True,
        suspect_since=partial(suspect_since, found),
    )
    indexes = GitIndexes(IndexPlaces(layout.roots, layout.home, directories), f"{layout.state}/put-back")
    return WorkspaceWatch(files, GitHistory(found.repository_locations, f"{layout.state}/history"), indexes)


def _hold_placeholders(
    store: PlaceholderStore,
    plan: MountSet,
    grant: Grant,
    watched: WorkspaceWatch | None,
    search: ChangeSearch | None,
) -> tuple[_OnEnd, _OnEnd]:
    """Create placeholders; returns the functions to call when the program has ended, or if it does not start."""
    if watched:
        hidden = (each.path for each in plan.mounts.values() if each.kind in (*UNREADABLE, "missing"))
        watched.begin(hidden, grant.uncovered, plan.is_writable_by_path())  # before placeholders exist
    try:
        held = store.acquire(placeholder for path, placeholder in plan.placeholders.items() if path in plan.mounts)
    except BaseException:
        if watched:
            watched.withdraw(grant.uncovered)
        raise

    place, release = next(iter(plan.roots), "/"), partial(store.release, held)
    if not watched or not search:
        return ending(place, release), ending(place, release)
    changes = search.conclude, partial(watched.end, grant.uncovered), lambda: search.add_notes(watched.notes())
    return ending(place, release, *changes), ending(place, release, partial(watched.withdraw, grant.uncovered))


def _plan_outside(path: str, grant: Grant, plan: MountSet, layout: SandboxLayout) -> None:
    """Add a path outside the workspace. If it is missing, the nearest existing folder becomes writable."""
    place = place_outside(path, layout)
    found = WorkspaceSurvey(place).result() if Path(place).is_dir() else None
    mounts = MountPlan(place).for_workspace(found).mounts if found else {}
    plan.add([Mount(place, "write")], ())
    plan.add([each for each in mounts.values() if os.path.lexists(each.path)], (*grant.uncovered, path))
