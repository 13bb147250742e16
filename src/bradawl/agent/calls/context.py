"""What the calls of a session share, and the `CallContext` that one call gets."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from bradawl.agent.calls.call import Place
from bradawl.agent.calls.denials import Denials
from bradawl.agent.calls.questions import SerializedApprover
from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.agent.changes import ConversationChanges
from bradawl.agent.conversation import Conversation
from bradawl.core.deltas import ToolProgress
from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import ToolError
from bradawl.core.events import State, StateChanged
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Grant, Policy
from bradawl.core.ports import (
    AnyTool,
    Approver,
    CallContext,
    Files,
    Hook,
    Jobs,
    Processes,
    Spawner,
)
from bradawl.core.rules import path_rules
from bradawl.shaping.ruled_files import names_of, ruled

MakeSpawner = Callable[[str, Mapping[str, str | None], Callable[[str], None]], Spawner]
"""Makes the spawner of a call from its cwd, its variables, and the callback that shows its progress."""


class CallServices(msgspec.Struct, frozen=True, kw_only=True):
    """The ports and the state that all calls of a session share."""

    conversation: Conversation
    tools: Mapping[str, AnyTool]
    """The tools the model is offered now, by name."""
    policy: Callable[[], Policy]
    """The policy for the next call."""
    files: Files
    processes: Processes
    approver: Approver
    asking: asyncio.Lock
    """Held while a question to the user is open; shared with sub-agents."""
    hooks: tuple[Hook, ...]
    changes: ConversationChanges | None
    """None if nothing is saved for undo."""
    seen: SeenFiles
    jobs: Jobs
    spawner: MakeSpawner
    parallel_calls: int
    calls_per_reply: int
    allowed: set[str]
    """What the user has allowed for the rest of the session; shared with sub-agents."""
    denials: Denials
    """Calls of this turn that were denied a permission."""


class JudgedFiles:
    """`Files` for a call that declares the files it touches: `resolve` accepts no others.

    A path that leads elsewhere than when the call was allowed is refused.
    """

    def __init__(self, files: Files, effects: Effects) -> None:
        """A call that runs programs, which resolve paths by themselves, or that declares no paths is not limited."""
        self._files = files
        runs = effects.unknown or effects.commands or effects.seal
        self._places = () if runs else (*effects.reads, *effects.writes)
        self.read = files.read
        self.replace = files.replace
        self.list = files.list

    def resolve(self, path: str, cwd: str) -> str:
        """Raises `ToolError` also for a path that leads elsewhere than when the call was allowed."""
        real = self._files.resolve(path, cwd)
        if self._places and not any(is_within(real, place) for place in self._places):
            raise ToolError(
                f"{path} has changed since it was checked: it leads to {real} now; nothing was done, so try again"
            )
        return real


def current_place(conversation: Conversation) -> Place:
    """The place of a call that begins now."""
    return Place(conversation.state.cwd, dict(conversation.state.env))


def context_of(
    services: CallServices,
    call: ToolCall,
    place: Place,
    grant: Grant | None = None,
    printed: Callable[[str], None] | None = None,
) -> CallContext:
    """The context of one call; without a grant it serves only `Tool.effects`. `printed` gets the progress too."""
    conversation = services.conversation

    def progress(text: str) -> None:
        if printed is not None:
            printed(text)
        conversation.show(ToolProgress(call.id, text))

    def change(state: State) -> None:
        conversation.record(StateChanged(state))

    rules = path_rules(services.policy().rules)
    return CallContext(
        call_id=call.id,
        cwd=place.cwd,
        project=conversation.state.project,
        env=place.env,
        files=ruled(services.files, rules),
        processes=services.processes,
        seen=services.seen,
        grant=grant,
        progress=progress,
        change=change,
        jobs=services.jobs,
        spawner=services.spawner(place.cwd, place.env, progress),
        approver=SerializedApprover(services.approver, services.asking),
        rules=rules,
        messages=lambda: tuple(conversation.transcript.messages),
        name_of=names_of(services.files),
    )
