"""The slash command `/cost`."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from bradawl.app.frontend import FrontendSession
from bradawl.app.rendering import one_line, price_text, token_count
from bradawl.app.slash_commands import command
from bradawl.core.events import SessionForked
from bradawl.core.usage import Price, Usage
from bradawl.folds.bill import Bill, BillLine, Total, bill_of
from bradawl.safety.control_characters import json_for_terminals

_LABEL: Final = 14
_VALUE: Final = 12
_LEAST_SHOWN: Final = 0.00005


@command("cost", "tokens")
def show_cost(session: FrontendSession, form: Literal["json"] | None = None) -> str:
    """Show what this session used and cost, by model, and what the cache saved.

    Sub-agents and compactions are listed by themselves. What was taken back by /undo is paid all the same. Numbers with
    ~ are estimates. /cost json gives the data.
    """
    models = session.frontend.request.models
    info = session.session.model.info

    def price_of(provider: str, model: str) -> Price | None:
        if (provider, model) == (info.origin.provider, info.origin.model):
            return info.price
        return models.price_of(provider, model) if models is not None and provider else None

    entries = session.session.conversation.entries()
    bill = bill_of(entries, price_of)
    if form == "json":
        return json_for_terminals(msgspec.json.format(msgspec.json.encode(bill)).decode())
    lines = cost_lines(bill)
    if any(isinstance(each.event, SessionForked) for each in entries):
        lines += ["", "It goes on from another session, whose", "requests are counted here, too."]
    return "\n".join(lines)


def cost_lines(bill: Bill) -> list[str]:
    """The bill in lines of at most 40 columns, unless the name of a model is longer."""
    if not bill.total.requests:
        return ["No request was made yet."]
    lines: list[str] = []
    for each in bill.lines:
        lines += [_title(each), *_rows(_facts(each)), ""]
    return [*lines, *_total_rows("last turn", bill.last_turn), *_total_rows("session", bill.total)]


def _title(line: BillLine) -> str:
    if line.work == "compaction":
        return "summaries of compactions"
    name = one_line(f"{line.provider}/{line.model}")
    return name if line.work == "conversation" else f"{name}, sub-agents"


def _facts(line: BillLine) -> list[tuple[str, str]]:
    usage, about = line.usage, _about(line.usage)
    facts = [
        ("requests", f"{line.requests:,}"),
        ("input", about + token_count(usage.input)),
        ("cache read", token_count(usage.cache_read)),
        ("cache written", token_count(usage.cache_write)),
        ("output", about + token_count(usage.output)),
        ("thinking", token_count(usage.reasoning)),
    ]
    shown = [fact for fact in facts if fact[1] not in ("0", "~0")]
    return [*shown, ("cost", _price(line.cost, about)), *_saved(line)]


def _saved(line: BillLine) -> list[tuple[str, str]]:
    if not (line.usage.cache_read or line.usage.cache_write):
        return []
    if line.saved is None:
        return [("cache saved", "unknown")]
    if line.saved < -_LEAST_SHOWN:
        return [("cache cost", f"{price_text(-line.saved)} so far")]
    return [("cache saved", price_text(max(0.0, line.saved)))]


def _total_rows(label: str, total: Total) -> list[str]:
    about = _about(total.usage)
    rows = _rows([(label, _price(total.cost, about))])
    if total.cost is None and total.unpriced < total.requests:
        rows.append(f"    {about}{price_text(total.known_cost)} and {total.unpriced} of unknown price")
    return rows


def _rows(facts: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {label:<{_LABEL}}{value:>{_VALUE}}".rstrip() for label, value in facts]


def _about(usage: Usage) -> str:
    return "~" if usage.source == "estimated" else ""


def _price(cost: float | None, about: str) -> str:
    return "unknown" if cost is None else about + price_text(cost)
