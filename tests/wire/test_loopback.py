"""Every recorded stream has its described outcome over a real socket, through the real client."""

from contextlib import aclosing

import pytest

from bradawl.testing.replay import Recording, ReplayServer
from wire.codecs import BY_SAMPLE_API, sample_names
from wire.exchange import ADAPTERS, ask, model_at
from wire.replay import SAMPLES, compared, outcome, read_sample

NAMES = sample_names()
WHOLE = [name for name in NAMES if read_sample(name)["expect"]["complete"]]


async def exchanged(wire, recording, adapter):
    """Outcome of one request to a server that answers with `recording`."""

    async with ReplayServer([recording]) as server, aclosing(ADAPTERS[adapter]()) as http:
        deltas = await ask(model_at(wire, server.base_url, http))
    assert len(server.requests) == 1
    return outcome(deltas)


async def check(name, adapter, then=None, split_at=None):
    sample = read_sample(name)
    feed, expect = sample["feed"], sample["expect"]
    data = (SAMPLES / f"{name}.sse").read_bytes()
    places = tuple(feed.get("split_at", ())) if split_at is None else split_at
    seen = await exchanged(BY_SAMPLE_API[sample["api"]], Recording(data, places, then or feed["then"]), adapter)
    if expect["complete"] and not expect["parts"] and expect["stop_reason"] == "unknown":
        # The client treats an empty reply as a failure.
        assert (seen["complete"], seen["error"]["kind"], seen["error"]["retryable"]) == (False, "server", True)
        return
    ours, theirs = compared(seen, expect)
    assert ours == theirs


def test_every_format_has_samples():
    recorded = {read_sample(name)["api"] for name in NAMES}
    assert recorded == set(BY_SAMPLE_API), "tests/wire/samples needs a recorded stream of each protocol"


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_sample_over_a_socket_has_its_described_outcome(name, adapter):
    await check(name, adapter)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_sample_flushed_every_few_bytes_has_the_same_outcome(name, adapter):
    size = len((SAMPLES / f"{name}.sse").read_bytes())
    await check(name, adapter, split_at=tuple(range(1, size, max(1, size // 60))))


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", WHOLE)
async def test_a_reset_after_the_last_byte_of_a_complete_reply_loses_nothing(name, adapter):
    await check(name, adapter, then="reset")
