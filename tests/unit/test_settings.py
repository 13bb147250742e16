"""Settings: precedence of sources, limits on a project's files, and the choice of model and provider."""

import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import msgspec
import pytest

from bradawl.app.settings.homes import homes
from bradawl.app.settings.load import HEADLESS_STEPS, load_settings
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError

KEY = {"OPENAI_API_KEY": "sk-openai"}


def load(home, project, options=None, **environ) -> Settings:
    return load_settings(options or {}, {"HOME": str(home), **environ}, str(project))


def write_user(home, text):
    path = home / ".config" / "bradawl" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_project(project, text, name="config.toml"):
    path = project / ".bradawl" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_the_strongest_source_wins(home, project):
    write_user(home, 'model = "openai/user"\n')
    seen = [load(home, project, **KEY).model.name]
    write_project(project, 'model = "openai/project"\n')
    seen.append(load(home, project, **KEY).model.name)
    write_project(project, 'model = "openai/local"\n', "config.local.toml")
    seen.append(load(home, project, **KEY).model.name)
    seen.append(load(home, project, BRADAWL_MODEL="openai/variable", **KEY).model.name)
    seen.append(load(home, project, {"model": "openai/flag"}, BRADAWL_MODEL="openai/variable", **KEY).model.name)
    assert seen == ["user", "project", "local", "variable", "flag"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("model.name", "openai/x", "x"),
        ("model.context_window", "128000", 128_000),
        ("max_steps", "7", 7),
        ("max_output_tokens", "1_000", 1000),
        ("effort", "HIGH", "high"),
        ("yolo", "yes", True),
        ("yolo", "0", False),
        ("model.base_url", "http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
        ("output_format", "json", "json"),
    ],
)
def test_every_setting_has_an_environment_variable(home, project, name, text, value):
    setting = name.removesuffix(".name").removeprefix("model.")
    environ = {"BRADAWL_MODEL": "openai/m", **KEY, f"BRADAWL_{setting.upper()}": text}
    assert attrgetter(name)(load(home, project, **environ)) == value


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"BRADAWL_MAX_STEPS": "0"}, "BRADAWL_MAX_STEPS"),
        ({"BRADAWL_MAX_STEPS": "-3"}, "BRADAWL_MAX_STEPS"),
        ({"BRADAWL_MAX_STEPS": "many"}, "BRADAWL_MAX_STEPS"),
        ({"BRADAWL_MAX_STEPS": "9" * 5000}, "BRADAWL_MAX_STEPS"),
        ({"BRADAWL_CONTEXT_WINDOW": "1.5"}, "BRADAWL_CONTEXT_WINDOW"),
        ({"BRADAWL_YOLO": "maybe"}, "BRADAWL_YOLO"),
        ({"BRADAWL_EFFORT": "extreme"}, "BRADAWL_EFFORT"),
        ({"BRADAWL_OUTPUT_FORMAT": "xml"}, "BRADAWL_OUTPUT_FORMAT"),
        ({"BRADAWL_BASE_URL": "localhost:8000"}, "BRADAWL_BASE_URL"),
        ({"BRADAWL_MODEL": "openai/"}, "BRADAWL_MODEL"),
        ({"BRADAWL_CWD": "/does/not/exist"}, "BRADAWL_CWD"),
    ],
)
def test_an_error_names_the_variable(home, project, environ, place):
    with pytest.raises(SettingsError, match=place):
        load(home, project, **{"BRADAWL_MODEL": "openai/m", **KEY, **environ})


def test_an_error_names_the_flag(home, project):
    with pytest.raises(SettingsError, match=r"--max-steps must be a whole number"):
        load(home, project, {"model": "openai/m", "max_steps": "x"}, **KEY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_steps = 'x'", r"~/\.config/bradawl/config\.toml:1: max_steps must be a whole number"),
        ("max_steps = true", r"~/\.config/bradawl/config\.toml:1: max_steps must be a whole number"),
        ("yolo = 3.5", r"config\.toml:1: yolo must be true or false"),
        ("modle = 'x'", "modle is no setting; did you mean model"),
        ("api_key = 'sk-1'", "keys don't belong in this file"),
        ("model = \n", r"config\.toml:1: this is not valid TOML: invalid value"),
        ("a = 1\nb = [", r"config\.toml:2: this is not valid TOML"),
        ("providers = 3", "providers must be a table"),
        ("[providers.x]\nkey = 1", r"config\.toml:2: providers\.x\.key is no setting"),
        ("[providers.x]\napi_key = 'sk'", "api_key_env"),
        ('[providers."a b"]\n', "may only have letters"),
        ("[providers.x]\nbase_url = 'ftp://x'", r"providers\.x\.base_url must be an http"),
    ],
)
def test_an_error_in_the_users_file_names_file_and_key(home, project, text, message):
    write_user(home, text)
    with pytest.raises(SettingsError, match=message):
        load(home, project, {"model": "openai/m"}, **KEY)


