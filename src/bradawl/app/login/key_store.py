"""The places where keys are stored: the system keyring, else the file credentials.toml, which says so."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from bradawl.app.config.toml_edit import with_table, without_key
from bradawl.app.login.user_files import change_file
from bradawl.app.settings.credentials import StoredKey, read_credentials
from bradawl.app.settings.system_keyring import NO_KEYRING, SystemKeyring
from bradawl.core.errors import SettingsError

Place = Literal["keyring", "file"]


class KeyStore:
    """Keys by provider."""

    def __init__(self, path: Path, keyring: SystemKeyring | None, *, prefers_file: bool = False) -> None:
        """`keyring` is None where there is none. With `prefers_file` new keys are stored in the file."""
        self.path = path
        self._keyring = keyring
        self._prefers_file = prefers_file

    def stored(self) -> Mapping[str, StoredKey]:
        """What the file says. Raises `SettingsError`."""
        return read_credentials(self.path)

    def store(self, provider: str, key: str) -> Place:
        """Store a key in the place of an earlier one, in the keyring if there is one. Raises `SettingsError`."""
        before = self.stored().get(provider)
        if self._keyring is not None and not self._prefers_file:
            self._keyring.store(provider, key)
            self._write(provider, {"keyring": True})
            return "keyring"
        self._write(provider, {"api_key": key})
        if before is not None and before.is_in_keyring and self._keyring is not None:
            with suppress(SettingsError):  # an old key that stays in a locked keyring is not used
                self._keyring.remove(provider)
        return "file"

    def remove(self, provider: str) -> tuple[Place, ...]:
        """Remove a provider's key and return the places that had one. Raises `SettingsError`."""
        stored = self.stored().get(provider)
        places: list[Place] = []
        if stored is not None and stored.is_in_keyring and self._keyring is None:
            raise SettingsError(f"The key of {provider} is in the system keyring, but {NO_KEYRING} remove it there.")
        # Also where the file does not say so: it may have been edited.
        if self._keyring is not None and self._keyring.remove(provider):
            places.append("keyring")
        if stored is not None:
            change_file(self.path, lambda text: _without(text, provider), is_secret=True)
            if not stored.is_in_keyring:
                places.append("file")
        return tuple(places)

    def key_of(self, provider: str) -> str:
        """The stored key; empty if there is none. Raises `SettingsError`."""
        stored = self.stored().get(provider, StoredKey())
        if not stored.is_in_keyring:
            return stored.api_key
        return "" if self._keyring is None else self._keyring.key(provider)

    def _write(self, provider: str, entries: Mapping[str, str | bool]) -> None:
        change_file(self.path, lambda text: with_table(text, (provider,), entries), is_secret=True)


def _without(text: str, provider: str) -> str:
    import tomllib

    return without_key(text, (provider,)) if provider in tomllib.loads(text) else text
