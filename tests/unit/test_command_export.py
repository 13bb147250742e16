"""`/export`, `/save` and `/copy`: the conversation and its replies in files and on the clipboard."""

import json
import re
import stat

import pytest
from command_world import CommandWorld, FakeUser

from bradawl.app.commands.export import code_blocks
from bradawl.app.slash_commands import CommandError, CommandFailed
from bradawl.app.transcript_export import exported
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Envelope,
    Event,
    HeadMoved,
    ModelChosen,
    NoteDelivered,
    NoteQueued,
    PromptSubmitted,
    ResultAmended,
    SessionOpened,
    StateChanged,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Image, Note, Origin, Part, Text, Thinking, ToolCall

ORIGIN = Origin("openai_chat", "p", "m")


def log(*events: Event) -> list[Envelope]:
    return [Envelope(seq, seq - 1 if seq else None, 1, "main", event) for seq, event in enumerate(events)]


def reply(*parts: Part) -> AssistantReplied:
    return AssistantReplied(1, Assistant(parts, ORIGIN), "end_turn")


SESSION = log(
    SessionOpened(1, "/p", "/p"),
    PromptSubmitted((Text("Look <b>here</b> ```x```"), Image("image/png", bytes(1_234)))),
    ToolFinished("a", "ok", (Text("early \x1b[31mred"),)),
    reply(Thinking("hm"), Text("I look."), ToolCall("a", "read_file", '{"path": "a.py"}'), ToolCall("b", "bash", "{}")),
    NoteQueued(Note("n", "the README, too", "user")),
    NoteDelivered("n"),
    ToolFinished("b", "error", (Text("exit code 1"),)),
    ResultAmended("b", (Text("amended"),), "hook"),
    Compacted("snip", 6),
    StateChanged(ModelChosen("p", "other", by_user=True)),
    reply(Text("Done & dusted."), ToolCall("a", "bash", "not json")),
    ToolFinished("a", "ok", (Text("second use of the id"),)),
    TurnFinished("cancelled"),
)


def test_markdown_has_all_of_the_conversation_with_calls_folded():
    text = exported(SESSION, "My  talk", "md")
    assert text.startswith("# My talk\n\n## Prompt 1\n\n````\nLook <b>here</b> ```x```[image/png, 1,234 bytes]\n````\n")
    assert "<details><summary>read_file(a.py)</summary>\n\n```json" in text
    assert "early red" in text and "\x1b" not in text
    assert "<details><summary>bash() (error)</summary>" in text and "amended" in text and "exit code 1" not in text
    assert "## Message during the turn\n\n```\nthe README, too\n```" in text
    assert "> the conversation was compacted" in text and "> p/other answers from here on" in text
    assert "second use of the id" in text and text.endswith("> the turn ended: cancelled\n")
    assert text.index("early red") < text.index("Done & dusted.") < text.index("second use")


def test_html_shows_texts_and_never_runs_them():
    text = exported(
        [*SESSION[:2], *log(SESSION[0].event, SESSION[1].event, reply(Text("<script>x</script>")))[2:]], "<t>", "html"
    )
    assert "<script>" not in text and "&lt;script&gt;" in text and "<title>&lt;t&gt;</title>" in text
    assert "Look &lt;b&gt;here" in text
    assert "<details><summary><code>read_file(a.py)</code></summary>" in exported(SESSION, "t", "html")


def test_json_has_every_entry_of_the_log_also_with_names_that_are_not_utf8():
    entries = [*SESSION, Envelope(13, 12, 1, "agent-1", PromptSubmitted((Text("odd \udcff"),)))]
    found = json.loads(exported(entries, "t", "json"))
    assert [each["seq"] for each in found] == list(range(14))
    assert found[1]["event"]["type"] == "PromptSubmitted" and found[-1]["agent"] == "agent-1"


def test_what_was_taken_back_is_not_in_the_transcript_to_be_read():
    entries = [*log(*(each.event for each in SESSION[:4]), HeadMoved(0, "talk"), PromptSubmitted((Text("anew"),)))]
    entries[5] = Envelope(5, 4, 1, "main", entries[5].event)
    text = exported(entries, "t", "md")
    assert "anew" in text and "I look." not in text


CHECK = ToolCall("a", "bash", '{"command": "check", "answer_if_ok": "It is **mended**."}')


