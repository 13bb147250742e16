"""No key typed before a question is on the screen answers it, at a live terminal."""

import pytest
from live_terminal import bash
from test_live_approvals import RUN, made


@pytest.mark.parametrize("early", ["y", "1", "\r", "\x1b[A", "\x1b[200~y\ry\x1b[201~", "yyyyyyyy", "y\r"])
def test_keys_typed_before_a_question_do_not_answer_it(ask, project, early):
    """Defect: `y` typed just before a question appeared became its answer."""
    script = [bash("until [ -e go ]; do sleep 0.02; done"), bash("touch t-1"), {"text": "Done."}]
    talk = ask(*script)
    talk.wait_for_question(RUN)
    talk.press("y")
    talk.wait_for("esc stops")
    talk.wait_until_gone(RUN)
    talk.type(early)
    (project / "go").touch()
    talk.type(early)
    talk.wait_for_question("touch t-1")
    assert made(project) == set()
    talk.press("n")
    talk.wait_for("Say why")
    talk.press("enter")
    talk.wait_for("Done.")
    assert made(project) == set()


def test_a_key_pressed_twice_answers_one_question(ask, project):
    talk = ask(bash("touch t-1"), bash("touch t-2"), {"text": "Done."})
    talk.wait_for_question("touch t-1")
    talk.type("yy")
    talk.wait_for("touch t-2")
    talk.wait_for_question("touch t-2")
    assert made(project) == {"t-1"}
    talk.press("n")
    talk.wait_for("Say why")
    talk.press("enter")
    talk.wait_for("Done.")
    assert made(project) == {"t-1"}


def test_what_was_typed_ahead_is_still_in_the_input_line_after_the_question(ask, project):
    talk = ask(bash("until [ -e go ]; do sleep 0.02; done"), bash("touch t-1"), {"text": "Done."})
    talk.wait_for_question(RUN)
    talk.press("y")
    talk.wait_until_gone(RUN)
    talk.type("yes but")
    (project / "go").touch()
    talk.wait_for_question("touch t-1")
    talk.press("y")
    talk.wait_for("Done.")
    talk.wait_turns(1)
    assert talk.typed == "yes but"
    talk.press("ctrl+c")
    talk.leave()
