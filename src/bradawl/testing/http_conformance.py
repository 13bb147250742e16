"""Conformance suite for adapters of the `Http` port over real sockets, plain or with TLS.

Each case starts its own servers on loopback:

    @pytest.mark.parametrize("check", http_conformance.CASES)
    def test_my_adapter(check):
        asyncio.run(check(HttpSetup(MyHttp)))
"""

import asyncio
import contextlib
import gzip
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

import msgspec

from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import Http
from bradawl.testing.raw_server import Answer, RawServer, ServerExchange

PROMPT_S = 0.2
"""Time limit for the end of a cancelled exchange."""
_PATIENCE_S = 5.0


class HttpSetup(msgspec.Struct, frozen=True):
    """The factory of the adapter, and the TLS context of its servers."""

    make: Callable[[], Http]
    """A fresh adapter; with TLS one that trusts the certificate of `tls`."""
    tls: ssl.SSLContext | None = None
    """The servers' context, for `localhost`, `127.0.0.1` and `::1`; None for plain HTTP."""


def _require(claim: bool, promise: str) -> None:
    if not claim:
        raise AssertionError(promise)


@contextlib.asynccontextmanager
async def _serving(setup: HttpSetup, answer: Answer, host: str = "127.0.0.1") -> AsyncIterator[tuple[Http, RawServer]]:
    async with RawServer(answer, setup.tls, host) as server:
        http = setup.make()
        try:
            yield http, server
        finally:
            await http.aclose()


def post(url: str, *body: bytes, idle_timeout_s: float = _PATIENCE_S, **headers: str) -> HttpRequest:
    """A request as a provider's client makes it."""
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return HttpRequest("POST", url, pairs, body, connect_timeout_s=_PATIENCE_S, idle_timeout_s=idle_timeout_s)


