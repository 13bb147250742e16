"""Runs cases of hostile models and servers against the real loop, tools, client and codecs."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from io import StringIO
from pathlib import Path
from typing import Any

from bradawl.agent.agent import Agent
from bradawl.agent.session import Session, TurnResult
from bradawl.app.build.tools import build_tools
from bradawl.app.console import Console
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.settings.proxy import proxy_for
from bradawl.app.tui.plain.painter import Painter
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
QUICK_S = 30.0
NAMES = {"edit": "edit_file", "read": "read_file", "write": "write_file", "webfetch": "web_fetch", "fetch": "web_fetch"}
ARGUMENTS = {"path": "file_path", "old": "old_string", "new": "new_string"}


def spelled_out(value: Any) -> Any:
    """The input of a case with its repetitions expanded."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, times = value["$repeat"]
            return text * times
        return {name: spelled_out(each) for name, each in value.items()}
    return [spelled_out(each) for each in value] if isinstance(value, list) else value


# ------------------------------------------------------------------ a turn


class Seen:
    """The events of one turn."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def emit(self, item: Any) -> None:
        if isinstance(item, Envelope):
            self.events.append(item.event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def answers(self) -> list[str]:
        """Texts of the results of all calls."""
        return [text_of(event.shown) for event in self.of(ToolFinished)]


async def run(
    model: Model,
    *,
    tools: tuple[Tool[Any], ...] | None = None,
    clock: Any = None,
    approver: Any = None,
    emit: Callable[[Any], None] | None = None,
) -> tuple[TurnResult, Seen, Session]:
    """One turn in a workspace of its own, in mode `default`, without a user."""
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

        try:
            async with agent.open() as session:
                result = await session.run("go", show)
        finally:
            await agent.aclose()
            processes.close()
    return result, seen, session


def decided(seen: Seen) -> str:
    """The decision on the only call: allow, ask, deny or error."""
    (finished,) = seen.of(ToolFinished)
    if seen.of(PermissionAsked):
        return "ask"
    if any(event.decision == "deny" for event in seen.of(PermissionDecided)):
        return "deny"
    return "allow" if finished.outcome == "ok" else "error"


# ------------------------------------------------------------------ calls


async def _one_call(name: str, raw: str, tools: tuple[Tool[Any], ...] | None = None) -> tuple[str, Seen]:
    script = [{"tool_calls": [{"name": name, "arguments": raw}]}, {"text": "done"}]
    result, seen, _ = await run(ScriptedModel(json.dumps(script).encode()), tools=tools)
    assert result.reason in ("completed", "refused"), result.failure  # the turn continues after any call
    if decided(seen) == "error" and seen.of(ToolStarted):
        assert name != "bash", "an erroneous command was started"
    return decided(seen), seen


async def tool_call(given: dict[str, Any]) -> str:
    """A call by name and arguments."""
    named, arguments = given["tool_call"]["name"], given["tool_call"]["args"]
    name = NAMES.get(named, named)
    if name != named and isinstance(arguments, dict):
        arguments = {ARGUMENTS.get(key, key): value for key, value in arguments.items()}
    started = time.monotonic()
    found, seen = await _one_call(name, json.dumps(arguments))
    if name == "grep" and found == "allow" and time.monotonic() - started < QUICK_S:
        # A pattern that is slow in backtracking engines is fast in the one used, also on such a text.
        return "error" if "(a" in str(arguments) or "+)" in str(arguments) else found
    if found == "allow" and "was taken as" in seen.answers[0]:
        return "error"  # the value was clamped, which the list accepts as equivalent
    if found == "error" and "there is no parameter" in seen.answers[0]:
        return "ask"  # stricter: the call runs only after the model has removed unknown parameters
    return found


async def raw_args(given: dict[str, Any]) -> str:
    """A call of bash with arguments as text."""
    return (await _one_call("bash", given["raw_args"]))[0]


async def calls_with_one_id(given: dict[str, Any]) -> str:
    """Several calls with one id, on the wire: each must get its own result, under any id."""
    count = given["tool_calls_same_id"]
    calls = [
        {"index": n, "id": "same", "function": {"name": "read_file", "arguments": json.dumps({"file_path": f"no{n}"})}}
        for n in range(count)
    ]
    stream = sse(
        {"id": "r", "model": "m", "choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    )
    http = ScriptedHttp([Reply(200, (stream + b"data: [DONE]\n\n",), STREAM), good("done")])
    _, _, session = await run(http_model(http))
    (results,) = [message.results for message in session.transcript.messages if isinstance(message, ToolResults)]
    uncrossed = [f"no{n}" in text_of(result.parts) for n, result in enumerate(results)]
    sent = json.loads(b"".join(http.requests[1].body))
    ids = [message["tool_call_id"] for message in sent["messages"] if message["role"] == "tool"]
    is_whole = len(results) == count and all(uncrossed) and len(set(ids)) == count
    return "error" if is_whole else "allow"


async def many_calls(given: dict[str, Any]) -> str:
    """More calls in one reply than a useful reply has."""
    count = given["tool_calls_in_one_message"]
    calls = [{"name": "read_file", "arguments": {"file_path": "a", "offset": n + 1}} for n in range(count)]
    _, seen, session = await run(ScriptedModel(json.dumps([{"tool_calls": calls}, {"text": "done"}]).encode()))
    assert len(seen.answers) == count and not session.transcript.open_calls
    return "error" if any(answer.startswith("Not run") for answer in seen.answers) else "allow"


async def endless_turns(given: dict[str, Any]) -> str:
    """The same one or two calls repeated endlessly."""
    names = ["a", "missing"] if "alternat" in given["turns"] else ["a"]
    step = [{"tool_calls": [{"name": "read_file", "arguments": {"file_path": name}}]} for name in names]
    model = ScriptedModel(json.dumps(step * 300).encode())
    result, *_ = await run(model)
    return "error" if result.reason == "error" and len(model.requests) <= 20 else "allow"


# ------------------------------------------------------------------ the server


def sse(*values: Any) -> bytes:
    """Events of a stream."""
    return b"".join(f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode() for value in values)


def good(text: str) -> Reply:
    """A complete reply."""
    return Reply(200, (_text_events(text),), STREAM)


def _text_events(text: str) -> bytes:
    chunks = ({"content": text}, None), ({"content": ""}, "stop")
    values = ({"id": "r", "model": "m", "choices": [{"delta": delta, "finish_reason": end}]} for delta, end in chunks)
    return sse(*values) + b"data: [DONE]\n\n"


def http_model(http: Http, *, base_url: str = BASE_URL, clock: Any = None, deadlines: Any = None) -> HttpModel:
    """A model client that uses `http`."""
    endpoint = Endpoint("demo", base_url, "m", KEY)
    target = ModelEndpoint(OpenAIChat(base_url), endpoint, None, deadlines)
    info = ModelInfo(Origin("openai_chat", "demo", "m"))
    return HttpModel(target, http, clock or FakeClock(is_eager=True), FakeIds(), info)


async def status(given: dict[str, Any]) -> str:
    """An unusual HTTP response to the request."""
    code = given["http"]
    body = str(given.get("body", "<html>Sign in</html>")).encode()
    headers = {name: str(value) for name, value in given.items() if name not in ("http", "body")}
    if "location" in headers:
        return await _redirected(code)
    clock = FakeClock(is_eager=True)
    reply = Reply(code, (body,), tuple(headers.items()))
    result, *_ = await run(http_model(ScriptedHttp(lambda _: reply), clock=clock), clock=clock)
    assert all(seconds <= 600 for seconds in clock.slept), clock.slept
    return "error" if result.reason == "error" and result.failure else "allow"


async def _redirected(code: int) -> str:
    """Two real servers: the second must get no request with the key of the first."""
    from bradawl.providers.http_h11 import DirectHttp

    elsewhere: list[str] = []

    async def listen(exchange: ServerExchange) -> None:
        elsewhere.append(exchange.header("authorization"))
        await exchange.answer(b"{}")

    async with RawServer(listen) as other:

        async def send_away(exchange: ServerExchange) -> None:
            await exchange.body()
            await exchange.answer(b"", f"{code} Moved", f"location: {other.url}/v1/messages")

        async with RawServer(send_away) as server:
            result, *_ = await run(http_model(DirectHttp(), base_url=server.url))
    return "deny" if result.reason == "error" and not elsewhere else "allow"


class _Pinging:
    """An endless stream of pings, with a delay before each."""

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


async def stream(given: dict[str, Any]) -> str:
    """Other bodies in place of a reply: pings, invalid JSON, text in unusual pieces, escape sequences."""
    raw = given["stream"]
    if isinstance(raw, str) and set(raw) <= set(": pingkeep-alive\n"):
        pings = _Pinging(raw.count("ping") or 100_000)
        deadlines = Deadlines(connect_s=0.05, first_byte_s=0.05, idle_s=0.05, content_s=0.1)
        http: Any = pings
        result, *_ = await run(http_model(http, deadlines=deadlines))
        return "error" if result.reason == "error" and pings.sent < pings.count else "allow"
    text = "".join(raw)
    if isinstance(raw, str) or "{" in text:
        result, *_ = await run(http_model(ScriptedHttp(lambda _: Reply(200, (text.encode(),), STREAM))))
        return "error" if result.reason == "error" and result.failure else "allow"
    result, _, _ = await run(http_model(ScriptedHttp([Reply(200, _cut(_text_events(text)), STREAM)])))
    assert result.text == text, ascii(result.text)
    return "allow" if text.isprintable() else await _painted(text)


def _cut(data: bytes) -> tuple[bytes, ...]:
    """The data as single bytes."""
    return tuple(data[place : place + 1] for place in range(len(data)))


async def _painted(text: str) -> str:
    """Whether the terminal gets clean text, in chunks of any size."""
    shown: set[str] = set()
    for size in (1, 2, 3, len(text)):
        out = StringIO()
        script = [{"text": f"before{text}after", "faults": {"chunk_bytes": size}}]
        await run(
            ScriptedModel(json.dumps(script).encode()), emit=Painter(Console(StringIO(), out, StringIO(), {})).emit
        )
        shown.add(out.getvalue())
    is_clean = all(each.isprintable() or each in "\n\t" for one in shown for each in one)
    return "sanitize" if len(shown) == 1 and is_clean else "allow"


# ------------------------------------------------------------------ the web


async def webfetch(given: dict[str, Any]) -> str:
    """A request for a page, which may redirect elsewhere."""
    first, _, then = given["webfetch"].partition(" redirects to ")
    url = first if "://" in first else f"http://{first}/"
    refused = await _fetched(url, then)
    if not refused.startswith("error"):
        return refused
    if "link-local" in refused or "clouds" in refused:
        return "deny"
    # Private addresses are fetched only if the user's settings permit it, and even then each one is asked about.
    return (await _fetched(url, then, allow_private=True)).partition(" ")[0]


async def _fetched(url: str, then: str, *, allow_private: bool = False) -> str:
    """The decision on the call. A permitted call must not follow its redirect."""
    replies = [Reply(302, (), (("location", then),))] if then else []
    tool = WebFetch(lambda _url, _addresses: ScriptedHttp(replies), allow_private=allow_private)
    found, seen = await _one_call("web_fetch", json.dumps({"url": url}), (tool,))
    if then:
        _, led, _ = await run(
            ScriptedModel(
                json.dumps([{"tool_calls": [{"name": "web_fetch", "arguments": {"url": url}}]}, {"text": "x"}]).encode()
            ),
            tools=(tool,),
            approver=ScriptedApprover([True]),
        )
        assert "not fetched" in led.answers[0], led.answers
    return f"error {seen.answers[0]}" if found == "error" else found


async def proxy_host(given: dict[str, Any]) -> str:
    """A host name that different programs parse differently."""
    host = given["proxy_host"]
    refusals = 0
    for proxy in (f"http://{host}:3128", f"socks5://{host}:1080", host):
        try:
            proxy_for("https://allowed.com/", {"https_proxy": proxy})
        except SettingsError:
            refusals += 1
    tool = WebFetch(lambda _url, _addresses: ScriptedHttp([]))
    fetched, _ = await _one_call("web_fetch", json.dumps({"url": f"https://{host}/"}), (tool,))
    return "error" if refusals == 3 and fetched == "error" else "allow"


SHAPES: dict[str, Callable[[dict[str, Any]], Awaitable[str]]] = {
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


async def outcome(case: dict[str, Any]) -> str:
    """Outcome of a case: allow, ask, deny, error or sanitize. Raises `KeyError` for an unknown shape."""
    given = spelled_out(case["input"])
    shape = next((name for name in SHAPES if name in given), "")
    return await SHAPES[shape](given)
