"""Settings of providers and models: wire formats, endpoints, facts about models, fallback and small model."""

import re
from pathlib import Path

import pytest
from settings_files import SECRET

from bradawl.app.build.agent import build_agent
from bradawl.app.build.model import build_model
from bradawl.app.build.workspace import without_keys
from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.settings.providers import PROVIDERS, Provider, check_base_url, origin_of, url_of_variable
from bradawl.core.errors import SettingsError
from bradawl.core.ports import Prefix
from bradawl.core.usage import Price
from bradawl.testing.fakes import ScriptedApprover
from bradawl.workspace.machine import SystemClock, SystemIds

# ------------------------------------------------------------------ wire formats


@pytest.mark.parametrize(
    ("model", "environ", "api"),
    [
        ("openai/x", {}, "openai_responses"),
        ("openai/x", {"OPENAI_BASE_URL": "https://API.openai.com:443/v1/"}, "openai_responses"),
        ("openai/x", {"OPENAI_BASE_URL": "https://gateway.example/v1"}, "openai_chat"),
        ("openai/x", {"OPENAI_BASE_URL": "http://api.openai.com/v1"}, "openai_chat"),
        ("openai/x", {"OPENAI_BASE_URL": "https://api.openai.com.evil.example/v1"}, "openai_chat"),
        ("openai/x", {"BRADAWL_BASE_URL": "http://127.0.0.1:8000/v1"}, "openai_chat"),
        ("anthropic/x", {}, "anthropic_messages"),
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8000"}, "anthropic_messages"),
        ("groq/x", {}, "openai_chat"),
        ("ollama/x", {}, "openai_chat"),
    ],
)
def test_the_wire_format_follows_from_provider_and_url(load, model, environ, api):
    assert load({"model": model}, **environ).model.api == api


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_the_users_file_may_set_the_wire_format(load, api):
    for name in ("openai", "acme"):
        text = f"[providers.{name}]\napi = '{api}'\nbase_url = 'https://acme.example/v1'\napi_key_env = 'K'\n"
        settings = load({"model": f"{name}/x"}, text, K="k")
        assert settings.model.api == api
        assert model_endpoint(settings.model, {}).codec.api == api


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("openai/x", "https://api.openai.com/v1/responses"),
        ("anthropic/x", "https://api.anthropic.com/v1/messages"),
        ("groq/x", "https://api.groq.com/openai/v1/chat/completions"),
    ],
)
def test_requests_go_to_the_endpoint_of_the_wire_format(load, model, url):
    line = model_endpoint(load({"model": model}).model, {})
    assert line.codec.target(line.endpoint)[0] == url


def test_an_anthropic_auth_token_is_sent_as_a_bearer_token(load):
    def sent(**environ):
        line = model_endpoint(load({"model": "anthropic/x"}, **environ).model, {})
        return dict(line.codec.target(line.endpoint)[1])

    assert sent()["x-api-key"] == "a"
    headers = sent(**{"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "t"})
    assert headers["authorization"] == "Bearer t"
    assert "x-api-key" not in headers


def test_anthropic_has_a_default_model(load):
    settings = load({}, OPENAI_API_KEY="", GROQ_API_KEY="")
    assert (settings.model.provider, settings.model.name) == ("anthropic", "claude-sonnet-5-5")


# ------------------------------------------------------------------ addresses of providers


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),  # noqa: S104 - an address in a server's settings; the test binds nothing
        ("0.0.0.0:1234", "http://127.0.0.1:1234/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("[::]:8080", "http://127.0.0.1:8080/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
        ("gpu.lan", "http://gpu.lan:11434/v1"),
        ("http://gpu.lan", "http://gpu.lan:80/v1"),
        ("https://gpu.lan/", "https://gpu.lan:443/v1"),
        ("https://gpu.lan:8443/ollama/", "https://gpu.lan:8443/ollama/v1"),
    ],
)
def test_ollamas_own_variable_is_read_as_ollama_reads_it(load, text, url):
    assert load({"model": "ollama/x"}, OLLAMA_HOST=text).model.base_url == url


