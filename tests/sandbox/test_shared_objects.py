"""Kernel objects of other programs of the same user are out of reach: shared memory, queues, semaphores, limits."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bubblewrap_programs import programs_with
from landlock_programs import SYSTEM_PYTHON, USERS

PYTHON = SYSTEM_PYTHON if os.access(SYSTEM_PYTHON, os.X_OK) else sys.executable
MAKE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
memory, queue, count = libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600), libc.semget(0, 1, 0o1600)
ctypes.memmove(libc.shmat(memory, None, 0), b"secret", 6)
libc.mq_open(NAME, 0o102, 0o600, None)
print(memory, queue, count)
"""
ATTACK = """
import ctypes, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
memory, queue, count, agent = map(int, sys.argv[1:])
place = libc.shmat(memory, None, 0)
if place not in (None, ctypes.c_void_p(-1).value):
    print(ctypes.string_at(place, 6))
    ctypes.memmove(place, b"broken", 6)
libc.shmctl(memory, 0, None), libc.msgctl(queue, 0, None), libc.semctl(count, 0, 0)
libc.semctl(count, 0, 16, 7)
libc.msgsnd(queue, ctypes.create_string_buffer(b"\\1" + bytes(15)), 8, 0o4000)
libc.mq_unlink(NAME)
try:
    resource.prlimit(agent, resource.RLIMIT_NOFILE, (9, 9))
except OSError:
    pass
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("done")
"""
CHECK = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
memory, queue, count = map(int, sys.argv[1:4])
place = libc.shmat(memory, None, 0)
print(ctypes.string_at(place, 6).decode() if place not in (None, ctypes.c_void_p(-1).value) else "gone")
print(libc.semctl(count, 0, 12), libc.msgctl(queue, 0, None), libc.shmctl(memory, 0, None), libc.semctl(count, 0, 0))
print(libc.mq_unlink(NAME))
"""


@pytest.fixture(params=[f"{kind} {user}" for kind in ("bubblewrap", "landlock") for user in USERS])
def made(request):
    with programs_with(*request.param.split()) as here:
        yield here


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mq_open"), reason="this C library has no message queues")
def test_shared_memory_queues_semaphores_and_limits_of_other_programs_are_unchanged(made):
    name = f"NAME = b'/bradawl-test-{os.getpid()}'\n"

    def run(text: str, *words: str) -> str:
        argv = [PYTHON, "-c", name + text, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True, **made.as_user).stdout

    agent = subprocess.Popen(["/bin/sleep", "60"], **made.as_user)
    try:
        ids = run(MAKE).split()
        limits = Path(f"/proc/{agent.pid}/limits")
        before = limits.read_text()
        ended = made.run((PYTHON, "-c", name + ATTACK, *ids, str(agent.pid)))
        assert ended.out == "done\n", ended
        assert limits.read_text() == before
        assert run(CHECK, *ids) == "secret\n0 0 0 0\n0\n"
    finally:
        agent.kill()
        agent.wait()
