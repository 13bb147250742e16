"""The user's own settings of git, made while a command runs, stay as far as they run nothing."""

import asyncio
import subprocess

import pytest
from bwrap import needs_bwrap

from bradawl.core.workspace import Command

pytestmark = needs_bwrap


async def meanwhile(made, *lines: str):
    """The result of a command during which the user runs lines in another terminal."""
    job = asyncio.ensure_future(
        made.processes.run(Command(("touch up; sleep 1.5",), made.cwd, is_shell=True), made.grant)
    )
    while not (made.root / "up").exists():  # noqa: ASYNC110 - another program makes it
        await asyncio.sleep(0.02)
    for line in lines:
        await asyncio.to_thread(subprocess.run, ["bash", "-c", line], cwd=made.root, check=True)
    return await job


@pytest.mark.parametrize(
    "settings",
    [
        ("user.email me@example.org", "remote.o.url https://example.org/x", "alias.st status", "core.editor vim"),
        ("rerere.enabled true", "core.fsmonitor true", "pull.rebase true", "branch.main.description x"),
    ],
)
async def test_harmless_settings_stay(made, settings):
    config = await asyncio.to_thread(made.git_init) / "config"
    result = await meanwhile(made, *(f"git config {each}" for each in settings))
    assert result.restored == ()
    assert all(each.split()[1] in config.read_text() for each in settings)


@pytest.mark.parametrize(
    "setting",
    [
        *("core.hooksPath .husky/_", "alias.co '!git checkout'", "credential.helper store", "core.editor ./evil"),
        *(
            "url.https://x/.insteadOf https://y/",
            "remote.o.pushurl https://x",
            "remote.o.mirror true",
            "include.path ../x",
        ),
    ],
)
async def test_only_the_settings_that_could_run_or_redirect_something_go_and_are_named(made, setting):
    config = await asyncio.to_thread(made.git_init) / "config"
    result = await meanwhile(
        made, "git config user.email me@example.org", f"git config {setting}", "git config alias.st status"
    )
    assert result.restored == (str(config),)
    text = config.read_text()
    assert "me@example.org" in text and "st = status" in text
    key = setting.split()[0].rpartition(".")[2]
    assert f"\t{key} = " not in text
    assert any(f"{key} = " in note and str(config) in note for note in result.notes)
    assert any("is kept for 30 days in" in note for note in result.notes)
    assert not any("rebase" in note for note in result.notes)


async def test_a_file_that_lost_settings_of_before_is_put_back_as_a_whole(made):
    config = await asyncio.to_thread(made.git_init) / "config"
    before = config.read_bytes()
    result = await meanwhile(made, "git config --unset user.name; git config core.pager ./evil")
    assert result.restored == (str(config),)
    assert config.read_bytes() == before
