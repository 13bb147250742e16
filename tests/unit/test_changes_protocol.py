"""The messages between the agent and the process that finds changes."""

from typing import Any

import pytest

from bradawl.checkpoints import protocol


def test_messages_are_read_a_byte_at_a_time():
    messages: list[Any] = [
        protocol.Open(("/p",), "/d", ("/o",)),
        protocol.Begin(1, "c", None, 2.5),
        protocol.Begin(2, "c", ("/a", "/\udcff"[:1]), 2.5),
        protocol.End("c"),
        protocol.Settle(3),
    ]
    buffer, found = bytearray(), []
    for byte in b"".join(map(protocol.frame, messages)):
        buffer.append(byte)
        found += map(protocol.decode_request, protocol.take_frames(buffer))
    assert found == messages and not buffer


def test_a_length_that_is_too_big_is_refused():
    with pytest.raises(ValueError, match="bytes"):
        protocol.take_frames(bytearray(b"\xff\xff\xff\xff"))
