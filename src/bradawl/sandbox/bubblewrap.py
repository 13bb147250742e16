"""Holds programs by bubblewrap: namespaces of their own, the machine read-only, and a filter of system calls."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant, Sandbox
from bradawl.core.workspace import PROCESS_LIMIT
from bradawl.safety.permissions.protected_paths import credentials
from bradawl.sandbox.backend import Launch, Layout, Program, path_of
from bradawl.sandbox.bubblewrap_errors import explained
from bradawl.sandbox.discovery.git_folders import data_folders
from bradawl.sandbox.discovery.other_users import Others, find_others, secrets_within
from bradawl.sandbox.discovery.workspace_survey import Survey
from bradawl.sandbox.environment import held_environment
from bradawl.sandbox.mounts.mask_sources import make_empties
from bradawl.sandbox.mounts.placeholders import Ghost, Leftovers
from bradawl.sandbox.mounts.plan import Cover, Plan, is_empty_folder
from bradawl.sandbox.mounts.rule_mounts import RuleCovers, Wanted
from bradawl.sandbox.path_translation import TEMPORARY, Names, emptied, existing, is_replaced, shown
from bradawl.sandbox.process_limit import PROCESSES, ProcessLimit
from bradawl.sandbox.restore.git_history import History, Watches
from bradawl.sandbox.restore.protected_files import ProtectedFiles
from bradawl.sandbox.restore.repositories import Repositories
from bradawl.sandbox.seccomp import filter_for
from bradawl.sandbox.tool_caches import cache_variables

NAME: Final = "bubblewrap"
_NOT_BOUND: Final = ("/dev", "/proc", "/sys")
_CLOSED: Final = ("--perms", "0555")
_PARTLY: Final = (
    "{} has more folders than could be looked through for files with keys (.env and the like). Commands can read those "
    "in the rest of them until they are found, which goes on with each command"
)


class Shape(msgspec.Struct, frozen=True):
    """What bubblewrap can do here."""

    program: str
    own_proc: bool = True
    """`/proc` shows the programs of the sandbox only; where none can be mounted the machine's is seen."""
    disables_namespaces: bool = True


