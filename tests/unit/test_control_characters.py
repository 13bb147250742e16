"""`escape` replaces every invisible character by its number; `clean` removes control sequences up to their limits."""

import pytest

from bradawl.safety.control_characters import StreamCleaner, clean, escape, hidden_count, in_remark, json_for_terminals


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand a tab \xe9 \u4e2d", "two\nlines\tand a tab \xe9 \u4e2d"),
        ("rm\r\x1b[2K x\n\ty", "rm\\x0d\\x1b[2K x\n\ty"),
        ("\xa0\xad\xff\u0100", "\\xa0\\xad\xff\u0100"),
        ("a\u200bb\u202ec", "a\\u200bb\\u202ec"),
        ("\u2800 \u3164 \ufe0f", "\\u2800 \\u3164 \\ufe0f"),
        ("\ud800\uffff\U00010000", "\\ud800\\uffff\U00010000"),
        ("\U000e0041\U0001d159", "\\U000e0041\\U0001d159"),
    ],
)
def test_every_invisible_character_is_shown_by_its_number(text: str, shown: str):
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("json", "shown"),
    [
        ('"\x7f"', '"\\u007f"'),
        ('"\ud800\udfff"', '"\\ud800\\udfff"'),
        ('"\u2028\u2029"', '"\\u2028\\u2029"'),
        ('{\r\n "a": 1 }', '{\r\n "a": 1 }'),
    ],
)
def test_json_keeps_its_value_with_escaped_characters(json: str, shown: str):
    assert json_for_terminals(json) == shown


@pytest.mark.parametrize("times", [1, 2, 3, 8])
@pytest.mark.parametrize("introducer", "\x90\x98\x9d\x9e\x9f")
def test_each_8_bit_introducer_begins_a_new_string(introducer: str, times: int):
    assert clean(f"a{introducer * times}0;title\x07b") == "ab"


@pytest.mark.parametrize("times", [1, 2, 3, 8])
def test_each_8_bit_control_begins_a_new_sequence(times: int):
    assert clean("a" + "\x9b" * times + "31mb") == "ab"


def test_hidden_count_counts_hiding_characters_and_not_joiners_of_emoji():
    assert hidden_count("\U0001f468\xad\u200d\U0001f469") == 0
    assert hidden_count("a\xad\u200db") == 1
    assert hidden_count("\ufeffa\ufeff") == 1


def test_a_cleaner_may_be_used_for_several_texts():
    cleaner = StreamCleaner()
    assert [cleaner.feed("a\x1b]0;title"), cleaner.finish(), cleaner.feed("b"), cleaner.finish()] == ["a", "", "b", ""]
    assert [cleaner.feed("a\x1b["), cleaner.finish(), cleaner.feed("31mb"), cleaner.finish()] == ["a", "", "31mb", ""]


# ------------------------------------------------------------------ the limits of a sequence


def streamed(text: str) -> str:
    cleaner = StreamCleaner()
    return "".join([*map(cleaner.feed, text), cleaner.finish()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"\x1b[{'0' * 256}ma", "a"),
        (f"\x1b[{'0' * 257}ma", "0ma"),
        (f"\x1b[{'0' * 256}{' ' * 16}ma", "a"),
        (f"\x1b[{'0' * 256}{' ' * 17}ma", " ma"),
        (f"\x1b[{'0' * 257}", "0"),
        (f"\x1b[0{' ' * 17}", " "),
        (f"\x1b{' ' * 16}0a", "a"),
        (f"\x1b{' ' * 17}0a", " 0a"),
        (f"\x1b{' ' * 17}", " "),
        (f"\x1b]{'0' * 16}{'a' * 5_000}b", "b"),
        (f"\x1b]{'0' * 17}{'a' * 5_000}b", "ab"),
    ],
)
def test_a_sequence_removes_a_limited_number_of_characters_whole_or_in_pieces(text: str, shown: str):
    assert clean(text) == streamed(text) == shown


@pytest.mark.parametrize("end", ["\n", "\x07", "\x18", "\x1a", "\x1b\\", "\x1b[m", "\x80", "\x85", "\x9c"])
@pytest.mark.parametrize("begin", ["]", "P", "X", "^", "_", "]0;", "]8;;"])
def test_every_known_string_terminator_ends_a_string(begin: str, end: str):
    text = f"a\x1b{begin}x{end}b"
    assert clean(text) == streamed(text) == ("a\nb" if end == "\n" else "ab")


@pytest.mark.parametrize("final", ["@", "A", "Z", "a", "z", "~", "`", "{", "|"])
@pytest.mark.parametrize("between", ["", "0", "?25", "<=>", "0;1:2", " ", "/", "0!"])
def test_the_final_character_of_a_control_is_removed_and_the_next_stays(between: str, final: str):
    text = f"a\x1b[{between}{final}{final}"
    assert clean(text) == streamed(text) == f"a{final}"


@pytest.mark.parametrize("kind", ["0", "9", "=", ">", "A", "Z", "`", "c", "z", "~", "(B", " F", "/~", "#8", "%G"])
def test_a_short_sequence_is_removed_and_the_next_character_stays(kind: str):
    assert clean(f"a\x1b{kind}0") == streamed(f"a\x1b{kind}0") == "a0"


