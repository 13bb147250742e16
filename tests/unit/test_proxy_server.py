"""The network proxy on loopback: tunnels, plain HTTP, limits, and the user's own proxy behind it."""

import asyncio
import resource
import socket
import threading
import time

import pytest
from proxied import ANSWER, CONNECT, ESTABLISHED, GET, all_of, echoing, head_of, proxied

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.sandbox.network.destinations import Destination
from bradawl.sandbox.network.dialing import Dialer
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.proxy import Proxy, ProxyLimits, most_connections
from patience import no_wait


def refuse(effects: Effects) -> None:
    raise ToolError("not granted")


# ------------------------------------------------------------------ tunnels


def test_bytes_behind_connect_are_passed_on_also_before_its_answer():
    with proxied(echoing) as made:
        with made.connect() as one:
            one.sendall(CONNECT + b"early")
            one.shutdown(socket.SHUT_WR)
            assert all_of(one) == ESTABLISHED + b"earlythe end", "each direction ends by itself"
        assert made.asked == ["a.example"]


def test_a_server_that_ends_first_can_still_be_sent_to():
    received: list[bytes] = []
    has_ended = threading.Event()

    def half(connected: socket.socket) -> None:
        connected.shutdown(socket.SHUT_WR)
        received.append(all_of(connected))
        has_ended.set()

    with proxied(half) as made, made.connect() as one:
        one.sendall(CONNECT)
        assert all_of(one) == ESTABLISHED
        one.sendall(b"still here")
        one.shutdown(socket.SHUT_WR)
        assert has_ended.wait(10)
    assert received == [b"still here"]


def test_a_program_that_does_not_read_holds_up_the_server():
    size, is_held_up = 50_000_000, threading.Event()

    def flooding(connected: socket.socket) -> None:
        left = memoryview(bytes(size))
        connected.settimeout(0.5)
        while left:
            try:
                left = left[connected.send(left) :]
            except TimeoutError:
                is_held_up.set()

    with proxied(flooding) as made, made.connect() as one:
        one.sendall(CONNECT)
        assert is_held_up.wait(20), "a proxy without backpressure would read all of it"
        received = 0
        while more := len(one.recv(1_000_000)):
            received += more
        assert received == size + len(ESTABLISHED)


def test_a_reset_of_the_server_is_a_reset_for_the_program():
    def resetting(connected: socket.socket) -> None:
        connected.recv(1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with proxied(resetting) as made, made.connect() as one, pytest.raises(ConnectionResetError):
        one.sendall(CONNECT + b"x")
        all_of(one)


def test_a_connection_without_a_byte_ends_after_the_limit():
    with proxied(echoing, limits=ProxyLimits(idle_s=0.3)) as made, made.connect() as one:
        one.sendall(CONNECT)
        head_of(one)
        one.sendall(b"x")
        assert one.recv(1) == b"x"
        with pytest.raises(ConnectionResetError):
            all_of(one)


# ------------------------------------------------------------------ plain HTTP


def test_a_body_may_take_longer_than_a_connection_may_be_idle():
    def reading(connected: socket.socket) -> None:
        head_of(connected)
        for _ in range(10):
            assert connected.recv(1)
        connected.sendall(ANSWER)

    with proxied(reading, limits=ProxyLimits(idle_s=0.4)) as made, made.connect() as one:
        one.sendall(b"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            time.sleep(0.1)
            one.sendall(b"x")
        assert all_of(one).startswith(b"HTTP/1.1 200 OK")


def test_a_request_gets_its_answer_and_the_connection_ends():
    with proxied() as made:
        expected = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok"
        assert made.say(GET) == expected
        assert made.say(GET + GET) == expected, "a second request is not sent on"


def test_a_body_is_sent_on_and_nothing_behind_it():
    received: list[bytes] = []

    def reading(connected: socket.socket) -> None:
        head_of(connected)
        connected.settimeout(0.3)
        data = b""
        try:
            while more := connected.recv(65_536):
                data += more
        except TimeoutError:
            pass
        received.append(data)
        connected.sendall(ANSWER)

    smuggled = b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    post = b"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n"
    with proxied(reading) as made:
        made.say(post + b"Content-Length: 5\r\n\r\nhello" + smuggled)
        made.say(post + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + smuggled)
        made.say(GET + smuggled)
    assert received == [b"hello", b"5\r\nhello\r\n0\r\n\r\n", b""]


def test_a_malformed_chunk_ends_the_request():
    post = b"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    with proxied(lambda connected: (all_of(connected), None)[1]) as made:
        assert made.say(post + b"5;x\r\nhello\r\n0\r\n\r\n").startswith(b"HTTP/1.1 502 ")


def test_a_continuation_is_passed_on():
    def continuing(connected: socket.socket) -> None:
        head_of(connected)
        connected.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        connected.recv(5)
        connected.sendall(ANSWER)

    with proxied(continuing) as made, made.connect() as one:
        one.sendall(
            b"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        )
        assert head_of(one) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"hello")
        assert all_of(one).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"SSH-2.0\r\n\r\n", b"x" * 200_000])
