"""A defect of a middleware, a model or a codec ends the turn with a failure that names it; the conversation goes on."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from scripted_agent import assert_valid, build, call, only

from bradawl.agent.middleware import Continue, Finish, Middleware, MiddlewareContext, Retry, StepOutcome
from bradawl.core.deltas import TextDelta
from bradawl.core.errors import Failure, ModelFailed, SettingsError
from bradawl.core.events import AssistantReplied, LimitReached, PromptSubmitted, RequestParams, TurnFinished
from bradawl.core.messages import text_of
from bradawl.core.permissions import Answer, Policy, Question
from bradawl.testing.fakes import MemoryStore, RecordingEmit, ScriptedApprover
from bradawl.testing.scripted import ScriptedModel

TWO = [{"text": "one"}, {"text": "two"}]
METHODS = ("begin_turn", "before_step", "adjust", "after_step")


@pytest.fixture
async def reported() -> AsyncIterator[list[Any]]:
    """What the event loop's exception handler got."""
    contexts: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    yield contexts
    asyncio.get_running_loop().set_exception_handler(None)


def failing(method: str, make: Any, times: int = 1) -> type[Middleware]:
    """A middleware whose method calls `make` the first times."""
    left = [make] * times

    class Failing(Middleware):
        pass

    def answer(self: Middleware, *given: Any) -> Any:
        if left:
            return left.pop()()
        return given[0] if method == "adjust" else None

    async def answer_async(self: Middleware, *given: Any) -> Any:
        return answer(self, *given)

    setattr(Failing, method, answer if method in ("begin_turn", "adjust") else answer_async)
    return Failing


def raise_key_error() -> None:
    raise KeyError("colour")


async def two_turns(script: list[dict[str, Any]], *middleware: Any, **changes: Any) -> tuple[Any, Any, RecordingEmit]:
    """The results of two turns of one session. The session can be resumed afterwards."""
    store, emit = MemoryStore(), RecordingEmit()
    agent, *_ = build(script, middleware=middleware, store=store, **changes)
    async with agent.open() as session:
        first, second = await session.run("go", emit), await session.run("again", emit)
        assert_valid(session.transcript.messages)
    resumed, *_ = build([{"text": "resumed"}], store=store)
    assert (await resumed.run("more", session.id)).text == "resumed"
    return first, second, emit


# ------------------------------------------------------------------ middleware


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("reported")
async def test_an_exception_in_a_middleware_ends_its_turn_and_the_next_one_runs(method: str) -> None:
    first, second, emit = await two_turns(TWO, failing(method, raise_key_error))
    assert first.reason == "error" and second.reason == "completed"
    assert first.failure.kind == "internal" and first.session_id and first.saved
    assert first.failure.message == f"The middleware Failing in {method} failed: KeyError: 'colour'"
    assert [event.reason for event in only(list(emit.events), TurnFinished)] == ["error", "completed"]
    assert len(only(list(emit.events), PromptSubmitted)) == 2


async def test_the_event_loop_gets_the_exception_of_a_middleware_with_its_traceback(reported: list[Any]) -> None:
    await two_turns(TWO, failing("before_step", raise_key_error))
    (context,) = reported
    assert isinstance(context["exception"], KeyError) and context["exception"].__traceback__ is not None
    assert context["ends_turn"] is True and context["message"].startswith("The middleware Failing in before_step")


