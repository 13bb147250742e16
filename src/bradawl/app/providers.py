"""The providers bradawl knows by name, and how a model's name chooses one."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bradawl.core.errors import SettingsError

SCRIPTED: Final = "scripted"
"""The provider whose models are files on this machine; it needs neither key nor URL."""


class NoProvider(SettingsError):
    """Nothing says which provider is meant, and none is set up."""


class Provider(msgspec.Struct, frozen=True):
    """An endpoint that speaks Chat Completions, and where its key is found."""

    name: str
    base_url: str = ""
    """Where it lives if nobody says otherwise; empty when it has no such place."""
    key_names: tuple[str, ...] = ()
    """Environment variables that may hold its key, the first that is set counts."""
    needs_key: bool = True
    default_model: str = ""
    """What answers when nobody names a model; empty where no choice would be sensible."""

    @property
    def base_url_name(self) -> str:
        """The environment variable that moves it elsewhere."""
        return f"{_variable(self.name)}_BASE_URL"

    def key(self, environ: Mapping[str, str]) -> str:
        """Its key, or nothing."""
        return next((key for name in self.key_names if (key := environ.get(name, "").strip())), "")


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def provider(name: str, base_url: str = "", *also: str, needs_key: bool = True, default_model: str = "") -> Provider:
    """A provider with the key variable that follows from its name, and further ones."""
    return Provider(name, base_url, (f"{_variable(name)}_API_KEY", *also), needs_key, default_model)


def _local(name: str, port: int) -> Provider:
    return provider(name, f"http://127.0.0.1:{port}/v1", needs_key=False)


_KNOWN: Final = (
    provider("openai", "https://api.openai.com/v1", default_model="gpt-5.5"),
    provider("openrouter", "https://openrouter.ai/api/v1"),
    provider("deepseek", "https://api.deepseek.com", default_model="deepseek-chat"),
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
    provider("anthropic", "https://api.anthropic.com/v1"),
    provider("azure", "", "AZURE_OPENAI_API_KEY"),
    _local("ollama", 11434),
    _local("lmstudio", 1234),
    _local("llamacpp", 8080),
    _local("vllm", 8000),
    _local("sglang", 30000),
    Provider(SCRIPTED, needs_key=False),
)

PROVIDERS: Final[Mapping[str, Provider]] = {known.name: known for known in _KNOWN}
"""By name, in the order in which they are listed to a user."""


def split_model(model: str, providers: Mapping[str, Provider]) -> tuple[str, str]:
    """Provider and model that `[PROVIDER/]MODEL` names; the provider is empty if it names none."""
    head, slash, rest = model.partition("/")
    return (head, rest) if slash and head in providers else ("", model)


def default_provider(providers: Mapping[str, Provider], environ: Mapping[str, str], *, has_base_url: bool) -> str:
    """The provider of a model that names none. Raises `SettingsError` when that can't be told, `NoProvider` if
    none is set up.
    """
    if has_base_url or environ.get(PROVIDERS["openai"].base_url_name, "").strip():
        return "openai"
    with_key = [name for name, one in providers.items() if one.key(environ)]
    if len(with_key) == 1:
        return with_key[0]
    if with_key:
        choices = ", ".join(f"{name}/MODEL" for name in with_key)
        raise SettingsError(f"Several providers have a key: say which one is meant with `-m`, one of {choices}.")
    raise NoProvider(f"No provider is set up. {SET_UP}")


def unknown_provider(name: str, providers: Mapping[str, Provider]) -> str:
    """That there is no such provider, which there are, and how one is set up."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), providers, 1)
    guess = f" Did you mean `{near[0]}`?" if near else ""
    known = ", ".join(one for one in providers if one != SCRIPTED)
    return f"`{name}` is not a provider bradawl knows, and no other is set up.{guess} Known are {known}. {SET_UP}"


SET_UP: Final = (
    "Examples: `OPENAI_API_KEY=... bradawl -m openai/MODEL`, "
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


def check_base_url(text: str, source: str) -> tuple[str, str]:
    """A base URL as requests use it, and a note if it had to be changed. Raises `SettingsError`."""
    url = check_http_url(text, source)
    stripped = url.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    if stripped == url.rstrip("/"):
        return stripped, ""
    return stripped, f"{source} should end before /chat/completions; {stripped} is used."


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
