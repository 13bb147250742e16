"""`/bug` writes a report that holds no secret, and no contents unless they are wanted."""

import json
import re
import stat
from pathlib import Path

import msgspec
import pytest
from command_world import CommandWorld
from session_samples import CHOICES, EVENTS, STATES

from bradawl.app.bug_report import masked, without_content
from bradawl.app.slash_commands import CommandFailed
from bradawl.core.events import Envelope, StateChanged

KEY = 'sk-very/secret"key'


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    made = CommandWorld(tmp_path)
    made.script = [{"thinking": "private thought", "text": "private answer"}]
    made.environ |= {"ANTHROPIC_API_KEY": KEY, "MY_TOKEN": "token-of-mine", "TERM": "xterm-test"}
    return made


def report_in(text: str) -> Path:
    found = re.search(r"The report is in (\S+),", text)
    assert found
    return Path(found[1])


async def test_the_report_has_what_helps_and_neither_keys_nor_contents(world):
    errors = world.home / ".local/share/bradawl/errors"
    errors.mkdir(parents=True)
    (errors / "1-1.txt").write_text("old report")
    (errors / "2-1.txt").write_text(f"Traceback of the last defect with {KEY}")
    async with world.conversation() as talk:
        await talk.prompt("private prompt")
        await talk.type("/model anthropic/claude-sonnet-5-5")
        text = await talk.type(f"/bug It crashed with {KEY}")
    assert "Nothing was sent" in text and "without the contents" in text
    path = report_in(text)
    report = path.read_text()
    for wanted in (
        "It crashed with ***",
        "bradawl 0.",
        "xterm-test",
        "Traceback of the last defect with ***",
        '"healthy"',
    ):
        assert wanted in report, wanted
    assert '"provider": "anthropic"' in report or "anthropic" in report
    assert "PromptSubmitted" in report and talk.session.id in report
    for secret in (
        KEY,
        json.dumps(KEY)[1:-1],
        "token-of-mine",
        "private prompt",
        "private answer",
        "private thought",
        "old report",
    ):
        assert secret not in report, secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_contents_are_in_the_report_if_they_are_wanted(world):
    async with world.conversation() as talk:
        await talk.prompt("private prompt")
        text = await talk.type("/bug --with-content why?")
    report = report_in(text).read_text()
    assert "the contents of the last events too" in text
    assert "private prompt" in report and "private answer" in report and "## What happened\n\nwhy?\n" in report
    assert KEY not in report


async def test_a_report_that_can_not_be_written_says_why(world):
    folder = world.home / ".local/share/bradawl"
    folder.mkdir(parents=True)
    (folder / "reports").write_text("in the way")
    async with world.conversation() as talk:
        with pytest.raises(CommandFailed, match="can't be written"):
            await talk.type("/bug")


@pytest.mark.parametrize(
    "event", [*EVENTS, *CHOICES, *map(StateChanged, STATES)], ids=lambda event: type(event).__name__
)
def test_no_text_of_any_event_is_left(event):
    plain = msgspec.to_builtins(Envelope(1, 0, 1, "main", event))
    shown = json.dumps(without_content(plain))
    for private in (
        "Fix the bug",
        "Grüße",
        "a.pdf",
        "it changes",
        "two",
        "/home/me",
        "the parser",
        "look around",
        "by the way",
        "git status",
        "busy",
    ):
        assert private not in shown, private
    assert type(event).__name__ in shown


def test_secrets_are_masked_also_where_one_holds_another():
    assert masked("abcdef abc", ["abc", "abcdef", ""]) == "*** ***"
