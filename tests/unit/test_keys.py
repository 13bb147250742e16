"""Keys from the credentials file and from commands, and the origins they may be sent to."""

import asyncio
import os
from pathlib import Path

import pytest
from settings_files import SECRET

from bradawl.app.program_paths import key_command_environment
from bradawl.app.settings.credentials import CommandKey, StoredKey, read_credentials
from bradawl.app.settings.load import load_settings
from bradawl.core.errors import SettingsError
from patience import no_wait

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture
def credentials(tmp_path):
    """Writes a credentials file that only its owner can read."""

    def write(text, mode=0o600):
        path = tmp_path / "credentials.toml"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


# ------------------------------------------------------------------ the file


def test_keys_are_found_by_provider(credentials):
    path = credentials(f'[openai]\napi_key = "{SECRET}"\n[my-own]\napi_key = " k2 "\n')
    assert read_credentials(path) == {"openai": StoredKey(SECRET), "my-own": StoredKey("k2")}


def test_a_key_in_the_system_keyring_is_only_named_in_the_file(credentials):
    assert read_credentials(credentials("[openai]\nkeyring = true\n")) == {"openai": StoredKey(is_in_keyring=True)}
    assert SECRET not in repr(StoredKey(SECRET))


def test_without_a_file_there_are_no_keys(tmp_path):
    assert read_credentials(tmp_path / "credentials.toml") == {}
    (tmp_path / "file").touch()
    assert read_credentials(tmp_path / "file" / "credentials.toml") == {}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601, 0o620, 0o610])
def test_a_file_that_others_can_reach_is_refused_with_the_command_that_closes_it(credentials, mode):
    path = credentials(f'[openai]\napi_key = "{SECRET}"', mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {path}") as caught:
        read_credentials(path)
    assert SECRET not in str(caught.value)


def test_a_file_of_another_user_is_refused(credentials, monkeypatch):
    path = credentials("")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(SettingsError, match="belongs to another user"):
        read_credentials(path)


@pytest.mark.parametrize(
    "text",
    [
        f'[openai]\napi_key = "{SECRET}',
        f"openai = {SECRET}",
        f'openai = "{SECRET}"',
        f'[openai]\nkey = "{SECRET}"',
        f'[openai]\nkeyring = "{SECRET}"',
        f'[openai]\nkeyring = true\napi_key = "{SECRET}"',
        f'[openai]\napi_key = "{SECRET}"\nbase_url = "{SECRET}"',
        f'[openai]\napi_key = ["{SECRET}"]',
        f'[openai]\napi_key = "{SECRET}\\u200b"',
        f'[openai]\napi_key = "{SECRET}\\n{SECRET}"',
        f'[[openai]]\napi_key = "{SECRET}"',
    ],
)
def test_an_invalid_file_is_refused_without_quoting_its_content(credentials, text):
    with pytest.raises(SettingsError, match=r"credentials\.toml") as caught:
        read_credentials(credentials(text))
    texts = [str(caught.value)]
    error = caught.value
    while (error := error.__cause__) is not None:
        texts.append(str(error))
    assert SECRET not in "".join(texts)


def test_a_credentials_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "credentials.toml").mkdir(mode=0o700)
    with pytest.raises(SettingsError, match=r"credentials\.toml can't be read"):
        read_credentials(tmp_path / "credentials.toml")


# ------------------------------------------------------------------ the command


async def run(command, **more):
    return await CommandKey(command, "acme", ENVIRONMENT, **more).key()


async def test_a_command_prints_the_key():
    assert await run(f"echo '  {SECRET} '") == SECRET


async def test_a_command_sees_the_environment_and_nothing_on_stdin():
    key = CommandKey('cat; echo "$TOKEN"', "acme", {**ENVIRONMENT, "TOKEN": SECRET})
    assert (await key.key()) == SECRET


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (f"echo {SECRET}; echo {SECRET} >&2; exit 3", "exit code 3"),
        ("kill -9 $$", "signal 9"),
        ("true", "printed nothing"),
        (f"echo {SECRET}; echo {SECRET}", "more than one line"),
        (f"while :; do echo {SECRET}; done", "more than one line"),
        (f"printf '{SECRET}\\001'", "characters in it that no key has"),
        (f"printf '{SECRET}\\303\\251'", "characters in it that no key has"),
        ("no-such-program-of-ours", "exit code 127"),
    ],
)
async def test_a_command_that_fails_is_named_by_its_provider_and_never_quoted(command, problem):
    with pytest.raises(SettingsError, match=problem) as caught:
        await run(command)
    assert "acme" in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_a_command_that_hangs_is_killed_with_its_children():
    with no_wait(), pytest.raises(SettingsError, match=r"did not end within 0\.3 s"):
        await run("sleep 60 & sleep 60", timeout_s=0.3)