def test_a_base_url_variable_wins_over_the_vendors_own(load):
    settings = load({"model": "ollama/x"}, OLLAMA_HOST="a.lan", OLLAMA_BASE_URL="http://b.lan/v1")
    assert settings.model.base_url == "http://b.lan/v1"


@pytest.mark.parametrize("text", ["not a host", "http://u:p@h", "ftp://h", "h:99999"])
def test_an_invalid_variable_of_a_vendor_is_named(load, text):
    with pytest.raises(SettingsError, match="OLLAMA_HOST"):
        load({"model": "ollama/x"}, OLLAMA_HOST=text)


@pytest.mark.parametrize(
    "text", ["https://r.openai.azure.com/", "https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/"]
)
def test_an_azure_endpoint_is_completed(load, text):
    model = load({"model": "azure/deployment"}, AZURE_OPENAI_ENDPOINT=text, AZURE_OPENAI_API_KEY="k").model
    assert model.base_url == "https://r.openai.azure.com/openai/v1"
    line = model_endpoint(model, {})
    assert dict(line.codec.target(line.endpoint)[1])["api-key"] == "k"


def test_other_variables_are_used_unchanged():
    assert url_of_variable("ACME_BASE_URL", "https://a.example/x") == "https://a.example/x"


@pytest.mark.parametrize("ending", ["/chat/completions", "/responses", "/messages", "/messages/"])
def test_the_endpoint_in_a_base_url_is_removed(ending):
    assert check_base_url(f"https://x.example/v1{ending}", "--base-url")[0] == "https://x.example/v1"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("HTTPS://X.Example:443/v1", "https://x.example"),
        ("http://x.example:80", "http://x.example"),
        ("http://x.example:443", "http://x.example:443"),
        ("http://[::1]:8080/v1", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_normalized(url, origin):
    assert origin_of(url) == origin


# ------------------------------------------------------------------ the user's tables

BASE = "[providers.acme]\nbase_url = 'https://acme.example/v1'\napi_key_env = 'ACME_TOKEN'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[providers.x]\napi = 'soap'", r"providers\.x\.api must be one of openai_chat, openai_responses, anthro"),
        ("[providers.x]\napi = 3", r"providers\.x\.api must be a text"),
        ("[providers.x]\nheader = {}", r"config\.toml:2: providers\.x\.header is no setting; did you mean headers"),
        ("[providers.x]\nheaders = 'a: b'", r"providers\.x\.headers must be a table"),
        ("[providers.x.headers]\nx-a = 3", r"headers\.x-a must be a text of printable"),
        ("[providers.x.headers]\nx-a = 'a\\nb'\n[providers.x.headers.y]", "headers.*printable|must be a text"),
        ('[providers.x.headers]\nx-a = "a\\r\\nhost: evil"', r"headers\.x-a must be a text of printable"),
        ('[providers.x.headers]\nx-a = "\\u00e9"', r"headers\.x-a must be a text of printable"),
        ('[providers.x.headers]\n"x a" = "b"', "'x a' can't be the name of a header"),
        ("[providers.x.headers]\nAuthorization = 'Bearer t'", "keys don't belong in this file"),
        ("[providers.x.headers]\nx-api-key = 't'", "keys don't belong in this file"),
        ("[providers.x.headers]\nHost = 'evil'", "sets this header itself"),
        ("[providers.x.headers]\ncontent-length = '3'", "sets this header itself"),
        ("[providers.x.headers]\nX-A = '1'\nx-a = '2'", "is there twice"),
        ("[providers.x]\napi_key_command = ['a']", r"api_key_command must be a text"),
        ("[providers.x.compat]\nstream_option = true", "stream_options"),
        ("[providers.x.compat]\nstream_options = 'yes'", "compat"),
        ("[providers.x.compat]\ncall_id = 'eleven'", r"`call_id` must be one of any, short, nine, not 'eleven'\.$"),
        ("[providers.x]\ncompat = 3", r"compat must be a table"),
        ("[providers.anthropic.compat]\nkeys = 'cookie'", r"`keys` must be one of x-api-key, bearer, both, not"),
        ("[providers.anthropic.compat]\nfirst_bite_s = 3", r"did you mean `first_byte_s`\?$"),
        ("[providers.anthropic.compat]\nidle_s = -1", r"`idle_s` must be a number above 0, not -1\.$"),
        ("[providers.x.compat]\nidle_s = 0", r"`idle_s` must be a number above 0, not 0\.$"),
        ("[providers.x.compat]\nidle_s = inf", r"`idle_s` must be a number above 0, not inf\.$"),
        ("[providers.x.compat]\nidle_s = '3'", r"`idle_s` must be another kind of value: Expected `float`"),
        ("[providers.x.compat]\nextra = {top_k = 'many'}", r"`extra\.top_k` must be JSON in a string"),
        ("[providers.anthropic.compat]\nhas_cloude = true", "has_claude"),
        ("[providers.scripted]\n", "scripted model is a file"),
        ("models = 3", "models must be a table"),
        ("[models.'gpt-5.5']\n", "PROVIDER/MODEL"),
        ("[models.'openia/x']\n", "PROVIDER/MODEL"),
        ("[models.'openai/']\n", "PROVIDER/MODEL"),
        ("[models.'openai/x']\nwindow = 3", "is no setting; did you mean context_window"),
        ("[models.'openai/x']\ncontext_window = 0", "context_window must be a whole number of at least 1"),
        ("[models.'openai/x']\nmax_output = 1.5", "max_output must be a whole number"),
        ("[models.'openai/x']\neffort = 'extreme'", "effort must be one of none, minimal"),
        ("[models.'openai/x']\nprice = 3", "price must be a table"),
        ("[models.'openai/x']\nprice = {inptu = 3}", "price.inptu is no setting; did you mean input"),
        ("[models.'openai/x']\nprice = {input = -1}", "price.input must be a number of at least 0"),
        ("[models.'openai/x']\nprice = {input = nan}", "price.input must be a number"),
        ("[models.'openai/x']\nprice = {input = inf}", "price.input must be a number"),
        ("[models.'openai/x']\nprice = {input = true}", "price.input must be a number"),
        ("[models.'openai/x']\nprice = {input = '3'}", "price.input must be a number"),
    ],
)
def test_an_invalid_table_is_an_error_that_names_its_key(load, text, message):
    with pytest.raises(SettingsError, match=message) as caught:
        load({"model": "openai/m"}, text)
    assert "config.toml" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"[providers.x]\napi_key = '{SECRET}'",
        f"[providers.x]\napi_key_env = '{SECRET} '\nbase_url='x'",
        f"[providers.x]\napi_key_env = 'A={SECRET}'",
        f"[providers.x]\napi_key_env = '{SECRET}'",
        f"[providers.x]\napi_key_env = '{SECRET.replace('-', '_')}'",
        f"[providers.x.headers]\nauthorization = '{SECRET}'",
        f'[providers.x.headers]\nx-a = "{SECRET}\\u00e9"',
    ],
)
def test_no_message_contains_a_possible_key(load, text):
    with pytest.raises(SettingsError) as caught:
        load({"model": "openai/m"}, text)
    assert SECRET not in str(caught.value)


