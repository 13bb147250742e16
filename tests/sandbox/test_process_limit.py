"""RLIMIT_NPROC limits the number of processes in the sandbox, not outside."""

import os

import pytest
from bwrap import needs_bwrap

pytestmark = needs_bwrap

RAISE = "python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_NPROC, (9999, 9999))' 2>&1 | tail -1; ulimit -u"
BOMB = "python3 bomb.py"
TEXT = """
import os, time
made = 0
for _ in range(6000):
    try:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
    except OSError:
        break
print(made)
"""


def test_the_limit_applies_to_all_programs_of_the_shell_and_can_not_be_raised(made):
    assert made.out("ulimit -Hu; ulimit -Su; bash -c 'ulimit -u'; env | grep -c BRADAWL_PROC") == "4096\n" * 3 + "0\n"
    assert made.out(RAISE).splitlines()[-1] == "4096"
    assert made.bare("ulimit -u") != "4096\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel counts no processes of root's")
def test_a_fork_bomb_ends_at_the_limit(made):
    made.write("bomb.py", TEXT)
    assert int(made.out(BOMB)) < 4096
