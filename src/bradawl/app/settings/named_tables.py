"""All mistakes in the tables `[providers.NAME]` and `[models."PROVIDER/MODEL"]`, each with its key.

The readers of these tables stop at the first mistake. Here each key is read as if it were alone, so that no mistake
hides another one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from bradawl.app.settings.provider_tables import (
    MODEL_KEYS,
    PRICE_KEYS,
    PROVIDER_KEYS,
    read_models,
    read_providers,
)
from bradawl.app.settings.providers import PROVIDERS, provider
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.app.settings.text_positions import Keys

_DECIDES_THE_PROTOCOL: Final = ("api", "base_url")
"""Keys of a provider on which the valid keys of `compat` depend."""


class TableProblem(NamedTuple):
    """What is wrong at a key of a table."""

    keys: "Keys"
    """Below the table of all providers or models."""
    message: str
    is_value: bool = True


Read = Callable[[object], object]
"""Reads one entry; raises `SettingsError`."""


def problems_of_providers(providers: Mapping[str, object]) -> Iterator[TableProblem]:
    """The problems of all providers of a file."""
    for name, entry in providers.items():

        def read(part: object, name: str = name) -> object:
            return read_providers({name: part}, "")

        if not isinstance(entry, dict) or _said(read, {}):
            message = _said(read, {} if isinstance(entry, dict) else entry)
            yield TableProblem((name,), message, is_value=not isinstance(entry, dict))
        else:
            yield from _problems_of_entry(name, cast("dict[str, object]", entry), read, PROVIDER_KEYS)


def problems_of_models(models: Mapping[str, object], values: Mapping[str, object]) -> Iterator[TableProblem]:
    """The problems of all models of a file; `values` are all values of the file."""
    own = values.get("providers")
    names = cast("dict[str, object]", own) if isinstance(own, dict) else {}
    known = {**PROVIDERS, **{name: provider(name) for name in names if name not in PROVIDERS}}
    for name, entry in models.items():

        def read(part: object, name: str = name) -> object:
            return read_models({name: part}, "", known)

        if not isinstance(entry, dict) or _said(read, {}):
            message = _said(read, {} if isinstance(entry, dict) else entry)
            yield TableProblem((name,), message, is_value=not isinstance(entry, dict))
        else:
            yield from _problems_of_entry(name, cast("dict[str, object]", entry), read, MODEL_KEYS)


def _problems_of_entry(
    name: str, entry: Mapping[str, object], read: Read, known: frozenset[str]
) -> Iterator[TableProblem]:
    found = False
    for path, part in _parts(entry, read, known):
        if message := _said(read, part):
            found = True
            yield TableProblem((name, *path), message, is_value=path[0] in known and path[-1] in {*known, *PRICE_KEYS})
    if not found and (message := _said(read, entry)):
        yield TableProblem((name,), message)


def _parts(
    entry: Mapping[str, object], read: Read, known: frozenset[str]
) -> Iterator[tuple["Keys", Mapping[str, object]]]:
    """Each key of an entry with an entry that has this key alone, and the keys that its meaning depends on."""
    context = {key: entry[key] for key in _DECIDES_THE_PROTOCOL if key in entry}
    if _said(read, context):
        context = {}
    for key, value in entry.items():
        if not isinstance(value, dict) or key not in known:
            yield (key,), {key: value}
            continue
        for inner, each in cast("dict[str, object]", value).items():
            alone = {key: {inner: each}}
            yield (key, inner), {**context, **alone} if key == "compat" else alone


def _said(read: Callable[[object], object], part: object) -> str:
    try:
        read(part)
    except SettingsError as error:
        return str(error)
    return ""
