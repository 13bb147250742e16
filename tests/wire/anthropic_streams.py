"""Messages streams as a server sends them, and a codec with predictable ids."""

import json

from bradawl.core.messages import Origin
from bradawl.core.ports import ModelInfo
from bradawl.providers.messages.codec import AnthropicMessages
from wire.replay import numbered_ids

CLAUDE = Origin("anthropic_messages", "anthropic", "claude-opus-5-5")
CLAUDE_INFO = ModelInfo(CLAUDE)


def messages(base_url: str = "") -> AnthropicMessages:
    return AnthropicMessages(base_url, new_id=numbered_ids(), now_s=lambda: 1_790_000_000.0)


def begin(index: int, kind: str, **fields: object) -> dict[str, object]:
    """`content_block_start`."""
    empty = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"id": f"toolu_{index}", "name": "read_file", "input": {}},
    }
    block = {"type": kind, **empty.get(kind, {}), **fields}
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str, **fields: object) -> dict[str, object]:
    """`content_block_delta`."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def end(index: int) -> dict[str, object]:
    """`content_block_stop`."""
    return {"type": "content_block_stop", "index": index}


def text(index: int, *fragments: str) -> list[dict[str, object]]:
    return [begin(index, "text"), *(piece(index, "text_delta", text=one) for one in fragments), end(index)]


def thinking(index: int, words: str, signature: str) -> list[dict[str, object]]:
    pieces = [piece(index, "thinking_delta", thinking=words)] if words else []
    signed = [piece(index, "signature_delta", signature=signature)] if signature else []
    return [begin(index, "thinking"), *pieces, *signed, end(index)]


def call(index: int, *fragments: str, **fields: object) -> list[dict[str, object]]:
    pieces = [piece(index, "input_json_delta", partial_json=one) for one in fragments]
    return [begin(index, "tool_use", **fields), *pieces, end(index)]


def stream(*events: object, stop: str | None = "end_turn", **delta: object) -> bytes:
    """A complete stream with these blocks; without `stop` it ends after the last block."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-demo", "content": []}
    message["usage"] = {"input_tokens": 3, "output_tokens": 1}
    around = [{"type": "message_start", "message": message}, *events]
    if stop is not None:
        ended = {"stop_reason": stop, "stop_sequence": None, **delta}
        around += [{"type": "message_delta", "delta": ended, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in around).encode()
