"""The status line of the live terminal says of the context what `/context` and `/status` say."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from command_world import CommandWorld, Conversation, FakeUser

from bradawl.app.tui.live.status import StatusLine
from bradawl.app.tui.render.theme import theme_named
from bradawl.core.events import Compacted

PLAIN = theme_named("plain", "none")
TASKS: set[asyncio.Task[None]] = set()


def begin(work: Coroutine[Any, Any, None]) -> None:
    """Do it beside the test."""
    task = asyncio.get_running_loop().create_task(work)
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)


def following(talk: Conversation) -> Callable[[], Coroutine[Any, Any, str]]:
    """Returns what the line shows of the context, once the model has said how large its window is."""
    status = StatusLine("x", "/", begin, lambda: None)
    status.follow(talk.session)

    async def shown() -> str:
        status.lines(PLAIN, 200)
        await asyncio.gather(*TASKS)
        found = re.search(r"\d+% context", status.lines(PLAIN, 200)[0])
        return found[0] if found else ""

    return shown


async def said_by_commands(talk: Conversation) -> str:
    """The same by `/context`; `/status` must agree."""
    report = json.loads(await talk.type("/context json"))
    used, window = report["used"]["tokens"], report["window"]["tokens"]
    assert f"context       {used:,} of {window:,} tokens" in await talk.type("/status")
    return f"{used * 100 // window}% context"


async def test_a_continued_session_has_the_window_that_was_chosen_in_it(tmp_path):
    """Defect: the share was that of the window of the settings, 1,000,000 tokens."""
    world = CommandWorld(tmp_path)
    script = [{"text": "x", "usage": {"input": 24_000, "output": 460}}]
    world.script, world.options = script, {"model": world.script_file("default.json", script)}
    world.options["context_window"] = "50_000"
    async with world.conversation() as talk:
        await talk.prompt("a")
        session_id = talk.session.id
    del world.options["context_window"]
    async with world.conversation(session_id) as talk:
        assert await following(talk)() == await said_by_commands(talk) == "48% context"


async def test_the_share_follows_another_model_and_what_is_taken_back(tmp_path):
    """Defect: it stayed that of the last reply until the next one."""
    world = CommandWorld(tmp_path)
    world.script = [
        {"text": "x", "usage": {"input": 12_800, "output": 20}},
        {"text": "y", "usage": {"input": 64_000, "output": 20}},
        {"text": "z", "usage": {"input": 90_000, "output": 20}},
        {"text": "w", "usage": {"input": 100_000, "output": 20}},
        {"text": "A summary."},
    ]
    other = world.script_file("other.json", [{"text": "x"}])
    async with world.conversation(user=FakeUser("talk")) as talk:
        shown = following(talk)
        assert await shown() == ""
        await talk.prompt("a")
        assert await shown() == await said_by_commands(talk) == "10% context"
        await talk.prompt("b" * 4_000)
        assert await shown() == await said_by_commands(talk) == "50% context"
        await talk.type("/undo 2 talk")
        assert await shown() == await said_by_commands(talk) == "0% context"
        await talk.prompt("b")
        assert await shown() == await said_by_commands(talk) == "70% context"
        await talk.type("/rewind 1")
        assert talk.session.messages == [] and await shown() == ""
        await talk.prompt("c" * 400_000)
        before = await shown()
        assert before == await said_by_commands(talk)
        await talk.type("/compact")
        assert isinstance(talk.events[-2], Compacted)
        assert before != await shown() == await said_by_commands(talk)
        await talk.type(f"/model {other}")
        assert await shown() == await said_by_commands(talk)
