"""The network of commands in bubblewrap and with Landlock: real programs, against a stand-in for the internet."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from internet import connected_session
from landlock_programs import needs_whole_landlock

from bradawl.core.effects import Effects
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command

pytestmark = needs_bwrap

GET = "curl -sS -m 20 "


@pytest.fixture(params=["bubblewrap", pytest.param("landlock", marks=needs_whole_landlock)])
def kind(request):
    return request.param


@pytest.fixture
def online(tmp_path, kind):
    with connected_session(tmp_path, "granted.example", kind=kind) as made:
        (made.outside.folder / "page").write_text("a page\n")
        yield made


def test_a_granted_host_is_reached_encrypted_and_not(online):
    assert online.out(f"{GET} https://granted.example/page http://granted.example/page") == "a page\na page\n"
    assert online.outside.requests == [("granted.example", "/page")] * 2
    assert online.asked == ["granted.example"], "each host is asked for once"


def test_a_refused_host_gets_nothing_and_the_result_names_it(online):
    result = online.run(f"{GET} http://refused.example/page; {GET} https://refused.example/page")
    text = "the network proxy refused refused.example:80: refused.example is not in `network`"
    assert result.stdout.decode() == f"{text}\n"
    assert b"403" in result.stderr
    assert result.notes == (text, text.replace(":80", ":443"))
    assert online.outside.resolved == online.outside.requests == [], "not even its name is resolved"


@pytest.mark.skipif(not Path("/sys/class/net").is_dir(), reason="this machine has no /sys")
@pytest.mark.parametrize("kind", ["bubblewrap"])
def test_the_interfaces_of_the_machine_are_not_listed(online):
    own = Path("/sys/class/net").resolve()
    assert list(own.iterdir()), "the control: outside they are listed"
    line = "ls -A /sys/class/net; find /sys -name ifindex 2>/dev/null; touch /sys/class/net/x; ls /sys/class | wc -l"
    for network in (False, True):
        result = online.run(line, network=network)
        assert int(result.stdout) > 1, "only the count of other classes is printed"
        assert b"touch" in result.stderr


def test_without_permit_and_network_there_is_no_proxy(online):
    result = online.run(f"env | grep -i proxy; {GET} http://granted.example/page", permit=None)
    assert result.stdout == b"" and b"Could not resolve host" in result.stderr and result.notes == ()


def test_a_grant_of_the_whole_network_asks_for_nothing(online):
    line = f"{GET} http://other.example/page; {GET} http://other.example:8080/page; {GET} http://10.0.0.1/page"
    result = online.run(line, network=True, permit=None)
    first, second, third = result.stdout.decode().splitlines()
    assert first == "a page" and "only the ports 80 and 443" in second and "only host names" in third
    assert online.asked == []


def test_another_port_is_asked_for_by_its_number(online):
    online.granted.add("granted.example:8080")
    online.outside.extra_ports[8080] = online.outside.plain.server_port
    line = f"{GET} http://granted.example:8080/page; {GET} http://granted.example:8081/page"
    out = online.out(line)
    assert out.startswith("a page\n") and "refused granted.example:8081" in out
    assert online.asked == ["granted.example:8080", "granted.example:8081"]


def test_a_redirect_to_another_host_is_checked(online):
    online.outside.plain.redirects["/away"] = "http://refused.example/page"
    assert "refused refused.example:80" in online.out(f"{GET} -L http://granted.example/away")


def test_sockets_other_than_tcp_stay_shut_with_the_network(online, tmp_path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0" + (name := f"bradawl-network-{os.getpid()}"))
    listening.listen()
    server = socket.create_server(("127.0.0.1", 0))
    program = f"""import socket
for family, kind in ((1, 1), (1, 2), (2, 2), (10, 2), (2, 3), (16, 3), (17, 3)):
    try: socket.socket(family, kind); print("OPEN", family, kind)
    except OSError as error: pass
for address in (("127.0.0.1", {server.getsockname()[1]}), ("169.254.169.254", 80), ("93.184.215.14", 443)):
    try: socket.create_connection(address, 1); print("OPEN", address)
    except OSError as error: pass
