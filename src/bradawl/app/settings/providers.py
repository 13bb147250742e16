"""Providers: the known ones, their endpoints and key variables, and how a model's name chooses one."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.providers.protocols import PROTOCOLS

SCRIPTED: Final = "scripted"
"""The provider whose models are files on this machine; it needs neither key nor URL."""


class NoProvider(SettingsError):
    """The model names no provider, and no provider is set up."""

    def __init__(self, note: str = "") -> None:
        """`note`: why a model that is named somewhere does not count."""
        super().__init__(f"No provider is set up. {SET_UP}{' ' if note else ''}{note}")
        self.note = note


_NOTHING: Mapping[str, object] = MappingProxyType({})
_OPENAIS_OWN: Final = "https://api.openai.com"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint, its wire format, and where its key is found. `repr` hides commands and headers."""

    name: str
    base_url: str = ""
    """The default URL; empty if it has none."""
    key_names: tuple[str, ...] = ()
    """Environment variables for its key; the first that is set wins."""
    url_names: tuple[str, ...] = ()
    """The vendor's own environment variables for its URL."""
    needs_key: bool = True
    default_model: str = ""
    """The model if none is named; empty if there is no sensible default."""
    api: str | None = None
    """The name of its wire protocol, where it does not follow from name and URL."""
    key_command: str = ""
    """The user's shell command that prints the key."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers of every request."""
    compat: Mapping[str, object] = _NOTHING
    """Fields of the server's `CompatProfile` that the user sets."""
    is_users: bool = False
    """The user's settings have a table for it."""

    @property
    def base_url_name(self) -> str:
        """The environment variable for its URL."""
        return f"{variable_of(self.name)}_BASE_URL"

    def key_variable(self, environ: Mapping[str, str]) -> str:
        """The name of the variable that holds its key; empty if none is set."""
        return next((name for name in self.key_names if environ.get(name, "").strip()), "")

    def api_at(self, base_url: str) -> str:
        """The name of the wire protocol it speaks at this URL."""
        if self.api is not None:
            return self.api
        if self.name == "anthropic":
            return "anthropic_messages"
        is_openais_own = self.name == "openai" and origin_of(base_url) == _OPENAIS_OWN
        return "openai_responses" if is_openais_own else "openai_chat"

    def __repr__(self) -> str:
        return f"Provider({self.name!r}, {self.base_url!r})"


def variable_of(name: str) -> str:
    """The provider's name as it begins environment variables: `my-host` is `MY_HOST`."""
    return name.upper().replace("-", "_")


def provider(name: str, base_url: str = "", *also: str, needs_key: bool = True, default_model: str = "") -> Provider:
    """A provider whose key is in the variable that follows from its name, or in one of `also`."""
    names = (f"{variable_of(name)}_API_KEY", *also)
    return Provider(name=name, base_url=base_url, key_names=names, needs_key=needs_key, default_model=default_model)


def _local(name: str, port: int, *url_names: str) -> Provider:
    known = provider(name, f"http://127.0.0.1:{port}/v1", needs_key=False)
    return msgspec.structs.replace(known, url_names=url_names)


