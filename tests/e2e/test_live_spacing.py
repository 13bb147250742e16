"""The blank lines between blocks: one or none, never two, whatever follows whatever."""

import re
from itertools import product
from typing import get_args

import pytest
from emulator import Emulator
from live_terminal import MARK, bash

from bradawl.app.tui.live.painter import LivePainter
from bradawl.app.tui.render.spacing import BlockKind, spaced
from bradawl.app.tui.render.theme import theme_named
from bradawl.app.tui.turn_end import TurnEnd
from bradawl.core.deltas import TextDelta, ThinkingDelta
from bradawl.core.effects import Effects
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    Envelope,
    Live,
    NoteDelivered,
    NoteQueued,
    RequestSent,
    ToolFinished,
)
from bradawl.core.messages import Assistant, Note, Origin, Text
from bradawl.core.usage import Usage

KINDS = get_args(BlockKind)
TOGETHER = {
    *product(["call"], ["call", "remark"]),
    *product(["note"], ["note", "remark"]),
    *product(["error"], ["error", "remark"]),
    *product(["prompt", "line", "remark"], ["remark"]),
}
"""Pairs of blocks without a blank line."""


class Blocks:
    """Prints a block of each kind, which has its mark in each of its lines."""

    def __init__(self) -> None:
        self.painter = LivePainter(theme_named("dark", "true"), lambda: 40, lambda: None)
        self.number = 0

    def event(self, event: object) -> None:
        self.number += 1
        self.painter.emit(Envelope(self.number, None, 0, "main", event))

    def show(self, kind: str, mark: str) -> None:
        match kind:
            case "prompt":
                self.painter.prompt(f"{mark}\n")
            case "text":
                reply = Assistant((Text(f"\n\n{mark}\n\n{mark}\n"),), Origin("p", "m", "chat"))
                self.event(RequestSent(1, "hash"))
                self.painter.emit(Live("main", 0, TextDelta(0, f"\n\n{mark}\n\n{mark}\n")))
                self.event(AssistantReplied(1, reply, "end_turn"))
            case "thinking":
                self.painter.emit(Live("main", 0, ThinkingDelta(0, mark)))
                self.event(AssistantReplied(1, Assistant((), Origin("p", "m", "chat")), "end_turn"))
            case "call":
                self.event(CallPrepared(mark, 1, mark, "{}", Effects()))
                self.event(ToolFinished(mark, "error", (Text(f"\n{mark}\n"),)))
            case "note":
                self.event(NoteQueued(Note(mark, mark, "user")))
                self.event(NoteDelivered(mark))
            case "end":
                self.painter.end(TurnEnd("completed", 1, Usage(), None, 4.1))
            case "line" | "error":
                getattr(self.painter, kind)(f"\n\n{mark}\n\n")
            case _:
                self.painter.dim(mark)

    def frame(self, screen: Emulator) -> None:
        """Draw what the next frame prints."""
        for line in self.painter.region(40, 20, ()).printed:
            screen.feed(f"{line}\r\n".encode())


@pytest.mark.parametrize("is_one_frame", [True, False])
@pytest.mark.parametrize(("before", "after"), [*product(KINDS, KINDS)])
def test_between_two_blocks_is_one_blank_line_or_none(before, after, is_one_frame):
    blocks, screen = Blocks(), Emulator(30, 40, answers=False)
    blocks.show(before, "before")
    if not is_one_frame:
        blocks.frame(screen)
    first = "thought" if before == "thinking" else "1 step" if before == "end" else "before"
    blocks.show(after, "after")
    blocks.frame(screen)
    rows = [screen.screen.line(row) for row in range(30)]
    text = "\n".join(rows).rstrip("\n")
    assert not text.startswith("\n") and "\n\n\n" not in text, text
    second = "thought" if after == "thinking" else "1 step" if after == "end" else "after"
    end = max(number for number, row in enumerate(rows) if first in row) if first != second else 0
    begin = next(number for number, row in enumerate(rows) if second in row and number > end)
    assert begin - end - 1 == (0 if (before, after) in TOGETHER else 1), text


@pytest.mark.parametrize("before", KINDS)
def test_a_call_that_runs_is_as_far_away_as_the_same_call_after_its_end(before):
    blocks, screen = Blocks(), Emulator(30, 40, answers=False)
    blocks.show(before, "before")
    blocks.event(CallPrepared("c", 1, "after", "{}", Effects()))
    region = blocks.painter.region(40, 20, ())
    for line in (*region.printed, *region.above):
        screen.feed(f"{line}\r\n".encode())
    rows = [screen.screen.line(row) for row in range(30)]
    begin = next(number for number, row in enumerate(rows) if "after" in row.lower())
    assert (rows[begin - 1] == "") == (before != "call"), rows


def test_blocks_in_full_have_the_same_blank_lines():
    blocks = [("prompt", ["one", ""]), ("remark", ["two"]), ("call", []), ("call", ["", "three"]), ("call", ["four"])]
    assert list(spaced(blocks)) == ["one", "two", "", "three", "four"]


def test_a_whole_conversation_has_no_two_blank_lines_and_its_end_stands_alone(live):
    talk = live([{"text": "First.", **bash("echo out")}, bash("echo again"), {"text": "\n\nDone.\n\n"}], "-y")
    talk.wait_idle()
    talk.send("go")
    talk.wait_turns(1)
    talk.send("!echo mine")
    talk.wait_for("\nmine\n")
    talk.wait_idle()
    text = "\n".join(talk.whole)
    assert "\n\n\n" not in text
    assert re.search(r"\n\n✓ Run  +echo out.*\n +out\n✓ Run  +echo again.*\n +again\n\nDone\.\n\n✓ \d", text), text
    assert f"\n\n{MARK} !echo mine\nmine\n" in text
    talk.leave()
