"""Timeouts of a request: connection, first byte, silence between bytes, and bytes without content."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from bradawl.providers.hosts import is_loopback

if TYPE_CHECKING:
    from bradawl.providers.compat import CompatProfile


class Deadlines(msgspec.Struct, frozen=True):
    """Timeouts of one request, in seconds.

    The defaults suit reasoning models. `RetryBudget` limits the retries.
    """

    connect_s: float = 10.0
    """Until the connection is established."""
    first_byte_s: float = 300.0
    """From the connection to the first byte of the body."""
    idle_s: float = 120.0
    """Between two bytes of any kind, comments and pings included."""
    content_s: float = 600.0
    """With bytes but without content of the reply: a server that sends only keep-alives is stuck."""


LOCAL_SERVER = Deadlines(first_byte_s=600.0, idle_s=600.0, content_s=1800.0)
"""For servers on this machine: they load the model at the first request, and some send a call only when it is whole."""


def deadlines_for(base_url: str) -> Deadlines:
    """The defaults for the server at `base_url`: longer ones for a server on this machine."""
    return LOCAL_SERVER if is_loopback(base_url) else Deadlines()


def deadlines_of(base_url: str, profile: "CompatProfile", compat: Mapping[str, object]) -> Deadlines:
    """Each wait as `compat` sets it, else the longer one of the profile and the defaults for `base_url`.

    The profile has been made with the same `compat`.
    """
    usual = deadlines_for(base_url)

    def wait_s(name: str) -> float:
        of_profile: float = getattr(profile, name)
        return of_profile if name in compat else max(getattr(usual, name), of_profile)

    return msgspec.structs.replace(
        usual, first_byte_s=wait_s("first_byte_s"), idle_s=wait_s("idle_s"), content_s=wait_s("content_s")
    )
