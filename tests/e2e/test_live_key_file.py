"""The user's file of keys at a live terminal: changes, and what is wrong in it."""

import pytest


@pytest.fixture
def start(live, project):
    """Starts the program with a file of keys."""

    def start(text):
        folder = project.parent / ".config/bradawl"
        folder.mkdir(parents=True)
        (folder / "keys.toml").write_text(text)
        talk = live([{"text": "First."}, {"text": "Second."}], "-y")
        talk.wait_idle()
        return talk

    return start


def test_other_keys(start):
    talk = start('send = "ctrl+s"\nnewline = ["enter", "ctrl+j"]\nopen = "f5"\nrewind = "ctrl+x ctrl+u"\nqueue = []\n')
    talk.type("one")
    talk.press("enter")
    talk.type("two")
    talk.until(lambda: talk.typed == "one\ntwo", "two lines")
    talk.press("ctrl+s")
    talk.wait_for("First.")
    talk.wait_turns(1)
    talk.press("f5")
    talk.wait_for("q closes")
    talk.press("q")
    talk.wait_idle()
    talk.type("a text")
    talk.until(lambda: talk.typed == "a text", "the text")
    talk.press("ctrl+x ctrl+u")
    talk.until(lambda: talk.typed == "", "no text")
    talk.press("?")
    talk.wait_for_words("Ctrl+S send;")
    assert "F5" in talk.whole_text and "Ctrl+X Ctrl+U" in talk.whole_text and "(none)" in talk.whole_text
    talk.leave()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nope = 1", "'nope' is no action"),
        ('quee = "f5"', "did you mean queue?"),
        ('open = "hyper+x"', "'hyper+x' is no key"),
        ("open = 5", "open must be a key"),
        ("open = [1, 2]", "open must be a key"),
        ('open = "ctrl+r"', "ctrl+r has two actions, open and history"),
        ("this is not TOML", "can't be read"),
        ("\x00", "can't be read"),
    ],
)
def test_what_is_wrong_is_told_and_the_other_keys_work(start, text, told):
    talk = start(f"{text}\n")
    assert told in talk.words and "keys.toml" in talk.words
    talk.send("hello")
    talk.wait_for("First.")
    talk.wait_turns(1)
    talk.leave()
