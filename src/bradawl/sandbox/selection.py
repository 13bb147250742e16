"""Selects the sandbox backend for a workspace, once, by probing which one works."""

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Sandbox
from bradawl.safety.trusted_programs import TrustedPrograms
from bradawl.sandbox.backend import SandboxBackend, SandboxLayout
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.sandbox.scratch import SessionScratch

if TYPE_CHECKING:
    from bradawl.sandbox.network.proxy import Proxy

_PROBE_LIMIT_S: Final = 10.0
"""Seconds per backend. One that hangs leaves time for the next; a busy machine still gets its sandbox."""
_MARGIN_S: Final = 0.5
"""Seconds for cleaning up after the last probe: ending its processes, removing its workspace."""
_JOIN_S: Final = 2 * (_PROBE_LIMIT_S + _MARGIN_S) + 0.3
_SEARCH_LIMIT_S: Final = 2.0
"""Seconds for the search of each root for repositories, before and after a command."""
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_NAME: Final = "bwrap"
_SYSTEM: Final = ("/usr/bin", "/usr/local/bin", "/bin")
"""Searched first: some systems allow only these programs to create namespaces."""
NOT_INSTALLED: Final = "bubblewrap is not installed"


class _Usable(NamedTuple):
    """A sandbox that works here."""

    sandbox: Sandbox
    make: Callable[[SandboxLayout], SandboxBackend]


