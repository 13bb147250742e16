"""Where the tools of a project keep what they have fetched or built: a folder of its own, beside the user's."""

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
"""Read and written by every run."""
_FETCHED: Final = (
    ("CARGO_HOME", "cargo", "registry", ".cargo"),
    ("GOMODCACHE", "go/pkg/mod", "cache", "go/pkg/mod"),
    ("GOPATH", "go", "pkg", "go"),
    ("GRADLE_USER_HOME", "gradle", "caches", ".gradle"),
    ("NUGET_PACKAGES", "nuget", ".", ".nuget/packages"),
    ("PUB_CACHE", "pub", "hosted", ".pub-cache"),
)
"""Variable, folder in the cache, what is there once something was fetched into it, the user's own below home."""
_WITHOUT_TRACING: Final = {"LSAN_OPTIONS": "detect_leaks=0"}
"""A program made with an address sanitizer traces itself at its end to find leaks, and fails where nothing can be."""
_NO_WAITING: Final = (
    "PIP_RETRIES",
    "npm_config_fetch_retries",
    "UV_HTTP_RETRIES",
    "CARGO_NET_RETRY",
    "YARN_HTTP_RETRY",
)
"""How often tools try again, for minutes some of them, to reach what can't be reached."""


def cache_variables(
    cache: str, home: str, environment: Mapping[str, str], exists: Callable[[str], bool], *, network: bool
) -> dict[str, str]:
    """Variables that lead the tools to `cache`; one that the environment has keeps its value.

    What was fetched for the user already would be missing there, and can't be fetched again without a network: then
    the user's own folder is used, which is only read, until something has been fetched into the cache. Without a
    network they are told not to try again either.
    """
    made = {name: f"{cache}/{folder}" for name, folder in _ALWAYS.items()} | _WITHOUT_TRACING
    for name, folder, sign, users in _FETCHED:
        place = f"{cache}/{folder}"
        if network or exists(f"{place}/{sign}") or not exists(f"{home}/{users}"):
            made[name] = place
    if not network:
        made |= dict.fromkeys(_NO_WAITING, "0")
    return {name: value for name, value in made.items() if name not in environment}