def test_headers_and_compat_reach_the_request(load):
    text = BASE + "[providers.acme.headers]\nX-Team = 'tools'\n[providers.acme.compat]\nkey_header = 'api-key'\n"
    line = model_endpoint(load({"model": "acme/x"}, text, **{"ACME_TOKEN": "t"}).model, {})
    headers = dict(line.codec.target(line.endpoint)[1])
    assert (headers["x-team"], headers["api-key"]) == ("tools", "t")
    assert "authorization" not in headers


def test_compat_of_a_messages_server_has_the_fields_of_that_format(load):
    text = BASE + "api = 'anthropic_messages'\n[providers.acme.compat]\nkeys = 'bearer'\n"
    line = model_endpoint(load({"model": "acme/x"}, text, **{"ACME_TOKEN": "t"}).model, {})
    headers = dict(line.codec.target(line.endpoint)[1])
    assert headers["authorization"] == "Bearer t"
    assert "x-api-key" not in headers


def test_deadlines_are_the_longer_of_server_and_model_unless_configured(load):
    def seconds(text=""):
        line = model_endpoint(load({"model": "vllm/x"}, text).model, {})
        return line.deadlines.first_byte_s, line.deadlines.idle_s

    assert seconds() == (600.0, 600.0)
    assert seconds("[providers.vllm.compat]\nidle_s = 5.0\n") == (600.0, 5.0)


