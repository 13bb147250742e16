"""A wire protocol needs one folder and one row in the table: the toy protocol in `wire/toy` works with its row."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from scripted_agent import build, call

from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.provider_tables import read_providers
from bradawl.core.errors import SettingsError
from bradawl.core.messages import Origin
from bradawl.core.ports import ModelInfo
from bradawl.providers.client import HttpModel
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.protocols import PROTOCOLS, WireProtocol
from bradawl.testing.fakes import FakeClock, FakeIds
from bradawl.testing.server import WireServer
from bradawl.testing.wire_format import WireFormat
from bradawl.testing.wire_formats import format_at
from wire.toy.server_side import FORMAT

WITH_TOY = (*PROTOCOLS, WireProtocol("toy", "wire.toy", "/toy"))
"""The table of protocols with the row of the toy."""


def toy_or_known(path: str) -> WireFormat | None:
    return FORMAT if path.endswith("/toy") else format_at(path)


def model_at(base_url: str) -> HttpModel:
    """A model client as the application builds it from settings."""
    chosen = ModelSettings("toybox", "toy-1", base_url, api="toy")
    target = model_endpoint(chosen, {}, WITH_TOY)
    info = ModelInfo(Origin(target.codec.api, chosen.provider, chosen.name))
    return HttpModel(target, DirectHttp(), FakeClock(), FakeIds(), info)


async def test_a_turn_with_a_tool_runs_over_the_protocol():
    script = [{"text": "I look.", "tool_calls": [call("a")]}, {"text": "Done.", "expect": "did a"}]
    async with WireServer(script, find_format=toy_or_known) as server:
        agent, _, probe = build([], model=model_at(server.base_url))
        result = await agent.run("go")
        await agent.model.aclose()
    assert (result.reason, result.text) == ("completed", "Done.")
    assert server.failures == []
    assert probe.log == ["+a", "-a"]
    assert [message["from"] for message in server.requests[-1]["messages"]] == ["user", "model", "tool"]


async def test_a_failure_of_the_server_is_typed():
    refusal = {"text": "wrong key", "faults": {"status": 401}}
    async with WireServer([refusal], find_format=toy_or_known) as server:
        agent, _, _ = build([], model=model_at(server.base_url))
        result = await agent.run("go")
        await agent.model.aclose()
    assert result.reason == "error"
    assert "wrong key" in str(result.failure)


def test_settings_accept_the_protocol_by_its_name():
    path = Path("config.toml")
    table = {"toybox": {"base_url": "http://127.0.0.1:9/v1", "api": "toy"}}
    known = read_providers(table, path, WITH_TOY)["toybox"]
    assert known.api_at(known.base_url) == "toy"
    with pytest.raises(SettingsError, match=r"providers\.toybox\.api must be one of openai_chat, .*anthropic_messages"):
        read_providers(table, path)
    with pytest.raises(SettingsError, match=r"providers\.toybox\.compat: `strict` is not a field of the toy"):
        read_providers({"toybox": {**table["toybox"], "compat": {"strict": True}}}, path, WITH_TOY)


def test_the_test_kit_finds_the_format_of_each_protocol_by_its_path():
    missing = [one.folder for one in PROTOCOLS if find_spec(f"bradawl.testing.wire_{one.folder}") is None]
    assert missing == [], "each of these needs a module bradawl/testing/wire_FOLDER.py; wire_chat.py is a model"
    formats = [format_at(f"/v1{protocol.path}") for protocol in PROTOCOLS]
    assert None not in formats
    assert len(set(map(id, formats))) == len(PROTOCOLS)
    assert format_at("/v1/soap") is None
