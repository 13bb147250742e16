"""A login: chooses a provider, tests the key that the user gives, chooses a model, and stores both."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from bradawl.app.endpoint_check import OpenModel, Verdict, check_list, check_model
from bradawl.app.exit_code import ERROR, OK, TRY_AGAIN
from bradawl.app.login.default_model import store_model, store_provider, users_model, what_overrides
from bradawl.app.login.dialogue import Dialogue
from bradawl.app.login.key_store import KeyStore
from bradawl.app.login.key_text import CleanedKey, cleaned_key, masked, vendor_of
from bradawl.app.login.model_menu import choose_model_of, default_of
from bradawl.app.login.provider_menu import label
from bradawl.app.model_list import Connect, ListedModel, listed_model
from bradawl.app.rendering import one_line
from bradawl.app.settings.credentials import StoredKey
from bradawl.app.settings.model_choice import ModelSources, address_of, resolve
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import Provider
from bradawl.core.errors import SettingsError
from bradawl.providers.catalog import Catalog

_MOST_ATTEMPTS = 5
_ADVICE = "For a proxy set HTTPS_PROXY, for a certificate authority of your own SSL_CERT_FILE."


class Endpoints(NamedTuple):
    """How a login reaches endpoints."""

    connect: Connect
    open_model: OpenModel


class Wishes(NamedTuple):
    """What the command line asks for."""

    model: str = ""
    """The model without its provider; empty to choose one."""
    is_tested: bool = True
    is_new: bool = False
    """The provider's address is not in config.toml yet."""