def test_a_model_in_a_file_must_be_a_text(home, project):
    write_user(home, "model = 5")
    with pytest.raises(SettingsError, match=r"config\.toml:1: model must be a text"):
        load(home, project, **KEY)


def test_a_file_that_is_not_text_is_refused_by_line(home, project):
    write_user(home, "").write_bytes(b"model = 'a'\n# \xff\n")
    with pytest.raises(SettingsError, match="not UTF-8, see line 2"):
        load(home, project, **KEY)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("base_url = 'http://evil.example'", "base_url"),
        ("api_key = 'sk'", "api_key"),
        ("yolo = true", "yolo"),
        ("proxy = 'http://evil.example'", "proxy"),
        ("ca_file = 'mine.pem'", "ca_file"),
        ("[providers.openai]\nbase_url = 'http://evil.example'", "providers"),
        ("modle = 'x'", "modle"),
    ],
)
@pytest.mark.parametrize("name", ["config.toml", "config.local.toml"])
def test_a_project_can_not_redirect_requests_or_disable_questions(home, project, name, line, key):
    path = write_project(project, line, name)
    settings = load(home, project, {"model": "openai/m"}, **KEY)
    assert settings.model.base_url == "https://api.openai.com/v1"
    assert not settings.yolo
    assert settings.model.proxy is None
    assert settings.model.ca_file is None
    assert [w for w in settings.warnings if str(path) in w and f"`{key}`" in w]


def test_a_project_can_not_select_another_provider_for_the_users_base_url(home, project):
    write_user(home, 'model = "openai/mine"\n')
    write_project(project, 'model = "groq/theirs"\n')
    environ = {**KEY, "GROQ_API_KEY": "gsk", "BRADAWL_BASE_URL": "https://gateway.example/v1"}
    settings = load(home, project, **environ)
    assert (settings.model.provider, settings.model.name, settings.model.api_key) == ("openai", "mine", "sk-openai")
    assert "groq" in settings.warnings[0]


def test_a_project_can_not_select_a_scripted_model(home, project):
    write_project(project, 'model = "scripted/evil.json"\n')
    settings = load(home, project, **KEY)
    assert (settings.model.provider, settings.model.name) == ("openai", "gpt-5.5")
    assert "script" in settings.warnings[0]


def test_a_projects_file_is_found_from_folders_inside_its_checkout_only(home, project):
    write_project(project, "max_steps = 3\n")
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    options = {"model": "openai/m"}
    assert load(home, below, options, **KEY).max_steps is None
    (project / ".git").mkdir()
    assert load(home, below, options, **KEY).max_steps == 3


def test_a_fifo_in_place_of_a_projects_file_does_not_block(home, project):
    (project / ".bradawl").mkdir()
    os.mkfifo(project / ".bradawl" / "config.toml")
    settings = load(home, project, {"model": "openai/m"}, **KEY)
    assert "regular file" in settings.warnings[0]


def test_a_home_that_is_a_project_is_read_once_and_trusted(tmp_path):
    home = tmp_path / ".bradawl"
    home.mkdir()
    (home / "config.toml").write_text("yolo = true\nmodel = 'openai/m'\n")
    settings = load(tmp_path, tmp_path, BRADAWL_HOME=str(home), **KEY)
    assert settings.yolo
    assert settings.warnings == ()


# ------------------------------------------------------------------ model and provider


