"""Entries of TOML files are changed as text: comments and order stay, and the files are replaced as a whole."""

import json
import os
import stat
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.config.toml_edit import with_table, with_value, without_key
from bradawl.app.login.default_model import store_model
from bradawl.app.login.key_store import KeyStore
from bradawl.app.login.user_files import change_file
from bradawl.app.settings.credentials import StoredKey
from bradawl.app.settings.system_keyring import SystemKeyring
from bradawl.core.errors import SettingsError

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=30)


def quoted(text):
    """A TOML string."""
    return json.dumps(text)


def test_tables_are_added_replaced_and_removed():
    text = with_table("", ("openai",), {"api_key": "k"})
    assert text == '[openai]\napi_key = "k"\n'
    both = with_table(f"# mine\n{text}", ("groq",), {"keyring": True})
    assert both == f"# mine\n{text}\n[groq]\nkeyring = true\n"
    assert with_table(both, ("openai",), {"api_key": "new"}) == both.replace('"k"', '"new"')
    assert with_table(both, ("openai",), {"keyring": True}) == both.replace('api_key = "k"', "keyring = true")
    assert tomllib.loads(without_key(both, ("openai",))) == {"groq": {"keyring": True}}


@given(st.dictionaries(NAMES, VALUES, max_size=4), NAMES, VALUES)
def test_a_changed_file_means_what_it_meant_with_the_one_change(tables, name, value):
    text = "".join(f"# {key}\n[{key}] # x\napi_key = {quoted(each)}\n\n" for key, each in tables.items())
    before = tomllib.loads(text)
    changed = with_table(text, (name,), {"api_key": value})
    assert tomllib.loads(changed) == {**before, name: {"api_key": value}}
    assert all(f"# {key}\n" in changed for key in tables)
    assert tomllib.loads(without_key(changed, (name,))) == {key: one for key, one in before.items() if key != name}
    assert name == "model" or tomllib.loads(with_value(text, ("model",), value)) == {**before, "model": value}


def test_line_ends_and_a_byte_order_mark_stay(tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    store_model(path, "a/b")
    assert path.read_bytes() == b'\xef\xbb\xbfa = 1\r\nmodel = "a/b"\r\n'


def test_a_login_says_nothing_of_the_contents_of_a_file_of_keys(tmp_path):
    path = tmp_path / "credentials.toml"
    path.write_text("[openai]\napi_key = sk-hidden-word")
    path.chmod(0o600)
    with pytest.raises(SettingsError, match=r"left as it is\. It is not valid TOML") as failed:
        change_file(path, lambda text: with_table(text, ("groq",), {"api_key": "k"}), is_secret=True)
    assert "hidden" not in str(failed.value) and failed.value.__cause__ is None


# ------------------------------------------------------------------ files


def test_a_new_file_of_keys_is_readable_by_its_owner_only_whatever_the_umask(tmp_path):
    path = tmp_path / "new" / "credentials.toml"
    old = os.umask(0)
    try:
        change_file(path, lambda _: "x = 1", is_secret=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["credentials.toml"]


def test_permissions_of_other_files_and_the_target_of_a_link_stay(tmp_path):
    real, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    real.write_text("a = 1\n")
    real.chmod(0o640)
    link.symlink_to(real)
    change_file(link, lambda text: text + "b = 2\n")
    assert link.is_symlink()
    assert real.read_text() == "a = 1\nb = 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_failed_change_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("x = ")
    with pytest.raises(SettingsError, match=r"left as it is\. It is not valid TOML"):
        change_file(path, lambda text: with_value(text, ("model",), "a/b"))
    assert [each.name for each in tmp_path.iterdir()] == ["config.toml"]
    with pytest.raises(SettingsError, match="can't be used: File exists"):
        change_file(path / "below", lambda text: text)
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(SettingsError, match="can't be read: it is not a regular file"):
        change_file(tmp_path / "folder.toml", lambda text: "x")
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="not UTF-8"):
        change_file(path, lambda text: text)


# ------------------------------------------------------------------ the store


class MemoryBackend:
    """A backend of the keyring library that keeps secrets in memory."""

    def __init__(self, error=None):
        self.secrets = {}
        self._error = error

    def get_password(self, service, username):
        if self._error:
            raise self._error
        return self.secrets.get((service, username))

    def set_password(self, service, username, password):
        if self._error:
            raise self._error
        self.secrets[service, username] = password

    def delete_password(self, service, username):
        del self.secrets[service, username]


def test_with_a_keyring_the_file_only_says_that_the_key_is_there(tmp_path):
    backend, path = MemoryBackend(), tmp_path / "credentials.toml"
    store = KeyStore(path, SystemKeyring(backend))
    assert store.store("openai", "secret") == "keyring"
    assert path.read_text() == "[openai]\nkeyring = true\n"
    assert (backend.secrets, store.key_of("openai")) == ({("bradawl", "openai"): "secret"}, "secret")
    assert store.remove("openai") == ("keyring",)
    assert (backend.secrets, path.read_text(), store.remove("openai")) == ({}, "", ())


def test_a_key_that_is_stored_in_the_file_instead_leaves_the_keyring(tmp_path):
    backend, path = MemoryBackend(), tmp_path / "credentials.toml"
    KeyStore(path, SystemKeyring(backend)).store("openai", "old")
    assert KeyStore(path, SystemKeyring(backend), prefers_file=True).store("openai", "new") == "file"
    assert (backend.secrets, path.read_text()) == ({}, '[openai]\napi_key = "new"\n')
    assert KeyStore(path, None).stored() == {"openai": StoredKey("new")}


def test_a_key_in_a_keyring_that_is_gone_can_not_be_removed_silently(tmp_path):
    path = tmp_path / "credentials.toml"
    KeyStore(path, SystemKeyring(MemoryBackend())).store("openai", "k")
    with pytest.raises(SettingsError, match="no system keyring"):
        KeyStore(path, None).remove("openai")


def test_errors_of_a_keyring_name_the_provider_and_not_the_key(tmp_path):
    keyring = SystemKeyring(MemoryBackend(RuntimeError("secret is locked")))
    with pytest.raises(SettingsError, match=r"can't write the key of openai \(RuntimeError\)") as caught:
        KeyStore(tmp_path / "credentials.toml", keyring).store("openai", "secret")
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "credentials.toml").exists()


def test_an_unsafe_file_is_not_changed(tmp_path):
    path = tmp_path / "credentials.toml"
    path.write_text('[openai]\napi_key = "k"\n')
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        KeyStore(path, None).store("openai", "new")
    assert '"k"' in path.read_text()
