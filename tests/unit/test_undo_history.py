"""The steps of a session that can be undone and redone, as a fold over its log."""

import random

import pytest

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.events import (
    AgentSpawned,
    CallPrepared,
    CheckpointTaken,
    Cwd,
    Envelope,
    Event,
    HeadMoved,
    JobEnded,
    JobStarted,
    PromptSubmitted,
    RequestSent,
    SessionOpened,
    StateChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import Text
from bradawl.folds.undo_history import CallJob, UndoHistory, undo_history


class Log:
    """Builds the entries of a session's log."""

    def __init__(self) -> None:
        self.entries: list[Envelope] = []
        self._last: dict[str, int] = {}
        self._step = 0
        self.add(SessionOpened(1, "/project", "/project"))

    def add(self, event: Event, agent: str = "main") -> int:
        seq = len(self.entries)
        parent = self._last.get(agent, self._last.get("main"))
        self.entries.append(Envelope(seq, parent, 1_000 * seq, agent, event))
        self._last[agent] = seq
        return seq

    def prompt(self, text: str) -> None:
        self.add(PromptSubmitted((Text(text),)))

    def step(self, *calls: str, ref: bool = True) -> None:
        """A request whose calls each change something."""
        self._step += 1
        self.add(RequestSent(self._step, "hash"))
        for call in calls:
            self.add(CallPrepared(call, self._step, "bash", "{}", UNKNOWN))
        for call in calls if ref else ():
            self.add(CheckpointTaken(call, f"ref-{call}"))

    @property
    def head(self) -> int:
        return len(self.entries) - 1

    @property
    def history(self) -> UndoHistory:
        return undo_history(self.entries)


def refs(history: UndoHistory) -> list[str]:
    return [change.ref for change in history.applied]


@pytest.fixture
def log() -> Log:
    """Two turns: `one` with a and b, `two` with c."""
    log = Log()
    log.prompt("one")
    log.step("a")
    log.step("b")
    log.step()
    log.add(TurnFinished("completed"))
    log.prompt("two")
    log.step("c")
    log.step()
    log.add(TurnFinished("completed"))
    return log


def test_steps_have_names_that_never_change(log: Log) -> None:
    assert [step.name for step in log.history.steps] == ["1", "1.2", "1.3", "2", "2.2"]
    log.add(HeadMoved(log.history.steps[3].start, "both"))
    log.prompt("three")
    log.step("d")
    history = log.history
    assert [step.name for step in history.steps] == ["1", "1.2", "1.3", "2", "2.2", "3"]
    assert [step.is_in_conversation for step in history.steps] == [True, True, True, False, False, True]
    assert history.named("1.1") == history.named("1") == history.steps[0]
    assert history.named("9") is None


def test_a_request_that_is_sent_again_is_the_same_step() -> None:
    log = Log()
    log.prompt("one")
    log.add(RequestSent(1, "hash"))
    log.add(RequestSent(1, "hash"))
    log.add(RequestSent(2, "hash"))
    assert [step.name for step in log.history.steps] == ["1", "1.2"]


def test_undoing_again_finds_the_step_before(log: Log) -> None:
    found = []
    while (step := log.history.last_changed()) is not None:
        found.append((step.name, [change.ref for change in log.history.changes_since(step.start)]))
        log.add(HeadMoved(step.start, "both", "undo"))
    assert found == [("2", ["ref-c"]), ("1.2", ["ref-b"]), ("1", ["ref-a"])]


@pytest.mark.parametrize("part", ["code", "both", "talk"])
def test_redo_takes_back_one_undo_after_the_other(log: Log, part) -> None:
    before = log.history
    for name in ("2", "1.2"):
        step = before.named(name)
        assert step is not None
        log.add(HeadMoved(step.start, part, f"undo-{name}"))
    assert refs(log.history) == (["ref-a"] if part != "talk" else ["ref-a", "ref-b", "ref-c"])
    assert [each.ref for each in log.history.undone] == ["undo-2", "undo-1.2"]
    while log.history.undone:
        log.add(HeadMoved(log.history.undone[-1].head, part))
    after = log.history
    assert after.applied == before.applied
    assert after.steps == before.steps


def test_a_new_prompt_ends_redoing(log: Log) -> None:
    log.add(HeadMoved(log.history.steps[3].start, "both", "undo"))
    log.prompt("three")
    assert log.history.undone == ()


def test_the_conversation_alone_leaves_the_changes_of_the_files(log: Log) -> None:
    log.add(HeadMoved(log.history.steps[0].start, "talk"))
    history = log.history
    assert refs(history) == ["ref-a", "ref-b", "ref-c"]
    last = history.last_changed()
    assert last is not None and (last.name, last.is_in_conversation) == ("2", False)
    assert history.last_prompt() is None


def test_the_files_alone_leave_the_conversation(log: Log) -> None:
    log.add(HeadMoved(log.history.steps[0].start, "code", "undo"))
    history = log.history
    assert refs(history) == []
    assert all(step.is_in_conversation for step in history.steps)


def test_a_change_that_is_logged_late_belongs_to_the_step_of_its_call(log: Log) -> None:
    log.prompt("three")
    log.add(RequestSent(9, "hash"))
    log.add(CheckpointTaken("c", "ref-c-late"))
    log.add(CallPrepared("d", 9, "bash", "{}", UNKNOWN))
    log.add(CheckpointTaken("d", "ref-d"))
    history = log.history
    assert [history.steps[change.step].name for change in history.applied] == ["1", "1.2", "2", "2", "3"]
    three = history.named("3")
    assert three is not None
    assert [change.ref for change in history.changes_since(three.start)] == ["ref-d"]


def test_what_a_job_changes_later_goes_with_the_steps_after_it(log: Log) -> None:
    """The job of step 1 ends during step 3: to go back to before 3 its later change must go too."""
    log.prompt("three")
    log.add(RequestSent(9, "hash"))
    log.add(CallPrepared("d", 9, "bash", "{}", UNKNOWN))
    log.add(CheckpointTaken("d", "ref-d"))
    log.add(CheckpointTaken("a", "ref-a-late"))
    three = log.history.named("3")
    assert three is not None
    assert [change.ref for change in log.history.changes_since(three.start)] == ["ref-d", "ref-a-late"]


def test_calls_and_jobs_of_a_sub_agent_belong_to_the_step_that_started_it(log: Log) -> None:
    log.prompt("three")
    log.step("task", ref=False)
    log.add(AgentSpawned("agent-1", "task", "general", "do it"))
    log.add(PromptSubmitted((Text("do it"),)), "agent-1")
    log.add(RequestSent(1, "hash"), "agent-1")
    log.add(CallPrepared("inner", 1, "edit_file", "{}", UNKNOWN), "agent-1")
    log.add(JobStarted("job-1", "inner", "make watch"), "agent-1")
    log.step("d", ref=False)
    log.add(CheckpointTaken("inner", "ref-inner"))
    history = log.history
    assert history.steps[history.applied[-1].step].name == "3"
    three = history.named("3")
    assert three is not None and three.jobs == ("make watch",)
    assert history.applied[-1].tool == "edit_file"


def test_changes_are_in_the_order_of_the_ends_of_the_calls_however_late_they_are_logged(log: Log) -> None:
    log.prompt("three")
    log.step("early", ref=False)
    log.add(ToolFinished("early", "ok", ()))
    log.step("task", ref=False)
    log.add(AgentSpawned("agent-1", "task", "general", "do it"))
    log.add(CallPrepared("inner", 1, "edit_file", "{}", UNKNOWN), "agent-1")
    log.add(ToolFinished("inner", "ok", ()), "agent-1")
    log.add(CheckpointTaken("inner", "ref-inner"), "agent-1")
    log.add(ToolFinished("task", "ok", ()))
    log.add(CheckpointTaken("early", "ref-early"))
    assert refs(log.history)[-2:] == ["ref-early", "ref-inner"]
    last = log.history.last_changed()
    assert last is not None and last.name == "3.2"
    assert [change.ref for change in log.history.changes_since(last.start)] == ["ref-inner"]


def test_the_changes_of_a_job_come_when_the_job_has_ended(log: Log) -> None:
    log.prompt("three")
    log.step("server", ref=False)
    log.add(JobStarted("job-1", "server", "serve"))
    log.add(ToolFinished("server", "ok", ()))
    log.step("d", ref=False)
    log.add(ToolFinished("d", "ok", ()))
    log.add(JobEnded("job-1", 0))
    log.add(CheckpointTaken("server", "ref-server"))
    log.add(CheckpointTaken("d", "ref-d"))
    assert refs(log.history)[-2:] == ["ref-d", "ref-server"]
    history = log.history
    assert history.steps[history.applied[-1].step].name == "3"


def test_what_a_job_changed_under_its_own_name_is_credited_to_its_call(log: Log) -> None:
    """A later call has the id of the call that started the job."""
    log.prompt("three")
    log.step("same", ref=False)
    log.add(ToolStarted("same"))
    log.add(JobStarted("job-1", "same", "serve"))
    log.add(ToolFinished("same", "ok", (Text("done"),)))
    log.step("same", ref=False)
    log.add(ToolStarted("same"))
    log.add(ToolFinished("same", "ok", (Text("done"),)))
    log.add(CheckpointTaken("same", "ref-second"))
    log.add(CheckpointTaken("job-1", "", "late", is_known=False))
    log.add(CheckpointTaken("job-1", "ref-job"))
    second, of_job = [each for each in log.history.applied if each.call_id == "same"]
    assert (second.ref, second.job) == ("ref-second", None)
    assert of_job.ref == "ref-job" and of_job.job == CallJob("job-1", "serve", "/project")
    assert of_job.prepared < second.prepared and of_job.step < second.step


def test_what_a_running_job_changed_after_another_call_comes_after_that_call(log: Log) -> None:
    """The search at the end of a turn credits the running job with what it changed since the last call ended."""
    log.prompt("three")
    log.step("server", ref=False)
    log.add(JobStarted("job-1", "server", "serve"))
    log.add(ToolFinished("server", "ok", ()))
    log.step("d", ref=False)
    log.add(CheckpointTaken("server", "ref-before-d"))
    log.add(ToolFinished("d", "ok", ()))
    log.add(CheckpointTaken("d", "ref-d"))
    log.add(CheckpointTaken("server", "ref-after-d"))
    log.add(JobEnded("job-1", 0))
    log.add(CheckpointTaken("server", "ref-last"))
    assert refs(log.history)[-4:] == ["ref-before-d", "ref-d", "ref-after-d", "ref-last"]


def test_changes_beside_a_job_name_the_job_and_where_it_was_started(log: Log) -> None:
    log.prompt("three")
    log.step("server", "d", ref=False)
    log.add(JobStarted("job-1", "server", "serve > log"))
    log.add(CheckpointTaken("server", "ref-server"))
    log.add(CheckpointTaken("d", "ref-d"))
    jobs = {each.ref: each.job for each in log.history.applied}
    assert jobs["ref-server"] == CallJob("job-1", "serve > log", "/project") and jobs["ref-d"] is None
    log.add(StateChanged(Cwd("/project/sub")))
    log.step("watch", ref=False)
    log.add(JobStarted("job-2", "watch", "watch"))
    log.add(CheckpointTaken("watch", "ref-watch"))
    assert log.history.applied[-1].job == CallJob("job-2", "watch", "")


def test_a_job_whose_command_is_understood_names_all_its_writes(log: Log) -> None:
    log.prompt("three")
    log.add(RequestSent(9, "hash"))
    for understood, name in ((True, "known"), (False, "guessed")):
        effects = Effects(writes=("/project/f",), understood=understood)
        log.add(CallPrepared(name, 9, "bash", "{}", effects))
        log.add(JobStarted(f"job-{name}", name, "rm f"))
        log.add(CheckpointTaken(name, f"ref-{name}"))
    known, guessed = (each.job for each in log.history.applied[-2:])
    assert known is not None and known.writes == ("/project/f",)
    assert guessed is not None and guessed.writes == ()


def test_a_log_without_prompts_has_nothing_to_undo() -> None:
    log = Log()
    log.add(CheckpointTaken("x", "ref"))
    log.add(HeadMoved(0, "both"))
    assert log.history == UndoHistory()


@pytest.mark.parametrize("seed", range(200))
def test_any_sequence_of_undos_and_redos_can_be_taken_back_completely(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    log = Log()
    for turn in range(chance.randint(1, 4)):
        log.prompt(f"turn {turn}")
        for step in range(chance.randint(1, 3)):
            log.step(*(f"{turn}-{step}-{call}" for call in range(chance.randint(0, 2))))
        log.add(TurnFinished("completed"))
    states = [(log.history.applied, log.history.steps)]
    for _ in range(chance.randint(1, 8)):
        history = log.history
        if history.undone and chance.random() < 0.4:
            log.add(HeadMoved(history.undone[-1].head, history.undone[-1].part))
            states.pop()
        else:
            possible = [step for step in history.steps if step.is_in_conversation]
            if not possible:
                continue
            log.add(HeadMoved(chance.choice(possible).start, chance.choice(("code", "talk", "both"))))
            states.append((log.history.applied, log.history.steps))
        assert (log.history.applied, log.history.steps) == states[-1]
    while log.history.undone:
        last = log.history.undone[-1]
        log.add(HeadMoved(last.head, last.part))
        states.pop()
        assert (log.history.applied, log.history.steps) == states[-1]
    assert len(states) == 1


# ------------------------------------------------------------------ when calls ran, and what they are known to write

KNOWN = Effects(writes=("/p/a",), commands=(("rm", "a"),), understood=True)


def started(log: Log, call: str, effects: Effects = KNOWN) -> None:
    log.add(CallPrepared(call, 1, "bash", "{}", effects))
    log.add(ToolStarted(call))


def finished(log: Log, call: str) -> None:
    log.add(ToolFinished(call, "ok", ()))
    log.add(CheckpointTaken(call, f"ref-{call}"))


def writes_of(log: Log) -> dict[str, tuple[str, ...] | None]:
    return {each.call_id: each.writes for each in log.history.applied}


def test_the_time_and_the_writes_of_an_understood_command_are_known() -> None:
    log = Log()
    log.prompt("one")
    started(log, "a")
    finished(log, "a")
    started(log, "b", UNKNOWN)
    finished(log, "b")
    first, second = log.history.applied
    assert (first.started_ms, first.seconds, first.writes) == (3_000, 1.0, ("/p/a",))
    assert second.writes is None


def test_a_job_that_changed_files_after_later_steps_does_not_make_its_step_the_last_one() -> None:
    log = Log()
    log.prompt("one")
    started(log, "server")
    log.add(JobStarted("job-1", "server", "serve"))
    log.add(ToolFinished("server", "ok", ()))
    log.step("b")
    log.step("c")
    log.add(JobEnded("job-1", 0))
    log.add(CheckpointTaken("server", "ref-server"))
    found = []
    while (step := log.history.last_changed()) is not None:
        found.append((step.name, [change.ref for change in log.history.changes_since(step.start)]))
        log.add(HeadMoved(step.start, "both", "undo"))
    assert found == [("1.2", ["ref-c", "ref-server"]), ("1", ["ref-b"])]


def test_the_writes_of_calls_that_overlap_are_not_known() -> None:
    log = Log()
    log.prompt("one")
    started(log, "a")
    started(log, "b")
    finished(log, "b")
    finished(log, "a")
    started(log, "c")
    started(log, "read", Effects(reads=("/p/b",)))
    finished(log, "c")
    assert writes_of(log) == {"a": None, "b": None, "c": ("/p/a",)}


def test_the_writes_of_calls_beside_a_background_job_are_not_known() -> None:
    log = Log()
    log.prompt("one")
    started(log, "server")
    log.add(JobStarted("job-1", "server", "serve"))
    log.add(ToolFinished("server", "ok", ()))
    started(log, "b")
    finished(log, "b")
    log.add(JobEnded("job-1", 0))
    log.add(CheckpointTaken("server", "ref-server"))
    started(log, "c")
    finished(log, "c")
    assert writes_of(log) == {"server": None, "b": None, "c": ("/p/a",)}


# ------------------------------------------------------------------ servers that use the ids of calls again


def test_what_a_call_changed_is_not_credited_to_a_later_call_with_the_same_id() -> None:
    log = Log()
    log.prompt("one")
    for number in (1, 2):
        log.add(RequestSent(number, "hash"))
        log.add(CallPrepared("same", number, "bash", f'{{"command": "{number}"}}', UNKNOWN))
        if number == 2:  # a checkpoint is logged when the next call begins
            log.add(CheckpointTaken("same", "ref-1"))
        log.add(ToolStarted("same"))
        log.add(ToolFinished("same", "ok", ()))
    log.add(CheckpointTaken("same", "ref-2"))
    history = log.history
    assert [(each.ref, history.steps[each.step].name, each.raw_arguments) for each in history.applied] == [
        ("ref-1", "1", '{"command": "1"}'),
        ("ref-2", "1.2", '{"command": "2"}'),
    ]
    assert len({each.prepared for each in history.applied}) == 2


def test_a_refused_call_with_an_earlier_id_does_not_change_what_is_known_of_the_earlier_call() -> None:
    log = Log()
    log.prompt("one")
    log.add(RequestSent(1, "hash"))
    started(log, "same")
    log.add(ToolFinished("same", "ok", ()))
    log.add(RequestSent(2, "hash"))
    log.add(CallPrepared("same", 2, "bash", "{}", UNKNOWN))
    log.add(ToolFinished("same", "refused", ()))
    log.add(CheckpointTaken("same", "ref"))
    (change,) = log.history.applied
    assert (log.history.steps[change.step].name, change.writes, change.seconds) == ("1", ("/p/a",), 1.0)


def test_calls_of_agents_with_the_same_id_are_told_apart() -> None:
    log = Log()
    log.prompt("one")
    log.add(RequestSent(1, "hash"))
    started(log, "same", UNKNOWN)
    log.add(ToolFinished("same", "ok", ()))
    log.add(CheckpointTaken("same", "ref-first"))
    log.add(RequestSent(2, "hash"))
    started(log, "task", Effects())
    log.add(AgentSpawned("agent-1", "task", "general", "do it"))
    log.add(PromptSubmitted((Text("do it"),)), "agent-1")
    log.add(CallPrepared("same", 1, "write_file", "{}", KNOWN), "agent-1")
    log.add(ToolStarted("same"), "agent-1")
    log.add(ToolFinished("same", "ok", ()), "agent-1")
    log.add(CheckpointTaken("same", "", "not known", is_known=False), "agent-1")
    log.add(CheckpointTaken("same", "", "not known", is_known=False))
    log.add(CheckpointTaken("same", "ref-child"), "agent-1")
    history = log.history
    assert {(each.ref, history.steps[each.step].name, each.tool) for each in history.applied} == {
        ("ref-first", "1", "bash"),
        ("", "1", "bash"),
        ("ref-child", "1.2", "write_file"),
    }
