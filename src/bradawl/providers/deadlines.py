"""How long each part of a reply may take."""

import msgspec

from bradawl.providers.hosts import is_loopback


class Deadlines(msgspec.Struct, frozen=True):
    """Longest waits of one request, in seconds.

    The defaults suit models that think before they write. Retries have a bound of their own, `RetryBudget`.
    """

    connect_s: float = 10.0
    """Until there is a connection."""
    first_byte_s: float = 300.0
    """From the connection to the first byte of the reply; headers alone are no reply."""
    idle_s: float = 120.0
    """Between two bytes. Any byte is a sign of life, also comments and pings."""
    content_s: float = 600.0
    """While bytes come but nothing of the reply: a server can be kept alive and still be stuck."""


LOCAL = Deadlines(first_byte_s=600.0, idle_s=600.0, content_s=1800.0)
"""A server on this machine loads the model at its first request, and may write a whole call before it sends it."""


def deadlines_for(base_url: str) -> Deadlines:
    """What suits the server at `base_url` when nobody says otherwise."""
    return LOCAL if is_loopback(base_url) else Deadlines()