async def test_a_command_whose_child_keeps_the_pipe_open_is_killed_too():
    with pytest.raises(SettingsError, match="did not end"):
        await run("sleep 60 & exit 0", timeout_s=0.3)


async def test_a_cancelled_command_leaves_no_process_behind(tmp_path):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await CommandKey("sleep 60", "acme", ENVIRONMENT).key()


def counted(tmp_path):
    """A command that prints a new key each time."""
    return CommandKey(
        f"echo x >> {tmp_path}/runs; echo key-$(wc -l < {tmp_path}/runs | tr -d ' ')", "acme", ENVIRONMENT
    )


async def test_a_key_is_kept_until_it_is_refused(tmp_path):
    source = counted(tmp_path)
    keys = [await source.key(), await source.key()]
    keys += [await source.key(refused="key-1"), await source.key(refused="key-1"), await source.key()]
    assert keys == ["key-1", "key-1", "key-2", "key-2", "key-2"]


async def test_concurrent_requests_for_a_key_share_one_run_of_the_command(tmp_path):
    source = counted(tmp_path)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(source.key()) for _ in range(8)]
    assert {task.result() for task in tasks} == {"key-1"}


def test_repr_hides_the_command():
    assert SECRET not in repr(CommandKey(f"echo {SECRET}", "acme", {}))


# ------------------------------------------------------------------ origins that keys are sent to


@pytest.fixture
def load(tmp_path):
    """Loads the settings of a user with these files."""
    config = tmp_path / ".config" / "bradawl"
    config.mkdir(parents=True)

    def load(options, config_text="", keys="", **environ):
        (config / "config.toml").write_text(config_text)
        if keys:
            (config / "credentials.toml").write_text(keys)
            (config / "credentials.toml").chmod(0o600)
        return load_settings(options, {"HOME": str(tmp_path), **environ}, str(tmp_path))

    return load


STORED = f'[openai]\napi_key = "{SECRET}"\n[acme]\napi_key = "acme-{SECRET}"\n'
ACME = "[providers.acme]\nbase_url = 'https://acme.example/v1'\n"


def test_a_stored_key_is_sent_to_the_url_of_its_provider(load):
    model = load({"model": "openai/x"}, keys=STORED).model
    assert (model.api_key, model.key_origin) == (SECRET, "https://api.openai.com")
    assert model.key_name.endswith("credentials.toml")
    model = load({"model": "acme/x"}, ACME, keys=STORED).model
    assert (model.api_key, model.key_origin) == (f"acme-{SECRET}", "https://acme.example")


def test_a_stored_key_is_sent_to_another_path_of_the_same_origin(load):
    settings = load({"model": "acme/x", "base_url": "https://ACME.example:443/v2"}, ACME, keys=STORED)
    assert settings.model.api_key == f"acme-{SECRET}"


@pytest.mark.parametrize(
    ("options", "environ", "config"),
    [
        ({"base_url": "https://gateway.example/v1"}, {}, ""),
        ({}, {"BRADAWL_BASE_URL": "https://gateway.example/v1"}, ""),
        ({}, {"OPENAI_BASE_URL": "https://gateway.example/v1"}, ""),
        ({"base_url": "https://api.openai.com:8443/v1"}, {}, ""),
        ({"base_url": "http://api.openai.com/v1"}, {}, ""),
        ({}, {}, "base_url = 'https://gateway.example/v1'"),
    ],
)
def test_a_stored_key_is_not_sent_to_another_origin_that_a_setting_names(load, options, environ, config):
    with pytest.raises(SettingsError, match=r"is not sent to .*OPENAI_API_KEY") as caught:
        load({"model": "openai/x", **options}, config, STORED, **environ)
    assert SECRET not in str(caught.value)


def test_a_local_server_gets_no_stored_key(load):
    model = load({"model": "openai/x", "base_url": "http://127.0.0.1:8000/v1"}, keys=STORED).model
    assert (model.api_key, model.key_origin) == ("", "")


def test_the_key_of_a_variable_is_sent_to_the_base_url_that_the_user_sets(load):
    model = load(
        {"model": "openai/x", "base_url": "https://gateway.example/v1"}, keys=STORED, OPENAI_API_KEY="variable"
    ).model
    assert (model.api_key, model.key_origin, model.key_name) == (
        "variable",
        "https://gateway.example",
        "OPENAI_API_KEY",
    )


