"""What a terminal sends: keys of three protocols, pastes, answers. No part of a sequence is taken for text."""

import os
import pty
import tty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.tui.live.input import LONGEST_PASTE, TerminalInput
from bradawl.app.tui.live.key_codes import function_key, typed_key
from patience import cpu_limit


class Typed:
    """A terminal, and what is read from it."""

    def __init__(self):
        self.master, self.child = pty.openpty()
        self.stdin = os.fdopen(self.child, "r", closefd=False)
        self.replies = []
        self.input = TerminalInput(self.stdin, self.replies.append)
        tty.setraw(self.child)

    def read(self, *pieces):
        """The keys of pieces that arrive one after the other; then no more comes."""
        keys = []
        for piece in pieces:
            data = piece.encode("utf-8", "surrogateescape")
            while data:
                data = data[os.write(self.master, data[:2_000]) :]
                keys += self.input.read_keys()
        return [*keys, *self.input.flush_keys()]

    def shown(self, *pieces):
        """As `read`, as text: typed characters as they are, keys by name, pastes in brackets."""
        return "".join(map(shown, self.read(*pieces)))


def shown(press):
    name = getattr(press.key, "value", press.key)
    if name == "<bracketed-paste>":
        return f"[{press.data}]"
    return name if len(name) == 1 else f"<{name}>"


@pytest.fixture
def typed():
    made = Typed()
    yield made
    os.close(made.master)
    os.close(made.child)


KEYS = {
    "abc": "abc",
    "é漢🙂": "é漢🙂",
    "\x1b": "<escape>",
    "\x1b\x1b": "<escape><escape>",
    "\x1by": "<escape>y",
    "\x1b[": "<escape>[",
    "\x1b]": "<escape>]",
    "\x1b\r": "<escape><c-m>",
    "\x1b[A": "<up>",
    "\x1bOA": "<up>",
    "\x1b\x1b[A": "<escape><up>",
    "\x1b[[A": "<f1>",
    "\x1b[1;5A": "<c-up>",
    "\x1b[3~": "<delete>",
    # kitty
    "\x1b[97u": "a",
    "\x1b[97;1:1u": "a",
    "\x1b[97;1:2u": "a",
    "\x1b[97;1:3u": "",
    "\x1b[97;;97u": "a",
    "\x1b[97:65;2;65u": "A",
    "\x1b[27u": "<escape>",
    "\x1b[13;2u": "<c-j>",
    "\x1b[13;3u": "<c-j>",
    "\x1b[9;2u": "<s-tab>",
    "\x1b[99;5u": "<c-c>",
    "\x1b[223;5u": "ß",
    "\x1b[223;2u": "ß",
    "\x1b[329;5u": "ŉ",
    "\x1b[121;9u": "",
    "\x1b[121;17u": "",
    "\x1b[121;33u": "",
    "\x1b[121;65u": "y",
    "\x1b[121;129u": "y",
    "\x1b[57358u": "",
    "\x1b[57441;2u": "",
    "\x1b[57414u": "<c-m>",
    "\x1b[57414;2u": "<c-j>",
    "\x1b[57400u": "1",
    "\x1b[57419u": "<up>",
    "\x1b[1;129A": "<up>",
    "\x1b[1;65D": "<left>",
    "\x1b[1;133A": "<c-up>",
    "\x1b[3;129~": "<delete>",
    "\x1b[1;1:2A": "<up>",
    "\x1b[1;1:3A": "",
    "\x1b[1;9:1A": "",
    "\x1b[200;1~": "",
    "\x1b[9999999999u": "",
    "\x1b[55296u": "",
    "\x1b[1114112u": "",
    # xterm's modifyOtherKeys
    "\x1b[27;5;99~": "<c-c>",
    "\x1b[27;2;13~": "<c-j>",
    "\x1b[27;5;223~": "ß",
    "\x1b[27;3;121~": "<escape>y",
    "\x1b[27;9;121~": "",
    f"\x1b[27;5;{'9' * 5000}~": "",
    f"\x1b[{'9' * 5000}u": "",
    # what is no key
    "\x1b[I": "",
    "\x1b[O": "",
    "\x1b[<0;10;10M": "",
    "\x1b[<0;10;10m": "",
    "\x1b[M !y": "",
    "\x1b[M\x1b[A": "",
    "\x1b[32;10;10M": "",
    "\x1b]11;rgb:ffff/ffff/ffff\x07": "",
    "\x1b]11;rgb:ffff/ffff/ffff\x1b\\": "",
    "\x1b]10;#ffffff\x1b\\": "",
    f"\x1b]52;c;{'y' * 9000}\x07": "",
    f"\x1b]52;c;{'y' * 9000}\x1b\\": "",
    "\x1b]lTitle\x1b\\": "",
    "\x1bP>|yay(1)\x1b\\": "",
    "\x1bP1+r5463=\x1b\\": "",
    "\x1b_Gi=1;OK\x1b\\": "",
    "\x1b[?64;1;2c": "",
    "\x1b[>0;276;0c": "",
    "\x1b[?2026;2$y": "",
    "\x1b[?0u": "",
    "\x1b[?12;40R": "",
    "\x1b[12;40R": "",
    "\x1b[8;24;80t": "",
    "\x1b[?997;1n": "",
    "\x1b[201~": "",
    # pastes
    "\x1b[200~one\r\ntwo\x1b[201~": "[one\r\ntwo]",
    "\x1b[200~\x1b[201~": "[]",
    "\x1b[200~\x03\x1b[A\x1b[20\x1b[201\x1b[201~": "[\x03\x1b[A\x1b[20\x1b[201]",
    "a\x1b[200~b\x1b[201~c": "a[b]c",
}


