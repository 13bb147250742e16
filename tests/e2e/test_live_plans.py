"""A plan at a live terminal: it is printed as Markdown before the question whether to carry it out."""

import pytest

PLAN = """## Move the parser

- read the file
  - line by line
  - with a **limit**

```python
def total(xs):
    return sum(xs)
```

""" + "\n\n".join(f"{number}. step {number}" for number in range(1, 21))
PROPOSE = {"tool_calls": [{"id": "p", "name": "exit_plan", "arguments": {"plan": PLAN}}]}
ASKED = "Shall this plan be carried out?"


@pytest.fixture
def talk(live):
    talk = live([PROPOSE, {"text": "So it is."}], "--permission-mode", "plan")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for_question(ASKED)
    return talk


def assert_rendered(rows):
    assert "Move the parser" in [row.strip(" #") for row in rows]
    marks = [row for row in rows if row.endswith(("read the file", "line by line", "with a limit"))]
    indents = [len(row) - len(row.lstrip()) for row in marks]
    assert len(marks) == 3 and indents[0] < indents[1] == indents[2], marks
    code = next(number for number, row in enumerate(rows) if "def total(xs):" in row)
    assert rows[code + 1].index("return") == rows[code].index("def") + 4


def test_a_plan_is_printed_as_markdown_and_the_question_holds_its_answers(talk):
    """Defect: the question held five lines of the plan's source, and cut off what it asks."""
    assert_rendered(talk.whole)
    box = talk.lines[next(number for number, row in enumerate(talk.lines) if "The model asks" in row) :]
    assert box[1] == f"│ {ASKED}" and "step 20" in talk.text and "more lines" not in talk.text
    assert any("No, go on planning" in row for row in box) and not any("step" in row for row in box)
    talk.press("1")
    talk.wait_for("So it is.")
    talk.wait_turns(1)
    assert talk.whole_text.count("step 7") == 1 and "You answered: Yes, and ask me" in talk.whole_text
    assert "**limit**" not in talk.whole_text and "```" not in talk.whole_text and "##" not in talk.whole_text
    talk.leave()


def test_all_of_a_plan_is_shown_as_markdown(talk):
    """Defect: every line began in the first column."""
    talk.press("ctrl+o")
    talk.wait_for("q closes")
    assert_rendered(talk.lines)
    talk.press("end")
    talk.wait_for(ASKED)
    talk.press("q")
    talk.wait_for_question("No, go on planning")
    talk.press("o")
    talk.wait_for("Your answer")
    assert talk.whole_text.count("step 7") == 1 and f"The model asks: {ASKED}" in talk.text
