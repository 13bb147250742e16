"""Judges the connections of a running command, one host at a time."""

import asyncio
from typing import Final

import msgspec

from bradawl.agent.calls.authorize import authorize, decision_on
from bradawl.agent.calls.call import Prepared, Refused
from bradawl.agent.calls.context import CallServices
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Ask, Grant
from bradawl.core.rules import all_met
from bradawl.safety.permissions.domains import DESTINATION, PRIVATE

_RUNS_ON: Final = (
    "the command runs in the background, where the user is not asked. Run a command that connects to this host in the "
    "foreground, so that the user can allow the host for the session"
)


def is_connection(prepared: Prepared, effects: Effects) -> bool:
    """Whether these effects, found while a call runs, are connections of its command."""
    return bool(prepared.effects.seal and effects.hosts)


async def permit_connection(
    services: CallServices, prepared: Prepared, grant: Grant, hosts: tuple[str, ...], *, is_over: bool
) -> None:
    """Judge connections of the call's command; may ask the user. Raises `ToolError` with the reason of a refusal.

    `hosts` are destinations as `safety.permissions.domains` describes them. With `Grant.network` there is no question
    about public hosts on the ports 80 and 443, unless a rule asks. Private addresses are never asked about, and nothing
    is after the call has ended (`is_over`).
    """
    if not all(map(DESTINATION.fullmatch, hosts)):
        raise ToolError("that is not the name of a host")
    _check_private(services, hosts)
    connection = msgspec.structs.replace(prepared, effects=Effects(hosts=hosts, lifts=("host",)))
    decision = decision_on(services, connection)
    if isinstance(decision, Ask):
        is_on_other_port = any(":" in host.removeprefix(PRIVATE) for host in hosts)
        if grant.network and not is_on_other_port and not decision.by_rule:
            return
        if is_over:
            raise ToolError(_RUNS_ON)
    begun = asyncio.Event()
    begun.set()
    found = await authorize(services, connection, begun)
    if isinstance(found, Refused):
        raise ToolError(found.text)


def _check_private(services: CallServices, hosts: tuple[str, ...]) -> None:
    """Raise `ToolError` for an address of a private network, unless a rule names its host in full."""
    private = tuple(host for host in hosts if host.startswith(PRIVATE))
    granted = tuple(rule for rule in services.policy().rules if (rule.verdict, rule.on) == ("allow", "connect"))
    if private and all_met(granted, private) is None:
        name = private[0].removeprefix(PRIVATE)
        raise ToolError(
            f'its address belongs to a private network; only network = ["{name}"] in the user\'s config.toml, or '
            f"--network {name}, allows that"
        )
