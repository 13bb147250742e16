"""Judges the connections of a running command, one host at a time."""

import asyncio
from typing import Final

import msgspec

from bradawl.agent.calls.authorize import authorize, decision_on
from bradawl.agent.calls.call import Prepared, Refused
from bradawl.agent.calls.context import CallServices
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Allow, Ask, Deny, Grant
from bradawl.safety.permissions.domains import DESTINATION

_RUNS_ON: Final = (
    "the command runs in the background, where the user is not asked. Run a command that connects to this host in the "
    "foreground, so that the user can allow the host for the session"
)

_MOST_QUESTIONS: Final = 100
"""Hosts of one command about which the user is asked."""
_MOST_LOGGED: Final = 100
"""Decisions without a question that one command adds to the log."""
_TOO_MANY: Final = f"the command has asked for {_MOST_QUESTIONS} hosts already"
_ALL_REFUSED: Final = "the user declined all further hosts of this command"


def is_connection(prepared: Prepared, effects: Effects) -> bool:
    """Whether these effects, found while a call runs, are connections of its command."""
    return bool(prepared.effects.seal and effects.hosts)


class CallConnections:
    """Judges the connections of one call's command."""

    def __init__(self, services: CallServices, prepared: Prepared, grant: Grant) -> None:
        self._services = services
        self._prepared = prepared
        self._grant = grant
        self._asking = asyncio.Lock()
        self._may_ask = True
        self._asked: set[tuple[str, ...]] = set()
        """Hosts about which the user was asked."""
        self._logged: list[Allow | Deny] = []
        """Decisions of rules and modes that are in the log."""

    async def permit(self, hosts: tuple[str, ...], *, is_over: bool) -> None:
        """Judge connections; may ask the user. Raises `ToolError` with the reason of a refusal.

        `hosts` are destinations as `safety.permissions.domains` describes them. With `Grant.network` there is no
        question about the ports 80 and 443, unless a rule asks. Nothing is asked after the call has ended (`is_over`),
        after the user has refused all hosts of the command, and after 100 questions.
        """
        if not all(map(DESTINATION.fullmatch, hosts)):
            raise ToolError("that is not the name of a host")
        connection = msgspec.structs.replace(self._prepared, effects=Effects(hosts=hosts, lifts=("host",)))
        decision = decision_on(self._services, connection)
        if not isinstance(decision, Ask):
            await self._apply(decision, connection)
            return
        is_on_other_port = any(":" in host for host in hosts)
        if self._grant.network and not is_on_other_port and not decision.by_rule:
            return
        if is_over:
            raise ToolError(_RUNS_ON)
        async with self._asking:
            if isinstance(decision_on(self._services, connection), Ask):
                self._count_question(hosts)
            await self._authorize(connection)

    async def _apply(self, decision: Allow | Deny, connection: Prepared) -> None:
        """Apply a decision without a question. The log gets each reason once: a program names hosts without end."""
        if decision in self._logged or len(self._logged) >= _MOST_LOGGED:  # in plan mode, reasons name hosts
            if isinstance(decision, Deny):
                raise ToolError(decision.reason)
            return
        self._logged.append(decision)
        await self._authorize(connection)

    def _count_question(self, hosts: tuple[str, ...]) -> None:
        """Raise `ToolError` if the user is not to be asked."""
        if not self._may_ask:
            raise ToolError(_ALL_REFUSED)
        if len(self._asked) >= _MOST_QUESTIONS:
            raise ToolError(_TOO_MANY)
        self._asked.add(hosts)

    async def _authorize(self, connection: Prepared) -> None:
        begun = asyncio.Event()
        begun.set()
        found = await authorize(self._services, connection, begun)
        if isinstance(found, Refused):
            self._may_ask = self._may_ask and not found.is_for_all_hosts
            raise ToolError(found.text)
