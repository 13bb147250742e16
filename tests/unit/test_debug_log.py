"""The debug log: structure and timing of requests and replies, without contents and keys."""

import asyncio
import json
import os
import stat
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_client import KEY, STREAM, ask, bad, chunk, good, is_answered, model_of, sse

from bradawl.core.errors import SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Origin, Text, ToolCall, ToolResult, ToolResults, User
from bradawl.core.ports import Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.debug_log import DebugLog
from bradawl.providers.json_shapes import shape, shape_of_body
from bradawl.testing.fakes import Reply, ScriptedHttp


def lines(folder, session_id="s1"):
    return [json.loads(line) for line in (folder / f"{session_id}.jsonl").read_text().splitlines()]


async def run(folder, *replies, **fields):
    model = model_of(ScriptedHttp(list(replies)), debug_log=DebugLog(folder), **fields)
    return await ask(model, budget=RetryBudget(attempts=3))


async def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    await ask(model_of(ScriptedHttp([good()])))
    assert list(tmp_path.iterdir()) == []


async def test_requests_replies_and_retries_are_logged(tmp_path):
    usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    body = sse(chunk("Hello"), chunk("", "stop"), usage)
    reply = Reply(200, (body,), (*STREAM, ("x-request-id", "req_1")))
    assert is_answered(await run(tmp_path, bad(503, retry_after="2", x_request_id="req_0"), reply))
    request, refused, retry, again, answer = lines(tmp_path)
    assert [line["event"] for line in (request, refused, retry, again, answer)] == [
        "request",
        "response",
        "retry",
        "request",
        "response",
    ]
    assert request["url"] == "https://api.demo.example/v1/chat/completions"
    assert request["body"]["messages"] == [
        {"role": "system", "content": "str(1)"},
        {"role": "user", "content": "str(2)"},
    ]
    assert (refused["status"], refused["request_id"], refused["request"]) == (503, "req_0", 1)
    assert refused["body"] == {"error": {"message": "str(2)"}}
    assert retry["delay_s"] == 2.25
    assert retry["failure"] == {"kind": "overloaded", "retryable": True, "status": 503, "retry_after_s": 2.0}
    assert (answer["status"], answer["request_id"], answer["stop"], answer["request"]) == (200, "req_1", "end_turn", 2)
    assert (answer["usage"]["input"], answer["usage"]["output"], answer["bytes"]) == (5, 2, len(body))
    assert answer["warnings"] == ["missing_done"]
    for timing in ("headers_ms", "first_byte_ms", "first_content_ms", "end_ms"):
        assert answer[timing] >= 0
    assert answer["at_ms"] - request["at_ms"] == 2250


async def test_a_reply_that_the_client_abandons_is_logged_as_cancelled(tmp_path):
    reply = Reply(200, (sse(chunk("Hel")), asyncio.Event()), STREAM)
    deltas = model_of(ScriptedHttp([reply]), debug_log=DebugLog(tmp_path)).open(Prefix("", ()), "s1")
    stream = deltas.stream(RequestParams(), RetryBudget())
    async for _ in stream:
        break
    await stream.aclose()
    assert lines(tmp_path)[-1]["stop"] == "cancelled"