@pytest.mark.parametrize("data", KEYS, ids=[ascii(each)[1:30] for each in KEYS])
def test_a_sequence_at_once_and_between_others(typed, data):
    assert typed.shown(data) == KEYS[data]
    assert typed.shown(f"{data}\x1b[A") == f"{KEYS[data]}<up>"
    assert typed.shown("x\x1b[I", data) == f"x{KEYS[data]}"


@pytest.mark.parametrize("data", KEYS, ids=[ascii(each)[1:30] for each in KEYS])
def test_a_sequence_in_pieces(typed, data):
    """A terminal on a slow line: each byte is read alone, and nothing is lost by waiting for the rest."""
    assert typed.shown(*data) == KEYS[data]
    if 2 < len(data) < 100:
        assert typed.shown(data[:3], data[3:]) == KEYS[data]


@pytest.mark.parametrize("size", [3, 5, 8])
def test_the_rest_of_a_sequence_may_come_after_a_pause(typed, size):
    data = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
    assert typed.shown(data[:size]) == ""
    assert typed.shown(data[size:], "x") == "x"
    assert [reply.kind for reply in typed.replies] == ["background"]


def test_a_string_that_does_not_end_takes_one_line_at_most(typed):
    assert typed.shown("\x1b]0;broken ", "text\ry") == "<c-m>y"


def test_answers_reach_the_program(typed):
    typed.read("\x1b[?2026;2$y\x1b[?1u\x1b[I\x1b[O\x1b]11;rgb:00/80/ff\x07\x1b[?64c")
    assert [(each.kind, each.value) for each in typed.replies] == [
        ("synchronised", True),
        ("kitty keys", True),
        ("focus", True),
        ("focus", False),
        ("background", True),
        ("answered", True),
    ]
    assert typed.replies[4].rgb == (0, 128, 255)


@pytest.mark.parametrize(
    "text", ["hello world line\n" * 200_000, "\x1b]0;" * 200_000, "\x1b[" * 400_000, "\x1b[20" * 200_000]
)
def test_a_long_paste_takes_linear_time(typed, text):
    """Defect: 10 MB took 15 s, because each read searched all of what had come before."""
    with cpu_limit(2):
        assert typed.shown(f"\x1b[200~{text}\x1b[201~x") == f"[{text}]x"


def test_of_a_paste_that_is_too_long_only_the_beginning_is_kept(typed):
    (press,) = typed.read("\x1b[200~" + "x" * (LONGEST_PASTE + 500_000) + "\x1b[201~")
    assert len(press.data) == LONGEST_PASTE + 1


@pytest.mark.parametrize("text", ["\x1b]0;" * 50_000, "\x1b[" * 100_000, "\x1b" * 50_000, "\x1b[1;1:3A" * 20_000])
def test_a_flood_of_sequences_takes_linear_time(typed, text):
    with cpu_limit(5):
        typed.read(text)


PIECES = st.lists(st.sampled_from([*KEYS, "\x1b[2", "0~", "\x1bO", "\x1b]", "\x1bP", "\x9b31m", "\x00", "\x7f", "\r"]))


@given(PIECES, st.lists(st.integers(1, 40)))
def test_no_mixture_of_sequences_is_an_error(pieces, sizes):
    typed = Typed()
    try:
        data = "".join(pieces)[:4_000]
        for size in sizes:
            typed.read(data[:size])
            data = data[size:]
        typed.read(data)
    finally:
        os.close(typed.master)
        os.close(typed.child)


@given(st.integers(0, 0x120000), st.integers(0, 300))
def test_every_code_of_a_key_is_a_text_or_nothing(code, modifiers):
    assert isinstance(typed_key(code, modifiers), str)
    assert "200~" not in function_key(f"\x1b[{code % 300};{modifiers}~")
