"""Finds the wire protocol, and the server's side of it, for the path of a request."""

from collections.abc import Iterable
from importlib import import_module
from typing import Protocol, cast

from bradawl.providers.protocols import PROTOCOLS, WireProtocol
from bradawl.testing.wire_format import WireFormat


class _FormatModule(Protocol):
    FORMAT: WireFormat


def format_of(protocol: WireProtocol) -> WireFormat:
    """The server's side of a protocol: `FORMAT` of the module `wire_FOLDER` beside this one."""
    return cast("_FormatModule", import_module(f"bradawl.testing.wire_{protocol.folder}")).FORMAT


def format_at(path: str, protocols: Iterable[WireProtocol] = PROTOCOLS) -> WireFormat | None:
    """The format of the protocol whose requests go to a path like this; without query and final slash."""
    found = next((protocol for protocol in protocols if path.endswith(protocol.path)), None)
    return None if found is None else format_of(found)
