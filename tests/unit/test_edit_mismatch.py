"""What `edit_file` says of an old_string that is not in the file: the place that is meant, and how it differs."""

import pytest

from bradawl.tools.editing.mismatch import explain_absence

LINES = "".join(f"def f{number}(a):\n    x = {number}\n    return x + a\n\n" for number in range(20))
MINIFIED = "var a=1;" + "function q(x){return x*2+1};" * 500 + "if(zeta){beta(1,2)}"


@pytest.mark.parametrize(
    ("old", "place", "said"),
    [
        (
            "x = 7\n    return x + b\n\ndef f8",
            30,
            "Line 31 differs in its text: at column 16 the file has 'a', old_string has 'b'.",
        ),
        (
            "rn x + a\n\ndef f8(a):\n    x = 8\n    return x +b",
            31,
            "Line 35 differs in its text: at column 15 the file has ' a', old_string has 'b'.",
        ),
        (
            "def f7(a):\n    x = 7\n\n    return x + a\n\ndef f8(a):\n    x = 8",
            29,
            "old_string has a blank line more after line 30.",
        ),
        ("def f7(a):\n    x = 7\n    return x + a\ndef f8(a):\n    x = 8\n", 29, "old_string lacks the blank line 32."),
        ("def f7(a):\n    return x + a\n\ndef f8(a):\n    x = 8\n", 29, "old_string lacks line 30."),
        (
            "def f7(a):\n    x = 7\n    print(a)\n    return x + a\n\ndef f8(a):",
            29,
            "old_string has a line more after line 30: 'print(a)'.",
        ),
        (
            "def f7(a):\n    y = 7\n    return x + a\n\n\ndef f8(a):\n    x = 9\n    return",
            29,
            "Line 30 differs in its text: at column 5 the file has 'x', old_string has 'y'.\n"
            "old_string has a blank line more after line 32.\n"
            "Line 34 differs in its text: at column 9 the file has '8', old_string has '9'.",
        ),
    ],
)
def test_lines_are_compared_with_those_that_are_meant(old: str, place: int, said: str):
    text = explain_absence(LINES, old)
    assert text.startswith(f"The closest place is line {place}:\n{place}\t")
    assert [line for line in text.splitlines()[1:] if "\t" not in line] == said.splitlines()


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        (
            "first = 1\nlast = 2",
            "last = 2\n",
            "old_string ends with a line break, and the file ends without one after line 2: leave it out.",
        ),
        (
            "first = 1\nno newline at end",
            "end\n",
            "old_string ends with a line break, and the file ends without one after line 2: leave it out.",
        ),
        ("", "abc", "The file is empty: write_file gives it its content."),
        ("\n \n", "abc", "The file has only white space."),
        (
            "a = 1\nlast = 2",
            "a = 1\nlast = 2\n\nmore",
            "The closest place is line 1:\n1\ta = 1\n2\tlast = 2\nThe file ends there, old_string goes on.",
        ),
        (
            MINIFIED,
            "if(zeta){beta(1,3)}",
            "The closest place is in line 1, which is very long, near character 14025:\n"
            f"{MINIFIED[-103:]}\nThere the file has '2', old_string has '3'. Copy a short piece of it exactly.",
        ),
        (
            MINIFIED,
            "function q(y){return y*3}",
            f"The closest place is in line 1, which is very long, near character 20:\n{MINIFIED[:119]}\n"
            "It has the first 11 characters of old_string; then it goes on with 'x){return x*2+1};function q(x)', "
            "old_string with 'y){return y*3}'. Copy a short piece of it exactly.",
        ),
    ],
)
def test_special_files_have_texts_of_their_own(text: str, old: str, said: str):
    assert explain_absence(text, old) == said