class SandboxSelection:
    """The sandbox backend of one workspace, probed in a thread."""

    def __init__(
        self,
        layout: SandboxLayout,
        environment: Mapping[str, str],
        programs: TrustedPrograms | None = None,
        make_proxy: "Callable[[], Proxy] | None" = None,
        scratch: SessionScratch | None = None,
    ) -> None:
        """Nothing is probed before `start` or the first question.

        `environment` is what programs would get without a sandbox. `programs` finds bubblewrap; by default it is
        searched on the PATH of the environment outside the workspace, then in the environment of this interpreter.
        `make_proxy` is called for the first connection of a program. `scratch` chooses the folder behind `/tmp` for
        each session; without one it is that of the layout, which is temporary.
        """
        self._scratch = scratch
        self._layout = _completed(layout, environment)
        self._programs = programs or _trusted_outside(layout.roots, environment.get("PATH", os.defpath))
        self._make_proxy = make_proxy
        self._thread: threading.Thread | None = None
        self._usable: _Usable | None = None
        self._report: list[str] = []
        self._chosen: _Usable | None = None
        self._backend: SandboxBackend | None = None
        self._made_for = ""
        """The folder behind `/tmp` of the backend."""
        self._making = threading.Lock()
        self._is_decided = False
        self._is_suitable = True
        self._placeholders = PlaceholderStore(self._layout.state)
        self._owns_state = not layout.state

    def start(self) -> None:
        """Start probing in the background."""
        if self._thread is None:
            thread = threading.Thread(target=self._probe_backends, name="sandbox", daemon=True)
            thread.start()  # before others see it: a thread that was not started can't be joined
            self._thread = thread

    def backend(self) -> SandboxBackend | None:
        """The backend that confines programs; None if none works. The first call waits for probing to end.

        A session with another folder behind `/tmp` gets another backend.
        """
        usable = self._decided()
        return None if usable is None else self._backend_of(usable)

    def _backend_of(self, usable: "_Usable") -> SandboxBackend:
        with self._making:
            scratch = self._scratch
            place = scratch.place() if scratch else self._layout.scratch
            if self._backend is None or self._made_for != place:
                if self._backend is not None:
                    self._backend.close()
                is_kept = scratch is not None and scratch.is_kept
                layout = msgspec.structs.replace(self._layout, scratch=place, keeps_scratch=is_kept)
                self._backend, self._made_for = usable.make(layout), place
            return self._backend

    def _decided(self) -> "_Usable | None":
        if not self._is_decided:
            self.start()
            if self._thread is not None:
                self._thread.join(_JOIN_S)
                if self._thread.is_alive():
                    self._report.append("the sandbox did not answer in time")
            self._is_decided = True
            self._chosen = None if self._thread and self._thread.is_alive() else self._usable
        return self._chosen

    @property
    def sandbox(self) -> Sandbox:
        """Name and missing guarantees of the selected backend; an empty `Sandbox` if there is none."""
        found = self._decided()
        return Sandbox() if found is None else found.sandbox

    @property
    def report(self) -> tuple[str, ...]:
        """The result for each candidate, one line each, for `bradawl doctor`."""
        self._decided()
        return tuple(self._report)

    @property
    def is_workspace_suitable(self) -> bool:
        """Whether any sandbox could protect this workspace."""
        self._decided()
        return self._is_suitable

    def close(self) -> None:
        """Release what the backend holds; safe to call twice."""
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        if self._backend is not None:
            self._backend.close()
        if self._scratch is not None:
            self._scratch.leave()
        self._placeholders.close()
        if self._owns_state:
            remove_folder(self._layout.state)

    # ------------------------------------------------------------------ the search, in a thread of its own

    def _probe_backends(self) -> None:
        from bradawl.sandbox.workspace_check import why_unsuitable

        if reason := why_unsuitable(self._layout):
            self._report.append(reason)
            self._is_suitable = False
            return
        for look in (self._bubblewrap, self._landlock):
            self._usable = self._in_time(look)
            if self._usable is not None:
                if self._scratch is None or self._scratch.known:  # else the session is not known yet
                    self._backend_of(self._usable)
                if self._scratch is not None and self._scratch.known:
                    self._scratch.remove_unused()
                return
        if _is_already_sandboxed():
            self._report.append("this program is already inside a sandbox or a container, which may not allow another")

    def _in_time(self, look: Callable[[float], "_Usable | None"]) -> "_Usable | None":
        """Run one probe in a thread of its own, which is abandoned if it hangs, for example on a dead network file
        system.
        """
        found: list[_Usable | None] = []
        name = look.__name__.strip("_")

        def try_it() -> None:
            try:
                found.append(look(time.monotonic() + _PROBE_LIMIT_S))
            except (OSError, ToolError) as error:
                self._report.append(f"{name}: {error}")

        thread = threading.Thread(target=try_it, name=name, daemon=True)
        thread.start()
        thread.join(_PROBE_LIMIT_S + _MARGIN_S)
        if thread.is_alive():
            self._report.append(f"{name}: it did not answer within {_PROBE_LIMIT_S:.0f} s")
            return None
        return found[0] if found else None

    def _bubblewrap(self, deadline: float) -> "_Usable | None":
        if not sys.platform.startswith("linux"):
            return None
        from bradawl.sandbox.seccomp import is_known

        if not is_known():
            self._report.append("there is no filter of system calls for this kind of processor")
            return None
        problem = ""
        for program in self._candidates():
            found, problem = self._probe_bubblewrap(program, deadline, problem)
            if found is not None:
                return found
        return None

    def _candidates(self) -> Iterator[str]:
        """The system's bubblewrap, then the one installed with bradawl. Reports why each other one is not used."""
        system = next(_trusted_bubblewraps(self._programs, self._report), "")
        if system:
            yield system
        self._report += [f"{path} is not used: {reason}" for path, reason in self._programs.rejected_beside(_NAME)]
        beside = self._programs.beside(_NAME)
        if beside is not None and os.path.realpath(beside) != os.path.realpath(system):
            from bradawl.sandbox.bubblewrap_bundled import why_not_examined

            if reason := why_not_examined(beside):
                self._report.append(f"{beside} is not used: {reason}")
            else:
                yield beside
        elif not system and not self._report:
            self._report.append(
                f"{NOT_INSTALLED} (apt install bubblewrap, or dnf, or pacman; or pip install 'bradawl[sandbox]')"
            )

    def _probe_bubblewrap(self, program: str, deadline: float, known: str) -> "tuple[_Usable | None, str]":
        """Probe bubblewrap with all features, then with fewer: inside a container it may not mount /proc.

        Also returns its first problem. If that equals `known`, the problem of another bubblewrap, fewer features are
        not tried.
        """
        from bradawl.sandbox.bubblewrap import NAME, BubblewrapBackend, BubblewrapFeatures
        from bradawl.sandbox.bubblewrap_arguments import binds_descriptors
        from bradawl.sandbox.network.session_network import SessionNetwork
        from bradawl.sandbox.probe import probe

        folder, first, by_descriptor = self._folder_for_probes(), "", binds_descriptors(program)
        for own_proc, disables in ((True, True), (True, False), (False, True), (False, False)):
            features = BubblewrapFeatures(program, own_proc, disables, by_descriptor)
            found = probe(
                lambda layout, features=features: BubblewrapBackend(layout, features),
                folder,
                deadline - time.monotonic(),
            )
            less = "" if own_proc and disables else f", without {_missing_features(own_proc, disables)}"
            if not found.problem:
                holds = f"can't hold: {', '.join(found.lacks)}" if found.lacks else "holds everything"
                self._report.append(f"{program}{less}: {holds}")

                def make(layout: SandboxLayout) -> SandboxBackend:
                    network = SessionNetwork(self._make_proxy)
                    return BubblewrapBackend(
                        layout,
                        features,  # noqa: B023 - the loop ends here
                        found.lacks,  # noqa: B023 - the loop ends here
                        search_within_s=_SEARCH_LIMIT_S,
                        network=network,
                    )

                return _Usable(Sandbox(NAME, found.lacks), make), ""
            first = first or found.problem
            if not any(line.startswith(program) and line.endswith(found.problem) for line in self._report):
                self._report.append(f"{program}{less}: {found.problem}")
            if found.problem == known:
                break
        return None, first

    def _landlock(self, deadline: float) -> "_Usable | None":
        from bradawl.sandbox import landlock
        from bradawl.sandbox.network.session_network import SessionNetwork

        if reason := landlock.why_unavailable(self._layout):
            self._report.append(f"landlock: {reason}")
            return None
        self._placeholders.make_folder(self._layout.scratch)
        lacks, problem = self._landlock_lacks(deadline, by_domain=True)
        if lacks is None or "domains" in lacks:
            lacks, problem = self._landlock_lacks(deadline, by_domain=False)
        if lacks is None:
            self._report.append(f"landlock: {problem or 'it started nothing'}")
            return None
        self._report.append(f"landlock can't hold: {', '.join(lacks)}")

        def make(layout: SandboxLayout) -> SandboxBackend:
            network = SessionNetwork(self._make_proxy)
            return landlock.LandlockBackend(layout, lacks, search_within_s=_SEARCH_LIMIT_S, network=network)

        return _Usable(Sandbox(landlock.NAME, lacks), make)

    def _landlock_lacks(self, deadline: float, *, by_domain: bool) -> tuple[tuple[str, ...] | None, str]:
        """The guarantees that Landlock lacks, with or without a supervisor of connections; None and what was printed
        if nothing can be started so.
        """
        from bradawl.sandbox import landlock
        from bradawl.sandbox.network.session_network import UnusedNetwork
        from bradawl.sandbox.probe import output_of

        backend = landlock.LandlockBackend(self._layout, () if by_domain else ("domains",), network=UnusedNetwork())
        try:
            said, has_escaped = output_of(backend, landlock.probe_program(self._layout), deadline, network=by_domain)
        finally:
            backend.close()
        lacks = landlock.missing_guarantees(said, has_escaped=has_escaped)
        return lacks, said.decode("utf-8", "replace").strip()[:300]

    def _folder_for_probes(self) -> str:
        folder = self._layout.state or str(Path(self._layout.scratch).parent)
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.path.realpath(folder)


