"""The pytest plugin of the test kit: leaks fail a test, and other machines can't be reached."""

import os
import socket
import subprocess
import sys

import pytest

from bradawl.testing.pytest_plugin import NetworkRefused

CONFTEST = """
import pytest

pytest_plugins = ["bradawl.testing.pytest_plugin"]


@pytest.fixture(autouse=True)
def rules(no_leaks):
    yield
"""
LEAKY = """
import os, subprocess, sys, tempfile
kept = []

def test_child():
    kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

def test_zombie():
    pid = os.fork()
    if pid == 0:
        os._exit(0)

def test_descriptor():
    kept.append(os.open(os.devnull, os.O_RDONLY))

def test_temporary_file():
    kept.append(tempfile.mkdtemp())

def test_temporary_file_of_a_child():
    subprocess.run([sys.executable, "-c", "import tempfile; tempfile.mkstemp()"])

def test_nothing(tmp_path):
    subprocess.run(["true"])
    (tmp_path / "mine").write_text("x")
    with tempfile.TemporaryFile():
        pass

def test_unforeseen_request(wire_server):
    import urllib.request, urllib.error
    try:
        body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
        urllib.request.urlopen(wire_server([]).base_url + "/chat/completions", body).close()
    except urllib.error.HTTPError as error:
        error.close()

def test_unforeseen_question(scripted_model):
    import asyncio
    from bradawl.core.events import RequestParams
    from bradawl.core.ports import Prefix
    from bradawl.core.retry import RetryBudget

    async def ask():
        return [d async for d in scripted_model([]).open(Prefix("", ())).stream(RequestParams(), RetryBudget())]

    asyncio.run(ask())
"""


def test_tests_that_leave_something_behind_fail_with_its_name(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_leaky.py").write_text(LEAKY)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-rE",
            "--color=no",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            str(tmp_path),
        ],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "300", "TMPDIR": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    errors = {
        line.partition("::")[2].partition(" - ")[0]: line for line in ran.stdout.splitlines() if "ERROR test" in line
    }
    assert "left behind: child process" in errors["test_child"]
    assert "left behind: child process" in errors["test_zombie"]
    assert "left behind: descriptor" in errors["test_descriptor"]
    assert "/dev/null" in errors["test_descriptor"]
    assert "left behind: temporary file tmp" in errors["test_temporary_file"]
    assert "left behind: temporary file tmp" in errors["test_temporary_file_of_a_child"]
    assert "the script did not foresee: script has 0 entries" in errors["test_unforeseen_request"]
    assert "the script did not foresee: script has 0 entries" in errors["test_unforeseen_question"]
    assert len(errors) == 7, ran.stdout


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("way", ["connect", "connect_ex", "sendto"])
def test_connections_to_other_machines_are_refused(family, way):
    address = ("192.0.2.1", 9) if family == socket.AF_INET else ("2001:db8::1", 9)
    kind = socket.SOCK_DGRAM if way == "sendto" else socket.SOCK_STREAM
    with socket.socket(family, kind) as sock, pytest.raises(NetworkRefused, match="only this machine"):
        if way == "sendto":
            sock.sendto(b"x", address)
        else:
            getattr(sock, way)(address)


@pytest.mark.parametrize("name", ["example.org", b"example.org", "192.0.2.1"])
def test_names_of_other_machines_are_not_resolved(name):
    with pytest.raises(socket.gaierror, match="look up no names"):
        socket.getaddrinfo(name, 80)
