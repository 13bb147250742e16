"""A program that runs can't read or write files that the user saves meanwhile."""

import asyncio
import os
import random
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from bwrap import needs_bwrap
from forked import as_plain_user
from landlock_programs import SYSTEM_PYTHON, USERS
from replaced_covers import BlindWatch, use_covers
from sandboxed_session import IDENTITY, SandboxedSession, remove_folder, sandboxed_session

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.sandbox.running_covers.cover_mounter import CoverMounter
from bradawl.sandbox.running_covers.cover_watch import PathWatch
from bradawl.workspace.atomic_write import replace_content
from bradawl.workspace.safe_open import folder_of

pytestmark = needs_bwrap

SETTLED_S = 0.4
"""Longer than covering again takes, on a busy machine as well."""
WAITS = (
    "touch {ready}; while ! test -e {go}; do sleep 0.02; done; {line}; touch {done};"
    " while ! test -e {stop}; do sleep 0.02; done"
)


class Case(msgspec.Struct, frozen=True):
    """What the user does while a program runs, and what the program does then."""

    user: str
    program: str
    leaks: str
    """A line that succeeds, outside of the sandbox, if the program was not kept from it."""
    before: str = "true"


IS_READ = "grep -q SECRET got"
CASES = {
    "git config renames its configuration": Case(
        "git config user.email me@x", "echo '# EVIL' >> .git/config", "grep -q EVIL .git/config"
    ),
    "an editor saves .envrc by renaming": Case(
        "echo b > new; mv new .envrc", "echo EVIL >> .envrc", "grep -q EVIL .envrc", before="echo a > .envrc"
    ),
    "git checkout removes a folder of settings and makes it again": Case(
        "git checkout -q without; git checkout -q main",
        "echo EVIL > .vscode/tasks.json",
        "grep -q EVIL .vscode/tasks.json",
        before="mkdir .vscode; echo a > .vscode/tasks.json; git add .; git commit -qm a; git checkout -qb without;"
        " git rm -rq .vscode; git commit -qm b; git checkout -q main",
    ),
    "the folder above a protected file is replaced": Case(
        "mv src old; mkdir src; cp old/.envrc src/.envrc",
        "echo EVIL >> src/.envrc",
        "grep -q EVIL src/.envrc",
        before="mkdir src; echo a > src/.envrc",
    ),
    "hooks are installed anew": Case(
        "rm -rf .git/hooks; mkdir .git/hooks",
        "echo EVIL > .git/hooks/pre-commit",
        "grep -q EVIL .git/hooks/pre-commit",
        before="echo a > .git/hooks/post-commit",
    ),
    "git clean removes placeholders": Case(
        "git clean -fdxq; rm -rf .vscode .envrc",
        "mkdir -p .vscode; echo EVIL > .vscode/tasks.json; echo EVIL > .envrc",
        "grep -q EVIL .vscode/tasks.json || grep -q EVIL .envrc",
    ),
    "the project's settings are replaced": Case(
        "mv .bradawl b; cp -r b .bradawl",
        "echo EVIL > .bradawl/config.toml",
        "grep -q EVIL .bradawl/config.toml",
        before="mkdir .bradawl; echo a > .bradawl/config.toml",
    ),
    "a program that git's configuration names is replaced": Case(
        "echo b > new; mv new tools/x",
        "echo EVIL >> tools/x",
        "grep -q EVIL tools/x",
        before="mkdir tools; echo a > tools/x; git config core.fsmonitor tools/x",
    ),
    "a hidden file is saved by renaming": Case(
        "echo SECRET2 > new; mv new .env", "cat .env > got", IS_READ, before="echo SECRET > .env"
    ),
    "a hidden file is removed and made again": Case(
        "rm .env; sleep 0.2; echo SECRET2 > .env", "cat .env > got", IS_READ, before="echo SECRET > .env"
    ),
    "git stores a password": Case(
        "echo SECRET > $HOME/new; mv $HOME/new $HOME/.git-credentials",
        "cat $HOME/.git-credentials > got",
        IS_READ,
        before="echo SECRET > $HOME/.git-credentials",
    ),
    "a file with keys appears in the home folder": Case(
        "echo SECRET > $HOME/.netrc", "cat $HOME/.netrc > got", IS_READ
    ),
    "a folder with keys appears in the home folder": Case(
        "mkdir -p $HOME/.aws; sleep 0.1; echo SECRET > $HOME/.aws/credentials",
        "cat $HOME/.aws/credentials > got",
        IS_READ,
    ),
    "a folder with keys is replaced": Case(
        "mv $HOME/.ssh $HOME/old; mkdir $HOME/.ssh; echo SECRET > $HOME/.ssh/id_rsa",
        "cat $HOME/.ssh/id_rsa > got",
        IS_READ,
    ),
    "a file that a rule refuses to read is saved": Case(
        "echo SECRET2 > new; mv new refused.txt",
        "cat refused.txt > got",
        IS_READ,
        before="echo SECRET > refused.txt",
    ),
    "a file that a rule refuses to write is saved": Case(
        "echo b > new; mv new kept.txt", "echo EVIL >> kept.txt", "grep -q EVIL kept.txt", before="echo a > kept.txt"
    ),
}
REFUSED = ("Read(refused.txt)", "Edit(kept.txt)")


