"""Sandbox backend for Landlock and a system call filter, for machines where bubblewrap does not work.

A program may read and write the listed paths and nothing else; the list is built for each start. Landlock can't make
exceptions from what it allows. So to hide a path, all entries beside it are allowed by name instead of their folder.
"""

import contextlib
import marshal
import math
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import CodeType
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant, Sandbox
from bradawl.safety.git.named_paths import NamedPaths
from bradawl.safety.permissions.protected_paths import credentials, protected_names, watched_names
from bradawl.sandbox.backend import Launch, Program, SandboxLayout, agent_search_path
from bradawl.sandbox.check_failures import ending, in_parts
from bradawl.sandbox.discovery.git_folders import data_folders
from bradawl.sandbox.discovery.mount_aliases import MountAliases
from bradawl.sandbox.discovery.other_users import other_users_folders, readable_system_secrets, secrets_within
from bradawl.sandbox.discovery.present_keys import PresentKeys
from bradawl.sandbox.environment import git_variables, sandbox_environment
from bradawl.sandbox.filesystem.memory_file import file_in_memory
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.sandbox.mounts.rule_mounts import RuleMounts
from bradawl.sandbox.network.session_network import SessionNetwork, is_proxied
from bradawl.sandbox.network.variables import proxy_of, proxy_variables
from bradawl.sandbox.path_translation import reexposed_paths
from bradawl.sandbox.process_limit import PROCESSES, ProcessLimit
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_history import GitHistory, WorkspaceWatch
from bradawl.sandbox.restore.git_indexes import GitIndexes
from bradawl.sandbox.restore.index_places import IndexPlaces
from bradawl.sandbox.restore.protected_files import ChangeRules, ProtectedFiles
from bradawl.sandbox.restore.repositories import Repositories, suspect_since
from bradawl.sandbox.restore.running_check import WorkspaceCheck
from bradawl.sandbox.restore.snapshot import WatchedPath
from bradawl.sandbox.restore.workspace_search import (
    AheadSearch,
    ChangeSearch,
    WorkspaceSearch,
    too_large,
    writes_in_workspace,
)
from bradawl.sandbox.scratch import make_scratch
from bradawl.sandbox.seccomp import filter_for, is_known
from bradawl.sandbox.shown_in_tmp import NamedPathsAtStart
from bradawl.sandbox.tool_caches import cache_variables

_DEVICES = ("null", "zero", "full", "random", "urandom")
_HIDDEN = tuple(f"/{name}" for name in ("tmp", "run", "dev", "lost+found"))
NAME: Final = "landlock"
_SETTINGS = b"/etc"
"""Some of its files are hidden; the folder itself can be listed."""
_LONGEST_ARGUMENT = 131_071  # limit of Linux on one argument, whatever the limit on all together
_GIT = ".git/"
_WHOLE, _DOMAINS = b"network", b"domains"
_HELPER = "landlock_helper.py"
_SUPERVISOR = "landlock_supervisor.py"
_LOADER = (
    "import marshal, sys\n"
    'with open(int(sys.argv[1]), "rb", buffering=0) as file: code, *order = marshal.loads(file.readall())\n'
    'names = {"__name__": "landlock_helper"}\n'
    "exec(code, names)\n"
    'names["main"](*order, int(sys.argv[2]), int(sys.argv[3]))'
)
_PORTABLE = 2  # the version of marshal's format for another Python, which gets texts instead of code
_PROBE = "landlock_probe.py"
_OUT_OF_REACH = "out-of-reach"
_PROBED = frozenset({"chmod_outside", "domains"})
"""Guarantees below that the probe tests for itself."""

MISSING_GUARANTEES: Final = {
    "chmod_outside": "Landlock does not check chmod, chown, utime and setxattr: a program can apply them to files of"
    " the same user that it may not write",
    "protected_file": "a writable folder can have no exceptions: what a program changes is restored when it has ended",
    "new_protected_file": "as protected_file: what a program creates is moved away when it has ended",
    "rename_protected": "as protected_file: what a program moves away is restored when it has ended",
    "symlinked_git": "as protected_file",
    "credentials": "files like .env in the workspace can be read, and those that a rule refuses; those of the home"
    " folder and the agent's own can't",
    "private_tmp": f"{_HIDDEN[0]} is closed; the session's own temporary folder is the one that TMPDIR names",
}
"""Guarantees that Landlock can't give, and what happens instead."""


