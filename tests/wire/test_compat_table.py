"""A quirk of a server is one row of the table."""

import json

from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin, Text, User
from bradawl.core.ports import ModelInfo
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.compat import CompatProfile
from bradawl.providers.compat_table import TABLE, CompatTable, ModelQuirk, profile_for
from wire.cases import PREFIX

HOST_ROW = ("quirky.example", CompatProfile("quirky", max_tokens_field="max_completion_tokens", stream_options=False))
MODEL_ROW = ModelQuirk(("quirky",), "odd-2", {"fixed_effort": "none"})
PARAMS = RequestParams(max_output_tokens=9)


def request_to(base_url: str, model: str, table: CompatTable) -> dict[str, object]:
    codec = OpenAIChat(base_url, profile=profile_for(base_url, model, table=table))
    encoder = codec.encoder(PREFIX, ModelInfo(Origin("openai_chat", "demo", model)))
    encoder.append(User((Text("Hi"),)))
    return json.loads(b"".join(encoder.body(PARAMS)))


def test_a_row_for_a_host_changes_the_requests_to_it_and_to_its_subdomains_alone():
    table = TABLE._replace(by_host=(*TABLE.by_host, HOST_ROW))
    for host in ("quirky.example", "eu.quirky.example"):
        sent = request_to(f"https://{host}/v1", "odd-1", table)
        assert sent["max_completion_tokens"] == 9
        assert "max_tokens" not in sent
        assert "stream_options" not in sent
    for host in ("unquirky.example", "quirky.example.org", "api.groq.com"):
        url = f"https://{host}/v1"
        assert request_to(url, "odd-1", table) == request_to(url, "odd-1", TABLE)


def test_a_row_for_a_model_changes_the_requests_for_it_alone():
    hosts = (*TABLE.by_host, HOST_ROW)
    before = TABLE._replace(by_host=hosts)
    after = TABLE._replace(by_host=hosts, by_model=(*TABLE.by_model, MODEL_ROW))
    url = "https://quirky.example/v1"
    assert request_to(url, "vendor/odd-2-mini", after)["reasoning_effort"] == "none"
    assert request_to(url, "odd-1", after) == request_to(url, "odd-1", before)
    assert request_to("https://other.example/v1", "odd-2", after) == request_to(
        "https://other.example/v1", "odd-2", before
    )


def test_a_row_for_a_port_changes_the_requests_to_a_server_on_this_machine():
    row = {4321: CompatProfile("mine", max_tokens_field="max_completion_tokens")}
    table = TABLE._replace(by_local_port={**TABLE.by_local_port, **row})
    assert request_to("http://127.0.0.1:4321/v1", "m", table)["max_completion_tokens"] == 9
    assert request_to("http://127.0.0.1:4322/v1", "m", table)["max_tokens"] == 9
