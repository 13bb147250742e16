"""No sandboxed program can create a set-user-ID or set-group-ID file."""

import os
import stat
from pathlib import Path

import pytest

LINES = (
    "cp /bin/true t; chmod 4755 t",
    "cp /bin/true t; chmod u+s t",
    "cp /bin/true t; chmod 7777 t",
    "install -m 4755 /bin/true t",
    "cp -p $(find /bin/ /usr/bin/ -maxdepth 1 -perm -4000 2>/dev/null | head -n 1) t",
    "python3 -c \"import os; os.close(os.open('t', os.O_CREAT | os.O_WRONLY, 0o4755))\"",
    "python3 -c \"import os; os.umask(0); os.close(os.open('t', os.O_CREAT | os.O_WRONLY, 0o6777))\"",
    "python3 -c \"import os; f = os.open('t', os.O_CREAT | os.O_WRONLY, 0o755); os.fchmod(f, 0o4755)\"",
    "python3 -c \"import os; os.mknod('t', 0o104755)\"",
    "touch t; python3 -c \"import os; os.chmod('t', 0o4755, dir_fd=os.open('.', 0))\"",
    "mkdir d; cp /bin/true d/t; chmod -R u+s d",
    "umask 0; cp /bin/true t; (chmod 4711 t &); wait",
)


@pytest.mark.parametrize("line", LINES)
def test_no_file_gets_the_bit(either_way, backend, line):
    if "cp -p" in line and not any(each.stat().st_mode & stat.S_ISUID for each in Path("/usr/bin").iterdir()):
        pytest.skip("no program with the bit is installed")
    if "cp -p" in line and backend == "bare" and os.geteuid() != 0:
        pytest.skip("without a sandbox, a copy of root's program keeps the bit for root alone")
    either_way.run(line)
    has_bit = any(each.is_file() and each.stat().st_mode & stat.S_ISUID for each in Path(either_way.root).rglob("*"))
    assert has_bit == (backend == "bare")


def test_files_can_be_created_and_other_modes_changed(either_way):
    line = "umask 022; touch a; chmod 755 a; chmod 1777 .; mkdir -m 2775 d; install -m 640 a b; cat b; stat -c %a a b d"
    result = either_way.run(line)
    assert result.stdout.split() == [b"755", b"640", b"2775"], result.stderr
