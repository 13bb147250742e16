"""Finds what calls change in a workspace, through a process of its own that keeps an index of all files.

The process is started with bradawl's own modules and no others, outside of any sandbox. It ends when the agent closes
its socket or dies.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bradawl.checkpoints.errors import LOST
from bradawl.core.workspace import Checkpoint

if TYPE_CHECKING:
    from bradawl.checkpoints.protocol import Found, Request

BEGIN_S: Final = 2.0
"""Longest wait of a call for the state before it, in seconds."""
SETTLE_S: Final = 5.0
"""Longest wait for the searches of ended calls, in seconds."""
_SILENT_S: Final = 60.0
"""A process that answers nothing for so long is ended."""
_EXIT_S: Final = 1.0
_DELAY_S: Final = 0.03
"""Seconds from `start` to the start of the program, so that it does not compete with the first request."""
_NICENESS: Final = 5
# msgspec imports typing_extensions if it is installed, but works without; that takes 10 ms.
# The process ends with its agent. A signal for both, as at a shutdown, must not end it before: it has to find what the
# last call changed.
_PROGRAM: Final = f"""\
import os, signal, sys
for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(each, signal.SIG_IGN)
os.nice({_NICENESS})
sys.path += sys.argv[1:]
sys.modules["typing_extensions"] = None
from bradawl.checkpoints.worker import main
main(0)
os._exit(0)
"""


class OwnFolders(NamedTuple):
    """Folders of bradawl that a search must know."""

    excluded: tuple[str, ...] = ()
    """Folders that no search enters."""
    sandbox_state: str = ""
    """Folder with the records of sandboxes, whose placeholders are no changes; empty for none."""


_NO_FOLDERS: Final = OwnFolders()


class LocalChanges:
    """`WorkspaceChanges` for the folders of one workspace. Its owner calls `close`.

    If the process ends unexpectedly it is started once more, and searches for what the calls changed that ran then. If
    that fails too, calls run all the same, and each checkpoint says that nothing was saved.
    """

    def __init__(
        self,
        roots: tuple[str, ...],
        folder: str,
        *,
        own: OwnFolders = _NO_FOLDERS,
        environment: Mapping[str, str] | None = None,
        notify: Callable[[str], None] | None = None,
        may_restart: bool = True,
        interpreter: str = "",
    ) -> None:
        """Nothing is started before `start` or the first call.

        `folder` is for contents, change records and the index; no search enters it. `notify` gets each warning once.
        Without `may_restart` the process is not started again: a command could have changed its modules, because they
        are in the workspace.
        """
        self._roots, self._folder, self._own = roots, folder, own
        self._environment = dict(environment or {})
        self._notify = notify
        self._interpreter = interpreter or sys.executable
        self._starts_left = 2 if may_restart else 1
        self._uses_index = True
        self._thread: threading.Thread | None = None
        self._is_needed = threading.Event()
        """A call waits for the start of the process, or nothing needs it any more."""
        self._process: _SearchProcess | None = None
        self._problem = ""
        """Why nothing is saved; empty while the process works."""
        self._warned: set[str] = set()
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._begun: set[str] = set()
        """Calls that the present process has been told to begin."""
        self._lost: set[str] = set()
        """Calls that ran when a process ended: the next one searches for what they changed."""
        self._searches: Counter[str] = Counter()
        """Ended calls without an answer yet."""
        self._found: defaultdict[str, list[Checkpoint]] = defaultdict(list)
        """By owner."""
        self._parts: set[str] = set()
        """Records of calls that had not ended: the next process finds them once more."""
        self._received = 0
        """Number of search results that the present process has sent."""
        self._failure = ""
        """Why the process has ended, in its own words."""
        self._unanswered_since = 0.0
        """Monotonic time; 0 while no answer is expected."""
        self._is_closed = False

    # ------------------------------------------------------------------ the port

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        """Wait until the state before the call is saved, at most `BEGIN_S` seconds. Raises nothing."""
        if paths is not None and not all(map(_is_utf8, paths)):
            paths = None  # messages have UTF-8 names only, so every file is searched

        def request(process: _SearchProcess, number: int) -> "Request":
            self._begun.add(call_id)
            self._lost.discard(call_id)
            return process.protocol.Begin(number, call_id, paths, time.monotonic() + BEGIN_S)

        await self._asked(request, BEGIN_S + 0.1)
        return self._taken(_owner_and_id(call_id)[0])

    def end(self, call_id: str) -> None:
        """Search for what the call changed, in the background."""
        process = self._running()
        was_lost = call_id in self._lost
        self._lost.discard(call_id)
        if process is None:
            self._add(call_id, "", self._problem or LOST, is_known=False)
            return
        self._begun.discard(call_id)
        self._searches[call_id] += 1
        self._ask(process, process.protocol.End(call_id, was_lost))

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """Wait for the searches of ended calls, at most `SETTLE_S` seconds. What is found later is returned later."""
        if not self._is_closed and (self._searches or (self._begun and self._process is not None)):
            await self._asked(lambda process, number: process.protocol.Settle(number), SETTLE_S)
        return self._taken(owner)

    async def covers(self) -> bool:
        """Whether undo can bring back all files of the workspace. Waits for the first search, at most `BEGIN_S` s."""
        return await self._asked(
            lambda process, number: process.protocol.Cover(number, time.monotonic() + BEGIN_S), BEGIN_S + 0.1
        )

    # ------------------------------------------------------------------ the process

    @property
    def pid(self) -> int | None:
        """Id of the running process; None if there is none."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process in the background, unless it was started."""
        if self._thread is None and not self._problem and not self._is_closed:
            self._starts_left -= 1
            thread = threading.Thread(target=self._start, name="changes", daemon=True)
            thread.start()  # before others see it: a thread that was not started can't be joined
            self._thread = thread

    def close(self) -> None:
        """End the process; waits at most a second for it. Safe to call twice."""
        self._is_closed = True
        self._is_needed.set()
        if self._thread is not None:
            self._thread.join()
        if (process := self._process) is not None:
            if self._received:
                process.send(process.protocol.Received(self._received))  # it may turn out to have ended
            process.close(is_idle=not self._numbers)
        self._process = None
        self._problem = self._problem or "the agent is closed."

    def _start(self) -> None:
        self._is_needed.wait(_DELAY_S)
        if self._is_closed:
            return
        uses_index, self._uses_index = self._uses_index, False
        try:
            process = _SearchProcess(self, self._interpreter, self._environment)
        except OSError as error:
            self._problem = f"Undo can't restore it: {error.strerror or error}."
            return
        own = (self._folder, *self._own.excluded)
        process.send(process.protocol.Open(self._roots, self._folder, own, uses_index, self._own.sandbox_state))
        for call_id in self._searches.elements():
            process.send(process.protocol.End(call_id, was_lost=True))
        self._process = process  # after the first message: from now on the event loop sends

    def _running(self) -> "_SearchProcess | None":
        """The process, started if need be; None if there is none."""
        while self._process is None and not self._problem:
            self.start()
            self._is_needed.set()
            if (thread := self._thread) is None:
                break
            thread.join()  # it only starts a program
        if self._problem:
            self._warn(f"Changes of this session can't be undone. {self._problem}")
            for call_id in self._searches.elements():
                self._add(call_id, "", LOST, is_known=False)
            self._searches.clear()
        return self._process

    def lost(self, process: "_SearchProcess", why: str) -> None:
        """The process has ended, or broken the protocol."""
        if process is not self._process:
            return
        self._process = self._thread = None
        self._received = 0
        process.close()
        self._lost |= self._begun
        self._begun.clear()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(False)
        if self._starts_left > 0 and not self._is_closed:
            self.start()
        else:
            why = why or self._failure
            self._problem = f"Undo can't restore it: the process that finds changes ended{why and f': {why}'}."

    # ------------------------------------------------------------------ answers

    async def _asked(self, new_request: "Callable[[_SearchProcess, int], Request]", timeout_s: float) -> bool:
        """Send a request and wait for its answer; of the process that is started instead if this one is lost meanwhile.

        Returns the answer's `covers`. False after the timeout, and without a process.
        """
        while (process := self._running()) is not None:
            self._numbers += 1
            self._ask(process, new_request(process, self._numbers))
            covers = await self._answer(process, self._numbers, timeout_s)
            if process is self._process:
                return covers
        return False

    def _ask(self, process: "_SearchProcess", request: "Request") -> None:
        self._unanswered_since = self._unanswered_since or time.monotonic()
        process.send(request)

    async def _answer(self, process: "_SearchProcess", number: int, timeout_s: float) -> bool:
        """Wait for the answer with this number; returns its `covers`. False after the timeout and a lost process."""
        loop = asyncio.get_running_loop()
        if process is not self._process:
            return False
        future = self._waiting[number] = loop.create_future()
        try:
            process.listen(loop)
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            if time.monotonic() - self._unanswered_since > _SILENT_S:
                self._starts_left = 0
                self.lost(process, f"it did not answer for {_SILENT_S:.0f} s")
        finally:
            del self._waiting[number]
            if not self._waiting:
                process.stop_listening()
        return False

    def received(self, process: "_SearchProcess", messages: list[bytes]) -> None:
        """Take messages of the process. Raises `ValueError` for one that is not valid."""
        protocol = process.protocol
        for data in messages:
            match reply := protocol.decode_reply(data):
                case protocol.Ready(number, covers):
                    if (future := self._waiting.get(number)) is not None and not future.done():
                        future.set_result(covers)
                case protocol.Found():
                    self._take(reply)
                case protocol.Warn(text):
                    self._warn(text)
                case protocol.Failed(why):
                    self._failure = why
        self._unanswered_since = time.monotonic() if self._waiting or self._searches else 0.0

    def _take(self, found: "Found") -> None:
        call_id, ref = found.call_id, found.ref
        if found.answers_end and self._searches[call_id] <= 1:
            del self._searches[call_id]
        elif found.answers_end:
            self._searches[call_id] -= 1
        if found.answers_end or ((ref or found.uncovered) and ref not in self._parts):
            self._add(call_id, ref, found.uncovered, is_known=found.is_known)
        if ref and not found.answers_end:
            self._parts.add(ref)
        self._received += 1

    def _add(self, call: str, ref: str, uncovered: str, *, is_known: bool) -> None:
        owner, call_id = _owner_and_id(call)
        self._found[owner].append(Checkpoint(call_id, ref, uncovered, is_known))

    def _taken(self, owner: str) -> tuple[Checkpoint, ...]:
        return tuple(self._found.pop(owner, ()))

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            if self._notify is not None:
                self._notify(text)


