"""Questions of tools to the user: one at a time per session, sub-agents included."""

import asyncio

from bradawl.core.permissions import Answer, Choice, Question
from bradawl.core.ports import Approver


class SerializedApprover:
    """`Approver` that waits until no other question of the session is open."""

    def __init__(self, approver: Approver, asking: asyncio.Lock) -> None:
        """`asking` is held while a question is open."""
        self._approver = approver
        self._asking = asking

    async def ask(self, question: Question) -> Answer:
        """Ask for permission. Waits until the user has answered."""
        async with self._asking:
            return await self._approver.ask(question)

    async def choose(self, choice: Choice) -> str | None:
        """Ask the user to choose or to type an answer; None if there is none."""
        async with self._asking:
            return await self._approver.choose(choice)