class Bubblewrap:
    """`Confinement` by bubblewrap for one workspace. Not for several threads."""

    def __init__(
        self,
        layout: Layout,
        shape: Shape,
        lacks: tuple[str, ...] = (),
        *,
        others: Others | None = None,
        most_processes: int = PROCESSES,
    ) -> None:
        """Nothing is made before the first launch; `layout.scratch` must not exist yet, and is removed by `close`.

        `others` is what is not shown; looked for if not given.
        """
        hidden = find_others(layout.home, layout.roots) if others is None else others
        self._layout = layout
        self._shape = shape
        self._lacks = lacks
        self._processes = ProcessLimit(most_processes)
        memory = f"{layout.state}/tracked-keys" if layout.state else ""
        self._surveys = {root: Survey(root, follows=True, memory=memory) for root in layout.roots}
        self._leftovers = Leftovers(layout.state)
        self._repositories = Repositories(layout.roots, layout.home, self._surveys.values())
        self._ruled = RuleCovers(layout.roots)
        self._watched = self._watch() if layout.state else None
        self._others, self._system_secrets = hidden.folders, hidden.secrets
        self._secrets = credentials(layout.home)
        self._shown: tuple[str, ...] = ()
        self._shown_secrets: tuple[str, ...] = ()
        self._shown_for: str | None = None
        self._is_ready = self._has_scratch = self._has_said = False
        real = (*layout.roots, *layout.readable, layout.cache, layout.home)
        self._names = Names(layout.scratch, [path for path in real if path and is_within(path, TEMPORARY)])

    def _watch(self) -> Watches:
        state, found, ruled = self._layout.state, self._repositories, self._ruled
        places, appeared = lambda: (*found.places(), *ruled.places()), lambda: (*found.appeared(), *ruled.appeared())
        files = ProtectedFiles(places, f"{state}/put-back", appeared, found.may_stay, is_held=True)
        return Watches(files, History(found.histories, f"{state}/history"))

    @property
    def sandbox(self) -> Sandbox:
        """What it is called and what it can't hold."""
        return Sandbox(NAME, self._lacks)

    def outside(self, path: str) -> str:
        """The real path of what programs inside call `path`. The folder behind `/tmp` is there from the first on."""
        place = self._names.outside(path)
        if place != path and not self._has_scratch:
            self._make_scratch()
        return place

    def close(self) -> None:
        """Remove the temporary folder and what else was made; safe to call twice."""
        if self._watched:
            self._watched.close()
        self._leftovers.close()
        self._processes.close()
        for survey in self._surveys.values():
            survey.close()
        self._is_ready = self._has_scratch = False

    # ------------------------------------------------------------------ a start

    def launch(self, program: Program, grant: Grant) -> Launch:
        """How to start a program within a grant. Raises `ToolError` where it can't be held."""
        self._make_ready(program)
        with self._repositories.at_once():
            plan, on_end = self._begun(program, grant)
        with contextlib.ExitStack() as undo:
            undo.callback(on_end)
            environment = self._environment(program, grant)
            arguments = [*self._arguments(program, grant, plan), *_variables(environment)]
            launch = self._launch(program, grant, arguments, on_end)
            undo.pop_all()
            return launch

    def _notes(self) -> tuple[str, ...]:
        """Said once."""
        partly = next((root for root, survey in self._surveys.items() if not survey.is_whole), "")
        is_said, self._has_said = self._has_said, self._has_said or bool(partly)
        return (_PARTLY.format(partly),) if partly and not is_said else ()

    def _begun(self, program: Program, grant: Grant) -> "tuple[_Writable, Callable[[], tuple[str, ...]]]":
        """What the program may write to, and what is to be done when it has ended."""
        # What nobody would look at afterwards is covered.
        plan = _Writable(self._repositories.made() if self._watched and grant.writable else frozenset())
        for path in grant.writable:
            self._plan(path, grant, plan)
        for root in self._layout.roots:
            if root not in plan.roots:
                plan.add(Plan(root).of_what_is_only_read(self._surveys[root].finds()), grant.uncovered)
        if plan.roots:
            self._add_data_folders(plan, grant)
        if self._watched:
            plan.close_what_may_be_swapped(grant, self._watched.pinned(plan.covers))
        self._ruled.use(grant.rules)
        if grant.rules:
            seen = tuple(path for path in (*self._layout.readable, *self._shown, self._layout.cache) if path)
            unseen = (TEMPORARY, *_NOT_BOUND, *emptied(), *self._hidden(grant))
            plan.covers = self._ruled.added(plan.covers, Wanted(grant.writable, program.cwd, seen, unseen))
        return plan, self._prepare(plan, grant)

    def _launch(
        self, program: Program, grant: Grant, arguments: list[str], on_end: Callable[[], tuple[str, ...]]
    ) -> Launch:
        """The arguments go by a descriptor: the variables of the program are none of bubblewrap's own, which they could
        make load anything.
        """
        opened: list[int] = []
        arguments += ("--seccomp", "", "--info-fd", "", "")
        if "\0".join(arguments).count("\0") != len(arguments) - 1:
            raise ValueError("embedded null byte")
        try:
            rules = filter_for(grant.network, loopback=True, streams_only=not grant.network)
            opened.append(_file_in_memory("filter", rules))
            told, tells = os.pipe()
            opened += (tells, told)
            arguments[-4], arguments[-2] = str(opened[0]), str(tells)
            opened.append(_file_in_memory("arguments", os.fsencode("\0".join(arguments))))
        except OSError as error:
            for each in opened:
                os.close(each)
            raise ToolError(
                f"the sandbox can't be set up now: {error.strerror}; end other programs, or try again later"
            ) from error
        given = (opened[0], tells, opened[-1])
        return Launch(
            argv=(self._shape.program, "--args", str(opened[-1]), "--", *program.argv),
            cwd="/",
            environment={},
            inherited=(*given, *program.inherited),
            close_after_start=given,
            told=told,
            tells_signals_as_codes=True,
            on_end=on_end,
            explained=explained,
            notes=self._notes(),
            counted=self._processes.counted,
        )

    def _prepare(self, plan: "_Writable", grant: Grant) -> Callable[[], tuple[str, ...]]:
        """Make what has to stand where something is missing; gives back what is to be done at the end."""
        watched = self._watched if plan.roots else None
        if watched:
            watched.begin()  # before anything stands in for what is missing
        try:
            held = self._leftovers.hold(ghost for path, ghost in plan.ghosts.items() if path in plan.covers)
        except ToolError:
            if watched:
                watched.end()
            raise

        def end() -> tuple[str, ...]:
            self._leftovers.release(held)
            return watched.end(grant.uncovered) if watched else ()

        return end

    # ------------------------------------------------------------------ what is made once

    def _make_ready(self, program: Program) -> None:
        path = path_of(program)
        if path != self._shown_for:
            self._shown, self._shown_for = shown(self._layout, path, self._others), path
            self._shown_secrets = secrets_within(self._shown, self._others)
        if self._is_ready:
            return
        self._leftovers.clean_up_after_others()
        if not self._has_scratch:
            self._make_scratch()
        try:
            make_empties(Path(self._empties))
        except OSError as error:
            raise ToolError(
                f"the sandbox needs a temporary folder, and {error.filename} can't be made: {error.strerror}"
            ) from error
        self._is_ready = True

    def _make_scratch(self) -> None:
        try:
            self._leftovers.make_folder(self._layout.scratch)
        except OSError as error:
            raise ToolError(f"the sandbox's temporary folder can't be made: {error}") from error
        self._has_scratch = True

    @property
    def _empties(self) -> str:
        return f"{self._layout.state or self._layout.scratch + '.state'}/empty"

    # ------------------------------------------------------------------ what is writable

    def _plan(self, path: str, grant: Grant, plan: "_Writable") -> None:
        """Add a path of the grant, with the covers of the root it lies in."""
        layout = self._layout
        root = next((each for each in layout.roots if is_within(path, each)), "")
        if not root:
            is_private = existing(path) == TEMPORARY
            if not is_private and not any(is_within(path, each) for each in (layout.scratch, *_NOT_BOUND)):
                _plan_outside(path, grant, plan, layout)
            return
        if os.path.realpath(root) != root:
            raise ToolError(f"the workspace {root} has been replaced by a link; end this session and start anew")
        finds = self._surveys[root].finds()
        whole = Plan(root, plan.free).of_workspace(finds).of_installation(self._layout.installation)
        if path == root:
            plan.roots.append(root)
            plan.repositories += (root, *finds.repositories)
            plan.ghosts |= whole.ghosts
            plan.add(whole.covers.values(), grant.uncovered)
        elif not any(is_within(path, cover.path) for cover in whole.covers.values() if cover.kind != "write"):
            plan.add([Cover(existing(path), "write")], ())
            plan.add([each for each in whole.covers.values() if is_within(each.path, path)], grant.uncovered)

    def _add_data_folders(self, plan: "_Writable", grant: Grant) -> None:
        for folder in data_folders(plan.roots, plan.repositories, self._layout.home):
            data = Plan(folder, plan.free).of_data_folder()
            plan.ghosts |= data.ghosts
            plan.add(data.covers.values(), grant.uncovered)

    # ------------------------------------------------------------------ arguments

    def _arguments(self, program: Program, grant: Grant, plan: "_Writable") -> list[str]:
        """What costs bubblewrap least comes last: for each bind it looks through the list of all mounts there are."""
        shape, layout = self._shape, self._layout
        arguments = ["--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--new-session"]
        arguments += ["--disable-userns"] * shape.disables_namespaces + ["--share-net"] * grant.network
        arguments += ["--ro-bind", "/", "/"]
        seen = [*layout.readable, *program.readable, *plan.covers, *layout.roots, layout.cache, *grant.uncovered]
        seen += (*self._shown, layout.scratch)
        hidden = self._hidden(grant)
        last: list[str] = []
        for folder in _left(emptied(), plan.covers):
            (arguments if _holds(folder, seen) else last).extend(("--tmpfs", folder))
        for path in _left((*self._others, *self._system_secrets), plan.covers):
            (arguments if _holds(path, seen) else last).extend(_hide(path, seen, self._empties))
        arguments += ["--bind", layout.scratch, TEMPORARY]
        arguments += _pinned(seen, layout.scratch)
        arguments += ["--bind", layout.scratch, layout.scratch]
        arguments += [word for path in self._shown for word in ("--ro-bind", path, path)]
        for path in _left(hidden, plan.covers):
            if path in self._secrets and not _holds(path, seen):  # read-only, for who would write there
                arguments += _replace(path, self._empties)
            else:
                (arguments if _holds(path, seen) else last).extend(_hide(path, seen, self._empties))
        for path in (*layout.readable, *program.readable):
            if os.path.lexists(path) and self._is_covered_up(path, hidden):
                arguments += ["--ro-bind", path, path]
        arguments += self._covered(plan, grant, hidden)
        # To who starts us as root the kernel's settings would be open, and one of them names a program it starts.
        arguments += ["--proc", "/proc", "--remount-ro", "/proc"] * shape.own_proc
        return [*arguments, "--dev", "/dev", *last, "--chdir", self._place_of(program, hidden), "--clearenv"]

    def _hidden(self, grant: Grant) -> tuple[str, ...]:
        """Folders and files that are there, by their real paths."""
        layout = self._layout
        found: dict[str, None] = {}
        for path in (*layout.own, layout.state, *self._secrets, *self._shown_secrets):
            if path and os.access(path, os.F_OK):
                real = os.path.realpath(path)
                if os.path.lexists(real) and not any(is_within(real, each) for each in (*found, *grant.uncovered)):
                    found[real] = None
        return tuple(found)

    def _covered(self, plan: "_Writable", grant: Grant, hidden: tuple[str, ...]) -> Iterator[str]:
        """Outer folders first, so that what lies within is laid over them."""
        cache = _made_cache(self._layout.cache, grant)
        covers = {**plan.covers, **({cache: Cover(cache, "write")} if cache else {})}
        for root in self._layout.roots:  # before what is laid over parts of them
            if root not in covers and self._is_covered_up(root, hidden):
                yield from ("--ro-bind", root, root)
        for path in sorted(covers, key=lambda each: each.split("/")):
            yield from _laid_over(covers[path], self._empties)
        for path in grant.uncovered:
            if os.path.lexists(path) and not any(is_within(path, each) for each in _NOT_BOUND):
                is_writable = any(is_within(path, each) for each in grant.writable)
                yield from ("--bind" if is_writable else "--ro-bind", path, path)

    def _is_covered_up(self, path: str, hidden: tuple[str, ...]) -> bool:
        return is_replaced(path, (*self._others, *self._system_secrets, *hidden))

    def _place_of(self, program: Program, hidden: tuple[str, ...]) -> str:
        cwd = program.cwd
        is_shown = any(is_within(cwd, each) for each in (*self._shown, *self._layout.roots))
        away = () if is_shown else self._others
        if any(is_within(cwd, e) for e in (*hidden, *away)) and not any(is_within(cwd, r) for r in self._layout.roots):
            raise ToolError(f"the sandbox hides {cwd}, so nothing can run there; cd elsewhere")
        return self._names.inside(self._names.outside(cwd))

    def _environment(self, program: Program, grant: Grant) -> dict[str, str]:
        layout, exported = self._layout, frozenset(program.exported)
        held = held_environment(program.environment, exported, layout.kept_variables, network=grant.network)
        held["PWD"] = self._names.inside(self._names.outside(program.cwd))
        cache = _made_cache(self._layout.cache, grant) or f"{TEMPORARY}/.cache"
        caches = cache_variables(cache, layout.home, held, os.path.lexists, network=grant.network)
        if os.geteuid() == 0:  # alone among its users it could give nothing away, which its tar would try
            caches["TAR_OPTIONS"] = "--no-same-owner"
        return {**caches, **held, **({PROCESS_LIMIT: str(PROCESSES)} if "BASH_ENV" in held else {})}


