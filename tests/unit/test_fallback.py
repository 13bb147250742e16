"""`FallbackModel`: an overloaded model is replaced by the next one, which gets the whole conversation."""

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


class Models:
    """A session on two or three models, each with its own script of replies."""

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

    async def ask(self, budget=None):
        return await ask(None, session=self.session, budget=budget)

    @property
    def counts(self):
        return [len(http.requests) for http in self.https]

    def messages(self, place):
        return json.loads(b"".join(self.https[place].requests[-1].body))["messages"]

    @property
    def name(self):
        return self.session.info.origin.model


async def test_while_the_first_model_answers_the_second_gets_no_request():
    models = Models([good(), good()])
    assert is_answered(await models.ask())
    assert (models.counts, models.name, models.model.info.origin.model) == ([1, 0], "one", "one")


@pytest.mark.parametrize("failure", [bad(529), bad(503), bad(429), bad(500), Cut("timeout"), Cut()], ids=str)
async def test_after_three_failures_of_the_server_the_next_model_takes_over(failure):
    models = Models([failure] * 5, [good()])
    deltas = await models.ask()
    failed = failure_in(deltas)
    assert len(retries_in(deltas)) == 2
    assert (failed.retryable, failed.retry_after_s) == (True, 0.0)
    assert "demo/two takes over" in failed.hint
    assert (models.name, models.counts) == ("two", [3, 0])
    assert is_answered(await models.ask())
    assert models.counts == [3, 1]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
async def test_an_error_in_the_request_the_key_or_the_account_does_not_change_the_model(status):
    models = Models([bad(status)])
    assert failure_in(await models.ask()).status == status
    assert (models.name, models.counts) == ("one", [1, 0])


async def test_two_failures_before_a_reply_do_not_change_the_model():
    models = Models([bad(529), bad(529), good(), bad(529), bad(529), good()])
    assert is_answered(await models.ask())
    assert is_answered(await models.ask())
    assert (models.name, models.counts) == ("one", [6, 0])


async def test_a_very_long_retry_after_changes_the_model_at_once():
    models = Models([bad(429, retry_after="7200")])
    failed = failure_in(await models.ask())
    assert (models.name, models.counts, failed.retryable) == ("two", [1, 0], True)


async def test_failures_after_shown_text_are_counted_over_several_steps():
    models = Models([CUT] * 5)
    for _ in range(2):
        assert "takes over" not in failure_in(await models.ask()).hint
        assert models.name == "one"
    assert "takes over" in failure_in(await models.ask()).hint
    assert (models.name, models.counts) == ("two", [3, 0])


async def test_failures_before_and_after_shown_text_are_counted_together():
    models = Models([bad(529), CUT, bad(529)])
    assert "takes over" not in failure_in(await models.ask()).hint
    await models.ask()
    assert (models.name, models.counts) == ("two", [3, 0])


async def test_the_next_model_gets_the_whole_conversation_once():
    models = Models([good("One."), *[bad(529)] * 3], [good("Two."), good("More.")])
    assert is_answered(await models.ask())
    origin = Origin("openai_chat", "demo", "one")
    for message in (Assistant((Text("One."),), origin), User((Text("And?"),))):
        models.session.append(message)
    first_hash = models.session.prefix_hash()
    await models.ask()
    assert models.session.prefix_hash() != ""
    assert TextDelta(0, "Two.") in await models.ask()
    texts = ["S", "Hi", "One.", "And?"]
    assert [message["content"] for message in models.messages(1)] == texts
    models.session.append(Assistant((Text("Two."),), models.session.info.origin))
    models.session.append(User((Text("Go on."),)))
    assert is_answered(await models.ask())
    assert [message["content"] for message in models.messages(1)] == [*texts, "Two.", "Go on."]
    assert models.session.prefix_hash() != first_hash


async def test_a_session_keeps_the_new_model_and_a_new_session_begins_with_the_first():
    models = Models([*[bad(529)] * 3, good()], [good(), *[bad(529)] * 6])
    await models.ask()
    assert is_answered(await models.ask())
    assert failure_in(await models.ask()).kind == "overloaded"
    assert (models.name, models.counts) == ("two", [3, 7])
    assert models.model.open(Prefix("S", ())).info.origin.model == "one"


async def test_the_last_model_has_the_whole_budget():
    models = Models([bad(529)] * 3, [*[bad(529)] * 5, good()])
    await models.ask()
    assert is_answered(await models.ask())
    assert models.counts == [3, 6]


async def test_models_take_over_in_their_order():
    models = Models([bad(529)] * 3, [bad(503)] * 3, [good()])
    assert "demo/two" in failure_in(await models.ask()).hint
    assert "demo/three" in failure_in(await models.ask()).hint
    assert is_answered(await models.ask())
    assert models.counts == [3, 3, 1]


async def test_the_first_model_leaves_one_attempt_of_the_budget_to_the_next():
    models = Models([bad(529)] * 3)
    await models.ask(RetryBudget(attempts=3))
    assert (models.name, models.counts) == ("two", [2, 0])


async def test_a_model_that_does_not_retry_by_itself_is_replaced_after_three_failures_too():
    script = [{"faults": {"status": 529}}] * 3
    first, second = (ScriptedModel(json.dumps(one).encode()) for one in (script, [{"text": "Hi"}]))
    session = FallbackModel([first, second]).open(Prefix("", ()))
    session.append(User((Text("Hi"),)))

    ends = [(await ask(None, session=session))[-1] for _ in range(4)]
    announced = [isinstance(end, StreamFailed) and "takes over" in end.failure.hint for end in ends]
    assert announced == [False, False, True, False]
    assert isinstance(ends[-1], ReplyEnded)


async def test_closing_the_stream_closes_the_models_stream():
    http = ScriptedHttp([Reply(200, (sse(chunk("Hel")), asyncio.Event()), STREAM)])
    session = FallbackModel([model_of(http), model_of(ScriptedHttp([]))]).open(Prefix("", ()))
    stream = session.stream(RequestParams(), RetryBudget())
    async for delta in stream:
        if isinstance(delta, TextDelta):
            break
    await stream.aclose()
    assert http.open == 0


async def test_all_models_are_closed():
    models = Models([])
    await models.model.aclose()
    await models.model.aclose()
    assert [http.is_closed for http in models.https] == [True, True]


async def test_one_model_is_enough_and_none_is_not():
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel([])
    model = FallbackModel([model_of(ScriptedHttp([bad(529)] * 6))])
    assert "takes over" not in failure_in(await ask(model)).hint


async def test_the_context_window_is_that_of_the_first_model():
    models = Models([])
    assert (await models.model.window()).tokens == 128_000


async def test_a_connection_error_of_the_adapter_counts_as_a_failure_of_the_server():
    class Broken(ScriptedHttp):
        def stream(self, request):
            self.requests.append(request)
            raise HttpError("connection", "down")

    first = Broken([])
    session = FallbackModel([model_of(first), model_of(ScriptedHttp([good()]))]).open(Prefix("", ()))
    assert "takes over" in failure_in(await ask(None, session=session)).hint
    assert len(first.requests) == 3
