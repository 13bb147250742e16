"""An undo or redo that a signal stops at any moment can be finished and taken back, and leaves no file of its own."""

import json
import os
import random
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import START, run_program

KILLS = int(os.environ.get("BRADAWL_UNDO_KILLS", "32"))
GROUPS = 4
FILES = 400
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CHANGE = """\
for f in f1*; do echo model >> $f; done
rm f2*; rm -r gone; mkdir -p made/inner
for i in 1 2 3 4 5 6 7 8 9; do echo $i > made/inner/$i; ln -s $i made/l$i; done
chmod 700 closed; echo more >> closed/file; chmod 500 closed; rm becomes && mkdir becomes && echo 1 > becomes/file
rm -r folder && echo 1 > folder; ln -sf f30 link; echo longer than before >> names/a; chmod 755 mode
git add -A; git -c user.name=a -c user.email=a@b.example commit -qm second"""
State = dict[str, tuple[str, bytes]]


class Project:
    """A folder with files of all kinds, which a command of the model has changed."""

    def __init__(self, folder: Path) -> None:
        self.root, self.script = folder / "project", folder / "script.json"
        self.root.mkdir()
        (folder / "home").mkdir()
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
            "BRADAWL_MODEL": f"scripted/{self.script}",
        }
        for number in range(FILES):
            (self.root / f"f{number}").write_text(f"{number}\n")
        for name in ("gone", "closed", "folder", "names"):
            (self.root / name).mkdir()
            (self.root / name / "file").write_text(name)
        for name in ("becomes", "mode", "names/a"):
            (self.root / name).write_text(name)
        (self.root / "names" / "b").hardlink_to(self.root / "names" / "a")
        (self.root / "link").symlink_to("f1")
        (self.root / "closed").chmod(0o500)
        self.shell("git init -q -b main")
        self.before = self.state()
        self.model(CHANGE)
        self.after = self.state()
        assert (
            len({name for name in {**self.before, **self.after} if self.before.get(name) != self.after.get(name)})
            > FILES // 2
        )

    def shell(self, command: str) -> None:
        subprocess.run(["/bin/bash", "-c", command], cwd=self.root, env=self.environ, check=True)

    def model(self, command: str, *flags: str) -> None:
        call = {"id": "c1", "name": "bash", "arguments": {"command": command}}
        self.script.write_text(json.dumps([{"tool_calls": [call]}, {"text": "done"}]))
        done = self.run(*flags, "-y", "-p", "change")
        assert done.returncode == 0, done.stderr

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return run_program(argv, self.root, self.environ)

    def done(self, *argv: str) -> str:
        done = self.run(*argv)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def signalled(self, number: signal.Signals, wait: "Wait", *argv: str) -> tuple[int, str]:
        """Exit code and stderr of a run that gets a signal when the wait is over, if it has not ended before."""
        with subprocess.Popen(
            [*START, *argv],
            cwd=self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait(process)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
            return process.returncode, said

    def state(self) -> State:
        """All paths with mode and content; of git's data those that undo covers."""
        found: State = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if name.startswith((".git/objects", ".git/hooks")) or name.endswith("COMMIT_EDITMSG"):
                continue
            mode = stat.filemode(path.lstat().st_mode)
            if path.is_symlink():
                found[name] = mode, os.fsencode(path.readlink())
            else:
                found[name] = mode, path.read_bytes() if path.is_file() else b""
        return found


class Wait:
    """Waits until so many files changed back or forth, and then a moment longer."""

    def __init__(self, project: Project, choice: random.Random) -> None:
        self._names = [f"f{number}" for number in range(FILES) if str(number)[0] in "12"]
        self._root = project.root
        self._changed = choice.randrange(len(self._names))
        self._extra_s = choice.random() * 0.01

    def __call__(self, process: "subprocess.Popen[str]") -> None:
        """Wait, at most for the end of the process."""
        watched = self._root / self._names[self._changed]
        first = self._stamp(watched)
        while process.poll() is None and self._stamp(watched) == first:
            time.sleep(0.0005)  # there is no event to wait for: the process is to be hit anywhere
        time.sleep(self._extra_s)

    def _stamp(self, path: Path) -> tuple[int, int] | None:
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path)
    yield project
    (project.root / "closed").chmod(0o700)


def differences(one: State, other: State) -> dict[str, tuple[object, object]]:
    return {name: (one.get(name), other.get(name)) for name in {**one, **other} if one.get(name) != other.get(name)}


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_killed_undo_or_redo_is_finished_and_taken_back_to_the_byte(project: Project, group: int) -> None:
    choice = random.Random(group)  # noqa: S311 a repeatable test
    is_undone, hits = False, 0
    for _ in range(KILLS // GROUPS):
        target = project.after if is_undone else project.before
        origin = project.before if is_undone else project.after
        there, back = (("undo", "--redo"), ("undo",)) if is_undone else (("undo",), ("undo", "--redo"))
        number = choice.choice(SIGNALS)
        code, said = project.signalled(number, Wait(project, choice), *there)
        if code == 0:  # it was at its end
            assert differences(project.state(), target) == {}
            is_undone = not is_undone
            continue
        hits += 1
        assert code in (-number, 128 + number), said
        if code > 0:
            assert "Interrupted; no file was changed" in said or re.search(r"Stopped: [\d,]+ of [\d,]+ files", said)
        if choice.random() < 0.3:  # and again, in either direction
            project.signalled(signal.SIGKILL, Wait(project, choice), *choice.choice((there, back)))
        if choice.random() < 0.5:
            continues = project.run(*there)
            at_its_end = "There is nothing to" in continues.stderr  # it was killed after its last entry in the log
            assert continues.returncode == 0 or at_its_end, (continues.stdout, continues.stderr)
            assert differences(project.state(), target) == {}, continues.stdout
            is_undone = not is_undone
        else:
            project.run(*back)  # refused if no file was changed yet: then there is nothing to take back
            if differences(project.state(), target) == {}:
                is_undone = not is_undone
            else:
                assert differences(project.state(), origin) == {}
    assert hits, "no signal arrived in time"
    if not is_undone:
        project.done("undo")
    assert differences(project.state(), project.before) == {}
    project.done("undo", "--redo")
    assert differences(project.state(), project.after) == {}


def test_a_killed_undo_is_no_change_by_others_after_the_next_prompt(project: Project) -> None:
    choice = random.Random(0)  # noqa: S311 a repeatable test
    for _ in range(3):
        project.signalled(signal.SIGKILL, Wait(project, choice), "undo")
        project.model("echo more >> f30", "-c")
    done = project.run("undo", "--to", "1")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert differences(project.state(), project.before) == {}
