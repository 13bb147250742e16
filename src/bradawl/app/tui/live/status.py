"""The status line: mode, sandbox, model, effort, context, cost, branch and jobs."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bradawl.app.rendering import one_line, price_text
from bradawl.app.tui.render.cells import cut, width
from bradawl.app.tui.render.theme import Theme
from bradawl.core.errors import BradawlError
from bradawl.safety.git.small_files import named_in, read_text

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.app.frontend import FrontendSession
    from bradawl.core.ports import Model

_BRANCH_S: Final = 2.0
"""Seconds for which the branch is not read again."""
_DROPPED_FIRST: Final = ("branch", "effort", "cost", "sandbox", "model", "jobs", "context")
"""Facts that a narrow terminal does not show, in this order."""


class StatusLine:
    """Draws the facts of the open session."""

    def __init__(
        self, model: str, folder: str, begin: Callable[[Coroutine[Any, Any, None]], None], refresh: Callable[[], None]
    ) -> None:
        """`model` is shown until a session is open. `begin` does work beside the conversation; `refresh` draws."""
        self._model, self._folder = model, folder
        self._begin, self._refresh = begin, refresh
        self._session: FrontendSession | None = None
        self._window = 0
        self._asked: tuple[Model, int] | None = None
        """The model whose window is known or asked for, and the replies there were then."""
        self._branch, self._branch_at = "", -_BRANCH_S

    def follow(self, session: "FrontendSession | None") -> None:
        """Show this session from now on."""
        self._session, self._asked = session, None

    async def _find_window(self, model: "Model") -> None:
        """Ask for the size of the model's window; without an answer the share is not shown."""
        with contextlib.suppress(BradawlError):
            tokens = (await model.window()).tokens
            if self._asked is not None and self._asked[0] is model:
                self._window = tokens
                self._refresh()

    def _context(self, inner: "Session") -> str:
        """The share of the window that `/context` shows too; empty until both numbers are known."""
        model = inner.model.current
        if self._asked is None or self._asked[0] is not model:
            self._window = 0
        # A local server knows its window only when it has loaded the model: it is asked again after a reply.
        if self._asked != (asked := (model, inner.state.replies)):
            self._asked = asked
            self._begin(self._find_window(model))
        is_counted = inner.state.is_anchored or inner.prefix.is_open
        used = inner.prefix.context_tokens() if is_counted and inner.transcript.messages else 0
        return f"{used * 100 // self._window}% context" if self._window and used else ""

    def lines(self, theme: Theme, columns: int) -> list[str]:
        """One line that fits."""
        facts = self._facts()
        dot = f" {theme.symbols.dot} "
        for name in _DROPPED_FIRST:
            if width(f" {dot.join(facts.values())}") <= columns:
                break
            facts.pop(name, None)
        return [theme.paint(cut(f" {dot.join(facts.values())}", columns), "status")]

    def _facts(self) -> dict[str, str]:
        """What is shown, by name, in this order; what is empty is left out."""
        if (session := self._session) is None:
            return {"mode": "starting", "model": one_line(self._model)}
        inner, state = session.session, session.session.state
        facts = {
            "mode": session.mode,
            "sandbox": _sandbox_word(session),
            "model": one_line(session.model.name),
            "effort": one_line(inner.model.params.effort or ""),
            "context": self._context(inner),
            "cost": price_text(state.cost) if state.cost else "",
            "branch": self._branch_name(),
            "jobs": _jobs_word(len(inner.jobs.running)),
        }
        return {name: text for name, text in facts.items() if text}

    def _branch_name(self) -> str:
        loop = asyncio.get_running_loop()
        if loop.time() - self._branch_at >= _BRANCH_S:
            self._branch_at = loop.time()
            self._branch = branch_of(self._folder)
        return self._branch


def _sandbox_word(session: "FrontendSession") -> str:
    policy = session.session.policy()
    if session.mode == "bypass" and not policy.sandbox.name:
        return ""
    return "sandbox" if policy.sandbox.name else "NO SANDBOX"


def _jobs_word(count: int) -> str:
    return f"{count} job{'s' if count > 1 else ''}" if count else ""


def branch_of(folder: str) -> str:
    """The branch that is checked out, read from the file `HEAD` alone; empty if there is none."""
    for place in (Path(folder), *Path(folder).parents):
        git = place / ".git"
        if git.is_file():
            git = place / named_in(str(git), "gitdir: ")
        if git.is_dir():
            head = str(git / "HEAD")
            return one_line(named_in(head, "ref: refs/heads/") or read_text(head)[:8])
    return ""
