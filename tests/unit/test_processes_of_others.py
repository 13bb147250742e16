"""Processes that belong to another user, as those that sudo starts, can't be ended: the result says so."""

import asyncio
import contextlib
import os
import signal
import time

import pytest
from without_root_rights import others_refuse_signals

from bradawl.core.permissions import Grant
from bradawl.tools.shell.result import output_of
from bradawl.workspace.processes import LocalProcesses
from real_processes import shell

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")

OF_OTHERS = (
    'python3 -c \'import os, time; f = open("pid", "w"); os.setuid(65534); f.write(str(os.getpid())); f.close();'
    " time.sleep(60)'"
)
UNTIL_IT_RUNS = "until [ -s pid ]; do sleep 0.05; done"


@pytest.mark.parametrize(
    "line", [OF_OTHERS + "; true", f"sleep 60 & {OF_OTHERS} & {UNTIL_IT_RUNS}", f"{OF_OTHERS} & {UNTIL_IT_RUNS}"]
)
async def test_a_process_that_cannot_be_ended_is_named_and_does_not_hold_the_agent(line, tmp_path):
    processes = LocalProcesses(os.environ, term_grace_s=0.2)
    beats: list[float] = []
    beat = asyncio.create_task(heartbeat(beats))
    pid = 0
    try:
        with others_refuse_signals():
            result = await processes.run(shell(line, tmp_path, timeout_s=3), Grant())
        await asyncio.sleep(0)
        pid = int((tmp_path / "pid").read_text())
        shown = "".join(part.text for part in output_of(line, result, "", ()).parts)
        assert f"[not everything was ended: process {pid} (python3" in shown
        assert result.ended_background is ("sleep 60 &" in line)
        assert len(beats) > 10, "while it waits for the process"
    finally:
        beat.cancel()
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
        processes.close()


async def heartbeat(beats: list[float]) -> None:
    while True:
        await asyncio.sleep(0.002)
        beats.append(time.monotonic())
