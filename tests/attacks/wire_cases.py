"""Runs a case of the wire: what a hostile model or server sends, against the real loop, tools, client and codecs."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from bradawl.agent.agent import Agent
from bradawl.agent.session import Session, TurnResult
from bradawl.app.build.tools import build_tools
from bradawl.app.console import Console
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.settings.proxy import proxy_for
from bradawl.app.tui.painter import Painter
from bradawl.core.errors import SettingsError
from bradawl.core.events import Envelope, PermissionAsked, PermissionDecided, ToolFinished, ToolStarted
from bradawl.core.messages import Origin, ToolResults, text_of
from bradawl.core.permissions import Policy
from bradawl.core.ports import Http, Model, ModelInfo, Tool
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.deadlines import Deadlines
from bradawl.safety.permissions.protected_paths import built_in_rules
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore, Reply, ScriptedApprover, ScriptedHttp
from bradawl.testing.raw_server import RawServer, ServerExchange
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.web_fetch import WebFetch
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses

BASE_URL = "https://api.demo.example/v1"
STREAM = (("content-type", "text/event-stream"),)
KEY = "sk-verysecret1234567890"
QUICK_S = 5.0
NAMES = {"edit": "edit_file", "read": "read_file", "write": "write_file", "webfetch": "web_fetch", "fetch": "web_fetch"}
ARGUMENTS = {"path": "file_path", "old": "old_string", "new": "new_string"}


def spelled_out(value: Any) -> Any:
    """The input with what is to be repeated repeated."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, times = value["$repeat"]
            return text * times
        return {name: spelled_out(each) for name, each in value.items()}
    return [spelled_out(each) for each in value] if isinstance(value, list) else value


# ------------------------------------------------------------------ a run


