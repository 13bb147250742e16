"""A session whose log can't be written: undo can't bring back what its calls discard, so they are asked about."""

from scripted_agent import Probe, ProbeParams, build, call, results
from test_given_changes import Changes

from bradawl.core.deltas import Notice
from bradawl.core.effects import Effects
from bradawl.core.events import Live
from bradawl.core.permissions import Policy, Sandbox
from bradawl.core.ports import CallContext, ToolOutput
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


class Fills(Probe):
    """A command that fills the disk of the log, or frees it."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self._store = store

    def effects(self, params: object, context: CallContext) -> Effects:
        return Effects(unknown=True, seal="s")

    async def run(self, params: ProbeParams, context: CallContext) -> ToolOutput:
        if params.name in ("fill", "free"):
            (log,) = self._store.logs.values()
            log.saved = params.name == "free"
        return await super().run(params, context)


async def test_the_user_is_told_when_undo_can_not_know_what_calls_change_any_more():
    store, emit = MemoryStore(), RecordingEmit()
    names = ("fill", "one", "two", "free", "three", "fill", "four")
    script = [*({"tool_calls": [call(name)]} for name in names), {"text": "ok"}]
    agent, *_ = build(script, tools=(Fills(store),), store=store, policy=lambda: COVERED, changes=Changes())
    async with agent.open() as session:
        await session.run("go", emit)
    (first, second) = emit.warnings
    assert first == second and "undo does not know what calls change from now on" in first
