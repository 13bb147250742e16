"""The proxy for a request, by the variables `HTTPS_PROXY`, `NO_PROXY` and so on."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from bradawl.app.settings.providers import is_loopback
from bradawl.core.errors import SettingsError

_DEFAULT_PORT = {"http": 80, "https": 443}
_OTHER_PROXIES = ("socks", "socks4", "socks4a", "socks5", "socks5h")
_HOW_WRITTEN = (
    "it is written http://HOST:PORT or http://USER:PASSWORD@HOST:PORT; in a user name or password write %23 for #, "
    "%2F for / and %3F for ?"
)


def proxy_for(url: str, environ: Mapping[str, str], chosen: str = "", source: str = "") -> str | None:
    """The proxy for a valid URL, or None for a direct connection. `chosen` wins over the variables.

    Loopback addresses have no proxy, and NO_PROXY applies to `chosen` too. Raises `SettingsError`.
    """
    if is_loopback(url) or is_exempt(url, _variable(environ, "no_proxy")[0]):
        return None
    if not chosen:
        chosen, source = _variable(environ, f"{urlsplit(url).scheme}_proxy")
    if not chosen:
        chosen, source = _variable(environ, "all_proxy")
    return check_proxy(chosen, source) if chosen else None


def _variable(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """Value and name of a variable; the name in lower case wins, as in curl."""
    for spelling in (name, name.upper()):
        if value := environ.get(spelling, "").strip():
            return value, spelling
    return "", name


def is_exempt(url: str, no_proxy: str) -> bool:
    """True when a NO_PROXY list names the host: itself, a domain above it, an address, a network, or `*`."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or _DEFAULT_PORT.get(parts.scheme, 0)
    return any(_names(entry.strip().lower(), host, port) for entry in no_proxy.replace(" ", ",").split(",") if entry)


def _names(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return _in_network(host, entry)
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isdigit() and (":" not in name or name.startswith("[")):
        if int(digits) != port:
            return False
        entry = name
    domain = entry.strip("[]").removeprefix("*").lstrip(".")
    return bool(domain) and (host == domain or host.endswith("." + domain))


def _in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def check_proxy(text: str, source: str) -> str:
    """The URL of a proxy. Raises `SettingsError`, which shows nothing of the URL that could be a part of a password."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise SettingsError(f"{source} is not a proxy URL: {_HOW_WRITTEN}.") from None
    if parts.scheme not in ("http", "https"):
        kind = f"a {parts.scheme}" if parts.scheme in _OTHER_PROXIES else "another"
        raise SettingsError(
            f"{source} names {kind} proxy; bradawl speaks to http and https proxies. "
            "Unset it, or list the host that is to be reached in NO_PROXY."
        )
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":  # the host would be a user name
        raise SettingsError(f"{source} is not a proxy URL: {_HOW_WRITTEN}.")
    if not host:
        raise SettingsError(f"{source} names no proxy host.")
    # Programs differ in whether a control character or a blank ends a host name.
    if not url.isprintable() or not all(each.isalnum() or each in "-._:%" for each in host):
        raise SettingsError(f"{source} names a proxy host with characters that a host name can't have.")
    return url