def test_deadlines_of_a_messages_server_are_set_in_the_same_table(load):
    text = "[providers.anthropic.compat]\nfirst_byte_s = 7\nidle_s = 900\nkeys = 'bearer'\n"
    line = model_endpoint(load({"model": "anthropic/x"}, text).model, {})
    usual = model_endpoint(load({"model": "anthropic/x"}).model, {}).deadlines
    assert (line.deadlines.first_byte_s, line.deadlines.idle_s) == (7, 900)
    assert (line.deadlines.content_s, line.deadlines.connect_s) == (usual.content_s, usual.connect_s)
    assert "x-api-key" not in dict(line.codec.target(line.endpoint)[1])


def test_facts_in_the_users_table_of_a_model_are_used(load):
    text = "[models.'openai/gpt-5.5']\ncontext_window = 1000\nmax_output = 50\neffort = 'low'\n"
    text += "price = {input = 1, output = 2.5, cache_read = 0}\n"
    settings = load({"model": "openai/gpt-5.5"}, text)
    model = build_model(settings, SystemClock(), SystemIds())
    assert (model.info.context_window, model.info.max_output) == (1000, 50)
    assert model.info.price == Price(1.0, 2.5, 0.0)
    assert settings.effort == "low"
    other = load({"model": "openai/gpt-5.6-sol"}, text)
    assert (other.model.context_window, other.effort) == (922_000, None)


def test_a_flag_wins_over_the_models_table_which_wins_over_the_general_setting(load):
    text = "context_window = 3\neffort = 'max'\n[models.'openai/x']\ncontext_window = 2\neffort = 'low'\n"
    settings = load({"model": "openai/x", "context_window": "1", "effort": "high"}, text)
    assert (settings.model.context_window, settings.effort) == (1, "high")
    settings = load({"model": "openai/x"}, text, "context_window = 4\neffort = 'medium'\n")
    assert (settings.model.context_window, settings.effort) == (2, "low")
    settings = load({"model": "openai/y"}, text, "context_window = 4\neffort = 'medium'\n")
    assert (settings.model.context_window, settings.effort) == (3, "medium"), "the project is not trusted"


def test_the_catalog_supplies_facts_that_are_not_configured(load):
    model = load({"model": "anthropic/claude-opus-5-5"}).model
    assert (model.context_window, model.max_output) == (1_000_000, 128_000)
    assert model.price == Price(4.0, 20.0, 0.2, 5.0)
    only = load({"model": "anthropic/claude-opus-5-5"}, "[models.'anthropic/claude-opus-5-5']\nmax_output = 9\n").model
    assert (only.context_window, only.max_output, only.price) == (1_000_000, 9, model.price)


@pytest.mark.parametrize("url", ["https://gateway.example/v1", "http://127.0.0.1:1/v1", "https://api.openai.com:8/v1"])
def test_at_another_url_only_configured_facts_of_a_model_are_known(load, url):
    model = load({"model": "openai/gpt-5.5", "base_url": url}).model
    assert (model.context_window, model.max_output, model.price) == (None, None, None)
    model = load({"model": "openai/gpt-5.5", "base_url": url}, "[models.'openai/gpt-5.5']\nprice = {input = 1}\n").model
    assert model.price == Price(1.0)


def test_a_users_provider_at_a_vendors_url_has_the_vendors_prices(load):
    text = "[providers.work]\nbase_url = 'https://api.anthropic.com'\napi = 'anthropic_messages'\n"
    assert load({"model": "work/claude-opus-5-5"}, text, WORK_API_KEY="k").model.price == Price(4.0, 20.0, 0.2, 5.0)


