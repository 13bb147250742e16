"""`/context` of real sessions: before the first request, resumed, taken back, damaged, with sub-agents, as JSON."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_agent import build, call
from scripted_subagents import family, task

from bradawl.agent.session import Session
from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.app.context_report import CompactionForecast, ContextReport, context_report
from bradawl.app.context_text import context_text
from bradawl.core.errors import SessionError
from bradawl.core.events import Compacted, Pin, PromptSubmitted
from bradawl.core.ports import OpenSession
from bradawl.core.usage import Price
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore
from bradawl.testing.scripted import ScriptedModel

FIRST = {"input": 500, "cache_write": 4_500, "output": 60}
NEXT = {"input": 20, "cache_read": 5_000, "cache_write": 180, "output": 40}
PRICE = Price(input=2.0, output=10.0, cache_read=0.2, cache_write=2.5)


def replies(*usages: dict[str, int] | None) -> list[dict[str, Any]]:
    return [{"text": f"Reply {number}.", "usage": usage} for number, usage in enumerate(usages)]


def tokens(report: ContextReport) -> dict[str, int]:
    return {part.name: part.tokens for part in report.parts}


def assert_sums(report: ContextReport) -> None:
    assert sum(tokens(report).values()) == report.used.tokens


async def test_before_the_first_request_the_tools_are_known_and_the_rest_is_not() -> None:
    agent, *_ = build([])
    async with agent.open() as session:
        report = await context_report(session)
    assert list(tokens(report)) == ["tools"]
    assert (report.used.reported, report.requests) == (0, ())
    assert report.notes == ("The system prompt is made with the first prompt; it is not counted yet.",)
    assert_sums(report)


async def test_the_sum_is_what_the_model_reported() -> None:
    script = [{"text": "I look.", "tool_calls": [call("a")], "usage": FIRST}, *replies(NEXT)]
    agent, *_ = build(script)
    async with agent.open() as session:
        await session.run("go")
        report = await context_report(session)
        assert report.used.tokens == report.used.reported == session.state.context_tokens == 5_240
        assert report.used.tokens == session.prefix.context_tokens()
    assert_sums(report)
    assert set(tokens(report)) == {"system", "tools", "prompts", "replies", "calls", "results"}
    (results,) = (part for part in report.parts if part.name == "results")
    assert [(part.name, part.count) for part in results.parts] == [("probe", 1)]
    assert report.cache.hit_rate == round(5_000 / 10_200, 4)
    assert [each.step for each in report.requests] == ["1", "1.2"]


async def test_a_note_that_waits_for_the_next_request_is_no_part_of_it_yet() -> None:
    agent, *_ = build(replies(FIRST))
    async with agent.open() as session:
        await session.run("go")
        session.conversation.note("A job ended.")
        session.conversation.deliver_notes()
        report = await context_report(session)
        assert (report.used.tokens, report.used.reported) == (session.prefix.context_tokens(), 5_060)
    assert tokens(report)["notes"] == report.used.tokens - 5_060
    assert_sums(report)


async def test_without_reports_all_is_estimated() -> None:
    agent, *_ = build(replies(None, None))
    async with agent.open() as session:
        await session.run("go")
        report = await context_report(session)
        assert report.used.tokens == session.prefix.context_tokens()
    assert report.used.reported == 0
    assert report.cache.hit_rate is None
    assert_sums(report)
    assert "All is estimated" in context_text(report)
    assert "reported no cached tokens" in context_text(report)


async def test_a_resumed_session_has_the_same_report(tmp_path: Path) -> None:
    def store() -> LocalStore:
        return LocalStore(tmp_path, "/project", FakeClock(), FakeIds())

    agent, *_ = build(replies(FIRST, NEXT), store=store())
    async with agent.open() as session:
        await session.run("go")
        await session.run("on")
        before = await context_report(session)
    again, *_ = build([], store=store())
    async with again.open(session.id) as resumed:
        assert not resumed.prefix.is_open
        assert await context_report(resumed) == before


async def test_what_was_taken_back_is_paid_for_and_not_in_the_window() -> None:
    agent, *_ = build(replies(FIRST, NEXT, NEXT))
    async with agent.open() as session:
        await session.run("one")
        first = await context_report(session)
        await session.run("two, with many words " * 50)
        prompts = [each for each in session.conversation.entries() if isinstance(each.event, PromptSubmitted)]
        assert prompts[1].parent is not None
        await session.rewind(prompts[1].parent, "talk")
        back = await context_report(session)
        assert [each.taken_back for each in back.requests] == [False, True]
        assert back.taken_back.requests == 1
        assert tokens(back)["prompts"] <= tokens(first)["prompts"]
        assert_sums(back)
        await session.run("other")
        after = await context_report(session)
    assert [prefix.reason for prefix in after.requests[2].new_prefixes] == ["rewound"]
    assert (after.requests[2].step, after.requests[2].missed) == ("3", 0)
    assert "Taken back, and paid for: 1 request" in context_text(after)


async def test_a_new_prefix_says_what_it_cost() -> None:
    model = ScriptedModel(json.dumps(replies(FIRST, {"input": 5_400, "output": 10})).encode(), price=PRICE)
    agent, *_ = build([], model=model)
    async with agent.open() as session:
        await session.run("one")
        session.change_tools(())
        await session.run("two")
        report = await context_report(session)
    use = report.requests[1]
    assert [(prefix.reason, prefix.first_change) for prefix in use.new_prefixes] == [("tools", "tools")]
    assert (use.missed, use.is_miss) == (5_000, True)
    assert use.extra_cost_usd == pytest.approx(5_000 * 1.8 / 1e6)
    assert report.cache.extra_cost_usd == use.extra_cost_usd
    assert "2     other tools (tools): 5,000 tokens, +$0.0090" in context_text(report)


async def test_sub_agents_are_one_line_outside_of_the_window() -> None:
    main = [{"text": "", "tool_calls": [task("t")], "usage": FIRST}, *replies(NEXT)]
    agent, *_ = family(main, replies({"input": 900, "output": 30}))
    async with agent.open() as session:
        await session.run("go")
        report = await context_report(session)
    assert (report.sub_agents.count, report.sub_agents.spent.requests, report.sub_agents.spent.uncached) == (1, 1, 900)
    assert report.used.tokens == 5_240
    assert [each.step for each in report.requests] == ["1", "1.2"]
    assert "Outside of this window, 1 sub-agent: 1 request, 900 tokens in" in context_text(report)


async def test_a_compacted_session_begins_with_what_was_kept() -> None:
    agent, *_ = build(replies(FIRST))
    async with agent.open() as session:
        await session.run("go")
        pins = (Pin("request-1", "request", "Keep it."),)
        session.conversation.record(
            Compacted("collapse", 0, summary="They fixed the tests. " * 20, pins=pins, kept_from=9)
        )
        compacted = await context_report(session)
        session.prefix.open_compacted()
        report = await context_report(session)
    assert tokens(compacted) == tokens(report)
    (part,) = (part for part in report.parts if part.name == "compaction")
    assert [each.name for each in part.parts] == ["summary", "pins"]
    assert report.used.reported == 0
    assert_sums(report)


async def test_the_forecast_of_a_compaction_is_shown_with_its_tiers() -> None:
    forecast = CompactionForecast("results", 1_000, 400)
    agent, *_ = build([], model=ScriptedModel(b'[{"text": "x"}]', context_window=8_000))
    async with agent.open() as session:
        report = await context_report(session, forecast)
        without = await context_report(session)
    assert (report.reserved_output, report.free) == (1_000, 7_000 - report.used.tokens)
    assert (report.compaction_thresholds, report.next_compaction) == ((3_500, 4_900, 6_300), forecast)
    assert (without.compaction_thresholds, without.next_compaction) == ((), None)


# ------------------------------------------------------------------ damage


class LossyBlobs:
    """`Blobs` in which some can't be read."""

    def __init__(self, blobs: Any) -> None:
        self._blobs = blobs
        self.lost: set[str] = set()

    def get(self, ref: str) -> bytes:
        if ref in self.lost:
            raise SessionError("A part of the session's history is damaged.")
        return self._blobs.get(ref)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)