@pytest.mark.parametrize(
    ("model", "environ", "provider", "sent"),
    [
        ("openrouter/anthropic/x", {"OPENROUTER_API_KEY": "k"}, "openrouter", "anthropic/x"),
        ("openai/anthropic/x", KEY, "openai", "anthropic/x"),
        ("meta/llama", KEY, "openai", "meta/llama"),
        ("meta/llama", {"GROQ_API_KEY": "k"}, "groq", "meta/llama"),
        ("x", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai", "x"),
        ("x", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "GROQ_API_KEY": "k"}, "openai", "x"),
        ("x", {"BRADAWL_BASE_URL": "http://127.0.0.1:1/v1"}, "openai", "x"),
        ("gemini/x", {"GOOGLE_API_KEY": "k"}, "gemini", "x"),
        ("ollama/qwen3:8b", {}, "ollama", "qwen3:8b"),
        ("vllm/Qwen/Qwen3", {}, "vllm", "Qwen/Qwen3"),
        ("/weights/x.gguf", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, "openai", "/weights/x.gguf"),
    ],
)
def test_the_part_before_the_first_slash_selects_a_known_provider(home, project, model, environ, provider, sent):
    settings = load(home, project, {"model": model}, **environ)
    assert (settings.model.provider, settings.model.name) == (provider, sent)


def test_several_keys_without_a_provider_are_listed(home, project):
    with pytest.raises(SettingsError, match=r"openai/MODEL, groq/MODEL"):
        load(home, project, {"model": "x"}, GROQ_API_KEY="a", **KEY)


@pytest.mark.parametrize("options", [{}, {"model": "x"}])
def test_without_a_key_the_error_shows_how_to_set_one(home, project, options):
    with pytest.raises(SettingsError) as caught:
        load(home, project, options)
    assert [w for w in ("OPENAI", "OPENROUTER", "DEEPSEEK", "ollama") if w not in str(caught.value)] == []


def test_without_a_model_the_provider_with_a_key_answers_with_its_default(home, project):
    settings = load(home, project, DEEPSEEK_API_KEY="k")
    assert (settings.model.provider, settings.model.name) == ("deepseek", "deepseek-flash")


def test_without_a_model_a_base_url_selects_openais_default(home, project):
    settings = load(home, project, OPENAI_BASE_URL="http://127.0.0.1:9/v1", GROQ_API_KEY="g")
    assert (settings.model.provider, settings.model.name, settings.model.api_key) == ("openai", "gpt-5.5", "")


def test_a_provider_without_a_default_model_asks_for_one(home, project):
    with pytest.raises(SettingsError, match="openrouter has no default: use `-m openrouter/MODEL`"):
        load(home, project, OPENROUTER_API_KEY="k")


def test_a_missing_key_is_named(home, project):
    with pytest.raises(SettingsError, match="set ZAI_API_KEY"):
        load(home, project, {"model": "zai/glm"}, **KEY)


def test_a_key_is_sent_only_to_its_own_provider(home, project):
    settings = load(home, project, {"model": "groq/x", "base_url": "http://127.0.0.1:9/v1"}, **KEY)
    assert settings.model.api_key == ""


def test_a_key_with_hidden_characters_is_an_error_that_names_its_variable(home, project):
    with pytest.raises(SettingsError, match="OPENAI_API_KEY has characters") as caught:
        load(home, project, {"model": "openai/x"}, OPENAI_API_KEY="sk-\u200bsecret")
    assert "secret" not in str(caught.value)


def test_a_newline_at_the_end_of_a_key_is_removed(home, project):
    assert load(home, project, {"model": "openai/x"}, OPENAI_API_KEY="sk-1\n").model.api_key == "sk-1"


@pytest.mark.parametrize(
    ("options", "environ", "user", "url"),
    [
        ({}, {}, "", "https://api.openai.com/v1"),
        ({}, {}, "base_url = 'https://a.example/v1'", "https://a.example/v1"),
        ({}, {}, "[providers.openai]\nbase_url = 'https://b.example/v1'", "https://b.example/v1"),
        ({}, {"OPENAI_BASE_URL": "https://c.example"}, "base_url = 'https://a.example/v1'", "https://c.example"),
        (
            {},
            {"OPENAI_BASE_URL": "https://c.example", "BRADAWL_BASE_URL": "https://d.example"},
            "",
            "https://d.example",
        ),
        ({"base_url": "https://e.example"}, {"BRADAWL_BASE_URL": "https://d.example"}, "", "https://e.example"),
        ({"base_url": "https://e.example/v1/"}, {}, "", "https://e.example/v1"),
    ],
)
def test_the_base_url_comes_from_the_strongest_source(home, project, options, environ, user, url):
    write_user(home, user)
    assert load(home, project, {"model": "openai/x", **options}, **KEY, **environ).model.base_url == url


