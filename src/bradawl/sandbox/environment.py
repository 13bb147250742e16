"""Filters the environment variables of sandboxed programs: standard ones pass, keys never do."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

_NAMES: Final = (
    "PATH HOME LANG LANGUAGE TERM COLORTERM TZ TZDIR USER LOGNAME SHELL PWD HOSTNAME COLUMNS LINES CI NO_COLOR"
    " FORCE_COLOR CLICOLOR PAGER GIT_PAGER GIT_EDITOR GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS SSH_ASKPASS_REQUIRE"
    " GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE"
    " VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE PYENV_ROOT PYENV_VERSION PIPX_HOME"
    " JAVA_HOME JDK_HOME M2_HOME MAVEN_HOME GRADLE_HOME SDKMAN_DIR GOROOT GOTOOLCHAIN RUSTUP_HOME RUSTUP_TOOLCHAIN"
    " NVM_DIR NVM_BIN NVM_INC FNM_DIR VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_INSTALL DENO_INSTALL_ROOT"
    " RBENV_ROOT RBENV_VERSION GEM_HOME GEM_PATH ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR ANDROID_HOME ANDROID_SDK_ROOT"
    " DOTNET_ROOT HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_PROFILES NIX_PATH NIX_SSL_CERT_FILE"
    " LOCALE_ARCHIVE SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS MANPATH"
    " INFOPATH XDG_DATA_DIRS XDG_CONFIG_DIRS PKG_CONFIG_PATH CC CXX CUDA_HOME"
)
_ALLOWED: Final = frozenset(_NAMES.split(" "))
_ALLOWED_BEGINNINGS: Final = ("LC_",)
_PROXIES: Final = frozenset(
    name for each in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for name in (each, each.lower())
)
_NEVER_BEGINNINGS: Final = ("LD_", "DYLD_", "PYTHON", "BASH_FUNC_", "GIT_CONFIG")
_NEVER: Final = frozenset(
    ("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "NODE_OPTIONS", "RIPGREP_CONFIG_PATH", "LESSOPEN", "LESSCLOSE", "IFS")
)
_KEYS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "CREDENTIAL")

_OF_GIT: Final = {"gc.autoDetach": "false", "maintenance.autoDetach": "false"}


def git_variables(environment: Mapping[str, str], proxy: str = "") -> dict[str, str]:
    """Variables by which git ends its automatic maintenance before the command ends, because a sandbox ends what a
    command leaves running, and by which it uses the network proxy `proxy` even where the user's own settings
    (`http.proxy`) name another. Empty if the environment holds settings of git already.
    """
    if "GIT_CONFIG_COUNT" in environment:
        return {}
    settings = {**_OF_GIT, **({"http.proxy": proxy} if proxy else {})}
    numbered = tuple(enumerate(settings.items()))
    return {
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in numbered},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in numbered},
    }


def sandbox_environment(
    environment: Mapping[str, str], exported: Iterable[str], kept: Iterable[str] = (), *, network: bool = False
) -> dict[str, str]:
    """The variables of a program's environment that it gets in a sandbox.

    Names in `exported` always pass: they do not come from the agent's environment. `kept` are the user's additions: an
    exact name passes even if it looks like a key; a final `*` matches any ending, except for variables that never pass.
    Proxy variables pass with `network`, unless their address holds a password.
    """
    passed = frozenset(exported)
    wanted = tuple(kept)
    return {
        name: value
        for name, value in environment.items()
        if name in passed or _is_allowed(name, wanted) or (network and name in _PROXIES and "@" not in value)
    }


def _is_allowed(name: str, wanted: tuple[str, ...]) -> bool:
    if name in wanted or name in _ALLOWED:
        return True
    if is_never_passed(name):
        return False
    beginnings = (*_ALLOWED_BEGINNINGS, *(each[:-1] for each in wanted if each.endswith("*")))
    return name.startswith(beginnings)


@lru_cache(maxsize=512)
def is_never_passed(name: str) -> bool:
    """Whether a variable would hand on a key, or decide what code runs before the program itself."""
    if name in _NEVER or name.startswith(_NEVER_BEGINNINGS):
        return True
    upper = name.upper()
    return upper.endswith(_KEYS) or any(f"{word}_" in upper for word in _KEYS)
