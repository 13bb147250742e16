"""`bradawl login --list`: where the key of each provider comes from, and its last characters."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bradawl.app.login.key_store import KeyStore
from bradawl.app.login.key_text import masked
from bradawl.app.settings.credentials import StoredKey
from bradawl.app.settings.model_choice import KEYRING
from bradawl.app.settings.providers import Provider
from bradawl.app.text_layout import Column, table, wrap
from bradawl.core.errors import SettingsError


class KeyEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One source of a key; the first one of a provider is used."""

    provider: str
    source: str
    """A variable, the credentials file, the system keyring or `api_key_command`."""
    ending: str = ""
    """The last four characters after `…`; `…` alone for a short key, empty for one that is not read."""
    is_used: bool = True
    problem: str = ""


def key_entries(providers: Mapping[str, Provider], environ: Mapping[str, str], store: KeyStore) -> list[KeyEntry]:
    """All sources of keys, in the order of the providers; those of one provider in the order in which they win.

    Raises `SettingsError` if the credentials file can't be used.
    """
    stored = store.stored()
    entries: list[KeyEntry] = []
    for one in providers.values():
        found = list(_sources(one, environ, stored.get(one.name), store))
        entries += [msgspec.structs.replace(entry, is_used=at == 0) for at, entry in enumerate(found)]
    strange = (name for name in stored if name not in providers)
    entries += [KeyEntry(name, str(store.path), is_used=False, problem="no such provider") for name in strange]
    return entries


def _sources(
    one: Provider, environ: Mapping[str, str], stored: StoredKey | None, store: KeyStore
) -> Iterator[KeyEntry]:
    for name in one.key_names:
        if key := environ.get(name, "").strip():
            yield KeyEntry(one.name, name, masked(key))
    if stored is not None and stored.is_in_keyring:
        yield _in_keyring(one.name, store)
    elif stored is not None:
        yield KeyEntry(one.name, str(store.path), masked(stored.api_key))
    if one.key_command:
        yield KeyEntry(one.name, "api_key_command")


def _in_keyring(provider: str, store: KeyStore) -> KeyEntry:
    try:
        key = store.key_of(provider)
    except SettingsError as error:
        return KeyEntry(provider, KEYRING, problem=str(error))
    if not key:
        return KeyEntry(provider, KEYRING, problem=f"it has none: run `bradawl login {provider}` again")
    return KeyEntry(provider, KEYRING, masked(key))


def listing_lines(entries: Sequence[KeyEntry], model: str, width: int) -> list[str]:
    """The sources as a table, and the default model."""
    columns = (Column("PROVIDER"), Column("KEY"), Column("FROM"), Column(is_wrapped=True))
    rows = [(one.provider, one.ending or "-", one.source, _remark(one)) for one in entries]
    none = wrap("No provider has a key: `bradawl login` stores one.", width)
    lines = table(rows, columns, width) if rows else none
    return [*lines, *wrap(f"Default model: {model or 'none in config.toml'}", width)]


def _remark(one: KeyEntry) -> str:
    return one.problem or ("" if one.is_used else "not used: the one above wins")
