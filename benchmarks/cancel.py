"""How fast a cancelled request lets its connection go: `python benchmarks/cancel.py [ROUNDS]`.

Prints the milliseconds from the cancellation until the server has seen the connection close, median and most of all
rounds, for each HTTP adapter and for a bare asyncio connection in the same run.
"""

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Coroutine

from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin, Text, User
from bradawl.core.ports import Http, ModelInfo, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.workspace.machine import SystemClock, SystemIds

_HALF = b'data: {"choices":[{"delta":{"content":"Hel"},"finish_reason":null}]}\n\n'
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_ANSWERS = {"before the answer": b"", "in the middle of the answer": _HEAD + b"%x\r\n%b\r\n" % (len(_HALF), _HALF)}
Exchange = Callable[[str], Coroutine[object, object, None]]


class Server:
    """Answers each request with `answer` and then says nothing more, until the client leaves."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.asked, self.left = asyncio.Event(), asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self._answer)
        await writer.drain()
        self.asked.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        self.left.set()
        writer.close()


def with_adapter(adapter: Callable[[], Http]) -> Exchange:
    async def ask(url: str) -> None:
        target = ModelEndpoint(OpenAIChat(url), Endpoint("demo", url, "m"))
        model = HttpModel(target, adapter(), SystemClock(), SystemIds(), ModelInfo(Origin("openai_chat", "demo", "m")))
        session = model.open(Prefix("", ()))
        session.append(User((Text("Hi"),)))
        try:
            async with contextlib.aclosing(session.stream(RequestParams(), RetryBudget())) as deltas:
                async for _ in deltas:
                    pass
        finally:
            await model.aclose()

    return ask


async def bare(url: str) -> None:
    """The least that can be cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
    try:
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
        while await reader.read(65_536):
            pass
    finally:
        writer.close()


async def milliseconds(ask: Exchange, answer: bytes) -> float:
    """From the cancellation until the server has seen the connection close."""
    serving = Server(answer)
    server = await asyncio.start_server(serving.serve, "127.0.0.1", 0)
    async with server:
        task = asyncio.ensure_future(ask(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
        await serving.asked.wait()
        await asyncio.sleep(0.02)
        began = time.perf_counter()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await serving.left.wait()
        return (time.perf_counter() - began) * 1_000


async def main(rounds: int) -> None:
    ways = {"direct": with_adapter(DirectHttp), "httpx2": with_adapter(Httpx2Http), "bare asyncio": bare}
    for when, answer in _ANSWERS.items():
        took: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, ask in ways.items():
                took[name].append(await milliseconds(ask, answer))
        for name, found in took.items():
            print(f"{when:28} {name:13} median {statistics.median(found):6.2f} ms, most {max(found):6.2f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
