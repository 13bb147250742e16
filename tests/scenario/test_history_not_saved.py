"""A session whose log can't be written: undo can't bring back what its calls discard, so they are asked about."""

from scripted_agent import Probe, build, call, results
from test_given_changes import Changes

from bradawl.core.deltas import Notice
from bradawl.core.effects import Effects
from bradawl.core.events import Live
from bradawl.core.permissions import Policy, Sandbox
from bradawl.core.ports import CallContext
from bradawl.testing.fakes import MemoryStore, RecordingEmit, ScriptedApprover

COVERED = Policy("auto", roots=("/project",), sandbox=Sandbox("bubblewrap"), undo=True)
REASON = "it discards untracked files, and undo can't bring that back"


class Discards(Probe):
    """A command that discards work which undo can bring back."""

    def effects(self, params: object, context: CallContext) -> Effects:
        return Effects(unknown=True, seal="s", discards="untracked files", undoable=True)


async def discarded(*, is_saved: bool) -> tuple[ScriptedApprover, list[str], list[str]]:
    """The approver, what the model read about the call, and the notices."""
    store, approver, emit = MemoryStore(), ScriptedApprover(), RecordingEmit()
    script = [{"tool_calls": [call("clean")]}, {"text": "ok"}]
    agent, *_ = build(
        script, tools=(Discards(),), store=store, approver=approver, policy=lambda: COVERED, changes=Changes()
    )
    async with agent.open() as session:
        (log,) = store.logs.values()
        log.saved = is_saved
        await session.run("go", emit)
        notices = [each.item.text for each in emit.items if isinstance(each, Live) and isinstance(each.item, Notice)]
        return approver, results(session.transcript.messages), notices


async def test_what_undo_can_bring_back_is_discarded_without_a_question():
    approver, said, notices = await discarded(is_saved=True)
    assert said == ["did clean"] and not approver.questions and not notices


async def test_nothing_is_discarded_without_a_question_while_the_log_is_not_on_the_disk():
    approver, (said,), notices = await discarded(is_saved=False)
    assert [each.reason for each in approver.questions] == [REASON]
    assert said.startswith(f"probe was not run: it needs permission ({REASON})")
    assert notices == [
        "The history of this session can't be written to the disk, so undo would not know what was changed:"
        " commands that discard work are asked about."
    ]