def test_a_key_command_is_not_run_while_settings_load_and_is_bound_to_its_origin(load):
    config = f"{ACME}api_key_command = 'echo {SECRET}'\n"
    model = load({"model": "acme/x"}, config).model
    assert (model.api_key, model.key_command, model.key_origin) == (
        "",
        f"echo {SECRET}",
        "https://acme.example",
    )
    with pytest.raises(SettingsError, match="not sent") as caught:
        load({"model": "acme/x", "base_url": "https://gateway.example"}, config)
    assert SECRET not in str(caught.value)


def test_the_environment_wins_over_the_file_and_the_file_over_the_command(load):
    config = f"{ACME}api_key_command = 'echo {SECRET}'\n"
    assert load({"model": "acme/x"}, config, ACME_API_KEY="v").model.api_key == "v"
    model = load({"model": "acme/x"}, config, STORED).model
    assert (model.api_key, model.key_command) == (f"acme-{SECRET}", "")


def test_a_provider_without_a_key_variable_is_used_without_a_key(load):
    table = "[providers.lab]\nbase_url = 'http://192.168.7.5:8000/v1'\n"
    with pytest.raises(SettingsError, match=r'LAB_API_KEY.* `api_key_env = ""` in \[providers\.lab\]'):
        load({"model": "lab/x"}, table)
    model = load({"model": "lab/x"}, table + "api_key_env = ''\n").model
    assert (model.api_key, model.base_url) == ("", "http://192.168.7.5:8000/v1")


def test_the_error_about_a_missing_key_names_a_stored_key_of_an_unknown_provider(load):
    with pytest.raises(SettingsError, match=r"has a key for \[acne\], which is not a provider") as caught:
        load({"model": "acme/x"}, ACME, STORED.replace("acme]", "acne]"))
    assert SECRET not in str(caught.value)


def test_the_only_provider_that_the_user_configured_is_the_default(load):
    own = "[providers.lab]\nbase_url = 'http://127.0.0.1:8000/v1'\n"
    assert load({"model": "m"}, own).model.provider == "lab"
    with pytest.raises(SettingsError, match="lab/MODEL, den/MODEL"):
        load({"model": "m"}, own + own.replace("lab", "den"))
    with pytest.raises(SettingsError, match=r"`ollma` is not a provider.*no .providers.ollma.*Did you mean `ollama`"):
        load({"model": "ollma/m"}, own)


def test_a_stored_key_or_a_command_makes_its_provider_the_default(load):
    assert load({}, keys=f'[deepseek]\napi_key = "{SECRET}"').model.provider == "deepseek"
    assert load({"model": "x"}, f"{ACME}api_key_command = 'true'", keys="[acme]\napi_key='k'").model.provider == "acme"


def test_the_credentials_file_is_not_read_if_a_variable_has_the_key(load, tmp_path):
    load({"model": "openai/x"}, keys=STORED)
    (tmp_path / ".config/bradawl/credentials.toml").chmod(0o644)
    assert load({"model": "openai/x"}, OPENAI_API_KEY="v").model.api_key == "v"
    with pytest.raises(SettingsError, match="chmod 600"):
        load({"model": "openai/x"})


def test_headers_of_the_users_own_endpoint_are_not_sent_elsewhere(load):
    config = f"{ACME}[providers.acme.headers]\nX-Team = '{SECRET}'\n"
    assert load({"model": "acme/x"}, config, ACME_API_KEY="k").model.headers == (("x-team", SECRET),)
    moved = load({"model": "acme/x", "base_url": "https://gateway.example"}, config, ACME_API_KEY="k")
    assert moved.model.headers == ()
    assert "not sent to https://gateway.example" in moved.warnings[0]
    assert SECRET not in repr(moved)


def test_repr_of_settings_hides_stored_keys_and_commands(load):
    config = f"{ACME}api_key_command = 'echo {SECRET}'\n"
    assert SECRET not in repr(load({"model": "acme/x"}, config))
    assert SECRET not in repr(load({"model": "openai/x"}, keys=STORED))


@pytest.mark.parametrize("path", [".", "", ":/usr/bin", "bin"])
async def test_a_command_is_not_found_in_the_working_directory(tmp_path: Path, monkeypatch, path: str):
    (tmp_path / "bin").mkdir()
    for place in (tmp_path / "my-token", tmp_path / "bin" / "my-token"):
        place.write_text("#!/bin/sh\necho stolen\n")
        place.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    environment = {"PATH": path, "HOME": "/"}
    assert (
        await CommandKey("my-token 2>&- || echo kept; pwd >&2", "acme", key_command_environment(environment)).key()
    ) == "kept"


async def test_a_command_runs_in_the_home_folder(tmp_path: Path):
    command = "pwd"
    assert (await CommandKey(command, "acme", {**ENVIRONMENT, "HOME": str(tmp_path)}).key()) == str(tmp_path)
    assert (await CommandKey(command, "acme", {**ENVIRONMENT, "HOME": "relative"}).key()) == "/"
