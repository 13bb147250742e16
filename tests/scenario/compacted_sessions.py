"""Opens a planted session as the agent would, and compacts it with one tier."""

from collections.abc import Sequence
from typing import Any

import msgspec
from planted_sessions import PlantedSession

from bradawl.agent.compaction.compactor import Compactor
from bradawl.agent.conversation import Conversation
from bradawl.agent.prefix import PrefixLedger
from bradawl.core.events import Compacted
from bradawl.core.messages import Message
from bradawl.core.permissions import Policy
from bradawl.core.ports import Model
from bradawl.shaping.compaction.limits import Room, Tier
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryFiles, MemoryStore
from bradawl.testing.scripted import ScriptedModel

NO_MODEL = [{"text": "overloaded", "faults": {"status": 400}}] * 9
"""A script whose requests all fail."""


async def _no_system_prompt() -> str:
    return ""


class OpenedSession:
    """A planted session with its conversation."""

    def __init__(self, planted: PlantedSession, script: Sequence[Any] = NO_MODEL, model: Model | None = None) -> None:
        opened = MemoryStore().create()
        for event in planted.events:
            opened.log.append(event)
        self.model = model or ScriptedModel(msgspec.json.encode(list(script)))
        self.conversation = Conversation(
            msgspec.structs.replace(opened, entries=opened.read() if opened.read else ()), FakeIds(), FakeClock()
        )
        self.prefix = PrefixLedger(self.conversation, self.model, (), _no_system_prompt)
        self.compactor = Compactor(
            self.conversation, self.prefix, MemoryFiles(), lambda: Policy("bypass"), self.model, None
        )
        self.room = Room(planted.window, planted.window * 7 // 8, 0)

    @property
    def messages(self) -> list[Message]:
        """The transcript now."""
        return list(self.conversation.transcript.messages)

    async def compact(self, tier: Tier) -> Compacted | None:
        """Compact it; a `snip` may be worth any cost."""
        return await self.compactor.compact(tier, self.room, requests=10_000)