class PollingWatch(PathWatch):
    """A watch on a system without inotify."""

    def fileno(self) -> int:
        self._is_polled = True
        return -1


def outside(made: SandboxedSession, line: str) -> bool:
    """Run a line as another program of the user does."""
    done = subprocess.run(["bash", "-c", line], cwd=made.root, env=made.environment, check=False)
    return done.returncode == 0


async def until(path: Path) -> None:
    for _ in range(1_000):
        if path.exists():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} does not exist")


class Outcome(msgspec.Struct):
    leaked: bool
    result: CommandResult


async def play(made: SandboxedSession, case: Case, act: Callable[[], None] | None = None) -> Outcome:
    """Run a case: the user acts when the program runs, and the program afterwards."""
    marks = {name: made.root / f"mark-{name}" for name in ("ready", "go", "done", "stop")}
    names = {name: path.name for name, path in marks.items()}
    line = WAITS.format(**names, line=f"{{ {case.program}; }} 2>/dev/null")
    bases = Bases(str(made.root / ".bradawl"), str(made.home), str(made.root))
    rules = tuple(rule for text in REFUSED for rule in parse_rule(text, "deny", "test", bases))
    grant = Grant(writable=made.layout.roots, rules=rules)
    started = await made.processes.start(Command((line,), made.cwd, is_shell=True), grant)
    await until(marks["ready"])
    if act is not None:
        act()
    acted = await asyncio.create_subprocess_exec("bash", "-c", case.user, cwd=made.root, env=made.environment)
    assert await acted.wait() == 0
    await asyncio.sleep(SETTLED_S)
    marks["go"].touch()
    try:
        await until(marks["done"])
        leaked = outside(made, case.leaks)
    finally:
        marks["stop"].touch()
        await started.wait(10)
    return Outcome(leaked, started.result())


def prepared(made: SandboxedSession, case: Case) -> None:
    assert outside(made, f"git init -q -b main; {IDENTITY}; git commit -q --allow-empty -m one; {case.before}")


@pytest.mark.parametrize("name", CASES)
def test_a_cover_is_back_after_the_user_replaced_the_path(made, name):
    case = CASES[name]
    prepared(made, case)
    outcome = asyncio.run(play(made, case))
    assert not outcome.leaked
    assert outcome.result.exit_code == 0


@pytest.mark.parametrize("name", CASES)
def test_without_the_watch_the_path_is_open(made, name):
    use_covers(made, BlindWatch())
    case = CASES[name]
    prepared(made, case)
    assert asyncio.run(play(made, case)).leaked


