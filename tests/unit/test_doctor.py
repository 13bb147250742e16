"""`bradawl doctor`, warnings about a small context window, and suggestions for a user without settings."""

import asyncio
import io
import json
from types import SimpleNamespace

import pytest

from bradawl.app.build.agent import build_agent
from bradawl.app.console import Console
from bradawl.app.context_window import WindowWatch, longer_context
from bradawl.app.doctor.command import diagnose, run_doctor
from bradawl.app.doctor.permissions import network_checks
from bradawl.app.local_models import suggestions
from bradawl.core.deltas import TextDelta
from bradawl.core.errors import SessionError
from bradawl.core.events import Envelope, Live, RequestParams, RequestSent
from bradawl.core.messages import Origin
from bradawl.core.permissions import Policy, Sandbox
from bradawl.core.ports import ModelInfo, Window
from bradawl.folds.session_state import SessionState
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import Verdict, parse_rule
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp

SECRET = "sk-" + "doctor-0123456789abcdef"


@pytest.fixture
def examine(user_home):
    """Runs the checks for a user with these settings, on scripted servers."""

    async def examine(options=None, answer=lambda _: Cut(), window=None, **environ):
        made = []

        def connect(proxy, ca_file):
            made.append(ScriptedHttp(answer))
            return made[-1]

        def build(settings, tell):
            agent = build_agent(settings, notify=tell)
            model = SimpleNamespace(window=lambda: _ready(window)) if window else agent.model
            return SimpleNamespace(
                system_prompt=agent.system_prompt,
                tools=agent.tools,
                model=model,
                aclose=agent.aclose,
                policy=agent.policy,
            )

        environ = {"HOME": str(user_home), "PATH": "/usr/bin:/bin", **environ}
        found = await diagnose(options or {}, environ, str(user_home), connect, build)
        assert all(http.is_closed and not http.open for http in made)
        return found

    return examine


async def _ready(value):
    return value


def states(diagnosis):
    return {check.name: check.state for check in diagnosis.checks}


def texts(diagnosis):
    return "\n".join(f"{check.name}: {check.text} | {check.hint}" for check in diagnosis.checks)


def serving(*models, owner="library", port=11434):
    """Answers of one server on this machine; every other address refuses the connection."""
    entries = [{"id": model, "owned_by": owner} for model in models]

    def answer(request):
        if f":{port}/v1/models" in request.url:
            return Reply(200, (json.dumps({"object": "list", "data": entries}).encode(),))
        if f":{port}/api/tags" in request.url:
            return Reply(200, (json.dumps({"models": [{"name": model} for model in models]}).encode(),))
        return Reply(404) if f":{port}/" in request.url else Cut()

    return answer


async def test_without_settings_doctor_names_a_local_server_and_the_command_that_uses_it(examine):
    found = await examine(answer=serving("qwen3:8b"))
    assert not found.healthy
    assert states(found)["model"] == "problem" and "settings" not in states(found)
    assert "bradawl -m ollama/qwen3:8b" in texts(found) and "Ollama can be used at once" in texts(found)
    assert "No provider" not in texts(found), "the server that answers is one"
    assert [server.kind for server in found.local_servers] == ["ollama"]


async def test_doctor_says_that_no_local_server_runs(examine):
    found = await examine()
    assert found.local_servers == ()
    assert "settings: No provider is set up" in texts(found)
    assert "local server: none of Ollama" in texts(found)


async def test_a_model_that_answers_and_has_a_large_context_is_healthy(examine):
    found = await examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(32_768, "server"))
    assert found.healthy, texts(found)
    assert {name: states(found)[name] for name in ("model", "key", "endpoint", "context")} == dict.fromkeys(
        ("model", "key", "endpoint", "context"), "ok"
    )


async def test_a_single_model_is_counted_in_the_singular(examine):
    found = await examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(32_768, "server"))
    assert "with 1 model |" in texts(found)


async def test_a_context_too_short_for_prompt_and_tools_is_a_problem_with_its_remedy(examine):
    found = await examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(2_048, "server"))
    assert (found.healthy, states(found)["context"]) == (False, "problem")
    assert "OLLAMA_CONTEXT_LENGTH=16384 ollama serve" in texts(found)