def test_a_provider_in_the_users_file_is_selected_by_its_name(home, project):
    write_user(home, "[providers.acme]\nbase_url = 'https://acme.example/v1'\napi_key_env = 'ACME_TOKEN'\n")
    settings = load(home, project, {"model": "acme/a/b"}, **{"ACME_TOKEN": "t"})
    assert (settings.model.provider, settings.model.name, settings.model.api_key) == ("acme", "a/b", "t")
    with pytest.raises(SettingsError, match="set ACME_TOKEN"):
        load(home, project, {"model": "acme/a/b"})


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000/v1",
        "api.example.com",
        "ftp://x.example",
        "http://",
        "https://user:secret@x.example/v1",
        "https://x.example:port/v1",
        "https://x.example:99999/v1",
        "https://[::1/v1",
        "https://x.example/v1?key=1",
        "https://x.example/a b",
        "https://x.example/\u202e",
        "  ",
    ],
)
def test_an_invalid_base_url_is_refused(home, project, url):
    with pytest.raises(SettingsError, match="--base-url") as caught:
        load(home, project, {"model": "openai/x", "base_url": url}, **KEY)
    assert "secret" not in str(caught.value)


def test_the_endpoint_in_a_base_url_is_removed_with_a_warning(home, project):
    options = {"model": "openai/x", "base_url": "https://x.example/v1/chat/completions/"}
    settings = load(home, project, options, **KEY)
    assert settings.model.base_url == "https://x.example/v1"
    assert "/chat/completions" in settings.warnings[0]


def test_a_key_over_plain_http_to_another_machine_is_warned_about(home, project):
    options = {"model": "openai/x", "base_url": "http://x.example/v1"}
    assert "unencrypted" in load(home, project, options, **KEY).warnings[0]
    assert load(home, project, {**options, "base_url": "http://[::1]:8/v1"}, **KEY).warnings == ()


def test_azure_needs_its_own_url(home, project):
    with pytest.raises(SettingsError, match="AZURE_BASE_URL"):
        load(home, project, {"model": "azure/x"}, AZURE_API_KEY="k")


# ------------------------------------------------------------------ other settings


def test_repr_hides_secrets(home, project):
    settings = load(home, project, {"model": "openai/x"}, HTTPS_PROXY="http://u:hush@p.example", **KEY)
    assert settings.model.proxy == "http://u:hush@p.example"
    assert "sk-openai" not in repr(settings)
    assert "hush" not in repr(settings)


def test_steps_are_limited_only_in_headless_runs(home, project):
    options = {"model": "openai/x"}
    assert load(home, project, options, **KEY).max_steps is None
    assert load(home, project, {**options, "headless": True}, **KEY).max_steps == HEADLESS_STEPS
    assert load(home, project, {**options, "headless": True, "max_steps": "9"}, **KEY).max_steps == 9


def test_the_path_of_a_script_is_relative_to_the_working_directory(home, project):
    settings = load(home, project.parent, {"model": "scripted/a/b.json", "cwd": str(project)}, **KEY)
    assert settings.model.name == str(project / "a" / "b.json")
    assert (settings.model.base_url, settings.model.api_key, settings.cwd) == ("", "", str(project))


@pytest.mark.parametrize(
    ("environ", "config", "data"),
    [
        ({"HOME": "/h"}, "/h/.config/bradawl", "/h/.local/share/bradawl"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}, "/c/bradawl", "/d/bradawl"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": ""}, "/h/.config/bradawl", "/h/.local/share/bradawl"),
        ({"HOME": "/h", "BRADAWL_HOME": "/b"}, "/b", "/b"),
        ({"HOME": "/h", "BRADAWL_HOME": "~/b"}, "/h/b", "/h/b"),
        ({"HOME": "/h", "BRADAWL_HOME": "b"}, "/cwd/b", "/cwd/b"),
    ],
)
def test_homes_follow_the_environment(environ, config, data):
    found = homes(environ, "/cwd")
    assert (found.config, found.data) == (config, data)


def test_a_home_missing_from_the_environment_is_looked_up(project):
    settings = load_settings({"model": "openai/x"}, dict(KEY), str(project))
    assert Path(settings.home).is_absolute()