@pytest.mark.parametrize("name", ["an editor saves .envrc by renaming", "a hidden file is saved by renaming"])
def test_without_inotify_paths_are_compared(made, name):
    use_covers(made, PollingWatch())
    case = CASES[name]
    prepared(made, case)
    assert not asyncio.run(play(made, case)).leaked


@pytest.mark.skipif("nobody" not in USERS, reason="needs root, and a Python for all users")
@pytest.mark.parametrize("name", CASES)
def test_a_cover_is_back_for_a_plain_user(name):
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o777)

    def act() -> None:
        os.environ["TMPDIR"] = str(place)
        with sandboxed_session(place / "own") as made:
            use_covers(made, mounter=CoverMounter(python=SYSTEM_PYTHON))
            prepared(made, CASES[name])
            outcome = asyncio.run(play(made, CASES[name]))
            assert not outcome.leaked
            assert outcome.result.exit_code == 0

    try:
        as_plain_user(act)
    finally:
        remove_folder(str(place))


def test_bradawl_s_own_change_of_a_hidden_file_is_hidden(made):
    case = Case("true", "cat .env > got", IS_READ, before="echo SECRET > .env")
    prepared(made, case)

    def edit() -> None:
        with folder_of(str(made.root / ".env")) as (folder, name):
            file = os.open(name, os.O_RDWR, dir_fd=folder)
            replace_content(folder, name, file, b"SECRET2\n", os.fstat(file))
            os.close(file)

    assert not asyncio.run(play(made, case, edit)).leaked
    assert (made.root / ".env").read_text() == "SECRET2\n"


WAYS = (
    "echo SECRET{n} > new; mv new {path}",
    "rm -rf {path}; echo SECRET{n} > {path}",
    "echo SECRET{n} > new; ln -f new {path}; rm new",
    "mv {path} old{n}; echo SECRET{n} > {path}",
    "mv {path} old-{n}; mv old-{n} {path}",
    "rm -rf sub; mkdir sub; echo SECRET{n} > sub/.env; echo b > sub/.envrc",
    "mv sub sub{n}; cp -r sub{n} sub; rm -rf sub{n}",
    "echo SECRET{n} > {path}",
)


@pytest.mark.parametrize("seed", range(3))
def test_random_saves_leave_every_cover_on(made, seed):
    """Commands start and end meanwhile, and several saves may fall into the time of one."""
    hidden, protected = (".env", "sub/.env"), (".envrc", "sub/.envrc", ".git/config")
    texts = "; ".join(f"echo SECRET > {path}" for path in hidden) + "; echo a > .envrc; echo a > sub/.envrc"
    prepared(made, Case("", "", "", before=f"mkdir sub; {texts}"))
    chosen = random.Random(seed)  # noqa: S311 - not for secrets

    async def act() -> tuple[bytes, bytes]:
        line = "touch ready; while ! test -e go; do sleep 0.02; done; for i in 1 2 3; do cat {}; done; {}; touch done"
        writes = "; ".join(f"echo EVIL >> {path}" for path in protected)
        line = f"{{ {line.format(' '.join(hidden), writes)}; }} 2>/dev/null"
        job = await made.processes.start(Command((line,), made.cwd, is_shell=True), made.grant)
        await until(made.root / "ready")
        for number in range(25):
            path = chosen.choice((*hidden, ".envrc", "sub/.envrc"))
            way = chosen.choice(WAYS).format(n=number, path=path)
            user = await asyncio.create_subprocess_exec("bash", "-c", way, cwd=made.root, stderr=subprocess.DEVNULL)
            if chosen.random() < 0.2:
                await made.arun("true")
            await asyncio.sleep(chosen.random() * 0.05)
            await user.wait()
        await asyncio.sleep(SETTLED_S)
        (made.root / "go").touch()
        await until(made.root / "done")
        written = b"".join((made.root / path).read_bytes() for path in protected if (made.root / path).is_file())
        await job.wait(10)
        return job.result().stdout, written

    printed, written = asyncio.run(act())
    assert b"SECRET" not in printed
    assert b"EVIL" not in written


