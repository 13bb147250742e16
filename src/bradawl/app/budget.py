"""The limit on what a run costs (`--max-budget-usd`): counted over turns and sub-agents, checked before each step."""

from typing import Final

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Event,
    LimitReached,
    ReplyWithdrawn,
    RequestParams,
    TurnFinished,
)

_HINT: Final = "Leave it out, or add the price to [models] of config.toml."


class Budget:
    """US dollars that a run may cost and has cost; all its conversations share it."""

    def __init__(self, most_usd: float) -> None:
        self.most_usd = most_usd
        self.spent_usd = 0.0
        self.is_known = True
        """False after a reply whose cost is not known."""

    def take(self, event: Event) -> None:
        """Count what a model was paid for."""
        if isinstance(event, AssistantReplied | ReplyWithdrawn | Compacted) and event.usage is not None:
            self.is_known = self.is_known and event.cost is not None
            self.spent_usd += event.cost or 0.0


class BudgetLimit(Middleware):
    """Ends a turn before the first step after the budget is spent. The step that exceeds it is paid."""

    def __init__(self, context: MiddlewareContext, budget: Budget) -> None:
        self._conversation, self._prefix, self._budget = context.conversation, context.prefix, budget
        context.conversation.listen(budget.take)

    def begin_turn(self, params: RequestParams) -> None:
        """Raises `SettingsError` for a model without a price."""
        if self._prefix.info.price is None:
            raise SettingsError(f"{self._unknown()} {_HINT}")

    async def before_step(self) -> Finish | None:
        """Log and report the limit if the budget is spent."""
        budget = self._budget
        if not budget.is_known:
            return Finish(TurnFinished("error", Failure("invalid_request", self._unknown(), hint=_HINT)))
        if budget.spent_usd < budget.most_usd:
            return None
        self._conversation.record(LimitReached("budget", budget.spent_usd, budget.most_usd))
        return Finish(TurnFinished("budget"))

    def _unknown(self) -> str:
        origin = self._prefix.info.origin
        return f"What {origin.provider}/{origin.model} costs is not known, so --max-budget-usd can't be kept."
