"""`/rewind`, Esc Esc and `/undo` at a live terminal: a list of prompts, and questions with one key each."""

import pytest
from live_terminal import MARK

MINUS = "\u2212"
CHANGED = "one\nTWO\nthree\nfour\n"
ORIGINAL = "one\ntwo\nthree\n"
WHICH = "Go back to before which prompt?"
WHAT = "Files and conversation"


def writing(name, text):
    return {"tool_calls": [{"id": "a", "name": "write_file", "arguments": {"file_path": name, "content": text}}]}


@pytest.fixture
def start(live, project):
    """A conversation of three prompts: the first changes a file, the second makes one."""

    def begin(**options):
        (project / "app.py").write_text(ORIGINAL)
        read = {"tool_calls": [{"id": "r", "name": "read_file", "arguments": {"file_path": "app.py"}}]}
        script = [read, writing("app.py", CHANGED), {"text": "First."}]
        script += [writing("new.txt", "x\n" * 50), {"text": "Second."}, {"text": "Third."}, {"text": "Fourth."}]
        talk = live(script, "-y", **options)
        talk.wait_idle()
        for number, text in enumerate(("change app.py", "make a file", "explain it"), 1):
            talk.send(text)
            talk.wait_turns(number)
        return talk

    return begin


@pytest.fixture
def talk(start):
    return start()


def test_a_prompt_is_chosen_and_files_and_conversation_go_back(talk, project):
    talk.press("esc esc")
    talk.wait_for_question(WHICH)
    assert talk.typed == "" and "type to search" in talk.text
    rows = [row.strip("│ ") for row in talk.lines if "just now" in row]
    assert rows == [
        f"{MARK} 3. explain it     just now · no files",
        f"2. make a file    just now · 1 file +50 {MINUS}0",
        f"1. change app.py  just now · 2 files +52 {MINUS}1",
    ]
    talk.type("change")
    talk.wait_for("1 of 1")
    talk.press("enter")
    talk.wait_for_question(WHAT)
    talk.wait_for('Go back to before "change app.py"?', "3 prompts", f"2 files +1 {MINUS}52")
    assert (project / "app.py").read_text() == CHANGED
    talk.press("b")
    talk.wait_for_words("/redo takes this back")
    talk.until(lambda: talk.typed == "change app.py", "the prompt, to be edited")
    assert (project / "app.py").read_text() == ORIGINAL and not (project / "new.txt").exists()
    talk.type(" once more")
    talk.press("enter")
    talk.wait_for_whole("Fourth.")
    talk.wait_turns(4)
    talk.leave()


def test_the_question_shows_the_difference_and_esc_goes_back_to_the_list(talk, project):
    talk.send("/rewind")
    talk.wait_for_question(WHICH)
    talk.press("down down enter")
    talk.wait_for_question(WHAT)
    for key in ("v", "ctrl+o"):
        talk.press(key)
        talk.wait_for("q closes", "Would go back to before step 1", f"2 {MINUS} TWO", "2 + two")
        talk.press("q")
        talk.wait_for_question(WHAT)
    talk.press("esc")
    talk.wait_for_question(WHICH)
    talk.wait_for(f"{MARK} 1. change app.py", "3 of 3")
    talk.press("esc")
    talk.wait_for("Nothing was changed.")
    talk.wait_idle()
    assert (project / "app.py").read_text() == CHANGED and talk.typed == ""
    talk.leave()


@pytest.mark.parametrize(
    ("key", "text", "file", "is_there"),
    [("c", "make a file", CHANGED, True), ("f", "", CHANGED, False), ("n", "", CHANGED, True)],
)
def test_one_part_alone_goes_back_or_nothing(talk, project, key, text, file, is_there):
    talk.send("/rewind 2")
    talk.wait_for_question(WHAT)
    talk.press(key)
    talk.wait_for_words("Nothing was changed." if key == "n" else "/redo takes this back")
    talk.until(lambda: talk.is_idle and talk.typed == text, f"the input line with {text!r}")
    assert (project / "app.py").read_text() == file
    assert (project / "new.txt").exists() == is_there
    talk.press("ctrl+c")
    talk.leave()


def test_a_prompt_that_changed_no_file_offers_the_conversation_alone(talk):
    talk.send("/rewind 3")
    talk.wait_for_question("Conversation only")
    assert "Files only" not in talk.text and WHAT not in talk.text
    talk.press("enter")
    talk.until(lambda: talk.typed == "explain it", "the prompt")
    talk.press("ctrl+c")
    talk.leave()


