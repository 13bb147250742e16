"""The list of providers of a login, and the questions about an endpoint that is not in it."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from bradawl.app.login.dialogue import Choice, Dialogue
from bradawl.app.settings.model_choice import ModelSources, address_of, find_key
from bradawl.app.settings.providers import (
    SCRIPTED,
    Provider,
    check_base_url,
    is_loopback,
    provider,
    url_of_variable,
)
from bradawl.app.text_layout import Column
from bradawl.core.errors import SettingsError
from bradawl.providers.hosts import host_of, port_of
from bradawl.providers.local_servers import LocalServer

_LABELS: Final[Mapping[str, str]] = {
    "openai": "OpenAI",
    "anthropic": "Anthropic (Claude)",
    "openrouter": "OpenRouter",
    "deepseek": "DeepSeek",
    "moonshot": "Moonshot (Kimi)",
    "zai": "Z.ai (GLM)",
    "dashscope": "Alibaba (Qwen)",
    "mistral": "Mistral",
    "xai": "xAI (Grok)",
    "groq": "Groq",
    "gemini": "Google (Gemini)",
    "cerebras": "Cerebras",
    "fireworks": "Fireworks",
    "together": "Together",
    "azure": "Azure OpenAI",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
}
OTHER: Final = "other"
_COLUMNS: Final = (Column(), Column(is_wrapped=True))
_QUESTION: Final = "Number, or a part of a name:"


def label(name: str) -> str:
    """The vendor's name for a provider, with the names of its models by which it is better known."""
    return _LABELS.get(name, name)


def choose_provider(dialogue: Dialogue, given: ModelSources, servers: Sequence[LocalServer]) -> str:
    """The name of a provider, or `OTHER`. Raises `EOFError`."""
    running = {
        server.kind: server
        for server in servers
        if (one := given.providers.get(server.kind)) and address_of(given, one, is_selected=False) == server.base_url
    }
    listed = [one for one in given.providers.values() if one.name != SCRIPTED]
    listed.sort(key=lambda one: (one.name not in running, not one.is_users))
    choices = [Choice(one.name, (one.name, _description(given, one, running)), label(one.name)) for one in listed]
    other = Choice(OTHER, (OTHER, "another OpenAI-compatible URL"), "another custom url compatible")
    dialogue.say("Providers:")
    return dialogue.choose([*choices, other], _COLUMNS, _QUESTION, most_listed=len(choices) + 1)


def _description(given: ModelSources, one: Provider, running: Mapping[str, LocalServer]) -> str:
    remark = _remark(given, one, running)
    return f"{label(one.name)}; {remark}" if remark else label(one.name)


def _remark(given: ModelSources, one: Provider, running: Mapping[str, LocalServer]) -> str:
    if (server := running.get(one.name)) is not None:
        count = len(server.models)
        return f"runs here, {count} model{'' if count == 1 else 's'}" if not server.problem else "runs here"
    if key := find_key(given, one).name:
        return f"has a key: {key}"
    if one.base_url and is_loopback(one.base_url):
        return "needs no key, does not run now"
    return ""


# ------------------------------------------------------------------ other endpoints


def ask_for_endpoint(dialogue: Dialogue, providers: Mapping[str, Provider]) -> Provider:
    """A provider of the user's own, from a URL and a name. Raises `EOFError`."""
    dialogue.say("The base URL ends before /chat/completions, for example https://api.example.com/v1.")
    url = ask_for_url(dialogue, "Base URL:")
    suggested = free_name(url, providers)
    while True:
        name = dialogue.ask(f"A name for it [{suggested}]:") or suggested
        if problem := name_problem(name, providers):
            dialogue.say(problem)
        else:
            return own_provider(name, url)


def ask_for_url(dialogue: Dialogue, question: str, variable: str = "") -> str:
    """A valid base URL. `variable` is the vendor's own one, in whose form it may be given. Raises `EOFError`."""
    while True:
        try:
            return url_from(dialogue.ask(question), "The URL", variable)
        except SettingsError as error:
            dialogue.say(str(error))


def url_from(text: str, place: str, variable: str = "") -> str:
    """The base URL that a text means, which may lack the scheme. Raises `SettingsError`."""
    if "://" not in text:
        is_here = text.startswith(("localhost", "127.", "[::1]"))
        text = f"{'http' if is_here else 'https'}://{text}"
    return check_base_url(url_of_variable(variable, text) if variable else text, place)[0]


def own_provider(name: str, url: str, known: Provider | None = None) -> Provider:
    """A provider at this URL: a known one that is moved there, or a new one, which may need no key."""
    if known is not None:
        return msgspec.structs.replace(known, base_url=url, is_users=True)
    return msgspec.structs.replace(provider(name, url), is_users=True)


def name_problem(name: str, providers: Mapping[str, Provider]) -> str:
    """Why a new provider can't have this name; empty if it can."""
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        return "The name may only have letters, digits, - and _."
    return f"{name} is a provider already." if name in providers or name == OTHER else ""


def free_name(url: str, providers: Mapping[str, Provider]) -> str:
    """A name made from the host: `acme` for `https://api.acme.example/v1`."""
    parts = [part for part in host_of(url).split(".") if part.replace("-", "").isalnum()]
    if is_loopback(url) or all(part.isdigit() for part in parts):
        base = f"local-{port_of(url) or 80}"
    else:
        base = parts[-2] if len(parts) > 1 else parts[0]
    names = (base, *(f"{base}-{number}" for number in range(2, 100)))
    return next((name for name in names if not name_problem(name, providers)), "")
