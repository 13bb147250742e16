"""What the last line of a turn says: how it ended, and what it took."""

from typing import NamedTuple

from bradawl.app.durations import duration_text
from bradawl.app.rendering import price_text, short_count, usage_text
from bradawl.core.events import TurnReason
from bradawl.core.usage import Usage


class TurnEnd(NamedTuple):
    """The end of a turn."""

    reason: TurnReason
    steps: int
    usage: Usage
    cost: float | None
    """US dollars; None if unknown."""
    seconds: float
    says_unknown_cost: bool = True
    """It has not been said in this session that the cost is not known."""

    def facts(self) -> dict[str, str]:
        """Duration, steps, tokens in, tokens out and cost, by name; what is not known is left out."""
        about = "~" if self.usage.source == "estimated" else ""
        facts = {"time": duration_text(self.seconds), "steps": f"{self.steps} step{'s' * (self.steps != 1)}"}
        if not self.usage.prompt and not self.usage.output:
            return facts
        facts["in"] = f"{about}{short_count(self.usage.prompt)} in"
        facts["out"] = f"{about}{short_count(self.usage.output)} out"
        if self.cost is not None:
            facts["cost"] = f"{about}{price_text(self.cost)}"
        elif self.says_unknown_cost:
            facts["cost"] = "cost unknown"
        return facts

    def sentence(self, *, has_time: bool) -> str:
        """The same for plain lines; without the time, which differs between equal runs."""
        text = usage_text(self.steps, self.usage, self.cost, says_unknown_cost=self.says_unknown_cost)
        return f"{text}, {duration_text(self.seconds)}" if has_time else text
