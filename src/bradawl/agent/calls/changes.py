"""What a call may change in the workspace, and the entries of the log about what it changed."""

from collections.abc import Iterable

from bradawl.agent.conversation import Conversation
from bradawl.core.effects import Effects
from bradawl.core.events import CheckpointTaken
from bradawl.core.workspace import Checkpoint


def files_it_may_change(effects: Effects) -> tuple[str, ...] | None:
    """The files that a call may change; None for any file of the workspace, empty for none."""
    if effects.unknown or (effects.commands and not effects.understood):
        return None
    return effects.writes


def log_checkpoints(conversation: Conversation, found: Iterable[Checkpoint]) -> None:
    """Log what ended calls have changed; nothing for a call that changed nothing."""
    for each in found:
        if each.ref or each.uncovered:
            conversation.record(CheckpointTaken(each.call_id, each.ref, each.uncovered))
