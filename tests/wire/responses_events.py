"""Streams as Responses servers send them."""

import json

from wire.replay import decode, outcome
from wire.responses_checker import responses

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}


def event(name, /, **fields):
    return {"type": name if name == "error" else f"response.{name}", **fields}


def created():
    return event("created", response={"id": "resp_1", "model": "gpt-demo", "status": "in_progress", "output": []})


def ended(status="completed", **fields):
    return event(status, response={"id": "resp_1", "model": "gpt-demo", "status": status, **fields})


def item(name, index, /, **fields):
    return event(f"output_item.{name}", output_index=index, item=fields)


def message(text, item_id="msg_1", **fields):
    return {"type": "message", "id": item_id, "content": [{"type": "output_text", "text": text}], **fields}


def function_call(arguments='{"a":1}', call_id="call_1", item_id="fc_1", **fields):
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": "ls",
        "arguments": arguments,
        **fields,
    }


def bytes_of(*events):
    return b"".join(
        b"data: " + (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n\n" for one in events
    )


def deltas_of(*events):
    return decode(responses(), [bytes_of(*events)])


def reply_of(*events):
    return outcome(deltas_of(*events))


def arguments_in_pieces(index=0, arguments='{"a":1}', **fields):
    return [event("function_call_arguments.delta", output_index=index, delta=piece, **fields) for piece in arguments]


STANDARD_STREAM = [
    created(),
    item("added", 0, type="reasoning", id="rs_1", summary=[]),
    event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Find"),
    event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta=" it."),
    event("reasoning_summary_text.done", output_index=0, summary_index=0, text="Find it."),
    event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Fix it."),
    item(
        "done",
        0,
        type="reasoning",
        id="rs_1",
        summary=[{"type": "summary_text", "text": "Find it."}, {"type": "summary_text", "text": "Fix it."}],
        encrypted_content="ENC",
        status="completed",
    ),
    item("added", 1, type="message", id="msg_1", role="assistant", content=[]),
    event("content_part.added", output_index=1, content_index=0, part={"type": "output_text", "text": ""}),
    event("output_text.delta", output_index=1, content_index=0, delta="Loo"),
    event("output_text.delta", output_index=1, content_index=0, delta="king."),
    event("output_text.done", output_index=1, content_index=0, text="Looking."),
    item("done", 1, **message("Looking.", phase="commentary")),
    item("added", 2, **function_call("")),
    *arguments_in_pieces(2),
    event("function_call_arguments.done", output_index=2, arguments='{"a":1}'),
    item("done", 2, **function_call(status="completed")),
    item("added", 3, **function_call("", "call_2", "fc_2")),
    *arguments_in_pieces(3, '{"b":2}'),
    event("function_call_arguments.done", output_index=3, arguments='{"b":2}'),
    item("done", 3, **function_call('{"b":2}', "call_2", "fc_2", status="completed")),
    ended(usage=USAGE),
]
