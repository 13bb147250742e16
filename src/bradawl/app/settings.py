"""Everything the user chose, validated once: flags over environment over files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from bradawl.app.model_settings import ModelSettings
from bradawl.app.providers import (
    PROVIDERS,
    SCRIPTED,
    NoProvider,
    Provider,
    check_base_url,
    check_http_url,
    default_provider,
    is_loopback,
    provider,
    split_model,
    unknown_provider,
)
from bradawl.app.sources import Homes, Layer, homes, place_in, read_project_files, read_user_file
from bradawl.core.errors import SettingsError

HEADLESS_STEPS: Final = 500
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
OUTPUT_FORMATS: Final = ("text", "json")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of bradawl is told. `repr` shows neither keys nor the environment."""

    model: ModelSettings
    fallback: ModelSettings | None = None
    """What answers when the model stays overloaded."""
    cwd: str
    """Absolute, symlinks resolved; it exists."""
    home: str
    """Folder for sessions, history and error reports; it need not exist or be writable."""
    user_home: str = ""
    """What `~` stands for."""
    max_steps: int | None = None
    max_output_tokens: int | None = None
    effort: str | None = None
    yolo: bool = False
    """Nobody is asked before a tool runs."""
    output_format: Literal["text", "json"] = "text"
    headless: bool = False
    """Nobody is there to answer the model."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """The variables bradawl was started with, all of them."""
    warnings: tuple[str, ...] = ()
    """What the user should know about these settings."""

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "environment")
        return f"Settings({', '.join(shown)})"


class _Found(NamedTuple):
    value: object
    place: str
    kind: Literal["flag", "variable", "project", "user"]


class _Sources(NamedTuple):
    """All layers, the strongest first, and what they said that needs telling."""

    layers: tuple[Layer, ...]
    warnings: list[str]

    def find(self, name: str) -> _Found | None:
        for layer in self.layers:
            if (value := layer.values.get(name)) is not None:
                return _Found(value, layer.place_of(name), layer.kind)
        return None

    def without_project(self) -> "_Sources":
        return _Sources(tuple(layer for layer in self.layers if layer.kind != "project"), self.warnings)

    def text(self, name: str) -> str:
        found = self.find(name)
        return _text(found.value, found.place) if found else ""

    def number(self, name: str) -> int | None:
        found = self.find(name)
        return _count(found.value, found.place) if found else None

    def flag(self, name: str) -> bool:
        found = self.find(name)
        return _flag(found.value, found.place) if found else False

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        found = self.find(name)
        return _choice(found.value, found.place, choices) if found else None


_FLAGS: Final = {"cwd": "-C/--cd", "model": "-m/--model"}
_SETTINGS: Final = (
    "model",
    "base_url",
    "context_window",
    "max_steps",
    "max_output_tokens",
    "effort",
    "yolo",
    "output_format",
    "cwd",
    "proxy",
    "ca_file",
)
# What marks the commands a tool runs, of which bradawl may be one.
_MARKS: Final = ("BRADAWL_CALL", "BRADAWL_REPORT")
_USER_KEYS: Final = frozenset({*_SETTINGS, "providers"} - {"cwd"})


def load_settings(argv_options: Mapping[str, object], environ: Mapping[str, str], cwd: str) -> Settings:
    """Settings from flags, environment, the local, the project and the user's file, in that order of weight.

    `argv_options` holds settings by name, None where a flag was not given, and `headless`.
    A project's files are not trusted: what they may not say is left out with a warning.
    Raises `SettingsError`, which names the flag, variable or file.
    """
    flags = Layer(argv_options, lambda name: _FLAGS.get(name, "--" + name.replace("_", "-")), "flag")
    variables = Layer(_variables(environ), lambda name: f"BRADAWL_{name.upper()}", "variable")
    sources = _Sources((flags, variables), [])
    folder = _working_directory(sources.find("cwd"), cwd)
    home = homes(environ, cwd)
    user_file = Path(home.config, "config.toml")
    user_table = read_user_file(user_file)
    _refuse_unknown(user_table, user_file)
    providers = _with_users_own(user_table.pop("providers", None), user_file)
    project_layers, warnings = read_project_files(folder, user_file)
    warnings += _misspelt_variables(environ, providers)
    user = Layer(user_table, place_in(user_file), "user")
    sources = _Sources((flags, variables, *project_layers, user), warnings)
    return _settle(sources, providers, environ, folder, home)


def _variables(environ: Mapping[str, str]) -> dict[str, object]:
    """An empty variable counts as not set."""
    return {name: value for name in _SETTINGS if (value := environ.get(f"BRADAWL_{name.upper()}", "").strip())}


def _misspelt_variables(environ: Mapping[str, str], providers: Mapping[str, Provider]) -> list[str]:
    """Warnings about variables that look like settings of ours and are none."""
    known = ("BRADAWL_HOME", *(f"BRADAWL_{name.upper()}" for name in _SETTINGS))
    ours = {name for one in providers.values() for name in (*one.key_names, one.base_url_name)}
    ours.update(known, _MARKS)
    unknown = sorted(name for name in environ if name.startswith("BRADAWL_") and name not in ours)
    return [f"{name} is not a setting and is ignored; {_nearest(name, known)}" for name in unknown]


def _nearest(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.8)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."


def _settle(
    sources: _Sources, providers: Mapping[str, Provider], environ: Mapping[str, str], cwd: str, home: Homes
) -> Settings:
    chosen, model = _model(sources, providers, environ)
    is_scripted = chosen.name == SCRIPTED
    if is_scripted:
        model = str(Path(cwd, model))
    base_url = "" if is_scripted else _base_url(sources, chosen, environ)
    headless = bool(sources.flag("headless"))
    steps = sources.number("max_steps")
    return Settings(
        model=ModelSettings(
            provider=chosen.name,
            name=model,
            base_url=base_url,
            api_key=_key(chosen, base_url, environ, sources.warnings),
            key_name=chosen.key_names[0] if chosen.key_names else "",
            context_window=sources.number("context_window"),
            proxy=_proxy(sources, base_url, environ),
            ca_file=_ca_file(sources, base_url, environ, cwd),
        ),
        cwd=cwd,
        home=home.data,
        user_home=home.user,
        max_steps=HEADLESS_STEPS if steps is None and headless else steps,
        max_output_tokens=sources.number("max_output_tokens"),
        effort=sources.choice("effort", EFFORTS),
        yolo=sources.flag("yolo"),
        output_format="json" if sources.choice("output_format", OUTPUT_FORMATS) == "json" else "text",
        headless=headless,
        environment=dict(environ),
        warnings=tuple(sources.warnings),
    )


# ------------------------------------------------------------------ model and provider


def _model(sources: _Sources, providers: Mapping[str, Provider], environ: Mapping[str, str]) -> tuple[Provider, str]:
    found = sources.find("model")
    if found and found.kind == "project" and (why := _not_from_a_project(found, sources, providers)):
        sources.warnings.append(f"{found.place} is ignored: {why}. Choose it yourself with `-m`.")
        found = sources.without_project().find("model")
    has_base_url = sources.find("base_url") is not None
    if found is None:
        chosen = providers[default_provider(providers, environ, has_base_url=has_base_url)]
        if not chosen.default_model:
            raise SettingsError(_no_model(chosen))
        return chosen, chosen.default_model
    text = _text(found.value, found.place)
    name, model = split_model(text, providers)
    if not model:
        raise SettingsError(f"{found.place} names no model: {text!r}; it should be [PROVIDER/]MODEL.")
    if name:
        return providers[name], model
    return providers[_unnamed_provider(text, providers, environ, has_base_url=has_base_url)], model


def _unnamed_provider(
    model: str, providers: Mapping[str, Provider], environ: Mapping[str, str], *, has_base_url: bool
) -> str:
    """The provider of a model whose name begins with none that is known. Raises `SettingsError`."""
    try:
        return default_provider(providers, environ, has_base_url=has_base_url)
    except NoProvider as error:
        head, slash, _ = model.partition("/")
        if not slash or not head:
            raise
        raise SettingsError(unknown_provider(head, providers)) from error


def _not_from_a_project(found: _Found, sources: _Sources, providers: Mapping[str, Provider]) -> str:
    """Why a model that a project asks for is not used; empty if it may be."""
    name, _ = split_model(_text(found.value, found.place), providers)
    if name == SCRIPTED:
        return "a project may not put a script in the model's place"
    base_url = sources.find("base_url")
    if name and base_url:
        return f"it would send the key of {name} to the URL of {base_url.place}"
    return ""


def _no_model(chosen: Provider) -> str:
    return (
        f"No model is chosen, and {chosen.name} has no default: use `-m {chosen.name}/MODEL`, BRADAWL_MODEL, "
        "or `model` in config.toml."
    )


def _base_url(sources: _Sources, chosen: Provider, environ: Mapping[str, str]) -> str:
    url, place = chosen.base_url, f"the base URL of {chosen.name}"
    found = sources.find("base_url")
    name = chosen.base_url_name
    moved = environ.get(name, "").strip()
    if found and not (moved and found.kind == "user"):
        url, place = _text(found.value, found.place), found.place
    elif moved:
        url, place = moved, name
    if not url:
        raise SettingsError(f"{chosen.name} has no base URL of its own: set {name} or use `--base-url`.")
    checked, note = check_base_url(url, place)
    if note:
        sources.warnings.append(note)
    return checked


def _key(chosen: Provider, base_url: str, environ: Mapping[str, str], warnings: list[str]) -> str:
    key = chosen.key(environ)
    if not base_url:
        return ""
    if not key.isascii() or not key.isprintable():
        name = next(name for name in chosen.key_names if environ.get(name, "").strip() == key)
        raise SettingsError(f"{name} has characters in it that no key has; was it copied whole?")
    is_here = is_loopback(base_url)
    if not key and chosen.needs_key and not is_here:
        name = chosen.key_names[0] if chosen.key_names else "its api_key_env"
        raise SettingsError(
            f"No key for {chosen.name}: set {name}, or choose another provider with `-m PROVIDER/MODEL`."
        )
    if key and not is_here and base_url.startswith("http://"):
        warnings.append(f"The key of {chosen.name} goes to {base_url} unencrypted; use https if the server can.")
    return key


def _with_users_own(table: object, path: Path) -> dict[str, Provider]:
    """All providers, those of the user's `[providers.NAME]` tables among them."""
    providers = dict(PROVIDERS)
    if table is None:
        return providers
    for name, entry in _table(table, f"{path}: providers").items():
        place = f"{path}: providers.{name}"
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise SettingsError(f"{place}: the name may only have letters, digits, - and _.")
        providers[name] = _users_own(name, _table(entry, place), place)
    return providers