def test_a_ca_file_must_exist(home, project, tmp_path):
    options = {"model": "openai/x"}
    with pytest.raises(SettingsError, match="SSL_CERT_FILE names a file that is not there"):
        load(home, project, options, SSL_CERT_FILE="/no/such.pem", **KEY)
    (tmp_path / "ca.pem").touch()
    assert load(home, project, options, SSL_CERT_FILE=str(tmp_path / "ca.pem"), **KEY).model.ca_file == str(
        tmp_path / "ca.pem"
    )


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("BRADAWL_MODLE", "did you mean BRADAWL_MODEL?"),
        ("BRADAWL_MAX_STEP", "did you mean BRADAWL_MAX_STEPS?"),
        ("BRADAWL_YOLLO", "did you mean BRADAWL_YOLO?"),
        ("BRADAWL_HOEM", "did you mean BRADAWL_HOME?"),
        ("BRADAWL_ZZZZZZZZZZZZ", "known are BRADAWL_HOME, BRADAWL_MODEL"),
    ],
)
def test_a_misspelt_variable_gives_a_warning_with_the_nearest_name(home, project, name, message):
    (warning,) = load(home, project, {"model": "openai/x"}, **KEY, **{name: "1"}).warnings
    assert warning.startswith(f"{name} is not a setting") and message in warning


def test_known_variables_give_no_warning(home, project):
    write_user(home, '[providers.bradawl-own]\napi_key_env = "BRADAWL_OWN_KEY"\n')
    environ = {"BRADAWL_HOME": str(home / ".config/bradawl"), "BRADAWL_CALL": "x", "BRADAWL_OWN_KEY": "k"}
    moved = {"BRADAWL_OWN_BASE_URL": "http://127.0.0.1:1/v1"}
    assert load(home, project, {"model": "bradawl-own/x"}, **environ, **moved, **KEY).warnings == ()


@pytest.mark.parametrize(("model", "guess"), [("opnai/gpt", "`openai`"), ("foo/bar", ""), ("OpenAI/gpt", "`openai`")])
def test_an_unknown_provider_is_named_if_none_is_configured(home, project, model, guess):
    with pytest.raises(SettingsError) as caught:
        load(home, project, {"model": model})
    message = str(caught.value)
    assert f"`{model.partition('/')[0]}` is not a provider" in message
    assert ("Did you mean " + guess in message) if guess else "Did you mean" not in message
    assert "openrouter" in message and "OPENAI_API_KEY=" in message


def test_yolo_and_the_mode_are_always_consistent(home, project):
    settings = load(home, project, {"yolo": True}, **KEY)
    assert (settings.permission_mode, settings.yolo) == ("bypass", True)
    for mode in ("default", "accept-edits", "plan", "auto", None):
        assert not msgspec.structs.replace(settings, permission_mode=mode).yolo
    assert msgspec.structs.replace(load(home, project, **KEY), permission_mode="bypass").yolo
    with pytest.raises(TypeError, match="yolo"):
        Settings(model=settings.model, cwd="/", home="/", yolo=True)
    with pytest.raises(TypeError, match="yolo"):
        msgspec.structs.replace(settings, yolo=False)
    with pytest.raises(AttributeError):
        settings.yolo = False


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_doctor_runs_although_the_users_folders_are_not_accessible(home, project):
    home.chmod(0)
    try:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        ended = subprocess.run(
            [sys.executable, "-m", "bradawl", "doctor"], env=environment, cwd=project, capture_output=True, text=True
        )
    finally:
        home.chmod(0o700)
    assert "internal error" not in ended.stderr and "Traceback" not in ended.stderr
    assert "can't be" in ended.stdout


@pytest.mark.parametrize("name", ["vllm", "lmstudio", "ollama", "llamacpp", "sglang"])
def test_a_project_can_not_select_a_local_server_that_the_user_never_configured(home, project, name):
    write_project(project, f'model = "{name}/m"\n')
    settings = load(home, project, **KEY)
    assert settings.model.provider == "openai"
    assert any("is not set up by you" in warning for warning in settings.warnings)
    variable = {f"{name.upper()}_BASE_URL": "http://127.0.0.1:9/v1"}
    assert load(home, project, **KEY, **variable).model.provider == name
