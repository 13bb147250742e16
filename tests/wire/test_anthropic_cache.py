"""Positions of cache markers in Messages requests: few, on permitted blocks, and where the server finds its cache."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Origin, Text, Thinking, ToolCall, ToolResult, ToolResults
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.messages.cache import breakpoints
from bradawl.providers.messages.codec import AnthropicMessages
from bradawl.providers.messages.profile import MessagesProfile
from wire.anthropic_streams import CLAUDE
from wire.cases import ASK, PREFIX
from wire.messages_checker import blocks_in, check_request

_SERVER_LOOKS_BACK = 20


class CachingServer:
    """Caches prefixes at marked blocks and finds them as the API does: at a marker or up to 20 blocks before it."""

    def __init__(self):
        self._kept = set()

    def answer(self, body, *, fails=False):
        """Number of blocks of this request that were in the cache."""
        blocks = blocks_in(json.loads(body))
        marked = [place for place, block in enumerate(blocks) if block.pop("cache_control", None)]
        prefixes = [json.dumps(blocks[: place + 1]) for place in range(len(blocks))]
        seen = [
            place
            for mark in marked
            for place in range(max(0, mark - _SERVER_LOOKS_BACK + 1), mark + 1)
            if prefixes[place] in self._kept
        ]
        if not fails:
            self._kept |= {prefixes[mark] for mark in marked}
        return max(seen, default=-1) + 1


class Conversation:
    """An encoder that gets one step at a time, and can be replaced by a new one, as on resume."""

    def __init__(self, prefix=PREFIX, origin=CLAUDE, base_url=""):
        self._begin = lambda: AnthropicMessages(base_url).encoder(prefix, ModelInfo(origin))
        self._encoder = self._begin()
        self._messages = []
        self._calls = 0
        self.origin = origin

    def append(self, *messages):
        for message in messages:
            self._messages.append(message)
            self._encoder.append(message)

    def step(self, calls):
        parts = [Thinking("Hm.", signature="S"), Text("So.")]
        parts += [ToolCall(f"toolu_{self._calls + n}", "ls", "{}") for n in range(calls)]
        self._calls += calls
        results = [ToolResult(part.id, "ls", (Text("x"),)) for part in parts[2:]]
        self.append(Assistant(tuple(parts), self.origin), *([ToolResults(tuple(results))] if calls else [ASK]))

    def resume(self):
        self._encoder = self._begin()
        for message in self._messages:
            self._encoder.append(message)

    def body(self):
        body = b"".join(self._encoder.body(RequestParams()))
        assert check_request(body) == []
        return body


def marked(body):
    return [place for place, block in enumerate(blocks_in(json.loads(body))) if "cache_control" in block]


def count(body):
    return len(blocks_in(json.loads(body)))


def test_the_four_marks_are_the_last_tool_the_system_prompt_and_the_ends_of_two_requests():
    talk = Conversation()
    talk.append(ASK)
    first = talk.body()
    assert marked(first) == [0, 1, 2]
    talk.step(1)
    second = talk.body()
    assert marked(second) == [0, 1, 2, count(second) - 1]
    talk.step(2)
    third = talk.body()
    assert marked(third) == [0, 1, count(second) - 1, count(third) - 1]


def test_asking_again_with_the_same_messages_sends_the_same_bytes():
    talk = Conversation()
    talk.append(ASK)
    talk.body()
    talk.step(1)
    assert talk.body() == talk.body()


def test_a_resumed_conversation_marks_the_end_of_its_last_request():
    talk = Conversation()
    talk.append(ASK)
    talk.body()
    talk.step(12)
    before = talk.body()
    talk.resume()
    assert talk.body() == before


def test_markers_are_sent_if_the_server_or_the_model_supports_them():
    cases = [
        (("https://llm.example", "demo-model"), False),
        (("https://llm.example", "claude-opus-5"), True),
        (("https://bedrock-runtime.us-east-1.amazonaws.com", "arn:1"), True),
        (("https://api.moonshot.ai/anthropic", "kimi-k3"), False),
    ]
    for (base_url, model), expected in cases:
        talk = Conversation(origin=Origin("anthropic_messages", "p", model), base_url=base_url)
        talk.append(ASK)
        assert bool(marked(talk.body())) is expected


def test_a_profile_switches_markers_on_and_off():
    for profile in (MessagesProfile(has_claude=True), MessagesProfile(has_claude=True, takes_cache_control=False)):
        encoder = AnthropicMessages(profile=profile).encoder(PREFIX, ModelInfo(Origin("a", "p", "m")))
        encoder.append(ASK)
        assert bool(marked(b"".join(encoder.body(RequestParams())))) is profile.takes_cache_control


_PREFIXES = st.sampled_from([PREFIX, Prefix("", ()), Prefix("s", ()), Prefix("", PREFIX.tools)])
_STEPS = st.tuples(st.sampled_from(["step", "step", "lost"]), st.integers(0, 30))
_EVENTS = st.lists(_STEPS | st.just(("resume", 0)), min_size=1, max_size=12)


@given(_PREFIXES, _EVENTS)
def test_every_request_finds_the_prefix_cached_by_the_last_answered_one(prefix, events):
    talk, server = Conversation(prefix), CachingServer()
    talk.append(ASK)
    server.answer(talk.body())
    answered = count(talk.body())
    for event, calls in events:
        if event == "resume":
            talk.resume()
            continue
        talk.step(calls)
        if event == "lost":  # this request is not cached, and the user sends another prompt
            server.answer(talk.body(), fails=True)
            talk.append(ASK)
        body = talk.body()
        assert server.answer(body) >= answered
        answered = count(body)


@given(_PREFIXES, st.lists(st.integers(0, 30), min_size=2, max_size=8))
def test_the_end_of_the_request_before_is_always_marked(prefix, steps):
    talk = Conversation(prefix)
    talk.append(ASK)
    before = count(talk.body())
    for calls in steps:
        talk.step(calls)
        body = talk.body()
        assert {before - 1, count(body) - 1} <= set(marked(body))
        before = count(body)


@given(st.integers(0, 300), st.lists(st.integers(0, 300), max_size=2), st.integers(3, 4))
def test_at_most_four_markers_are_in_order_and_the_last_is_at_the_end(last, earlier, slots):
    before = sorted({place for place in earlier if place < last}, reverse=True)
    marks = breakpoints(last, before, slots)
    assert len(marks) <= slots and list(marks) == sorted(set(marks))
    assert marks[-1] == last and set(before[:1]) <= set(marks)


def test_a_long_batch_of_results_gets_the_remaining_markers():
    assert breakpoints(40, (0,), 4) == (0, 10, 25, 40)
    assert breakpoints(10, (0,), 4) == (0, 10)
    assert breakpoints(100, (90, 20), 3) == (20, 90, 100)
    assert breakpoints(100, (90, 80), 3) == (90, 100)
