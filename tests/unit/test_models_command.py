"""`bradawl models`: configured providers, whether they answer, their models and prices; never a key."""

import io
import json

import pytest
from cli_world import World
from hypothesis import given
from hypothesis import strategies as st
from settings_files import SECRET

from bradawl.app.cli import parse, run
from bradawl.app.console import Console
from bradawl.app.model_list import ListedModel
from bradawl.app.models_command import Status, overview_lines, query_providers
from bradawl.app.settings.load import read_settings
from bradawl.app.terminal_size import ONE_LINE
from bradawl.app.text_layout import cells
from bradawl.core.usage import Price
from bradawl.providers.catalog import Catalog
from bradawl.testing.fake_http import Cut, Reply, ScriptedHttp

LIST = {"object": "list", "data": [{"id": "gpt-5.5", "object": "model"}, {"id": "unheard-of"}, {"id": 3}, "x"]}


def body(value):
    return Reply(chunks=(json.dumps(value).encode(),))


@pytest.fixture
def ask(user_home):
    """Queries the providers of a user with this file; `answer` maps a request to a reply."""

    async def ask(answer, text="", wanted=None, **environ):
        (user_home / ".config" / "bradawl" / "config.toml").write_text(text)
        given = read_settings({}, {"HOME": str(user_home), **environ}, str(user_home)).given
        made = []

        def connect(proxy, ca_file):
            made.append(ScriptedHttp(answer))
            return made[-1]

        statuses = await query_providers(given, Catalog(), connect, wanted)
        assert all(http.is_closed and not http.open for http in made)
        ask.requests = [request for http in made for request in http.requests]
        return {status.name: status for status in statuses}

    return ask


def of_host(**hosts):
    """Answers by a part of the host name; all other hosts refuse the connection."""

    def answer(request):
        host = request.url.split("/")[2]
        return next((reply for name, reply in hosts.items() if name in host), Cut())

    return answer


async def test_a_provider_with_a_key_is_asked_for_its_models(ask):
    status = (await ask(of_host(openai=body(LIST)), OPENAI_API_KEY=SECRET))["openai"]
    assert (status.reachable, status.key, status.api) == (True, "OPENAI_API_KEY", "openai_responses")
    assert [model.name for model in status.models] == ["gpt-5.5", "unheard-of"]
    assert status.models[0].context_window == 1_000_000
    assert status.models[0].price.output == 30.0
    assert status.models[1].price is None
    (request,) = [request for request in ask.requests if "openai" in request.url]
    assert (request.method, request.url) == ("GET", "https://api.openai.com/v1/models")
    assert dict(request.headers)["authorization"] == f"Bearer {SECRET}"


async def test_every_api_is_asked_at_its_own_url_with_its_own_header(ask):
    text = "[providers.mine]\nbase_url = 'https://mine.example/v1'\n"
    await ask(lambda request: body(LIST), text, ANTHROPIC_API_KEY="a", MINE_API_KEY="m")
    sent = {request.url: dict(request.headers) for request in ask.requests}
    assert sent["https://api.anthropic.com/v1/models"]["x-api-key"] == "a"
    assert sent["https://mine.example/v1/models"]["authorization"] == "Bearer m"


async def test_only_configured_providers_are_asked(ask):
    statuses = await ask(of_host(groq=body(LIST)), GROQ_API_KEY="g")
    assert set(statuses) == {"groq"}
    assert {request.url.split("/")[2] for request in ask.requests if "127.0.0.1" not in request.url} == {"api.groq.com"}


async def test_the_users_own_table_counts_as_configured_also_without_a_key(ask):
    status = (await ask(lambda request: Cut(), "[providers.acme]\nbase_url = 'https://acme.example/v1'\n"))["acme"]
    assert not status.reachable
    assert "set ACME_API_KEY" in status.problem


