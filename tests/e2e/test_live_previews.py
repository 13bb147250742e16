"""What a question for permission shows: heading and keys at any height, indentation, all of it with `v`."""

import pytest
from live_terminal import bash
from test_live_approvals import edit, made, write


@pytest.mark.parametrize("size", [(24, 80), (24, 50), (12, 40), (60, 200)], ids=str)
def test_a_long_preview_keeps_heading_and_keys(ask, project, size):
    """Defect: long diffs showed 80 removed lines and no added one; nothing said how to see the rest."""
    talk = ask(write("".join(f"line {number}\n" for number in range(400))), {"text": "Done."}, size=size)
    talk.wait_for_question("Write t-new.txt?")
    assert "more lines · v shows all" in talk.text and "Yes" in talk.text
    if size[0] < 24:
        talk.press("up up")  # only a part of the answers fits
    talk.wait_for("No, and say why")
    assert len(talk.lines) <= size[0]
    talk.press("v")
    talk.until(lambda: talk.lines and " 1-" in talk.lines[-1], "the pager")
    talk.press("end")
    talk.wait_for("line 399")
    talk.press("q")
    talk.wait_for_question("Write t-new.txt?")
    talk.press("y")
    talk.wait_for("Done.")
    assert made(project) == {"t-new.txt"}


def test_the_arguments_of_an_edit_keep_their_indentation(ask, project):
    """Defect: they lost it."""
    (project / "app.py").write_text("def total(xs):\n    if xs:\n        return sum(xs) - 1\n")
    talk = ask(edit("        return sum(xs) - 1", "        return sum(xs)"), {"text": "Done."})
    talk.wait_for_question("Edit app.py?")
    rows = [line for line in talk.lines if "return sum(xs)" in line]
    assert len(rows) == 2 and all("        return sum(xs)" in row for row in rows)
    talk.press("v")
    talk.wait_for("of ")
    assert "        return sum(xs) - 1" in talk.text
    talk.press("q")
    talk.wait_for_question("Edit app.py?")
    talk.press("y")
    talk.wait_for("Done.")
    assert "return sum(xs)\n" in (project / "app.py").read_text()


def test_invisible_characters_of_a_command_are_spelled_out(ask):
    talk = ask(write("\u202ehello\x1b[2J\u200b  # \x1b]0;pwned\x07\n", "t-\u202e"), {"text": "Done."})
    talk.wait_for_question("Write t-\\u202e?")
    assert "\\u202ehello\\x1b[2J\\u200b" in talk.text
    talk.press("n")
    talk.wait_for("Say why")
    talk.press("enter")
    talk.wait_for("Done.")
    raw = talk.raw.decode("utf-8", "replace")
    assert "\u202e" not in raw and "\x1b]0;pwned" not in raw and "\u200b" not in raw


def test_what_a_sub_agent_is_refused_leaves_a_trace(ask, project):
    """Defect: a refused call left none."""
    call = {"name": "agent", "arguments": {"prompt": "find it", "description": "find the place"}}
    talk = ask({"tool_calls": [call]}, bash("touch t-1"), {"text": "I could not."}, {"text": "Alone then."})
    talk.wait_for_question("touch t-1")
    talk.press("n")
    talk.wait_for("Say why")
    talk.type("by myself")
    talk.press("enter")
    talk.wait_for("Alone then.")
    talk.wait_turns(1)
    assert "find the place" in talk.whole_text and made(project) == set()


def test_an_edit_that_can_only_fail_is_not_asked_about(ask, project):
    """Defect: its preview looked as if the text had been found."""
    (project / "app.py").write_text("def total(xs):\n    return sum(xs)\n")
    talk = ask(edit("return max(xs, ys)", "return 0"), {"text": "I see.", "expect": "was not found"})
    talk.wait_for("I see.")
    assert "Edit app.py?" not in talk.whole_text


def test_an_edit_that_matches_loosely_says_so(ask, project):
    (project / "app.py").write_text("def total(xs):\n    if xs:\n        return sum(xs) - 1\n    return 0\n")
    talk = ask(edit("if xs:\n    return sum(xs) - 1\nreturn 0", "return sum(xs)"), {"text": "Done."})
    talk.wait_for_question("Edit app.py?")
    assert "not word for word" in talk.text
    talk.press("y")
    talk.wait_for("Done.")
    assert "sum(xs) - 1" not in (project / "app.py").read_text()


@pytest.mark.parametrize("command", ["pip install requests", "touch t-1", "make test"])
def test_a_question_about_an_ordinary_command_takes_eight_rows(ask, command):
    """Defect: it took several paragraphs."""
    talk = ask(bash(command), {"text": "Done."})
    talk.wait_for_question("Run this command?")
    talk.wait_for("asked because")
    first = next(number for number, line in enumerate(talk.lines) if "Run this command?" in line)
    last = next(number for number, line in enumerate(talk.lines) if "asked because" in line)
    assert last - first + 1 <= 8
    talk.press("v")
    talk.until(lambda: "Run this command?" not in talk.text, "the pager")
    talk.wait_for("in the sandbox it may write to")