def test_a_malformed_answer_is_an_error(answer):
    def serve(connected: socket.socket) -> None:
        head_of(connected)
        connected.sendall(answer)

    with proxied(serve) as made:
        assert made.say(GET).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


# ------------------------------------------------------------------ refusals


def test_a_refusal_names_the_host_in_a_line_of_text_and_in_the_result():
    text = "the network proxy refused a.example:443: not granted"
    with proxied(permit=refuse) as made:
        answer = made.say(CONNECT)
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n") and answer.endswith(f"\r\n\r\n{text}\n".encode())
        assert b"Content-Type: text/plain" in answer and made.permissions.notes() == (text,)


def test_words_of_the_user_that_are_no_utf_8_end_no_network():
    def declined(effects: Effects) -> None:
        raise ToolError("the user declined. They said: n\udce4")

    with proxied(permit=declined) as made:
        for _ in range(2):
            assert made.say(CONNECT).startswith(b"HTTP/1.1 403 ")
        assert len(made.permissions.notes()) == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", 403),
        (b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", 403),
        (b"GET http://me:pw@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 403),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 403),
        (b"GET http://nas.local/ HTTP/1.1\r\nHost: nas.local\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"GET http://a.example/" + b"a" * 200_000, 400),
    ],
)
def test_what_is_never_permitted_is_not_asked_for(request_, status):
    with proxied() as made:
        assert made.say(request_).startswith(b"HTTP/1.1 %d " % status)
        assert made.asked == []


def test_connections_to_one_host_wait_for_one_answer():
    go = threading.Event()

    def waiting(effects: Effects) -> None:
        assert go.wait(10)

    with proxied(permit=waiting) as made:
        answers: list[bytes] = []
        threads = [threading.Thread(target=lambda: answers.append(made.say(GET))) for _ in range(20)]
        for each in threads:
            each.start()
        go.set()
        for each in threads:
            each.join()
        assert made.asked == ["a.example"] and len(answers) == 20 and len(set(answers)) == 1


def test_any_number_of_hosts_is_judged_and_remarks_are_limited():
    def granted(effects: Effects) -> None:
        if not effects.hosts[0].startswith("granted"):
            raise ToolError("not granted")

    with proxied(echoing, permit=granted) as made:
        for number in range(120):
            made.say(b"CONNECT h%d.example:443 HTTP/1.1\r\n\r\n" % number)
        for number in range(120):
            with made.connect() as one:
                one.sendall(b"CONNECT granted%d.example:443 HTTP/1.1\r\n\r\n" % number)
                assert head_of(one) == ESTABLISHED
        assert len(made.asked) == 240
        notes = made.permissions.notes()
        assert len(notes) == 11 and notes[-1] == "the network proxy refused further hosts"


def test_the_memory_for_refused_hosts_is_bounded_and_granted_ones_are_kept():
    async def check() -> list[str]:
        asked: list[str] = []

        async def permit(effects: Effects) -> None:
            asked.append(effects.hosts[0])
            if effects.hosts != ("granted.example",):
                raise ToolError("not granted")

        permissions = HostPermissions(permit, whole_network=False)
        ended = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(permissions.wait_answering(ended, 60.0))
        hosts = ["granted.example", *(f"h{number}.example" for number in range(1_001)), "granted.example", "h0.example"]
        for host in hosts:
            refused = await permissions.check(Destination(host, 443))
            assert refused == ("" if host == "granted.example" else "not granted")
        ended.set_result(None)
        await waiting
        return asked

    asked = asyncio.run(check())
    assert asked.count("granted.example") == 1 and asked.count("h0.example") == 2 and asked.count("h1.example") == 1


def test_the_memory_for_granted_hosts_is_bounded():
    asked: list[str] = []

    async def permit(effects: Effects) -> None:
        asked.extend(effects.hosts)

    async def check() -> None:
        permissions = HostPermissions(permit, whole_network=False)
        ended = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(permissions.wait_answering(ended, 60.0))
        for host in (*(f"h{number}.example" for number in range(5_001)), "h0.example", "h5000.example"):
            assert not await permissions.check(Destination(host, 443))
        ended.set_result(None)
        await waiting

    asyncio.run(check())
    assert asked.count("h0.example") == 2 and asked.count("h5000.example") == 1 and len(asked) == 5_002


def test_in_the_background_a_later_answer_for_the_session_reaches_a_refused_host():
    allowed: set[str] = set()

    async def permit(effects: Effects) -> None:
        if not allowed.issuperset(effects.hosts):
            raise ToolError("the command runs in the background, where the user is not asked")

    async def check() -> tuple[str, str, str]:
        permissions = HostPermissions(permit, whole_network=False, refused_for_s=0.05)
        ended = asyncio.get_running_loop().create_future()
        await permissions.wait_answering(ended, 0.0)  # from now on the command is a job
        watching = asyncio.create_task(permissions.wait_answering(ended, 60.0))
        first = await permissions.check(Destination("a.example", 443))
        allowed.update(("a.example",))
        at_once = await permissions.check(Destination("a.example", 443))
        await asyncio.sleep(0.1)
        later = await permissions.check(Destination("a.example", 443))
        ended.set_result(None)
        await watching
        return first, at_once, later

    first, at_once, later = asyncio.run(check())
    assert first == at_once == "the command runs in the background, where the user is not asked" and later == ""


@pytest.mark.parametrize(("port", "named"), [(443, "a.example"), (8443, "a.example:8443")])
def test_a_command_that_ends_before_the_answer_is_told_that_the_user_was_asked(port: int, named: str):
    async def check() -> tuple[str, ...]:
        asked = asyncio.Event()

        async def permit(_: Effects) -> None:
            asked.set()
            await asyncio.Event().wait()

        permissions = HostPermissions(permit, whole_network=False)
        ended = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(permissions.wait_answering(ended, 60.0))
        connection = asyncio.create_task(permissions.check(Destination("a.example", port)))
        await asked.wait()
        ended.set_result(None)
        await waiting
        assert await connection == "the command has ended"
        return permissions.notes()

    assert asyncio.run(check()) == (
        f"the network proxy refused {named}: the user was asked, and had not answered when the command ended: it must"
        " wait longer",
    )


def test_a_host_that_was_refused_in_the_foreground_stays_refused():
    asked: list[str] = []

    async def permit(effects: Effects) -> None:
        asked.extend(effects.hosts)
        raise ToolError("the user declined")

    async def check() -> None:
        permissions = HostPermissions(permit, whole_network=False, refused_for_s=0.01)
        ended = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(permissions.wait_answering(ended, 0.1))
        assert await permissions.check(Destination("a.example", 443)) == "the user declined"
        await waiting
        watching = asyncio.create_task(permissions.wait_answering(ended, 60.0))
        await asyncio.sleep(0.05)
        assert await permissions.check(Destination("a.example", 443)) == "the user declined"
        ended.set_result(None)
        await watching

    asyncio.run(check())
    assert asked == ["a.example"]


# ------------------------------------------------------------------ limits


def test_a_head_that_does_not_arrive_ends_the_connection():
    with proxied(limits=ProxyLimits(head_s=0.3)) as made:
        with made.connect() as one:
            for byte in b"GET http://a.ex":
                one.sendall(bytes((byte,)))
            assert all_of(one).startswith(b"HTTP/1.1 408 ")
        with made.connect():
            assert made.say(GET).endswith(b"ok"), "one that says nothing holds up no other"


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 5_000, reason="too few open files (ulimit -n)")
def test_a_thousand_connections_are_open_at_once():
    with proxied(echoing, limits=ProxyLimits(connections=1_000)) as made:
        opened = [made.connect() for _ in range(1_000)]
        for each in opened:
            each.sendall(CONNECT)
        assert all(head_of(each) == ESTABLISHED for each in opened)
        for number, each in enumerate(opened):
            each.sendall(b"%05d" % number)
        assert all(each.recv(5) == b"%05d" % number for number, each in enumerate(opened))
        for each in opened:
            each.close()
        assert made.asked == ["a.example"]