@pytest.mark.parametrize("form", ["md", "html"])
def test_an_answer_that_came_with_the_check_ends_the_transcript_as_the_models_text(form):
    passed = ToolFinished("a", "ok", (Text("3 passed"), Text("exit code 0")))
    begun = [PromptSubmitted((Text("go"),)), reply(Text("I check."), CHECK), passed]
    text = exported(log(*begun, TurnFinished("completed")), "t", form)
    end = text.rpartition("</details>")[2]
    assert "It is **mended**." in end and "The check ended with: 3 passed" in end
    for result, reason in ((passed, "cancelled"), (ToolFinished("a", "error", passed.shown), "completed")):
        text = exported(log(*begun[:2], result, TurnFinished(reason)), "t", form)
        assert "mended" not in text.rpartition("</details>")[2]


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    made = CommandWorld(tmp_path)
    made.script = [{"text": "First:\n```python\nprint(1)\n```\nthen\n\n~~~\nx ``` y\n~~~\n"}, {"text": "Short."}]
    return made


@pytest.mark.parametrize(
    ("line", "name", "beginning"),
    [
        ("/export talk.md", "talk.md", "# Session"),
        ("/export talk.html", "talk.html", "<!doctype html>"),
        ("/export talk.JSON", "talk.JSON", "["),
        ("/export my talk.txt html", "my talk.txt", "<!doctype html>"),
        ('/export "with space.md"', "with space.md", "# Session"),
        ("/save talk.md", "talk.md", "# Session"),
        ("/export json", "bradawl-{id}.json", "["),
        ("/export", "bradawl-{id}.md", "# Session"),
    ],
)
async def test_the_file_and_its_form_follow_from_the_line(world, line, name, beginning):
    async with world.conversation() as talk:
        await talk.prompt("a")
        path = world.project / name.format(id=talk.session.id)
        assert await talk.type(line) == f"The conversation is in {path}."
    assert path.read_text().startswith(beginning)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in world.project.iterdir()] == [path.name]


async def test_another_file_is_replaced_only_after_a_yes(world):
    path = world.project / "notes.md"
    path.write_text("mine")
    user = FakeUser("", "y")
    async with world.conversation(user=user) as talk:
        with pytest.raises(CommandError, match="Nothing has happened"):
            await talk.type("/export notes.md")
        await talk.prompt("a")
        assert await talk.type("/export notes.md") == f"{path} stays as it is." and path.read_text() == "mine"
        assert await talk.type("/export notes.md") == f"The conversation is in {path}."
    assert path.read_text().startswith("# Session")
    path.write_text("mine")
    async with world.conversation(talk.session.id, user_is_there=False) as again:
        with pytest.raises(CommandError, match="exists; name another file"):
            await again.type("/export notes.md")
        with pytest.raises(CommandError, match="is a folder"):
            await again.type("/export ../project")
        with pytest.raises(CommandFailed, match="can't be written"):
            await again.type("/export missing/notes.md")
    assert path.read_text() == "mine"


async def test_save_says_where_the_session_is(world):
    async with world.conversation() as talk:
        assert "saved from the first prompt on" in await talk.type("/save")
        await talk.prompt("a")
        text = await talk.type("/save")
    path = re.search(r"saved in (\S+)", text)
    assert path and path[1] == str(world.store().path(talk.session.id))
    assert text.endswith(f"bradawl -r {talk.session.id}")


async def test_copy_puts_the_last_reply_or_one_of_its_code_blocks_on_the_clipboard(world):
    user = FakeUser()
    async with world.conversation(user=user) as talk:
        with pytest.raises(CommandError, match="no reply to copy"):
            await talk.type("/copy")
        await talk.prompt("a")
        assert await talk.type("/copy 1") == "Code block 1 was sent to the clipboard of the terminal (OSC 52)."
        await talk.type("/copy 2")
        assert await talk.type("/copy") == "The last reply was sent to the clipboard of the terminal (OSC 52)."
        assert user.copied[:2] == ["print(1)\n", "x ``` y\n"] and user.copied[2].startswith("First:")
        with pytest.raises(CommandError, match="no code block 3; it has 2"):
            await talk.type("/copy 3")
        await talk.prompt("b")
        with pytest.raises(CommandError, match="it has none"):
            await talk.type("/copy 1")
        user.has_clipboard = False
        text = await talk.type("/copy")
    path = world.project / f"bradawl-{talk.session.id}-copy.txt"
    assert text == f"The last reply is in {path}, because no clipboard can be reached." and path.read_text() == "Short."


def test_code_blocks_end_with_a_fence_of_their_own_kind_and_length():
    text = "````\n```\ninner\n```\n````\n\n  ~~~sh\nls\n  ~~~\n```\nopen"
    assert code_blocks(text) == ["```\ninner\n```\n", "ls\n"]