async def test_the_window_and_price_of_a_server_are_shown_unless_the_user_sets_others(ask):
    entry = {
        "id": "vendor/model",
        "context_length": 5000,
        "top_provider": {"max_completion_tokens": 9},
        "pricing": {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000001"},
    }
    reply = body({"data": [entry, {**entry, "id": "auto", "pricing": {"prompt": "-1", "completion": "-1"}}]})
    model, auto = (await ask(of_host(openrouter=reply), OPENROUTER_API_KEY="k"))["openrouter"].models
    assert (model.context_window, model.price) == (5000, Price(2.0, 10.0, 0.1))
    assert auto.price is None
    text = '[models."openrouter/vendor/model"]\ncontext_window = 7\nprice = {input = 1, output = 1}\n'
    model = (await ask(of_host(openrouter=reply), text, OPENROUTER_API_KEY="k"))["openrouter"].models[0]
    assert (model.context_window, model.price) == (7, Price(1.0, 1.0))


async def test_a_known_model_at_another_url_has_an_assumed_window_and_no_price(ask):
    moved = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    status = (await ask(lambda request: body(LIST) if ":9/" in request.url else Cut(), **moved))["openai"]
    known, unheard = status.models
    assert (known.context_window, known.is_window_assumed, known.price) == (1_000_000, True, None)
    assert (unheard.context_window, unheard.is_window_assumed) == (None, False)
    shown = overview_lines((status,), 80, everything=True)
    assert any("1M?" in line for line in shown) and shown[-1].startswith("? is assumed")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Cut(), "cuts the exchange"),
        (Cut("timeout"), "cuts the exchange"),
        (Reply(401, (b'{"error": {"message": "Incorrect API key provided: ' + SECRET.encode() + b'"}}',)), "Incorrect"),
        (Reply(500, (b"<html>oops</html>",)), "oops"),
        (Reply(302, (b"",), (("location", "https://elsewhere.example"),)), ""),
        (Reply(204, ()), ""),
        (Reply(chunks=(b"<html>",)), "not JSON"),
        (Reply(chunks=(b"",)), "not JSON"),
        (Reply(chunks=(b"[" * 200_000,)), "not JSON"),
        (Reply(chunks=(b'{"data": {}}',)), "not a list of models"),
        (Reply(chunks=(b'"models"',)), "not a list of models"),
        (Reply(chunks=(b'{"data": [', Cut())), "cuts the exchange"),
    ],
)
async def test_an_invalid_answer_of_a_provider_is_a_problem_in_one_line(ask, reply, problem):
    statuses = await ask(of_host(openai=reply, groq=body(LIST)), OPENAI_API_KEY=SECRET, GROQ_API_KEY="g")
    assert not statuses["openai"].reachable
    assert problem in statuses["openai"].problem
    assert SECRET not in statuses["openai"].problem
    assert "\n" not in statuses["openai"].problem
    assert statuses["groq"].reachable


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_an_endpoint_without_a_list_of_models_still_answers(ask, status):
    found = (await ask(of_host(openai=Reply(status, (b"not found",))), OPENAI_API_KEY=SECRET))["openai"]
    assert (found.reachable, found.models) == (True, ())
    assert f"HTTP {status}" in found.problem and "base URL" in found.problem
    assert "no list of models" in overview_lines((found,), 80, everything=False)[0]


async def test_a_stored_key_is_not_sent_to_another_base_url(ask, user_home):
    credentials = user_home / ".config" / "bradawl" / "credentials.toml"
    credentials.write_text(f'[openai]\napi_key = "{SECRET}"')
    credentials.chmod(0o600)
    moved = (await ask(lambda request: body(LIST), OPENAI_BASE_URL="https://gateway.example/v1"))["openai"]
    assert "is not sent to https://gateway.example" in moved.problem
    assert [request for request in ask.requests if "gateway" in request.url] == []
    assert (await ask(of_host(openai=body(LIST))))["openai"].reachable


async def test_the_key_of_a_command_is_used(ask):
    text = f"[providers.acme]\nbase_url = 'https://acme.example/v1'\napi_key_command = 'echo {SECRET}'\n"
    status = (await ask(of_host(acme=body(LIST)), text, PATH="/usr/bin:/bin"))["acme"]
    assert (status.reachable, status.key) == (True, "api_key_command")
    (request,) = [request for request in ask.requests if "acme" in request.url]
    assert dict(request.headers)["authorization"] == f"Bearer {SECRET}"
    failed = await ask(of_host(acme=body(LIST)), text.replace(f"echo {SECRET}", f"echo {SECRET}; exit 4"), PATH="/bin")
    assert "exit code 4" in failed["acme"].problem