@pytest.mark.parametrize(
    "line",
    [
        "fallback_model = 'groq/x'",
        "debug_log = true",
        "json_schema = 'x'",
        "[models.'openai/m']\nprice = {input = 0}",
        "[providers.openai.headers]\nx-a = 'b'",
        "[providers.openai]\napi_key_command = 'curl evil.example'",
        "[providers.openai]\napi = 'openai_chat'",
    ],
)
def test_a_project_may_not_set_providers_prices_fallbacks_or_schemas(load, line):
    settings = load({"model": "openai/m"}, "", line)
    plain = load({"model": "openai/m"})
    assert settings.model == plain.model
    assert (settings.fallback, settings.debug_log, settings.answer_schema) == (None, False, "")
    assert "is ignored" in settings.warnings[0]


# ------------------------------------------------------------------ a second model


def test_a_fallback_is_resolved_like_the_main_model(load):
    settings = load({"model": "anthropic/claude-opus-5-5", "fallback_model": "openai/gpt-5.5"})
    assert (settings.fallback.provider, settings.fallback.api) == ("openai", "openai_responses")
    assert (settings.fallback.api_key, settings.fallback.key_origin) == ("k", "https://api.openai.com")
    assert settings.fallback.price.input == 5.0
    model = build_model(settings, SystemClock(), SystemIds())
    assert model.info.origin.provider == "anthropic"
    assert model.open(Prefix("", ()), "s").info.origin.model == "claude-opus-5-5"


def test_a_fallback_without_a_provider_uses_the_main_models_provider_and_url(load):
    options = {"model": "groq/a", "fallback_model": "b/c", "base_url": "https://gateway.example/v1"}
    settings = load(options)
    assert (settings.fallback.provider, settings.fallback.name) == ("groq", "b/c")
    assert settings.fallback.base_url == "https://gateway.example/v1"


def test_a_fallback_at_another_provider_uses_that_providers_url(load):
    options = {"model": "groq/a", "fallback_model": "openai/b", "base_url": "https://gateway.example/v1"}
    assert load(options).fallback.base_url == "https://api.openai.com/v1"


def test_an_unusable_fallback_is_an_error_at_the_start(load):
    with pytest.raises(SettingsError, match="No key for deepseek: run `bradawl login deepseek`, set DEEPSEEK_API_KEY"):
        load({"model": "groq/a", "fallback_model": "deepseek/b"})
    with pytest.raises(SettingsError, match="--fallback-model names no model"):
        load({"model": "groq/a", "fallback_model": "deepseek/"})


def test_a_fallback_equal_to_the_main_model_is_ignored_with_a_warning(load):
    settings = load({"model": "groq/a"}, BRADAWL_FALLBACK_MODEL="groq/a")
    assert settings.fallback is None
    assert settings.warnings == ("BRADAWL_FALLBACK_MODEL is ignored: it names the model itself.",)


def test_a_context_window_set_for_the_main_model_does_not_apply_to_the_fallback(load):
    settings = load({"model": "groq/a", "fallback_model": "groq/b", "context_window": "7"})
    assert (settings.model.context_window, settings.fallback.context_window) == (7, None)


# ------------------------------------------------------------------ other settings


def test_a_schema_is_read_from_its_file(load, tmp_path):
    (tmp_path / "project" / "answer.json").write_text(' {"type": "object"}')
    assert load({"model": "groq/x", "json_schema": "answer.json"}).answer_schema == ' {"type": "object"}'
    assert load({"model": "groq/x"}, BRADAWL_JSON_SCHEMA="answer.json").answer_schema


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "must be a JSON object"),
        (b"{", "is not a JSON Schema"),
        (b"\xff", "is not a JSON Schema"),
        (b"", "is not a JSON Schema"),
        (None, "names a file that is not there"),
        (b'{"a": "' + b"x" * 1_000_000 + b'"}', "larger than"),
        (b"[" * 100_000, "is not a JSON Schema"),
    ],
)
def test_an_invalid_schema_is_refused(load, tmp_path, content, message):
    if content is not None:
        (tmp_path / "project" / "answer.json").write_bytes(content)
    with pytest.raises(SettingsError, match=f"--json-schema.*{message}"):
        load({"model": "groq/x", "json_schema": "answer.json"})


