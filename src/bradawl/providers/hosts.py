"""Host and port of a URL, and whether a host is this machine. Pure."""


def host_of(url: str) -> str:
    """The host of a URL in lower case, without port, user and brackets; empty if there is none."""
    authority = _authority_of(url)
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def port_of(url: str) -> int | None:
    """The port a URL names, if it names one."""
    port = _authority_of(url).rpartition("]")[2].partition(":")[2]
    return int(port) if port.isdecimal() and len(port) <= 5 else None


def _authority_of(url: str) -> str:
    _, has_scheme, rest = url.partition("://")
    if not has_scheme:
        return ""
    for end in "/?#":
        rest = rest.partition(end)[0]
    return rest.rpartition("@")[2].lower()


def is_loopback(url: str) -> bool:
    """True when the server runs on this machine."""
    return is_loopback_host(host_of(url))


def is_loopback_host(host: str) -> bool:
    """True when a host is this machine."""
    return host in ("localhost", "::1") or host.endswith(".localhost") or _is_loopback_ipv4(host)


def _is_loopback_ipv4(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isdecimal() for part in parts)