async def test_an_assumed_context_length_is_a_warning_for_a_local_server_only(examine):
    local = await examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(32_000, "assumed"))
    assert (local.healthy, states(local)["context"]) == (True, "warning")
    assert "--context-window" in texts(local)
    remote = await examine({"model": "groq/x"}, lambda _: Reply(404), Window(32_000, "assumed"), GROQ_API_KEY=SECRET)
    assert states(remote)["context"] == "ok"


async def test_an_endpoint_that_refuses_is_a_problem(examine):
    found = await examine({"model": "ollama/qwen3:8b"}, window=Window(32_768, "settings"))
    assert (found.healthy, states(found)["endpoint"]) == (False, "problem")


async def test_a_server_that_lists_no_models_is_a_warning_and_no_problem(examine):
    found = await examine({"model": "groq/x"}, lambda _: Reply(404, (b"nothing here",)), GROQ_API_KEY=SECRET)
    assert (found.healthy, states(found)["endpoint"]) == (True, "warning")
    assert "''" not in texts(found)


async def test_a_model_that_the_server_does_not_list_is_a_warning(examine):
    found = await examine({"model": "ollama/other"}, serving("qwen3:8b"), Window(32_768, "server"))
    assert states(found)["endpoint"] == "warning"
    assert "qwen3:8b" in texts(found)


async def test_keys_are_named_by_their_variable_and_never_shown(examine):
    found = await examine(
        {"model": "deepseek/deepseek-chat"},
        lambda _: Reply(401, (json.dumps({"error": {"message": f"bad key {SECRET}"}}).encode(),)),
        Window(128_000, "assumed"),
        DEEPSEEK_API_KEY=SECRET,
    )
    assert "DEEPSEEK_API_KEY" in texts(found)
    assert SECRET not in texts(found)
    assert SECRET not in repr(found)
    assert states(found)["endpoint"] == "problem"


async def test_a_settings_file_that_cannot_be_read_is_a_problem(examine, user_home):
    (user_home / ".config" / "bradawl" / "config.toml").write_text("model = ")
    found = await examine()
    assert states(found)["settings"] == "problem"
    assert "config.toml" in texts(found)


async def test_a_folder_that_cannot_be_written_is_a_problem(examine, user_home):
    blocked = user_home / "file"
    blocked.write_text("")
    found = await examine(BRADAWL_HOME=str(blocked / "below"))
    assert states(found)["sessions"] == "problem"


async def test_a_missing_program_is_reported_with_a_remedy(examine, user_home):
    found = await examine(PATH=str(user_home))
    assert states(found)["bash"] == "problem"
    assert "Install git" in texts(found)


@pytest.mark.parametrize("as_json", [False, True])
def test_doctor_prints_text_or_one_json_object_that_agrees_with_the_exit_code(user_home, as_json):
    out = io.StringIO()
    environ = {"HOME": str(user_home), "PATH": "/usr/bin:/bin", "COLUMNS": "100"}
    console = Console(io.StringIO(), out, io.StringIO(), environ)
    code = run_doctor({"json": as_json, "model": f"scripted/{user_home}/none.json"}, environ, console, str(user_home))
    if as_json:
        assert json.loads(out.getvalue())["healthy"] is (code == 0)
    else:
        assert all(len(line) <= 100 for line in out.getvalue().splitlines() if "/" not in line)
        assert out.getvalue().startswith("ok       version")


# ------------------------------------------------------------------ suggestions


def test_suggestions_are_commands_with_the_best_models_first():
    server = LocalServer(
        "ollama",
        "http://127.0.0.1:11434/v1",
        (
            LocalModel("chatty", has_tools=False),
            LocalModel("cold", has_tools=True),
            LocalModel("warm", 8192, has_tools=True),
        ),
    )
    lines = suggestions([server])
    assert [line.split()[2] for line in lines[1:]] == ["ollama/warm", "ollama/cold", "ollama/chatty"]
    assert "not made for tools" in lines[-1]


def test_a_server_on_another_port_is_named_by_its_url():
    lines = suggestions([LocalServer("vllm", "http://127.0.0.1:9999/v1", (LocalModel("Qwen/Q"),))])
    assert lines[1].strip() == "bradawl -m vllm/Qwen/Q --base-url http://127.0.0.1:9999/v1"
    other = suggestions([LocalServer("other", "http://127.0.0.1:7777/v1", (LocalModel("m"),))])
    assert other[1].strip() == "bradawl -m openai/m --base-url http://127.0.0.1:7777/v1"


