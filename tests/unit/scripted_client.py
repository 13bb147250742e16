"""A model client on scripted HTTP, for tests of its retries, deadlines and failures."""

import asyncio
import json
import selectors

from bradawl.core.deltas import ReplyEnded, RetryScheduled, StreamFailed
from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin, Text, User
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.testing.fakes import FakeClock, FakeIds, Reply

KEY = "sk-verysecret1234567890"
BASE_URL = "https://api.demo.example/v1"
STREAM = (("content-type", "text/event-stream"),)
ONCE = RetryBudget(attempts=1)


def sse(*values):
    return b"".join(f"data: {json.dumps(value)}\n\n".encode() for value in values)


def chunk(content=None, finish=None):
    return {"id": "r", "model": "m", "choices": [{"delta": {"content": content}, "finish_reason": finish}]}


def good(text="Hello"):
    return Reply(200, (sse(chunk(text), chunk("", "stop")) + b"data: [DONE]\n\n",), STREAM)


def bad(status, message="no", **headers):
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, (json.dumps({"error": {"message": message}}).encode(),), named)


def model_of(http, *, base_url=BASE_URL, key=KEY, keys=None, deadlines=None, clock=None, name="m", **more):
    """A model at `base_url`; its default clock advances by each sleep without waiting."""
    endpoint = Endpoint("demo", base_url, name, key, key_origin=more.pop("key_origin", ""))
    info = ModelInfo(Origin("openai_chat", "demo", name))
    target = ModelEndpoint(OpenAIChat(base_url), endpoint, keys, deadlines)
    return HttpModel(target, http, clock or FakeClock(is_eager=True), more.pop("ids", FakeIds()), info, **more)


async def ask(model, *, budget=None, session_id="s1", session=None):
    """All deltas of one step."""
    if session is None:
        session = model.open(Prefix("S", ()), session_id)
        session.append(User((Text("Hi"),)))
    return [delta async for delta in session.stream(RequestParams(), budget or RetryBudget())]


def failure_in(deltas):
    assert isinstance(deltas[-1], StreamFailed), deltas[-1]
    return deltas[-1].failure


def retries_in(deltas):
    return [delta for delta in deltas if isinstance(delta, RetryScheduled)]


def is_answered(deltas):
    return isinstance(deltas[-1], ReplyEnded)


class _VirtualTimeSelector(selectors.DefaultSelector):
    """Never waits; adds each timeout to `now_s` instead."""

    now_s = 0.0

    def select(self, timeout=None):
        events = super().select(0)
        if not events and timeout:
            self.now_s += timeout
        return events


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._virtual = _VirtualTimeSelector()
        super().__init__(self._virtual)

    def time(self):
        return self._virtual.now_s


def run_in_virtual_time(work):
    """`asyncio.run` in virtual time: when no task is ready, the time of the next timer is reached at once."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(work)
