"""API keys from outside the environment: credentials.toml, the system keyring, and commands that print a key."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.settings.values import parse_table
from bradawl.core.errors import SettingsError

TIMEOUT_S: Final = 30.0
_LIMIT_BYTES: Final = 64 * 1024


class StoredKey(NamedTuple):
    """What the file says about the key of one provider. `repr` hides the key."""

    api_key: str = ""
    is_in_keyring: bool = False
    """The system keyring holds the key."""

    def __repr__(self) -> str:
        return "StoredKey(in the keyring)" if self.is_in_keyring else "StoredKey(***)"


def read_credentials(path: Path) -> dict[str, StoredKey]:
    """Keys by provider from the user's `credentials.toml`; empty if there is no such file.

    Raises `SettingsError` if other users can read or change the file, or if it is malformed. Messages never repeat its
    contents.
    """
    return {name: _key_in(entry, f"{path}: {name}") for name, entry in _table_of(path).items()}


def _table_of(path: Path) -> dict[str, object]:
    from bradawl.app.settings.files import read_user_file

    def check(found: os.stat_result) -> None:
        if found.st_uid != os.geteuid():
            raise _Unsafe(f"{path} belongs to another user, so its keys are not used; make it your own.")
        if found.st_mode & 0o077:
            raise _Unsafe(f"{path} is open to others, so its keys are not used: run `chmod 600 {path}`.")

    try:
        return read_user_file(path, check)
    except _Unsafe:
        raise
    except SettingsError as error:
        if isinstance(error.__cause__, OSError):
            raise
        # A parser's message may quote the line it stopped at, and with it a key.
        raise SettingsError(f'{path} is not valid: it should have lines like [NAME] and api_key = "...".') from None


class _Unsafe(SettingsError):
    """Other users can read or change the file."""


def _key_in(value: object, place: str) -> StoredKey:
    entry = parse_table(value, place)
    if entry == {"keyring": True}:
        return StoredKey(is_in_keyring=True)
    key = entry.get("api_key")
    if set(entry) != {"api_key"} or not isinstance(key, str):
        raise SettingsError(f'{place} must have one line, api_key = "..." or keyring = true.')
    return StoredKey(checked_key(key.strip(), place))


def checked_key(key: str, place: str) -> str:
    """The key, if all its characters are printable ASCII. Raises `SettingsError`, which does not repeat it."""
    if not key.isascii() or not key.isprintable():
        raise SettingsError(f"{place} has characters in it that no key has. Copy the key again.")
    return key


class CommandKey:
    """A key printed by the user's command, kept until a server refuses it. `repr` hides key and command."""

    def __init__(
        self, command: str, provider: str, environment: Mapping[str, str], timeout_s: float = TIMEOUT_S
    ) -> None:
        """The command runs in `/bin/sh` with this environment and nothing on stdin.

        Its working directory is the home folder: in a project, `python3 -m keyring` would import the project's
        `keyring.py`.
        """
        self._command = command
        self._provider = provider
        self._environment = dict(environment)
        home = environment.get("HOME", "")
        self._cwd = home if home.startswith("/") and Path(home).is_dir() else "/"
        self._timeout_s = timeout_s
        self._key = ""
        self._lock = asyncio.Lock()

    async def key(self, refused: str = "") -> str:
        """The key; the command runs again only when the last one was refused. Raises `SettingsError`."""
        async with self._lock:  # sessions that start together share one run
            if not self._key or self._key == refused:
                self._key = await self._run()
            return self._key

    async def _run(self) -> str:
        try:
            # A process group of its own, so that processes the command started end with it.
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                self._command,
                env=self._environment,
                cwd=self._cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                limit=_LIMIT_BYTES,
            )
        except OSError as error:
            raise self._error(f"can't be started: {error.strerror or error}") from error
        is_over = False
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await _output(process)
                if len(output) > _LIMIT_BYTES:
                    raise self._error("printed more than one line")
                code = await process.wait()
                is_over = True
        except TimeoutError:
            raise self._error(f"did not end within {self._timeout_s:g} s") from None
        finally:
            if not is_over:
                await _kill(process)
        if code:
            raise self._error(f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}")
        return self._checked(output)

    def _checked(self, output: bytes) -> str:
        key = output.decode("utf-8", "replace").strip()
        if not key:
            raise self._error("printed nothing")
        if len(key.splitlines()) > 1:
            raise self._error("printed more than one line")
        return checked_key(key, f"What api_key_command of {self._provider} printed")

    def _error(self, what: str) -> SettingsError:
        return SettingsError(
            f"api_key_command of {self._provider} {what}. Run it yourself: it should print the key, and only that."
        )

    def __repr__(self) -> str:
        return f"CommandKey({self._provider!r})"


async def _output(process: asyncio.subprocess.Process) -> bytes:
    """The output, cut soon after `_LIMIT_BYTES`."""
    output = bytearray()
    while process.stdout and len(output) <= _LIMIT_BYTES and (chunk := await process.stdout.read(4096)):
        output += chunk
    return bytes(output)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process group and reap the shell. The shell may have ended before the processes it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    while process.stdout and await process.stdout.read(4096):
        pass  # all writers are dead, so this ends
    await process.wait()