class Seen:
    """What happened in one turn."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def emit(self, item: Any) -> None:
        if isinstance(item, Envelope):
            self.events.append(item.event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def answers(self) -> list[str]:
        """What the model was told of its calls."""
        return [text_of(event.shown) for event in self.of(ToolFinished)]


def run(
    model: Model,
    *,
    tools: tuple[Tool[Any], ...] | None = None,
    clock: Any = None,
    approver: Any = None,
    emit: Callable[[Any], None] | None = None,
) -> tuple[TurnResult, Seen, Session]:
    """One turn in a workspace of its own, in mode `default`, with nobody there."""
    seen = Seen()

    def show(item: Any) -> None:
        seen.emit(item)
        if emit is not None:
            emit(item)

    with tempfile.TemporaryDirectory() as folder:
        workspace = os.path.realpath(folder)
        Path(workspace, "a").write_text("x = 1\n")
        Path(workspace, "hostile").write_text("a" * 50_000 + "!\n")
        processes = LocalProcesses({"PATH": os.environ["PATH"], "HOME": workspace})
        offered = build_tools() if tools is None else tools

        async def prompt() -> str:
            return "S"

        agent = Agent(
            model=model,
            tools=offered,
            store=MemoryStore(),
            files=LocalFiles(workspace),
            processes=processes,
            approver=approver or DenyAllApprover(),
            clock=clock or FakeClock(is_eager=True),
            ids=FakeIds(),
            policy=lambda: Policy("default", rules=built_in_rules((workspace,), workspace), roots=(workspace,)),
            system_prompt=prompt,
            project=workspace,
        )

        async def main() -> tuple[TurnResult, Session]:
            try:
                async with agent.open() as session:
                    return await session.run("go", show), session
            finally:
                await agent.aclose()

        try:
            result, session = asyncio.run(main())
        finally:
            processes.close()
    return result, seen, session


def decided(seen: Seen) -> str:
    """What became of the only call."""
    (finished,) = seen.of(ToolFinished)
    if seen.of(PermissionAsked):
        return "ask"
    if any(event.decision == "deny" for event in seen.of(PermissionDecided)):
        return "deny"
    return "allow" if finished.outcome == "ok" else "error"


# ------------------------------------------------------------------ calls


def _one_call(name: str, raw: str, tools: tuple[Tool[Any], ...] | None = None) -> tuple[str, Seen]:
    script = [{"tool_calls": [{"name": name, "arguments": raw}]}, {"text": "done"}]
    result, seen, _ = run(ScriptedModel(json.dumps(script).encode()), tools=tools)
    assert result.reason in ("completed", "refused"), result.failure  # the loop goes on, whatever the call was
    if decided(seen) == "error" and seen.of(ToolStarted):
        assert name != "bash", "an erroneous command was started"
    return decided(seen), seen


def tool_call(given: dict[str, Any]) -> str:
    """A call by name and arguments."""
    named, arguments = given["tool_call"]["name"], given["tool_call"]["args"]
    name = NAMES.get(named, named)
    if name != named and isinstance(arguments, dict):
        arguments = {ARGUMENTS.get(key, key): value for key, value in arguments.items()}
    started = time.monotonic()
    found, seen = _one_call(name, json.dumps(arguments))
    if name == "grep" and found == "allow" and time.monotonic() - started < QUICK_S:
        # A pattern that is hostile to backtracking engines is harmless to the one used; it has gone over such a text.
        return "error" if "(a" in str(arguments) or "+)" in str(arguments) else found
    if found == "allow" and "was taken as" in seen.answers[0]:
        return "error"  # clamped, which the list takes for as good
    if found == "error" and "there is no parameter" in seen.answers[0]:
        return "ask"  # stricter: nothing runs until the model has taken back what the tool does not have
    return found


def raw_args(given: dict[str, Any]) -> str:
    """A call of bash with arguments as text."""
    return _one_call("bash", given["raw_args"])[0]


def calls_with_one_id(given: dict[str, Any]) -> str:
    """Several calls under one id, on the wire: each must get its own answer, whatever it is called then."""
    count = given["tool_calls_same_id"]
    calls = [
        {"index": n, "id": "same", "function": {"name": "read_file", "arguments": json.dumps({"file_path": f"no{n}"})}}
        for n in range(count)
    ]
    stream = sse(
        {"id": "r", "model": "m", "choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    )
    http = ScriptedHttp([Reply(200, (stream + b"data: [DONE]\n\n",), STREAM), good("done")])
    _, _, session = run(http_model(http))
    (results,) = [message.results for message in session.transcript.messages if isinstance(message, ToolResults)]
    uncrossed = [f"no{n}" in text_of(result.parts) for n, result in enumerate(results)]
    sent = json.loads(b"".join(http.requests[1].body))
    ids = [message["tool_call_id"] for message in sent["messages"] if message["role"] == "tool"]
    is_whole = len(results) == count and all(uncrossed) and len(set(ids)) == count
    return "error" if is_whole else "allow"


def many_calls(given: dict[str, Any]) -> str:
    """More calls in one reply than anybody means."""
    count = given["tool_calls_in_one_message"]
    calls = [{"name": "read_file", "arguments": {"file_path": "a", "offset": n + 1}} for n in range(count)]
    _, seen, session = run(ScriptedModel(json.dumps([{"tool_calls": calls}, {"text": "done"}]).encode()))
    assert len(seen.answers) == count and not session.transcript.open_calls
    return "error" if any(answer.startswith("Not run") for answer in seen.answers) else "allow"


def endless_turns(given: dict[str, Any]) -> str:
    """The same calls for ever, one or two in turn."""
    names = ["a", "missing"] if "alternat" in given["turns"] else ["a"]
    step = [{"tool_calls": [{"name": "read_file", "arguments": {"file_path": name}}]} for name in names]
    model = ScriptedModel(json.dumps(step * 300).encode())
    result, *_ = run(model)
    return "error" if result.reason == "error" and len(model.requests) <= 20 else "allow"


# ------------------------------------------------------------------ the server


def sse(*values: Any) -> bytes:
    """Events of a stream."""
    return b"".join(f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode() for value in values)


def good(text: str) -> Reply:
    """A whole reply."""
    return Reply(200, (_text_events(text),), STREAM)


def _text_events(text: str) -> bytes:
    chunks = ({"content": text}, None), ({"content": ""}, "stop")
    values = ({"id": "r", "model": "m", "choices": [{"delta": delta, "finish_reason": end}]} for delta, end in chunks)
    return sse(*values) + b"data: [DONE]\n\n"


def http_model(http: Http, *, base_url: str = BASE_URL, clock: Any = None, deadlines: Any = None) -> HttpModel:
    """A model behind that."""
    endpoint = Endpoint("demo", base_url, "m", KEY)
    target = ModelEndpoint(OpenAIChat(base_url), endpoint, None, deadlines)
    info = ModelInfo(Origin("openai_chat", "demo", "m"))
    return HttpModel(target, http, clock or FakeClock(is_eager=True), FakeIds(), info)


def status(given: dict[str, Any]) -> str:
    """An odd answer to the request."""
    code = given["http"]
    body = str(given.get("body", "<html>Sign in</html>")).encode()
    headers = {name: str(value) for name, value in given.items() if name not in ("http", "body")}
    if "location" in headers:
        return _redirected(code)
    clock = FakeClock(is_eager=True)
    reply = Reply(code, (body,), tuple(headers.items()))
    result, *_ = run(http_model(ScriptedHttp(lambda _: reply), clock=clock), clock=clock)
    assert all(seconds <= 600 for seconds in clock.slept), clock.slept
    return "error" if result.reason == "error" and result.failure else "allow"


def _redirected(code: int) -> str:
    """Two real servers: the second must hear nothing of the first one's user."""
    from bradawl.providers.http_h11 import DirectHttp

    elsewhere: list[str] = []

    async def main() -> TurnResult:
        async def listen(exchange: ServerExchange) -> None:
            elsewhere.append(exchange.header("authorization"))
            await exchange.answer(b"{}")

        async with RawServer(listen) as other:

            async def send_away(exchange: ServerExchange) -> None:
                await exchange.body()
                await exchange.answer(b"", f"{code} Moved", f"location: {other.url}/v1/messages")

            async with RawServer(send_away) as server:
                return await asyncio.to_thread(lambda: run(http_model(DirectHttp(), base_url=server.url))[0])

    result = asyncio.run(main())
    return "deny" if result.reason == "error" and not elsewhere else "allow"


