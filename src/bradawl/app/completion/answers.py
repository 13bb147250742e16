"""Answers of `bradawl __complete KIND PREFIX`: a candidate on each line, and after a tab what it is.

A shell asks while a line is typed: an answer is fast, and no error is ever shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from bradawl.app.console import Console, OutputError
from bradawl.app.settings.table import SETTINGS
from bradawl.app.settings.values import SWITCH

_MOST: Final = 500
Candidates = Iterable[tuple[str, str]]
"""Texts with what they are; the latter may be empty."""


def print_answer(words: Sequence[str], environ: Mapping[str, str], console: Console) -> int:
    """Print the candidates and return the exit code, which is 0 whatever happens."""
    with suppress(OSError, OutputError):
        console.answer(answer(words, environ, str(Path.cwd())))
    return 0


def answer(words: Sequence[str], environ: Mapping[str, str], cwd: str) -> str:
    """The candidates that begin with a prefix; empty for an unknown kind, and if anything fails."""
    kind, rest = (words[0] if words else ""), list(words[1:])
    prefix = rest[-1] if rest else ""
    try:
        lines = [_line(text, about) for text, about in _candidates(kind, rest, environ, cwd) if text.startswith(prefix)]
    except Exception:  # a shell would print a message into the line that is typed
        return ""
    return "".join(f"{line}\n" for line in dict.fromkeys(lines[:_MOST]))


def _line(text: str, about: str) -> str:
    from bradawl.safety.control_characters import clean

    shown = " ".join(clean(about).split())
    return f"{text}\t{shown}" if shown else text


def _candidates(kind: str, rest: Sequence[str], environ: Mapping[str, str], cwd: str) -> Candidates:
    if kind == "session":
        from bradawl.app.completion.sessions import sessions

        return sessions(environ, cwd)
    if kind == "value":
        return _values_of(rest[0] if rest else "", rest, environ, cwd)
    values = _users_values(environ, cwd)
    if kind == "model":
        return _models(values, rest[-1] if rest else "")
    if kind == "provider":
        return _providers(values)
    if kind == "profile":
        return ((name, "") for name in _names(values, "profiles"))
    return _keys(values) if kind == "key" else ()


# ------------------------------------------------------------------ settings


def _users_values(environ: Mapping[str, str], cwd: str) -> Mapping[str, object]:
    """The user's file, as far as it can be read: its mistakes are told elsewhere."""
    import tomllib

    from bradawl.app.settings.homes import homes

    path = Path(homes(environ, cwd).config, "config.toml")
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _names(values: Mapping[str, object], table: str) -> list[str]:
    found = values.get(table)
    return [name for name in cast("dict[str, object]", found) if name.isprintable()] if isinstance(found, dict) else []


def _keys(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, row in SETTINGS.rows.items():
        if row.is_in_file:
            yield name, row.help
    from bradawl.app.config.keys import key_text
    from bradawl.app.settings.provider_tables import MODEL_KEYS, PROVIDER_KEYS

    for table, keys in (("providers", PROVIDER_KEYS), ("models", MODEL_KEYS)):
        for name in _names(values, table):
            yield from ((key_text((table, name, key)), "") for key in sorted(keys))


def _values_of(key: str, rest: Sequence[str], environ: Mapping[str, str], cwd: str) -> Candidates:
    row = SETTINGS.rows.get(key.rpartition(".")[2] if key.startswith("profiles.") else key)
    if row is None:
        return ()
    if row.kind is SWITCH:
        return (("true", ""), ("false", ""))
    if row.name in ("model", "fallback_model", "small_model"):
        return _candidates("model", rest, environ, cwd)
    if row.name == "profile":
        return _candidates("profile", rest, environ, cwd)
    return ((choice, "") for choice in row.kind.choices)


# ------------------------------------------------------------------ models


def _providers(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    from bradawl.app.settings.providers import PROVIDERS, SCRIPTED

    for name in dict.fromkeys((*_names(values, "providers"), *PROVIDERS)):
        if name != SCRIPTED:  # for tests of bradawl; its models are files
            yield name, PROVIDERS[name].base_url if name in PROVIDERS else ""


def _models(values: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    """Models of the catalog once the provider is typed; before that, providers with their slash."""
    from bradawl.app.settings.providers import PROVIDERS

    own = (str(values[name]) for name in ("model", "fallback_model", "small_model") if name in values)
    yield from ((name, "") for name in (*filter(str.isprintable, own), *_names(values, "models")))
    name, slash, _ = prefix.partition("/")
    if not slash:
        yield from ((f"{each}/", about) for each, about in _providers(values))
        return
    if name not in PROVIDERS:
        return
    from bradawl.providers.catalog import Catalog

    catalog = Catalog()
    vendor = catalog.vendor_at(PROVIDERS[name].base_url)
    yield from ((f"{name}/{model}", "") for model in (catalog.names(vendor) if vendor else ()))
