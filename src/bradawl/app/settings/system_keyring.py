"""The system keyring, through the library `keyring` of the extra `bradawl[keyring]`. Imported only when it is used."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final, Protocol, cast

from bradawl.core.errors import SettingsError

SERVICE: Final = "bradawl"
"""The service under which keys are filed; the user name is the provider's name."""
_LEAST_PRIORITY: Final = 1
"""Backends below it are not recommended by the library: `fail`, `null`, files with plain text."""
_THREAD: Final = "system-keyring"
_TIMEOUT_S: Final = 60.0
"""The time for an answer to the keyring's own question for a password."""


class KeyringBackend(Protocol):
    """What is used of a backend of the library."""

    def get_password(self, service: str, username: str) -> str | None:
        """The secret; None if there is none."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store the secret."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Remove the secret; raises if there is none."""
        ...


class SystemKeyring:
    """Keys of providers in the user's keyring. Each method may block while the system asks for a password.

    Each raises `SettingsError` if the keyring can't be used.
    """

    def __init__(self, backend: KeyringBackend) -> None:
        self._backend = backend

    def key(self, provider: str) -> str:
        """The key; empty if there is none."""
        return self._do("read", provider, lambda: self._backend.get_password(SERVICE, provider)) or ""

    def store(self, provider: str, key: str) -> None:
        """Store the key in the place of an earlier one."""
        self._do("write", provider, lambda: self._backend.set_password(SERVICE, provider, key))

    def remove(self, provider: str) -> bool:
        """Remove the key. False if there was none."""
        if not self.key(provider):
            return False
        self._do("remove", provider, lambda: self._backend.delete_password(SERVICE, provider))
        return True

    def _do(self, what: str, provider: str, work: Callable[[], str | None]) -> str | None:
        try:
            return work()
        except Exception as error:  # a backend is a plugin, and each has exceptions of its own
            # Their texts are not repeated: one could quote the key.
            raise SettingsError(
                f"The system keyring can't {what} the key of {provider} ({type(error).__name__}). Unlock the keyring, "
                f"or set the provider's variable instead."
            ) from None


def system_keyring() -> SystemKeyring | None:
    """The user's keyring; None if the library is not installed or has no backend that protects keys."""
    try:
        backend = import_module("keyring").get_keyring()  # by name: the library is an extra
        is_usable = float(backend.priority) >= _LEAST_PRIORITY
    except Exception:  # it is not installed; or a backend, which is a plugin, failed as D-Bus was asked for it
        return None
    return SystemKeyring(cast(KeyringBackend, backend)) if is_usable else None


NO_KEYRING: Final = "there is no system keyring here that bradawl can use; install `bradawl[keyring]`, or"


class KeyringKey:
    """A key that is read from the keyring before the first request. `repr` hides it."""

    def __init__(
        self,
        provider: str,
        find_keyring: Callable[[], SystemKeyring | None] = system_keyring,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._provider = provider
        self._find_keyring = find_keyring
        self._timeout_s = timeout_s
        self._key = ""
        self._lock = asyncio.Lock()

    async def key(self, refused: str = "") -> str:
        """The key; it is read again only when the last one was refused. Raises `SettingsError`."""
        async with self._lock:  # sessions that start together share one question of the system
            if not self._key or self._key == refused:
                self._key = await self._read()
            return self._key

    async def _read(self) -> str:
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await _in_daemon(self._find)
        except TimeoutError:
            raise SettingsError(
                f"The system keyring did not give the key of {self._provider} within {self._timeout_s:g} s. Unlock it, "
                "and start again."
            ) from None
        from bradawl.app.settings.credentials import checked_key

        return checked_key(found, f"The key of {self._provider} in the system keyring")

    def _find(self) -> str:
        keyring, again = self._find_keyring(), f"run `bradawl login {self._provider}` again."
        if keyring is None:
            raise SettingsError(f"The key of {self._provider} is in the system keyring, but {NO_KEYRING} {again}")
        if not (key := keyring.key(self._provider)):
            raise SettingsError(f"The system keyring has no key of {self._provider}: {again}")
        return key

    def __repr__(self) -> str:
        return f"KeyringKey({self._provider!r})"


async def _in_daemon(work: Callable[[], str]) -> str:
    """The result of blocking work in a thread that does not delay the end of the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def settle(result: str, error: SettingsError | None) -> None:
        if not done.done():
            done.set_result(result) if error is None else done.set_exception(error)

    def run() -> None:
        result, failure = "", None
        try:
            result = work()
        except SettingsError as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nothing waits
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name=_THREAD, daemon=True).start()
    return await done