def test_a_server_without_models_is_mentioned_and_no_server_gives_no_suggestion():
    assert suggestions([]) == ()
    (line,) = suggestions([LocalServer("ollama", "http://127.0.0.1:11434/v1")])
    assert "no models" in line


# ------------------------------------------------------------------ warnings about the context window


class CountingModel:
    """A model whose server reports its window; counts how often it is asked."""

    def __init__(self, tokens, source="server", provider="ollama"):
        self.info = ModelInfo(Origin("openai_chat", provider, "qwen3:8b"))
        self.asked = 0
        self._window = Window(tokens, source)

    async def window(self):
        self.asked += 1
        return self._window


def envelope(event):
    return Envelope(1, 0, 0, "main", event)


async def watched(model, *, estimated, is_local=True, fails=False):
    warnings, seen = [], []

    async def turn(emit):
        emit(envelope(RequestSent(1, "hash", RequestParams(), estimated_tokens=estimated)))
        emit(Live("main", 1, TextDelta(0, "Hi")))
        for _ in range(5):
            await asyncio.sleep(0)
        if fails:
            raise SessionError("gone")
        return "done"

    watch = WindowWatch(model, is_local=is_local, from_tokens=16_000)
    result = await watch.during(turn, seen.append, warnings.append)
    assert len(seen) == 2
    return result, warnings


async def test_a_window_smaller_than_the_first_request_is_a_warning_while_the_turn_runs():
    result, warnings = await watched(CountingModel(4_096), estimated=5_500)
    assert result == "done"
    assert len(warnings) == 1
    assert "4,096" in warnings[0] and "OLLAMA_CONTEXT_LENGTH=16384" in warnings[0]


async def test_a_window_that_is_large_enough_or_only_assumed_is_no_warning():
    for model in (CountingModel(32_768), CountingModel(4_096, "assumed")):
        _, warnings = await watched(model, estimated=5_500)
        assert warnings == []


async def test_a_remote_model_is_not_asked_for_its_window():
    model = CountingModel(4_096)
    assert await watched(model, estimated=5_500, is_local=False) == ("done", [])
    assert model.asked == 0


async def test_errors_of_a_turn_are_raised_unchanged():
    with pytest.raises(SessionError, match="gone"):
        await watched(CountingModel(32_768), estimated=10, fails=True)


def state_of(counted, estimated):
    state = SessionState()
    state.context_tokens, state.estimated_tokens, state.is_anchored = counted, estimated, True
    return state


@pytest.mark.parametrize(
    ("counted", "estimated", "is_local", "is_warned"),
    [
        (4_096, 12_000, True, True),
        (9_000, 12_000, True, False),
        (4_096, 12_000, False, False),
        (300, 1_000, True, False),
        (0, 12_000, True, False),
    ],
)
async def test_a_prompt_that_the_server_cut_silently_is_one_warning(counted, estimated, is_local, is_warned):
    watch = WindowWatch(CountingModel(32_768), is_local=is_local, from_tokens=16_000)
    warning = await watch.after_turn(state_of(counted, estimated))
    assert (warning is not None) is is_warned
    assert (await watch.after_turn(state_of(counted, estimated))) is None


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "llamacpp", "vllm", "sglang", "mine"])
def test_the_remedy_names_a_context_length_that_is_large_enough(provider):
    assert "32768" in longer_context(provider, "m", 12_000)


# ------------------------------------------------------------------ the user's own tools

TOOL = (
    "from bradawl import tool\n@tool(read_only=True)\ndef {name}(word: str) -> str:\n    'Say it.'\n    return word\n"
)


@pytest.fixture
def scripted(user_home):
    """A model that needs no server."""
    (user_home / "script.json").write_text('[{"text": "Done."}]')
    return f"scripted/{user_home}/script.json"