async def resumed_without(choose: Callable[[Session], set[str]]) -> ContextReport:
    """The report of a resumed session whose blobs are damaged."""
    store = MemoryStore()
    store.blobs = blobs = LossyBlobs(store.blobs)  # type: ignore[assignment]  # it has the same methods
    agent, *_ = build(replies(FIRST), store=store)
    async with agent.open() as session:
        await session.run("go")
        lost = choose(session)
    blobs.lost = lost
    again, *_ = build([], store=store)
    async with again.open(session.id) as resumed:
        return await context_report(resumed)


def prefix_of(session: Session) -> Any:
    return session.state.prefix


async def test_a_lost_system_prompt_is_named_and_its_size_is_known() -> None:
    report = await resumed_without(lambda session: {prefix_of(session).system_ref})
    assert "system" not in tokens(report)
    assert tokens(report)["lost"] > 0
    assert report.used.tokens == 5_060
    assert [note.partition(";")[0] for note in report.notes] == ["The system prompt of this session is lost"]
    assert "l lost texts" in context_text(report)
    assert_sums(report)


async def test_lost_tools_are_named() -> None:
    report = await resumed_without(lambda session: {prefix_of(session).tools_ref})
    assert "tools" not in tokens(report)
    assert report.notes[0].startswith("The tools as this session sent them are lost: ")
    assert_sums(report)