WRONG: dict[str, tuple[str, Any, str]] = {
    "begin_turn": ("begin_turn", lambda: True, "TypeError: it returned True, not None"),
    "before_step": ("before_step", lambda: True, "TypeError: it returned True, not Finish"),
    "before_step, an answer of another": ("before_step", lambda: Continue("x"), "not Finish"),
    "adjust": ("adjust", lambda: None, "TypeError: it returned None, not Finish or RequestParams"),
    "after_step": ("after_step", lambda: True, "TypeError: it returned True, not Retry or Continue or Finish"),
    "after_step, a class": ("after_step", lambda: Retry, "not Retry or Continue or Finish"),
    "a reason that is none": ("after_step", lambda: Finish(TurnFinished("done")), "Invalid enum value 'done'"),
    "a failure that is none": ("after_step", lambda: Retry("no"), "Expected `object`, got `str`"),
    "a note that is none": ("after_step", lambda: Continue(5), "Expected `str`, got `int`"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.usefixtures("reported")
async def test_a_wrong_answer_of_a_middleware_ends_its_turn_and_names_it(wrong: str) -> None:
    method, make, why = WRONG[wrong]
    first, second, _ = await two_turns(TWO, failing(method, make))
    assert first.reason == "error" and first.failure.message.startswith(f"The middleware Failing in {method} failed: ")
    assert why in first.failure.message and second.reason == "completed"


@pytest.mark.usefixtures("reported")
async def test_a_method_that_may_not_be_async_is_named() -> None:
    class Eager(Middleware):
        async def begin_turn(self, params: RequestParams) -> None:
            pass

    first, *_ = await two_turns(TWO, Eager)
    assert first.failure.message == "The middleware Eager in begin_turn failed: TypeError: it may not be async"


async def test_a_model_that_fails_in_a_middleware_ends_the_turn_with_its_failure() -> None:
    def fails() -> None:
        raise ModelFailed(Failure("auth", "no key"))

    first, second, _ = await two_turns(TWO, failing("before_step", fails))
    assert (first.reason, first.failure) == ("error", Failure("auth", "no key")) and second.reason == "completed"


async def test_an_error_for_the_caller_reaches_it_without_a_group_around_it() -> None:
    async def no_prompt() -> str:
        raise SettingsError("no such file")

    agent, *_ = build(TWO, system_prompt=no_prompt)
    async with agent.open() as session:
        with pytest.raises(SettingsError, match="no such file"):
            await session.run("go")


@pytest.mark.usefixtures("reported")
async def test_an_exception_of_another_part_ends_the_turn_too_and_its_calls_are_answered() -> None:
    class Broken(ScriptedApprover):
        async def ask(self, question: Question) -> Answer:
            raise KeyError("window")

    script = [{"tool_calls": [call("a", unknown=True), call("b")]}, {"text": "two"}]
    first, second, _ = await two_turns(script, approver=Broken(), policy=Policy)
    assert (first.failure.kind, first.failure.message) == ("internal", "The approver failed: KeyError: 'window'")
    assert second.text == "two"


# ------------------------------------------------------------------ models and codecs


class Breaking(ScriptedModel):
    """A scripted model whose first conversation has a defect."""

    def __init__(self, script: list[dict[str, Any]], place: str) -> None:
        super().__init__(json.dumps(script).encode())
        self.place = place

    def open(self, *given: Any) -> Any:
        if self.place == "open":
            self.place = ""
            raise KeyError("choices")
        return _BreakingSession(super().open(*given), self)


class _BreakingSession:
    def __init__(self, inner: Any, model: Breaking) -> None:
        self._inner, self._model = inner, model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, message: Any) -> None:
        if self._model.place == "append":
            self._model.place = ""
            raise KeyError("choices")
        self._inner.append(message)

    async def stream(self, *given: Any) -> AsyncGenerator[Any, None]:
        place, self._model.place = self._model.place, ""
        if place == "odd":
            yield "not a delta"
        if place == "middle":
            yield TextDelta(0, "half")
            yield TextDelta(1, "more")
        if place in ("begin", "middle"):
            raise KeyError("choices")
        async for delta in self._inner.stream(*given):
            yield delta


@pytest.mark.parametrize("place", ["open", "append", "begin", "middle"])
@pytest.mark.usefixtures("reported")
async def test_a_defect_of_a_codec_ends_the_turn_and_names_the_model_and_the_codec(place: str) -> None:
    model = Breaking(TWO, place)
    origin = model.info.origin
    first, second, emit = await two_turns([], model=model)
    named = f"The model {origin.provider}/{origin.model} (codec {origin.api}) failed: KeyError: 'choices'"
    assert (first.reason, first.failure.kind, first.failure.message) == ("error", "internal", named)
    assert (second.reason, second.text) == ("completed", "one")
    kept = [text_of(event.message.parts) for event in only(list(emit.events), AssistantReplied)]
    assert kept == (["halfmore"] if place == "middle" else []) + ["one"], "what was shown is kept"


@pytest.mark.usefixtures("reported")
async def test_a_delta_that_is_none_is_a_defect_of_the_model() -> None:
    first, second, _ = await two_turns([], model=Breaking(TWO, "odd"))
    assert "AssertionError" in first.failure.message and second.text == "one"


# ------------------------------------------------------------------ limits of a middleware

REFUSED = {"text": "", "faults": {"status": 400}}


class GoesOn(Middleware):
    """Continues after each failure."""

    async def after_step(self, outcome: StepOutcome) -> Continue | None:
        return Continue("go on") if outcome.failure is not None else None


async def test_a_middleware_can_not_continue_for_ever_after_failures() -> None:
    agent, model, _ = build([REFUSED] * 50, middleware=(GoesOn,))
    result = await agent.run("go")
    assert (result.reason, len(model.requests)) == ("error", 6)
    assert result.failure is not None and result.failure.status == 400


async def test_a_step_that_succeeds_begins_the_count_of_failed_steps_again() -> None:
    good = [{"tool_calls": [call(f"c{number}")]} for number in range(2)]
    script = [*[REFUSED] * 5, good[0], *[REFUSED] * 5, good[1], *[REFUSED] * 5, {"text": "done"}]
    agent, model, _ = build(script, middleware=(GoesOn,))
    result = await agent.run("go")
    assert (result.reason, result.text, len(model.requests)) == ("completed", "done", 18)


class RequestBudget(Middleware):
    """Sends one request in each turn, also if it has to be made again."""

    def __init__(self, context: MiddlewareContext) -> None:
        self._conversation = context.conversation
        self._sent = 0

    def begin_turn(self, params: RequestParams) -> None:
        self._sent = 0

    def adjust(self, params: RequestParams) -> RequestParams | Finish:
        if self._sent >= 1:
            self._conversation.record(LimitReached("requests", self._sent, 1))
            return Finish(TurnFinished("limit"))
        self._sent += 1
        return params

    async def after_step(self, outcome: StepOutcome) -> Retry | None:
        return Retry(outcome.failure) if outcome.failure is not None else None


@pytest.mark.parametrize("again", [REFUSED, {"tool_calls": [call("a")]}, {"text": "cut", "faults": {"cut_at_byte": 1}}])
async def test_a_limit_of_its_own_is_kept_for_repeated_requests_too(again: dict[str, Any]) -> None:
    agent, model, _ = build([again, {"text": "never"}], middleware=(RequestBudget,))
    result = await agent.run("go")
    assert (result.reason, result.failure, len(model.requests)) == ("limit", None, 1)
    assert result.limit == LimitReached("requests", 1, 1)


def test_an_object_instead_of_a_class_of_middleware_is_refused_when_the_agent_is_made() -> None:
    made: Any = RequestBudget.__new__(RequestBudget)
    with pytest.raises(SettingsError, match="The middleware RequestBudget is an object; pass its class"):
        build(TWO, middleware=(made,))


async def test_a_middleware_needs_no_constructor() -> None:
    class Plain(Middleware):
        async def before_step(self) -> Finish | None:
            return Finish(TurnFinished("budget"))

    agent, *_ = build(TWO, middleware=(Plain,))
    result = await agent.run("go")
    assert (result.reason, result.limit) == ("budget", None)
