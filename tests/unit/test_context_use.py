"""What fills the context window: the parts, their names, and that they always sum up to the reported count."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_histories import histories

from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Opaque,
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import Prefix, ToolSchema
from bradawl.core.usage import Usage
from bradawl.shaping.context_size import message_tokens, prefix_tokens
from bradawl.shaping.context_use import Context, ContextPart, ContextUse, context_use, shares, system_parts
from bradawl.shaping.tokens import estimate

ORIGIN = Origin("openai_chat", "openai", "gpt")
SYSTEM = "You work on code.\n\n<environment>\ngit: yes\n</environment>\n\nUse tabs."
TOOLS = tuple(ToolSchema(name, "Runs something.", msgspec.Raw(b'{"type":"object"}')) for name in ("bash", "grep"))
IMAGE = Image("image/png", b"\xff")
MESSAGES = (
    User((Text("Fix the failing test."), IMAGE), (Note("n", "The mode is plan."),)),
    Assistant((Thinking("Hm."), Text("I look."), ToolCall("a", "bash", '{"command": "ls"}'), Opaque("{}")), ORIGIN),
    ToolResults((ToolResult("a", "bash", (Text("a.py\nb.py"), Document("application/pdf", b"x" * 400))),)),
    User((), (Note("m", "A job ended."),)),
    Assistant((Refusal("No."), Text("It is done.")), ORIGIN),
)


def use(report: Usage | None = None, factor: float = 1.0, **changes: object) -> ContextUse:
    context = Context(system=SYSTEM, tools=TOOLS, messages=MESSAGES, replied_at=len(MESSAGES))
    return context_use(msgspec.structs.replace(context, **changes), report, factor)


def named(parts: tuple[ContextPart, ...]) -> dict[str, ContextPart]:
    return {part.name: part for part in parts}


def assert_sums(found: ContextUse) -> None:
    assert sum(part.tokens for part in found.parts) == found.tokens
    for part in found.parts:
        assert part.tokens >= 0
        assert not part.parts or sum(inner.tokens for inner in part.parts) == part.tokens


def test_every_part_of_a_conversation_has_a_kind_and_tools_have_their_names() -> None:
    parts = named(use().parts)
    assert list(parts) == [
        *("system", "tools", "prompts", "notes", "replies", "thinking", "calls", "results", "images", "files", "other")
    ]
    assert {each.name for each in parts["system"].parts} == {"rules", "environment", "instructions"}
    assert {each.name for each in parts["tools"].parts} == {"bash", "grep"}
    assert [each.name for each in parts["calls"].parts] == [each.name for each in parts["results"].parts] == ["bash"]
    counts = {name: part.count for name, part in parts.items()}
    assert counts["tools"] == counts["notes"] == 2
    assert counts["replies"] == 3
    assert counts["prompts"] == counts["results"] == counts["images"] == counts["files"] == 1


def test_without_a_report_the_sum_is_the_estimate_of_a_request_times_the_factor() -> None:
    system = "You work on code."
    whole = prefix_tokens(Prefix(system, TOOLS)) + sum(map(message_tokens, MESSAGES))
    assert use(system=system).tokens == whole
    assert use(system=system, factor=1.4).tokens == round(1.4 * whole)
    assert use(system=system).reported == 0


def test_what_was_sent_sums_up_to_the_reported_prompt_and_the_reply_to_its_output() -> None:
    found = use(Usage(input=900, cache_read=100, output=50))
    assert (found.tokens, found.reported) == (1_050, 1_050)
    without_reply = use(Usage(input=900, cache_read=100, output=0), messages=MESSAGES[:4], replied_at=4)
    difference = named(found.parts)["replies"].tokens - named(without_reply.parts)["replies"].tokens
    assert difference == 50


def test_what_came_after_the_last_reply_is_estimated_times_the_factor() -> None:
    after = User((Text("And now the other file."),))
    found = use(Usage(input=1_000, output=50), factor=1.5, messages=(*MESSAGES, after))
    assert (found.reported, found.tokens) == (1_050, 1_050 + round(1.5 * message_tokens(after)))


def test_reasoning_that_was_counted_and_not_shown_is_thinking() -> None:
    shown = named(use(Usage(input=1_000, output=50)).parts)["thinking"].tokens
    assert named(use(Usage(input=1_000, output=850, reasoning=800)).parts)["thinking"].tokens == shown + 800


def test_a_reply_without_content_is_in_the_sum() -> None:
    found = use(Usage(input=1_000, output=30), messages=MESSAGES[:4], replied_at=4)
    assert found.tokens == 1_030
    assert_sums(found)


def test_a_compacted_conversation_begins_with_its_pins_and_the_summary() -> None:
    head = User(
        (Text("First the tests were fixed. " * 9), Text("Keep the API stable."), Text("The user is on Debian."))
    )
    parts = named(use(messages=(head, *MESSAGES), is_compacted=True, replied_at=0).parts)
    assert [(each.name, each.count) for each in parts["compaction"].parts] == [("summary", 1), ("pins", 2)]
    assert parts["prompts"].count == 1


@pytest.mark.parametrize("lost", [{"system": None}, {"tools": None}, {"system": None, "tools": None}])
def test_the_size_of_a_lost_text_follows_from_the_estimate_of_the_last_request(lost: dict[str, None]) -> None:
    system = "You work on code."
    request = prefix_tokens(Prefix(system, TOOLS)) + sum(map(message_tokens, MESSAGES[:-1]))
    changes = {"system": system, "request_tokens": request, **lost}
    known = use(Usage(input=1_000, output=50), system=system)
    found = use(Usage(input=1_000, output=50), **changes)
    wanted = sum(named(known.parts)[name].tokens for name in lost)
    assert named(found.parts)["lost"].tokens == pytest.approx(wanted, abs=10)
    assert not named(found.parts).keys() & lost.keys()
    assert found.tokens == 1_050


def test_a_session_that_has_not_begun_has_only_tools() -> None:
    found = use(system="", messages=(), replied_at=0)
    assert [part.name for part in found.parts] == ["tools"]
    assert use(system="", tools=(), messages=(), replied_at=0) == ContextUse(0, 0, ())


def test_long_conversations_are_estimated_from_a_part_of_the_results() -> None:
    texts = [f"{number}: value = compute({number})\n" * 40 for number in range(1_000)]
    results = [ToolResults((ToolResult("a", "bash", (Text(text),)),)) for text in texts]
    found = named(use(messages=results, replied_at=0).parts)["results"]
    assert found.tokens == pytest.approx(sum(map(estimate, texts)), rel=0.05)
    assert found.count == 1_000


@pytest.mark.parametrize(
    ("system", "names"),
    [
        (SYSTEM, ("rules", "environment", "instructions")),
        ("You are a test.", ("rules",)),
        ("<environment>\na\n</environment>", ("environment",)),
        ("Rules.\n<environment>\nno end", ("rules", "environment")),
        ("", ()),
    ],
)
def test_the_system_prompt_is_divided_and_nothing_is_left_out(system: str, names: tuple[str, ...]) -> None:
    parts = system_parts(system)
    assert tuple(name for name, _ in parts) == names
    assert "".join(text for _, text in parts) == system


@given(st.lists(st.integers(0, 10_000), min_size=1).filter(any), st.integers(0, 2_000_000))
def test_shares_have_the_wanted_sum_and_no_share_is_off_by_one(estimates: list[int], total: int) -> None:
    found = shares(estimates, total)
    assert sum(found) == total
    whole = sum(estimates)
    assert all(abs(share - total * part / whole) < 1 for share, part in zip(found, estimates, strict=True))


COUNTS = st.integers(0, 300_000)


@given(
    histories(),
    st.none() | st.builds(Usage, input=COUNTS, output=COUNTS, cache_read=COUNTS, reasoning=COUNTS),
    st.floats(0.6, 1.8),
    st.data(),
)
def test_the_parts_always_sum_up_to_the_total(
    history, report: Usage | None, factor: float, data: st.DataObject
) -> None:
    messages = history.messages
    found = use(
        report,
        factor,
        messages=messages,
        system=data.draw(st.sampled_from([SYSTEM, "", None])),
        tools=data.draw(st.sampled_from([TOOLS, (), None])),
        replied_at=data.draw(st.integers(0, len(messages))),
        is_compacted=data.draw(st.booleans()),
        request_tokens=data.draw(COUNTS),
    )
    assert_sums(found)
    if found.reported and report is not None:
        assert found.reported == report.prompt + report.output <= found.tokens
