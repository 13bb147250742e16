"""Local model servers: `discover` recognizes them by their answers and reads models and context lengths."""

import asyncio
import json

import pytest

from bradawl.core.http import HttpRequest
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer, discover, running_context
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp
from patience import no_wait


def answering(answers, headers=()):
    """An `Http` with answers by URL (without `http://127.0.0.1:`); other ports refuse the connection."""

    def answer(request: HttpRequest):
        place = request.url.removeprefix("http://127.0.0.1:")
        body = b"".join(request.body)
        known = answers.get(f"{place} {json.loads(body)['model']}" if body else place)
        if known is None:
            port = place.partition("/")[0]
            return Reply(404) if any(key.startswith(port + "/") for key in answers) else Cut()
        if isinstance(known, int):
            return Reply(known)
        return Reply(200, (json.dumps(known).encode(),), headers)

    return ScriptedHttp(answer)


async def found_with(answers, headers=()):
    return await discover(answering(answers, headers))


def listed(*entries, **fields):
    return {"object": "list", "data": [{"id": entry, **fields} for entry in entries]}


OLLAMA = {
    "11434/v1/models": listed("qwen3:8b", "llama3.1:latest", owned_by="library"),
    "11434/api/tags": {"models": [{"name": "qwen3:8b"}, {"name": "llama3.1:latest"}]},
    "11434/api/ps": {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 4096}]},
    "11434/api/show qwen3:8b": {
        "parameters": 'num_ctx                        16384\nstop "x"',
        "model_info": {"qwen3.context_length": 40960},
        "capabilities": ["completion", "tools", "thinking"],
    },
    "11434/api/show llama3.1:latest": {
        "parameters": "num_ctx 8192",
        "model_info": {"llama.context_length": 131072},
        "capabilities": ["completion"],
    },
}


async def test_ollama_is_found_with_the_context_lengths_and_abilities_of_its_models():
    assert await found_with(OLLAMA) == (
        LocalServer(
            "ollama",
            "http://127.0.0.1:11434/v1",
            (
                LocalModel("qwen3:8b", 4096, 40960, has_tools=True),
                LocalModel("llama3.1:latest", 8192, 131072, has_tools=False),
            ),
        ),
    )


async def test_an_ollama_without_models_is_still_found():
    answers = {"11434/v1/models": {"object": "list", "data": None}, "11434/api/tags": {"models": []}}
    assert await found_with(answers) == ()
    answers["11434/v1/models"] = listed()
    assert [server.kind for server in await found_with(answers)] == ["ollama"]


async def test_lm_studio_is_found_through_both_versions_of_its_api():
    new = {
        "1234/v1/models": listed("qwen3-8b", owned_by="organization_owner"),
        "1234/api/v1/models": {
            "models": [
                {
                    "key": "qwen3-8b",
                    "type": "llm",
                    "max_context_length": 40960,
                    "loaded_instances": [{"id": "qwen3-8b:2", "config": {"context_length": 8192}}],
                    "capabilities": {"vision": False, "trained_for_tool_use": True},
                },
                {"key": "embedder", "type": "embedding", "loaded_instances": []},
            ]
        },
    }
    (server,) = await found_with(new)
    assert server.models == (LocalModel("qwen3-8b", 8192, 40960, has_tools=True, aliases=("qwen3-8b:2",)),)
    old = {
        "1234/v1/models": listed("m", owned_by="organization_owner"),
        "1234/api/v0/models": {
            "data": [{"id": "m", "type": "llm", "loaded_context_length": 4096, "max_context_length": 32768}]
        },
    }
    (server,) = await found_with(old)
    assert (server.kind, server.models) == ("lmstudio", (LocalModel("m", 4096, 32768),))


async def test_a_server_that_answers_at_any_path_is_of_no_known_kind():
    answer = listed("m")
    (server,) = await found_with({f"8000{path}": answer for path in ("/v1/models", "/api/tags", "/api/v1/models")})
    assert (server.kind, [model.name for model in server.models]) == ("other", ["m"])