def test_the_debug_log_is_off_by_default(load):
    assert not load({"model": "groq/x"}).debug_log
    assert load({"model": "groq/x", "debug_log": True}).debug_log
    assert load({"model": "groq/x"}, "debug_log = true").debug_log
    assert load({"model": "groq/x"}, BRADAWL_DEBUG_LOG="1").debug_log


def test_commands_do_not_get_the_variables_of_the_users_own_keys(load):
    settings = load({"model": "acme/x"}, BASE, ACME_TOKEN=SECRET, ANTHROPIC_AUTH_TOKEN=SECRET, OTHER="kept")
    seen = without_keys(settings.environment, settings.key_names)
    assert SECRET not in seen.values()
    assert "OPENAI_API_KEY" not in seen
    assert seen["OTHER"] == "kept"


def test_repr_of_a_provider_hides_its_command_and_headers():
    one = Provider(name="acme", key_command=f"echo {SECRET}", headers=(("x", SECRET),))
    assert SECRET not in repr(one)


def test_a_model_of_every_known_provider_can_be_built(load):
    for name, known in PROVIDERS.items():
        if known.base_url:
            environ = dict.fromkeys(known.key_names, "key")
            line = model_endpoint(load({"model": f"{name}/m"}, **environ).model, {})
            url, headers = line.codec.target(line.endpoint)
            assert url.startswith(known.base_url)
            assert any("key" in value.split() for _, value in headers)


def test_the_example_in_the_readme_is_valid(load):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    text = re.search(r"```toml\n(.*?)```", readme, re.DOTALL)[1]
    model = load({"model": "work/claude-opus-5-5"}, text, **{"WORK_TOKEN": "t"}).model
    assert (model.api, model.context_window, model.price.output) == ("anthropic_messages", 200_000, 20.0)
    assert model_endpoint(model, {}).codec.profile.keys == "bearer"


def test_a_small_model_is_resolved_like_a_fallback(load):
    options = {"model": "anthropic/claude-opus-5-5", "small_model": "openai/gpt-5.5"}
    settings = load(options)
    assert (settings.small.provider, settings.small.api, settings.small.api_key) == ("openai", "openai_responses", "k")
    assert load({"model": "groq/a", "small_model": "b/c"}).small.name == "b/c"
    assert load({"model": "groq/a"}, "small_model = 'groq/b'").small.name == "b"
    assert load({"model": "groq/a"}, BRADAWL_SMALL_MODEL="groq/b").small.name == "b"
    assert load({"model": "groq/a"}).small is None


def test_an_unusable_small_model_is_an_error_at_the_start(load):
    with pytest.raises(SettingsError, match="--small-model names no model"):
        load({"model": "groq/a", "small_model": "deepseek/"})
    settings = load({"model": "groq/a", "small_model": "groq/a"})
    assert settings.small is None and "--small-model is ignored" in settings.warnings[0]


def test_a_project_may_not_choose_a_small_model(load):
    settings = load({"model": "groq/a"}, "", "small_model = 'openai/b'")
    assert settings.small is None and "is ignored" in settings.warnings[0]


async def test_a_small_model_is_built_and_closed_with_its_agent(load):
    agent = build_agent(load({"model": "groq/a", "small_model": "groq/b", "fallback_model": "groq/c"}))
    assert agent.small_model.info.origin.model == "b" and agent.model.info.origin.model == "a"
    await agent.aclose()
    assert build_agent(load({"model": "groq/a"})).small_model is None


def test_the_ask_user_tool_exists_only_in_interactive_runs(load):
    settings = load({"model": "groq/a"})
    assert "ask_user" in [tool.spec.name for tool in build_agent(settings, ScriptedApprover()).tools]
    assert "ask_user" not in [tool.spec.name for tool in build_agent(settings).tools]
    assert "ask_user" not in [tool.spec.name for tool in build_agent(load({"headless": True, "model": "groq/a"})).tools]
