"""Each guarantee of Landlock holds, as root and as nobody, against programs that succeed without a sandbox."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from landlock_programs import (
    HAS_ALL_RIGHTS,
    NOBODY,
    PROGRAMS,
    SYSTEM_PYTHON,
    USERS,
    SandboxedPrograms,
    landlock_programs,
    needs_whole_landlock,
)
from running import pids_of

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox import landlock
from bradawl.sandbox.backend import Program
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.sandbox.network.session_network import UnusedNetwork
from real_processes import open_files

pytestmark = needs_whole_landlock

_PY = "python3 -c '{}'"
_SOCKET = 'import socket; s = socket.socket(socket.{0}); s.settimeout(2); {1}; print("OPEN")'
_LIBC = 'import ctypes; c = ctypes.CDLL(None, use_errno=True); print("OPEN" if {0} else ctypes.get_errno())'

# Each prints OPEN if it succeeds. $OUT is a folder outside, $AGENT a process with KEY in its environment.
ATTEMPTS = {
    "write_outside": [
        "echo x > $OUT/file && echo OPEN",
        "echo x >> $OUT/file && echo OPEN",
        "touch $OUT/new && echo OPEN",
        "rm -f $OUT/file && [ ! -e $OUT/file ] && echo OPEN",
        "mkdir $OUT/folder && echo OPEN",
        "mv $OUT/file $OUT/other && echo OPEN",
        "mv $OUT/file . && echo OPEN",
        "echo x > mine; mv mine $OUT/mine && echo OPEN",
        "ln -s x $OUT/link && echo OPEN",
        "mkfifo $OUT/pipe && echo OPEN",
        "truncate -s 0 $OUT/file && echo OPEN",
        _PY.format('import os; os.truncate(os.environ["OUT"] + "/file", 0); print("OPEN")'),
        _PY.format('import os; os.open(os.environ["OUT"], os.O_TMPFILE | os.O_RDWR); print("OPEN")'),
        "cd $OUT && echo x > file && echo OPEN",
        "echo x > ../outside/file && echo OPEN",
        "echo x > /proc/self/cwd/../outside/file && echo OPEN",
    ],
    "hard_link_in": ["ln $OUT/file here && echo x > here && echo OPEN"],
    "symlinked_root": [
        "ln -sfn $OUT out && echo x > out/new && echo OPEN",
        "ln -sfn $OUT/file to && echo x > to && echo OPEN",
        "ln -sfn ../outside out && mkdir -p out/a && echo OPEN",
    ],
    "remount": [
        _PY.format(_LIBC.format('c.mount(b"none", b".", b"tmpfs", 0, None) == 0 and c.umount2(b".", 2) == 0')),
        "unshare -m true && echo OPEN",
    ],
    "nested_userns": ["unshare -Ur true && echo OPEN", "unshare -Urnm true && echo OPEN"],
    "tcp": [
        "exec 3<>/dev/tcp/127.0.0.1/$TCP && echo OPEN",
        _PY.format(_SOCKET.format("AF_INET", 'import os; s.connect(("127.0.0.1", int(os.environ["TCP"])))')),
        _PY.format(_SOCKET.format("AF_INET", 's.bind(("127.0.0.1", 0)); s.listen()')),
    ],
    "udp": [
        "echo x > /dev/udp/127.0.0.1/$UDP && echo OPEN",
        _PY.format(_SOCKET.format("AF_INET, socket.SOCK_DGRAM", 's.sendto(b"x", ("127.0.0.1", 53))')),
        _PY.format(_SOCKET.format("AF_INET6, socket.SOCK_DGRAM", 's.sendto(b"x", ("::1", 53))')),
    ],
    "icmp": [_PY.format(_SOCKET.format("AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP", "pass"))],
    "netlink": [_PY.format(_SOCKET.format("AF_NETLINK, socket.SOCK_RAW", "pass"))],
    "unix_sockets": [_PY.format(_SOCKET.format("AF_UNIX", 'import os; s.connect(os.environ["OUT"] + "/socket")'))],
    "abstract_sockets": [_PY.format(_SOCKET.format("AF_UNIX", 'import os; s.connect("\\0" + os.environ["ABSTRACT"])'))],
    "tiocsti": [
        _PY.format(
            'import os, fcntl; t = os.open(os.environ["TTY"], os.O_RDWR); fcntl.ioctl(t, 0x5412, b"x"); print("OPEN")'
        ),
    ],
    "proc_root": [
        "cat /proc/$AGENT/root/etc/passwd > /dev/null && echo OPEN",
        "ls /proc/$AGENT/cwd/ && echo OPEN",
        "readlink /proc/$AGENT/exe && echo OPEN",
    ],
    "agent_environ": [
        "grep -q secret /proc/$AGENT/environ && echo OPEN",
        "grep -q ' ' /proc/$AGENT/maps && echo OPEN",
        "head -c 0 /proc/$AGENT/mem && echo OPEN",
    ],
    "ptrace": [
        _PY.format(
            'import os, ctypes; c = ctypes.CDLL(None); a = int(os.environ["AGENT"]); '
            'print("OPEN" if c.ptrace(0x4206, a, None, None) == 0 else "")'
        ),
        "kill -0 $AGENT && echo OPEN",
        "kill -CONT $AGENT && echo OPEN",
    ],
    "credentials": [
        "cat ~/.ssh/id_ed25519 && echo OPEN",
        "ls ~/.ssh && echo OPEN",
        "cat ~/.config/bradawl/credentials && echo OPEN",
        "cp ~/.config/bradawl/credentials copy && echo OPEN",
        "ln -sfn ~/.ssh/id_ed25519 k && cat k && echo OPEN",
        "cat /proc/self/root$HOME/.ssh/id_ed25519 && echo OPEN",
        "cat ~/linked && echo OPEN",
    ],
    "no_new_privileges": ["grep -q 'NoNewPrivs:.0' /proc/self/status && echo OPEN"],
}
# Attempts that fail without a sandbox too: for a user without capabilities, or for root on this machine.
_UNPRIVILEGED = {"icmp", "tiocsti", "unshare -m true", "c.mount("}
NEVER_OPEN = {"nobody": _UNPRIVILEGED, "me": {"head -c 0 /proc"} if HAS_ALL_RIGHTS else _UNPRIVILEGED}
TESTED_ELSEWHERE = {"escapees", "domains"}  # test_landlock_escapees.py, test_landlock_domains.py
CASES = [(line, attempt) for line, attempts in ATTEMPTS.items() for attempt in attempts]


@pytest.fixture(params=USERS)
def made(request):
    with landlock_programs(request.param) as built:
        yield built


@pytest.mark.parametrize(("line", "attempt"), CASES)
def test_an_attempt_fails_in_the_sandbox_and_succeeds_without(made, outside, line, attempt):
    ended = made.sh(attempt, env=outside.env)
    assert "OPEN" not in ended.out, ended
    assert (made.outside / "file").read_text() == "outside"
    never = NEVER_OPEN[made.user]
    if line not in never and not any(part in attempt for part in never):
        assert "OPEN" in made.bare(attempt, outside.env), "the attempt fails by itself: it shows nothing"


def test_every_guarantee_is_tested_as_held_or_as_missing():
    assert set(GUARANTEES) == set(ATTEMPTS) | set(landlock.MISSING_GUARANTEES) | TESTED_ELSEWHERE


# ------------------------------------------------------------------ what Landlock can't guarantee


def _chmod(made: SandboxedPrograms) -> bool:
    made.sh("chmod 640 ../outside/file; touch -d 2001-01-01 ../outside/file")
    status = (made.outside / "file").stat()
    return status.st_mode & 0o777 == 0o640 and status.st_mtime < 1e9


def _env_file(made: SandboxedPrograms) -> bool:
    made.write(made.root / ".env", "KEY=1")
    (made.root / ".env").chmod(0o644)
    return made.sh("cat .env").out == "KEY=1"


def _sees(made: SandboxedPrograms, line: str) -> bool:
    """Whether a protected file is changed while the program runs, although it is restored later."""
    ended = made.sh(f"{line}; cat .git/config .mcp.json 2>/dev/null | grep -c bad")
    return ended.out.strip() not in ("", "0") and bool(ended.restored)


def _symlinked(made: SandboxedPrograms) -> bool:
    (made.root / ".git").rename(made.root / "data")
    (made.root / ".git").symlink_to("data")
    return _sees(made, "echo bad > data/config")


OPEN = {
    "chmod_outside": _chmod,
    "credentials": _env_file,
    "protected_file": lambda made: _sees(made, "echo bad >> .git/config"),
    "new_protected_file": lambda made: _sees(made, "echo bad > .mcp.json"),
    "rename_protected": lambda made: _sees(made, "mv .git old; mkdir .git; echo bad > .git/config"),
    "symlinked_git": _symlinked,
    "private_tmp": lambda made: made.sh("echo x > /tmp/x").code != 0,
}


@pytest.mark.parametrize("line", landlock.MISSING_GUARANTEES)
def test_guarantees_listed_as_missing_are_missing(made, line):
    assert OPEN[line](made), f"{line} is guaranteed after all: remove it from the table"


def test_protected_files_are_restored_when_the_program_has_ended(made):
    ended = made.sh(
        "echo bad >> .git/config; mkdir .bradawl; echo '#!/bin/sh' > .git/hooks/pre-commit; mv .git/hooks h"
    )
    assert {Path(path).name for path in ended.restored} == {"config", ".bradawl", "hooks"}
    assert (made.root / ".git/config").read_text() == "[core]\n"
    assert not list((made.root / ".git/hooks").iterdir())
    assert not (made.root / ".bradawl").exists()


# ------------------------------------------------------------------ the probe, the page


def test_the_probe_the_table_and_the_page_say_the_same(made):
    interpreter = SYSTEM_PYTHON if made.user == "nobody" else ""
    probe = landlock.probe_program(made.layout, interpreter)
    if made.user == "nobody":
        for path in (made.own, *made.own.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    without = landlock.missing_guarantees(made.run(probe.argv, grant=Grant()).out.encode())
    assert without is not None and set(without) == {*landlock.MISSING_GUARANTEES, "domains"}
    made.backend.close()
    made.backend = landlock.LandlockBackend(made.layout, interpreter=interpreter, network=UnusedNetwork())
    ended = made.run(probe.argv, grant=Grant(network=True))
    lacks = landlock.missing_guarantees(ended.out.encode())
    assert lacks is not None, ended
    assert set(lacks) == set(landlock.MISSING_GUARANTEES)
    assert made.backend.sandbox.name == "landlock"
    assert set(made.backend.sandbox.lacks) == set(lacks)


def test_the_page_lists_the_same_guarantees_as_the_code():
    page = (Path(__file__).parents[2] / "docs/sandbox-details.md").read_text()
    part = page.split("What Landlock can't hold", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1].strip(" `") for line in part.splitlines() if line.startswith("| `")]
    assert rows == list(landlock.MISSING_GUARANTEES)


def test_without_a_sandbox_the_probe_reports_every_guarantee_as_missing():
    """A probe that reports nothing would declare everything guaranteed."""
    with landlock_programs() as made:
        probe = landlock.probe_program(made.layout, "")
        target = subprocess.Popen(["/bin/sleep", "60"])
        try:
            argv = [*probe.argv[:-1], str(target.pid)]
            with subprocess.Popen(argv, stdout=subprocess.PIPE) as started:
                printed = started.stdout.readline() if started.stdout else b""
            left = pids_of(*argv)
            for pid in left:
                os.kill(pid, 9)
        finally:
            target.kill()
            target.wait()
    assert len(left) == 1, "the process that the agent looks for has escaped"
    open_lines = set(landlock.missing_guarantees(printed, has_escaped=True) or ())
    missing = set(GUARANTEES) - open_lines - {"tiocsti", "icmp"}
    assert missing <= (set() if os.geteuid() == 0 else {"remount", "ptrace"}), missing


@pytest.mark.parametrize("printed", [b"", b"Traceback", b"bradawl: the sandbox can't be set up", b"\xff"])
def test_a_probe_that_failed_has_no_result(printed):
    assert landlock.missing_guarantees(printed) is None


# ------------------------------------------------------------------ ordinary work


WORK = [
    "echo hi > new && cat new && mkdir -p a/b && mv new a/b/ && rm -r a",
    "chmod +x .git/config; cp -p .git/config c; ln c d; ln -s c e; readlink e",
    "cat <(echo hi) | grep hi; diff <(echo a) <(echo a)",
    "f=$(mktemp) && echo x > $f && [[ $f == $TMPDIR/* ]] && rm $f",
    "cat <<< here; echo > /dev/null; head -c 4 /dev/urandom | wc -c",
    "python3 -c 'import tempfile, asyncio, subprocess; asyncio.run(asyncio.sleep(0)); tempfile.mkdtemp()'",
    "python3 -c 'import subprocess; subprocess.run([\"true\"], check=True, close_fds=True)'",
    "python3 -c 'import os, socket; a, b = socket.socketpair(); os.listdir(\"/proc/self/fd\")'",
    "cat /proc/meminfo /proc/self/status /proc/cpuinfo > /dev/null",
    "id; hostname; date; uname -a",
    pytest.param("ps aux > /dev/null", marks=pytest.mark.skipif(not shutil.which("ps"), reason="ps is not installed")),
    "sleep 0.01 & wait; sh -c 'sleep 9 & kill $!'",
    "mkdir sub && git init -q sub && cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
    "echo 'all:\n\techo made' > Makefile; make -s > /dev/null || command -v make || true",
    "find . -name config > /dev/null; grep -r core . > /dev/null; tar cf t.tar .git && tar tf t.tar > /dev/null",
    "trap 'exit 0' TERM; kill -TERM $$; exit 1",
]


@pytest.mark.parametrize("line", WORK)
def test_ordinary_commands_succeed(made, line):
    ended = made.sh(line)
    assert (ended.code, ended.err) == (0, ""), ended


def test_exit_codes_and_signals_are_the_programs_own(made):
    assert made.sh("exit 7").code == 7
    assert made.sh("kill -9 $$").code == -9


def test_a_missing_program_has_the_exit_code_of_a_shell(made):
    ended = made.run(("no-such-program",))
    assert (ended.code, ended.err) == (127, "bradawl: no-such-program: not found\n")
    ended = made.run((str(made.outside / "file"),))
    assert ended.code == 126


def test_a_grant_without_writable_folders_changes_nothing(made):
    ended = made.sh("cat .git/config; touch x || rm .git/config || echo no > .git/config", grant=Grant())
    assert ended.code != 0
    assert ended.out == "[core]\n"
    assert made.sh("touch $TMPDIR/x ${XDG_CACHE_HOME%/*}/x", grant=Grant()).code == 0


def test_a_path_that_was_granted_can_be_written_and_one_that_is_missing_is_refused(made):
    file = str(made.outside / "file")
    roots = made.layout.roots
    assert made.sh(f"echo x > {file}", grant=Grant(writable=(*roots, file))).code == 0
    assert made.sh(f"rm {file}", grant=Grant(writable=(*roots, file))).code != 0
    with pytest.raises(ToolError, match="make it with write_file first"):
        made.sh("true", grant=Grant(writable=(*roots, "/nowhere/file")))
    with pytest.raises(ToolError, match=r"\$TMPDIR"):
        made.sh("true", grant=Grant(writable=(*roots, "/tmp/bradawl-no-such-file")))


def test_files_uncovered_by_a_grant_can_be_read_and_changed(made):
    secret = str(made.home / ".ssh/id_ed25519")
    assert made.sh("cat ~/.ssh/id_ed25519", grant=Grant(uncovered=(secret,))).out == "PRIVATE"
    config = str(made.root / ".git/config")
    ended = made.sh("echo '#' >> .git/config", grant=Grant(writable=made.layout.roots, uncovered=(config,)))
    assert ended.restored == ()
    assert (made.root / ".git/config").read_text() == "[core]\n#\n"


def test_with_the_network_granted_sockets_in_the_file_system_stay_closed(made, outside):
    made.backend.close()
    interpreter = SYSTEM_PYTHON if made.user == "nobody" else ""
    made.backend = landlock.LandlockBackend(made.layout, ("domains",), interpreter=interpreter)
    granted = Grant(writable=made.layout.roots, network=True)
    for line in ("tcp", "udp"):
        assert "OPEN" in made.sh(ATTEMPTS[line][0], grant=granted, env=outside.env).out
    for line in ("unix_sockets", "abstract_sockets", "netlink"):
        assert "OPEN" not in made.sh(ATTEMPTS[line][0], grant=granted, env=outside.env).out


def test_variables_of_the_program_do_not_reach_the_helper(made):
    """The dynamic linker would run code of the workspace before Landlock is in force."""
    made.write(made.root / "evil.py", "raise SystemExit('evil')")
    env = {
        "LD_PRELOAD": str(made.root / "evil.so"),
        "PYTHONPATH": str(made.root),
        "PYTHONSTARTUP": "evil.py",
        "A": "b c",
    }
    program = landlock.Program(("/bin/true",), str(made.root), env, exported=tuple(env))
    launch = made.backend.launch(program, Grant())
    for descriptor in (*launch.close_after_start, launch.info_fd):
        os.close(descriptor)
    assert launch.environment == {}
    assert made.sh('echo "$A"', env={"A": "b c"}).out == "b c\n"


def test_unusual_arguments_are_passed_unchanged(made):
    odd = os.fsdecode(b"\xff\n'\" =")
    ended = made.run(("/usr/bin/printf", "%s|", "", odd, "=", "ü"))
    assert ended.out == f"|{odd}|=|ü|"
    assert made.sh('printf %s "$ODD"', env={"ODD": f"a={odd}"}).out == f"a={odd}"
    with pytest.raises(ValueError, match="null byte"):
        made.run(("/bin/echo", "a\0b"))


def test_an_argument_that_is_too_long_is_an_error_before_the_start(made):
    with pytest.raises(ToolError, match="too long"):
        made.sh("echo " + "x" * 140_000)
    many = made.run(("/bin/true", *["x" * 1_000] * 10_000))
    assert many.code == 126
    assert "too long" in many.err


def test_a_folder_of_the_workspace_that_holds_credentials_is_refused():
    with landlock_programs() as made:
        layout = landlock.SandboxLayout(roots=(str(made.home),), home=str(made.home), scratch=str(made.scratch))
        sandbox_backend = landlock.LandlockBackend(layout)
        with pytest.raises(ToolError, match="could not be hidden"):
            sandbox_backend.launch(landlock.Program(("true",), "/", {}), Grant(writable=layout.roots))
        sandbox_backend.close()


def test_a_python_inside_the_workspace_starts_nothing(tmp_path):
    layout = landlock.SandboxLayout(roots=(str(tmp_path),), home="/root")
    (tmp_path / "python").write_text("")
    assert str(tmp_path) in landlock.why_unavailable(layout, str(tmp_path / "python"))
    assert landlock.why_unavailable(layout) == ""


def test_git_works_in_a_folder_of_a_repository():
    with landlock_programs() as made:
        main = made.place / "main"
        made.bare(
            f"git init -q {main}; mkdir {main}/one; git -C {main} config user.name a; git -C {main} config user.email b"
        )
        made.root = main / "one"
        made.layout = msgspec.structs.replace(made.layout, roots=(str(made.root),))
        made.backend.close()
        made.backend = landlock.LandlockBackend(made.layout)
        ended = made.sh("touch a && git add a && git commit -q -m y && git log --oneline | wc -l; echo bad > ../file")
        assert (ended.code, ended.out.strip()) == (1, "1"), ended
        assert not (main / "file").exists()
        assert made.sh("git config core.fsmonitor 'touch bad'").restored == (str(main / ".git/config"),)


def test_git_works_in_a_second_working_tree_whose_data_lies_outside(made):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(made.place / "main")]
    subprocess.run(["git", "init", "-q", str(made.place / "main")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run(["rm", "-rf", str(made.root)], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(made.root)], check=True)
    if made.user == "nobody":
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(made.place)], check=True)
    made.write(made.root / "a", "b")
    ended = made.sh("git add a && git -c user.name=a -c user.email=a@b commit -q -m y && git log --oneline | wc -l")
    assert (ended.code, ended.out.strip()) == (0, "2"), ended
    assert made.sh("git config core.fsmonitor 'touch bad'").restored == (str(made.place / "main/.git/config"),)


def test_new_repositories_and_working_trees_are_kept_until_they_are_removed(made):
    subprocess.run(["rm", "-r", str(made.root / ".git")], check=True)
    made.bare("git init -q; git config user.name a; git config user.email b; git commit -q --allow-empty -m x")
    for line in (
        "git worktree add -q tree -b tree; git clone -q . a/copy; git init -q fresh",
        "git worktree move tree moved; mv a b; git -C moved commit -q --allow-empty -m two",
    ):
        ended = made.sh(line)
        assert (ended.code, ended.err, ended.restored) == (0, "", ()), ended
    ended = made.sh("git -C fresh config core.fsmonitor bad; echo /bad > .git/worktrees/tree/commondir")
    assert {str(made.root / name) for name in ("fresh/.git/config", ".git/worktrees/tree/commondir")} <= set(
        ended.restored
    )
    assert "bad" not in made.bare("cat fresh/.git/config .git/worktrees/tree/commondir")
    made.bare("git worktree repair moved; echo gitdir: $PWD/.git/worktrees/tree > moved/.git")
    ended = made.sh("git worktree remove --force moved; rm -r b fresh")
    assert (ended.code, ended.restored) == (0, ()), ended
    assert [path.name for path in made.root.iterdir()] == [".git"]


def test_existing_files_removed_together_with_new_ones_are_restored(made):
    subprocess.run(["rm", "-r", str(made.root / ".git")], check=True)
    made.bare(
        "git init -q; git init -q a/old; git config user.name a; git config user.email b;"
        "git commit -q --allow-empty -m x"
    )
    made.sh("true")
    made.sh("git worktree add -q tree; git clone -q . a/new")
    kept = {name: (made.root / name).read_bytes() for name in (".git/config", "a/old/.git/config")}
    ended = made.sh("rm -rf a .git tree")
    assert {str(made.root / name) for name in kept} <= set(ended.restored), ended
    assert {name: (made.root / name).read_bytes() for name in kept} == kept
    assert not (made.root / "a/new").exists()
    assert not (made.root / "tree").exists()


def test_a_start_that_fails_counts_as_no_running_program(made):
    """While a program counts as running, what the user changes is put back as if a program had done it."""
    config = made.root / ".git/config"
    limits, failed = resource.getrlimit(resource.RLIMIT_NOFILE), 0
    used = open_files()
    program = Program(("/bin/true",), str(made.root), {"PATH": PROGRAMS})
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, limits[1]))
        try:
            launch = made.backend.launch(program, Grant(writable=made.layout.roots))
        except (OSError, ToolError):
            failed += 1
        else:
            for descriptor in (*launch.close_after_start, launch.info_fd):
                os.close(descriptor)
            launch.on_end()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert failed
    config.write_text("[user]\n\tname = changed by the user\n")
    assert made.sh("true").restored == ()
    assert "changed by the user" in config.read_text()
    assert open_files() == used
