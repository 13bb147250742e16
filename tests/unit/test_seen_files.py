"""What the model has seen of a file is one thing for reading, editing, writing, commands, undo and resumed sessions."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.agent.conversation import Conversation
from bradawl.agent.subagents.child import SharedLog
from bradawl.core.errors import Failure, ToolError
from bradawl.core.events import Compacted, HeadMoved, ReplyWithdrawn, RequestSent, SessionOpened, StateChanged
from bradawl.core.messages import text_of
from bradawl.core.permissions import Grant
from bradawl.core.ports import AnyTool, CallContext, OpenSession
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryFiles, MemoryStore, ScriptedProcesses
from bradawl.tools.edit_file import EditFile
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.shell.state import mark_seen
from bradawl.tools.write_file import WriteFile

PATH = "/project/f"
NAMES = ("first", "second", "third")
PARTS = {(1, 2_000): "lines 1-3", (1, 2): "lines 1-2", (2, 2): "lines 2-3", (3, 1): "lines 3-3"}
# So few that the old bytes often come back.
CONTENTS = st.tuples(*[st.sampled_from("12")] * 3).map(
    lambda digits: "".join(f"{name}:{digit}{'.' * 210}\n" for name, digit in zip(NAMES, digits, strict=True)).encode()
)
AGENTS = st.sampled_from(["main", "main", "main", "agent-1"])


ALL = frozenset({1, 2, 3})


class Shown(msgspec.Struct, frozen=True):
    """A result in a conversation that shows the file."""

    content: bytes
    part: str = ""
    lines: frozenset[int] = ALL
    is_compacted: bool = False


class Expected(msgspec.Struct):
    """The oracle for one agent: the results in its conversation, in order."""

    shown: list[Shown] = msgspec.field(default_factory=list[Shown])
    before_reply: int = 0
    """Number of results when the last request was sent."""

    def must_refuse(self, content: bytes) -> bool:
        contents = [each.content for each in self.shown]
        return bool(contents) and content not in contents

    def lines_of(self, content: bytes) -> frozenset[int]:
        """The lines that were shown of this content, at any time."""
        return frozenset[int]().union(*(each.lines for each in self.shown if each.content == content))

    def with_change(self, content: bytes) -> frozenset[int]:
        """The lines that are known of this content with the diff from the content that was shown last."""
        last = self.shown[-1].content
        pairs = enumerate(zip(last.splitlines(), content.splitlines(), strict=True), 1)
        return self.lines_of(last) | {number for number, (before, after) in pairs if before != after}

    def is_unchanged(self, content: bytes, part: str) -> bool:
        for each in reversed(self.shown):
            if each.content != content:
                return False
            if each.part == part and not each.is_compacted:
                return True
        return False


class World:
    """The log of a session and its sub-agent, their seen files, and one file in memory."""

    def __init__(self) -> None:
        self.store, self.files = MemoryStore(), MemoryFiles()
        self.opened = self.store.create()
        self.reopen(self.opened)
        self.conversations["main"].record(SessionOpened(1, "/project", "/project"))

    def reopen(self, opened: OpenSession) -> None:
        child = OpenSession(SharedLog(opened.log, "agent-1"), opened.blobs, opened.entries)
        self.opened = opened
        self.conversations = {
            name: Conversation(one, FakeIds(), FakeClock(), name)
            for name, one in (("main", opened), ("agent-1", child))
        }
        self.seen = {name: SeenFiles.of(conversation) for name, conversation in self.conversations.items()}

    def context(self, agent: str) -> CallContext:
        record = self.conversations[agent].record
        return CallContext(
            call_id="call",
            cwd="/project",
            files=self.files,
            processes=ScriptedProcesses(),
            seen=self.seen[agent],
            grant=Grant(),
            progress=lambda _: None,
            change=lambda change: record(StateChanged(change)) and None,
        )

    @property
    def content(self) -> bytes | None:
        return self.files.files.get(PATH)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    def call(self, agent: str, tool: AnyTool, **arguments: Any) -> str:
        """The text of the result, after `ERROR` for one that failed."""
        params: Any = msgspec.convert(arguments, tool.params)
        try:
            return text_of(self.wait(tool.run(params, self.context(agent))).parts)
        except ToolError as error:
            return f"ERROR {error}"


class SeenFilesMachine(RuleBasedStateMachine):
    """Real tools, log and folds."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.points: list[tuple[int, int, bytes | None]] = []
        """The requests of the main agent: entry of the log, number of results, content of the file."""
        self.expected = {"main": Expected(), "agent-1": Expected()}

    @initialize(content=CONTENTS)
    def begins_with(self, content: bytes) -> None:
        self.world.files.files[PATH] = content

    @rule(agent=AGENTS, part=st.sampled_from(sorted(PARTS)))
    def read(self, agent: str, part: tuple[int, int]) -> None:
        assert self.world.content is not None
        expected, (offset, limit) = self.expected[agent], part
        text = self.world.call(agent, ReadFile(), file_path="f", offset=offset, limit=limit)
        if expected.is_unchanged(self.world.content, PARTS[part]):
            assert text == f"(f has not changed: the earlier answer with {PARTS[part]} still holds)"
            return
        lines = self.world.content.decode().splitlines()[offset - 1 :][:limit]
        assert "\n".join(lines) in text
        shown = frozenset(range(offset, min(offset + limit, 4)))
        expected.shown.append(Shown(self.world.content, PARTS[part], lines=shown))

    def _refused(self, agent: str, text: str) -> None:
        # The error of `multi_edit` says once for all edits that nothing was written.
        assert re.match(r"ERROR f has changed since you last saw it(; nothing was written)?\. ", text)
        if "Repeat the change if it still fits" in text:
            assert self.world.content is not None
            expected = self.expected[agent]
            known = expected.with_change(self.world.content)
            expected.shown.append(Shown(self.world.content, lines=known))
        else:
            assert text.endswith("read_file it again, then repeat the change on what it is now")

    @rule(agent=AGENTS, name=st.sampled_from(NAMES), several=st.booleans())
    def edit(self, agent: str, name: str, several: bool) -> None:
        assert self.world.content is not None
        before, expected = self.world.content, self.expected[agent]
        match = re.search(rf"{name}:(\d)", before.decode())
        assert match is not None
        change = {"file_path": "f", "old_string": match[0], "new_string": f"{name}:{3 - int(match[1])}"}
        if several:
            text = self.world.call(agent, MultiEdit(), edits=[change]).replace(
                "ERROR 1 of 1 edits can't be made", "ERROR", 1
            )
            text = text.replace("ERROR, so no file was changed.\nedit 1, f: ", "ERROR ")
        else:
            text = self.world.call(agent, EditFile(), **change)
        if expected.must_refuse(before) and text.startswith("ERROR"):
            assert self.world.content == before
            self._refused(agent, text)
            return
        assert text.startswith("Edited f: +1 -1")
        assert self.world.content == before.replace(match[0].encode(), change["new_string"].encode())
        known = expected.lines_of(before)
        if expected.must_refuse(before):
            assert "f has also changed elsewhere since you last saw it" in text
            assert match[0].encode() in expected.shown[-1].content
            known = expected.with_change(before)
        if expected.shown:
            lines = known | {NAMES.index(name) + 1}
            expected.shown.append(Shown(self.world.content, lines=lines))

    @rule(agent=AGENTS, content=CONTENTS)
    def write(self, agent: str, content: bytes) -> None:
        before, expected = self.world.content, self.expected[agent]
        assert before is not None
        text = self.world.call(agent, WriteFile(), file_path="f", content=content.decode())
        if before == content:
            assert text == "f has exactly this content already; nothing was written"
        elif not expected.shown:
            assert text.startswith("ERROR f exists and you have not read it.")
        elif expected.must_refuse(before):
            assert self.world.content == before
            self._refused(agent, text)
        elif expected.lines_of(before) != ALL:
            assert self.world.content == before
            seen = len(expected.lines_of(before))
            assert text.startswith(f"ERROR you have seen {seen} of 3 lines of f; nothing was written.")
        else:
            assert text.startswith("Wrote 3 lines to f")
            assert self.world.content == content
        if self.world.content == content:
            expected.shown.append(Shown(content))

    @rule(agent=AGENTS)
    def read_again(self, agent: str) -> None:
        """The part of the last read; chosen often, because most defects need a repeated read of the same part."""
        names = [each.part for each in self.expected[agent].shown if each.part]
        self.read(agent, next((part for part, name in PARTS.items() if names and name == names[-1]), (1, 2_000)))

    @rule(agent=AGENTS, content=CONTENTS)
    def change_and_read_again(self, agent: str, content: bytes) -> None:
        self.outside_change(content)
        self.read_again(agent)

    @rule(agent=AGENTS)
    def compact_and_read_again(self, agent: str) -> None:
        self.compact(agent)
        self.read_again(agent)

    @rule(agent=AGENTS, first=st.integers(0, 2), last=st.integers(1, 3))
    def cat(self, agent: str, first: int, last: int) -> None:
        assert self.world.content is not None
        printed = b"".join(self.world.content.splitlines(keepends=True)[first:last])
        self.world.wait(mark_seen((PATH,), printed, self.world.context(agent)))
        if printed:
            lines = frozenset(range(first + 1, last + 1))
            self.expected[agent].shown.append(Shown(self.world.content, lines=lines))

    @rule(agent=AGENTS)
    def count(self, agent: str) -> None:
        self.world.wait(mark_seen((PATH,), b"3 f\n", self.world.context(agent)))

    @rule(content=CONTENTS)
    def outside_change(self, content: bytes) -> None:
        self.world.files.files[PATH] = content

    @rule(agent=AGENTS)
    def next_request(self, agent: str) -> None:
        envelope = self.world.conversations[agent].record(RequestSent(1, ""))
        expected = self.expected[agent]
        expected.before_reply = len(expected.shown)
        if agent == "main":
            self.points.append((envelope.seq, len(expected.shown), self.world.content))

    @rule(agent=AGENTS)
    def withdraw_reply(self, agent: str) -> None:
        self.world.conversations[agent].record(ReplyWithdrawn(1, Failure("network", "lost")))
        expected = self.expected[agent]
        del expected.shown[expected.before_reply :]

    @rule(agent=AGENTS)
    def compact(self, agent: str) -> None:
        self.world.conversations[agent].record(Compacted("all", 0, kept_from=1_000_000))
        shown = self.expected[agent].shown
        shown[:] = [msgspec.structs.replace(each, is_compacted=True) for each in shown]
        self.expected[agent].before_reply = len(shown)
        self.world.conversations[agent].record(RequestSent(1, ""))
        if agent == "main":
            self.points.clear()

    @rule(data=st.data(), part=st.sampled_from(["code", "talk", "both"]))
    def undo(self, data: st.DataObject, part: Any) -> None:
        if not self.points:
            return
        number = data.draw(st.integers(0, len(self.points) - 1))
        to, count, content = self.points[number]
        self.world.conversations["main"].move_head(HeadMoved(to, part))
        if part != "talk" and content is not None:
            self.world.files.files[PATH] = content
        if part != "code":
            del self.points[number + 1 :]
            del self.expected["main"].shown[count:]
            self.expected["main"].before_reply = count

    @rule()
    def resume(self) -> None:
        self.world.opened.log.close()
        self.world.reopen(self.world.store.open(self.world.opened.log.session_id))


TestSeenFiles = SeenFilesMachine.TestCase
TestSeenFiles.settings = settings(max_examples=3 * settings().max_examples)
