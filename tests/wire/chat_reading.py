"""Feeds chunks to the Chat Completions decoder."""

import json

from bradawl.core.deltas import PartClosed
from bradawl.core.messages import ToolCall
from bradawl.providers.codec import ServerEvent
from wire.replay import chat, decode, outcome, stream_of


def read(*events, done=True):
    return outcome(decode(chat(), [stream_of(*events, done=done)]))


def calls_in(seen):
    return [(part["id"], part["name"], part["raw_args"]) for part in seen["parts"] if part["type"] == "tool_call"]


def feed(*events):
    """The deltas of each event, without ending the stream."""
    reply = chat().decoder()
    return [list(reply.feed(ServerEvent("", json.dumps(event)))) for event in events]


def closed_in(deltas):
    return [d.part.id for d in deltas if isinstance(d, PartClosed) and isinstance(d.part, ToolCall)]
