"""Model servers on this machine: found by what they answer, asked for what they really run with."""

import asyncio
import json
import time

import pytest

from bradawl.core.http import HttpRequest
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer, discover, running_context
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp
from patience import is_within


def answering(answers, headers=()):
    """An `Http` that knows the answers by URL (behind `http://127.0.0.1:`); everybody else refuses."""

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


def found_with(answers, *also, headers=()):
    return asyncio.run(discover(answering(answers, headers), also))


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


def test_ollama_is_found_with_what_is_loaded_and_what_it_can_do():
    assert found_with(OLLAMA) == (
        LocalServer(
            "ollama",
            "http://127.0.0.1:11434/v1",
            (
                LocalModel("qwen3:8b", 4096, 40960, has_tools=True),
                LocalModel("llama3.1:latest", 8192, 131072, has_tools=False),
            ),
        ),
    )


def test_an_ollama_without_models_is_still_found():
    answers = {"11434/v1/models": {"object": "list", "data": None}, "11434/api/tags": {"models": []}}
    assert found_with(answers) == ()
    answers["11434/v1/models"] = listed()
    assert [server.kind for server in found_with(answers)] == ["ollama"]


def test_lm_studio_is_found_in_both_its_dialects():
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
    (server,) = found_with(new)
    assert server.models == (LocalModel("qwen3-8b", 8192, 40960, has_tools=True, aliases=("qwen3-8b:2",)),)
    old = {
        "1234/v1/models": listed("m", owned_by="organization_owner"),
        "1234/api/v0/models": {
            "data": [{"id": "m", "type": "llm", "loaded_context_length": 4096, "max_context_length": 32768}]
        },
    }
    (server,) = found_with(old)
    assert (server.kind, server.models) == ("lmstudio", (LocalModel("m", 4096, 32768),))


def test_llama_cpp_is_known_by_its_header_and_says_the_length_of_a_slot():
    answers = {
        "8080/v1/models": {"object": "list", "data": [{"id": "m.gguf", "meta": {"n_ctx_train": 32768}}]},
        "8080/props?model=m.gguf&autoload=false": {
            "default_generation_settings": {"n_ctx": 8192},
            "chat_template_caps": {"supports_tools": True},
        },
    }
    (server,) = found_with(answers, headers=(("Server", "llama.cpp"),))
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
def test_vllm_and_sglang_say_their_length_in_the_list(port, kind):
    answers = {f"{port}/v1/models": listed("Qwen/Qwen3-8B", owned_by=kind, max_model_len=32768)}
    (server,) = found_with(answers)
    assert (server.kind, server.models) == (kind, (LocalModel("Qwen/Qwen3-8B", 32768, 32768),))


async def test_a_server_at_another_port_is_known_by_what_it_says_and_elsewhere_is_not_asked():
    answers = {"9999/v1/models": listed("m", owned_by="vllm", max_model_len=4096)}
    http = answering(answers)
    servers = await discover(http, ("http://127.0.0.1:9999/v1/", "https://api.example.com/v1"))
    assert [(server.kind, server.base_url) for server in servers] == [("vllm", "http://127.0.0.1:9999/v1")]
    assert all(request.url.startswith("http://127.0.0.1:") for request in http.requests)


def test_several_are_found_in_the_order_of_their_ports():
    answers = OLLAMA | {"8000/v1/models": listed("m", owned_by="vllm")}
    assert [server.kind for server in found_with(answers)] == ["ollama", "vllm"]


def test_what_else_listens_at_those_ports_is_passed_over():
    assert found_with({"8080/v1/models": {"message": "hello"}, "8000/": {}}) == ()
    assert found_with({"8080/v1/models": 404}) == ()


def test_servers_that_want_a_key_or_time_say_so():
    (closed,) = found_with({"8000/v1/models": 401})
    (busy,) = found_with({"8080/v1/models": 503})
    assert "key" in closed.problem
    assert "loading" in busy.problem


async def test_a_server_that_never_answers_costs_a_second_at_most():
    never = asyncio.Event()

    def answer(request):
        if ":8080/" in request.url:
            return Reply(200, (never,))
        if request.url.endswith(":8000/v1/models"):
            return Reply(200, (json.dumps(listed("m", owned_by="vllm")).encode(),))
        return Cut()

    started = time.monotonic()
    servers = await discover(ScriptedHttp(answer))
    assert is_within(time.monotonic() - started, 3)
    assert [server.kind for server in servers] == ["vllm"]


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"data":[null,1,{"id":3}]}', b"<html>", b"[" * 100_000])
async def test_nonsense_is_no_server_or_one_without_models(body):
    servers = await discover(ScriptedHttp(lambda _: Reply(200, (body,))))
    assert all(server.models == () for server in servers)


@pytest.mark.parametrize(
    ("model", "expected"), [("qwen3:8b", 4096), ("llama3.1", 8192), ("llama3.1:latest", 8192), ("gone", None)]
)
async def test_the_running_context_of_ollama_is_what_is_loaded_or_will_be(model, expected):
    answers = dict(OLLAMA)
    if model == "llama3.1":
        answers["11434/api/show llama3.1"] = answers["11434/api/show llama3.1:latest"]
    url = "http://127.0.0.1:11434/v1"
    assert (await running_context(answering(answers), url, model)) == expected