def test_files_remain_for_the_agent_itself():
    found = [most_connections(files) for files in (64, 1_024, 4_096, 1_048_576, -1)]
    assert found == [16, 362, 1_000, 1_000, 1_000]


def test_a_connection_beyond_the_limit_waits_for_another_to_end():
    with proxied(echoing, limits=ProxyLimits(connections=2)) as made:
        opened = [made.connect() for _ in range(3)]
        for each in opened:
            each.sendall(CONNECT)
        for each in opened[:2]:
            assert head_of(each) == ESTABLISHED
        opened[2].settimeout(0.2)
        with pytest.raises(TimeoutError):
            opened[2].recv(1)
        opened[0].close()
        opened[2].settimeout(20)
        assert head_of(opened[2]) == ESTABLISHED
        for each in opened:
            each.close()


def test_a_defect_ends_the_network_of_its_command_alone():
    def broken(_: Destination) -> None:
        raise RuntimeError("a defect")

    with proxied(upstream=broken) as made:
        with made.connect() as one, pytest.raises((ConnectionError, AssertionError)):
            one.sendall(CONNECT)
            assert all_of(one)
        deadline = time.monotonic() + 60
        while not made.permissions.notes() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "the proxy failed" in made.permissions.notes()[0]


def test_a_host_that_can_not_be_reached_is_an_error_and_no_refusal():
    async def unreachable(address: str, port: int) -> socket.socket:
        raise OSError(113, "No route to host")

    with proxied(connect=unreachable) as made:
        answer = made.say(CONNECT)
        assert answer.startswith(b"HTTP/1.1 502 ") and b"a.example:443 can't be reached: No route to host" in answer
        assert made.permissions.notes() == ("a.example:443 can't be reached: No route to host",)


