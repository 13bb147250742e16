"""`Journal` with killed programs, full disks and long files."""

import subprocess
import sys

import pytest
from session_histories import OPENED, prompt
from test_session_journal import file_of, new, resume, written

from bradawl.core.events import TurnFinished
from bradawl.session.journal import load

ACKNOWLEDGING = """
import asyncio, sys
from pathlib import Path
from bradawl.core.events import PromptSubmitted, SessionOpened
from bradawl.core.messages import Text
from bradawl.session.journal import Journal
from bradawl.testing.fakes import FakeClock
journal = Journal.create(Path(sys.argv[1]), FakeClock())
journal.append(SessionOpened(1, "/p", "/p"))
async def write_for_ever():
    while True:
        entry = journal.append(PromptSubmitted((Text("x" * 5000),)))
        assert await journal.durable(entry)
        print(entry.seq, flush=True)
asyncio.run(write_for_ever())
"""


def test_a_killed_program_loses_no_acknowledged_entry(tmp_path):
    command = [sys.executable, "-c", ACKNOWLEDGING, file_of(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        acknowledged = [int(program.stdout.readline()) for _ in range(20)]
        program.kill()
        acknowledged += [int(line) for line in program.stdout.read().splitlines() if line]
    journal, loaded, _ = resume(tmp_path)
    assert [entry.seq for entry in loaded.entries][1 : len(acknowledged) + 1] == acknowledged
    assert journal.append(prompt("after")).seq == len(loaded.entries)
    assert journal.close()


FULL_DISK = """
import asyncio, sys
from pathlib import Path
from bradawl.core.events import PromptSubmitted, SessionOpened
from bradawl.core.messages import Text
from bradawl.session.journal import Journal
from bradawl.testing.fakes import FakeClock
import resource
path = Path(sys.argv[1])
journal = Journal.create(path, FakeClock())
journal.append(SessionOpened(1, "/p", "/p"))
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
last = None
for number in range(20):
    last = journal.append(PromptSubmitted((Text("x" * 300),)))
assert not journal.is_saved
assert asyncio.run(journal.durable(last)) is False
data = path.read_bytes()
assert data.endswith(b"}\\n") and len(data) <= 3000, data[-50:]
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert asyncio.run(journal.durable(last)) is True
assert journal.is_saved and journal.close()
"""


def test_a_file_that_can_not_grow_keeps_complete_lines_and_gets_the_rest_later(tmp_path):
    subprocess.run([sys.executable, "-c", FULL_DISK, file_of(tmp_path)], check=True, timeout=60)
    entries = load(file_of(tmp_path)).entries
    assert [entry.seq for entry in entries] == list(range(21))


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk needs the right to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


async def test_a_full_disk_loses_no_entry_once_there_is_space_again(small_disk):
    journal = new(small_disk)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 40_000)
    entries = [journal.append(OPENED)]
    entries += [journal.append(prompt("y" * 1009)) for _ in range(30)]
    assert not journal.is_saved
    assert (await journal.durable(entries[0])) is True
    assert (await journal.durable(entries[-1])) is False
    assert file_of(small_disk).read_bytes().endswith(b"}\n")
    ballast.unlink()
    entries.append(journal.append(TurnFinished("completed")))
    assert (await journal.durable(entries[-1])) is True
    assert journal.close() is True
    assert load(file_of(small_disk)).entries == tuple(entries)


def test_a_log_without_disk_space_closes_and_reports_that_it_is_not_saved(small_disk):
    journal = new(small_disk)
    journal.append(OPENED)
    journal.append(prompt("z" * 200_000))
    assert journal.close() is False
    assert len(load(file_of(small_disk)).entries) == 1


def test_fifty_thousand_lines_load_quickly_and_in_bounded_memory(tmp_path):
    whole = written(tmp_path, OPENED, *(prompt("w" * 200) for _ in range(100)))
    head, *rest = whole.splitlines(keepends=True)
    code = (
        "import sys, time; from pathlib import Path; from bradawl.session.journal import load\n"
        "from bradawl.folds.transcript import fold\n"
        "t = time.process_time(); loaded = load(Path(sys.argv[1])); fold(loaded.entries)\n"
        # Not ru_maxrss: it includes the process before `exec`.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]\n"
        "print(len(loaded.entries), time.process_time() - t, peak)"
    )
    with file_of(tmp_path).open("wb") as file:
        file.write(head)
        for seq in range(1, 50_000):
            line = rest[seq % 100].split(b',"at"', 1)[1]
            file.write(b'{"seq":%d,"parent":%d,"at"%s' % (seq, seq - 1, line))
    done = subprocess.run([sys.executable, "-c", code, file_of(tmp_path)], capture_output=True, check=True, timeout=150)
    count, seconds, kilobytes = done.stdout.split()
    assert int(count) == 50_000
    assert float(seconds) < 30  # below one second on an idle machine, and minutes if each line costs all before it
    assert int(kilobytes) < 200_000
