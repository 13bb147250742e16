"""The picture of `/context`: at 80 and at 40 columns, and no line that is too long."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.context_report import (
    CacheSummary,
    CompactionForecast,
    ContextReport,
    FreedPart,
    Request,
    Spent,
    SubAgentsSummary,
    UsedTokens,
)
from bradawl.app.context_text import context_text
from bradawl.core.ports import Window
from bradawl.folds.request_use import NewPrefix
from bradawl.shaping.context_use import ContextPart


def part(name: str, tokens: int, count: int = 1, *parts: ContextPart) -> ContextPart:
    return ContextPart(name, tokens, count, parts)


def spent(requests: int = 1, cost: float | None = 0.0, **tokens: Any) -> Spent:
    zero = dict.fromkeys(("uncached", "cache_read", "cache_write", "output", "reasoning"), 0)
    return Spent(**{"requests": requests, "source": "reported", "cost_usd": cost, **zero, **tokens})


def request(step: str, **changes: Any) -> Request:
    given = {
        "step": step,
        "sent_ms": 0,
        "pause_s": 4.0,
        "provider": "openai",
        "model": "gpt-5.5",
        "spent": spent(1, 0.0123, uncached=410, cache_read=30_000, cache_write=1_200, output=250),
        "withdrawn": False,
        "taken_back": False,
        "new_prefixes": (),
        "missed": 0,
        "extra_cost_usd": 0.0,
        "is_miss": False,
    }
    return Request(**{**given, **changes})


TOOLS = ("bash", "read_file", "grep", "glob", "agent", "bash_kill", "look", "see")
PARTS = (
    part("system", 2_310, 2, part("rules", 2_010), part("environment", 300)),
    part("tools", 6_480, 8, *(part(name, 810) for name in TOOLS)),
    part("prompts", 412, 3),
    part("replies", 2_800, 12),
    part("thinking", 9_004, 11),
    part("calls", 3_100, 14, part("bash", 2_000, 9), part("read_file", 1_100, 5)),
    part("results", 36_000, 14, part("bash", 22_500, 9), part("read_file", 13_500, 5)),
    part("images", 1_134, 1),
)
MISS = {"is_miss": True, "missed": 30_400, "extra_cost_usd": 0.0684}
REQUESTS = (
    request("1", pause_s=None, new_prefixes=(NewPrefix("start", ""),)),
    request("1.2", **MISS, new_prefixes=(NewPrefix("tools", "tools"),)),
    request("2", **MISS, pause_s=3_720.0),
    request("2.2", withdrawn=True),
    request("3", taken_back=True),
    request("4", spent=spent(1, None, source="estimated", uncached=31_000, output=90)),
    request("5", spent=None),
)
FORECAST = CompactionForecast(
    "snip", 84_000, 21_500, (FreedPart("results of bash", 14_000), FreedPart("results of read_file", 7_500))
)
REPORT = ContextReport(
    session="01",
    provider="openai",
    model="gpt-5.5",
    window=Window(200_000, "settings"),
    reserved_output=32_000,
    used=UsedTokens(61_240, 60_112, 1.12),
    free=106_760,
    parts=PARTS,
    compaction_thresholds=(84_000, 117_600, 151_200),
    next_compaction=FORECAST,
    compacts_after_errors=False,
    cache=CacheSummary(is_reported=True, hit_rate=0.8534, missed=60_800, extra_cost_usd=0.1368),
    requests=REQUESTS,
    total=spent(7, None, uncached=33_000, cache_read=180_000, cache_write=7_200, output=1_590),
    taken_back=spent(1, 0.0123, uncached=410, cache_read=30_000, cache_write=1_200, output=250),
    sub_agents=SubAgentsSummary(2, spent(9, 0.214, uncached=9_000, cache_read=41_000, output=2_104)),
    notes=(),
)


def report(**changes: Any) -> ContextReport:
    return msgspec.structs.replace(REPORT, **changes)


NOT_BEGUN = report(
    window=Window(128_000, "assumed"),
    reserved_output=8_192,
    used=UsedTokens(712, 0, 1.0),
    free=119_096,
    parts=(part("tools", 712, 1, part("bash", 712)),),
    compaction_thresholds=(),
    next_compaction=None,
    compacts_after_errors=False,
    cache=CacheSummary(is_reported=False, hit_rate=None, missed=0, extra_cost_usd=0.0),
    requests=(),
    total=spent(0),
    taken_back=spent(0),
    sub_agents=SubAgentsSummary(0, spent(0)),
    notes=("The system prompt is made with the first prompt; it is not counted yet.",),
)

AT_80 = """\
~61,240 of 200,000 tokens, 31 %, openai/gpt-5.5
60,112 were counted by the model, ~1,128 since then are estimated. The parts are
estimated.

stttrhhhccxxxxxxxxxxxxxx.........|.............|............|......=============

                                            items    tokens    %