async def test_only_the_user_can_read_the_log(tmp_path):
    folder = tmp_path / "logs" / "debug"
    old = os.umask(0)
    try:
        await run(folder, good())
    finally:
        os.umask(old)
    assert stat.S_IMODE((folder / "s1.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_the_log_ends_at_its_limit_with_a_line_that_says_so(tmp_path):
    log = DebugLog(tmp_path, limit_bytes=1500)
    for _ in range(3):
        await ask(model_of(ScriptedHttp([good()] * 3), debug_log=log))
    assert (tmp_path / "s1.jsonl").stat().st_size <= 1500
    assert lines(tmp_path)[-1] == {"event": "full", "limit_bytes": 1500}
    assert [line["event"] for line in lines(tmp_path)].count("full") == 1


@given(st.integers(0, 1200), st.lists(st.integers(1, 400), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_log_never_grows_beyond_its_limit(tmp_path, limit, sizes):
    path = tmp_path / "s1.jsonl"
    path.unlink(missing_ok=True)
    log = DebugLog(tmp_path, limit_bytes=limit)
    for size in sizes:
        log.session("s1").write({"x": "y" * size})
    assert not path.exists() or path.stat().st_size <= max(limit, 0)
    if path.exists() and path.stat().st_size:
        assert all("x" in line or line["event"] == "full" for line in lines(tmp_path))


async def test_the_log_continues_the_file_of_a_session(tmp_path):
    await run(tmp_path, good())
    await run(tmp_path, good())
    assert [line["event"] for line in lines(tmp_path)] == ["request", "response"] * 2


@pytest.mark.parametrize("session_id", ["../evil", "a/b", "", "x" * 300, "\x00", "ü"])
def test_no_session_id_leads_out_of_the_folder(tmp_path, session_id):
    folder = tmp_path / "logs"
    DebugLog(folder).session(session_id).write({"x": 1})
    assert [path.parent for path in tmp_path.rglob("*.jsonl")] == [folder]


async def test_a_log_that_cannot_be_written_is_reported_once_and_the_request_goes_on(tmp_path):
    (tmp_path / "file").write_text("")
    problems = []
    log = DebugLog(tmp_path / "file" / "logs", on_problem=problems.append)
    deltas = await ask(model_of(ScriptedHttp([bad(500), good()]), debug_log=log))
    assert is_answered(deltas)
    assert len(problems) == 1
    assert "can't be written" in log.problem == problems[0]


def test_the_log_is_not_written_through_a_link(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "s1.jsonl").symlink_to(tmp_path / "target")
    log = DebugLog(tmp_path)
    log.session("s1").write({"x": 1})
    assert (tmp_path / "target").read_text() == ""
    assert log.problem


# ------------------------------------------------------------------ secrets


def conversation(secret):
    origin = Origin("openai_chat", "demo", "m")
    call = ToolCall("c1", "read_file", json.dumps({"path": secret, secret: 1}))
    return [
        User((Text(f"my key is {secret}"),)),
        Assistant((Text(secret), call), origin),
        ToolResults((ToolResult("c1", "read_file", (Text(secret),)),)),
    ]


SECRETS = st.builds(
    str.__add__,
    st.just("zqxkzqxk"),  # letters that the log itself never contains
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40)
    | st.from_regex("[a-z_]{1,30}", fullmatch=True),
)


@given(SECRETS, st.sampled_from(["stream", "error", "json", "key_renewed"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_secret_never_reaches_the_log_wherever_it_occurs(tmp_path, secret, where):
    class Keys:
        async def key(self, refused=""):
            return secret + "2" if refused else secret

    error = {"error": {"message": secret, "code": secret, "type": secret, secret: secret}, "detail": [secret]}
    headers = (("x-request-id", secret), ("retry-after", secret), ("x-secret", secret))
    replies = {
        "stream": Reply(200, (sse(chunk(secret), chunk(secret, secret), {secret: secret}),), (*STREAM, *headers)),
        "error": Reply(418, (json.dumps(error).encode(),), headers),
        "json": Reply(200, (json.dumps(error).encode(),), (("content-type", "application/json"), *headers)),
        "key_renewed": Reply(401, (json.dumps(error).encode(),), headers),
    }
    (tmp_path / "s1.jsonl").unlink(missing_ok=True)

    base_url = f"https://api.demo.example/{quote(secret, safe='')}/v1?token={quote(secret)}"
    http = ScriptedHttp([replies[where]] * 4)
    model = model_of(http, base_url=base_url, keys=Keys(), debug_log=DebugLog(tmp_path))
    session = model.open(Prefix(secret, ()), "s1")
    for message in conversation(secret):
        session.append(message)
    await ask(model, session=session, budget=RetryBudget(attempts=2))
    assert http.requests
    text = (tmp_path / "s1.jsonl").read_text()
    assert len(text.splitlines()) >= 2
    for form in (secret, quote(secret), json.dumps(secret)[1:-1]):
        assert form not in text


async def test_the_error_text_of_a_key_source_is_not_logged(tmp_path):
    class Keys:
        async def key(self, refused=""):
            raise SettingsError(f"command printed {KEY}")

    await run(tmp_path, keys=Keys())
    assert KEY not in "".join(path.read_text() for path in tmp_path.iterdir())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text() | st.just("content"), inner, max_size=5),
    max_leaves=30,
)


@given(JSON)
def test_any_json_has_a_shape_that_does_not_grow_with_its_texts(value):
    assert len(json.dumps(shape(value))) < 40_000
    shape_of_body(json.dumps(value).encode())


def test_shapes_show_structure_types_and_lengths():
    value = {"role": "user", "content": ["abc", "def", "gh", 1, True, None, 2.5], "hunter2": {"type": "hunter2"}}
    assert shape(value) == {
        "role": "user",
        "content": ["str(3)", "x2", "str(2)", "int", "bool", "null", "float"],
        "?3(7)": {"type": "str(7)"},
    }
    assert shape_of_body(b"<html>") == "no JSON(6)"
    assert shape_of_body(b"\xff\xfe") == "no JSON(2)"
    assert shape_of_body(b"[" * 100_000) == "no JSON(100000)"


def test_known_words_of_the_wire_formats_are_shown_only_in_their_own_fields():
    error = {"error": {"type": "rate_limit_error", "code": "zqx", "message": "rate_limit_error"}}
    assert shape(error) == {"error": {"type": "rate_limit_error", "code": "str(3)", "message": "str(16)"}}


def test_long_lists_show_their_end():
    shown = shape([{"text": "x" * size} for size in range(100)])
    assert isinstance(shown, list)
    assert (shown[0], shown[-1]) == ("... 88 items before", {"text": "str(99)"})


def test_old_items_of_a_long_conversation_are_not_read():
    class Untouchable(str):
        def __len__(self):
            raise AssertionError("the log of a step costs more with every step")

    shown = shape([{"text": Untouchable("x")}] * 2_000 + [{"text": "x"}] * 100)
    assert shown == ["... 2040 items before", {"text": "str(1)"}, "x60"]
