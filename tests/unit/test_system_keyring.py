"""The key of a model that the system keyring holds is read before the first request, in time, and never shown."""

import sys
import threading
from types import SimpleNamespace

import pytest

from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.settings.credentials import StoredKey
from bradawl.app.settings.load import read_settings
from bradawl.app.settings.model_choice import find_key, resolve
from bradawl.app.settings.system_keyring import KeyringKey, SystemKeyring, system_keyring
from bradawl.core.errors import SettingsError

SECRET = "sk-" + "keyring-0123456789"


class OneKey:
    """A backend that holds one key, which it gives out after `wait` is set."""

    def __init__(self, key=SECRET, wait=None):
        self.key = key
        self.asked = 0
        self._wait = wait

    def get_password(self, service, username):
        self.asked += 1
        if self._wait:
            self._wait.wait()
        return self.key

    def set_password(self, service, username, password):
        self.key = password

    def delete_password(self, service, username):
        self.key = None


async def test_the_key_is_read_once_and_again_after_it_was_refused():
    backend = OneKey()
    source = KeyringKey("openai", lambda: SystemKeyring(backend))
    assert [await source.key(), await source.key()] == [SECRET, SECRET]
    assert backend.asked == 1
    backend.key = "new"
    assert await source.key(SECRET) == "new"
    assert SECRET not in repr(source)


@pytest.mark.parametrize(
    ("find", "problem"),
    [
        (lambda: None, "install `bradawl.keyring.`, or run `bradawl login openai` again"),
        (lambda: SystemKeyring(OneKey(None)), "has no key of openai: run `bradawl login openai` again"),
        (lambda: SystemKeyring(OneKey(f"{SECRET}\n")), "characters in it that no key has"),
    ],
)
async def test_a_key_that_is_not_there_is_an_error_with_its_remedy(find, problem):
    with pytest.raises(SettingsError, match=problem) as caught:
        await KeyringKey("openai", find).key()
    assert SECRET not in str(caught.value)


async def test_a_keyring_that_waits_for_its_password_does_not_wait_for_ever():
    opened = threading.Event()
    try:
        with pytest.raises(SettingsError, match="within 0 s"):
            await KeyringKey("openai", lambda: SystemKeyring(OneKey(wait=opened)), timeout_s=0).key()
    finally:
        opened.set()
        for thread in threading.enumerate():
            if thread.name == "system-keyring":
                thread.join()


def test_a_provider_whose_key_is_in_the_keyring_is_set_up(tmp_path):
    given = read_settings({}, {"HOME": str(tmp_path)}, str(tmp_path)).given
    given = given._replace(stored={"groq": StoredKey(is_in_keyring=True)})
    one = given.providers["groq"]
    assert find_key(given, one).kind == "keyring"
    chosen = resolve(given, one, "m", is_selected=True)
    assert (chosen.api_key, chosen.key_in_keyring, chosen.key_origin) == ("", True, "https://api.groq.com")
    assert repr(model_endpoint(chosen, {}).keys) == "KeyringKey('groq')"


@pytest.mark.parametrize(
    ("priority", "is_usable"), [(5, True), (1, True), (0.5, False), (0, False), (-1, False), (None, False)]
)
def test_only_a_recommended_backend_is_used(monkeypatch, priority, is_usable):
    backend = OneKey()
    backend.priority = priority
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=lambda: backend))
    found = system_keyring()
    assert (found is not None) is is_usable
    assert found is None or found.key("openai") == SECRET


def test_without_the_library_there_is_no_keyring(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert system_keyring() is None
