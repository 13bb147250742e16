"""Edits whose old text is not in the file verbatim: which are made, and which are refused."""

import re

import pytest

from bradawl.core.errors import ToolError
from bradawl.tools.editing.inexact_place import NO_FINAL_BREAK
from bradawl.tools.editing.plan import Change, plan

SHIFTED = "new_string indented like the line it replaces"


def edited(data: str, old: str, new: str) -> tuple[str, str]:
    planned = plan(data.encode(), Change(old, new), "f")
    return planned.data.decode(), planned.note.removeprefix("matched after ignoring ")


def refusal(data: str | bytes, old: str, new: str, **options) -> str:
    with pytest.raises(ToolError) as caught:
        plan(data if isinstance(data, bytes) else data.encode(), Change(old, new, **options), "f")
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "old", "new", "right", "note"),
    [
        # Line endings: kept lines keep theirs.
        ("a1\r\nb1\nc1\r\nd1\n", "a1\nb1\nc1", "a1\nb2\nc1", "a1\r\nb2\nc1\r\nd1\n", "line endings"),
        ("a1\nb1\nc1\n", "a1\r\nb1\r\n", "a1\r\nb2\r\n", "a1\nb2\nc1\n", "line endings"),
        ("a1\r\nb1\r\n", "\nb1", "\nb2\nb3", "a1\r\nb2\r\nb3\r\n", ""),
        ("a1\r\nb1\r\n", "\nb1", "", "a1\r\n", ""),
        # Blanks at the end of lines.
        (
            "if one:  \n    two()\n",
            "if one:\n    two()",
            "if one:\n    six()",
            "if one:  \n    six()\n",
            "trailing blanks",
        ),
        (
            "if one:\n    two()\n",
            "if one: \n    two() ",
            "if one: \n    six() ",
            "if one:\n    six()\n",
            "trailing blanks",
        ),
        ("one()\n   \ntwo()\n", "one()\n\ntwo()\n", "one()\n\nsix()\n", "one()\n   \nsix()\n", "trailing blanks"),
        # Indentation, shifted as a whole.
        ("  one()\n    two()\n", "one()\n  two()\n", "one()\n  six()\n", "  one()\n    six()\n", "indentation"),
        ("one()\n  two()\n", "    one()\n      two()\n", "    one()\n      six()\n", "one()\n  six()\n", "indentation"),
        (
            "\tif one {\n\t\ttwo()\n\t}\n",
            "    if one {\n        two()\n    }",
            "    if one {\n        if six {\n            two()\n        }\n    }",
            "\tif one {\n\t\tif six {\n\t\t\ttwo()\n\t\t}\n\t}\n",
            "indentation",
        ),
        (
            "if one:\n    two()\n",
            "if one:\n\ttwo()",
            "if one:\n\ttwo()\n\tsix()",
            "if one:\n    two()\n    six()\n",
            "indentation",
        ),
        (
            "target:\n\trecipe\n",
            "target:\n        recipe",
            "target:\n        other",
            "target:\n\tother\n",
            "indentation",
        ),
        # Typographic characters.
        ("say(\u201cone\u201d)\n", 'say("one")', 'say("two")', "say(\u201ctwo\u201d)\n", "typographic characters"),
        (
            "it\u2019s one \u2013 two\n",
            "it's one - two",
            "it's one - six, isn't it",
            "it\u2019s one \u2013 six, isn\u2019t it\n",
            "typographic characters",
        ),
        (
            "a = 'one'\n",
            "a = \u2018one\u2019",
            "a = \u2018one\u2019 + \u2018two\u2019",
            "a = 'one' + 'two'\n",
            "typographic characters",
        ),
        ("one\u00a0two three\n", "one two three", "one two four", "one\u00a0two four\n", "typographic characters"),
        ("cafe\u0301 one\n", "caf\u00e9 one", "caf\u00e9 two", "cafe\u0301 two\n", "typographic characters"),
        # Several at once.
        (
            "  if a:  \r\n    say(\u2018it\u2019)\r\n",
            "if a:\n  say('it')\n",
            "if a:\n  say('it')\n  go()\n",
            "  if a:  \r\n    say(\u2018it\u2019)\r\n    go()\r\n",
            "trailing blanks and indentation and typographic characters",
        ),
        # Blank lines that the edit does not change.
        (
            "one()\n\n\ntwo()\nsix()\n",
            "one()\n\ntwo()\nsix()\n",
            "one()\n\ntwo()\n",
            "one()\n\n\ntwo()\n",
            "blank lines",
        ),
        ("one()\ntwo()\nsix()\n", "\none()\n\ntwo()\nsix()\n", "\none()\n\ntwo()\n", "one()\ntwo()\n", "blank lines"),
        ("one()\ntwo()\nsix()\n", "two()\n\n", "ten()\n\n", "one()\nten()\nsix()\n", "blank lines"),
        # The last line break.
        ("one()\ntwo()", "two()\n", "six()\n", "one()\nsix()", NO_FINAL_BREAK),
        ("one()\r\ntwo()", "two()\n", "six()\nten()\n", "one()\r\nsix()\r\nten()", NO_FINAL_BREAK),
        # Text that models add: line numbers, backslashes, a byte order mark.
        ("one\ntwo\nsix\n", "2\ttwo\n3\tsix", "2\ttwo\n3\tten", "one\ntwo\nten\n", "the line numbers of read_file"),
        ("one\ntwo\nsix\n", "     2\ttwo\n", "ten\n", "one\nten\nsix\n", "the line numbers of read_file"),
        ('say("one")\n', 'say(\\"one\\")', 'say(\\"two\\")', 'say("two")\n', "a layer of backslashes"),
        ("one()\n  two()\n", "one()\\n  two()", "one()\\n  six()", "one()\n  six()\n", "a layer of backslashes"),
        ("\ufeffone()\n", "\ufeffone()", "\ufefftwo()", "\ufefftwo()\n", "the byte order mark"),
        # One line, quoted with less indentation than it has.
        (
            "if x:\n        work()\n",
            "    work()",
            "    if y:\n        work()",
            "if x:\n        if y:\n            work()\n",
            SHIFTED,
        ),
        (
            "if x:\n        work()\n",
            "work()",
            "if y:\n    work()",
            "if x:\n        if y:\n            work()\n",
            SHIFTED,
        ),
        ("if x:\n    work()\n", "work()", "rest()\nwork()", "if x:\n    rest()\n    work()\n", SHIFTED),
        ("if x:\n    work()\n", "work()", "work()\n    rest()", "if x:\n    work()\n    rest()\n", ""),
    ],
)
def test_an_edit_with_one_certain_meaning_is_made_and_its_note_says_what_was_ignored(data, old, new, right, note):
    assert edited(data, old, new) == (right, note)


