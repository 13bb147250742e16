"""The table of wire protocols: one row each. The settings, the wiring of a model and the test kit derive from it.

A protocol is a package with a module `codec`, whose function `open_codec` makes the codec for one server. It is
imported when the protocol is used. `bradawl.providers.responses` is an example.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from bradawl.providers.codec import Codec
    from bradawl.providers.deadlines import Deadlines

NO_CHANGES: Mapping[str, object] = MappingProxyType({})


class WireProtocol(msgspec.Struct, frozen=True):
    """A wire protocol: its name, its package and its path."""

    name: str
    """In settings (`api`), and in the `Origin.api` of replies."""
    package: str
    """Dotted name of the package that holds its `codec` module."""
    path: str
    """The path of requests below the base URL."""

    @property
    def folder(self) -> str:
        """The last part of the package's name."""
        return self.package.rpartition(".")[2]

    def open_codec(
        self, base_url: str, model: str = "", compat: Mapping[str, object] = NO_CHANGES
    ) -> "tuple[Codec, Deadlines]":
        """A codec for one server and model, and the deadlines of its requests; see `CodecModule`."""
        module = cast("CodecModule", import_module(f"{self.package}.codec"))
        return module.open_codec(base_url, model, compat)


class CodecModule(Protocol):
    """The interface of the module `codec` in a protocol's package."""

    def open_codec(self, base_url: str, model: str, compat: Mapping[str, object]) -> "tuple[Codec, Deadlines]":
        """A codec for the server at `base_url`, and the deadlines of its requests.

        `compat` are the fields of `[providers.NAME.compat]`. Raises `ValueError` with a message for the user for
        unknown fields and bad values.
        """
        ...


PROTOCOLS = (
    WireProtocol("openai_chat", "bradawl.providers.chat", "/chat/completions"),
    WireProtocol("openai_responses", "bradawl.providers.responses", "/responses"),
    WireProtocol("anthropic_messages", "bradawl.providers.messages", "/messages"),
)


def protocol_named(name: str, protocols: Iterable[WireProtocol] = PROTOCOLS) -> WireProtocol:
    """The protocol of that name. Raises `KeyError`."""
    for protocol in protocols:
        if protocol.name == name:
            return protocol
    raise KeyError(name)
