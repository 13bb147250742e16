"""A model that can't keep up is replaced by the next, once, and without losing anything."""

import asyncio
import json

import pytest
from scripted_client import STREAM, ask, bad, chunk, failure_in, good, is_answered, model_of, retries_in, sse

from bradawl.core.deltas import ReplyEnded, StreamFailed, TextDelta
from bradawl.core.events import RequestParams
from bradawl.core.http import HttpError
from bradawl.core.messages import Assistant, Origin, Text, User
from bradawl.core.ports import Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.cooldown import CoolDowns
from bradawl.providers.fallback import FallbackModel
from bradawl.testing.fakes import Cut, FakeClock, Reply, ScriptedHttp
from bradawl.testing.scripted import ScriptedModel

CUT = Reply(200, (sse(chunk("Hel")), sse({"error": {"message": "overloaded", "code": 529}})), STREAM)


class House:
    """A first model and a second, each with its own script of replies."""

    def __init__(self, first, second=(), third=None, second_host="https://other.example/v1"):
        clock, cool_downs = FakeClock(is_eager=True), CoolDowns()
        shared = {"clock": clock, "cool_downs": cool_downs}
        self.https = [ScriptedHttp(first), ScriptedHttp(second)]
        models = [
            model_of(self.https[0], name="one", **shared),
            model_of(self.https[1], name="two", base_url=second_host, **shared),
        ]
        if third is not None:
            self.https.append(ScriptedHttp(third))
            models.append(model_of(self.https[2], name="three", base_url="https://third.example/v1", **shared))
        self.model = FallbackModel(models)
        self.session = self.model.open(Prefix("S", ()), "s1")
        self.session.append(User((Text("Hi"),)))

    def ask(self, budget=None):
        return asyncio.run(ask(None, session=self.session, budget=budget))

    @property
    def counts(self):
        return [len(http.requests) for http in self.https]

    def messages(self, place):
        return json.loads(b"".join(self.https[place].requests[-1].body))["messages"]

    @property
    def name(self):
        return self.session.info.origin.model


def test_while_the_first_model_answers_nobody_else_is_opened():
    house = House([good(), good()])
    assert is_answered(house.ask())
    assert (house.counts, house.name, house.model.info.origin.model) == ([1, 0], "one", "one")


@pytest.mark.parametrize("failure", [bad(529), bad(503), bad(429), bad(500), Cut("timeout"), Cut()], ids=str)
def test_three_failures_of_the_server_call_the_next_model(failure):
    house = House([failure] * 5, [good()])
    deltas = house.ask()
    failed = failure_in(deltas)
    assert len(retries_in(deltas)) == 2
    assert (failed.retryable, failed.retry_after_s) == (True, 0.0)
    assert "demo/two takes over" in failed.hint
    assert (house.name, house.counts) == ("two", [3, 0])
    assert is_answered(house.ask())
    assert house.counts == [3, 1]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
def test_what_is_wrong_with_the_request_the_key_or_the_account_stays_with_the_first(status):
    house = House([bad(status)])
    assert failure_in(house.ask()).status == status
    assert (house.name, house.counts) == ("one", [1, 0])


def test_a_failure_that_passes_in_time_changes_nothing():
    house = House([bad(529), bad(529), good(), bad(529), bad(529), good()])
    assert is_answered(house.ask())
    assert is_answered(house.ask())
    assert (house.name, house.counts) == ("one", [6, 0])


def test_a_server_that_wants_to_be_left_alone_for_long_is_left_at_once():
    house = House([bad(429, retry_after="7200")])
    failed = failure_in(house.ask())
    assert (house.name, house.counts, failed.retryable) == ("two", [1, 0], True)


def test_failures_behind_shown_text_are_counted_over_several_tries():
    house = House([CUT] * 5)
    for _ in range(2):
        assert "takes over" not in failure_in(house.ask()).hint
        assert house.name == "one"
    assert "takes over" in failure_in(house.ask()).hint
    assert (house.name, house.counts) == ("two", [3, 0])


def test_shown_and_hidden_failures_are_counted_together():
    house = House([bad(529), CUT, bad(529)])
    assert "takes over" not in failure_in(house.ask()).hint
    house.ask()
    assert (house.name, house.counts) == ("two", [3, 0])


