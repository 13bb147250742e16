"""A network proxy that can't be started holds up nothing, and is said."""

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator

import pytest

from bradawl.sandbox.network.dialing import Dialer
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.proxy import Proxy


@contextlib.contextmanager
def no_threads() -> Iterator[None]:
    before = threading.stack_size(1 << 46)  # more than the address space
    try:
        yield
    finally:
        threading.stack_size(before)


@contextlib.contextmanager
def no_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def nothing_permitted() -> HostPermissions:
    return HostPermissions(None, whole_network=False)


@pytest.mark.parametrize("lack", [no_threads, no_files], ids=["threads", "files"])
def test_a_proxy_that_can_not_be_started_is_said_and_starts_for_the_next_connection(lack):
    proxy, permissions = Proxy(Dialer()), asyncio.run(nothing_permitted())
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    port = listeners[2].getsockname()[1]
    is_done = threading.Event()

    def serve() -> None:
        with lack():
            for each in listeners[:2]:
                proxy.serve(each, permissions)
        is_done.set()

    threading.Thread(target=serve, daemon=True).start()
    assert is_done.wait(10), "the agent's event loop would wait for ever"
    assert all(each.fileno() < 0 for each in listeners[:2])
    (note,) = permissions.notes()
    assert note.startswith("the network proxy refused every host: it could not be started (")
    proxy.serve(listeners[2], permissions)
    with socket.create_connection(("127.0.0.1", port), 10) as made:
        made.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        assert made.recv(100).startswith(b"HTTP/1.1 403 ")
    proxy.close()
