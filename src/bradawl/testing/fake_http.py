"""An `Http` that answers from a script; import it from `bradawl.testing.fakes`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec

from bradawl.core.http import HttpError, HttpRequest


class Cut(msgspec.Struct, frozen=True):
    """The connection breaks here."""

    kind: str = "connection"


class Reply(msgspec.Struct, frozen=True):
    """One scripted response: chunks, cuts, and events to wait for before the next chunk."""

    status: int = 200
    chunks: tuple[bytes | Cut | asyncio.Event, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


class _Response:
    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in reply.headers}

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._reply.chunks:
            if isinstance(chunk, asyncio.Event):
                await chunk.wait()
            elif isinstance(chunk, Cut):
                raise _broken(chunk)
            else:
                yield chunk


def _broken(cut: Cut) -> HttpError:
    return HttpError("timeout" if cut.kind == "timeout" else "connection", "The script cuts the exchange here.")


class ScriptedHttp:
    """`Http` that answers from a list, or by a function of the request. A `Cut` refuses the connection."""

    def __init__(self, replies: Iterable[Reply | Cut] | Callable[[HttpRequest], Reply | Cut]) -> None:
        self._answer = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self.requests: list[HttpRequest] = []
        """The requests received."""
        self.open = 0
        """Number of open exchanges."""
        self.is_closed = False

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[_Response]:
        """The next reply. Raises `HttpError` for a `Cut` and past the end of the script."""
        self.requests.append(request)
        reply = self._next(request)
        if isinstance(reply, Cut):
            raise _broken(reply)
        self.open += 1
        try:
            yield _Response(reply)
        finally:
            self.open -= 1

    def _next(self, request: HttpRequest) -> Reply | Cut:
        if self._answer is not None:
            return self._answer(request)
        if len(self.requests) > len(self._replies):
            raise HttpError("connection", f"Only {len(self._replies)} replies were scripted.")
        return self._replies[len(self.requests) - 1]

    async def aclose(self) -> None:
        """Set `is_closed`."""
        self.is_closed = True
