"""The catalog of models: context windows, output limits and prices. scripts/build_catalog.py generates the data.

An entry holds for the vendor's own endpoint only, because another host may serve something else under the same
name. `vendor_at` tells whether a URL is such an endpoint. A fact that is not in the table is unknown.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bradawl.core.usage import Price, PriceTier

_FILE = Path(__file__).with_name("catalog.json")
_DATED = re.compile(r"-(20\d\d)(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])$")


class CatalogEntry(msgspec.Struct, frozen=True):
    """The facts about one model; None where the sources have none."""

    name: str
    """The name in the table, for example without the date of a snapshot."""
    context_window: int | None = None
    """Tokens of prompt and reply, or of the prompt alone if that has a lower limit."""
    max_output: int | None = None
    """Tokens."""
    price: Price | None = None
    is_hourly: bool = False
    """True for a model whose price depends on the hour."""
    capabilities: frozenset[str] | None = None
    """Of `reasoning`, `images`, `tools` and `structured_output`."""
    cache_minimum: int | None = None
    """Tokens of the shortest prefix that is cached."""


class Source(msgspec.Struct, frozen=True):
    """The origin of the table."""

    date: str
    """The day of the prices, as an ISO date."""
    versions: Mapping[str, str]
    """Names and versions of the packages the table was made from."""


class _Row(msgspec.Struct, frozen=True, array_like=True):
    context_window: int | None = None
    max_output: int | None = None
    price: tuple[float, float, float, float] | None = None
    tiers: tuple[tuple[int, float, float, float, float], ...] | None = None
    capabilities: str | None = None
    notes: str | None = None
    cache_minimum: int | None = None


class _Vendor(msgspec.Struct, frozen=True):
    """Rows stay encoded until they are looked up."""

    models: dict[str, msgspec.Raw]
    aliases: dict[str, str]


class _File(msgspec.Struct, frozen=True):
    date: str
    sources: dict[str, str]
    urls: dict[str, str]
    vendors: dict[str, msgspec.Raw]


_LETTERS = (("r", "reasoning"), ("i", "images"), ("t", "tools"), ("s", "structured_output"))


class Catalog:
    """The table, read once per object; looking something up costs about a millisecond the first time."""

    def __init__(self, data: bytes | None = None) -> None:
        """`data` replaces the file in the package."""
        self._file = msgspec.json.decode(_FILE.read_bytes() if data is None else data, type=_File)
        self._vendors: dict[str, _Vendor] = {}

    @property
    def source(self) -> Source:
        """The origin of the table."""
        return Source(self._file.date, self._file.sources)

    def vendor_at(self, base_url: str) -> str:
        """The vendor whose own endpoint this URL is; empty for other URLs."""
        scheme, _, rest = base_url.partition("://")
        host, slash, path = rest.partition("/")
        url = f"{scheme.lower()}://{host.lower().removesuffix(':443')}/{path}{slash and '/'}"
        return next((vendor for own, vendor in self._file.urls.items() if url.startswith(own)), "")

    def look_up(self, vendor: str, model: str) -> CatalogEntry | None:
        """The entry of a vendor's model, by its name, an alias or a dated name; None if unknown."""
        table = self._table(vendor)
        if table is None:
            return None
        name = model.removeprefix("models/")  # the prefix in Gemini's own list
        if found := _find(table, name):
            return found
        spellings = _spellings(name)
        if spellings is None:
            return None
        other, undated = spellings
        if found := _find(table, other):
            return found
        # Some snapshots had prices of their own, so the sources list the models whose date may be ignored.
        return _find(table, undated, dated=True)

    def names(self, vendor: str) -> tuple[str, ...]:
        """The models of a vendor without aliases; empty for an unknown vendor."""
        table = self._table(vendor)
        return tuple(table.models) if table else ()

    def _table(self, vendor: str) -> _Vendor | None:
        if vendor not in self._vendors and (raw := self._file.vendors.get(vendor)) is not None:
            self._vendors[vendor] = msgspec.json.decode(raw, type=_Vendor)
        return self._vendors.get(vendor)


def _spellings(name: str) -> tuple[str, str] | None:
    """A dated name with the date in its other notation, and without it; None if it has no date."""
    match = _DATED.search(name)
    if match is None:
        return None
    dash = "" if match[2] else "-"
    undated = name[: match.start()]
    return f"{undated}-{match[1]}{dash}{match[3]}{dash}{match[4]}", undated


def _find(table: _Vendor, name: str, *, dated: bool = False) -> CatalogEntry | None:
    found = table.aliases.get(name, name)
    raw = table.models.get(found)
    if raw is None:
        return None
    row = msgspec.json.decode(raw, type=_Row)
    return None if dated and "d" not in (row.notes or "") else _entry(found, row)


def _entry(name: str, row: _Row) -> CatalogEntry:
    price = None
    if row.price is not None:
        price = Price(*row.price, tiers=tuple(PriceTier(*tier) for tier in row.tiers or ()))
    known = row.capabilities
    return CatalogEntry(
        name=name,
        context_window=row.context_window,
        max_output=row.max_output,
        price=price,
        is_hourly="h" in (row.notes or ""),
        capabilities=None if known is None else frozenset(word for letter, word in _LETTERS if letter in known),
        cache_minimum=row.cache_minimum,
    )