def probe_program(layout: SandboxLayout, interpreter: str = "") -> Program:
    """The program that tests what holds here. Start it by `launch` with an empty grant; `missing_guarantees` reads its
    output.
    """
    state = Path(_state(layout))
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = state / _OUT_OF_REACH
    file.touch(0o600)
    python = os.path.realpath(interpreter or sys.executable)
    text = Path(__file__).with_name(_PROBE).read_text("utf-8")
    argv = (python, "-I", "-S", "-c", text, str(file), layout.scratch, str(os.getpid()))
    return Program(argv, layout.scratch, {"PATH": os.defpath})


def missing_guarantees(printed: bytes, *, has_escaped: bool = False) -> tuple[str, ...] | None:
    """Guarantees that do not hold: found by the probe, or never given by Landlock. None if the probe failed.

    `has_escaped`: a process of the probe survived its end.
    """
    words = printed.decode(errors="replace").split()
    if words[:1] != ["done"]:
        return None
    found = set(words[1:]) | (set(MISSING_GUARANTEES) - _PROBED)
    if has_escaped or "ptrace" in found:  # a program that can signal others can kill its supervisor
        found.add("escapees")
    return tuple(name for name in GUARANTEES if name in found)


def why_unavailable(layout: SandboxLayout, interpreter: str = "") -> str:
    """Why Landlock can't be used here, as far as can be determined without trying; empty if it may work."""
    python = os.path.realpath(interpreter or sys.executable)
    if not sys.platform.startswith("linux"):
        return "Landlock is a part of Linux"
    if not (interpreter or sys.executable):
        return "there is no Python that could start programs"
    if not is_known():
        return "there is no filter of system calls for this kind of processor"
    if inside := [root for root in layout.roots if is_within(python, root)]:
        return f"the Python that would start programs lies in {inside[0]}, where programs may change it"
    if layout.installation:
        own = layout.installation[0]
        return f"bradawl itself is installed in the workspace, in {own}, where programs could change it"
    return ""


def _state(layout: SandboxLayout) -> str:
    return layout.state or f"{layout.scratch}.state"


def allowed_entries(place: str, hidden: frozenset[str]) -> Iterator[str]:
    """A path; or, if hidden paths lie in it, its entries without the hidden ones."""
    if place in hidden:
        return
    if not any(is_within(each, place) for each in hidden):
        yield place
        return
    try:
        with os.scandir(place) as entries:
            inside = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:  # unreadable: its entries can't be reached by listing
        return
    for path in inside:
        yield from allowed_entries(path, hidden)


