"""Questions to the user: one at a time, whoever asks."""

from typing import TYPE_CHECKING

from bradawl.core.permissions import Answer, Choice, Question

if TYPE_CHECKING:
    from bradawl.agent.session import Session

ASKS = "user"
"""The part of a session that a call declares to change when it asks the user something by itself."""


class OneByOne:
    """`Approver` for the tools of a session: waits until no other question is open in it."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def ask(self, question: Question) -> Answer:
        """The user's word on a call."""
        async with self._session.asking:
            return await self._session.agent.approver.ask(question)

    async def choose(self, choice: Choice) -> str | None:
        """What the user says."""
        async with self._session.asking:
            return await self._session.agent.approver.choose(choice)