async def test_llama_cpp_is_recognized_by_its_header_and_reports_the_context_length_of_a_slot():
    answers = {
        "8080/v1/models": {"object": "list", "data": [{"id": "m.gguf", "meta": {"n_ctx_train": 32768}}]},
        "8080/props?model=m.gguf&autoload=false": {
            "default_generation_settings": {"n_ctx": 8192},
            "chat_template_caps": {"supports_tools": True},
        },
    }
    (server,) = await found_with(answers, headers=(("Server", "llama.cpp"),))
    assert (server.kind, server.models) == ("llamacpp", (LocalModel("m.gguf", 8192, 32768, has_tools=True),))


async def test_a_router_is_never_made_to_load_a_model():
    answers = {
        "8080/v1/models": {
            "object": "list",
            "data": [
                {"id": "a", "owned_by": "llamacpp", "status": {"value": "loaded"}},
                {"id": "b", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
            ],
        },
        "8080/props?model=a&autoload=false": {"default_generation_settings": {"n_ctx": 8192}},
    }
    http = answering(answers)
    (server,) = await discover(http)
    assert [model.context for model in server.models] == [8192, None]
    props = [request.url for request in http.requests if "/props" in request.url]
    assert props and all("autoload=false" in url and "model=a" in url for url in props)


@pytest.mark.parametrize(("port", "kind"), [(8000, "vllm"), (30000, "sglang")])
async def test_vllm_and_sglang_report_their_context_length_in_the_list_of_models(port, kind):
    answers = {f"{port}/v1/models": listed("Qwen/Qwen3-8B", owned_by=kind, max_model_len=32768)}
    (server,) = await found_with(answers)
    assert (server.kind, server.models) == (kind, (LocalModel("Qwen/Qwen3-8B", 32768, 32768),))


async def test_a_server_on_another_local_port_is_recognized_and_a_remote_url_is_not_asked():
    answers = {"9999/v1/models": listed("m", owned_by="vllm", max_model_len=4096)}
    http = answering(answers)
    servers = await discover(http, ("http://127.0.0.1:9999/v1/", "https://api.example.com/v1"))
    assert [(server.kind, server.base_url) for server in servers] == [("vllm", "http://127.0.0.1:9999/v1")]
    assert all(request.url.startswith("http://127.0.0.1:") for request in http.requests)


async def test_several_servers_are_found_in_the_order_of_their_ports():
    answers = OLLAMA | {"8000/v1/models": listed("m", owned_by="vllm")}
    assert [server.kind for server in await found_with(answers)] == ["ollama", "vllm"]


async def test_other_servers_on_the_known_ports_are_ignored():
    assert await found_with({"8080/v1/models": {"message": "hello"}, "8000/": {}}) == ()
    assert await found_with({"8080/v1/models": 404}) == ()


async def test_a_server_that_needs_a_key_or_still_loads_is_found_with_that_problem():
    (closed,) = await found_with({"8000/v1/models": 401})
    (busy,) = await found_with({"8080/v1/models": 503})
    assert "key" in closed.problem
    assert "loading" in busy.problem


async def test_a_server_that_never_answers_delays_the_search_by_seconds_only():
    never = asyncio.Event()

    def answer(request):
        if ":8080/" in request.url:
            return Reply(200, (never,))
        if request.url.endswith(":8000/v1/models"):
            return Reply(200, (json.dumps(listed("m", owned_by="vllm")).encode(),))
        return Cut()

    with no_wait():
        servers = await discover(ScriptedHttp(answer))
    assert [server.kind for server in servers] == ["vllm"]


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"data":[null,1,{"id":3}]}', b"<html>", b"[" * 100_000])
async def test_an_invalid_answer_is_no_server_or_one_without_models(body):
    servers = await discover(ScriptedHttp(lambda _: Reply(200, (body,))))
    assert all(server.models == () for server in servers)


@pytest.mark.parametrize(
    ("model", "expected"), [("qwen3:8b", 4096), ("llama3.1", 8192), ("llama3.1:latest", 8192), ("gone", None)]
)
async def test_the_running_context_of_ollama_is_that_of_the_loaded_model_or_its_setting(model, expected):
    answers = dict(OLLAMA)
    if model == "llama3.1":
        answers["11434/api/show llama3.1"] = answers["11434/api/show llama3.1:latest"]
    url = "http://127.0.0.1:11434/v1"
    assert (await running_context(answering(answers), url, model)) == expected
