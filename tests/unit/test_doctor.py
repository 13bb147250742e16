"""`bradawl doctor`, the watch over the window, and what is suggested to somebody who has set up nothing."""

import asyncio
import io
import json
from types import SimpleNamespace

import pytest

from bradawl.app.build.agent import build_agent
from bradawl.app.console import Console
from bradawl.app.context_window import WindowWatch, longer_context
from bradawl.app.doctor import diagnose, run_doctor
from bradawl.app.local_models import suggestions
from bradawl.core.deltas import TextDelta
from bradawl.core.errors import SessionError
from bradawl.core.events import Envelope, Live, RequestParams, RequestSent
from bradawl.core.messages import Origin
from bradawl.core.ports import ModelInfo, Window
from bradawl.folds.session_state import SessionState
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp

SECRET = "sk-" + "doctor-0123456789abcdef"


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".config" / "bradawl").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def examine(home):
    """What is found for a user with these settings when servers answer so, by check."""

    def examine(options=None, answer=lambda _: Cut(), window=None, **environ):
        made = []

        def connect(proxy, ca_file):
            made.append(ScriptedHttp(answer))
            return made[-1]

        def build(settings, tell):
            agent = build_agent(settings, tell=tell)
            model = SimpleNamespace(window=lambda: _ready(window)) if window else agent.model
            return SimpleNamespace(
                system_prompt=agent.system_prompt,
                tools=agent.tools,
                model=model,
                aclose=agent.aclose,
                policy=agent.policy,
            )

        environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", **environ}
        found = asyncio.run(diagnose(options or {}, environ, str(home), connect, build))
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
    """One server on this machine and nothing else."""
    entries = [{"id": model, "owned_by": owner} for model in models]

    def answer(request):
        if f":{port}/v1/models" in request.url:
            return Reply(200, (json.dumps({"object": "list", "data": entries}).encode(),))
        if f":{port}/api/tags" in request.url:
            return Reply(200, (json.dumps({"models": [{"name": model} for model in models]}).encode(),))
        return Reply(404) if f":{port}/" in request.url else Cut()

    return answer


def test_with_nothing_set_up_it_says_what_runs_here_and_what_to_type(examine):
    found = examine(answer=serving("qwen3:8b"))
    assert not found.healthy
    assert states(found)["settings"] == "problem"
    assert "bradawl -m ollama/qwen3:8b" in texts(found)
    assert [server.kind for server in found.local_servers] == ["ollama"]


def test_that_no_server_runs_here_is_said_too(examine):
    found = examine()
    assert found.local_servers == ()
    assert "local server: none of Ollama" in texts(found)


def test_a_model_that_answers_and_has_room_is_healthy(examine):
    found = examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(32_768, "server"))
    assert found.healthy, texts(found)
    assert {name: states(found)[name] for name in ("model", "key", "endpoint", "context")} == dict.fromkeys(
        ("model", "key", "endpoint", "context"), "ok"
    )


def test_one_model_is_one_model(examine):
    found = examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(32_768, "server"))
    assert "with 1 model |" in texts(found)


def test_a_context_too_short_for_prompt_and_tools_is_a_problem_with_its_remedy(examine):
    found = examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(2_048, "server"))
    assert (found.healthy, states(found)["context"]) == (False, "problem")
    assert "OLLAMA_CONTEXT_LENGTH=16384 ollama serve" in texts(found)


def test_a_context_nobody_tells_is_worth_a_note_on_this_machine_only(examine):
    local = examine({"model": "ollama/qwen3:8b"}, serving("qwen3:8b"), Window(32_000, "assumed"))
    assert (local.healthy, states(local)["context"]) == (True, "warning")
    assert "--context-window" in texts(local)


def test_an_endpoint_that_refuses_is_a_problem(examine):
    found = examine({"model": "ollama/qwen3:8b"}, window=Window(32_768, "settings"))
    assert (found.healthy, states(found)["endpoint"]) == (False, "problem")


