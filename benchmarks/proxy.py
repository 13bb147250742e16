"""The time that the network proxy adds to a connection: `python benchmarks/proxy.py [ROUNDS]`.

Connects to a server on loopback directly and through the proxy in turn, exchanges one byte each way, and closes. The
proxy's resolver and its connections are replaced, so that neither names nor routes count. Prints milliseconds.
"""

import asyncio
import socket
import statistics
import sys
import time

from bradawl.sandbox.network.dialing import Dialer
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.proxy import Proxy

ROUNDS = 500
REQUEST = b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back the first byte."""
    writer.write(await reader.read(1))
    await writer.drain()
    writer.close()


def exchange(port: int, request: bytes) -> float:
    """Milliseconds of one connection with one byte each way."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as made:
        if request:
            made.sendall(request)
            while not made.recv(4_096).endswith(b"\r\n\r\n"):
                pass
        made.sendall(b"x")
        made.recv(1)
    return (time.perf_counter() - began) * 1_000


async def measure(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each connection, by kind."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    origin = server.sockets[0].getsockname()

    async def resolve(_host: str, _port: int) -> tuple[str, ...]:
        return ("93.184.215.14",)

    async def connect(_address: str, _port: int) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, origin)
        return made

    proxy = Proxy(Dialer(resolve=resolve, connect=connect))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    proxy.serve(listener, HostPermissions(None, whole_network=True))
    found: dict[str, list[float]] = {"direct": [], "through the proxy": []}
    for number in range(rounds + 10):
        direct = await asyncio.to_thread(exchange, origin[1], b"")
        through = await asyncio.to_thread(exchange, port, REQUEST)
        if number >= 10:
            found["direct"].append(direct)
            found["through the proxy"].append(through)
    proxy.close()
    server.close()
    return found


def main(rounds: int) -> None:
    """Measure and print."""
    found = asyncio.run(measure(rounds))
    direct = statistics.median(found["direct"])
    for name, taken in found.items():
        median, p95 = statistics.median(taken), sorted(taken)[int(len(taken) * 0.95) - 1]
        print(
            f"{name:18} median {median:6.2f}  p95 {p95:6.2f}  added {median - direct:6.2f}  ratio {median / direct:.2f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
