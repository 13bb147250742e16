"""The slash command `/context`."""

import os
from typing import Literal

from bradawl.app.context_report import CompactionForecast, FreedPart, context_report
from bradawl.app.context_text import USUAL_WIDTH, context_text
from bradawl.app.frontend import FrontendSession
from bradawl.app.slash_commands import CommandResult, command

_STDOUT = 1


@command("context")
async def show_context(session: FrontendSession, form: Literal["json"] | None = None) -> CommandResult | str:
    """Show what fills the context window, and what the cache saved.

    The window by part, what the next compaction would free, the requests with their tokens and cost, and why a request
    could not use the cache. Numbers with ~ are estimates. /context json gives the data.
    """
    report = await context_report(session.session, await _next_compaction_of(session))
    if form == "json":
        return report.to_json()
    return CommandResult(context_text(report, _columns()), context=report)


async def _next_compaction_of(session: FrontendSession) -> CompactionForecast | None:
    found = await session.session.compaction.forecast()
    if found is None:
        return None
    what = tuple(FreedPart(label, tokens) for label, tokens in sorted(found.freed.items(), key=lambda each: -each[1]))
    return CompactionForecast(found.tier, found.at_tokens, sum(found.freed.values()), what)


def _columns() -> int:
    """The width of the terminal if it is narrower than usual."""
    try:
        columns = os.get_terminal_size(_STDOUT).columns
    except OSError:
        return USUAL_WIDTH
    return min(columns, USUAL_WIDTH) or USUAL_WIDTH  # some terminals report 0