def test_a_server_that_lists_no_models_is_noted_and_no_problem(examine):
    found = examine({"model": "groq/x"}, lambda _: Reply(404, (b"nothing here",)), GROQ_API_KEY=SECRET)
    assert (found.healthy, states(found)["endpoint"]) == (True, "warning")
    assert "''" not in texts(found)


def test_a_model_the_server_does_not_list_is_noted(examine):
    found = examine({"model": "ollama/other"}, serving("qwen3:8b"), Window(32_768, "server"))
    assert states(found)["endpoint"] == "warning"
    assert "qwen3:8b" in texts(found)


def test_keys_are_named_by_where_they_are_and_never_shown(examine):
    found = examine(
        {"model": "deepseek/deepseek-chat"},
        lambda _: Reply(401, (json.dumps({"error": {"message": f"bad key {SECRET}"}}).encode(),)),
        Window(128_000, "assumed"),
        DEEPSEEK_API_KEY=SECRET,
    )
    assert "DEEPSEEK_API_KEY" in texts(found)
    assert SECRET not in texts(found)
    assert SECRET not in repr(found)
    assert states(found)["endpoint"] == "problem"


def test_a_settings_file_that_can_not_be_read_is_a_problem(examine, home):
    (home / ".config" / "bradawl" / "config.toml").write_text("model = ")
    found = examine()
    assert states(found)["settings"] == "problem"
    assert "config.toml" in texts(found)


def test_a_folder_that_can_not_be_written_is_a_problem(examine, home):
    blocked = home / "file"
    blocked.write_text("")
    found = examine(BRADAWL_HOME=str(blocked / "below"))
    assert states(found)["sessions"] == "problem"


def test_a_program_that_is_missing_is_told_with_what_to_do(examine, home):
    found = examine(PATH=str(home))
    assert states(found)["bash"] == "problem"
    assert "Install git" in texts(found)


@pytest.mark.parametrize("as_json", [False, True])
def test_it_prints_a_page_or_one_object_and_its_exit_code_follows(home, as_json):
    out = io.StringIO()
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    console = Console(io.StringIO(), out, io.StringIO(), environ)
    code = run_doctor({"json": as_json, "model": f"scripted/{home}/none.json"}, environ, console, str(home))
    if as_json:
        assert json.loads(out.getvalue())["healthy"] is (code == 0)
    else:
        assert all(len(line) <= 100 for line in out.getvalue().splitlines() if "/" not in line)
        assert out.getvalue().startswith("ok       version")


# ------------------------------------------------------------------ suggestions


def test_suggestions_are_commands_to_type_best_models_first():
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


def test_a_server_elsewhere_on_the_machine_is_named_by_its_url():
    lines = suggestions([LocalServer("vllm", "http://127.0.0.1:9999/v1", (LocalModel("Qwen/Q"),))])
    assert lines[1].strip() == "bradawl -m vllm/Qwen/Q --base-url http://127.0.0.1:9999/v1"
    other = suggestions([LocalServer("other", "http://127.0.0.1:7777/v1", (LocalModel("m"),))])
    assert other[1].strip() == "bradawl -m openai/m --base-url http://127.0.0.1:7777/v1"


def test_servers_without_models_are_told_and_nothing_found_says_nothing():
    assert suggestions([]) == ()
    (line,) = suggestions([LocalServer("ollama", "http://127.0.0.1:11434/v1")])
    assert "no models" in line


# ------------------------------------------------------------------ the watch


class AskedModel:
    """A model whose window is known to its server."""

    def __init__(self, tokens, source="server", provider="ollama"):
        self.info = ModelInfo(Origin("openai_chat", provider, "qwen3:8b"))
        self.asked = 0
        self._window = Window(tokens, source)

    async def window(self):
        self.asked += 1
        return self._window


def envelope(event):
    return Envelope(1, 0, 0, "main", event)


