"""Completion in real shells: a line is typed at a terminal, and the shell completes it."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAM = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bradawl "$@"\n'
CONFIG = """\
[profiles.work]
effort = "high"
[profiles.home]
[models."lab/coder:7b"]
context_window = 1000
[providers.lab]
base_url = "http://127.0.0.1:9/v1"
"""
NEEDED = {shell: shutil.which(shell) for shell in ("bash", "zsh", "fish")}


@pytest.fixture
def place(tmp_path):
    """A folder with a home, a project with folders, and the program on PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bradawl").write_text(PROGRAM)
    (tmp_path / "bin" / "bradawl").chmod(0o755)
    config = tmp_path / "home" / ".config" / "bradawl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG)
    (tmp_path / "project" / "some_folder").mkdir(parents=True)
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place / "home"),
        "PATH": f"{place / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }


# ------------------------------------------------------------------ bash, without a terminal


ASK_BASH = """
source <(bradawl completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
_bradawl bradawl
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(place: Path, line: str) -> list[str]:
    """What bash would put in the place of the last word, or of what follows its last colon."""
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK_BASH, "bash", line],
        cwd=place / "project",
        env=environment(place),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(NEEDED["bash"] is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("bradawl conf", ["config"]),
        ("bradawl --eff", ["--effort"]),
        ("bradawl --effort ", ["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        ("bradawl --effort=x", ["xhigh"]),
        ("bradawl --permission-mode a", ["accept-edits", "auto"]),
        ("bradawl -p hello --sandbox o", ["off"]),
        ("bradawl --profile ", ["work", "home"]),
        ("bradawl --profile=w", ["work"]),
        ("bradawl -m lab", ["lab/coder:7b", "lab/"]),
        ("bradawl -m lab/coder:7", ["7b"]),
        ("bradawl -m openai/gpt-5.5", None),
        ("bradawl --cd some", ["some_folder"]),
        ("bradawl models op", ["openai", "openrouter"]),
        ("bradawl config ", ["show", "get", "set", "unset", "edit", "path", "schema"]),
        ("bradawl config get max_st", ["max_steps"]),
        ("bradawl config set permissions.al", ["permissions.allow"]),
        ("bradawl config set effort hi", ["high"]),
        ("bradawl config set undo ", ["true", "false"]),
        ("bradawl config set --profile work effort hi", ["high"]),
        ("bradawl config set --pro", ["--project", "--profile"]),
        ("bradawl config set --profile h", ["home"]),
        ("bradawl config unset providers.lab.he", ["providers.lab.headers"]),
        ("bradawl config show --js", ["--json", "--json-schema"]),
        ("bradawl completion z", ["zsh"]),
        ("bradawl permissions ch", ["check"]),
        ("bradawl undo --re", ["--redo"]),
        ("bradawl -p conf", []),
        ("bradawl fix the conf", []),
        ("bradawl --nonsense x", []),
    ],
)
def test_bash_completes(place, line, wanted):
    found = bash(place, line)
    if wanted is None:
        assert found and all(each.startswith("openai/gpt-5.5") for each in found)
    else:
        assert found == wanted


# ------------------------------------------------------------------ at a terminal


STARTS = {
    "bash": (["bash", "--norc", "-i"], "source <(bradawl completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(bradawl completion zsh)"),
}
TO_THE_START = "\x01"


def typed(place: Path, shell: str, line: str) -> str:
    """What the line has become after Tab."""
    command, start = STARTS[shell]
    main, side = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=place / "project",
        env=environment(place),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    try:
        os.write(main, f"{start}; echo START''ED\n".encode())
        read_until(main, "STARTED")
        # The shell reads one key after the other, so the rest is typed into the completed line.
        os.write(main, f"{line}\t:END{TO_THE_START}echo LINE: \n".encode())
        return read_until(main, r"\nLINE: bradawl (.*?) ?:END")
    finally:
        process.kill()
        process.wait()
        os.close(main)


def read_until(main: int, pattern: str) -> str:
    """The first group of the pattern in what the terminal shows, or all of it."""
    shown = ""
    while not (found := re.search(pattern, shown.replace("\r", ""))):
        ready, _, _ = select.select([main], [], [], 60)
        assert ready, f"nothing more came after {shown!r}"
        shown += os.read(main, 4096).decode("utf-8", "replace")
    return found[found.lastindex or 0]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("bradawl conf", "config"),
        ("bradawl --eff", "--effort"),
        ("bradawl --effort me", "--effort medium"),
        ("bradawl --effort=me", "--effort=medium"),
        ("bradawl --profile wo", "--profile work"),
        ("bradawl -m lab/cod", "-m lab/coder:7b"),
        ("bradawl -m lab/coder:", "-m lab/coder:7b"),
        ("bradawl -m openr", "-m openrouter/"),
        ("bradawl config set permissions.al", "config set permissions.allow"),
        ("bradawl config set permission_mode pl", "config set permission_mode plan"),
        ("bradawl -C some_f", "-C some_folder/"),
        ("bradawl models lmst", "models lmstudio"),
    ],
)
def test_tab_completes_a_line(place, shell, line, wanted):
    if NEEDED[shell] is None:
        pytest.skip(f"{shell} is not installed")
    assert typed(place, shell, line) == wanted


@pytest.mark.skipif(NEEDED["fish"] is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("bradawl conf", ["config"]),
        ("bradawl --eff", ["--effort"]),
        ("bradawl --effort me", ["medium"]),
        ("bradawl --profile ", ["home", "work"]),
        ("bradawl -m lab/", ["lab/coder:7b"]),
        ("bradawl config ", ["edit", "get", "path", "schema", "set", "show", "unset"]),
        ("bradawl config get max_st", ["max_steps"]),
        ("bradawl config set permission_mode pl", ["plan"]),
        ("bradawl config set --profile ho", ["home"]),
        ("bradawl completion z", ["zsh"]),
        ("bradawl -C some_f", ["some_folder/"]),
        ("bradawl models lmst", ["lmstudio"]),
    ],
)
def test_fish_completes(place, line, wanted):
    script = f"bradawl completion fish | source; complete -C {line!r}"
    done = subprocess.run(
        ["fish", "-N", "-c", script],
        cwd=place / "project",
        env=environment(place),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert sorted(row.split("\t")[0] for row in done.stdout.splitlines()) == wanted