def test_the_next_model_gets_the_whole_conversation_once():
    house = House([good("One."), *[bad(529)] * 3], [good("Two."), good("More.")])
    assert is_answered(house.ask())
    origin = Origin("openai_chat", "demo", "one")
    for message in (Assistant((Text("One."),), origin), User((Text("And?"),))):
        house.session.append(message)
    first_hash = house.session.prefix_hash()
    house.ask()
    assert house.session.prefix_hash() != ""
    assert TextDelta(0, "Two.") in house.ask()
    texts = ["S", "Hi", "One.", "And?"]
    assert [message["content"] for message in house.messages(1)] == texts
    house.session.append(Assistant((Text("Two."),), house.session.info.origin))
    house.session.append(User((Text("Go on."),)))
    assert is_answered(house.ask())
    assert [message["content"] for message in house.messages(1)] == [*texts, "Two.", "Go on."]
    assert house.session.prefix_hash() != first_hash


def test_a_session_does_not_switch_back_and_a_new_one_begins_with_the_first():
    house = House([*[bad(529)] * 3, good()], [good(), *[bad(529)] * 6])
    house.ask()
    assert is_answered(house.ask())
    assert failure_in(house.ask()).kind == "overloaded"
    assert (house.name, house.counts) == ("two", [3, 7])
    assert house.model.open(Prefix("S", ())).info.origin.model == "one"


def test_the_last_model_has_the_whole_budget():
    house = House([bad(529)] * 3, [*[bad(529)] * 5, good()])
    house.ask()
    assert is_answered(house.ask())
    assert house.counts == [3, 6]


def test_models_take_over_in_their_order():
    house = House([bad(529)] * 3, [bad(503)] * 3, [good()])
    assert "demo/two" in failure_in(house.ask()).hint
    assert "demo/three" in failure_in(house.ask()).hint
    assert is_answered(house.ask())
    assert house.counts == [3, 3, 1]


def test_the_first_model_leaves_a_request_to_the_next():
    house = House([bad(529)] * 3)
    house.ask(RetryBudget(attempts=3))
    assert (house.name, house.counts) == ("two", [2, 0])


def test_a_model_that_does_not_retry_by_itself_gets_its_chances_too():
    script = [{"faults": {"status": 529}}] * 3
    first, second = (ScriptedModel(json.dumps(one).encode()) for one in (script, [{"text": "Hi"}]))
    session = FallbackModel([first, second]).open(Prefix("", ()))
    session.append(User((Text("Hi"),)))

    async def go():
        ends = [(await ask(None, session=session))[-1] for _ in range(4)]
        return [isinstance(end, StreamFailed) and "takes over" in end.failure.hint for end in ends], ends[-1]

    told, last = asyncio.run(go())
    assert told == [False, False, True, False]
    assert isinstance(last, ReplyEnded)


async def test_closing_the_stream_closes_the_models_stream():
    async def go():
        http = ScriptedHttp([Reply(200, (sse(chunk("Hel")), asyncio.Event()), STREAM)])
        session = FallbackModel([model_of(http), model_of(ScriptedHttp([]))]).open(Prefix("", ()))
        stream = session.stream(RequestParams(), RetryBudget())
        async for delta in stream:
            if isinstance(delta, TextDelta):
                break
        await stream.aclose()
        return http.open

    assert (await go()) == 0


async def test_all_models_are_closed():
    house = House([])
    await house.model.aclose()
    await house.model.aclose()
    assert [http.is_closed for http in house.https] == [True, True]


def test_one_model_is_enough_and_none_is_not():
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel([])
    model = FallbackModel([model_of(ScriptedHttp([bad(529)] * 6))])
    assert "takes over" not in failure_in(asyncio.run(ask(model))).hint


async def test_the_window_is_that_of_the_first_model():
    house = House([])
    assert (await house.model.window()).tokens == 128_000


def test_an_adapter_that_breaks_is_a_failure_of_the_server():
    class Broken(ScriptedHttp):
        def stream(self, request):
            self.requests.append(request)
            raise HttpError("connection", "down")

    first = Broken([])
    session = FallbackModel([model_of(first), model_of(ScriptedHttp([good()]))]).open(Prefix("", ()))
    assert "takes over" in failure_in(asyncio.run(ask(None, session=session))).hint
    assert len(first.requests) == 3