def watched(model, *, estimated, is_local=True, fails=False):
    told, seen = [], []

    async def turn(emit):
        emit(envelope(RequestSent(1, "hash", RequestParams(), estimated_tokens=estimated)))
        emit(Live("main", 1, TextDelta(0, "Hi")))
        for _ in range(5):
            await asyncio.sleep(0)
        if fails:
            raise SessionError("gone")
        return "done"

    watch = WindowWatch(model, is_local=is_local, from_tokens=16_000)
    result = asyncio.run(watch.during(turn, seen.append, told.append))
    assert len(seen) == 2
    return result, told


def test_a_window_smaller_than_the_first_request_is_told_while_the_turn_runs():
    result, told = watched(AskedModel(4_096), estimated=5_500)
    assert result == "done"
    assert len(told) == 1
    assert "4,096" in told[0] and "OLLAMA_CONTEXT_LENGTH=16384" in told[0]


def test_a_window_that_is_large_enough_or_only_assumed_is_not_told():
    assert watched(AskedModel(32_768), estimated=5_500)[1] == []
    assert watched(AskedModel(4_096, "assumed"), estimated=5_500)[1] == []


def test_a_model_elsewhere_is_not_asked():
    model = AskedModel(4_096)
    assert watched(model, estimated=5_500, is_local=False) == ("done", [])
    assert model.asked == 0


def test_errors_of_a_turn_come_through_as_they_are():
    with pytest.raises(SessionError, match="gone"):
        watched(AskedModel(32_768), estimated=10, fails=True)


def state_of(counted, estimated):
    state = SessionState()
    state.context_tokens, state.estimated_tokens, state.is_anchored = counted, estimated, True
    return state


@pytest.mark.parametrize(
    ("counted", "estimated", "is_local", "is_told"),
    [
        (4_096, 12_000, True, True),
        (9_000, 12_000, True, False),
        (4_096, 12_000, False, False),
        (300, 1_000, True, False),
        (0, 12_000, True, False),
    ],
)
async def test_a_prompt_that_was_cut_without_a_word_is_noticed(counted, estimated, is_local, is_told):
    watch = WindowWatch(AskedModel(32_768), is_local=is_local, from_tokens=16_000)
    warning = await watch.after_turn(state_of(counted, estimated))
    assert (warning is not None) is is_told
    assert (await watch.after_turn(state_of(counted, estimated))) is None


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "llamacpp", "vllm", "sglang", "mine"])
def test_the_remedy_names_a_length_that_leaves_room(provider):
    assert "32768" in longer_context(provider, "m", 12_000)


# ------------------------------------------------------------------ the user's own tools

TOOL = (
    "from bradawl import tool\n@tool(read_only=True)\ndef {name}(word: str) -> str:\n    'Say it.'\n    return word\n"
)


@pytest.fixture
def scripted(home):
    """A model that needs no server."""
    (home / "script.json").write_text('[{"text": "Done."}]')
    return f"scripted/{home}/script.json"


@pytest.mark.parametrize("folder", [".config/bradawl/tools", ".local/share/bradawl/tools"])
def test_tools_beside_the_settings_and_in_the_data_folder_are_listed_and_broken_ones_told(
    home, examine, scripted, folder
):
    (home / folder).mkdir(parents=True)
    (home / folder / "mine.py").write_text(TOOL.format(name="say_it"))
    (home / folder / "broken.py").write_text("1 / 0\n")
    found = texts(examine({"model": scripted}))
    folders = f"{home}/.config/bradawl/tools and {home}/.local/share/bradawl/tools"
    assert f"user tools: say_it; looked for in {folders}, and" in found
    assert f"{folder}/broken.py are left out: ZeroDivisionError: division by zero (line 1)." in found


def test_without_user_tools_their_folders_are_named(home, examine, scripted):
    assert f"user tools: none; looked for in {home}/own/tools, and" in texts(
        examine({"model": scripted}, BRADAWL_HOME=f"{home}/own")
    )
    assert "user tools: left out" in texts(examine({"model": scripted, "user_tools": False}))