async def fetch(http: Http, request: HttpRequest) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and whole body. Raises `HttpError`."""
    async with http.stream(request) as response:
        return response.status, dict(response.headers), b"".join([chunk async for chunk in response.chunks()])


async def _failure(exchange: Awaitable[object], promise: str) -> HttpError:
    try:
        await asyncio.wait_for(asyncio.ensure_future(exchange), _PATIENCE_S)
    except HttpError as error:
        return error
    raise AssertionError(promise)


# ------------------------------------------------------------------ requests


async def check_requests_arrive_whole(setup: HttpSetup) -> None:
    """The pieces of a body are sent as one body of known length; header values and unusual paths arrive unchanged."""

    async def echo(exchange: ServerExchange) -> None:
        await exchange.answer(await exchange.body())

    async with _serving(setup, echo) as (http, server):
        url = f"{server.url}/v1/x?y=%20z"
        _, _, body = await fetch(http, post(url, b"ab", b"", b"c" * 300_000, X_Test=" a\u00e9 b "))
        _require(body == b"ab" + b"c" * 300_000, "the pieces are sent as one body")
        asked = server.seen[0]
        _require(asked.header("content-length") == "300002", "the body's length is sent")
        _require(not asked.header("transfer-encoding"), "a body of known length is not sent in chunks")
        _require(asked.header("x-test") == "a\u00e9 b", "headers are sent in latin-1, without blanks around them")
        _require(asked.path == "/v1/x?y=%20z", "the path stays as given")
        _require(asked.header("host") == f"127.0.0.1:{server.port}", "the host is named with its port")
        await fetch(http, post(f"{server.url}/straße/ü b"))
        _require(server.seen[1].path == "/stra%C3%9Fe/%C3%BC%20b", "a path beyond ASCII is percent-encoded UTF-8")
        await fetch(http, HttpRequest("GET", server.url, ()))
        _require((server.seen[2].head.method, server.seen[2].path) == ("GET", "/"), "an empty path is the root")
        _require(not server.seen[2].header("content-length"), "a GET has no body")


async def check_what_can_not_be_sent_is_refused(setup: HttpSetup) -> None:
    """Line breaks in headers, invalid URLs and user names in URLs raise errors without secrets."""

    async def never(exchange: ServerExchange) -> None:
        await exchange.answer()

    async with _serving(setup, never) as (http, server):
        for value in ("hush\r\nx: y", "hush\n", "hush\0", "hush\x7f", "hush\u20ac"):
            request = HttpRequest("POST", server.url, (("authorization", value),), (b"{}",))
            error = await _failure(fetch(http, request), "such a header is refused")
            _require("hush" not in str(error) and "authorization" in str(error), "the header is named, not shown")
        for name in ("x\r\ny", "x y\u20ac", ""):
            request = HttpRequest("POST", server.url, ((name, "1"),), (b"{}",))
            await _failure(fetch(http, request), "such a name of a header is refused")
        with_user = server.url.replace("://", "://me:hush@")
        error = await _failure(fetch(http, post(with_user)), "a URL with a password is refused")
        _require("hush" not in str(error), "the password is not shown")
        for url in ("nonsense", "http://[", "ftp://127.0.0.1/", "http://127.0.0.1:99999/", "http://", "http://a b/"):
            await _failure(fetch(http, post(url)), f"{url!r} is refused")
        _require(not server.seen, "nothing of it was sent")


# ------------------------------------------------------------------ responses

_EVENTS = b"".join(b"data: %d\n\n" % number for number in range(12)) + "data: ü\n\n".encode()


def _head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode()


def _chunked(data: bytes, size: int, trailer: bytes = b"") -> bytes:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailer + b"\r\n"


_GZIPPED, _DEFLATED = gzip.compress(_EVENTS, mtime=0), zlib.compress(_EVENTS)
RESPONSES: dict[str, tuple[bytes, bytes]] = {
    "length": (_head(f"Content-Length: {len(_EVENTS)}") + _EVENTS, _EVENTS),
    "chunked": (_head("Transfer-Encoding: chunked") + _chunked(_EVENTS, 7), _EVENTS),
    "trailers": (_head("Transfer-Encoding: chunked") + _chunked(_EVENTS, 1000, b"X-Sum: 1\r\nY: 2\r\n"), _EVENTS),
    "until closed": (_head("Connection: close") + _EVENTS, _EVENTS),
    "old": (b"HTTP/1.0 200 OK\r\n\r\n" + _EVENTS, _EVENTS),
    "gzip": (_head("Content-Encoding: gzip", "Transfer-Encoding: chunked") + _chunked(_GZIPPED, 5), _EVENTS),
    "deflate": (_head("Content-Encoding: deflate", f"Content-Length: {len(_DEFLATED)}") + _DEFLATED, _EVENTS),
    "raw deflate": (_head("Content-Encoding: deflate", "Connection: close") + _DEFLATED[2:-4], _EVENTS),
    "identity": (_head("Content-Encoding: identity", "Content-Length: 2") + b"ok", b"ok"),
    "interim": (
        _head(status="100 Continue")
        + _head("Link: </a>", status="103 Early Hints")
        + _head("Content-Length: 2")
        + b"ok",
        b"ok",
    ),
    "no content": (_head(status="204 No Content"), b""),
    "empty": (_head("Content-Length: 0", status="503 Busy"), b""),
    "bare": (_head("Set-Cookie: a", "Set-Cookie: b", "X-U: ü", f"X-Long: {'l' * 60_000}", "Content-Length: 0"), b""),
}
"""The bytes of a response and the decoded body; each closes the connection at the end."""


def _splits(data: bytes, size: int) -> Iterable[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


async def respond(setup: HttpSetup, raw: bytes, size: int) -> tuple[int, dict[str, str], bytes]:
    """The adapter's result for these bytes, sent in pieces of `size`. Raises `HttpError`."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.body()
        await exchange.send(*_splits(raw, size))
        exchange.hang_up()

    async with _serving(setup, answer) as (http, server):
        return await fetch(http, post(server.url, b"{}"))


async def check_any_framing_in_any_pieces_gives_the_same(setup: HttpSetup) -> None:
    """Framing, compression and packet boundaries do not change status, headers and body."""
    for name, (raw, body) in RESPONSES.items():
        whole = await respond(setup, raw, len(raw))
        _require(whole[2] == body, f"{name}: the body is {body[:20]!r}, not {whole[2][:20]!r}")
        for size in (7, 1) if len(raw) < 1000 else (4000,):
            _require(await respond(setup, raw, size) == whole, f"{name}: pieces of {size} give the same")