class Login:
    """One login. `dialogue` is None where no user can be asked; `say` prints a line."""

    def __init__(
        self,
        given: ModelSources,
        config: Path,
        store: KeyStore,
        endpoints: Endpoints,
        say: Callable[[str], None],
        dialogue: Dialogue | None = None,
    ) -> None:
        self._given = given
        self._config = config
        self._store = store
        self._endpoints = endpoints
        self._say = say
        self._dialogue = dialogue

    def run(self, one: Provider, wishes: Wishes, piped: str = "") -> int:
        """Log in to a provider, with `piped` as its key where no user can be asked. Returns the exit code.

        Raises `SettingsError`, `EOFError` and `KeyboardInterrupt`; nothing is stored then.
        """
        verdict = Verdict("wrong_key")
        for _ in range(_MOST_ATTEMPTS):
            try:
                key = self._key(one, piped)
            except SettingsError as error:
                if self._dialogue is None:
                    raise
                self._say(str(error))
                continue
            if key is None:
                self._say("Nothing was stored.")
                return ERROR
            verdict = self._test(one, key, wishes)
            if verdict.accepts_key or self._stores_anyway(verdict):
                return self._finish(one, key, wishes, verdict)
            if self._dialogue is None or verdict.kind != "network":
                self._say(verdict.text)
            if self._dialogue is None or verdict.kind != "wrong_key":
                break
            self._say(f"{label(one.name)} does not accept this key. Try again, or press Enter to give up.")
        self._say("Nothing was stored.")
        if self._dialogue is None and verdict.kind == "network":
            self._say("With --no-test the key is stored without a test.")
        return TRY_AGAIN if _is_temporary(verdict) else ERROR

    # -------------------------------------------------------------- the key

    def _key(self, one: Provider, piped: str) -> str | None:
        """The key, empty if none is needed; None if the user gives up. Raises `SettingsError`."""
        if not one.needs_key:
            return ""
        if self._dialogue is None:
            cleaned = cleaned_key(piped)
            if not cleaned.key and one.is_users:
                return ""
            if not cleaned.key:
                raise SettingsError("No key came on stdin.")
        else:
            enter = "if it needs none" if one.is_users else "to give up"
            cleaned = cleaned_key(self._dialogue.secret(f"Key for {label(one.name)} (not shown; Enter {enter}):"))
            if not cleaned.key:
                return "" if one.is_users else None
        self._say_what_came(one, cleaned)
        return cleaned.key

    def _say_what_came(self, one: Provider, cleaned: CleanedKey) -> None:
        key, removed = cleaned
        count = f"{len(key)} character{'' if len(key) == 1 else 's'}"
        without = f", without {', '.join(removed)}" if removed else ""
        self._say(f"Got a key of {count}, {masked(key)}{without}.")
        vendor = vendor_of(key)
        if vendor and vendor != one.name and not one.is_users:
            self._say(f"Keys that begin like this one are usually for {label(vendor)}.")

    # -------------------------------------------------------------- the test

    def _settings(self, one: Provider, key: str, model: str) -> ModelSettings:
        """The settings of a run with this key, without the variables that would win over it. Raises `SettingsError`."""
        environ = {name: value for name, value in self._given.environ.items() if name not in one.key_names}
        stored = {one.name: StoredKey(key)} if key else {}
        providers = {**self._given.providers, one.name: one if key else msgspec.structs.replace(one, needs_key=False)}
        given = self._given._replace(environ=environ, stored=stored, providers=providers)
        settings = resolve(given, providers[one.name], model, is_selected=True)
        for warning in given.sources.warnings:
            self._say(f"note: {warning}")
        given.sources.warnings.clear()
        return settings

    def _test(self, one: Provider, key: str, wishes: Wishes) -> Verdict:
        settings = self._settings(one, key, wishes.model)
        if not wishes.is_tested:
            return Verdict("no_list")
        self._say(f"Asking {settings.base_url} ...")
        return asyncio.run(check_list(settings, self._given.environ, self._endpoints.connect))

    def _stores_anyway(self, verdict: Verdict) -> bool:
        """Whether the user wants a key stored that could not be tested."""
        if verdict.kind != "network" or self._dialogue is None:
            return False
        self._say(f"{verdict.text} {_ADVICE}")
        return self._dialogue.confirm("The key could not be tested. Store it anyway?", default=False)

    # -------------------------------------------------------------- the model

    def _finish(self, one: Provider, key: str, wishes: Wishes, verdict: Verdict) -> int:
        if verdict.kind in ("no_credit", "busy"):
            self._say(f"The key is accepted, but: {verdict.text}")
        model = wishes.model or self._chosen_model(one, verdict, is_asked=wishes.is_tested)
        while model and wishes.is_tested and verdict.kind != "network":
            found = self._test_model(one, key, model)
            if found.kind == "wrong_key":
                self._say(f"{found.text} Nothing was stored.")
                return ERROR
            if found.accepts_key:
                break
            if self._dialogue is None:
                self._say(f"{one_line(model)} can't be used: {found.text} Nothing was stored.")
                return TRY_AGAIN if _is_temporary(found) else ERROR
            self._say(f"{one_line(model)} can't be used: {found.text}")
            model = self._chosen_model(one, verdict)
        self._save(one, key, wishes, model)
        return OK

    def _chosen_model(self, one: Provider, verdict: Verdict, *, is_asked: bool = True) -> str:
        """The model that the user chooses, else the one that suits; empty for none.

        `is_asked`: the endpoint was asked for its models.
        """
        current, _, name = users_model(self._given.sources).partition("/")
        preferred = [name] if current == one.name else []
        preferred += [one.default_model] if one.default_model else []
        models = self._models(one, verdict)
        if self._dialogue is not None:
            if verdict.kind == "network" and not preferred:
                return ""
            if verdict.kind == "network":
                return preferred[0]
            return choose_model_of(self._dialogue, models, preferred, is_asked=is_asked)
        return default_of(models, preferred) if models else preferred[0] if preferred else ""

    def _models(self, one: Provider, verdict: Verdict) -> list[ListedModel]:
        catalog = Catalog()
        providers = {**self._given.providers, one.name: one}
        given = self._given._replace(providers=providers)
        vendor = catalog.vendor_at(address_of(given, one, is_selected=True))
        return [listed_model(entry, one.name, vendor, self._given.facts, catalog) for entry in verdict.models]

    def _test_model(self, one: Provider, key: str, model: str) -> Verdict:
        settings = self._settings(one, key, model)
        if settings.is_local:
            return Verdict("ok")  # a request would load the model, which can take minutes
        self._say(f"Sending a tiny request to {one_line(model)} ...")
        found = asyncio.run(check_model(settings, self._endpoints.open_model))
        if found.kind in ("no_credit", "busy"):
            self._say(f"The key is accepted, but: {found.text}")
        return found

    # -------------------------------------------------------------- storing

    def _save(self, one: Provider, key: str, wishes: Wishes, model: str) -> None:
        """Store what was entered. Each line says what is true now; the last one is the next command."""
        if wishes.is_new:
            store_provider(self._config, one, needs_key=bool(key))
            self._say(f"The address of {one.name} is stored in {self._config}.")
        if key:
            place = self._store.store(one.name, key)
            where = "in the system keyring" if place == "keyring" else f"in {self._store.path}, readable by you only"
            self._say(f"The key of {one.name} is stored {where}.")
            if variable := one.key_variable(self._given.environ):
                self._say(f"note: {variable} is set: it wins over a stored key wherever it is set.")
        name = f"{one.name}/{model}"
        if not model:
            self._say(self._about_default())
            self._say(f"To see its models: `bradawl models {one.name}`")
            self._say(f"To start: `bradawl -m {one.name}/MODEL`")
        elif self._becomes_default(name, asked_for=bool(wishes.model)):
            store_model(self._config, name)
            self._say(f"{one_line(name)} is the default model now, in {self._config}.")
            place = what_overrides(self._given.sources)
            if place:
                self._say(f"note: {place} wins over it here.")
            self._say(f"To start: `bradawl{f' -m {one_line(name)}' if place else ''}`")
        else:
            self._say(self._about_default())
            self._say(f"To start: `bradawl -m {one_line(name)}`")

    def _about_default(self) -> str:
        """What a run without `-m` uses, where the login changes nothing about it."""
        if place := what_overrides(self._given.sources):
            return f"The default model stays as it is; here {place} names it."
        before = users_model(self._given.sources)
        return f"The default model stays {one_line(before)}." if before else "No default model is set."

    def _becomes_default(self, name: str, *, asked_for: bool) -> bool:
        before = users_model(self._given.sources)
        if not before or before == name or asked_for:
            return True
        question = f"Use {one_line(name)} by default instead of {one_line(before)}?"
        return self._dialogue is not None and self._dialogue.confirm(question, default=True)


def _is_temporary(verdict: Verdict) -> bool:
    """Whether the same login may succeed later."""
    return verdict.kind == "network"
