"""bradawl connects to the configured endpoint only, and looks up no other host name."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

# Python imports a module of this name at startup, so the recording begins before any code of the program.
WATCH = """
import json, os, sys

_file = os.open(os.environ["NETWORK_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def _watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        told = arguments[1]
        if told is None:
            return  # on to where the socket is connected, which was seen when it was
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"):
        told = arguments[0]
    else:
        return
    if isinstance(told, bytes):
        told = told.decode("utf-8", "replace")
    os.write(_file, (json.dumps([event, told], default=str) + "\\n").encode())
    name = str(told[0] if isinstance(told, (list, tuple)) else told)
    if name not in ("127.0.0.1", "::1", "localhost", "None"):
        import socket
        raise socket.gaierror(socket.EAI_NONAME, "the test has no network")

sys.addaudithook(_watch)
"""
CALLS = [
    {
        "name": "bash",
        "arguments": {"command": f"{shlex.quote(sys.executable)} -c 'print(6 * 7)' > out.txt; cat out.txt"},
    },
    {"name": "write_file", "arguments": {"file_path": "note.txt", "content": "hello\n"}},
    {"name": "glob", "arguments": {"pattern": "*.txt"}},
]
WORK = [{"text": "Working.", "tool_calls": CALLS}, {"text": "All done."}]


@pytest.fixture
def program(tmp_path):
    """Runs bradawl and records its connections and host name lookups; `contacts()` returns them."""
    watch, project = tmp_path / "watch", tmp_path / "project"
    watch.mkdir()
    project.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH)
    log = tmp_path / "network.jsonl"
    log.touch()
    environ = {
        "PATH": os.environ["PATH"],
        "TMPDIR": os.environ["TMPDIR"],
        "HOME": str(tmp_path),
        "BRADAWL_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(watch),
        "NETWORK_LOG": str(log),
        "OPENAI_API_KEY": "sk-test-1234567890",
    }

    class Program:
        folder = project
        environment = environ

        def start(self, *arguments, prefix=(), base_url=""):
            more = {"OPENAI_BASE_URL": base_url} if base_url else {}
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            command = [*prefix, sys.executable, "-m", "bradawl", *arguments]
            return subprocess.Popen(command, env=environ | more, cwd=project, text=True, **streams)

        def run(self, *arguments, **options):
            with self.start(*arguments, **options) as process:
                out, err = process.communicate(timeout=50)
            return process.returncode, out, err

        def contacts(self):
            return [json.loads(line) for line in log.read_text().splitlines()]

    return Program()


def strangers(contacts, base_url):
    """Contacts that are neither a connection to the endpoint nor the lookup of its name."""
    place = urlsplit(base_url)
    allowed = ([place.hostname, place.port], place.hostname)
    return [(event, told) for event, told in contacts if told not in allowed]


def test_the_recording_contains_connections_and_lookups(program):
    """The tests below would pass with a recording that is always empty."""
    code = (
        "import socket\n"
        "for reach in (lambda: socket.create_connection(('telemetry.example', 443)),\n"
        "              lambda: socket.socket().connect(('192.0.2.1', 80))):\n"
        "    try: reach()\n"
        "    except OSError: pass\n"
    )
    subprocess.run([sys.executable, "-c", code], env=program.environment, check=True, timeout=60)
    told = [told for _, told in program.contacts()]
    assert "telemetry.example" in told and ["192.0.2.1", 80] in told


def test_a_run_with_tools_and_its_continuation_contact_the_endpoint_only(program, wire_server):
    server = wire_server([*WORK, {"text": "I remember."}])
    code, out, err = program.run("-m", "m", "--yolo", "-p", "do it", base_url=server.base_url)
    assert (code, out) == (0, "All done.\n"), err
    assert (program.folder / "out.txt").read_text() == "42\n"
    code, out, err = program.run("-m", "m", "-c", "-p", "and?", "--output-format", "json", base_url=server.base_url)
    assert code == 0 and json.loads(out)["result"] == "I remember.", err
    connected = [told for event, told in program.contacts() if event == "socket.connect"]
    assert len(connected) >= 2, "the recording contains the requests"
    assert not strangers(program.contacts(), server.base_url)


@pytest.mark.parametrize("status", [401, 400, 404])
def test_a_failure_is_reported_to_the_user_only(program, wire_server, status):
    server = wire_server([{"text": "no", "faults": {"status": status}}])
    code, _, err = program.run("-m", "m", "-p", "do it", base_url=server.base_url)
    assert code == 1 and err
    assert program.contacts() and not strangers(program.contacts(), server.base_url)


def test_retries_go_to_the_endpoint_only(program, wire_server):
    busy = {"faults": {"status": 503, "headers": {"retry-after-ms": "1"}}}
    server = wire_server([busy, {"text": "broken off here", "faults": {"cut_at_byte": 700}}, {"text": "at last"}])
    code, out, err = program.run("-m", "m", "-p", "do it", base_url=server.base_url)
    assert (code, out) == (0, "at last\n"), err
    assert len(server.requests) == 3
    assert not strangers(program.contacts(), server.base_url)


def test_a_name_that_is_configured_is_the_only_one_looked_up(program):
    with program.start("-m", "m", "-p", "do it", base_url="https://models.invalid/v1") as process:
        while not program.contacts() and process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)  # the run retries for a long time; the first attempt is enough
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert program.contacts()
    assert not strangers(program.contacts(), "https://models.invalid/v1")


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("--nonsense",), ("-p", "")])
def test_commands_without_a_model_contact_no_host(program, arguments):
    program.run(*arguments)
    assert program.contacts() == []


@pytest.mark.parametrize("command", ["models", "doctor"])
def test_models_and_doctor_contact_configured_endpoints_and_loopback_only(program, wire_server, command):
    """Both commands also look for local servers on loopback."""
    server = wire_server([])
    code, out, err = program.run(command, base_url=server.base_url)
    assert code in (0, 1) and out, err
    hosts = {told[0] if isinstance(told, list) else told for _, told in program.contacts()}
    port = urlsplit(server.base_url).port
    assert ["socket.connect", ["127.0.0.1", port]] in program.contacts()
    assert hosts <= {"127.0.0.1", "localhost", "::1"}


def test_the_demo_stays_on_this_machine(program):
    code, _, err = program.run("demo")
    assert code == 0, err
    hosts = {told[0] if isinstance(told, list) else told for _, told in program.contacts()}
    assert hosts <= {"127.0.0.1"}


def test_strace_sees_the_same_connections(program, wire_server, tmp_path):
    """The audit hooks of Python don't see the connections of other programs. strace does, where it is installed."""
    strace = shutil.which("strace")
    prefix, trace = (), tmp_path / "strace.txt"
    if strace and subprocess.run([strace, "-o", os.devnull, "true"], capture_output=True, timeout=20).returncode == 0:
        prefix = (strace, "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace))
    server = wire_server(WORK)
    code, out, err = program.run("-m", "m", "--yolo", "-p", "do it", prefix=prefix, base_url=server.base_url)
    assert (code, out) == (0, "All done.\n"), err
    assert not strangers(program.contacts(), server.base_url)
    if prefix:
        lines = [line for line in trace.read_text().splitlines() if re.search(r"AF_INET|AF_INET6", line)]
        port = urlsplit(server.base_url).port
        assert lines and not [line for line in lines if f"htons({port})" not in line or '"127.0.0.1"' not in line]