async def check_pieces_come_out_as_they_come_in(setup: HttpSetup) -> None:
    """Received bytes are passed on at once, also from compressed bodies."""
    go_on = asyncio.Event()
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(b"first") + packer.flush(zlib.Z_SYNC_FLUSH)

    async def answer(exchange: ServerExchange) -> None:
        await exchange.send(_head("Content-Encoding: gzip", "Transfer-Encoding: chunked"), b"%x\r\n" % len(first))
        await exchange.send(first, b"\r\n")
        await go_on.wait()
        rest = packer.compress(b"second") + packer.flush()
        await exchange.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))

    async with _serving(setup, answer) as (http, server), http.stream(post(server.url)) as response:
        chunks = response.chunks()
        _require(await asyncio.wait_for(anext(chunks), _PATIENCE_S) == b"first", "a piece arrives when it was sent")
        go_on.set()
        _require(b"".join([chunk async for chunk in chunks]) == b"second", "and the rest after it")


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-",
    "cut length": _head("Content-Length: 10") + b"half",
    "cut chunks": _head("Transfer-Encoding: chunked") + b"5\r\nhello\r\n",
    "cut in a chunk": _head("Transfer-Encoding: chunked") + b"5\r\nhel",
    "no HTTP": b"what is this?\r\n\r\n",
    "bad chunk": _head("Transfer-Encoding: chunked") + b"zz\r\nhello\r\n",
    "endless chunk size": _head("Transfer-Encoding: chunked") + b"f" * 40 + b"\r\nhello\r\n",
    "bad length": _head("Content-Length: -3") + b"half",
    "two lengths": _head("Content-Length: 3", "Content-Length: 5") + b"half!",
    "bad gzip": _head("Content-Encoding: gzip", "Content-Length: 4") + b"nope",
    "flood of headers": b"HTTP/1.1 200 OK\r\n" + b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 30_000,
}
"""Bytes after which a server closes the connection."""


async def check_a_broken_exchange_says_where(setup: HttpSetup) -> None:
    """After a cut, bad bytes or a reset: the received bytes, then `HttpError(connection)` with the host's name."""
    for name, raw in BROKEN.items():
        error = await _failure(respond(setup, raw, max(len(raw), 1)), f"{name}: is an error")
        _require(error.kind == "connection" and "127.0.0.1" in str(error), f"{name}: is the connection's, with host")
    for sent in (b"", b"HTTP/1.1 200 OK\r\n", _head("Content-Length: 10") + b"half"):

        async def reset(exchange: ServerExchange, sent: bytes = sent) -> None:
            await exchange.body()
            await exchange.send(sent)
            exchange.reset()

        async with _serving(setup, reset) as (http, server):
            error = await _failure(fetch(http, post(server.url, b"{}")), "a reset is an error")
            _require(error.kind == "connection", "a reset is the connection's")


async def check_an_answer_may_arrive_before_the_request_is_sent(setup: HttpSetup) -> None:
    """The response of a server that does not read the request's body is received."""

    async def refuse(exchange: ServerExchange) -> None:
        await exchange.answer(b"too much", "413 Payload Too Large", "connection: close")
        await asyncio.wait_for(exchange.body(), _PATIENCE_S)  # a well-behaved server reads on for a while

    async with _serving(setup, refuse) as (http, server):
        status, _, body = await fetch(http, post(server.url, *[b"x" * 1_000_000] * 20))
        _require((status, body) == (413, b"too much"), "an early answer is the answer")


# ------------------------------------------------------------------ connections


async def check_connections_are_kept_and_no_longer_than_the_server_wants(setup: HttpSetup) -> None:
    """Requests share one connection; a new one is opened after the server closed it."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.body()
        await exchange.send(_head("Transfer-Encoding: chunked"), _chunked(b"one", 1))
        if exchange.path == "/last":
            exchange.hang_up()

    async with _serving(setup, answer) as (http, server):
        for _ in range(10):
            _require((await fetch(http, post(server.url, b"{}")))[2] == b"one", "each request is answered")
        _require(server.connections == 1, "one connection serves request after request")
        await fetch(http, post(f"{server.url}/last", b"{}"))
        await server.idle()
        _require(
            (await fetch(http, post(server.url, b"{}")))[2] == b"one", "a connection the server closed is replaced"
        )
        _require(server.connections == 2, "by one new one")
    await server.idle()


async def check_a_closing_server_is_asked_anew(setup: HttpSetup) -> None:
    """`Connection: close` is honoured."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.body()
        await exchange.answer(b"bye", "200 OK", "Connection: close")
        exchange.hang_up()

    async with _serving(setup, answer) as (http, server):
        for _ in range(3):
            _require((await fetch(http, post(server.url, b"{}")))[2] == b"bye", "each request is answered")
        _require(server.connections == 3, "each on a connection of its own")


