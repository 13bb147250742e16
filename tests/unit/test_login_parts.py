"""The parts of a login: verdicts on answers of endpoints, input without echo, and the command line."""

import io
import json

import pytest

from bradawl.app.build.model import build_single_model
from bradawl.app.cli import UsageError, parse, run
from bradawl.app.console import Console
from bradawl.app.endpoint_check import check_list, check_model
from bradawl.app.login.secret_input import TypedText
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp
from bradawl.testing.server import WireServer

KEY = "sk-login-" + "0123456789abcd"


def failing(status, message):
    return Reply(status, (json.dumps({"error": {"message": message}}).encode(),))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Cut(), "network"),
        (failing(401, "x"), "wrong_key"),
        (failing(403, "x"), "wrong_key"),
        (failing(404, "x"), "no_list"),
        (failing(402, "x"), "no_credit"),
        (failing(429, "x"), "busy"),
        (failing(503, "x"), "network"),
        (failing(500, "x"), "network"),
        (failing(407, "x"), "network"),
        (failing(400, "x"), "refused"),
        (Reply(200, (b"[]",)), "ok"),
    ],
)
async def test_the_answer_to_a_request_for_the_list_has_its_verdict(reply, kind):
    settings = ModelSettings("acme", "m", "https://acme.example/v1", api_key=KEY, key_origin="https://acme.example")
    http = ScriptedHttp([reply])
    verdict = await check_list(settings, {}, lambda *_: http)
    assert verdict.kind == kind
    assert KEY not in verdict.text and http.is_closed


async def test_a_tiny_request_reaches_a_real_server():
    async with WireServer([{"text": "ok"}]) as server:
        chosen = ModelSettings("acme", "m", server.base_url)
        assert (await check_model(chosen, lambda one: build_single_model(one, {}))).kind == "ok"
        assert server.requests[0]["model"] == "m"


@pytest.mark.parametrize(
    ("pieces", "text", "is_ended"),
    [
        ([b"abc\n"], "abc", True),
        ([b"ab", b"c"], "abc", False),
        ([b"abx\x7fc\n"], "abc", True),
        ([b"xyz\x15abc\n"], "abc", True),
        ([b"\x1b[200~ab\ncd\x1b[201~", b"\n"], "ab\ncd", True),
        ([b"\x1b[200~ab\n"], "ab", False),
        ([b"\x1b[20", b"0~a\x1b", b"[201~b\n"], "ab", True),
        ([b"a\x1b[Ab\x1bOBc\n"], "abc", True),
        ([b"ab\ncd\n"], "ab\ncd", True),
        ([b"ab\n", b"cd"], "ab\ncd", False),
        (["é\x7fa\n".encode()], "a", True),
        ([b"a\x04b\n"], "ab", True),
    ],
)
def test_keys_of_a_terminal_become_text(pieces, text, is_ended):
    typed = TypedText()
    for piece in pieces:
        typed.feed(piece)
    assert (typed.text(), typed.is_ended) == (text, is_ended)
    slowly = TypedText()
    for byte in b"".join(pieces):
        slowly.feed(bytes([byte]))
    assert slowly.text() == text


@pytest.mark.parametrize(("data", "error"), [(b"ab\x03", KeyboardInterrupt), (b"\x04", EOFError)])
def test_ctrl_c_and_ctrl_d_end_the_input(data, error):
    with pytest.raises(error):
        TypedText().feed(data)


@pytest.mark.parametrize(
    "argv", [["login", "openai", KEY], ["login", KEY], ["logout", "x", KEY], ["login", "--model", KEY]]
)
def test_a_key_is_no_argument(argv):
    with pytest.raises(UsageError, match="a key is no argument") as caught:
        parse(argv)
    assert KEY not in str(caught.value)


def test_a_sentence_that_begins_with_login_is_a_prompt():
    assert parse(["login", "must", "time", "out"])["prompt"] == "login must time out"


def test_the_commands_have_help():
    for command in ("login", "logout"):
        out = io.StringIO()
        assert run([command, "--help"], {}, Console(io.StringIO(), out, io.StringIO(), {})) == 0
        assert "PROVIDER" in out.getvalue()
