"""Background jobs: notes about their end, their lifetime within the session, and what a resumed session reports."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import assert_valid, build, results

from bradawl.agent.jobs import BackgroundJobs
from bradawl.core.errors import ToolError
from bradawl.core.events import Envelope, JobEnded, JobStarted, NoteQueued
from bradawl.core.messages import Assistant, User
from bradawl.core.workspace import CommandResult
from bradawl.testing.fakes import FakeClock, MemoryStore, RecordingEmit, ScriptedProcesses
from bradawl.tools.bash import Bash
from bradawl.tools.bash_kill import BashKill
from bradawl.tools.bash_output import BashOutput
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses
from real_processes import lives

TOOLS = (Bash(patience_s=1), BashOutput(), BashKill())


def use(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": f"id_{number}", "name": name, "arguments": arguments}]}


@pytest.fixture
def real(tmp_path):
    """Arguments of `build` for an agent that uses real files and processes, in a folder of its own."""
    processes = LocalProcesses(os.environ)
    yield {
        "tools": TOOLS,
        "files": LocalFiles(str(tmp_path)),
        "processes": processes,
        "project": str(tmp_path),
    }
    processes.close()


def pid_in(path: Path) -> int:
    return int(path.read_text())


async def until(condition, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens outside of this program
            await asyncio.sleep(0.01)


def notes(session) -> list[str]:
    return [note.text for note in session.inbox.waiting]


async def test_a_server_runs_while_other_calls_use_it_and_ends_with_the_session(real, tmp_path):
    serve = "echo $$ > pid; echo ready; trap 'echo bye > bye; exit 0' TERM; while :; do sleep 0.05; done"
    script = [
        use(1, "bash", command=serve, run_in_background=True),
        use(2, "bash", command="cat pid >/dev/null && echo up"),
        use(3, "bash_output", job_id="job-1"),
        use(4, "bash_output", job_id="job-7"),
        {"text": "done"},
    ]

    agent, *_ = build(script, **real)
    async with agent.open() as session:
        await session.run("go")
        assert_valid(session.transcript.messages)
        started, used, looked, unknown = results(session.transcript.messages)
        assert "in the background as job-1" in started and used == "up\n[exit code 0]"
        assert "[job-1 is running" in looked
        assert unknown == "there is no job 'job-7'; there are job-1"
        pid = pid_in(tmp_path / "pid")
        assert lives(pid)
    assert not lives(pid)
    assert (tmp_path / "bye").exists()  # it was ended by SIGTERM, not by SIGKILL


async def test_calls_of_one_reply_that_start_read_and_end_a_job_run_in_order(real):
    calls = [
        use(1, "bash", command="echo up; sleep 300", run_in_background=True),
        use(2, "bash_output", job_id="job-1"),
        use(3, "bash_kill", job_id="job-1"),
        use(4, "bash_output", job_id="job-1"),
    ]
    script = [{"tool_calls": [each["tool_calls"][0] for each in calls]}, {"text": "done"}]

    agent, *_ = build(script, **real)
    async with agent.open() as session:
        await session.run("go")
        started, looked, killed, again = results(session.transcript.messages)
    assert started.startswith("up\n[in the background as job-1")
    assert "[job-1 is running" in looked
    assert "[job-1 has ended by SIGTERM" in killed and "[job-1 has ended by SIGTERM" in again


async def test_ending_a_job_by_a_call_sends_no_note(real, tmp_path):
    script = [
        use(1, "bash", command="echo $$ > pid; setsid sleep 300 & echo $! > child; wait", run_in_background=True),
        use(2, "bash_kill", job_id="job-1"),
        use(3, "bash_output", job_id="job-1"),
        {"text": "done"},
    ]

    agent, *_ = build(script, **real)
    async with agent.open() as session:
        await session.run("go")
        _, killed, looked = results(session.transcript.messages)
        assert "[job-1 has ended by SIGTERM" in killed and "[job-1 has ended" in looked
        assert not lives(pid_in(tmp_path / "pid")) and not lives(pid_in(tmp_path / "child"))
        assert notes(session) == []


async def test_the_end_of_a_job_sends_a_note_to_the_model(real, tmp_path):
    wait = "until [ -e go ]; do sleep 0.01; done; "
    script = [
        use(1, "bash", command=wait + "seq 1 20; echo -e '\\e[31mred\\e[0m'; exit 3", run_in_background=True),
        {"text": "started"},
        {"text": "done"},
    ]

    agent, *_ = build(script, **real)
    async with agent.open() as session:
        events: list[Any] = []
        await session.run("go", lambda item: events.append(item))
        (tmp_path / "go").touch()
        await until(lambda: notes(session))
        (text,) = notes(session)
        assert text.startswith("job-1 (until [ -e go ]; do sleep 0.01; done; seq 1 20; ")
        assert "has ended with exit code 3 after" in text
        assert text.endswith("Its last lines (bash_output shows all that is new):\n17\n18\n19\n20\nred")
        await session.run("and?")
        told = [
            note.text for message in session.transcript.messages if isinstance(message, User) for note in message.notes
        ]
        assert told == [text]
        kinds = [item.event for item in events if isinstance(item, Envelope)]
        assert JobStarted("job-1", "id_1", script[0]["tool_calls"][0]["arguments"]["command"]) in kinds
        assert JobEnded("job-1", 3) in kinds


async def test_a_command_without_a_timeout_becomes_a_job_and_its_end_sends_a_note(real, tmp_path):
    script = [
        use(1, "bash", command="echo half; until [ -e go ]; do sleep 0.01; done; echo whole"),
        use(2, "bash", command="touch go"),
        use(3, "bash_output", job_id="job-1", wait=20),
        {"text": "done"},
    ]

    agent, *_ = build(script, **real)
    async with agent.open() as session:
        await session.run("go")
        moved, _, looked = results(session.transcript.messages)
        assert moved.startswith("half\n[still running after 1 s, in the background as job-1;")
        assert "[job-1 has ended with exit code 0" in looked
        assert notes(session) == []
        told = [  # the note comes with the result during which the job ended, or with a later one
            note.text
            for message in session.transcript.messages
            if not isinstance(message, Assistant)
            for note in message.notes
        ]
        assert [line for text in (looked, *told) for line in text.split("\n")].count("whole") == 1


async def test_jobs_continue_when_a_turn_is_cancelled(real, tmp_path):
    script = [
        use(1, "bash", command="echo $$ > job; exec sleep 300", run_in_background=True),
        use(2, "bash", command="echo $$ > call; exec sleep 300", timeout=300),
    ]

    agent, *_ = build(script, **real)
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await until(lambda: (tmp_path / "call").exists() and (tmp_path / "call").read_text())
        session.cancel()
        assert (await turn).reason == "cancelled"
        assert not lives(pid_in(tmp_path / "call"))
        assert lives(pid_in(tmp_path / "job"))
    assert not lives(pid_in(tmp_path / "job"))


async def test_cancelling_a_session_ends_its_jobs(real, tmp_path):
    script = [use(1, "bash", command="echo $$ > job; trap '' TERM; while :; do sleep 1; done", run_in_background=True)]

    async def life(opened: asyncio.Event) -> None:
        agent, *_ = build([*script, {"text": "done"}], **real)
        async with agent.open() as session:
            await session.run("go")
            opened.set()
            await asyncio.Event().wait()

    opened = asyncio.Event()
    task = asyncio.ensure_future(life(opened))
    await opened.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not lives(pid_in(tmp_path / "job"))


@pytest.mark.parametrize(
    ("printed", "is_told"),
    [
        (b"Proceed? (y/n) ", True),
        (b"Overwrite [Y/n]?", True),
        (b"\x1b[1mPassword for root:\x1b[0m ", True),
        (b"Name: ", True),
        (b"Press any key to continue...", True),
        (b"Really delete?\n", True),
        (b"listening on http://localhost:80\n", False),
        (b"50%", False),
        (b"compiling:\n", False),
        (b"", False),
    ],
)
async def test_a_job_that_seems_to_wait_for_input_is_reported_once(printed, is_told):
    processes = ScriptedProcesses({"ask": CommandResult(0, printed, b"")})
    processes.hold("ask")
    script = [use(1, "bash", command="ask", run_in_background=True), {"text": "done"}]
    agent, *_ = build(script, tools=TOOLS, processes=processes, clock=FakeClock())
    async with agent.open() as session:
        session.jobs.stall_s = 0.02
        await session.run("go")
        job = processes.started[0]
        job.print(printed)
        waits = [0]
        real = job.wait

        async def counted(timeout_s: float) -> bool:
            waits[0] += 1
            return await real(timeout_s)

        job.wait = counted
        await until(lambda: waits[0] >= 5)
        assert len(notes(session)) == is_told
        if is_told:
            assert "has printed nothing for 0 s and seems to wait for an answer" in notes(session)[0]
            job.print(b"and again? ")
            await until(lambda: len(notes(session)) == 2)


async def test_a_resumed_session_reports_the_jobs_that_are_gone():
    store = MemoryStore()
    agent, processes = serving([{"text": "done"}], store=store, clock=FakeClock())
    async with agent.open() as session:
        await session.run("go")
        entries = tuple(store.logs[session.id].entries)  # the log as a killed program leaves it
    agent, *_ = build([{"text": "again"}], tools=TOOLS, processes=processes, store=store, clock=FakeClock())
    async with agent.open(session.id) as session:
        jobs = BackgroundJobs(session.conversation, entries)
        jobs.tasks = session.jobs.tasks
        await session.run("hello")
        jobs.recover()
        jobs.recover()
        (text,) = notes(session)
        assert text == "job-1 (serve) ended when the session was left. Start it again if it is needed."
        assert [entry.event for entry in store.logs[session.id].entries if isinstance(entry.event, JobEnded)] == [
            JobEnded("job-1")
        ]
        assert any(isinstance(entry.event, NoteQueued) for entry in store.logs[session.id].entries)
        assert jobs.add(await processes.start(processes.commands[0], processes.grants[0]), "serve", "c") == "job-2"
        with pytest.raises(ToolError, match="job-1 \\(serve\\) ended with the run of the session"):
            await jobs.read_output("job-1")
        await jobs.close()


async def test_the_end_of_a_job_is_in_the_log():
    store = MemoryStore()
    agent, processes = serving([{"text": "done"}], store=store, clock=FakeClock())
    async with agent.open() as session:
        await session.run("go")
    events = [entry.event for entry in store.logs[session.id].entries]
    assert JobEnded("job-1", -15) in events
    assert processes.running == 0


def serving(script: list[dict[str, Any]], printed: bytes = b"", **ports: Any) -> tuple[Any, ScriptedProcesses]:
    """An agent with this script and these ports. Its command `serve` prints `printed` and keeps running."""
    processes = ScriptedProcesses({"serve": CommandResult(0, printed, b"")})
    processes.hold("serve")
    begun = [use(1, "bash", command="serve", run_in_background=True), *script]
    ports = {"clock": FakeClock(is_eager=True), **ports}
    agent, *_ = build(begun, tools=TOOLS, processes=processes, **ports)
    return agent, processes


async def test_a_job_that_ends_after_every_waiting_call_timed_out_sends_a_note():
    agent, processes = serving([{"text": "done"}])
    async with agent.open() as session:
        await session.run("go")
        async with asyncio.TaskGroup() as group:
            group.create_task(session.jobs.read_output("job-1", 0.01))
            group.create_task(session.jobs.read_output("job-1", 0.02))
        processes.release("serve")
        await until(lambda: notes(session), 2.0)


@pytest.mark.parametrize(
    ("first", "looks", "then", "note", "left"),
    [
        (b"one\n", True, b"", "It printed nothing new.", b""),
        (b"one\n", True, b"two\n", "Its last lines:\ntwo", b""),
        (b"one\n", False, b"two\n", "Its last lines:\none\ntwo", b""),
        (b"", False, b"", "It printed nothing new.", b""),
        (
            b"",
            False,
            b"1\n2\n3\n4\n5\n6\n",
            "Its last lines (bash_output shows all that is new):\n2\n3\n4\n5\n6",
            b"1\n2\n3\n4\n5\n6\n",
        ),
    ],
)
async def test_the_note_about_the_end_of_a_job_tells_no_output_twice(
    first: bytes, looks: bool, then: bytes, note: str, left: bytes
):
    agent, processes = serving([{"text": "begun"}])
    async with agent.open() as session:
        await session.run("go")
        job = processes.started[0]
        job.print(first)
        if looks:
            assert (await session.jobs.read_output("job-1")).printed == first
        job.print(then)
        processes.release("serve")
        await until(lambda: notes(session))
        (text,) = notes(session)
        assert text.endswith(f" s. {note}")
        assert (await session.jobs.read_output("job-1")).printed == left


async def test_the_time_of_a_job_counts_from_the_start_of_its_command():
    agent, processes = serving([{"text": "begun"}])
    async with agent.open() as session:
        await session.run("go")
        process = await processes.start(processes.commands[0], processes.grants[0])
        job_id = session.jobs.add(process, "make", "c", 120.0)
        assert (await session.jobs.read_output(job_id)).seconds == pytest.approx(120, abs=5)
        processes.release("serve")
        await until(lambda: any("(make) has ended" in text for text in notes(session)))
        assert any("(make) has ended with exit code 0 after 120 s." in text for text in notes(session))


async def test_output_that_a_withdrawn_reply_has_read_from_a_job_appears_once():
    looks = [use(2, "bash_output", job_id="job-1"), use(3, "bash_output", job_id="job-1", wait=0)]
    long = {"id": "id_9", "name": "bash_output", "arguments": {"job_id": "none" * 50}}
    looks[0]["tool_calls"].append(long)
    broken = {**looks[0], "faults": {"cut_at_byte": 80}}

    agent, processes = serving([{"text": "begun"}, broken, looks[1], {"text": "done"}])
    async with agent.open() as session:
        await session.run("go")
        processes.started[0].print(b"listening\n")
        await session.run("look")
        shown = [text for text in results(session.transcript.messages) if "listening" in text]
        assert len(shown) == 1 and shown[0].startswith("listening\n[job-1 is running")
        processes.started[0].print(b"more\n")
        assert (await session.jobs.read_output("job-1")).printed == b"more\n"


async def test_cancelling_a_session_while_its_jobs_end_leaves_none_running():
    async def life(agent, processes, opened: asyncio.Event) -> None:
        async with agent.open() as session:
            await session.run("go")
            processes.started[0].end = asyncio.Event().wait  # it ignores SIGTERM
            opened.set()
            await asyncio.Event().wait()

    opened = asyncio.Event()
    agent, processes = serving([{"text": "done"}])
    task = asyncio.ensure_future(life(agent, processes, opened))
    await opened.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0.05)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()} and processes.running == 0
    (log,) = agent.store.logs.values()
    assert JobEnded("job-1", -15) in [entry.event for entry in log.entries]


async def test_a_job_that_the_end_of_the_run_ended_is_named_to_the_user_and_in_the_next_run_to_the_model(real):
    store, emit = MemoryStore(), RecordingEmit()
    serve = use(1, "bash", command="exec sleep 300", run_in_background=True)
    agent, *_ = build([serve, {"text": "done"}], **real, store=store)
    async with agent.open() as session:
        await session.run("go", emit)
    text = "job-1 (exec sleep 300) was still running and was ended with the run."
    assert emit.warnings == (text,)
    looks = [use(2, "bash_output", job_id="job-1"), use(3, "bash_kill", job_id="2"), {"text": "gone"}]
    agent, model, _ = build(looks, **real, store=store)
    async with agent.open(session.id) as again:
        await again.run("look")
    assert [note.text for note in model.requests[0][-1].notes] == [text]
    assert results(model.requests[-1])[-2:] == [
        "job-1 (exec sleep 300) ended with the run of the session that started it, and its output is gone; start it "
        "again if needed",
        "there is no job 'job-2'; none was started",
    ]


async def test_the_number_of_a_job_is_enough(real):
    script = [
        use(1, "bash", command="exec sleep 300", run_in_background=True),
        use(2, "bash_kill", job_id="1"),
        {"text": "done"},
    ]
    agent, model, _ = build(script, **real)
    async with agent.open() as session:
        await session.run("go")
    assert results(model.requests[-1])[-1].startswith("(no new output)\n[job-1 has ended by SIGTERM")