def test_a_program_survives_many_saves_without_a_pause(made):
    case = Case(
        "for i in $(seq 150); do rm -f .env; echo SECRET$i > .env; done",
        "cat .env > got",
        IS_READ,
        "echo SECRET > .env",
    )
    prepared(made, case)
    outcome = asyncio.run(play(made, case))
    assert not outcome.leaked
    assert outcome.result.exit_code == 0


def test_a_hidden_file_that_becomes_a_link_does_not_end_the_program(made):
    case = Case("ln -sf other .env", "cat .env > got", IS_READ, "echo SECRET > .env; echo x > other")
    prepared(made, case)
    outcome = asyncio.run(play(made, case))
    assert outcome.result.exit_code == 0
    assert [note for note in outcome.result.notes if "link" in note]


def test_the_program_that_mounts_covers_is_started_again(made):
    case = CASES["a hidden file is saved by renaming"]
    prepared(made, case)
    assert not asyncio.run(play(made, case)).leaked
    assert outside(made, "rm mark-* got")
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        if b"mount namespaces of running" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), 9)
    assert not asyncio.run(play(made, case)).leaked


def test_the_result_names_what_was_replaced_and_the_user_s_version_stays(made):
    case = CASES["a hidden file is saved by renaming"]
    prepared(made, case)
    outcome = asyncio.run(play(made, case))
    assert [note for note in outcome.result.notes if str(made.root / ".env") in note]
    assert (made.root / ".env").read_text() == "SECRET2\n"
    case = CASES["an editor saves .envrc by renaming"]
    assert outside(made, f"rm mark-*; {case.before}")
    outcome = asyncio.run(play(made, case))
    assert [note for note in outcome.result.notes if str(made.root / ".envrc") in note]
    warnings = made.processes.take_warnings()
    assert [each for each in warnings if f"{made.root}/.env" in each and "hidden" in each]
    assert [each for each in warnings if f"{made.root}/.envrc" in each]
    assert made.processes.take_warnings() == ()
    assert (made.root / ".envrc").read_text() == "b\n"


def test_placeholders_made_again_are_removed_at_the_end(made):
    case = CASES["git clean removes placeholders"]
    prepared(made, case)
    before = sorted(each.name for each in made.root.iterdir())
    asyncio.run(play(made, case))
    after = sorted(each.name for each in made.root.iterdir() if not each.name.startswith("mark-"))
    assert after == before


def test_a_program_whose_hidden_file_can_not_be_covered_again_is_ended(made):
    mounter = CoverMounter(python="/bin/false")
    use_covers(made, mounter=mounter)
    case = CASES["a hidden file is saved by renaming"]
    prepared(made, case)

    async def run() -> CommandResult:
        line = "touch ready; while :; do sleep 0.05; done"
        started = await made.processes.start(Command((line,), made.cwd, is_shell=True), made.grant)
        await until(made.root / "ready")
        assert outside(made, case.user)
        assert await started.wait(10)
        return started.result()

    result = asyncio.run(run())
    assert result.exit_code not in (0, None)
    assert any("ended" in note and ".env" in note for note in result.notes)


def test_a_read_only_file_that_can_not_be_covered_again_is_reported(made):
    use_covers(made, mounter=CoverMounter(python="/bin/false"))
    case = CASES["an editor saves .envrc by renaming"]
    prepared(made, case)
    outcome = asyncio.run(play(made, case))
    assert any("changed since" in note and ".envrc" in note for note in outcome.result.notes)


def test_a_command_that_ends_at_once_has_no_notes(made):
    prepared(made, Case("", "", "", before="echo SECRET > .env; echo a > .envrc"))
    for _ in range(3):
        assert made.run("true").notes == ()


ATTACK = """
import os, socket, time
root = os.getcwd()
open({ready!r}, "w").close()
while not os.path.exists(f"{{root}}/{stop}"):
    try:
        {attack}
        break
    except OSError:
        pass
while not os.path.exists(f"{{root}}/{stop}"):
    time.sleep(0.02)
{after}
"""