# A test checks that the default models are in the catalog.
_ANTHROPIC: Final = Provider(
    name="anthropic",
    base_url="https://api.anthropic.com",
    key_names=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    default_model="claude-sonnet-5-5",
)
_AZURE: Final = Provider(
    name="azure", key_names=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"), url_names=("AZURE_OPENAI_ENDPOINT",)
)
_KNOWN: Final = (
    provider("openai", "https://api.openai.com/v1", default_model="gpt-5.5"),
    _ANTHROPIC,
    provider("openrouter", "https://openrouter.ai/api/v1"),
    provider("deepseek", "https://api.deepseek.com", default_model="deepseek-flash"),
    provider("moonshot", "https://api.moonshot.ai/v1"),
    provider("zai", "https://api.z.ai/api/paas/v4"),
    provider("dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
    provider("mistral", "https://api.mistral.ai/v1"),
    provider("xai", "https://api.x.ai/v1"),
    provider("groq", "https://api.groq.com/openai/v1"),
    provider("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
    provider("cerebras", "https://api.cerebras.ai/v1"),
    provider("fireworks", "https://api.fireworks.ai/inference/v1"),
    provider("together", "https://api.together.xyz/v1"),
    _AZURE,
    _local("ollama", 11434, "OLLAMA_HOST"),
    _local("lmstudio", 1234),
    _local("llamacpp", 8080),
    _local("vllm", 8000),
    _local("sglang", 30000),
    Provider(name=SCRIPTED, needs_key=False),
)

PROVIDERS: Final[Mapping[str, Provider]] = {known.name: known for known in _KNOWN}
"""By name, in the order in which they are listed to a user."""


def split_model(model: str, providers: Mapping[str, Provider]) -> tuple[str, str]:
    """Provider and model that `[PROVIDER/]MODEL` names; the provider is empty if it names none."""
    head, slash, rest = model.partition("/")
    return (head, rest) if slash and head in providers else ("", model)


def default_provider(
    providers: Mapping[str, Provider], has_key: Callable[[Provider], bool], *, is_openai_moved: bool
) -> str:
    """The provider of a model that names none.

    Raises `SettingsError` if several providers have a key, `NoProvider` if none has.
    """
    if is_openai_moved:
        return "openai"
    with_key = [name for name, one in providers.items() if has_key(one)]
    if len(with_key) == 1:
        return with_key[0]
    if with_key:
        choices = ", ".join(f"{name}/MODEL" for name in with_key)
        raise SettingsError(f"Several providers have a key: choose one with `-m`, for example {choices}.")
    raise NoProvider


def unknown_provider(name: str, providers: Mapping[str, Provider]) -> str:
    """The message for an unknown provider: its name, the known ones, and how to set one up."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), providers, 1)
    guess = f" Did you mean `{near[0]}`?" if near else ""
    known = ", ".join(one for one in providers if one != SCRIPTED)
    own = f"config.toml has no [providers.{name}]" if name.replace("-", "").isalnum() else "no other is set up"
    return f"`{name}` is not a provider bradawl knows, and {own}.{guess} Known are {known}. {SET_UP}"


SET_UP: Final = (
    "Run `bradawl login`. Or name a key and a model: `OPENAI_API_KEY=... bradawl -m openai/MODEL`, "
    "`OPENROUTER_API_KEY=... bradawl -m openrouter/VENDOR/MODEL`, "
    "`DEEPSEEK_API_KEY=... bradawl -m deepseek/MODEL`, or a local model without a key: `bradawl -m ollama/MODEL`."
)


def is_loopback(url: str) -> bool:
    """True when the host of a valid URL is this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def origin_of(url: str) -> str:
    """Scheme, host and port of a valid URL, in lower case and without a default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port
    shown = f"[{host}]" if ":" in host else host
    is_usual = port is None or port == {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{shown}" if is_usual else f"{parts.scheme}://{shown}:{port}"


_ENDPOINTS: Final = tuple(protocol.path for protocol in PROTOCOLS)


def check_base_url(text: str, source: str) -> tuple[str, str]:
    """A base URL without a final slash or the path of an endpoint, and a note if a path was removed.

    Raises `SettingsError`.
    """
    url = check_http_url(text, source).rstrip("/")
    for ending in _ENDPOINTS:
        if url.endswith(ending):
            stripped = url.removesuffix(ending).rstrip("/")
            return stripped, f"{source} should end before {ending}; {stripped} is used."
    return url, ""


def url_of_variable(name: str, text: str) -> str:
    """The base URL from a vendor's own variable. The text is returned unchanged for other variables."""
    if name == "AZURE_OPENAI_ENDPOINT":
        url = text.rstrip("/")
        return url if "/openai" in url else f"{url}/openai/v1"
    if name == "OLLAMA_HOST":
        return _url_of_ollama(text)
    return text


def _url_of_ollama(text: str) -> str:
    """The variable is also the server's listening address: a port, a host, both, or a URL."""
    scheme, has_scheme, rest = text.rpartition("://")
    host, slash, path = rest.rstrip("/").partition("/")
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, ""
    if not name.strip("0.") or name == "[::]":
        name = "127.0.0.1"  # a server that listens on every address is reached over loopback
    usual = {"http": "80", "https": "443"}.get(scheme, "11434") if has_scheme else "11434"
    return f"{scheme or 'http'}://{name}:{port or usual}{slash}{path}/v1"


def check_http_url(text: str, source: str) -> str:
    """An http(s) URL with a host and without credentials, query or fragment. Raises `SettingsError`."""
    url = text.strip()
    if any(character.isspace() or not character.isprintable() for character in url):
        raise SettingsError(f"{source} has a space or control character in it: {text!r}.")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"{source} is not a URL ({error}): {_without_secrets(url)!r}.") from error
    if parts.scheme not in ("http", "https") or not host:
        example = "such as https://api.example.com/v1 or http://127.0.0.1:8000/v1"
        raise SettingsError(f"{source} must be an http or https URL, {example}, not {_without_secrets(url)!r}.")
    if "@" in parts.netloc:
        raise SettingsError(f"{source} has credentials in it; put the key into the provider's variable instead.")
    if parts.query or parts.fragment:
        raise SettingsError(f"{source} must not have a query or fragment: {url!r}.")
    return url


def _without_secrets(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"***@{after}" if at and before else url
