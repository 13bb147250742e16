"""A scripted model that encodes each request with a real codec and keeps the bodies."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from bradawl.core.deltas import Delta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message, Origin
from bradawl.core.ports import ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget
from bradawl.providers.codec import Codec, RequestEncoder
from bradawl.testing.script import ScriptSource
from bradawl.testing.scripted import ScriptedModel, ScriptedSession


class WireModel:
    """`Model` that answers from a script and encodes with the codec that `new_codec` returns."""

    def __init__(
        self, script: ScriptSource, new_codec: Callable[[], Codec], *, model: str = "demo-model", **info: Any
    ) -> None:
        self.scripted = ScriptedModel(script)
        self.codec = new_codec()
        self._info = ModelInfo(Origin(self.codec.api, "demo", model), **info)
        self.bodies: list[bytes] = []
        self.sessions: list[WireSession] = []

    @property
    def info(self) -> ModelInfo:
        """The model's info."""
        return self._info

    def open(self, prefix: Prefix, session_id: str = "") -> "WireSession":
        """Begin a conversation."""
        session = WireSession(
            self, self.scripted.open(prefix, session_id), self.codec.encoder(prefix, self._info, session_id)
        )
        self.sessions.append(session)
        return session

    async def window(self) -> Window:
        """A fixed context window."""
        return Window(128_000, "assumed")

    async def aclose(self) -> None:
        """Nothing to close."""


class WireSession:
    """`ModelSession` of `WireModel`; `bodies` gets the body of each request."""

    def __init__(self, model: WireModel, scripted: ScriptedSession, encoder: RequestEncoder) -> None:
        self._model, self._scripted, self.encoder = model, scripted, encoder

    @property
    def info(self) -> ModelInfo:
        """The model's."""
        return self._model.info

    def append(self, message: Message) -> None:
        """Pass the message to the script and the codec."""
        self._scripted.append(message)
        self.encoder.append(message)

    def prefix_hash(self) -> str:
        """Hash from the codec's encoder."""
        return self.encoder.prefix_hash()

    def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """The script's next reply. Keeps the body of the request."""
        self._model.bodies.append(b"".join(self.encoder.body(params)))
        return self._scripted.stream(params, budget)


def messages_of(body: bytes) -> tuple[bytes, ...]:
    """The part of a request before its messages, then each message, without cache markers."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    entries = fields.get("messages") or fields["input"]
    head = b"".join(bytes(fields.get(name, b"")) for name in ("model", "system", "instructions", "tools"))
    found = [head, *map(bytes, msgspec.json.decode(entries, type=list[msgspec.Raw]))]
    return tuple(_without_markers(entry) if b'"cache_control"' in entry else entry for entry in found)


def _without_markers(entry: bytes) -> bytes:
    try:
        return msgspec.json.encode(_stripped(msgspec.json.decode(entry)))
    except msgspec.DecodeError:  # the head: several values one after the other
        import re

        return re.sub(rb',?"cache_control":\{[^{}]*\}', b"", entry)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if key != "cache_control"}
    return [_stripped(item) for item in value] if isinstance(value, list) else value
