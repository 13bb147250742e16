"""The user's editor: which one is started, what comes back, and that it ends with bradawl."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bradawl.app.tui.live.external_editor import edit


@pytest.fixture
def program(tmp_path):
    """Makes a program that is an editor."""

    def make(text, name="ed"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)
        return str(path)

    return make


def edited(text, **environ):
    return asyncio.run(edit(text, environ))


def test_the_text_comes_back_as_the_editor_left_it(program):
    assert edited("one\n\ud800", EDITOR=program('echo "two" >> "$1"')) == "one\n?two"


def test_the_file_is_gone_afterwards_and_no_other_user_could_read_it(program, tmp_path):
    kept = tmp_path / "kept"
    edited("one", EDITOR=program(f'ls -ld "$(dirname "$1")" > {kept}; echo "$1" >> {kept}'))
    mode, path = kept.read_text().splitlines()
    assert mode.startswith("drwx------") and not Path(path).exists()


def test_an_editor_has_arguments_and_visual_comes_first(program):
    assert edited("", VISUAL=program('echo "$1" > "$2"') + " --wait", EDITOR="false") == "--wait"


@pytest.mark.parametrize("visual", ["/does/not/exist", "", "  ", "'broken"])
def test_what_can_not_be_started_is_passed_over(program, visual):
    assert edited("", VISUAL=visual, EDITOR=program('echo ok > "$1"')) == "ok"


def test_an_editor_that_fails_changes_nothing(program):
    assert edited("one", EDITOR=program('echo two > "$1"; exit 1')) is None


@pytest.mark.parametrize("trapped", ["", "trap '' TERM"])
def test_the_editor_ends_when_it_is_cancelled(program, tmp_path, trapped):
    started, never = tmp_path / "started", tmp_path / "never"
    os.mkfifo(started)
    os.mkfifo(never)

    async def cancelled():
        editor = program(f"{trapped}\necho $$ > {started}; read x < {never}")
        task = asyncio.ensure_future(edit("", {"EDITOR": editor}))
        pid = int(await asyncio.to_thread(started.read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    pid = asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
