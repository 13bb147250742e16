"""Landlock: no way past the supervisor that connects a program's sockets to the network proxy."""

import asyncio
import os
import resource
import socket
import subprocess
from pathlib import Path

import pytest
from internet import connected_session
from landlock_programs import needs_whole_landlock

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import Program
from bradawl.sandbox.landlock import LandlockBackend

pytestmark = needs_whole_landlock

# Each prints OPEN if it reaches the server of the test; TARGET is its port.
HEAD = """
import ctypes, errno, os, socket, struct, sys, threading, time
target = ("127.0.0.1", int(os.environ["TARGET"]))
proxy = ("127.0.0.1", 19080)
libc = ctypes.CDLL(None, use_errno=True)
def packed(address):
    return struct.pack("=H", 2) + struct.pack("!H", address[1]) + socket.inet_aton(address[0]) + bytes(8)
def attempt(action):
    try: result = action()
    except OSError as error: print(errno.errorcode.get(error.errno, error)); return False
    print("OPEN", result); return True
"""
ATTEMPTS = {
    "connect": "s = socket.socket(); attempt(lambda: s.connect(target))",
    "mapped": "s = socket.socket(socket.AF_INET6); attempt(lambda: s.connect(('::ffff:127.0.0.1', target[1])))",
    "all zero": "s = socket.socket(); attempt(lambda: s.connect(('0.0.0.0', target[1])))",
    "fast open": "s = socket.socket(); attempt(lambda: s.sendto(b'x', 0x20000000, target))",
    "fast open message": "s = socket.socket(); attempt(lambda: s.sendmsg([b'x'], [], 0x20000000, target))",
    "fast open messages": """
s = socket.socket()
address = ctypes.create_string_buffer(packed(target)); data = ctypes.create_string_buffer(b"x")
part = ctypes.create_string_buffer(struct.pack("PQ", ctypes.addressof(data), 1))
layout = "PIxxxxPQPQIxxxxIxxxx"
fields = (ctypes.addressof(address), 16, ctypes.addressof(part), 1, 0, 0, 0, 0)
message = ctypes.create_string_buffer(struct.pack(layout, *fields))
if libc.sendmmsg(s.fileno(), message, 1, 0x20000000) == 1: print("OPEN")
""",
    "deferred": "s = socket.socket(); attempt(lambda: s.setsockopt(6, 30, 1))",
    "other device": "s = socket.socket(); attempt(lambda: s.setsockopt(1, 25, b'lo'))",
    "source route": "s = socket.socket(); attempt(lambda: s.setsockopt(0, 4, bytes([131, 7, 4, 127, 0, 0, 1, 0])))",
    "other protocol on top": "s = socket.socket(); attempt(lambda: s.setsockopt(6, 31, b'smc'))",
    "multipath": "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(target))",
    "sctp": "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))",
    "smc": "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 256))",
    "datagram": "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    "raw": "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 6))",
    "vsock": "attempt(lambda: socket.socket(40, socket.SOCK_STREAM))",
    "unix": "attempt(lambda: socket.socket(socket.AF_UNIX))",
    "io_uring": "print('OPEN' if libc.syscall(425, 1, bytes(120)) >= 0 else ctypes.get_errno())",
    "listen": "s = socket.socket(); attempt(lambda: s.listen())",
    "bind": "s = socket.socket(); attempt(lambda: s.bind(('127.0.0.1', 0)))",
    "disconnect": """
s = socket.socket(); s.connect(proxy)
disconnected = libc.connect(s.fileno(), bytes(16), 16) == 0
print("DISCONNECTED" if disconnected else "REFUSED"); attempt(lambda: s.connect(target))
""",
    "again": """
s = socket.socket(); s.connect(proxy)
attempt(lambda: s.connect(target)); attempt(lambda: s.connect(proxy))
""",
    "in progress": """
s = socket.socket(); s.setblocking(False); print(errno.errorcode[s.connect_ex(proxy)])
attempt(lambda: s.connect(target))
""",
    "duplicate": "s = socket.socket(); t = s.dup(); s.connect(proxy); attempt(lambda: t.connect(target))",
    "bad addresses": """
s = socket.socket()
there = packed(target)
for place, length in ((0, 16), (1, 16), (2**63, 16), (2**64 - 1, 16), (there, 0), (there, 1), (there, 15),
                      (there, 4096), (there, 2**32 - 1), (packed(proxy)[:2] + bytes(126), 128)):
    place = ctypes.c_uint64(place) if isinstance(place, int) else place
    number = 42 if os.uname().machine == "x86_64" else 203
    if libc.syscall(number, s.fileno(), place, ctypes.c_uint64(length)) == 0: print("OPEN")
""",
    "address that changes": """
buffer = ctypes.create_string_buffer(packed(proxy))
one, two = packed(proxy), packed(target)
is_over = []
def change():
    while not is_over: ctypes.memmove(buffer, one, 16); ctypes.memmove(buffer, two, 16)
for _ in range(2): threading.Thread(target=change, daemon=True).start()
counts = {}
for _ in range(300):
    s = socket.socket()
    result = libc.connect(s.fileno(), buffer, 16) and ctypes.get_errno()
    counts[result] = counts.get(result, 0) + 1
    if not result and s.getpeername() == target: print("OPEN")
    s.close()
is_over.append(1)
print(counts)
""",
    "socket that changes": """
# Another thread replaces the descriptor while the supervisor decides.
first, second = socket.socket(), socket.socket()
number = first.dup().detach()
is_over = []
def change():
    while not is_over: os.dup2(first.fileno(), number); os.dup2(second.fileno(), number)
threading.Thread(target=change, daemon=True).start()
for _ in range(200): libc.connect(number, packed(target), 16); libc.connect(number, packed(proxy), 16)
is_over.append(1)
for each in (first, second):
    try: peer = each.getpeername()
    except OSError: continue
    if peer == target: print("OPEN")
""",
    "own descriptors of a thread": """
def other():
    libc.unshare(0x400)  # CLONE_FILES
    s = socket.socket(); attempt(lambda: s.connect(target)); s.connect(proxy); print("PROXIED")
t = threading.Thread(target=other); t.start(); t.join()
""",
    "own filter": """
libc.prctl(38, 1, 0, 0, 0)
allow = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))
program = struct.pack("HxxxxxxP", 1, ctypes.addressof(allow))
libc.prctl(22, 2, program, 0, 0)
print(libc.syscall(317 if os.uname().machine == "x86_64" else 277, 1, 8, program))
s = socket.socket(); attempt(lambda: s.connect(target))
""",
}
CONTROL = {"connect", "mapped", "all zero", "fast open", "fast open message", "listen", "bind", "datagram"}
"""Attempts that succeed everywhere without a sandbox."""


