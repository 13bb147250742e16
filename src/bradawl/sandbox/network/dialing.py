"""Resolves a destination once, checks every address, and connects to one of the checked addresses."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

import msgspec

from bradawl.safety.host_names import WHY_PRIVATE, is_private_name
from bradawl.safety.public_addresses import PRIVATE, why_not_public_address
from bradawl.sandbox.network.destinations import Destination
from bradawl.sandbox.network.own_addresses import is_own_address

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host name and port to addresses. Raises `OSError` if there are none."""
LookUp = Callable[[str, int], Sequence[str]]
"""The same as `Resolve`, and blocks."""
Connect = Callable[[str, int], Awaitable[socket.socket]]
"""Connects to an address and port; returns a non-blocking socket that the caller owns. Raises `OSError`."""

_RESOLVE_LIMIT_S: Final = 20.0
_CONNECT_LIMIT_S: Final = 20.0
_STAGGER_S: Final = 0.25
"""Delay after which the next address is tried beside the others, as RFC 8305 recommends."""
_MOST_ADDRESSES: Final = 8
_MOST_LOOKUPS: Final = 32
"""Lookups at a time: each takes a thread, also when nothing waits for its answer any more."""
_MOST_BESIDE: Final = 64
"""Attempts of all connections together that run beside another attempt of the same connection: each takes a file."""
_OWN: Final = "an address of this machine's own network interfaces"
"""Services that listen on all of them are there, too, which the program is not to reach by a name of another owner."""
_PAUSE_S: Final = 0.02


class RefusedDestination(Exception):
    """The rules permit no connection to the destination; the text is the reason."""


class Unreachable(Exception):
    """No connection could be made; the text is the reason."""


class Upstream(msgspec.Struct, frozen=True):
    """The user's own proxy, to which connections are passed on."""

    host: str
    port: int
    authorization: str = ""
    """Value of `Proxy-Authorization`; empty for none."""
    is_tls: bool = False
    ca_file: str = ""
    """PEM certificates that alone are trusted with TLS; empty for the system's."""


