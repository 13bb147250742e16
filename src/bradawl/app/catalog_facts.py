"""What the catalog says of models beyond their vendor's own endpoint: an assumed window, and names that it lacks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bradawl.app.settings.providers import PROVIDERS

if TYPE_CHECKING:
    from bradawl.app.settings.model_settings import ModelSettings
    from bradawl.providers.catalog import Catalog

_NEAR: Final = 0.5
_MOST_NEAR: Final = 3


def assumed_window(provider: str, model: str, catalog: "Catalog | None" = None) -> int | None:
    """The window that a model of this name has at the provider's usual address; None if that is not known.

    Another address serves the model with that window or a shorter one, and at another price.
    """
    known = PROVIDERS.get(provider)
    if known is None or not known.base_url:
        return None
    catalog = open_catalog() if catalog is None else catalog
    vendor = catalog.vendor_at(known.base_url)
    entry = catalog.look_up(vendor, model) if vendor else None
    return entry.context_window if entry else None


def has_model(chosen: "ModelSettings") -> bool | None:
    """Whether the catalog has the model of the vendor at this address; None if it has no list of that vendor."""
    catalog = open_catalog()
    vendor = catalog.vendor_at(chosen.base_url) if chosen.base_url else ""
    return catalog.look_up(vendor, chosen.name) is not None if vendor else None


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """The names that may be meant, the nearest first."""
    from difflib import get_close_matches

    return get_close_matches(name, known, _MOST_NEAR, _NEAR)


def unknown_model_note(chosen: "ModelSettings") -> str:
    """A warning for a name that the catalog of its vendor lacks; empty if it has it, or there is no such catalog."""
    if has_model(chosen) is not False:
        return ""
    catalog = open_catalog()
    near = near_names(chosen.name, catalog.names(catalog.vendor_at(chosen.base_url)))
    hint = f" Did you mean {' or '.join(f'{chosen.provider}/{name}' for name in near)}?" if near else ""
    unknown = f"{chosen.name} is not among the known models of {chosen.provider}, so window and price are unknown."
    return unknown + hint


def open_catalog() -> "Catalog":
    """The catalog of models that bradawl knows."""
    from bradawl.providers.catalog import Catalog  # most runs look nothing up

    return Catalog()