class LandlockBackend:
    """`SandboxBackend` with Landlock. Its owner calls `close()`."""

    def __init__(
        self,
        layout: SandboxLayout,
        lacks: Iterable[str] = tuple(MISSING_GUARANTEES),
        *,
        interpreter: str = "",
        most_processes: int = PROCESSES,
        network: SessionNetwork | None = None,
        search_within_s: float = math.inf,
    ) -> None:
        """`lacks` is the result of the probe (see `missing_guarantees`).

        `interpreter` is a Python that the user who runs the programs can start; by default this one. `network` is
        closed by `close`. `search_within_s` limits the search of each root for repositories, before and after a
        command.
        """
        self._layout = layout
        self._lacks = tuple(lacks)
        self._processes = ProcessLimit(most_processes)
        self._network = network or SessionNetwork()
        self._interpreter = os.path.realpath(interpreter or sys.executable)
        self._is_foreign = self._interpreter != os.path.realpath(sys.executable)
        named = NamedPaths(layout.home, layout.git_configs)
        self._directories = GitDirectories(
            layout.roots, run_later=named.hook_folder_names(), opens_first=True, within_s=search_within_s
        )
        self._search = WorkspaceSearch(self._directories)
        found = self._repositories = Repositories(
            layout.roots, layout.home, self._directories, state=_state(layout), named=named
        )
        rule_mounts = self._rule_mounts = RuleMounts(layout.roots)
        self._aliases = MountAliases()
        self._keys = PresentKeys(credentials(layout.home), layout.home, layout.roots)
        self._named = NamedPathsAtStart(layout, self._keys, self._aliases)
        files = ProtectedFiles(
            self._places,
            f"{_state(layout)}/changed",
            in_parts(found.new_paths, rule_mounts.new_paths),
            ChangeRules(found.is_own_change_of_git, found.may_be_new, found.without_programs),
            suspect_since=partial(suspect_since, found),
        )
        places = IndexPlaces(layout.roots, layout.home, self._directories)
        indexes = GitIndexes(places, f"{_state(layout)}/changed")
        history = GitHistory(found.repository_locations, f"{_state(layout)}/history")
        self._protected = WorkspaceWatch(files, history, indexes)
        self._placeholders = PlaceholderStore(_state(layout))
        self._has_scratch = False

    # ------------------------------------------------------------------ the port

    @property
    def sandbox(self) -> Sandbox:
        """Its name and the guarantees it lacks."""
        return Sandbox(NAME, self._lacks)

    def check_grant(self, grant: Grant) -> None:
        """See `ChecksGrants`."""
        for _ in self._writable(grant):  # raises for what can't be written
            pass

    def launch(self, program: Program, grant: Grant) -> Launch:
        """The command that starts a program within a grant. Raises `ToolError` if it can't be confined."""
        if any(len(os.fsencode(word)) > _LONGEST_ARGUMENT for word in program.argv):
            raise ToolError("the command is too long for the system (about 128 KB); put it into a file and run that")
        self._make_scratch()
        self._rule_mounts.set_rules(grant.rules)
        access = self._network_access(program, grant)
        # With the network, internet sockets only: Unix sockets in the file system are not hidden.
        code = filter_for(internet=access == _WHOLE, sees_others=True, supervised=access == _DOMAINS)
        variables = self._variables(program, grant, access)
        order = _encode_order(self._rules(program, grant), program.argv, variables, code, access)
        search = self._search_before(grant)
        with contextlib.ExitStack() as undo:
            launch = self._start(program, order, undo)
            if access == _DOMAINS:
                launch = self._connected(launch, program, grant, undo)
            if search:  # at last: a program that never starts must not count as running
                launch = msgspec.structs.replace(launch, on_end=self._watch(grant, search), search_after=search)
            undo.pop_all()
            return launch

    def _make_scratch(self) -> None:
        if not self._has_scratch:
            make_scratch(self._layout, self._placeholders)
            self._has_scratch = True

    def _network_access(self, program: Program, grant: Grant) -> bytes:
        if self.sandbox.limits_hosts:
            return _DOMAINS if is_proxied(program, grant) else b""
        return _WHOLE if grant.network else b""

    def _connected(self, launch: Launch, program: Program, grant: Grant, undo: contextlib.ExitStack) -> Launch:
        """The launch with a socket on which the supervisor sends the program's connections to the proxy."""
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        given = theirs.detach()
        undo.callback(os.close, given)
        network = self._network.supervised_command(program.permit, ours, whole_network=grant.network)
        undo.callback(network.close)
        return msgspec.structs.replace(
            launch,
            argv=(*launch.argv[:-1], str(given)),
            inherited=(*launch.inherited, given),
            close_after_start=(*launch.close_after_start, given),
            network=network,
        )

    def host_path(self, path: str) -> str:
        """The same path: programs see the file system of the host."""
        return path

    def close(self) -> None:
        """Release the records and the control group; safe to call twice."""
        self._protected.close()
        self._network.close()
        self._processes.close()
        self._placeholders.close()
        self._has_scratch = False

    # ------------------------------------------------------------------ a start

    def _start(self, program: Program, order: bytes, undo: contextlib.ExitStack) -> Launch:
        version = _PORTABLE if self._is_foreign else marshal.version
        held = file_in_memory("order", marshal.dumps((*self._code, order), version))
        undo.callback(os.close, held)
        ours, theirs = socket.socketpair()
        info, control = ours.detach(), theirs.detach()
        undo.callback(os.close, info)
        undo.callback(os.close, control)
        return Launch(
            argv=(self._interpreter, "-I", "-S", "-c", _LOADER, str(held), str(control), "-1"),
            cwd=program.cwd,
            # The dynamic linker and the interpreter would obey the program's variables before the limits are in force.
            environment={},
            inherited=(*program.inherited, held, control),
            close_after_start=(held, control),
            info_fd=info,
            is_supervised=True,
            notes=self._named.take_remarks(),
            limit_processes=self._processes.limit_processes,
        )

    @cached_property
    def _code(self) -> tuple[CodeType | str, ...]:
        """The helper and the supervisor, compiled for this Python. Read once: a later change of the files must not run
        unconfined.
        """
        texts = [(name, Path(__file__).with_name(name).read_text("utf-8")) for name in (_HELPER, _SUPERVISOR)]
        if self._is_foreign:
            return tuple(text for _, text in texts)
        return tuple(compile(text, name, "exec", dont_inherit=True) for name, text in texts)

    def search_ahead(self, grant: Grant) -> AheadSearch | None:
        """Search the workspace for the next `launch`, if programs may write there; see `SearchesAhead`."""
        return self._search.ahead() if writes_in_workspace(grant, self._layout) else None

    def check_running(self, *, beside_command: bool) -> WorkspaceCheck | None:
        """See `ChecksWhileRunning`."""
        return self._search.check_running(self._protected, self._repositories, beside_command=beside_command)

    def _search_before(self, grant: Grant) -> ChangeSearch | None:
        """Search before a program that may write. Raises `ToolError` if the search is incomplete: Landlock can't make
        the rest read-only.
        """
        if not writes_in_workspace(grant, self._layout):
            return None
        search = self._search.around()
        self._protected.check_again()
        if self._directories.rest:
            raise too_large(self._layout.roots[0])
        return search

    def _watch(self, grant: Grant, search: ChangeSearch) -> Callable[[], tuple[str, ...]]:
        self._protected.begin(allowed=grant.uncovered)
        watched = self._protected
        return ending(
            self._layout.roots[0],
            search.conclude,
            partial(watched.end, grant.uncovered),
            lambda: search.add_notes(watched.notes()),
        )

    def _places(self) -> Iterator[WatchedPath]:
        names = (*protected_names(), *watched_names())
        of_git = tuple(name for name in names if name.startswith(_GIT))
        yield from self._repositories.watched_paths()
        yield from self._repositories.working_tree_paths()
        yield from self._rule_mounts.all_watched_paths()
        for root in self._layout.roots:
            inner = [each[len(root) :].strip("/") for each in self._repositories.covered if is_within(each, root)]
            yield from ((root, name) for name in names)
            yield from ((root, f"{folder}/{name}") for folder in inner for name in of_git)
            yield from ((root, path[len(root) :].strip("/")) for path in self._directories.run_later(root))
        for data in self._data_folders():
            yield from ((data, name.removeprefix(_GIT)) for name in of_git)

    def _data_folders(self) -> tuple[str, ...]:
        """Git's data outside the roots: of a root that is a linked working tree or lies inside a repository. They must
        be writable.
        """
        return data_folders(self._layout.roots, self._layout.roots, self._layout.home)

    def _variables(self, program: Program, grant: Grant, access: bytes) -> dict[str, str]:
        layout, exported = self._layout, program.exported
        held = sandbox_environment(program.environment, exported, layout.kept_variables, network=access == _WHOLE)
        if access == _DOMAINS:
            held |= proxy_variables(held, exported, is_asked=not grant.network)
        held |= git_variables(held, proxy_of(held))
        caches = cache_variables(layout.cache, layout.home, held, os.path.exists, network=grant.network)
        return {**held, **(caches if layout.cache else {}), "TMPDIR": layout.scratch}

    # ------------------------------------------------------------------ what is allowed

    def _rules(self, program: Program, grant: Grant) -> list[bytes]:
        hidden = self._hidden(grant)
        reads = (
            *self._seen(program, hidden),
            *self._layout.readable,
            *program.readable,
            *grant.uncovered,
        )
        data = self._data_folders() if set(self._layout.roots) & set(grant.writable) else ()
        writes = (self._layout.scratch, self._layout.cache, *self._writable(grant), *data)
        if self._layout.cache:
            Path(self._layout.cache).mkdir(mode=0o700, parents=True, exist_ok=True)
        return [
            b"l" + _SETTINGS,
            *(self._letter(path, b"rs") + os.fsencode(path) for path in dict.fromkeys(reads)),
            *(b"s" + os.fsencode(path) for path in self._entries_of_named(grant)),
            *(self._letter(path, b"wt") + os.fsencode(path) for path in dict.fromkeys(writes) if path),
            *(b"d/dev/" + name.encode() for name in _DEVICES),
        ]

    def _letter(self, path: str, kinds: bytes) -> bytes:
        """The first letter, or the second for a path of `/tmp` to which no link may lead; see the helper."""
        layout = self._layout
        own = (*layout.roots, layout.scratch, layout.cache, layout.home, sys.prefix, sys.base_prefix)
        is_shared = is_within(path, _HIDDEN[0]) and not any(each and is_within(path, each) for each in own)
        return kinds[1:] if is_shared else kinds[:1]

    def _hidden(self, grant: Grant) -> frozenset[str]:
        """Hidden paths: names and, for links, their targets. Missing ones are left out."""
        layout = self._layout
        secret = (*credentials(layout.home), *self._keys.now(), *layout.own, _state(layout), *self._system_secrets)
        real = {path for name in secret if os.path.lexists(name) for path in (name, os.path.realpath(name))}
        real.update(self._aliases.of((*real, *self._others), (*_HIDDEN, *layout.roots)))
        allowed = set(grant.uncovered)
        return frozenset({*real, *self._others} - allowed) | frozenset(_HIDDEN) | frozenset(self._rule_mounts.hidden())

    def _seen(self, program: Program, hidden: frozenset[str]) -> Iterator[str]:
        yield from allowed_entries("/", hidden)
        yield os.path.realpath("/etc/resolv.conf")
        for place in (self._layout.home, *self._layout.roots, sys.prefix, sys.base_prefix):
            if any(is_within(place, each) for each in (*_HIDDEN, *self._others)):
                yield from allowed_entries(place, hidden)
        programs = [each for each in self._shown(program) if any(is_within(each, place) for place in self._others)]
        secrets = secrets_within(programs, self._others)
        for place in programs:
            yield from allowed_entries(place, hidden | frozenset(secrets))

    def _entries_of_named(self, grant: Grant) -> Iterator[str]:
        """What is shown of the paths in `/tmp` that prompts name; of folders in which something is hidden, the rest."""
        refused = self._rule_mounts.hidden
        hidden = (*self._others, *self._system_secrets, *self._keys.now())
        for named in self._named.shown(hidden, refused, grant.uncovered):
            inside = [path for path in refused() if is_within(path, named.path)]
            yield from allowed_entries(named.path, frozenset((*named.hidden, *inside)))

    def _shown(self, program: Program) -> tuple[str, ...]:
        return reexposed_paths(self._layout, agent_search_path(program), self._others) if self._others else ()

    @cached_property
    def _system_secrets(self) -> tuple[str, ...]:
        return readable_system_secrets(self._layout.roots)

    @cached_property
    def _others(self) -> tuple[str, ...]:
        return other_users_folders(self._layout.home, self._layout.roots)

    def _writable(self, grant: Grant) -> Iterator[str]:
        hidden = self._hidden(grant) - set(_HIDDEN)
        for path in grant.writable:
            if path in self._layout.roots and (inside := [each for each in hidden if is_within(each, path)]):
                raise ToolError(f"no program may write to {path}: {inside[0]} is in it and could not be hidden")
            if os.path.lexists(path):
                yield path
            elif path not in (*self._layout.roots, self._layout.scratch, self._layout.cache):
                raise ToolError(_missing(path))


def _missing(path: str) -> str:
    if is_within(path, _HIDDEN[0]):
        return f"{path} can't be written to by programs here; use the folder that $TMPDIR names"
    return (
        f"the sandbox here (landlock) can't let a program make {path} and nothing beside it;"
        " make it with write_file first, or ask to run without the sandbox"
    )


def _encode_order(
    rules: list[bytes], argv: tuple[str, ...], variables: Mapping[str, str], code: bytes, network: bytes
) -> bytes:
    """Encode the order for the helper. Raises `ValueError` for a NUL in a word, as `subprocess` does."""
    words = list(map(os.fsencode, argv))
    pairs = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
    if any(b"\0" in field for field in (*words, *pairs)):
        raise ValueError("embedded null byte")
    counts = [b"%d" % len(fields) for fields in (rules, words, pairs)]
    return b"\0".join([network, *counts, *rules, *words, *pairs, code])