async def test_a_local_server_is_found_with_its_models(ask):
    def answer(request):
        return (
            body({"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 32}]})
            if ":8000" in request.url
            else Cut()
        )

    status = (await ask(answer))["vllm"]
    assert (status.source, status.reachable, status.models[0].name) == ("found", True, "qwen")


async def test_one_provider_can_be_asked_alone(ask):
    statuses = await ask(lambda request: body(LIST), wanted="groq", OPENAI_API_KEY="k", GROQ_API_KEY="g")
    assert set(statuses) == {"groq"}
    assert len(ask.requests) == 1


# ------------------------------------------------------------------ the command


def command(argv, environ):
    stdin, stdout, stderr = io.StringIO(), io.StringIO(), io.StringIO()
    code = run(argv, environ, Console(stdin, stdout, stderr, environ))
    return code, stdout.getvalue(), stderr.getvalue()


def test_the_overview_of_a_real_server_has_short_lines_and_no_key(user_home, wire_server):
    environ = {"HOME": str(user_home), "OPENAI_BASE_URL": wire_server.base_url, "OPENAI_API_KEY": SECRET}
    code, shown, _ = command(["models", "openai"], environ)
    assert code == 0
    assert "openai: ok, 1 model, key from OPENAI_API_KEY" in shown
    assert wire_server.base_url in shown
    assert SECRET not in shown
    assert max(map(len, shown.splitlines())) <= 100


NAME = st.text(st.sampled_from("ab/-:日é"), min_size=1, max_size=70)
MODEL = st.builds(
    ListedModel,
    name=NAME,
    context_window=st.none() | st.just(1_050_000),
    max_output=st.none() | st.just(128_000),
    price=st.none() | st.just(Price(5, 30, 0.5)),
    is_hourly=st.booleans(),
)
STATUS = st.builds(
    Status,
    name=st.just("openrouter"),
    base_url=st.just("https://openrouter.example/v1"),
    api=st.just("openai_chat"),
    key=st.sampled_from(["", "OPENROUTER_API_KEY", "/home/someone/.config/bradawl/credentials.toml"]),
    reachable=st.booleans(),
    problem=st.sampled_from(["", "it answers, but has no list of models there (HTTP 404); " * 3]),
    models=st.lists(MODEL, max_size=14).map(tuple),
    source=st.sampled_from(["settings", "found"]),
)


@given(st.lists(STATUS, max_size=3), st.sampled_from([40, 60, 80, 120]), st.booleans())
def test_no_line_of_the_overview_is_too_wide_and_nothing_is_cut(statuses, width, everything):
    lines = overview_lines(statuses, width, everything=everything)
    assert max(map(cells, lines), default=0) <= width
    words = [line.split() for line in overview_lines(statuses, ONE_LINE, everything=everything)]
    long = [word for line in words for word in line if cells(word) > width - 4]
    shown = {word for line in lines for word in line.split()}
    for status in statuses:
        names = [model.name for model in status.models] if everything else []
        assert all(name in shown or name in long for name in names)
        assert all(word in shown or word in long for word in status.problem.split())


def test_a_pipe_gets_one_line_for_each_model_with_its_whole_name():
    name = "vendor/" + "very-long-name-" * 9
    status = Status(
        "lab", "http://lab.example/v1", "openai_chat", "", True, models=(ListedModel(name), ListedModel("b"))
    )
    lines = overview_lines((status,), ONE_LINE, everything=True)
    assert [line.split()[0] for line in lines[3:5]] == [name, "b"]


def test_the_overview_as_json_has_no_key(user_home, wire_server):
    environ = {"HOME": str(user_home), "OPENAI_BASE_URL": wire_server.base_url, "OPENAI_API_KEY": SECRET}
    code, shown, _ = command(["models", "openai", "--json"], environ)
    report = json.loads(shown)
    assert code == 0
    assert report["providers"][0]["reachable"] is True
    assert report["catalog_date"] == Catalog().source.date
    assert SECRET not in shown


def test_without_a_usable_provider_the_exit_code_is_1(user_home):
    text = "[providers.acme]\nbase_url = 'http://127.0.0.1:9/v1'\n"
    (user_home / ".config" / "bradawl" / "config.toml").write_text(text)
    code, shown, _ = command(["models", "acme"], {"HOME": str(user_home)})
    assert code == 1
    assert "acme: not usable" in shown


def test_a_credentials_file_that_others_can_read_is_one_warning(user_home, wire_server):
    path = user_home / ".config" / "bradawl" / "credentials.toml"
    path.write_text("")
    path.chmod(0o644)
    environ = {"HOME": str(user_home), "OPENAI_BASE_URL": wire_server.base_url, "OPENAI_API_KEY": SECRET}
    code, _, stderr = command(["models", "openai"], environ)
    assert code == 0
    assert stderr.count("chmod 600") == 1


def test_an_unknown_provider_is_wrong_usage(user_home):
    code, _, stderr = command(["models", "opnai"], {"HOME": str(user_home)})
    assert code == 2
    assert "openai" in stderr


@pytest.mark.parametrize(("name", "is_known"), [("claude-sonet-5-5", False), ("claude-sonnet-5-5", True)])
def test_a_run_with_a_name_that_the_catalog_lacks_says_so(user_home, name, is_known):
    world = World(user_home, [{"text": "Done."}])
    world.environ["ANTHROPIC_API_KEY"] = SECRET
    assert world.run("-p", "hello", "-m", f"anthropic/{name}") == 0
    assert ("is not among the known models of anthropic" in world.err) == (not is_known)
    assert ("Did you mean anthropic/claude-sonnet-5-5" in world.err) == (not is_known)


@pytest.fixture
def wire_server():
    from bradawl.testing.server import serve_in_thread

    with serve_in_thread([{"text": "Done."}]) as server:
        yield server


@pytest.mark.parametrize(
    ("argv", "is_command"),
    [
        (["models"], True),
        (["models", "--json"], True),
        (["models", "openai"], True),
        (["models", "openai", "--base-url", "http://h"], True),
        (["models", "are", "slow"], False),
        (["-p", "models"], False),
        (["-m", "models"], False),
        (["doctor"], True),
        (["doctor", "--json", "-m", "openai/x", "-C", "/"], True),
        (["doctor", "who"], False),
    ],
)
def test_a_command_name_followed_by_other_words_is_a_prompt(argv, is_command):
    assert ("command" in parse(argv)) == is_command


@pytest.mark.parametrize("name", ["models", "doctor"])
def test_the_commands_own_help_is_shown(name):
    code, shown, _ = command([name, "--help"], {})
    assert code == 0
    assert "--json" in shown


def test_an_option_the_command_does_not_have_is_wrong_usage():
    code, _, stderr = command(["models", "--yolo"], {})
    assert code == 2
    assert "--yolo" in stderr


def test_doctor_is_run_by_its_name(user_home, wire_server):
    environ = {
        "HOME": str(user_home),
        "OPENAI_BASE_URL": wire_server.base_url,
        "OPENAI_API_KEY": SECRET,
        "PATH": "/bin",
    }
    _, shown, _ = command(["doctor", "--json"], environ)
    names = [check["name"] for check in json.loads(shown)["checks"]]
    assert {"version", "model", "endpoint"} <= set(names)
    assert SECRET not in shown


def test_without_settings_the_error_suggests_the_local_server_that_runs(user_home, wire_server):
    place = wire_server.base_url.removeprefix("http://").removesuffix("/v1")
    code, _, stderr = command(["-p", "hello"], {"HOME": str(user_home), "OLLAMA_HOST": place})
    assert code == 2
    assert "No model is chosen" in stderr
    assert f"\n  bradawl -m openai/scripted --base-url {wire_server.base_url}" in stderr
