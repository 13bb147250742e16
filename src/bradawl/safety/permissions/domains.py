"""Parses domains as rules and settings name them: `docs.example.org`, `*.example.net`, `registry.corp:8443`.

The patterns are compared with the destination of a connection: `NAME` for the ports 80 and 443, `NAME:PORT` for any
other port.
"""

import re
from typing import Final, NamedTuple

from bradawl.safety.host_names import why_never_reached, why_not_a_host_name

_LONGEST_TEXT: Final = 300
_WEB_PORTS: Final = (80, 443)
_EXAMPLE: Final = "write a name such as docs.example.org, *.example.net for all names below it, or registry.corp:8443"
_SHARED_SECOND: Final = frozenset(
    (
        *("ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "gv", "ltd", "me", "mil", "ne", "net", "nom", "or"),
        *("org", "plc", "sch"),
    )
)
"""Second names under which countries register the names of different owners, as in `co.uk`."""
_SHARED: Final = frozenset(
    (
        *("github.io", "gitlab.io", "pages.dev", "workers.dev", "vercel.app", "netlify.app", "herokuapp.com"),
        *("web.app", "firebaseapp.com", "appspot.com", "run.app", "cloudfront.net", "amazonaws.com"),
        *("azurewebsites.net", "cloudapp.net", "blob.core.windows.net", "fly.dev", "onrender.com", "glitch.me"),
        *("ngrok.io", "ngrok.app", "ngrok-free.app", "trycloudflare.com", "repl.co", "blogspot.com", "googleapis.com"),
        *("readthedocs.io", "translate.goog", "r2.dev", "digitaloceanspaces.com"),
    )
)
"""Domains below which anyone can get a name."""
_TOP_LEVEL: Final = frozenset(
    (
        *("com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "io", "dev", "app", "ai", "cloud"),
        *("online", "site", "xyz"),
    )
)
"""Public top-level names that are no host; a private network may use any other name of one label."""
DESTINATION: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}(?::[1-9]\d{0,4})?")
"""The destination of a connection."""


class Domain(NamedTuple):
    """One host, or all hosts below a domain."""

    name: str
    """In lower case and ASCII, without a dot at the end."""
    is_below: bool = False
    """All names below `name`, not the name itself."""
    port: int = 0
    """0: the ports 80 and 443."""

    def allowed(self) -> str:
        """A regular expression for the destinations that an allow rule covers."""
        end = f":{self.port}" if self.port else ""
        below = r"(?:[^.:]+\.)+" if self.is_below else ""
        return f"{below}{re.escape(self.name)}{end}"

    def refused(self) -> str:
        """A regular expression for the destinations that a deny or ask rule covers: the name and all below it, on every
        port unless one is given.
        """
        end = f":{self.port}" if self.port else r"(?::\d+)?"
        return rf"(?:[^:]+\.)?{re.escape(self.name)}{end}"


def parse_domain(text: str) -> Domain:
    """The domain in a text. Raises `ValueError` that says what is wrong and what to write."""
    text = text.strip(" \t")
    _check_is_a_host(text)
    starred = text.startswith("*.")
    rest = text[2:] if starred else text
    if "*" in rest:
        raise ValueError(f"a star can only be the first of several names, as in *.example.net; {_EXAMPLE}")
    rest, colon, digits = rest.partition(":")
    name = host_name(rest)
    if starred and "." not in name:
        raise ValueError(f"*.{name} would cover a whole top-level domain; {_EXAMPLE}")
    return Domain(name, starred, _port(digits) if colon else 0)


def parse_grant(text: str) -> Domain:
    """The domain in a text that is to be reached without a question. Raises `ValueError` like `parse_domain`, and for a
    domain that no command may reach or below which anyone can get a name.
    """
    domain = parse_domain(text)
    if reason := why_never_reached(domain.name):
        raise ValueError(f"no command can reach it: {reason}; leave it out")
    if domain.name in _TOP_LEVEL:
        raise ValueError(f"{domain.name} is a top-level domain; {_EXAMPLE}")
    if domain.is_below and _is_shared(domain.name):
        raise ValueError(f"anyone can get a name below {domain.name}; name the hosts, as in example.{domain.name}")
    return domain


def _is_shared(name: str) -> bool:
    """Whether names below it are known to belong to different owners. Not complete: the list is short."""
    second, _, country = name.partition(".")
    return name in _SHARED or (len(country) == 2 and country.isalpha() and second in _SHARED_SECOND)


def _check_is_a_host(text: str) -> None:
    if not text:
        raise ValueError(f"it is empty; {_EXAMPLE}")
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"it is longer than {_LONGEST_TEXT} characters")
    if not text.isprintable():
        raise ValueError("it contains an invisible character")
    if "://" in text:
        raise ValueError(f"it is a URL, and only its host can be named; {_EXAMPLE}")
    if "@" in text:
        raise ValueError(f"it contains a user name; {_EXAMPLE}")
    if found := re.search(r"[/\\?#\s]", text):
        raise ValueError(f"{found[0]!r} can't be part of a host; {_EXAMPLE}")
    if text == "*":
        raise ValueError('it would be every host; network_commands = ["*"] allows any public host to every command')
    if text.startswith("[") or text.count(":") > 1:
        raise ValueError(f"addresses can't be named, only hosts; {_EXAMPLE}")


def _port(digits: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", digits) or int(digits) > 65_535:
        raise ValueError(f"{digits!r} is not a port; ports are from 1 to 65535")
    if int(digits) in _WEB_PORTS:
        raise ValueError("a name without a port covers the ports 80 and 443; leave the port out")
    return int(digits)


def host_name(text: str) -> str:
    """A host's name in lower case and ASCII (punycode), without a dot at the end. Raises `ValueError`."""
    name = ascii_name(text).lower().removesuffix(".")
    if reason := why_not_a_host_name(name):
        raise ValueError(f"{text!r}: {reason}; {_EXAMPLE}")
    return name


def ascii_name(text: str) -> str:
    """A name in punycode; text in ASCII is returned as it is. Raises `ValueError` for a name that IDNA 2003 and 2008
    may encode differently.
    """
    if text.isascii():
        return text
    try:
        encoded = text.encode("idna").decode("ascii")
        is_same = encoded.encode("ascii").decode("idna") == text.lower()
    except UnicodeError:
        encoded, is_same = "", False
    if not is_same:
        raise ValueError(f"{text!r} has characters that programs encode differently; write the name in punycode (xn--)")
    return encoded