@pytest.fixture
def online(tmp_path):
    with connected_session(tmp_path, "granted.example", kind="landlock") as made:
        (made.outside.folder / "page").write_text("a page\n")
        yield made


@pytest.fixture
def target():
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        server.setblocking(False)
        yield server


def has_been_reached(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_attempt_reaches_another_address_than_the_proxys(online, target, name):
    online.here.write("try.py", HEAD + ATTEMPTS[name])
    variables = {"TARGET": str(target.getsockname()[1])}
    for network in (False, True):
        result = online.run("python3 try.py", network=network, env=variables)
        assert b"OPEN" not in result.stdout and not has_been_reached(target), result
        assert b"Traceback" not in result.stderr, result
    if name in CONTROL:
        free = subprocess.run(
            ["python3", "try.py"], cwd=online.here.root, env={**os.environ, **variables}, capture_output=True
        )
        assert b"OPEN" in free.stdout, "the attempt fails by itself: it shows nothing"


def test_what_a_program_reads_of_a_refused_address_says_which_kind_it_is(online, target):
    online.here.write(
        "try.py",
        HEAD + "for a in (target, ('93.184.215.14', 443), ('::1', 80), ('2001:db8::1', 80)):\n"
        "    s = socket.socket(socket.AF_INET6 if ':' in a[0] else socket.AF_INET); attempt(lambda: s.connect(a))\n",
    )
    result = online.run("python3 try.py", env={"TARGET": str(target.getsockname()[1])})
    assert result.stdout.split() == [b"EACCES", b"ENETUNREACH", b"EACCES", b"ENETUNREACH"]


def test_a_non_blocking_socket_connects_and_a_mapped_one_too(online):
    online.here.write(
        "try.py",
        HEAD
        + """
import select
s = socket.socket(); s.setblocking(False); code = s.connect_ex(proxy); select.select([], [s], [], 5)
assert code in (0, errno.EINPROGRESS) and s.getsockopt(1, 4) == 0
again = s.connect_ex(proxy)
s.setblocking(True); s.sendall(b"GET http://granted.example/page HTTP/1.1\\r\\nHost: granted.example\\r\\n\\r\\n")
print(again in (0, errno.EISCONN), s.makefile().read().endswith("a page\\n"))
s = socket.socket(socket.AF_INET6); s.connect(("::ffff:127.0.0.1", 19080)); print(s.getpeername()[0])
""".replace("\\\\", "\\"),
    )
    result = online.run("python3 try.py", env={"TARGET": "1"})
    assert result.stdout.decode().splitlines() == ["True True", "::ffff:127.0.0.1"], result


def test_a_descriptor_that_is_no_socket_is_refused_and_not_kept(online):
    online.here.write(
        "try.py",
        HEAD
        + """
reading, writing = os.pipe()
for each in (reading, writing, os.open(".", os.O_RDONLY), os.memfd_create("x")):
    code = libc.connect(each, packed(proxy), 16) and ctypes.get_errno()
    print(errno.errorcode[code]); os.close(each) if each != reading else None
print(os.read(reading, 1))
""",
    )
    result = online.run("python3 try.py", env={"TARGET": "1"}, timeout_s=10)
    assert result.stdout.split() == [b"ENOTSOCK"] * 4 + [b"b''"], "the supervisor held the end of the pipe open"


# Each makes the handshake of `s` with the supervisor's listener fail.
SILENT = {
    "hops": "s.setsockopt(0, 21, 255)",  # IP_MINTTL
    "signature": (  # TCP_MD5SIG
        "s.setsockopt(6, 14, packed(proxy) + bytes(112) + struct.pack('=BBHi', 0, 0, 3, 0) + b'key' + bytes(77))"
    ),
}
WAITS = """
import resource
silent = []
def wait(s):
    try: s.connect(proxy)
    except OSError as error: codes.append(errno.errorcode[error.errno])
codes, threads = [], []
for number in range(8):
    s = socket.socket()
    {silence}
    if not {is_blocking}: s.setblocking(False)
    silent.append(s); threads.append(threading.Thread(target=wait, args=(s,))); threads[-1].start()
    if {changes}:
        def change(s=s):
            while len(codes) < 8: s.setblocking(True)
        threading.Thread(target=change, daemon=True).start()
t = socket.create_connection(proxy)
t.sendall(b"GET http://granted.example/page HTTP/1.1\\r\\nHost: granted.example\\r\\n\\r\\n")
print(t.makefile().read().endswith("a page\\n"))
if not {changes}:
    for each in threads: each.join()
    print(sorted(set(codes)))
    for s in silent:  # it must not go on trying
        print(s.getsockopt(6, 11, 1)[0])
sys.stdout.flush(); os._exit(0)
"""


@pytest.mark.parametrize("is_blocking", [True, False])
@pytest.mark.parametrize("name", SILENT)
def test_a_handshake_that_does_not_succeed_holds_up_no_other_connection(online, name, is_blocking):
    script = HEAD + WAITS.format(silence=SILENT[name], is_blocking=is_blocking, changes=False)
    online.here.write("try.py", script.replace("\\\\", "\\"))
    result = online.run("python3 try.py", env={"TARGET": "1"}, timeout_s=20)
    assert not result.stderr
    first, codes, *states = result.stdout.decode().splitlines()
    assert (first, codes) == ("True", "['ECONNREFUSED']"), result
    assert set(states) == {"7"}, "a socket is not closed"  # TCP_CLOSE


def test_a_program_that_switches_its_sockets_meanwhile_holds_up_no_other_connection(online):
    script = HEAD + WAITS.format(silence=SILENT["hops"], is_blocking=True, changes=True)
    online.here.write("try.py", script.replace("\\\\", "\\"))
    for _ in range(3):
        result = online.run("python3 try.py", env={"TARGET": "1"}, timeout_s=20)
        assert result.stdout.split()[:1] == [b"True"], result


def test_a_blocking_socket_stays_one_and_is_connected(online):
    online.here.write(
        "try.py",
        HEAD
        + """
s = socket.socket(); s.connect(proxy)
print(os.get_blocking(s.fileno()), errno.errorcode[s.connect_ex(proxy)], s.getpeername()[0])
""",
    )
    result = online.run("python3 try.py", env={"TARGET": "1"})
    assert result.stdout.split() == [b"True", b"EISCONN", b"127.0.0.1"], result


def test_many_connections_at_a_time(online):
    line = "for n in $(seq 40); do curl -sS -m 20 http://granted.example/page & done; wait"
    assert online.out(line) == "a page\n" * 40


def test_a_program_that_makes_no_connection_starts_no_proxy_and_leaves_no_descriptor(online):
    online.run("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        online.run("true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_start_for_which_files_are_missing_leaves_none_open_and_no_check_that_waits(online):
    config = online.here.root / ".git/config"
    online.here.write(".git/config", "[core]\n")
    online.here.write(".git/HEAD", "ref: refs/heads/main\n")
    online.run("true")
    before, failures = len(list(Path("/proc/self/fd").iterdir())), 0

    async def start(spare: int) -> bool:
        backend, grant = online.here.backend, Grant(writable=online.here.layout.roots)
        program = Program(("/bin/true",), online.here.cwd, {}, permit=online.permit)
        held = [os.dup(0)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + spare, hard))
        try:
            launch = backend.launch(program, grant)
        except (OSError, ToolError):
            return False
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.close(held[0])
        for each in (launch.info_fd, *launch.close_after_start):
            os.close(each)
        launch.network.close()
        launch.on_end()
        return True

    for spare in range(20):
        failures += not asyncio.run(start(spare))
        assert len(list(Path("/proc/self/fd").iterdir())) == before, f"after a start with {spare} files"
    assert failures > 3
    config.write_text("[core]\n\tfsmonitor = the-users-own\n")
    result = online.run("true")
    assert "the-users-own" in config.read_text() and not result.restored, "a change by the user between commands"
    result = online.run("git config -f .git/config core.fsmonitor evil; cat .git/config")
    assert b"evil" in result.stdout and "the-users-own" in config.read_text(), result


def test_without_a_supervisor_there_is_no_network_or_all_of_it(online):
    online.here.backend.close()
    online.here.backend = LandlockBackend(online.here.layout, ("domains",))
    result = online.run("env | grep -ci proxy; curl -sS -m 5 http://granted.example/page")
    assert result.stdout == b"0\n" and result.exit_code != 0