class UnreadableStore(MemoryStore):
    """A store whose sessions can't be read again."""

    def create(self) -> OpenSession:
        return msgspec.structs.replace(super().create(), read=None)


async def test_without_a_history_that_can_be_read_the_window_is_known_all_the_same() -> None:
    agent, *_ = build(replies(FIRST), store=UnreadableStore())
    async with agent.open() as session:
        await session.run("go")
        report = await context_report(session)
    assert report.used.tokens == report.used.reported == 5_060
    assert report.requests == ()
    assert report.notes[0].startswith("The requests of this session can't be read: ")
    assert_sums(report)


# ------------------------------------------------------------------ the command


class Runs:
    """Runs the command line with a scripted model on a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.script = folder / "home", folder / "script.json"
        self.home.mkdir()
        self.script.write_text(json.dumps(replies(FIRST)))

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        environ = {"HOME": str(self.home), "BRADAWL_MODEL": f"scripted/{self.script}", "BRADAWL_SANDBOX": "off"}
        return run(list(argv), environ, Console(io.StringIO(), out, err, environ)), out.getvalue(), err.getvalue()


@pytest.fixture
def bradawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return Runs(tmp_path)


def test_the_command_shows_the_picture_of_a_continued_session(bradawl: Runs) -> None:
    assert bradawl("-p", "hello")[:2] == (0, "Reply 0.\n")
    code, out, _ = bradawl("-c", "-p", "/context")
    assert code == 0
    assert out.startswith("5,060 of ")
    assert "\nRequests:\n" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_the_command_gives_the_data_as_one_json_object(bradawl: Runs) -> None:
    bradawl("-p", "hello")
    code, out, _ = bradawl("-c", "-p", "/context json")
    report = json.loads(out)
    assert (code, out.count("\n")) == (0, 1)
    assert report["used"] == {"tokens": 5_060, "reported": 5_060, "factor": 1.8}
    assert sum(part["tokens"] for part in report["parts"]) == 5_060
    assert report["requests"][0]["spent"]["cache_write"] == 4_500
    assert set(report) == set(ContextReport.__struct_fields__)


def test_another_word_is_a_usage_error(bradawl: Runs) -> None:
    code, _, err = bradawl("-p", "/context yaml")
    assert (code, err) == (2, "bradawl: There is no form 'yaml' of /context; there is only json.\n")
