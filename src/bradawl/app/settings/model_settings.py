"""The settings of one model: its provider, endpoint, key, window and price."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from bradawl.app.settings.providers import is_loopback
from bradawl.core.usage import Price

_NOTHING: Mapping[str, object] = MappingProxyType({})


class ModelSettings(msgspec.Struct, frozen=True):
    """A model behind an endpoint. `repr` shows neither the key nor the proxy, which may hold a password."""

    provider: str
    name: str
    """The name that is sent to the provider; for `scripted` the absolute path of a script."""
    base_url: str = ""
    """Without a final slash."""
    api: str = "openai_chat"
    """The name of the wire protocol the endpoint speaks."""
    api_key: str = ""
    key_name: str = ""
    """The environment variable for the provider's key, or the place of the key."""
    key_command: str = ""
    """A shell command that prints the key, for keys that change."""
    key_in_keyring: bool = False
    """The system keyring holds the key."""
    key_origin: str = ""
    """Scheme, host and port the key was given for; it is sent nowhere else. Empty when there is no key."""
    headers: tuple[tuple[str, str], ...] = ()
    compat: Mapping[str, object] = _NOTHING
    """Fields of the server's `CompatProfile` that the user sets."""
    context_window: int | None = None
    """Tokens."""
    max_output: int | None = None
    """Tokens of the longest reply."""
    price: Price | None = None
    proxy: str | None = None
    """The proxy for `base_url`."""
    ca_file: str | None = None

    @property
    def is_local(self) -> bool:
        """True when the model is served on this machine."""
        return bool(self.base_url) and is_loopback(self.base_url)

    def __repr__(self) -> str:
        hidden = ("api_key", "proxy", "headers", "key_command")
        shown = (f"{name}={'***' if name in hidden else repr(getattr(self, name))}" for name in self.__struct_fields__)
        return f"ModelSettings({', '.join(shown)})"
