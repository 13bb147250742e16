"""Writes the default model, and a provider of the user's own, into config.toml; its other lines stay as they are."""

from collections.abc import Mapping
from pathlib import Path

from bradawl.app.config.toml_edit import with_table, with_value
from bradawl.app.login.user_files import change_file
from bradawl.app.settings.layers import Sources
from bradawl.app.settings.providers import Provider


def store_model(path: Path, model: str) -> None:
    """Make `PROVIDER/MODEL` the user's default model. Raises `SettingsError`."""
    change_file(path, lambda text: with_value(text, ("model",), model))


def store_provider(path: Path, one: Provider, *, needs_key: bool) -> None:
    """Add the table `[providers.NAME]` with its address. Raises `SettingsError`."""
    entries: Mapping[str, str | bool] = {"base_url": one.base_url, **({} if needs_key else {"api_key_env": ""})}
    change_file(path, lambda text: with_table(text, ("providers", one.name), entries))


def users_model(sources: Sources) -> str:
    """The model in the user's config.toml; empty if it names none."""
    values = next((layer.values for layer in sources.layers if layer.kind == "user"), {})
    found = values.get("model")
    return found.strip() if isinstance(found, str) else ""


def what_overrides(sources: Sources) -> str:
    """The variable or the project's file whose model wins over the user's default; empty if there is none."""
    found = sources.find("model")
    return "" if found is None or found.kind in ("user", "flag") else found.place