class Dialer:
    """Connects to destinations that rules on names and addresses permit. Used in one event loop at a time."""

    def __init__(
        self,
        *,
        private_hosts: Callable[[], Collection[str]] = tuple,
        upstream: Callable[[Destination], Upstream | None] | None = None,
        resolve: Resolve | None = None,
        look_up: LookUp | None = None,
        connect: Connect | None = None,
        is_own: Callable[[str], bool] = is_own_address,
        stagger_s: float = _STAGGER_S,
    ) -> None:
        """`private_hosts` returns the hosts whose addresses may be private, by `Destination.label` or host name.

        `upstream` returns the user's proxy for a destination, None for a direct connection. `resolve` or `look_up`,
        `connect` and `is_own` replace the system's. `stagger_s` is the time after which the next address is tried.
        """
        self._private_hosts = private_hosts
        self._upstream = upstream
        self._resolve = resolve or _Lookups(look_up or _system_addresses).resolve
        self._is_own = is_own
        self._attempts = _Attempts(connect or _connected, stagger_s)

    def check_name(self, destination: Destination) -> None:
        """Raise `RefusedDestination` for a name that only private networks know, unless it may be private."""
        if is_private_name(destination.host) and not self._may_be_private(destination):
            raise RefusedDestination(WHY_PRIVATE)

    def _may_be_private(self, destination: Destination) -> bool:
        hosts = self._private_hosts()
        return destination.label in hosts or destination.host in hosts

    def upstream_for(self, destination: Destination) -> Upstream | None:
        """The user's proxy for a destination; None for a direct connection."""
        return None if self._upstream is None else self._upstream(destination)

    async def dial(self, destination: Destination) -> socket.socket:
        """A connection to one of the destination's addresses, of which all must be permitted.

        Raises `RefusedDestination` and `Unreachable`.
        """
        found = await self._addresses(destination.host, destination.port)
        if why := self._why_refused(found, may_be_private=self._may_be_private(destination)):
            raise RefusedDestination(why)
        return await self._dial(found, destination.port)

    def _why_refused(self, addresses: Sequence[str], *, may_be_private: bool) -> str:
        """Why one of the addresses is not permitted; empty if all are. Raises `Unreachable`."""
        for address in addresses:
            try:
                kind = why_not_public_address(address) or (_OWN if self._is_own(address) else "")
            except OSError as error:
                raise Unreachable(error.strerror or "its address could not be checked") from error
            is_private = kind in (PRIVATE, _OWN)
            if kind and not (is_private and may_be_private):
                advice = "; `network` in the settings must name the host exactly" if is_private else ""
                return f"it is at {address}, {kind}{advice}"
        return ""

    async def dial_upstream(self, upstream: Upstream) -> socket.socket:
        """A connection to the user's proxy, wherever that is. Raises `Unreachable`."""
        return await self._dial(await self._addresses(upstream.host, upstream.port), upstream.port)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            async with asyncio.timeout(_RESOLVE_LIMIT_S):
                found = await self._resolve(host, port)
        except TimeoutError as error:
            raise Unreachable("its name could not be resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise Unreachable("its name could not be resolved") from error
        if not found:
            raise Unreachable("its name could not be resolved")
        return found

    async def _dial(self, addresses: Sequence[str], port: int) -> socket.socket:
        try:
            async with asyncio.timeout(_CONNECT_LIMIT_S):
                return await _first_connected(_interleaved(addresses), port, self._attempts)
        except TimeoutError as error:
            raise Unreachable("it did not answer in time") from error
        except OSError as error:
            raise Unreachable(error.strerror or "it does not accept connections") from error


def _interleaved(addresses: Sequence[str]) -> list[str]:
    """Addresses of both families in turn, beginning with the family of the first."""
    first = [each for each in addresses if (":" in each) == (":" in addresses[0])]
    second = [each for each in addresses if each not in first]
    pairs = [each for pair in zip(first, second, strict=False) for each in pair]
    shorter = min(len(first), len(second))
    return [*pairs, *first[shorter:], *second[shorter:]][:_MOST_ADDRESSES]


class _Attempts(msgspec.Struct):
    """How connections are attempted, and how many attempts run beside others."""

    connect: Connect
    stagger_s: float
    beside: int = 0


async def _first_connected(addresses: Sequence[str], port: int, attempts: _Attempts) -> socket.socket:
    """The first connection; the next address is tried when one has failed, or has not answered for a moment."""
    if len(addresses) == 1:
        return await attempts.connect(addresses[0], port)
    race = _Race(port, attempts)
    try:
        await race.run(addresses)
    except BaseException:
        race.close_all_but(0)
        raise
    race.close_all_but(1)
    if not race.made:
        raise race.errors[-1]
    return race.made[0]


class _Race:
    """Attempts to connect to several addresses."""

    def __init__(self, port: int, attempts: _Attempts) -> None:
        self._port = port
        self._attempts = attempts
        self.made: list[socket.socket] = []
        self.errors: list[OSError] = []

    async def run(self, addresses: Sequence[str]) -> None:
        pending: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            for address in addresses:
                while pending and self._attempts.beside >= _MOST_BESIDE and not self.made:
                    _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                if self.made:
                    break
                task = group.create_task(self._attempt(address))
                if pending:
                    self._count_beside(task)
                pending.add(task)
                _, pending = await asyncio.wait(
                    pending, timeout=self._attempts.stagger_s, return_when=asyncio.FIRST_COMPLETED
                )
            while pending and not self.made:
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()

    def _count_beside(self, task: "asyncio.Task[None]") -> None:
        def end(_: object) -> None:
            self._attempts.beside -= 1

        self._attempts.beside += 1
        task.add_done_callback(end)

    async def _attempt(self, address: str) -> None:
        try:
            self.made.append(await self._attempts.connect(address, self._port))
        except OSError as error:
            self.errors.append(error)

    def close_all_but(self, kept: int) -> None:
        for each in self.made[kept:]:
            each.close()


async def _connected(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


def _system_addresses(host: str, port: int) -> Sequence[str]:
    """Addresses from the system's resolver, in its order. Blocks."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in entries))


class _Lookups:
    """Looks up names, each in a thread of its own: those of an executor would hold up the end of the program."""

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._running = 0
        self._lock = threading.Lock()

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """See `Resolve`. Waits for the end of another lookup if there are too many."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str] | OSError] = loop.create_future()

        def settle(found: Sequence[str] | OSError) -> None:
            if not answer.done():
                answer.set_result(found)

        def ask() -> None:
            try:
                found = self._look_up(host, port)
            except (OSError, UnicodeError) as error:
                found = OSError(str(error))
            finally:
                self._count(-1)
            try:
                loop.call_soon_threadsafe(settle, found)
            except RuntimeError:  # the event loop has been closed
                return

        while self._running >= _MOST_LOOKUPS:  # noqa: ASYNC110 - threads end them, perhaps after the event loop's end
            await asyncio.sleep(_PAUSE_S)
        self._count(1)
        try:
            threading.Thread(target=ask, name="resolve", daemon=True).start()
        except RuntimeError as error:
            self._count(-1)
            raise OSError(str(error)) from error
        found = await answer
        if isinstance(found, OSError):
            raise found
        return found

    def _count(self, number: int) -> None:
        with self._lock:
            self._running += number
