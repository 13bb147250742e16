"""The connection to one model: its endpoint and codec, and the HTTP client, clock, keys and deadlines of its
requests.
"""

from collections.abc import Callable

import msgspec

from bradawl.core.ports import Clock, Http, Ids
from bradawl.providers.codec import Codec, Endpoint
from bradawl.providers.cooldown import CoolDowns
from bradawl.providers.deadlines import Deadlines, deadlines_for
from bradawl.providers.keys import FixedKey, KeySource


class ModelEndpoint(msgspec.Struct, frozen=True):
    """The address of a model and its wire format. `repr` hides the key."""

    codec: Codec
    endpoint: Endpoint
    keys: KeySource | None = None
    """Asked before each request; None: the endpoint's own key."""
    deadlines: Deadlines | None = None
    """None: the defaults for the endpoint's host."""
    assumed_window: Callable[[], int | None] | None = None
    """Gives the tokens of the window to assume where neither settings nor server tell it; None: a usual size."""


class Connection:
    """A `ModelEndpoint` with its defaults filled in, and what its requests need to run.

    Models that may use the same host share their `cool_downs`.
    """

    def __init__(
        self, target: ModelEndpoint, http: Http, clock: Clock, ids: Ids, cool_downs: CoolDowns | None = None
    ) -> None:
        self.codec = target.codec
        self.endpoint = target.endpoint
        self.keys: KeySource = target.keys or FixedKey(target.endpoint.api_key)
        self.deadlines = target.deadlines or deadlines_for(target.endpoint.base_url)
        self.http = http
        self.clock = clock
        self.ids = ids
        self.cool_downs = CoolDowns() if cool_downs is None else cool_downs