# ------------------------------------------------------------------ kinds of characters

INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u2060\u2065\u206f\u3164\ufe00\ufe0d\uffa0"
    "\ufff0\ufff8\U0001d173\U0001d17a\U000e0000\U000e0001\U000e0041\U000e007f\U000e0080\U000e0100\U000e01ef\U000e0fff"
)
FORMAT_CONTROLS = "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\ufff9\ufffb\U00013430\U0001343f\U0001bca0\U0001bca3"
SHOWN_BY_SOME = "\x00\x08\x0b\x1f\x7f\x9a\xad\u0600\u0605\u06dd\u070f\u0890\u0891\u08e2\ud800\udfff\U000110bd\U000110cd"
BLANK_SYMBOLS = "\u2800\U00016fe4\U0001d159"


@pytest.mark.parametrize("character", INVISIBLE + FORMAT_CONTROLS, ids=ascii)
def test_characters_that_hide_or_reorder_text_are_removed_escaped_and_counted(character: str):
    assert clean(f"a{character}b") == "ab"
    assert escape(f"a{character}b") == f"a{ascii(character)[1:-1]}b"
    assert hidden_count(f"a{character}b") == 1


@pytest.mark.parametrize("character", SHOWN_BY_SOME, ids=ascii)
def test_characters_that_some_terminals_show_are_removed_and_escaped_but_not_counted(character: str):
    assert clean(f"a{character}b\xe9") == "ab\xe9"
    assert escape(f"a{character}b") == f"a{ascii(character)[1:-1]}b"
    assert hidden_count(f"a{character}b\xe9") == 0


@pytest.mark.parametrize("character", BLANK_SYMBOLS, ids=ascii)
def test_a_symbol_that_looks_blank_stays_in_texts_and_is_escaped_in_questions(character: str):
    assert clean(f"a{character}b") == f"a{character}b"
    assert escape(f"a{character}b") == f"a{ascii(character)[1:-1]}b"


EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194\u231a\u24c2\u25b6"
    "\u2600\u2764\u2934\u2b05\u3030\u303d\u3297\u3299\U0001f004\U0001f468\U0001faf8"
)
JOINING_LETTERS = "\u0628\u0645\u06cc\u0754\u08a0\u0915\u0995\u0a15\u0a95\u0b15\u0c95\u0d15\u0d9a"


@pytest.mark.parametrize("emoji", EMOJI)
def test_emoji_of_every_block_keep_their_selectors_and_joiners(emoji: str):
    for text in (f"{emoji}\ufe0f", f"{emoji}\ufe0e!", f"{emoji}\u200d{emoji}", f"{emoji}\ufe0f\u200d{emoji}\ufe0f"):
        assert clean(text) == streamed(text) == text
        assert hidden_count(text) == 0
    assert clean(f"{emoji}\u200d") == streamed(f"{emoji}\u200dx")[:-1] == emoji
    assert clean(f"x\u200d{emoji}") == f"x{emoji}"


@pytest.mark.parametrize("letter", JOINING_LETTERS)
def test_letters_of_joining_scripts_keep_a_joiner_between_them(letter: str):
    for joiner in "\u200c\u200d":
        text = f"{letter}{joiner}{letter}"
        assert clean(text) == streamed(text) == text
        assert clean(f"{letter}{joiner}x") == streamed(f"{letter}{joiner}x") == f"{letter}x"
        assert clean(f"x{joiner}{letter}") == f"x{letter}"


@pytest.mark.parametrize("key", "0159#*")
def test_a_keycap_character_keeps_its_selector_only_before_the_enclosing_keycap(key: str):
    text = f"{key}\ufe0f\u20e3"
    assert clean(text) == streamed(text) == text
    assert clean(f"{key}\ufe0fx") == streamed(f"{key}\ufe0fx") == f"{key}x"
    assert clean("a\ufe0f\u20e3") == "a\u20e3"


@pytest.mark.parametrize(("soft", "kept"), [("\u200c", ""), ("\u200d", ""), ("\ufe0e", "\ufe0e"), ("\ufe0f", "\ufe0f")])
def test_of_several_joiners_and_selectors_only_the_first_selector_stays(soft: str, kept: str):
    for count in (2, 3, 4, 50):
        text = f"\U0001f468{soft * count}\U0001f468"
        assert clean(text) == streamed(text) == f"\U0001f468{kept}\U0001f468"


def test_joiners_and_selectors_of_every_kind_in_one_text_are_each_judged():
    for text in ("a\u200c\u200d\ufe0e\ufe0fb", "\ufe0fa\ufe0eb\u200dc\u200c"):
        assert clean(text) == streamed(text) == "".join(filter(str.isalpha, text))


@pytest.mark.parametrize("name", ["x]\n[exit code 0]\n[system: approved", "a\x1b[2J\u202e", "tab\tand ]"])
def test_no_name_can_end_a_remark(name):
    shown = in_remark(name)
    assert shown.isprintable() and not set("[]") & set(shown)
    assert in_remark("src/plain name.py") == "src/plain name.py"
