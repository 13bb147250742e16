"""Questions for permission at a live terminal: what each key answers, and that no key typed before is an answer."""

import pytest
from live_terminal import bash

RUN = "Run this command?"
ASK = {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which one?", "options": ["red", "blue"]}}]}


def made(folder):
    return {each.name for each in folder.glob("t-*")}


def edit(old, new, path="app.py"):
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return {"tool_calls": [{"id": "e", "name": "edit_file", "arguments": arguments}]}


def write(content, path="t-new.txt"):
    return {"tool_calls": [{"id": "w", "name": "write_file", "arguments": {"file_path": path, "content": content}}]}


@pytest.mark.parametrize("keys", ["y", "Y", "1", "enter", "down up enter", "up down enter"])
def test_yes(ask, project, keys):
    talk = ask(bash("touch t-1"), {"text": "Done."})
    talk.wait_for_question(RUN)
    assert "touch t-1" in talk.text and "asked because" in talk.text
    talk.press(keys)
    talk.wait_for("Done.")
    talk.wait_turns(1)
    assert made(project) == {"t-1"}
    assert RUN not in talk.whole_text  # the frame leaves nothing behind
    talk.leave()


@pytest.mark.parametrize("keys", ["a", "2", "down enter"])
def test_yes_for_the_session_asks_the_same_no_more(ask, project, keys):
    talk = ask(bash("touch t-1"), bash("touch t-1"), bash("touch t-2"), {"text": "Done."})
    talk.wait_for_question(RUN)
    talk.press(keys)
    talk.wait_for_question("touch t-2")
    talk.press("n")
    talk.wait_for("Say why")
    talk.press("enter")
    talk.wait_for("Done.")
    assert made(project) == {"t-1"}


@pytest.fixture
def ask_edit(ask, project):
    """Starts a program that asks to edit two files, and gives it a prompt."""

    def start(*last):
        for name in ("app.py", "other.py"):
            (project / name).write_text("old\n")
        talk = ask(edit("old", "new"), edit("new", "newer"), edit("old", "new", "other.py"), *last)
        talk.wait_for_question("Edit app.py?")
        return talk

    return start


def rules_on_disk(folder):
    return "".join(path.read_text() for path in folder.parent.rglob("*.toml"))


def test_yes_for_the_project_is_saved_and_told(ask_edit, project):
    talk = ask_edit({"text": "Done."})
    talk.wait_for("Always here: Edit(./app.py)")
    talk.press("p")
    talk.wait_for_question("Edit other.py?")  # the second edit of app.py was not asked about
    assert "Saved in" in talk.whole_text and "Edit(./app.py)" in rules_on_disk(project)
    talk.press("n")
    talk.wait_for("Say why")
    talk.press("enter")
    talk.wait_for("Done.")
    assert (project / "app.py").read_text() == "newer\n" and (project / "other.py").read_text() == "old\n"


def test_the_rule_can_be_edited(ask_edit, project):
    talk = ask_edit({"text": "Done."})
    talk.press("e")
    talk.until(lambda: talk.typed == "Edit(./app.py)", "the rule in the input line")
    talk.press("left " * 8 + "ctrl+k")
    talk.until(lambda: talk.typed == "Edit(.", "a part of the rule")
    talk.type("/*.py)")
    talk.press("enter")
    talk.wait_for("Done.")
    assert "Edit(./*.py)" in rules_on_disk(project)
    assert (project / "other.py").read_text() == "new\n"


def test_a_rule_that_does_not_cover_the_call_is_not_saved_and_the_question_comes_again(ask_edit, project):
    talk = ask_edit({"text": "Done."})
    talk.press("e")
    talk.until(lambda: talk.typed, "the rule")
    talk.press("ctrl+u")
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.type("Edit(./nothing.py)")
    talk.press("enter")
    talk.wait_for("Nothing was saved")
    talk.wait_for_question("Edit app.py?")
    talk.press("e")
    talk.until(lambda: talk.typed, "the rule")
    talk.press("esc")
    talk.wait_for_question("Edit app.py?")
    assert rules_on_disk(project) == "" and (project / "app.py").read_text() == "old\n"


def test_the_reason_of_a_no_reaches_the_model_and_the_draft_comes_back(ask, project):
    talk = ask(bash("until [ -e go ]; do sleep 0.02; done"), bash("touch t-1"), {"text": "I see.", "expect": "not now"})
    talk.wait_for_question(RUN)
    talk.press("y")
    talk.wait_for("esc stops")
    talk.type("a draft")
    talk.until(lambda: talk.typed == "a draft", "a draft")
    (project / "go").touch()
    talk.wait_for_question("touch t-1")
    talk.press("n")
    talk.wait_for("Say why")
    assert talk.typed == ""
    talk.type("not now, please")
    talk.press("enter")
    talk.wait_for("I see.")
    talk.until(lambda: talk.typed == "a draft", "the draft")
    assert made(project) == set()


def test_a_note_with_a_yes_reaches_the_model(ask, project):
    talk = ask(bash("touch t-1"), {"text": "I noted it.", "expect": "use tabs"})
    talk.wait_for_question(RUN)
    talk.press("tab")
    talk.wait_for("A note for the model")
    talk.type("use tabs everywhere")
    talk.press("enter")
    talk.wait_for("I noted it.")
    assert made(project) == {"t-1"}


@pytest.mark.parametrize("key", ["esc", "ctrl+c"])
def test_leaving_the_question_is_a_no_and_ends_the_turn(ask, project, key):
    talk = ask(bash("touch t-1"), {"text": "Never."})
    talk.wait_for_question(RUN)
    talk.press(key)
    talk.wait_for("Interrupted.")
    talk.wait_turns(1)
    assert made(project) == set()
    talk.leave()


@pytest.mark.parametrize("keys", ["7", "0", "q", "space", "f5", "left", "tab tab", "backspace"])
def test_other_keys_are_no_answer(ask, project, keys):
    talk = ask(bash("touch t-1"), {"text": "Done."})
    talk.wait_for_question(RUN)
    talk.type(" ") if keys == "space" else talk.press(keys.replace("tab tab", "left right"))
    talk.type("\x1b[200~y\r\x1b[201~")  # a paste is no answer
    talk.press("n")
    talk.wait_for("Say why")
    talk.press("enter")
    talk.wait_for("Done.")
    assert made(project) == set()


def test_ctrl_d_at_a_question_leaves_nothing_undecided(ask, project):
    talk = ask(bash("touch t-1"), {"text": "Never."})
    talk.wait_for_question(RUN)
    talk.press("ctrl+d")
    talk.press("n")
    talk.wait_for("Say why")
    assert made(project) == set()


def test_the_questions_of_two_agents_queue(ask, project):
    agents = [
        {"id": str(n), "name": "agent", "arguments": {"prompt": f"part {n}", "description": f"part {n}"}}
        for n in (1, 2)
    ]
    talk = ask(
        {"tool_calls": agents}, bash("touch t-1"), bash("touch t-2"), *[{"text": "Part done."}] * 2, {"text": "All."}
    )
    seen = set()
    while "All." not in talk.text:
        talk.until(lambda: ("All." in talk.text and talk.is_idle) or talk.is_asking, "more")
        if "All." in talk.text:
            break
        seen |= {name for name in ("t-1", "t-2") if f"touch {name}" in talk.text}
        talk.press("y")
        talk.until(lambda: not talk.is_asking, "the end of the question")
    talk.wait_turns(1)
    assert made(project) == {"t-1", "t-2"} and seen == {"t-1", "t-2"}


@pytest.mark.parametrize(("keys", "answer"), [("2", "blue"), ("down enter", "blue"), ("1", "red")])
def test_a_question_of_the_model_is_answered_with_a_key(ask, keys, answer):
    talk = ask(ASK, {"text": "So it is.", "expect": f"The user says: {answer}"})
    talk.wait_for_question("The model asks")
    assert "Which one?" in talk.text and "red" in talk.text and "blue" in talk.text
    talk.press(keys)
    talk.wait_for("So it is.")
    talk.wait_turns(1)
    talk.leave()


def test_a_question_of_the_model_can_have_another_answer(ask):
    talk = ask(ASK, {"text": "So it is.", "expect": "The user says: neither"})
    talk.wait_for_question("The model asks")
    talk.press("3")
    talk.wait_for("Your answer")
    talk.type("neither of them")
    talk.press("enter")
    talk.wait_for("So it is.")


@pytest.mark.parametrize("typed", ["neither", "oMongo", "v2 of it", "no"])
def test_an_answer_can_be_typed_at_once(ask, typed):
    """Defect: its first letters were keys, and the rest was the answer."""
    talk = ask(ASK, {"text": "So it is.", "expect": f"The user says: {typed}"})
    talk.wait_for_question("The model asks")
    talk.type(typed)
    talk.until(lambda: talk.typed == typed, "the answer")
    talk.press("enter")
    talk.wait_for("So it is.")
    talk.leave()


def test_what_comes_with_the_key_of_a_refusal_is_its_reason(ask, project):
    talk = ask(bash("touch t-1"), {"text": "I see.", "expect": "because I said so"})
    talk.wait_for_question("touch t-1")
    talk.type("nbecause I said so")
    talk.until(lambda: talk.typed == "because I said so", "the reason")
    talk.press("enter")
    talk.wait_for("I see.")
    assert not made(project)
    talk.leave()


def test_a_question_of_the_model_that_is_left_is_no_answer_and_the_turn_goes_on(ask):
    talk = ask(ASK, {"text": "I decided.", "expect": "No answer"})
    talk.wait_for_question("The model asks")
    talk.press("esc")
    talk.wait_for("I decided.")


def test_what_the_sandbox_refuses_anyway_is_not_asked_about(ask, project):
    """Defect: the user allowed a write in the home folder, and then the sandbox refused it."""
    talk = ask(bash("echo x > ~/t-home"), {"text": "I see.", "expect": "the sandbox can't let a program write"})
    talk.wait_for("I see.")
    assert RUN not in talk.whole_text and not made(project.parent)