def _users_own(name: str, entry: dict[str, object], place: str) -> Provider:
    if unknown := sorted(set(entry) - {"base_url", "api_key_env"}):
        hint = " Keys don't belong in a file; name their variable with `api_key_env`." if "api_key" in unknown else ""
        raise SettingsError(f"{place}.{unknown[0]} is not a setting; known are base_url and api_key_env.{hint}")
    known = PROVIDERS.get(name) or provider(name)
    base_url = _text(entry.get("base_url", known.base_url or ""), f"{place}.base_url", may_be_empty=True)
    if base_url:
        check_http_url(base_url, f"{place}.base_url")
    names = known.key_names
    if "api_key_env" in entry:
        names = (_text(entry["api_key_env"], f"{place}.api_key_env"),)
    return Provider(name, base_url, names, known.needs_key)


# ------------------------------------------------------------------ network


def _proxy(sources: _Sources, base_url: str, environ: Mapping[str, str]) -> str | None:
    if not base_url:
        return None
    names = ("https_proxy", "http_proxy", "all_proxy")
    if not sources.find("proxy") and not any(environ.get(n) or environ.get(n.upper()) for n in names):
        return None
    from bradawl.app.proxy import proxy_for

    found = sources.find("proxy")
    chosen = _text(found.value, found.place) if found else ""
    return proxy_for(base_url, environ, chosen, found.place if found else "")


