"""Builds the network proxy of sandboxed commands, which passes connections on to the user's own proxy."""

from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.sandbox.network.destinations import Destination
    from bradawl.sandbox.network.dialing import Upstream
    from bradawl.sandbox.network.proxy import Proxy

_DEFAULT_PORTS = {"http": 80, "https": 443}


def command_proxy(settings: Settings, private_hosts: Callable[[], Collection[str]] = tuple) -> "Callable[[], Proxy]":
    """Makes the proxy when the first command connects. `private_hosts`: see `Dialer`."""

    def make() -> "Proxy":
        from bradawl.sandbox.network.dialing import Dialer
        from bradawl.sandbox.network.proxy import Proxy

        return Proxy(
            Dialer(
                private_hosts=private_hosts,
                upstream=lambda to: upstream_for(
                    to, settings.environment, settings.proxy, settings.model.ca_file or ""
                ),
            )
        )

    return make


def upstream_for(
    destination: "Destination", environ: Mapping[str, str], chosen: str = "", ca_file: str = ""
) -> "Upstream | None":
    """The user's proxy for a destination; None for a direct connection. `chosen` wins over the variables.

    `ca_file` holds the certificates that are trusted if it is reached by TLS; empty for the system's.

    Raises `Unreachable` for an unusable proxy.
    """
    from bradawl.app.settings.proxy import proxy_for
    from bradawl.sandbox.network.dialing import Unreachable, Upstream

    scheme = "http" if destination.port == _DEFAULT_PORTS["http"] else "https"
    url = f"{scheme}://{destination.host}:{destination.port}"
    try:
        found = proxy_for(url, environ, chosen, "proxy")
    except SettingsError as error:
        raise Unreachable(str(error)) from error
    if found is None:
        return None
    parts = urlsplit(found)
    given = ":".join(unquote(each or "") for each in (parts.username, parts.password))
    is_tls = parts.scheme == "https"
    authorization = f"Basic {b64encode(given.encode()).decode()}" if parts.username else ""
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return Upstream(parts.hostname or "", port, authorization, is_tls=is_tls, ca_file=ca_file if is_tls else "")
