"""What a background job plants while the session is idle is put back, and the terminal says so."""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from live_terminal import LiveTerminal
from plain_terminal import PlainTerminal
from terminal import START, Terminal, run_program

from bradawl.app.tui.plain.typed_text import takes_keys_back
from patience import no_wait

PATIENCE_S = 60.0


class Workspace:
    """A repository, and the program in it with a scripted model whose first reply starts a job."""

    def __init__(self, folder: Path, job: str, *later: Mapping[str, object]) -> None:
        self.root, self.marker, script = folder / "project", folder / "marker", folder / "script.json"
        self.root.mkdir()
        (folder / "home").mkdir()
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
            "BRADAWL_MODEL": f"scripted/{script}",
            "BRADAWL_SANDBOX": "auto",
        }
        (self.root / "server.sh").write_text(job)
        self.user_runs("git init -q -b main .; git -c user.name=a -c user.email=b commit -q --allow-empty -m one")
        call = {"id": "job", "name": "bash", "arguments": {"command": "sh server.sh", "run_in_background": True}}
        script.write_text(json.dumps([{"tool_calls": [call]}, {"text": "finished one"}, *later]))

    def user_runs(self, line: str) -> None:
        subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environ, check=False, capture_output=True)


def plant(folder: Path, begin: str) -> str:
    """A job, such as a development server, that leads git to data with a program as soon as the file `begin` exists."""
    config = f'[core]\\n\\tfsmonitor = "touch {folder}/marker; false"\\n'
    return (
        f"until [ -e {begin} ]; do sleep 0.05; done; cp -r .git g2; printf '{config}' >> g2/config;"
        " echo ../g2 > .git/commondir; : > planted; sleep 600"
    )


def test_the_terminal_says_what_was_put_back_while_the_session_was_idle(tmp_path):
    later = {"text": "finished two", "expect": "commondir"}
    workspace = Workspace(tmp_path, plant(tmp_path, "go"), later)
    terminal = Terminal([*START, "--plain", "-y"], workspace.root, workspace.environ)
    try:
        terminal.wait_for("> ")
        terminal.type("start it\r")
        terminal.wait_for("finished one")
        terminal.wait_for("cost unknown")
        (workspace.root / "go").touch()
        end = time.monotonic() + PATIENCE_S
        while not (workspace.root / "planted").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        terminal.wait_for("put back as they were")
        terminal.wait_for("commondir")
        workspace.user_runs("git status")
        assert not workspace.marker.exists()
        terminal.type("go on\r")
        terminal.wait_for("finished two")  # the script expects that the model was told
    finally:
        terminal.end()
    workspace.user_runs("git status")
    assert not workspace.marker.exists()


def test_a_line_that_is_being_typed_stays_on_the_screen_below_the_notice(tmp_path):
    workspace = Workspace(tmp_path, plant(tmp_path, "go"), {"text": "finished two"})
    environ = {name: value for name, value in workspace.environ.items() if name != "TERM"}
    terminal = LiveTerminal(workspace.root, ["-y"], environ=environ)
    try:
        terminal.wait_idle()
        terminal.send("start it")
        terminal.wait_turns(1)
        terminal.type("half a li")
        terminal.until(lambda: terminal.typed == "half a li", "the text")
        (workspace.root / "go").touch()
        terminal.wait_for_words("put back as they were")
        terminal.type("ne\r")
        terminal.wait_for("finished two")
        shown = terminal.words
        assert shown.index("put back as they were") < shown.index("half a line") < shown.index("finished two")
        assert shown.count("half a li") == 1
    finally:
        terminal.close()


@pytest.mark.parametrize("typed", ["", "half a li"])
def test_plain_lines_show_a_notice_on_its_own_line_and_the_prompt_again(tmp_path, typed):
    workspace = Workspace(tmp_path, plant(tmp_path, "go"), {"text": "finished two"})
    script = json.loads((tmp_path / "script.json").read_text())
    talk = PlainTerminal(workspace.root, script, "-y", **workspace.environ)
    again = typed if takes_keys_back() else ""
    try:
        talk.wait_for_prompt()
        talk.type("start it\r")
        talk.wait_for("cost unknown")
        talk.wait_for_prompt()
        talk.type(typed)
        talk.wait_for_prompt(typed)
        (workspace.root / "go").touch()
        talk.wait_for("commondir")
        talk.wait_for_prompt(again)
        lines = talk.text.splitlines()
        assert [line for line in lines if "put back" in line and line.startswith(">")] == []
        assert lines.count(f"> {typed}".rstrip()) == (2 if typed else 1), talk.text
        talk.type("\x7f\x7fline\r")
        talk.wait_for("finished two")
        assert f"\n> {again[:-2]}line\n" in talk.text, "the user can edit what was typed before"
    finally:
        talk.close()


def test_a_run_without_a_terminal_ends_as_soon_as_its_turn_does(tmp_path):
    workspace = Workspace(tmp_path, plant(tmp_path, "never"))
    with no_wait():  # the job sleeps ten minutes
        done = run_program(["-y", "-p", "start it"], workspace.root, workspace.environ)
    assert done.returncode == 0, done.stderr
    assert "finished one" in done.stdout
    assert "put back" not in done.stderr


def test_without_the_check_the_planted_file_runs(tmp_path):
    """The control: the same line, run by the user."""
    workspace = Workspace(tmp_path, "true")
    (workspace.root / "go").touch()
    workspace.user_runs(f"{plant(tmp_path, 'go').removesuffix('sleep 600')}")
    workspace.user_runs("git status")
    assert workspace.marker.exists()
