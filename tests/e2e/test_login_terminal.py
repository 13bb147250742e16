"""`bradawl login` at a real pseudo-terminal, with a server on loopback that knows one key."""

import asyncio
import json
import os
import signal
import termios
import threading
from contextlib import contextmanager

import pytest
from terminal import START, Terminal

from bradawl.testing.http1 import Answer
from bradawl.testing.loopback import LoopbackServer, answering
from bradawl.testing.script import Faults

KEY = "sk-typed-" + "0123456789wxyz"


async def _answer(head, _, writer):
    if head.headers.get("authorization") != f"Bearer {KEY}":
        return await Answer(writer, Faults()).whole(401, b'{"error": {"message": "wrong key"}}')
    return await Answer(writer, Faults()).whole(200, json.dumps({"data": [{"id": "small"}, {"id": "large"}]}).encode())


async def _refuse(reason, writer):
    return await Answer(writer, Faults()).whole(400, reason.encode())


@contextmanager
def key_server():
    """The base URL of a server in a thread."""
    ready, stop = threading.Event(), asyncio.Event()
    found = {}

    async def serve():
        async with LoopbackServer(answering(_answer, _refuse)) as server:
            found.update(url=f"{server.url}/v1", loop=asyncio.get_running_loop())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield found["url"]
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def login(tmp_path):
    """Opens terminals with `bradawl login` and closes them."""
    opened = []

    def start(*argv, **environ):
        given = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "200", **environ}
        opened.append(Terminal([*START, "login", *argv], tmp_path, given))
        return opened[-1]

    yield start
    for one in opened:
        one.end()


def modes(terminal):
    """The settings of the terminal without the bytes that count what is pending."""
    return termios.tcgetattr(terminal.fd)


def shows_echo(terminal):
    return bool(modes(terminal)[3] & termios.ECHO)


def ended(terminal):
    return terminal.process.wait(60)


def test_a_key_is_pasted_without_echo_tested_and_stored(login, tmp_path):
    with key_server() as url:
        talk = login("lab", "--base-url", url)
        before = modes(talk)
        talk.wait_for("Key for lab")
        assert not shows_echo(talk)
        talk.type("sk-wrong-0123456789\r")
        talk.wait_for("or press Enter to give up.\r\n\x1b[?2004hKey for lab")
        # A paste with line breaks, as a terminal with bracketed paste sends it.
        talk.type(f"\x1b[200~export LAB_API_KEY='{KEY[:9]}\n{KEY[9:]}'\n\x1b[201~\r")
        talk.wait_for("Number, or a part of a name")
        assert shows_echo(talk)
        talk.type("large\n")
        talk.wait_for("To start: `bradawl`")
        assert ended(talk) == 0
        assert modes(talk) == before
    assert b"sk-wrong" not in talk.raw
    assert KEY.encode() not in talk.raw and KEY[9:].encode() not in talk.raw
    assert b"wxyz" in talk.raw
    config = tmp_path / ".config" / "bradawl"
    assert f'api_key = "{KEY}"' in (config / "credentials.toml").read_text()
    assert 'model = "lab/large"' in (config / "config.toml").read_text()


def test_lines_pasted_without_brackets_are_one_key_and_never_shown(login, tmp_path):
    with key_server() as url:
        talk = login("lab", "--base-url", url, TERM="dumb")
        talk.wait_for("Key for lab")
        talk.type(f"{KEY[:9]}\n{KEY[9:]}\n")
        talk.wait_for("Number, or a part of a name")
        assert b"line breaks in it" in talk.raw
        talk.type("-\n")
        assert ended(talk) == 0
    assert KEY[9:].encode() not in talk.raw


@pytest.mark.parametrize(("end", "code"), [("\x03", 130), ("\x04", 1), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_terminal_is_as_before_however_the_question_for_the_key_ends(login, tmp_path, end, code):
    talk = login("openai")
    before = modes(talk)
    talk.wait_for("Key for OpenAI")
    assert not shows_echo(talk)
    talk.type(KEY[:12] if end != "\x04" else "")
    if isinstance(end, str):
        talk.type(end)
    else:
        talk.process.send_signal(end)
    assert ended(talk) == code
    assert modes(talk) == before
    assert b"Traceback" not in talk.raw and KEY[:12].encode() not in talk.raw
    assert not (tmp_path / ".config").exists()


def test_ctrl_z_does_not_leave_a_terminal_without_echo_behind(login):
    talk = login("openai")
    talk.wait_for("Key for OpenAI")
    talk.type("\x1a\x1a\x03")
    assert ended(talk) == 130
    assert shows_echo(talk)