@pytest.mark.parametrize("folder", [".config/bradawl/tools", ".local/share/bradawl/tools"])
async def test_tools_beside_the_settings_and_in_the_data_folder_are_listed_and_broken_ones_told(
    user_home, examine, scripted, folder
):
    (user_home / folder).mkdir(parents=True)
    (user_home / folder / "mine.py").write_text(TOOL.format(name="say_it"))
    (user_home / folder / "broken.py").write_text("1 / 0\n")
    found = texts(await examine({"model": scripted}))
    folders = f"{user_home}/.config/bradawl/tools and {user_home}/.local/share/bradawl/tools"
    assert f"user tools: say_it; looked for in {folders}, and" in found
    assert f"{folder}/broken.py are left out: ZeroDivisionError: division by zero (line 1)." in found


async def test_without_user_tools_their_folders_are_named(user_home, examine, scripted):
    assert f"user tools: none; looked for in {user_home}/own/tools, and" in texts(
        await examine({"model": scripted}, BRADAWL_HOME=f"{user_home}/own")
    )
    assert "user tools: left out" in texts(await examine({"model": scripted, "user_tools": False}))


# ------------------------------------------------------------------ rules about hosts


def test_the_rules_about_hosts_are_listed_with_their_sources():
    def rules(text: str, verdict: Verdict, source: str):
        return parse_rule(text, verdict, source, Bases("/", "/home/u", "/ws"))

    given = (
        *rules("a.example", "domain", "config.toml: network"),
        *rules("b.example", "domain", "config.toml: network"),
        *rules("Network(c.example)", "allow", "permissions/ws.toml"),
        *rules("npm ci", "network", "managed.toml: network_commands"),
        *rules("WebFetch(domain:evil.example)", "deny", "--disallowed-tools"),
        *rules("Network(odd.example)", "ask", "config.toml: permissions.ask"),
    )
    checks = network_checks(Policy("auto", rules=given, sandbox=Sandbox("bubblewrap")))
    assert [(check.name, check.state, check.text) for check in checks] == [
        (
            "network",
            "ok",
            "commands reach without a question: a.example, b.example (config.toml: network); Network(c.example) "
            "(permissions/ws.toml); any host for `npm ci` (managed.toml: network_commands)",
        ),
        ("network", "ok", "always asked about: Network(odd.example) (config.toml: permissions.ask)"),
        ("network", "ok", "refused: WebFetch(domain:evil.example) (--disallowed-tools)"),
    ]


def test_a_sandbox_that_can_not_limit_hosts_is_named():
    (check,) = network_checks(Policy("auto", sandbox=Sandbox("landlock", ("domains",))))
    assert check.state == "warning" and "can't limit the network to domains" in check.text
    (check,) = network_checks(Policy("auto", sandbox=Sandbox("bubblewrap")))
    assert check.text == "commands reach no host without a question"


async def test_domains_of_the_settings_and_of_presets_are_examined(examine, user_home):
    variables = {"CARGO_REGISTRIES_MINE_INDEX": "https://crates.corp/", "CARGO_HOME": "/dev/null/none"}
    found = await examine({"network": ["cargo", "a.example"]}, BRADAWL_MODEL="ollama/x", **variables)
    assert "crates.corp (--network, preset cargo); a.example (--network)" in texts(found)
    assert "the default index of cargo is not known" in texts(found)


async def test_the_rules_about_hosts_are_listed_without_a_provider(examine):
    found = await examine(BRADAWL_NETWORK="docs.example.org", BRADAWL_SANDBOX="off")
    assert states(found)["settings"] == "problem"
    assert "network: commands reach without a question: docs.example.org (" in texts(found)


async def test_no_rules_are_listed_if_the_settings_can_not_be_read(examine):
    found = await examine(BRADAWL_NETWORK="https://docs.example.org")
    assert states(found)["settings"] == "problem" and "network" not in states(found)
    assert "it is a URL" in texts(found)


def test_a_host_of_one_label_is_pointed_out_because_it_may_be_meant_as_a_preset():
    def listed(*texts: str) -> list[str]:
        given = tuple(rule for text in texts for rule in parse_rule(text, "domain", "x", Bases("/", "/home/u", "/ws")))
        return [check.text for check in network_checks(Policy(rules=given)) if check.state == "warning"]

    assert listed("docker", "nas:8080") == [
        "docker, nas:8080: a host of your own network and no preset; docs/permissions.md lists the presets"
    ]
    assert listed("docs.example.org", "*.example.net") == []