class _SearchProcess:
    """The running process and the agent's end of its socket."""

    def __init__(self, client: LocalChanges, interpreter: str, environment: Mapping[str, str]) -> None:
        """Start it. Raises `OSError`."""
        import msgspec

        from bradawl.checkpoints import protocol

        self.protocol = protocol
        self._client = weakref.ref(client)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsent = bytearray()
        self._buffer = bytearray()
        ours, theirs = socket.socketpair()
        places = dict.fromkeys((_parent(__file__, 3), _parent(msgspec.__file__, 2)))
        try:
            with theirs:
                process = subprocess.Popen(
                    (interpreter, "-I", "-S", "-c", _PROGRAM, *places),
                    cwd="/",
                    env=environment,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl+C does not reach it
                )
        except OSError:
            ours.close()
            raise
        ours.setblocking(False)
        self._line = ours
        self.pid = process.pid
        self._ending = weakref.finalize(client, _end, process, ours)

    def send(self, message: "Request") -> None:
        """Send a message; what the socket can't take yet is sent later."""
        self._unsent += self.protocol.frame(message)
        self._send_waiting()
        if len(self._unsent) > self.protocol.LONGEST_FRAME:
            self._lost("it takes no requests")

    def _send_waiting(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._line.send(self._unsent, getattr(socket, "MSG_NOSIGNAL", 0))]
        except BlockingIOError:
            pass
        except OSError:
            self._lost()

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read what arrives until `stop_listening`."""
        if self._loop is loop:
            return
        self.stop_listening()
        self._loop = loop
        loop.add_reader(self._line, self._read)

    def stop_listening(self) -> None:
        """Leave what arrives in the socket. Safe to call twice."""
        if self._loop is not None:
            self._loop.remove_reader(self._line)
            self._loop = None

    def _read(self) -> None:
        client = self._client()
        try:
            data = self._line.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or client is None:
            self._lost()
            return
        self._buffer += data
        try:
            client.received(self, self.protocol.take_frames(self._buffer))
        except ValueError as error:
            self._lost(str(error))
        else:
            self._send_waiting()

    def _lost(self, why: str = "") -> None:
        if (client := self._client()) is not None:
            client.lost(self, why)

    def close(self, *, is_idle: bool = False) -> None:
        """End it, at once if no call needed it; safe to call twice."""
        self.stop_listening()
        if is_idle and self._ending.alive:
            os.kill(self.pid, signal.SIGKILL)  # it has not been waited for, so the id is its own
        self._ending()


def _end(process: "subprocess.Popen[bytes]", line: socket.socket) -> None:
    line.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_EXIT_S)
    process.kill()
    process.wait()


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parent(module: str, levels: int) -> str:
    """The folder so many levels above a module's file; links are not followed, as in an import."""
    return str(Path(os.path.abspath(module)).parents[levels - 1])  # noqa: PTH100 - pathlib has no such function


def _owner_and_id(call: str) -> tuple[str, str]:
    owner, slash, call_id = call.partition("/")
    return (owner, call_id) if slash else ("", call)
