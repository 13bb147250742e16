"""Finds the host of a package index in its URL. URLs that two programs may read differently are refused."""

import re
from typing import Final
from urllib.parse import urlsplit

from bradawl.safety.permissions.domains import parse_grant

_URL: Final = re.compile(
    r"""(?P<scheme>https?)://
        (?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?       # a user name and a password
        (?P<host>[^/?\#@:%\[\]$*,;]+)
        (?::(?P<port>[1-9][0-9]{0,4}))?
        (?:[/?\#].*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_WEB_PORTS: Final = (80, 443)
_LAST_PORT: Final = 65_535
_LONGEST: Final = 2_000


def url_domain(url: str) -> str:
    """The host of a URL as the setting `network` would name it. Raises `ValueError` with the reason if it can't.

    The result covers the ports 80 and 443, or the one other port that the URL names.
    """
    parts = _URL.fullmatch(url) if _is_plain(url) else None
    if parts is None:
        raise ValueError(_why_no_url(url))
    host, port = parts["host"], int(parts["port"] or 0)
    if port > _LAST_PORT:
        raise ValueError("its port is not valid")
    split = urlsplit(url)
    if split.hostname != host.lower() or (split.port or 0) != port:
        raise ValueError("programs read this URL differently")
    domain = parse_grant(host)
    text = domain.name if not port or port in _WEB_PORTS else f"{domain.name}:{port}"
    parse_grant(text)
    return text


def _is_plain(url: str) -> bool:
    return len(url) <= _LONGEST and url.isascii() and url.isprintable() and not re.search(r"[\s\\]", url)


def _why_no_url(url: str) -> str:
    if len(url.split()) > 1:
        return "it is more than one URL"
    if "${" in url:
        return "it contains a variable, which bradawl does not replace"
    if re.match(r"https?://", url, re.IGNORECASE) is None:
        return "it is not a URL of HTTP or HTTPS"
    if not url.isascii():
        return "programs encode its letters differently; write the name in punycode (xn--)"
    if "\\" in url:
        return "programs read a URL with a backslash differently"
    if "*" in url.split("/")[2]:
        return "a URL names one host, and a star is not one"
    if "[" in url.split("/")[2]:
        return "it is an address, and only names can be used"
    return "its host, user name or port is not valid"