def test_a_name_that_does_not_resolve_is_named_in_the_result():
    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    with proxied(resolve=unknown) as made:
        assert made.say(CONNECT).startswith(b"HTTP/1.1 502 ")
        assert made.permissions.notes() == ("a.example:443 can't be reached: its name could not be resolved",)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x05\x01\x00", "the program sent SOCKS"),
        (b"\x04\x01\x01\xbb", "the program sent SOCKS"),
        (b"\x16\x03\x01\x02\x00\x01", "the program sent TLS"),
        (b"GET http://a.example/ HTTP/1.1\nHost: a.example\n\n", "a line does not end in CR LF"),
    ],
)
def test_another_protocol_is_answered_at_once_with_a_remark(sent, reason):
    with proxied(limits=ProxyLimits(head_s=60)) as made, made.connect() as one:
        with no_wait():
            one.sendall(sent)  # and the program waits
            answer = all_of(one).decode()
        assert answer.startswith("HTTP/1.1 400 ") and reason in answer
        (note,) = made.permissions.notes()
        assert note.startswith(f"the network proxy refused a connection: {reason}") and made.asked == []


def test_a_proxy_serves_again_after_it_was_closed_and_closes_twice():
    proxy = Proxy(Dialer())
    proxy.close()

    async def serve() -> None:
        permissions = HostPermissions(None, whole_network=False)
        for _ in range(2):
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            proxy.serve(listener, permissions)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(CONNECT)
            assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
            writer.close()
            await asyncio.to_thread(proxy.close)
            proxy.close()
        assert permissions.notes() == ("the network proxy refused a.example:443: the command has no permission for it",)

    asyncio.run(serve())
