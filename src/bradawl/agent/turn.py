"""One turn: what its steps work with, and the text of its answer so far."""

from collections.abc import Sequence

from bradawl.agent.calls.context import CallServices
from bradawl.agent.conversation import Conversation
from bradawl.agent.middleware import Middleware
from bradawl.agent.prefix import PrefixLedger
from bradawl.core.events import RequestParams, TurnFinished
from bradawl.core.messages import Assistant, calls_of, text_of
from bradawl.core.retry import RetryBudget


class Turn:
    """One turn: what its steps work with, and the text of its answer so far."""

    def __init__(
        self,
        conversation: Conversation,
        prefix: PrefixLedger,
        calls: CallServices,
        middleware: Sequence[Middleware],
        params: RequestParams,
        retry: RetryBudget,
    ) -> None:
        self.conversation, self.prefix, self.calls = conversation, prefix, calls
        self.middleware, self.params, self.retry = middleware, params, retry
        self.answer = ""
        """The kept pieces and the text of the last reply; empty for a reply with calls."""
        self._kept = ""
        self._failed_steps = 0
        """The last steps of the turn that failed, in a row."""

    def answer_with(self, reply: Assistant) -> str:
        """The answer if this is the next reply."""
        return self._kept + ("" if calls_of(reply) else text_of(reply.parts))

    def add(self, reply: Assistant) -> None:
        """Take the text of a logged reply."""
        self.answer, self._kept = self.answer_with(reply), ""

    def keep(self) -> None:
        """The next reply continues the text of the last one."""
        self._kept = self.answer

    def goes_on_after(self, ending: TurnFinished) -> bool:
        """True if the user said something the model has not seen; it may have come while middleware were waiting."""
        return ending.reason == "completed" and self.conversation.inbox.holds_user_note

    def count_failed(self, ending: TurnFinished | None) -> int:
        """Number of steps in a row that failed, with the one that has this ending."""
        self._failed_steps = self._failed_steps + 1 if ending is not None and ending.failure is not None else 0
        return self._failed_steps
