"""Replies that end before the model was done: cut by the output limit, or paused by the provider.

A limit that can be raised is raised, and the reply asked for again; otherwise the cut text is kept and the model
goes on where it stopped.
"""

from typing import TYPE_CHECKING

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams, TurnFinished
from bradawl.core.messages import Origin, calls_of, text_of
from bradawl.folds.assembler import Assembler

if TYPE_CHECKING:
    from bradawl.agent.session import Session

GO_ON = (
    "Your last reply was cut by the output limit. Continue exactly where you stopped: begin with the next character, "
    "do not repeat anything, and do not comment on the cut."
)
MOST_CONTINUATIONS = 3
"""Of one turn."""
_MOST_PAUSES = 10
"""In a row; each is a request that may cost as much as a step."""
_AT_THE_LIMIT = 0.9
"""A reply that used this share of what the model can give at most was not cut by a lower limit."""


class OutputLimit:
    """What a session asks for at most, and the pieces of an answer that came in several replies."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._raised: tuple[Origin, int] | None = None
        self._pieces: list[str] = []
        self._continued = 0
        self._paused = 0
        self._replies = 0
        """How many replies the session had when the last piece came."""

    def begin_turn(self) -> None:
        """Forget the turn before."""
        self.begin_answer()
        self._continued = self._paused = 0

    def begin_answer(self) -> None:
        """What comes next is no continuation of what came before."""
        self._pieces.clear()

    def limited(self, params: RequestParams) -> RequestParams:
        """The parameters with the raised limit, as long as the same model answers."""
        if self._raised is None or self._raised[0] != self._session.info.origin:
            return params
        return msgspec.structs.replace(params, max_output_tokens=self._raised[1])

    def objection(self, reply: Assembler) -> Failure | None:
        """Why a reply that ended is not to be kept: it can be had with a higher limit.

        A reply with calls is kept whatever became of it; then only the next request asks for more.
        """
        if reply.stop != "max_tokens":
            return None
        limit = self._higher_limit(reply)
        if limit is None:
            return None
        self._raised = self._session.info.origin, limit
        if calls_of(reply.reply()):
            return None
        text = f"The reply was cut by the output limit; it is asked for again with a limit of {limit:,} tokens."
        return Failure("output_limit", text, retryable=True, retry_after_s=0.0)

    def _higher_limit(self, reply: Assembler) -> int | None:
        """The model's own limit if it was not asked for yet; what the user has set stays."""
        most = self._session.info.max_output
        if most is None or self._session.params.max_output_tokens is not None:
            return None
        used = 0 if reply.usage is None else reply.usage.output
        return most if used < most * _AT_THE_LIMIT else None

    def look(self, finished: TurnFinished) -> TurnFinished | None:
        """Let the turn go on where its answer is not whole yet; otherwise it ends as it would."""
        state = self._session.state
        is_next_piece = bool(self._pieces) and state.replies == self._replies + 1
        if state.replies > self._replies + 1:
            self.begin_answer()
        if state.last_stop == "pause" and finished.failure is None:
            return self._after_pause(finished)
        if finished.failure is None or finished.failure.kind != "output_limit":
            return self._ended(finished, in_between=bool(self._pieces) and not is_next_piece)
        piece = self._last_text()
        adds_nothing = not piece.strip() or (is_next_piece and piece == self._pieces[-1])
        if adds_nothing or self._continued >= MOST_CONTINUATIONS:
            return finished
        self._continued += 1
        self._keep(piece)
        self._session.note(GO_ON)
        return None

    def _after_pause(self, finished: TurnFinished) -> TurnFinished | None:
        """A paused reply is sent back as it is, and the provider goes on with it."""
        if self._paused >= _MOST_PAUSES:
            text = f"The provider paused the reply {self._paused + 1} times in a row without ending it."
            return msgspec.structs.replace(finished, reason="error", failure=Failure("server", text))
        self._paused += 1
        self._keep(self._last_text())
        return None

    def _ended(self, finished: TurnFinished, *, in_between: bool) -> TurnFinished:
        """What stands is cut when the request to continue it failed; that comes first, whatever came in between."""
        failure = finished.failure
        if not (in_between and self._continued and finished.reason == "error" and failure is not None):
            return finished
        text = f"The reply was cut by the output limit, and the request to continue it failed: {failure.message}"
        return TurnFinished("error", msgspec.structs.replace(failure, kind="output_limit", message=text))

    def _keep(self, piece: str) -> None:
        self._pieces.append(piece)
        self._replies = self._session.state.replies

    def _last_text(self) -> str:
        last = self._session.state.last_reply
        return "" if last is None or calls_of(last) else text_of(last.parts)

    def text(self) -> str:
        """The answer so far, all its pieces joined; empty when the last reply was on its way to a call."""
        replies = self._session.state.replies
        if not self._pieces or replies > self._replies + 1:
            return self._last_text()
        return "".join(self._pieces) + (self._last_text() if replies > self._replies else "")
