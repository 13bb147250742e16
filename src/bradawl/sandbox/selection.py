"""Which sandbox holds programs here: chosen once, by how it behaves."""

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Sandbox
from bradawl.safety.trusted_programs import TrustedPrograms
from bradawl.sandbox.backend import Confinement, Layout
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.mounts.placeholders import Leftovers

_PATIENCE_S: Final = 4.0
"""For each kind of sandbox: one that hangs leaves time for the next, and a busy machine is none without a sandbox."""
_MARGIN_S: Final = 0.5
"""For what follows the last try: ending its processes, removing its workspace."""
_JOIN_S: Final = 2 * (_PATIENCE_S + _MARGIN_S) + 0.3
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_NAME: Final = "bwrap"
_SYSTEM: Final = ("/usr/bin", "/usr/local/bin", "/bin")
"""Tried first: some systems let only these make namespaces."""
NOT_INSTALLED: Final = "bubblewrap is not installed"


class SandboxChoice:
    """The sandbox of one workspace."""

    def __init__(self, layout: Layout, environment: Mapping[str, str], programs: TrustedPrograms | None = None) -> None:
        """`environment` is what programs would see without a sandbox. Nothing is looked at before it is asked for.

        `programs` finds bubblewrap; without it the PATH of the environment is searched outside of the workspace, and
        then the environment of this interpreter.
        """
        self._layout = _completed(layout, environment)
        self._programs = programs or _outside_of(layout.roots, environment.get("PATH", os.defpath))
        self._thread: threading.Thread | None = None
        self._found: Confinement | None = None
        self._why: list[str] = []
        self._chosen: Confinement | None = None
        self._is_decided = False
        self._fits = True
        self._leftovers = Leftovers(self._layout.state)
        self._owns_state = not layout.state

    @property
    def layout(self) -> Layout:
        """What it was made for, with a temporary folder in any case."""
        return self._layout

    def begin(self) -> None:
        """Start looking, without waiting for what is found."""
        if self._thread is None:
            thread = threading.Thread(target=self._look, name="sandbox", daemon=True)
            thread.start()  # before others see it: one that has not been started can't be waited for
            self._thread = thread

    def confinement(self) -> Confinement | None:
        """What holds programs; None where nothing does. Waits for the look to end, the first time."""
        if not self._is_decided:
            self.begin()
            if self._thread is not None:
                self._thread.join(_JOIN_S)
                if self._thread.is_alive():
                    self._why.append("the sandbox did not answer in time")
            self._is_decided = True
            self._chosen = None if self._thread and self._thread.is_alive() else self._found
        return self._chosen

    @property
    def sandbox(self) -> Sandbox:
        """What it is called and what it can't hold."""
        found = self.confinement()
        return Sandbox() if found is None else found.sandbox

    @property
    def why(self) -> tuple[str, ...]:
        """What was found, a line each; for who wonders why it is this one."""
        self.confinement()
        return tuple(self._why)

    @property
    def fits(self) -> bool:
        """Whether a sandbox could hold programs of this workspace, if there were one."""
        self.confinement()
        return self._fits

    def close(self) -> None:
        """Give back what it holds; safe to call twice."""
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        if self._found is not None:
            self._found.close()
        self._leftovers.close()
        if self._owns_state:
            remove_folder(self._layout.state)

    # ------------------------------------------------------------------ the look, in a thread of its own

    def _look(self) -> None:
        from bradawl.sandbox.workspace_check import unfit

        if reason := unfit(self._layout):
            self._why.append(reason)
            self._fits = False
            return
        for look in (self._bubblewrap, self._landlock):
            self._found = self._tried(look)
            if self._found is not None:
                return
        if _is_held_already():
            self._why.append("this program is already inside a sandbox or a container, which may not allow another")

    def _tried(self, look: Callable[[float], Confinement | None]) -> Confinement | None:
        """In a thread of its own, which is left alone where it waits for ever, as for a file system that is gone."""
        found: list[Confinement | None] = []
        name = look.__name__.strip("_")

        def try_it() -> None:
            try:
                found.append(look(time.monotonic() + _PATIENCE_S))
            except (OSError, ToolError) as error:
                self._why.append(f"{name}: {error}")

        thread = threading.Thread(target=try_it, name=name, daemon=True)
        thread.start()
        thread.join(_PATIENCE_S + _MARGIN_S)
        if thread.is_alive():
            self._why.append(f"{name}: it did not answer within {_PATIENCE_S:.0f} s")
            return None
        return found[0] if found else None

    def _bubblewrap(self, deadline: float) -> Confinement | None:
        if not sys.platform.startswith("linux"):
            return None
        from bradawl.sandbox.seccomp import is_known

        if not is_known():
            self._why.append("there is no filter of system calls for this kind of processor")
            return None
        problem = ""
        for program in self._candidates():
            found, problem = self._shaped(program, deadline, problem)
            if found is not None:
                return found
        return None

    def _candidates(self) -> Iterator[str]:
        """The system's bubblewrap, then the one that was installed with bradawl; says why each other is not used."""
        system = next(_trusted(self._programs, self._why), "")
        if system:
            yield system
        self._why += [f"{path} is not used: {reason}" for path, reason in self._programs.rejected_beside(_NAME)]
        beside = self._programs.beside(_NAME)
        if beside is not None and os.path.realpath(beside) != os.path.realpath(system):
            from bradawl.sandbox.bubblewrap_bundled import why_other

            if reason := why_other(beside):
                self._why.append(f"{beside} is not used: {reason}")
            else:
                yield beside
        elif not system and not self._why:
            self._why.append(
                f"{NOT_INSTALLED} (apt install bubblewrap, or dnf, or pacman; or pip install 'bradawl[sandbox]')"
            )

    def _shaped(self, program: str, deadline: float, known: str) -> tuple[Confinement | None, str]:
        """Try with all it can do, then with less: inside a container it may not mount /proc.

        Gives back its first problem, too. If that is the `known` one of another program, less is not tried.
        """
        from bradawl.sandbox.bubblewrap import Bubblewrap, Shape
        from bradawl.sandbox.probe import probe

        folder, first = self._folder_for_probes(), ""
        for own_proc, disables in ((True, True), (True, False), (False, True), (False, False)):
            shape = Shape(program, own_proc, disables)
            found = probe(lambda layout, shape=shape: Bubblewrap(layout, shape), folder, deadline - time.monotonic())
            less = "" if own_proc and disables else f", without {_without(own_proc, disables)}"
            if not found.problem:
                holds = f"can't hold: {', '.join(found.lacks)}" if found.lacks else "holds everything"
                self._why.append(f"{program}{less}: {holds}")
                return Bubblewrap(self._layout, shape, found.lacks), ""
            first = first or found.problem
            if not any(line.startswith(program) and line.endswith(found.problem) for line in self._why):
                self._why.append(f"{program}{less}: {found.problem}")
            if found.problem == known:
                break
        return None, first

    def _landlock(self, deadline: float) -> Confinement | None:
        from bradawl.sandbox import landlock
        from bradawl.sandbox.probe import printed_by

        if reason := landlock.unfit(self._layout):
            self._why.append(f"landlock: {reason}")
            return None
        self._leftovers.make_folder(self._layout.scratch)
        confinement = landlock.LandlockConfinement(self._layout)
        try:
            said = printed_by(confinement, landlock.probe_program(self._layout), deadline)
        finally:
            confinement.close()
        lacks = landlock.lacks_of(said)
        if lacks is None:
            self._why.append(f"landlock: {said.decode('utf-8', 'replace').strip()[:300] or 'it started nothing'}")
            return None
        self._why.append(f"landlock can't hold: {', '.join(lacks)}")
        return landlock.LandlockConfinement(self._layout, lacks)

    def _folder_for_probes(self) -> str:
        folder = self._layout.state or str(Path(self._layout.scratch).parent)
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.path.realpath(folder)