async def check_concurrent_streams_do_not_mix(setup: HttpSetup) -> None:
    """Each of a hundred concurrent requests gets its own response."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.send(_head("Transfer-Encoding: chunked"), _chunked(await exchange.body() * 20, 11))

    async with _serving(setup, answer) as (http, server):
        names = [b"stream %03d " % number for number in range(100)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch(http, post(server.url, name))) for name in names]
        _require(all(task.result()[2] == name * 20 for task, name in zip(tasks, names, strict=True)), "no mixing")


async def check_ipv6_is_spoken(setup: HttpSetup) -> None:
    """IPv6 addresses in brackets work; skipped without IPv6."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.answer(exchange.header("host").encode())

    try:
        async with _serving(setup, answer, "::1") as (http, server):
            host = (await fetch(http, post(server.url)))[2].decode()
            _require(host == f"[::1]:{server.port}", "the host keeps its brackets")
    except OSError as error:
        _require(error.errno is not None, "only a machine without IPv6 may skip this")


# ------------------------------------------------------------------ redirects


async def check_redirects_stay_at_home(setup: HttpSetup) -> None:
    """Only 307 and 308 within the origin are followed, with method, body and key; other hosts get no request."""
    strangers: list[str] = []

    async def stranger(exchange: ServerExchange) -> None:
        strangers.append(exchange.header("authorization"))
        await exchange.answer(b"stranger")

    async def answer(exchange: ServerExchange) -> None:
        body = await exchange.body()
        code, _, place = exchange.path[1:].partition("/")
        if code == "end":
            said = f"{exchange.head.method} {exchange.header('authorization')} {body.decode()}"
            await exchange.answer(said.encode())
        else:
            target = {"same": "/end", "loop": exchange.path, "other": elsewhere.url, "none": ""}[place]
            await exchange.answer(b"moved", f"{code} Moved", *([f"Location: {target}"] if target else []))

    async with RawServer(stranger, setup.tls) as elsewhere, _serving(setup, answer) as (http, server):
        for code in (301, 302, 303, 307, 308):
            for place in ("same", "other", "none"):
                request = post(f"{server.url}/{code}/{place}", b"{", b"}", authorization="Bearer k")
                status, _, body = await fetch(http, request)
                follows = code in (307, 308) and place == "same"
                wanted = (200, b"POST Bearer k {}") if follows else (code, b"moved")
                _require((status, body) == wanted, f"{code} to {place}: {wanted} is given, not {(status, body)}")
        before = len(server.seen)
        _require(
            (await fetch(http, post(f"{server.url}/307/loop")))[0] == 307, "a redirect loop ends with the redirect"
        )
        _require(len(server.seen) - before == 4, "three redirects are followed, no more")
    _require(not strangers, "another origin is never asked")


# ------------------------------------------------------------------ time


async def check_silence_is_a_timeout_and_any_byte_is_life(setup: HttpSetup) -> None:
    """The idle timeout holds before the first byte and between bytes; any byte restarts it."""

    async def answer(exchange: ServerExchange) -> None:
        if exchange.path == "/slow":
            await exchange.send(_head("Content-Length: 6"))
            for _ in range(6):
                await asyncio.sleep(0.1)
                await exchange.send(b":")
            return
        if exchange.path == "/stuck":
            await exchange.send(_head("Content-Length: 6"), b"a")
        await exchange.until_client_closed()

    async with _serving(setup, answer) as (http, server):
        request = post(f"{server.url}/slow", idle_timeout_s=0.4)
        _require((await fetch(http, request))[2] == b"::::::", "every byte starts the time anew")
        for path in ("/silent", "/stuck"):
            error = await _failure(fetch(http, post(server.url + path, idle_timeout_s=0.1)), "silence is an error")
            _require(error.kind == "timeout" and "127.0.0.1" in str(error), f"{path}: a timeout that names the host")


@contextlib.contextmanager
def deaf_server() -> Iterator[int]:
    """A port that accepts no connection, because its queue is full."""
    with contextlib.ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            caller = open_sockets.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(server.getsockname())
        yield server.getsockname()[1]


