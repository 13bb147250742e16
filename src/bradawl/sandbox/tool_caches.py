"""Environment variables that put the caches of build tools into a folder of the project's own."""

from collections.abc import Callable, Mapping
from typing import Final

_ALWAYS: Final = {
    "XDG_CACHE_HOME": "xdg",
    "npm_config_cache": "npm",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "GOCACHE": "go-build",
    "GOLANGCI_LINT_CACHE": "golangci-lint",
    "YARN_CACHE_FOLDER": "yarn",
    "YARN_GLOBAL_FOLDER": "yarn-berry",
    "DENO_DIR": "deno",
    "COMPOSER_CACHE_DIR": "composer",
    "BUNDLE_USER_CACHE": "bundle",
    "CCACHE_DIR": "ccache",
}
"""Caches that every run reads and writes: variable and folder in the cache."""
_FETCHED: Final = (
    ("CARGO_HOME", "cargo", "registry", ".cargo"),
    ("GOMODCACHE", "go/pkg/mod", "cache", "go/pkg/mod"),
    ("GOPATH", "go", "pkg", "go"),
    ("GRADLE_USER_HOME", "gradle", "caches", ".gradle"),
    ("NUGET_PACKAGES", "nuget", ".", ".nuget/packages"),
    ("PUB_CACHE", "pub", "hosted", ".pub-cache"),
)
"""Stores of downloads: variable, folder in the cache, entry that exists after the first download, user's folder in
home.
"""
_WITHOUT_TRACING: Final = {"LSAN_OPTIONS": "detect_leaks=0"}
"""Programs built with an address sanitizer trace themselves at exit to find leaks, which the sandbox refuses."""
_NO_WAITING: Final = (
    "PIP_RETRIES",
    "npm_config_fetch_retries",
    "UV_HTTP_RETRIES",
    "CARGO_NET_RETRY",
    "YARN_HTTP_RETRY",
)
"""Numbers of retries. Some tools retry for minutes to reach a network that does not exist."""


def cache_variables(
    cache: str, home: str, environment: Mapping[str, str], exists: Callable[[str], bool], *, network: bool
) -> dict[str, str]:
    """Variables that point tools to `cache`. Variables that `environment` already has are left out.

    Downloads in the user's own folder would be missing in the cache, and can't be repeated without a network. So the
    user's folder stays in use, read-only, until something was downloaded into the cache. Without a network the tools
    are also told not to retry.
    """
    made = {name: f"{cache}/{folder}" for name, folder in _ALWAYS.items()} | _WITHOUT_TRACING
    for name, folder, sign, users in _FETCHED:
        place = f"{cache}/{folder}"
        if network or exists(f"{place}/{sign}") or not exists(f"{home}/{users}"):
            made[name] = place
    if not network:
        made |= dict.fromkeys(_NO_WAITING, "0")
    return {name: value for name, value in made.items() if name not in environment}