@pytest.mark.parametrize(
    ("key", "app", "new"),
    [("n", CHANGED, "mine\n"), ("esc", CHANGED, "mine\n"), ("o", ORIGINAL, "mine\n"), ("a", ORIGINAL, None)],
)
def test_files_that_were_changed_since_are_asked_about_with_keys(talk, project, key, app, new):
    (project / "new.txt").write_text("mine\n")
    talk.send("/undo 1")
    talk.wait_for_question("1 file was changed since. Restore?")
    talk.wait_for("new.txt: it was changed since")
    talk.press("v")
    talk.wait_for("q closes", "new.txt: removed", "mine")
    talk.press("q")
    talk.wait_for_question("1 file was changed since. Restore?")
    talk.press(key)
    talk.wait_for_words("Nothing was changed." if app == CHANGED else "/redo takes this back")
    talk.wait_idle()
    assert (project / "app.py").read_text() == app
    assert (project / "new.txt").read_text() == new if new else not (project / "new.txt").exists()
    talk.press("ctrl+c")
    talk.leave()


def test_a_session_without_steps_has_no_list(live):
    talk = live([], "-y")
    talk.wait_idle()
    talk.send("/rewind")
    talk.wait_for("The session has no steps yet.")
    talk.wait_idle()
    talk.leave()


def test_changes_that_were_not_saved_are_listed_so_and_the_conversation_alone_goes_back(live, project):
    talk = live([writing("new.txt", "x\n"), {"text": "Made."}], "-y", "--no-undo")
    talk.wait_idle()
    talk.send("make a file")
    talk.wait_turns(1)
    talk.send("/rewind")
    talk.wait_for_question(WHICH)
    talk.wait_for("1. make a file  just now · not saved")
    talk.press("enter")
    talk.wait_for_question("Conversation only")
    talk.wait_for("Not all can be restored (1).")
    talk.press("c")
    talk.until(lambda: talk.typed == "make a file", "the prompt")
    assert (project / "new.txt").exists()
    talk.press("ctrl+c")
    talk.leave()


def test_list_and_question_fit_forty_columns(start, project):
    talk = start(size=(24, 40))
    talk.press("esc esc")
    talk.wait_for_question(WHICH)
    talk.wait_for("3. explain it", f"just now · 2 files +52 {MINUS}1")
    talk.press("end enter")
    talk.wait_for_question(WHAT)
    talk.wait_for("f  Files only", "n  Cancel")
    talk.press("v")
    talk.wait_for("q closes")
    talk.press("q")
    talk.wait_for_question(WHAT)
    talk.press("f")
    talk.wait_for_words("/redo takes this back")
    talk.wait_idle()
    assert (project / "app.py").read_text() == ORIGINAL
    talk.leave()


def test_a_short_difference_is_printed_below_its_summary(talk):
    talk.send("/diff app.py")
    talk.wait_for("1 file +2 " + MINUS + "1", f"2 {MINUS} two", "4 + four")
    talk.wait_idle()
    assert "Ctrl+O" not in talk.text and "new.txt" not in talk.lines[-8:]
    talk.send("/diff nothing/here")
    talk.wait_for("No file has changed at nothing/here.")
    talk.wait_idle()
    talk.leave()


def test_a_long_difference_opens_and_leaves_its_summary_behind(talk):
    talk.send("/diff")
    talk.wait_for("what has changed", "q closes")
    talk.press("q")
    talk.wait_for(f"2 files +52 {MINUS}1", f"new.txt  +50 {MINUS}0  new", "Ctrl+O shows all of it")
    talk.wait_idle()
    assert "49 + x" not in talk.whole_text
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full", "50 + x")
    talk.press("q")
    talk.wait_idle()
    talk.send("/diff 2")
    talk.wait_for("what has changed", "new.txt: new (+50 -0)")
    talk.press("q")
    talk.wait_idle()
    talk.leave()


@pytest.mark.parametrize("columns", [40, 80])
def test_help_is_short_and_help_all_opens_everything(live, columns):
    talk = live([], "-y", size=(24, columns))
    talk.wait_idle()
    talk.send("/help")
    talk.wait_for("Undo: /undo /redo /rewind /diff", "Ctrl+O shows all of it")
    talk.wait_idle()
    begin = max(number for number, line in enumerate(talk.whole) if line == f"{MARK} /help")
    end = next(number for number, line in enumerate(talk.whole) if "Ctrl+O shows all of it" in line)
    assert end - begin <= 21, talk.whole_text
    talk.send("/help all")
    talk.wait_for("help", "q closes", "Conversation")
    continued = [line for line in talk.lines if line.startswith(" " * 16)]
    assert any("plan or auto" in line for line in continued), "a wrapped line stays in its column"
    talk.type("/next permission")
    talk.press("enter")
    talk.wait_for("next permission")
    talk.press("q")
    talk.wait_idle()
    assert "next permission" not in talk.whole_text
    talk.leave()