s system prompt                                 2     2,310  1.2
    rules                                       1     2,010  1.0
    environment                                 1       300  0.1
t tools                                         8     6,480  3.2
    bash                                        1       810  0.4
    read_file                                   1       810  0.4
    grep                                        1       810  0.4
    glob                                        1       810  0.4
    agent                                       1       810  0.4
    3 others                                    3     2,430  1.2
p prompts                                       3       412  0.2
r replies                                      12     2,800  1.4
h thinking                                     11     9,004  4.5
c calls                                        14     3,100  1.6
    bash                                        9     2,000  1.0
    read_file                                   5     1,100  0.6
x results                                      14    36,000   18
    bash                                        9    22,500   11
    read_file                                   5    13,500  6.8
i images                                        1     1,134  0.6
. free                                              106,760   53
= for the reply                                      32,000   16

Next compaction: snip, at 84,000 tokens, in 22,760 tokens. Now it would free
~21,500 tokens. | marks the tiers: 84,000, 117,600, 151,200.
    results of bash                                  14,000
    results of read_file                              7,500

Cache: 85 % of the prompt tokens were read from it: 180,000 read, 7,200 written,
33,000 neither.
New prefixes, and what a hit would have saved:
  1.2   other tools (tools): 30,400 tokens, +$0.0684
Misses without a new prefix; caches expire:
  2     after 62 min: 30,400 tokens, +$0.0684

Requests, the last 5 of 7:
step       read  written  neither  output   hit      cost
2        30,000    1,200      410     250  95 %   $0.0123
2.2      30,000    1,200      410     250  95 %   $0.0123 withdrawn
3        30,000    1,200      410     250  95 %   $0.0123 taken back
4             -        -  ~31,000     ~90     -         ?
5     no report

In all: 7 requests, 220.2k tokens in (180.0k cached), 1,590 out, cost unknown.
Taken back, and paid for: 1 request, 31.6k tokens in (30.0k cached), 250 out,
$0.0123.
Outside of this window, 2 sub-agents: 9 requests, 50.0k tokens in (41.0k
cached), 2,104 out, $0.21."""
AT_40 = """\
~61,240 of 200,000 tokens, 31 %,
openai/gpt-5.5
60,112 were counted by the model, ~1,128
since then are estimated. The parts are
estimated.

tthhcxxxxxxx....|......|......|...======

                    items    tokens    %
s system prompt         2     2,310  1.2
    rules               1     2,010  1.0
    environment         1       300  0.1
t tools                 8     6,480  3.2
    bash                1       810  0.4
    read_file           1       810  0.4
    grep                1       810  0.4
    glob                1       810  0.4
    agent               1       810  0.4
    3 others            3     2,430  1.2
p prompts               3       412  0.2
r replies              12     2,800  1.4
h thinking             11     9,004  4.5
c calls                14     3,100  1.6
    bash                9     2,000  1.0
    read_file           5     1,100  0.6
x results              14    36,000   18
    bash                9    22,500   11
    read_file           5    13,500  6.8
i images                1     1,134  0.6
. free                      106,760   53
= for the reply              32,000   16

Next compaction: snip, at 84,000 tokens,
in 22,760 tokens. Now it would free
~21,500 tokens. | marks the tiers:
84,000, 117,600, 151,200.
    results of bash          14,000
    results of r...           7,500

Cache: 85 % of the prompt tokens were
read from it: 180,000 read, 7,200
written, 33,000 neither.
New prefixes, and what a hit would have
saved:
  1.2   other tools (tools): 30,400
        tokens, +$0.0684
Misses without a new prefix; caches
expire:
  2     after 62 min: 30,400 tokens,
        +$0.0684

Requests, the last 5 of 7:
step      prompt   hit      cost
2         31,610  95 %   $0.0123
2.2       31,610  95 %   $0.0123
3         31,610  95 %   $0.0123
4        ~31,000     -         ?
5     no report