@pytest.mark.parametrize(
    ("data", "old", "new", "said"),
    [
        # More than one place.
        ("  work()\n\twork()\n", "work() ", "x", "2 places are like it"),
        ("a1\r\nb1\r\na1\r\nb1\r\n", "a1\nb1", "x", "matches 2 times"),
        ("  one()\n  two()\n    one()\n    two()\n", "one()\ntwo()", "x", "2 places are like it"),
        ("say(\u201cone\u201d)\nsay(\u201done\u201c)\n", 'say("one")', "x", "2 places are like it"),
        # No single shift of the indentation fits all lines.
        ("if a:\n    one()\ntwo()\n", "if a:\n  one()\n  two()", "x", "not found"),
        ("if a:\n    one()\n    two()\n", "if a:\n  one()\n    two()", "x", "not found"),
        # The shift does not determine the indentation of the new line.
        ("    one()\n      two()\n", "  one()\n    two()\n", "  one()\nsix()\n", "can't be determined"),
        ("\t\tone()\n\t\ttwo()\n", "    one()\n    two()\n", "    one()\n      two()\n", "can't be determined"),
        ("\tone()\n\ttwo()\n", "one()\ntwo()\n", "one()\n  two()\n", "can't be determined"),
        ("  one()  \n", "one() \n", "if a:\n  one()\n", "leaves out the indentation"),
        # Characters with two possible spellings.
        (
            "say \u201cone\u201d now\n",
            'say "one" now',
            'say "one" and "two" now',
            "repeat the edit with the file's own characters",
        ),
        ("pages 3\u20135\n", "pages 3-5", "pages 3-5 - all", "repeat the edit with the file's own characters"),
        # Blank lines beside changed lines.
        ("one()\n\n\ntwo()\nsix()\n", "one()\n\ntwo()\nsix()\n", "one()\n\nten()\nsix()\n", "other blank lines"),
        # Two lines would become one.
        ("first()\nsecond()\n", "first()\n", "third()", r"would run into the next one of f \('second\(\)'\)"),
        ("  first()\n  second()\n", "first() \n", "third()", "end both alike"),
        ("  first()\n  second()\n", "first() ", "third()\n", "end both alike"),
        ("first()\r\nsecond()\r\n", "first()\n", "third()", r"would run into the next one of f \('second\(\)'\)"),
        # Too little text to identify the place.
        ("  })\n", "}) \n", "x\n", "not found"),
        # Wrong line numbers.
        ("one\ntwo\nsix\n", "7\ttwo\n8\tsix", "x", "without the line numbers"),
        ("one\ntwo\nsix\n", "2\ttwo\n2\tsix", "x", "without the line numbers"),
        ("one\ntwo\nsix\n", "2\ttwo\n3\tsix", "2\ttwo\nsix", "without the line numbers"),
        # Backslashes that may be intended.
        ('say("one")\n', 'say(\\"one\\")', 'say(\\"a\\n\\")', "one layer of backslashes less"),
        ("one()\ntwo()\n", "one()\\ntwo()", "one('\\n')\\ntwo()", "real line breaks"),
        # A match inside a word.
        ("a=\u2019onet\u2019\n", "a='one", "x", "not found"),
    ],
)
def test_an_ambiguous_edit_is_refused(data, old, new, said):
    assert re.search(said, refusal(data, old, new))


