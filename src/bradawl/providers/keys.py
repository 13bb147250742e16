"""Where the key of a request comes from."""

from typing import Protocol


class KeySource(Protocol):
    """Gives the key for one endpoint."""

    async def key(self, refused: str = "") -> str:
        """The key to send now, empty where none is needed; `refused` is one the server has just rejected.

        Raises `SettingsError` when there should be a key and none can be had.
        """
        ...


class FixedKey:
    """A key that never changes. `repr` hides it."""

    def __init__(self, key: str = "") -> None:
        self._key = key

    async def key(self, refused: str = "") -> str:
        """The key, also when it was refused: there is no other."""
        del refused
        return self._key

    def __repr__(self) -> str:
        return "FixedKey(***)"