def _plan_outside(path: str, grant: Grant, plan: "_Writable", layout: Layout) -> None:
    """What is missing is made in the nearest folder there is, which is writable for it."""
    place = existing(path)
    kept = (*layout.own, layout.state, layout.home, "/")
    if any(each and is_within(each, place) for each in kept) or any(is_within(place, own) for own in layout.own):
        raise ToolError(f"the sandbox can't let a program write to {place} for {path}; use another folder")
    finds = Survey(place).finds() if Path(place).is_dir() else None
    covers = Plan(place).of_workspace(finds).covers if finds else {}
    plan.add([Cover(place, "write")], ())
    plan.add([each for each in covers.values() if os.path.lexists(each.path)], (*grant.uncovered, path))


def _pinned(places: Iterable[str], scratch: str) -> Iterator[str]:
    """The way to a place below `/tmp`: who clears old folders away there must not move the workspace with them."""
    above = {folder for place in places for folder in _way(TEMPORARY, place)}
    for folder in sorted(above, key=lambda each: each.split("/")):
        own = scratch + folder[len(TEMPORARY) :]
        Path(own).mkdir(0o700, exist_ok=True)
        yield from ("--bind", own, folder)


def _holds(folder: str, seen: Iterable[str]) -> bool:
    inside = f"{folder}/"
    return any(each.startswith(inside) for each in seen)