In all: 7 requests, 220.2k tokens in
(180.0k cached), 1,590 out, cost
unknown.
Taken back, and paid for: 1 request,
31.6k tokens in (30.0k cached), 250 out,
$0.0123.
Outside of this window, 2 sub-agents: 9
requests, 50.0k tokens in (41.0k
cached), 2,104 out, $0.21."""


def test_the_picture_at_80_columns() -> None:
    assert context_text(REPORT, 80) == AT_80


def test_the_picture_at_40_columns() -> None:
    assert context_text(REPORT, 40) == AT_40


def test_a_session_that_has_not_begun_says_what_is_not_known_yet() -> None:
    shown = context_text(NOT_BEGUN)
    assert shown.startswith("~712 of 128,000 tokens, 0.6 %, openai/gpt-5.5\nAll is estimated")
    assert "The size of the window is assumed" in shown
    assert "The system prompt is made with the first prompt" in shown
    assert "\nt tools: bash " in shown
    assert "Nothing is compacted" in shown
    assert shown.endswith("No request has been answered yet.")


def test_a_provider_without_a_cache_is_said_once_and_has_no_hits() -> None:
    cache = CacheSummary(is_reported=False, hit_rate=None, missed=0, extra_cost_usd=0.0)
    shown = context_text(report(cache=cache, requests=REQUESTS[:2]))
    assert shown.count("gpt-5.5 reported no cached tokens") == 1
    assert "New prefixes" not in shown
    assert "95 %" not in shown


def test_of_many_misses_the_largest_are_shown_in_their_order() -> None:
    sizes = (9_000, 2_000, 8_000, 7_000, 6_000, 1_100, 5_000)
    misses = [request(f"{place}", is_miss=True, missed=size) for place, size in enumerate(sizes, 1)]
    lines = context_text(report(requests=tuple(misses))).splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("Misses without"))
    shown = [line.split()[0] for line in lines[place + 1 : place + 6]]
    assert shown == ["1", "3", "4", "5", "7"]
    assert lines[place + 6] == "  and 2 smaller ones"


@pytest.mark.parametrize(
    ("extra", "missed", "said"),
    [
        (None, 5_000, "5,000 tokens, price unknown"),
        (0.25, 5_000, "5,000 tokens, +$0.25"),
        (0.0, 0, "nothing was missed"),
    ],
)
def test_a_new_prefix_says_what_it_cost(extra: float | None, missed: int, said: str) -> None:
    opened = (NewPrefix("rewound", ""), NewPrefix("changed", "message 3 (prompt)"))
    use = request("2", new_prefixes=opened, missed=missed, extra_cost_usd=extra)
    shown = " ".join(context_text(report(requests=(use,))).split())
    assert "2 the conversation was taken back, what was sent before is sent differently (message 3 (prompt))" in shown
    assert f": {said}" in shown


@pytest.mark.parametrize(("seconds", "said"), [(4.0, "4 s"), (600.0, "10 min"), (72_000.0, "20 h")])
def test_a_pause_has_a_fitting_unit(seconds: float, said: str) -> None:
    shown = context_text(report(requests=(request("2", is_miss=True, missed=5_000, pause_s=seconds),)))
    assert f"2     after {said}: " in shown


def test_a_conversation_longer_than_the_window_fills_the_bar() -> None:
    full = report(window=Window(40_000, "server"), reserved_output=8_000, free=0, compaction_thresholds=())
    bar = next(line for line in context_text(full).splitlines() if line.startswith("s"))
    assert len(bar) == 80
    assert "." not in bar and "=" not in bar


def test_each_line_of_the_table_is_marked_with_its_letter_of_the_bar() -> None:
    lines = context_text(REPORT).splitlines()
    bar = next(line for line in lines if line.startswith("stt"))
    rows = [line[0] for line in lines[6:] if line[1:2] == " " and line[0] not in " 12345"]
    assert set(bar) - {"|"} <= set(rows)


NAMES = st.text(min_size=1, max_size=60)


@given(st.integers(1, 120), NAMES, NAMES)
def test_no_line_is_wider_than_the_terminal_and_nothing_can_control_it(width: int, name: str, words: str) -> None:
    parts = (*PARTS, part("other", 10, 2, part(name, 5), part("two", 5)))
    use = request("2", **MISS, new_prefixes=(NewPrefix("changed", words),))
    shown = context_text(report(parts=parts, requests=(*REQUESTS, use), model=words, notes=(words,)), width)
    assert all(len(line) <= max(32, width) for line in shown.splitlines())
    assert "\x1b" not in shown and "\r" not in shown


STRUCTS = (
    ContextReport,
    UsedTokens,
    Window,
    ContextPart,
    CompactionForecast,
    FreedPart,
    CacheSummary,
    Request,
    NewPrefix,
)


@pytest.mark.parametrize("struct", [*STRUCTS, Spent, SubAgentsSummary])
def test_the_page_explains_every_field(struct: type[msgspec.Struct]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "context.md").read_text()
    assert [name for name in struct.__struct_fields__ if f"`{name}`" not in page] == []


def test_the_picture_of_the_page_is_this_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "context.md").read_text()
    assert f"```\n{AT_80}\n```" in page


def test_the_data_is_one_line_of_json_with_all_fields() -> None:
    odd = report(model="\ud800 \u202e", parts=(part("calls", 1, 1, part("x\n\x1b", 1)),))
    for one in (REPORT, NOT_BEGUN, odd):
        text = one.to_json()
        assert "\n" not in text
        assert "\u202e" not in text and "\x1b" not in text
        assert json.loads(text) == json.loads(json.dumps(msgspec.to_builtins(one)))
    assert set(json.loads(REPORT.to_json())) == set(ContextReport.__struct_fields__)
