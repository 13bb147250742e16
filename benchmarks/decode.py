"""The CPU time of decoding a reply: `python benchmarks/decode.py`. Prints seconds, the best of five."""

import json
import sys
import time

import msgspec

from bradawl.core.messages import Origin
from bradawl.core.ports import ModelInfo, Prefix, ToolSchema
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.chat.reply import ChatReply
from bradawl.providers.codec import ServerEvent
from bradawl.providers.sse import SseDecoder

ARGUMENT_BYTES = 1 << 20
TEXT_EVENTS = 1_000
NETWORK_CHUNK = 1_400
LARGE_CHUNK = 65_536
_PREFIX = Prefix("", (ToolSchema("write_file", "", msgspec.Raw(b'{"type":"object"}')),))
_INFO = ModelInfo(Origin("openai_chat", "bench", "m"))


def event(**delta: object) -> str:
    """One chunk as servers send it."""
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(body, separators=(",", ":"))


def argument_events() -> list[str]:
    """1 MiB of arguments, one character per event."""
    text = json.dumps({"content": "x{y}[ " * (ARGUMENT_BYTES // 6)})
    pieces = {one: event(tool_calls=[{"index": 0, "function": {"arguments": one}}]) for one in set(text)}
    head = {"index": 0, "id": "c1", "type": "function", "function": {"name": "write_file", "arguments": ""}}
    return [event(tool_calls=[head]), *(pieces[one] for one in text), "[DONE]"]


def text_events() -> list[str]:
    """Text events, some of them with characters that may begin a call."""
    words = ["Hello ", "the ", "\n", " code", " `x`", " (see", " [1]", ". ", "It", " is"]
    return [*(event(content=words[number % 10]) for number in range(TEXT_EVENTS)), "[DONE]"]


def decode(events: list[ServerEvent]) -> float:
    """CPU seconds of the codec alone."""
    reply = _decoder()
    started = time.process_time()
    for one in events:
        reply.feed(one)
    return time.process_time() - started


def read(data: bytes, step: int) -> float:
    """CPU seconds from bytes to deltas."""
    reply, sse = _decoder(), SseDecoder()
    started = time.process_time()
    for start in range(0, len(data), step):
        for one in sse.feed(data[start : start + step]):
            reply.feed(one)
    return time.process_time() - started


def _decoder() -> ChatReply:
    codec = OpenAIChat("http://127.0.0.1:8000/v1")
    codec.encoder(_PREFIX, _INFO)
    return codec.decoder()


def main() -> None:
    """Measure and print."""
    arguments, texts = argument_events(), text_events()
    as_events = [ServerEvent("", one) for one in arguments]
    data = "".join(f"data: {one}\n\n" for one in texts).encode()
    long = "".join(f"data: {one}\n\n" for one in arguments).encode()
    figures = {
        "1 MiB of arguments in single characters, codec alone": min(decode(as_events) for _ in range(5)),
        "the same with the event stream, 64 KiB at a time": min(read(long, LARGE_CHUNK) for _ in range(5)),
        "1,000 events of text with the event stream": min(read(data, NETWORK_CHUNK) for _ in range(5)),
        "the same a byte at a time": min(read(data, 1) for _ in range(5)),
    }
    for name, seconds in figures.items():
        sys.stdout.write(f"{seconds * 1000:9.2f} ms  {name}\n")


if __name__ == "__main__":
    main()