def _replace(path: str, empties: str) -> list[str]:
    return ["--ro-bind", f"{empties}/{'folder' if Path(path).is_dir() else 'file'}", path]


def _left(places: Iterable[str], covers: dict[str, Cover]) -> tuple[str, ...]:
    """Those that no cover hides with a folder they lie in: in what is seen empty nothing can be mounted."""
    gone = [path for path, cover in covers.items() if cover.kind in ("empty", "unreadable")]
    return tuple(each for each in places if not any(each != path and is_within(each, path) for path in gone))


def _hide(path: str, seen: Iterable[str], empties: str) -> list[str]:
    """Lay something empty over what is there, in which nothing can be made; nothing for what has gone.

    For a folder it is a file system of its own, the mount that takes bubblewrap least: for all others it looks through
    the list of mounts. The folders on the way to what is `seen` in there are as closed.
    """
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return []
    if not is_folder:
        return ["--ro-bind", f"{empties}/file", path]
    arguments = [*_CLOSED, "--tmpfs", path]
    inside = f"{path}/"
    for folder in sorted({way for each in seen if each.startswith(inside) for way in _way(path, each)}):
        arguments += [*_CLOSED, "--dir", folder]
    return arguments


def _way(folder: str, path: str) -> Iterator[str]:
    """The folders between one and a path in it, innermost first."""
    if path.startswith(f"{folder}/"):
        while (path := path.rpartition("/")[0]) != folder:
            yield path