"""
    online.here.write("try.py", program)
    for network in (True, False):
        result = online.run("python3 try.py", network=network)
        assert (result.stdout, result.stderr) == (b"", b"")
    listening.close()
    server.close()
    assert name


def test_each_command_has_a_listener_of_its_own_that_ends_with_it(online):
    async def both():
        line = f"for n in 1 2 3; do {GET} http://granted.example/page; done"
        return await asyncio.gather(*(online.arun(line) for _ in range(3)))

    results = asyncio.run(both())
    assert [result.stdout for result in results] == [b"a page\n" * 3] * 3
    assert online.asked == ["granted.example"] * 3, "the answer of one command does not count for another"


def test_the_time_of_a_question_does_not_count_towards_the_timeout(online):
    async def slow(effects: Effects) -> None:
        await asyncio.sleep(1.0)

    result = online.run(f"{GET} http://granted.example/page", permit=slow, timeout_s=0.7)
    assert (result.exit_code, result.stdout) == (0, b"a page\n")


def test_a_question_is_withdrawn_when_its_command_ends(online):
    cancelled = []

    async def never(effects: Effects) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(effects.hosts)
            raise

    result = online.run("curl -sS -m 1 http://granted.example/page", permit=never, timeout_s=30)
    assert result.exit_code == 28 and cancelled == [("granted.example",)]


def test_a_background_command_asks_in_a_later_wait(online):
    async def start() -> tuple[bool, bool, bytes]:
        command = Command((f"sleep 0.5; {GET} http://granted.example/page",), online.here.cwd, is_shell=True)
        process = await online.here.processes.start(command, online.here.grant, None, online.permit)
        return await process.wait(0.1), await process.wait(20), process.result().stdout

    assert asyncio.run(start()) == (False, True, b"a page\n") and online.asked == ["granted.example"]


def test_a_command_that_may_write_nothing_gets_no_listener(online):
    command = Command(("env | grep -i proxy",), online.here.cwd, is_shell=True)
    result = asyncio.run(online.here.processes.run(command, Grant(), None, online.permit))
    assert result.stdout == b""


def test_a_timeout_ends_a_command_that_is_connected(online):
    result = online.run("exec 3<>/dev/tcp/127.0.0.1/19080; cat <&3", timeout_s=0.5)
    assert result.exit_code is None


def test_a_defect_in_permit_ends_the_call_and_leaves_nothing(online):
    async def broken(effects: Effects) -> None:
        raise RuntimeError("a defect")

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        online.run(f"{GET} http://granted.example/page", permit=broken)


def test_a_job_that_is_cancelled_leaves_nothing(online):
    async def cancel():
        running = asyncio.create_task(online.arun(f"{GET} http://granted.example/page; sleep 60"))
        while not online.outside.requests:  # noqa: ASYNC110 - the server runs in a thread
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())


@pytest.mark.parametrize("kind", ["bubblewrap"])
def test_a_killed_helper_is_started_again(online):
    assert online.run("true").exit_code == 0
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    helper = [int(pid) for pid in children if b"CONTROL" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(helper) == 1
    os.kill(helper[0], signal.SIGKILL)
    os.waitid(os.P_PID, helper[0], os.WEXITED | os.WNOWAIT)
    assert online.out(f"{GET} http://granted.example/page") == "a page\n"


def test_the_users_own_proxy_never_gets_inside(tmp_path):
    with connected_session(tmp_path, "granted.example") as online:
        secret = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), "http://me:password@proxy.corp:3128")
        online.here.processes._environment |= secret
        for network in (True, False):
            out = online.out("env", network=network)
            assert "password" not in out
            assert "HTTPS_PROXY=http://127.0.0.1:19080\n" in out and "NODE_USE_ENV_PROXY=1\n" in out


def test_what_the_session_exported_wins(online):
    out = online.out("env", env={"HTTPS_PROXY": "http://127.0.0.1:1", "PIP_DEFAULT_TIMEOUT": "7"})
    assert "\nHTTPS_PROXY=http://127.0.0.1:1\n" in out and "PIP_DEFAULT_TIMEOUT=7\n" in out


def test_python_and_its_ssl_work_through_the_proxy(online):
    online.here.write(
        "get.py",
        "import ssl, urllib.request\nfor host in ('granted', 'refused'):\n"
        "    try: print(urllib.request.urlopen(f'https://{host}.example/page', "
        "context=ssl.create_default_context(cafile='ca.pem')).read())\n"
        "    except OSError as error: print(error)\n",
    )
    out = online.out(f"{Path(sys.executable).resolve()} get.py")
    assert out == "b'a page\\n'\n<urlopen error Tunnel connection failed: 403 Forbidden>\n"