class _Pinging:
    """An endless stream that says nothing; each piece takes time."""

    status = 200

    def __init__(self, count: int) -> None:
        self.headers = dict(STREAM)
        self.count = count
        self.sent = 0

    def stream(self, request: Any) -> "_Pinging":
        return self

    async def __aenter__(self) -> "_Pinging":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def aclose(self) -> None:
        return None

    async def chunks(self) -> Any:
        for _ in range(self.count):
            self.sent += 1
            yield b": ping\n\n"
            await asyncio.sleep(0.001)


def stream(given: dict[str, Any]) -> str:
    """What comes in place of a reply: pings, no JSON, text in odd pieces, escapes."""
    raw = given["stream"]
    if isinstance(raw, str) and set(raw) <= set(": pingkeep-alive\n"):
        pings = _Pinging(raw.count("ping") or 100_000)
        deadlines = Deadlines(connect_s=0.05, first_byte_s=0.05, idle_s=0.05, content_s=0.1)
        http: Any = pings
        result, *_ = run(http_model(http, deadlines=deadlines))
        return "error" if result.reason == "error" and pings.sent < pings.count else "allow"
    text = "".join(raw)
    if isinstance(raw, str) or "{" in text:
        result, *_ = run(http_model(ScriptedHttp(lambda _: Reply(200, (text.encode(),), STREAM))))
        return "error" if result.reason == "error" and result.failure else "allow"
    result, _, _ = run(http_model(ScriptedHttp([Reply(200, _cut(_text_events(text)), STREAM)])))
    assert result.text == text, ascii(result.text)
    return "allow" if text.isprintable() else _painted(text)


def _cut(data: bytes) -> tuple[bytes, ...]:
    """Every byte by itself."""
    return tuple(data[place : place + 1] for place in range(len(data)))


def _painted(text: str) -> str:
    """What the terminal gets of it, however it was cut."""
    shown: set[str] = set()
    for size in (1, 2, 3, len(text)):
        out = StringIO()
        script = [{"text": f"before{text}after", "faults": {"chunk_bytes": size}}]
        run(ScriptedModel(json.dumps(script).encode()), emit=Painter(Console(StringIO(), out, StringIO(), {})).emit)
        shown.add(out.getvalue())
    is_clean = all(each.isprintable() or each in "\n\t" for one in shown for each in one)
    return "sanitize" if len(shown) == 1 and is_clean else "allow"


# ------------------------------------------------------------------ the web


def webfetch(given: dict[str, Any]) -> str:
    """A page somewhere, maybe with a redirect to somewhere else."""
    first, _, then = given["webfetch"].partition(" redirects to ")
    url = first if "://" in first else f"http://{first}/"
    refused = _fetched(url, then)
    if not refused.startswith("error"):
        return refused
    if "link-local" in refused or "clouds" in refused:
        return "deny"
    # Without a word of the user's nothing private is fetched at all; who has given it is still asked each time.
    return _fetched(url, then, allow_private=True).partition(" ")[0]


def _fetched(url: str, then: str, *, allow_private: bool = False) -> str:
    """How the call is decided; when it is allowed, it must not reach what it leads to."""
    replies = [Reply(302, (), (("location", then),))] if then else []
    tool = WebFetch(lambda _url, _addresses: ScriptedHttp(replies), allow_private=allow_private)
    found, seen = _one_call("web_fetch", json.dumps({"url": url}), (tool,))
    if then:
        _, led, _ = run(
            ScriptedModel(
                json.dumps([{"tool_calls": [{"name": "web_fetch", "arguments": {"url": url}}]}, {"text": "x"}]).encode()
            ),
            tools=(tool,),
            approver=ScriptedApprover([True]),
        )
        assert "not fetched" in led.answers[0], led.answers
    return f"error {seen.answers[0]}" if found == "error" else found


def proxy_host(given: dict[str, Any]) -> str:
    """A host that is read one way here and another way there."""
    host = given["proxy_host"]
    refusals = 0
    for proxy in (f"http://{host}:3128", f"socks5://{host}:1080", host):
        try:
            proxy_for("https://allowed.com/", {"https_proxy": proxy})
        except SettingsError:
            refusals += 1
    tool = WebFetch(lambda _url, _addresses: ScriptedHttp([]))
    fetched, _ = _one_call("web_fetch", json.dumps({"url": f"https://{host}/"}), (tool,))
    return "error" if refusals == 3 and fetched == "error" else "allow"


SHAPES: dict[str, Callable[[dict[str, Any]], str]] = {
    "tool_call": tool_call,
    "raw_args": raw_args,
    "tool_calls_same_id": calls_with_one_id,
    "tool_calls_in_one_message": many_calls,
    "turns": endless_turns,
    "http": status,
    "stream": stream,
    "webfetch": webfetch,
    "proxy_host": proxy_host,
}


def outcome(case: dict[str, Any]) -> str:
    """What becomes of a case: allow, ask, deny, error or sanitize. Raises `KeyError` for a shape nobody knows."""
    given = spelled_out(case["input"])
    shape = next((name for name in SHAPES if name in given), "")
    return SHAPES[shape](given)
