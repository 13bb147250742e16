"""How many threads and files of the agent's process connections take while they are made."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from bradawl.sandbox.network.destinations import Destination
from bradawl.sandbox.network.dialing import Dialer, Unreachable

ADDRESS = "93.184.215.14"


@contextlib.contextmanager
def no_threads() -> Iterator[None]:
    before = threading.stack_size(1 << 46)  # more than the address space
    try:
        yield
    finally:
        threading.stack_size(before)


def test_names_that_do_not_resolve_take_few_threads_however_many_are_looked_up():
    go, is_full, running, most = threading.Event(), threading.Event(), [0], [0]
    lock = threading.Lock()

    def hanging(host: str, port: int) -> list[str]:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 32:
                is_full.set()
        go.wait(20)
        with lock:
            running[0] -= 1
        return [ADDRESS]

    async def look_up() -> list[object]:
        dialer = Dialer(look_up=hanging, connect=connected_pair)
        dials = [asyncio.create_task(dialer.dial(Destination(f"h{number}.example", 443))) for number in range(200)]
        await asyncio.to_thread(is_full.wait, 10)
        for each in dials[:20]:
            each.cancel()
        await asyncio.sleep(0.2)
        go.set()
        return await asyncio.gather(*dials, return_exceptions=True)

    found = asyncio.run(look_up())
    for each in found:
        if isinstance(each, socket.socket):
            each.close()
    assert sum(isinstance(each, socket.socket) for each in found) == 180
    assert most == [32], "a thread that nobody waits for counts as long as it runs"


async def connected_pair(address: str, port: int) -> socket.socket:
    return socket.socket()


def test_a_lookup_for_which_there_is_no_thread_is_an_error_of_its_host_alone():
    async def dial() -> None:
        dialer = Dialer(connect=connected_pair)
        for _ in range(40):
            with pytest.raises(Unreachable, match="could not be resolved"):
                await dialer.dial(Destination("a.example", 443))

    with no_threads():
        asyncio.run(dial())


def test_addresses_that_do_not_answer_hold_few_files_for_all_connections_together():
    opened, most = [0], [0]

    async def hanging(address: str, port: int) -> socket.socket:
        opened[0] += 1
        most[0] = max(most[0], opened[0])
        try:
            await asyncio.sleep(30)
        finally:
            opened[0] -= 1
        raise TimeoutError

    async def resolve(host: str, port: int) -> list[str]:
        return [f"93.184.215.{last}" for last in range(8)]

    async def dial() -> None:
        dialer = Dialer(resolve=resolve, connect=hanging, stagger_s=0.01)
        dials = [asyncio.create_task(dialer.dial(Destination("a.example", 443))) for _ in range(100)]
        await asyncio.sleep(0.5)
        for each in dials:
            each.cancel()
        await asyncio.gather(*dials, return_exceptions=True)

    asyncio.run(dial())
    assert opened == [0] and 100 < most[0] <= 164
