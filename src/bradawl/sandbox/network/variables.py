"""Environment variables that lead programs to the proxy."""

from collections.abc import Collection, Mapping
from typing import Final

from bradawl.sandbox.network.listeners import PORT

_ADDRESS: Final = f"http://127.0.0.1:{PORT}"
_DIRECT: Final = "localhost,.localhost,127.0.0.1,127.0.0.0/8,0.0.0.0,::1"
"""Without `[::1]`: httpx accepts no brackets there."""
_TO_PROXY: Final = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
)
"""Read by almost all programs. Yarn 2 and later read their own names only (yarnpkg.com/configuration/yarnrc, read
2026-11-22)."""
_NOT_PROXIED: Final = ("NO_PROXY", "no_proxy")
_JAVA: Final = " ".join(f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={PORT}" for scheme in ("http", "https"))
_OPTIONS: Final = {
    "NODE_USE_ENV_PROXY": "1",  # fetch of Node 22.21, 24 and later (nodejs.org/api/cli.html, read 2026-11-22)
    "MAVEN_OPTS": _JAVA,
    "GRADLE_OPTS": _JAVA,
}
_NO_UPDATE_CHECKS: Final = {
    "npm_config_update_notifier": "false",
    "NO_UPDATE_NOTIFIER": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
"""Programs would connect by themselves now and then, and the user would be asked about hosts that no task needs."""
_PATIENCE_S: Final = "600"
_PATIENCE: Final = ("PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT", "CARGO_HTTP_TIMEOUT")
"""Time limits in seconds of tools that would give up while the user reads a question."""


def proxy_variables(held: Collection[str], exported: Collection[str], *, is_asked: bool) -> dict[str, str]:
    """The variables to add for a program with a listener. `is_asked`: a host may need a question.

    Of those it has already (`held`) only the proxies are replaced, and none that the session `exported`: the user's own
    proxy can't be reached from the sandbox, and its address may hold a password.
    """
    made = (dict.fromkeys(_PATIENCE, _PATIENCE_S) if is_asked else {}) | _OPTIONS | _NO_UPDATE_CHECKS
    made = {name: value for name, value in made.items() if name not in held}
    made |= dict.fromkeys(_TO_PROXY, _ADDRESS) | dict.fromkeys(_NOT_PROXIED, _DIRECT)
    return {name: value for name, value in made.items() if name not in exported}


def proxy_of(held: Mapping[str, str]) -> str:
    """The address of the network proxy if all proxy variables name it; empty if the session exported another."""
    return _ADDRESS if all(held.get(name) == _ADDRESS for name in _TO_PROXY) else ""