def _completed(layout: Layout, environment: Mapping[str, str]) -> Layout:
    """With a temporary folder and one for records, where nobody has said where they are to be."""
    if layout.scratch and layout.state:
        return layout
    temporary = os.path.realpath(environment.get("TMPDIR") or Path("/") / "tmp")
    scratch = layout.scratch or f"{temporary}/bradawl-{os.urandom(8).hex()}"
    return msgspec.structs.replace(layout, scratch=scratch, state=layout.state or f"{scratch}.state")


def _without(own_proc: bool, disables: bool) -> str:
    lost = [name for name, has in (("a /proc of its own", own_proc), ("switching off namespaces", disables)) if not has]
    return " and ".join(lost)


def _outside_of(roots: tuple[str, ...], path: str) -> TrustedPrograms:
    return TrustedPrograms(path, roots, sys.prefix)


def _programs(path: str, roots: tuple[str, ...]) -> Iterator[str]:
    """The trusted bubblewraps of a search path, or else the one of this interpreter's environment."""
    programs = _outside_of(roots, path)
    beside = programs.beside(_NAME)
    return iter(tuple(_trusted(programs, [])) or ((beside,) if beside else ()))


def _trusted(programs: TrustedPrograms, why: list[str]) -> Iterator[str]:
    """The system's first. Why one is not used is added to `why`."""
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
    """Why another user may have put a program there, or a folder above it; empty if none may."""
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


def _is_held_already() -> bool:
    try:
        text = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return False
    return any(line.split() in (["Seccomp:", "2"], ["NoNewPrivs:", "1"]) for line in text.splitlines())