class Attack(msgspec.Struct, frozen=True):
    """What a program tries again and again until it succeeds, and then again when the cover is back on."""

    user: str
    attack: str
    after: str = ""
    before: str = "true"


async def attacked(made: SandboxedSession, attack: Attack) -> CommandResult:
    """Run an attack while the user acts."""
    prepared(made, Case("", "", "", attack.before))
    text = ATTACK.format(ready="mark-ready", stop="mark-stop", attack=attack.attack, after=attack.after)
    (made.root / "mark.py").write_text(text)
    started = await made.processes.start(Command(("python3 mark.py",), made.cwd, is_shell=True), made.grant)
    await until(made.root / "mark-ready")
    acted = await asyncio.create_subprocess_exec("bash", "-c", attack.user, cwd=made.root, env=made.environment)
    assert await acted.wait() == 0
    await asyncio.sleep(SETTLED_S)
    (made.root / "mark-stop").touch()
    await started.wait(10)
    return started.result()


def test_a_link_that_a_program_makes_where_a_folder_was_removed_is_named(made):
    attack = Attack("rm -r .vscode", "os.symlink('other', '.vscode')", before="mkdir .vscode; touch .vscode/a")
    result = asyncio.run(attacked(made, attack))
    is_link = (made.root / ".vscode").is_symlink()
    assert is_link == any(f"{made.root}/.vscode -> other" in note for note in result.notes)


SAVES = "echo b > .e; sleep 0.05; mv .e .envrc"
FOLDER = "mkdir new; echo a > new/tasks.json; sleep 0.1; mv .vscode old; mv new .vscode"
SEND = "f = os.open('.e', os.O_RDWR); a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [f]); os.close(f)"
RECEIVE = "os.write(socket.recv_fds(b, 1, 1)[1][0], b'EVIL')"
WAYS_TO_WRITE = {
    "a descriptor that is being sent": Attack(SAVES, SEND, RECEIVE, "echo a > .envrc"),
    "a descriptor of the folder": Attack(
        FOLDER,
        "d = os.open('new', os.O_RDONLY | os.O_DIRECTORY)",
        "os.write(os.open('tasks.json', os.O_WRONLY, dir_fd=d), b'EVIL')",
        "mkdir .vscode; echo a > .vscode/tasks.json",
    ),
    "the working directory": Attack(
        FOLDER,
        "os.chdir(root + '/new')",
        "os.write(os.open('tasks.json', os.O_WRONLY), b'EVIL')",
        "mkdir .vscode; echo a > .vscode/tasks.json",
    ),
    "a hard link": Attack(SAVES, "os.link('.e', 'other')", "open('other', 'a').write('EVIL')", "echo a > .envrc"),
}


def is_written(made: SandboxedSession) -> bool:
    return outside(made, "grep -rqs EVIL .envrc .vscode")


@pytest.mark.parametrize("name", WAYS_TO_WRITE)
def test_a_program_that_could_write_a_covered_path_later_is_ended(made, name):
    result = asyncio.run(attacked(made, WAYS_TO_WRITE[name]))
    assert not is_written(made)
    assert any("the command was ended" in note for note in result.notes)


@pytest.mark.parametrize("name", WAYS_TO_WRITE)
def test_without_the_watch_it_writes_the_path(made, name):
    use_covers(made, BlindWatch())
    asyncio.run(attacked(made, WAYS_TO_WRITE[name]))
    assert is_written(made)


def test_a_change_by_a_hard_link_in_a_later_command_is_named(made):
    asyncio.run(attacked(made, WAYS_TO_WRITE["a hard link"]))
    assert made.run("true").notes == ()
    changing = made.run("echo EVIL >> other")
    assert any("changed while commands ran" in note and ".envrc" in note for note in changing.notes)
    assert made.run("true").notes == ()
    assert outside(made, "cp .envrc new; mv new .envrc")
    assert made.run("echo EVIL >> other").notes == ()
