"""A supervisor that can't end a process in time: the agent waits without blocking, and says so."""

import asyncio
import os
import socket
import subprocess
import time

from bradawl.core.workspace import Command
from bradawl.workspace.child_process import ChildProcess, ChildSandbox
from bradawl.workspace.private_folder import PrivateFolder
from bradawl.workspace.program_streams import ProgramStreams
from bradawl.workspace.program_supervisor import ProgramSupervisor


def start(streams: ProgramStreams) -> "subprocess.Popen[bytes]":
    out, err = streams.sinks
    return subprocess.Popen(["sleep", "60"], stdout=out, stderr=err, start_new_session=True)


async def test_a_process_stuck_in_the_kernel_does_not_block_the_event_loop(tmp_path):
    streams = ProgramStreams(Command(("sleep", "60"), "/"), None, PrivateFolder(str(tmp_path)), 1_000)
    program = start(streams)
    ours, theirs = socket.socketpair()
    theirs.send(b'{"child-pid": %d, "group": %d}' % (os.getpid(), program.pid))
    supervisor = ProgramSupervisor(ours.detach(), "no-such-mark", lambda _: None)
    child = ChildProcess(program, streams, "no-such-mark", 0.05, lambda _: None, ChildSandbox("landlock", supervisor))
    beats: list[float] = []
    beat = asyncio.create_task(heartbeat(beats))
    await child.end()
    beat.cancel()
    assert theirs.recv(10) == b"k" * 2  # without blocking, and once more at the end
    theirs.close()
    assert any("could not be ended in time" in note for note in child.result().notes)
    assert len(beats) > 10, "in the two seconds for which it waits for the process"


async def heartbeat(beats: list[float]) -> None:
    while True:
        await asyncio.sleep(0.002)
        beats.append(time.monotonic())