async def check_a_server_that_takes_no_connection_is_a_timeout(setup: HttpSetup) -> None:
    """Connecting has a timeout of its own, and a refused connection fails at once."""
    scheme = "https" if setup.tls else "http"
    http = setup.make()
    try:
        with deaf_server() as port:
            request = msgspec.structs.replace(post(f"{scheme}://127.0.0.1:{port}"), connect_timeout_s=0.1)
            error = await _failure(fetch(http, request), "connecting without end is an error")
            _require(error.kind == "timeout", "it is a timeout")
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"{scheme}://127.0.0.1:{unused.getsockname()[1]}"
            error = await _failure(fetch(http, post(url)), "a refused connection is an error")
            _require(error.kind == "connection" and "refused" in str(error), "it is reported as a refusal")
    finally:
        await http.aclose()


# ------------------------------------------------------------------ ends


async def _ends_promptly(http: Http, url: str, ready: asyncio.Event) -> None:
    task = asyncio.ensure_future(fetch(http, post(url, b"{}")))
    await asyncio.wait_for(ready.wait(), _PATIENCE_S)
    before = time.monotonic()
    task.cancel()
    await asyncio.wait([task])
    _require(task.cancelled() and time.monotonic() - before < PROMPT_S, "a cancelled exchange ends at once")


async def check_a_cancelled_exchange_hangs_up_at_once(setup: HttpSetup) -> None:
    """Cancelled before or during the response: the server sees the close, and the next request works."""
    ready = asyncio.Event()

    async def answer(exchange: ServerExchange) -> None:
        await exchange.body()
        if exchange.path == "/":
            return await exchange.answer(b"ok")
        await exchange.send(_head("Transfer-Encoding: chunked"), b"1\r\n:\r\n") if exchange.path == "/body" else None
        ready.set()
        return await exchange.until_client_closed()

    async with _serving(setup, answer) as (http, server):
        for path in ("/head", "/body"):
            ready.clear()
            await _ends_promptly(http, server.url + path, ready)
            await asyncio.wait_for(server.idle(), PROMPT_S * 5)
            _require((await fetch(http, post(server.url)))[2] == b"ok", "the next request works")


async def check_cancelling_at_any_moment_leaves_nothing_open(setup: HttpSetup) -> None:
    """Cancelled after any number of loop iterations: no connection stays open, and later requests work."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.send(_head("Transfer-Encoding: chunked"), _chunked(await exchange.body() * 3, 2))

    async with _serving(setup, answer) as (http, server):
        for rounds in [*range(25), *range(25, 90, 5)]:
            task = asyncio.ensure_future(fetch(http, post(server.url, b"abc")))
            for _ in range(rounds):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if rounds % 3 == 0:
                _require((await fetch(http, post(server.url, b"abc")))[2] == b"abc" * 3, "answers stay whole")
        await http.aclose()
        await server.idle()


async def check_leaving_early_ends_the_exchange(setup: HttpSetup) -> None:
    """Leaving the context does not wait for the rest of a body."""

    async def answer(exchange: ServerExchange) -> None:
        await exchange.send(_head("Transfer-Encoding: chunked"), b"1\r\n:\r\n")
        await exchange.until_client_closed()

    async with _serving(setup, answer) as (http, server):
        async with http.stream(post(server.url)) as response:
            await anext(response.chunks())
        await server.idle()
        async with http.stream(post(server.url)):
            pass
        await server.idle()
        await http.aclose()
        await http.aclose()


CASES = (
    check_requests_arrive_whole,
    check_what_can_not_be_sent_is_refused,
    check_any_framing_in_any_pieces_gives_the_same,
    check_pieces_come_out_as_they_come_in,
    check_a_broken_exchange_says_where,
    check_an_answer_may_arrive_before_the_request_is_sent,
    check_connections_are_kept_and_no_longer_than_the_server_wants,
    check_a_closing_server_is_asked_anew,
    check_concurrent_streams_do_not_mix,
    check_ipv6_is_spoken,
    check_redirects_stay_at_home,
    check_silence_is_a_timeout_and_any_byte_is_life,
    check_a_server_that_takes_no_connection_is_a_timeout,
    check_a_cancelled_exchange_hangs_up_at_once,
    check_cancelling_at_any_moment_leaves_nothing_open,
    check_leaving_early_ends_the_exchange,
)