def _ca_file(sources: _Sources, base_url: str, environ: Mapping[str, str], cwd: str) -> str | None:
    if not base_url.startswith("https:"):
        return None
    found = sources.find("ca_file")
    place = found.place if found else "SSL_CERT_FILE"
    name = _text(found.value, found.place) if found else environ.get("SSL_CERT_FILE", "").strip()
    if not name:
        return None
    path = Path(cwd, name)
    if not path.is_file():
        raise SettingsError(f"{place} names a file that is not there: {name}.")
    return str(path)


# ------------------------------------------------------------------ values


def _working_directory(found: _Found | None, cwd: str) -> str:
    path = Path(cwd, _text(found.value, found.place)) if found else Path(cwd)
    try:
        resolved = path.resolve()
        if resolved.is_dir():
            return str(resolved)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"The folder {str(path)!r} can't be used: {error}.") from error
    raise SettingsError(f"{found.place if found else 'The working directory'}: {path} is not a folder.")


def _refuse_unknown(table: Mapping[str, object], path: Path) -> None:
    for key in table:
        if key == "api_key":
            raise SettingsError(f"{path}: api_key: keys don't belong in a file; set the provider's variable instead.")
        if key not in _USER_KEYS:
            from difflib import get_close_matches

            near = get_close_matches(key, _USER_KEYS, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(sorted(_USER_KEYS))}."
            raise SettingsError(f"{path}: `{key}` is not a setting; {hint}")


def _table(value: object, place: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SettingsError(f"{place} must be a table.")
    return cast(dict[str, Any], value)


def _text(value: object, place: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{place} must be a text, not {value!r}.")
    text = value.strip()
    if not text and not may_be_empty:
        raise SettingsError(f"{place} is empty.")
    if not text.isprintable():
        raise SettingsError(f"{place} has a control character in it: {text!r}.")
    return text


def _count(value: object, place: str) -> int:
    text = value.strip().replace("_", "") if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and len(text) < 16:
        value = int(text)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{place} must be a whole number of at least 1, not {value!r}.")
    return value


_WORDS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def _flag(value: object, place: str) -> bool:
    answer = value if isinstance(value, bool) else _WORDS.get(str(value).strip().lower())
    if answer is None:
        raise SettingsError(f"{place} must be true or false, not {value!r}.")
    return answer


def _choice(value: object, place: str, choices: tuple[str, ...]) -> str:
    text = _text(value, place).lower()
    if text not in choices:
        raise SettingsError(f"{place} must be one of {', '.join(choices)}, not {text!r}.")
    return text