def _completed(layout: SandboxLayout, environment: Mapping[str, str]) -> SandboxLayout:
    """The layout with a temporary folder and a state folder, if the caller named none."""
    if layout.scratch and layout.state:
        return layout
    temporary = os.path.realpath(environment.get("TMPDIR") or Path("/") / "tmp")
    scratch = layout.scratch or f"{temporary}/bradawl-{os.urandom(8).hex()}"
    return msgspec.structs.replace(layout, scratch=scratch, state=layout.state or f"{scratch}.state")


def _missing_features(own_proc: bool, disables: bool) -> str:
    lost = [name for name, has in (("a /proc of its own", own_proc), ("switching off namespaces", disables)) if not has]
    return " and ".join(lost)


def _trusted_outside(roots: tuple[str, ...], path: str) -> TrustedPrograms:
    return TrustedPrograms(path, roots, sys.prefix)


def _trusted_bubblewraps(programs: TrustedPrograms, why: list[str]) -> Iterator[str]:
    """Trusted bubblewrap programs, the system's first. Adds to `why` the reason why each other one is not used."""
    found = sorted(programs.every(_NAME), key=lambda each: _rank(str(Path(each).parent)))
    why += [f"{path} is not used: {reason}" for path, reason in programs.rejected(_NAME)]
    for each in found:
        program = os.path.realpath(each)
        if reason := _why_foreign(Path(program)):
            why.append(f"{program} is not used: {reason}")
        else:
            yield program


def _rank(folder: str) -> int:
    return _SYSTEM.index(folder) if folder in _SYSTEM else len(_SYSTEM)


def _why_foreign(program: Path) -> str:
    """Why another user may have replaced a program or a folder above it; empty if none can have."""
    owners = {0, os.geteuid()}
    try:
        found = [(each, each.stat()) for each in (program, *program.parents)]
    except OSError as error:
        return error.strerror or "it can't be examined"
    for each, status in found:
        if status.st_uid not in owners:
            return f"{each} belongs to another user"
        if status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
            return f"{each} can be written by other users"
    return ""


def _is_already_sandboxed() -> bool:
    try:
        text = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return False
    return any(line.split() in (["Seccomp:", "2"], ["NoNewPrivs:", "1"]) for line in text.splitlines())
