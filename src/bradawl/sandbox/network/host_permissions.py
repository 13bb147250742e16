"""Which hosts one command may reach: asked for once per host, and the same for all its connections."""

import asyncio
import threading
from collections import deque
from typing import Final

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.ports import Permit
from bradawl.sandbox.network.destinations import STANDARD_PORTS, Destination, Refusal

_MOST_REFUSED_HOSTS: Final = 1_000
"""Refused hosts that are remembered; a program can name any number of them."""
_MOST_GRANTED_HOSTS: Final = 5_000
"""The same of granted hosts: below a granted domain there is any number of names."""
_MOST_REFUSALS: Final = 10
"""Refusals that are kept for the result."""
_REFUSED_FOR_S: Final = 5.0
_NOT_GRANTED: Final = "the command has no permission for it"
_ENDED: Final = "the command has ended"
_UNANSWERED: Final = "the user was asked, and had not answered when the command ended: it must wait longer"
_FURTHER: Final = "the network proxy refused further hosts"


class HostPermissions:
    """The hosts of one command. The proxy's event loop asks; the agent's answers, with `permit`.

    `check` belongs to the proxy's loop and `wait_answering` to the agent's; the other methods to either.
    """

    def __init__(self, permit: Permit | None, *, whole_network: bool, refused_for_s: float = _REFUSED_FOR_S) -> None:
        """`permit` is awaited in the running event loop, also with the whole network, since rules may refuse a host.
        Without `permit`, `whole_network` permits every host on the standard ports.

        A host is judged once. But one that is refused after a time limit of `wait_answering`, so that nobody was asked,
        is judged again `refused_for_s` seconds later: meanwhile another command may have brought an answer.
        """
        self._refused_for_s = refused_for_s
        self._is_in_background = False
        self._permit = permit
        self._whole_network = whole_network
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()
        self._questions: list[str] = []
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._refused: deque[str] = deque()
        """The refused hosts of `_answers`, the oldest first."""
        self._granted: deque[str] = deque()
        """The granted ones."""
        self._proxy_loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._refusals: dict[Refusal, None] = {}
        self._is_closed = False

    # ------------------------------------------------------------------ in the proxy's loop

    async def check(self, destination: Destination) -> str:
        """Why the command may not reach a destination; empty if it may. Waits for an answer if there is none yet."""
        if self._permit is None:
            if self._whole_network and destination.port in STANDARD_PORTS:
                return ""
            only = destination.port not in STANDARD_PORTS
            return f"only the ports {_PORTS} are permitted" if only else _NOT_GRANTED
        answer = self._answers.get(destination.label)
        if answer is None:
            answer = self._answers[destination.label] = asyncio.get_running_loop().create_future()
            self._ask(destination.label, answer)
        return await asyncio.shield(answer)

    def _ask(self, label: str, answer: asyncio.Future[str]) -> None:
        self._proxy_loop = asyncio.get_running_loop()
        with self._lock:
            if not self._is_closed:
                self._questions.append(label)
        try:
            self._loop.call_soon_threadsafe(self._asked.set)
        except RuntimeError:  # the agent's event loop has been closed
            self._is_closed = True
        if self._is_closed:
            answer.set_result(_ENDED)

    def refuse(self, refusal: Refusal) -> None:
        """Record a connection that was refused or failed, for the command's result."""
        with self._lock:
            if len(self._refusals) <= _MOST_REFUSALS:
                self._refusals[refusal] = None

    # ------------------------------------------------------------------ in the agent's loop

    async def wait_answering(self, ended: asyncio.Future[None], timeout_s: float) -> None:
        """Wait for the end of the command, at most `timeout_s` seconds, and answer the proxy meanwhile.

        The time of open questions does not count. Questions that are still open at the end are cancelled, and named
        in the command's result.
        """
        deadline = self._loop.time() + timeout_s
        open_questions: dict[asyncio.Task[None], str] = {}
        async with asyncio.TaskGroup() as group:
            try:
                while not ended.done():
                    now = self._loop.time()
                    asked = group.create_task(self._asked.wait())
                    left_s = None if open_questions else max(0.0, deadline - now)
                    await asyncio.wait((ended, asked, *open_questions), timeout=left_s, return_when=_FIRST)
                    asked.cancel()
                    if open_questions:
                        deadline += self._loop.time() - now
                    elif self._loop.time() >= deadline:
                        self._is_in_background = True
                        break
                    open_questions = {task: label for task, label in open_questions.items() if not task.done()}
                    open_questions |= {group.create_task(self._judge(label)): label for label in self._take_questions()}
            finally:
                for task, label in open_questions.items():
                    if task.cancel() and ended.done():
                        host, _, port = label.partition(":")
                        self.refuse(Refusal(host, int(port or 0), _UNANSWERED))

    def _take_questions(self) -> list[str]:
        self._asked.clear()
        with self._lock:
            taken, self._questions = self._questions, []
        return taken

    async def _judge(self, label: str) -> None:
        reason = _ENDED
        try:
            if self._permit is not None:
                await self._permit(Effects(hosts=(label,)))
            reason = ""
        except ToolError as error:
            reason = str(error) or _NOT_GRANTED
        finally:
            self._answer(label, reason)

    def _answer(self, label: str, reason: str) -> None:
        if self._proxy_loop is None:
            return
        try:
            self._proxy_loop.call_soon_threadsafe(self._settle, label, reason)
        except RuntimeError:  # the proxy has ended
            return

    def _settle(self, label: str, reason: str) -> None:
        answer = self._answers.get(label)
        if answer is None or answer.done():
            return
        answer.set_result(reason)
        if reason and self._is_in_background:
            asyncio.get_running_loop().call_later(self._refused_for_s, self._answers.pop, label, None)
            return
        kept, most = (self._refused, _MOST_REFUSED_HOSTS) if reason else (self._granted, _MOST_GRANTED_HOSTS)
        kept.append(label)
        if len(kept) > most:
            self._answers.pop(kept.popleft(), None)

    def close(self) -> None:
        """Refuse what has not been answered."""
        with self._lock:
            self._is_closed = True
            left, self._questions = self._questions, []
        for label in left:
            self._answer(label, _ENDED)

    def notes(self) -> tuple[str, ...]:
        """A sentence about each host that was refused or not reached, for the command's result."""
        with self._lock:
            refusals = list(self._refusals)
        more = (_FURTHER,) if len(refusals) > _MOST_REFUSALS else ()
        return (*(str(each) for each in refusals[:_MOST_REFUSALS]), *more)


_FIRST: Final = asyncio.FIRST_COMPLETED
_PORTS: Final = " and ".join(map(str, STANDARD_PORTS))
