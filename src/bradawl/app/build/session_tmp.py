"""The `/tmp` of a session: its own folder, and what the user's prompts name in the machine's `/tmp`."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bradawl.agent.configuration import TurnEnd
from bradawl.app.settings.settings import Settings
from bradawl.core.effects import is_within
from bradawl.core.permissions import Policy

if TYPE_CHECKING:
    from bradawl.sandbox.machine_tmp import MachineTmp
    from bradawl.sandbox.scratch import SessionScratch
    from bradawl.sandbox.selection import SandboxSelection

_NAMED: Final = "/tmp/"  # noqa: S108 - as prompts name it
_TMP: Final = "/tmp"  # noqa: S108 - as commands name it


class SessionTmp:
    """What the sandbox, the file tools and the permissions know about `/tmp`. Most sessions load nothing for it."""

    def __init__(self, settings: Settings, folder: str, kept_apart: Iterable[str]) -> None:
        """`folder` holds the folders of the project's sessions; `kept_apart` are folders with rules of their own."""
        self._folder = folder
        self._temporary = os.path.realpath(settings.environment.get("TMPDIR") or Path("/") / "tmp")
        self._kept_apart = tuple(kept_apart)
        self._scratch: SessionScratch | None = None
        self._machine: MachineTmp | None = None
        self._choice: SandboxSelection | None = None
        self._policy: Callable[[], Policy] = Policy
        self._said_for = ""
        """The folder of the session that was told where its files are kept."""

    @property
    def scratch(self) -> "SessionScratch":
        """Chooses the session's folder."""
        if self._scratch is None:
            from bradawl.sandbox.scratch import SessionScratch

            self._scratch = SessionScratch(self._folder, self._temporary)
        return self._scratch

    def sandboxed_by(self, choice: "SandboxSelection") -> None:
        """Learn which sandbox uses the folder."""
        self._choice = choice

    def begin_session(self, session_id: str) -> None:
        """Use the folder of a saved session from now on. Call between sessions."""
        if self._choice is not None:
            self.scratch.choose(session_id)

    @property
    def known(self) -> str:
        """The session's folder; empty as long as there is none."""
        return "" if self._scratch is None or self._choice is None else self._scratch.known

    def _is_private(self) -> bool:
        """Whether `/tmp` is the session's folder for commands and file tools. The first call may wait."""
        sandbox = None if self._choice is None else self._choice.sandbox
        return sandbox is not None and bool(sandbox.name) and "private_tmp" not in sandbox.lacks

    # ------------------------------------------------------------------ what prompts name

    def begin_turn(self, texts: Iterable[str], policy: Callable[[], Policy]) -> None:
        """Take the paths below `/tmp` that texts of the user name into account. The last text is the present one."""
        self._policy, texts = policy, tuple(texts)
        if self._machine is None:
            if not any(_NAMED in text for text in texts):
                return
            from bradawl.sandbox.machine_tmp import MachineTmp

            self._machine = MachineTmp(self.scratch, self._kept_apart, self._is_private, self._judge)
        self._machine.begin_turn(texts)

    def end_turn(self) -> TurnEnd:
        """Copy what was written at named paths to the machine's `/tmp`."""
        return TurnEnd() if self._machine is None else TurnEnd(*self._machine.end_turn())

    def _judge(self) -> Callable[[str], str]:
        """Returns why a path below `/tmp` may not be written unasked at this moment, although a prompt names it."""
        from bradawl.safety.permissions.unasked_writes import objection_to_write

        policy, real = self._policy(), os.path.realpath(_TMP)

        def objection(path: str) -> str:
            names = dict.fromkeys((path, _TMP + path[len(real) :]))  # as rules may name it
            return next(filter(None, (objection_to_write(policy, name) for name in names)), "")

        return objection

    def shown(self) -> tuple[str, ...]:
        """Paths of the machine's `/tmp` that commands may read."""
        return () if self._machine is None else self._machine.shown()

    def not_shown(self) -> Mapping[str, str]:
        """Paths of the machine's `/tmp` that prompts name and commands may not read, and why."""
        return {} if self._machine is None else self._machine.not_shown()

    def writable(self) -> tuple[str, ...]:
        """Paths of the machine's `/tmp` that file tools may write, unless a rule is against it."""
        return () if self._machine is None else self._machine.writable()

    def writing(self, path: str) -> AbstractContextManager[None]:
        """Around each write of a file tool."""
        return nullcontext() if self._machine is None else self._machine.writing(path)

    # ------------------------------------------------------------------ what the model is told

    def name_of(self, path: str) -> tuple[str, str]:
        """How commands call a path, and a remark for the first result that names one; empty for other paths."""
        if not (self.known and is_within(path, self.known) and self._is_private()):
            return "", ""
        name = _TMP + path[len(self.known) :]
        if self._machine is not None and self._machine.copies(name):
            return name, " (it is in the machine's /tmp when the turn ends)"
        is_new, self._said_for = self._said_for != self.known, self.known
        return name, f" ({self._where(path)}; the real /tmp is not changed)" if is_new else ""

    def plain_name_of(self, path: str) -> str:
        """How commands call a path; the same for most paths."""
        is_inside = bool(self.known) and is_within(path, self.known) and self._is_private()
        return _TMP + path[len(self.known) :] if is_inside else path

    def _where(self, path: str) -> str:
        return f"kept in {path}" if self.scratch.is_kept else f"in {path} until the session ends"

    def about_missing(self, path: str) -> str:
        """A remark on a path of the session that only the machine's `/tmp` has; empty for other paths."""
        if not (self.known and is_within(path, self.known)) or os.path.lexists(path):
            return ""
        name = _TMP + path[len(self.known) :]
        if why := self.not_shown().get(name, ""):
            return _NOT_SHOWN.format(_TMP, name, why)
        return _ONLY_THERE.format(_TMP, name) if os.path.lexists(name) else ""


_NOT_SHOWN: Final = "{0} here is the session's own folder. The machine's {1} is not shown: {2}"
_ONLY_THERE: Final = (
    "{0} here is the session's own folder. The machine's {1} is shown only if a prompt of the user names it"
)