def test_an_edit_of_an_outdated_block_does_not_change_a_copy_of_it_elsewhere():
    """The block has changed; its old text occurs elsewhere, with another indentation."""
    block = "def run(self):\n    total = load(self.path)\n    check(total)\n    return total\n"
    double = "".join(f"    {line}\n" for line in block.splitlines())
    changed = block.replace("check(total)", "check(total, strict=True)")
    assert "not found" in refusal(changed + "\nclass Other:\n" + double, block, "x\n")
    assert edited("class Other:\n" + double, block, block.replace("total", "all"))[1] == "indentation"


def test_replace_all_ignores_differences_in_line_endings_and_no_others():
    planned = plan(b"a1\nb1 a1\r\nb1\r\n", Change("a1\nb1", "x\ny", replace_all=True), "f")
    assert (planned.data, planned.count) == (b"x\ny x\r\ny\r\n", 2)
    assert refusal("  work()\n\twork()\n", "work() ", "x", replace_all=True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_an_inexact_edit_keeps_all_other_bytes_in_any_encoding(encoding):
    text = "é\r\n  one(é)  \r\n    two()\r\né"
    right = "é\r\n  one(é)  \r\n    six(é)\r\né"
    planned = plan(text.encode(encoding), Change("one(é)\n  two()", "one(é)\n  six(é)"), "f")
    assert planned.data == right.encode(encoding)


def test_invalid_bytes_are_kept_beside_and_inside_an_inexact_match():
    data = b"\xff\xc3\xa9\xc3\xa9\xc3\xa9\n  one() # \xfe\n  two()  \n\xfd"
    planned = plan(data, Change("  two()\n", "  six('\u00e9')\n"), "f")
    assert planned.data == b"\xff\xc3\xa9\xc3\xa9\xc3\xa9\n  one() # \xfe\n  six('\xc3\xa9')  \n\xfd"