def _made_cache(cache: str, grant: Grant) -> str:
    """Where the tools keep their things; empty where nothing may be written, or it can't be made."""
    if not cache or not grant.writable:
        return ""
    try:
        if not os.path.isdir(cache):  # noqa: PTH112 - a part of the time of `mkdir`
            Path(cache).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return ""
    return cache


class _Writable:
    """What may be written to, and what of it may not."""

    def __init__(self, free: frozenset[str]) -> None:
        self.free = free
        self.roots: list[str] = []
        self.repositories: tuple[str, ...] = ()
        self.covers: dict[str, Cover] = {}
        self.ghosts: dict[str, Ghost] = {}

    def close_what_may_be_swapped(self, grant: Grant, pinned: frozenset[str]) -> None:
        """What a program that is running could replace by a link until it is bound, which bubblewrap would follow, is
        not bound: nothing but what is `pinned`.
        """
        for path, cover in tuple(self.covers.items()):
            is_inside = any(is_within(path, root) for root in self.roots)
            if path in pinned or path in self.roots or path in grant.writable or not is_inside:
                continue
            if cover.kind == "write":
                del self.covers[path]
            elif cover.kind == "read":
                self.covers[path] = Cover(path, "unreadable")

    def add(self, covers: Iterable[Cover], uncovered: tuple[str, ...]) -> None:
        """The strictest word on a path counts, save for what was allowed by name."""
        for cover in covers:
            known = self.covers.get(cover.path)
            is_allowed = cover.kind != "write" and any(
                is_within(cover.path, path) or (is_within(path, cover.path) and not os.path.lexists(path))
                for path in uncovered
            )
            if not is_allowed and (known is None or known.kind == "write"):
                self.covers[cover.path] = cover


def _laid_over(cover: Cover, empties: str) -> Iterator[str]:
    path, kind = cover.path, cover.kind
    if kind == "secret":
        yield from ("--ro-bind", f"{empties}/secret", path)
    elif not os.path.lexists(path):
        return  # a ghost that nobody could make, or gone by now
    elif kind == "gap" and is_empty_folder(path):
        yield from ("--ro-bind", f"{empties}/gap", path)
        yield from ("--ro-bind", f"{empties}/ignore", f"{path}/.gitignore")
    elif kind == "unreadable":
        yield from ("--ro-bind", f"{empties}/closed-{'folder' if Path(path).is_dir() else 'file'}", path)
    elif kind == "empty":
        yield from ("--ro-bind", f"{empties}/folder", path)
    else:
        yield from ("--bind" if kind == "write" else "--ro-bind", path, path)


def _variables(environment: dict[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        yield from ("--setenv", name, value)


def _file_in_memory(name: str, data: bytes) -> int:
    made = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(made, left) :]
        os.lseek(made, 0, os.SEEK_SET)
    except OSError:
        os.close(made)
        raise
    return made
