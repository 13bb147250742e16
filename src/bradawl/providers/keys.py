"""API keys: their source, and the check that a key is sent only to the origin it was configured for."""

from typing import Protocol

from bradawl.core.errors import Failure
from bradawl.providers.codec import Endpoint
from bradawl.providers.hosts import host_of, port_of

_DEFAULT_PORTS = {"http": 80, "https": 443}
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"})


class KeySource(Protocol):
    """A source of the key for one endpoint."""

    async def key(self, refused: str = "") -> str:
        """The key for the next request, empty if none is needed. `refused` is a key the server has just rejected.

        Raises `SettingsError` when a key is needed and can't be obtained.
        """
        ...


class FixedKey:
    """A key that never changes. `repr` hides it."""

    def __init__(self, key: str = "") -> None:
        self._key = key

    async def key(self, refused: str = "") -> str:
        """The key, also if it was refused."""
        del refused
        return self._key

    def __repr__(self) -> str:
        return "FixedKey(***)"


def origin_of(url: str) -> str:
    """`scheme://host:port` of an http(s) URL, in lower case and always with a port; empty for other text."""
    scheme, has_scheme, rest = url.partition("://")
    scheme, host = scheme.lower(), host_of(url)
    # Some URL parsers end the host at a backslash, others do not.
    if not has_scheme or scheme not in _DEFAULT_PORTS or not host or "\\" in rest:
        return ""
    port = port_of(url)
    if port is None and _names_a_port(rest):
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{_DEFAULT_PORTS[scheme] if port is None else port}"


def _names_a_port(rest: str) -> bool:
    for end in "/?#":
        rest = rest.partition(end)[0]
    return rest.rpartition("@")[2].rpartition("]")[2].partition(":")[2] != ""


def misdirected(endpoint: Endpoint, url: str, headers: tuple[tuple[str, str], ...]) -> Failure | None:
    """The failure if a request with these headers must not be sent to `url`; else None.

    A key is sent only to the origin it was configured for.
    """
    if not endpoint.api_key and not any(name.lower() in _CREDENTIALS for name, _ in headers):
        return None
    home, place = origin_of(endpoint.key_origin or endpoint.base_url), origin_of(url)
    if home and home == place:
        return None
    return Failure(
        "auth",
        f"The key of {endpoint.provider} belongs to {home or 'no valid URL'} and is not sent to "
        f"{place or 'another place'}; nothing was sent.",
        hint="Set a key for that place, or correct the base URL.",
    )
