"""`!command`, `@file`, completion of commands, and lists to choose from, at a live terminal."""

import json

import pytest
from test_live_paste import prompt_parts
from wcwidth import wcswidth


@pytest.fixture
def talk(live, project):
    (project / "notes.md").write_text("remember the milk\n")
    (project / "src").mkdir()
    (project / "src/main.py").write_text("print('hello')\n")
    terminal = live([{"text": "First."}, {"text": "Second."}], "-y")
    terminal.wait_idle()
    return terminal


def test_a_command_of_the_user_runs_and_the_model_sees_it_with_the_next_prompt(live, project):
    talk = live([{"text": "I see.", "expect": "from-the-shell"}], "-y")
    talk.wait_idle()
    talk.send("!echo from-the-shell; echo >&2 oops; exit 3")
    talk.wait_for("oops", "exit code 3")
    talk.wait_idle()
    talk.send("what was that?")
    talk.wait_for("I see.")
    talk.wait_turns(1)
    talk.leave()


def test_esc_ends_a_command_of_the_user(talk):
    talk.send("!echo begun; sleep 300")
    talk.wait_for("begun\n", "esc stops")
    talk.press("esc")
    talk.wait_for("cancelled")
    talk.wait_idle()
    talk.leave()


def test_escapes_of_a_command_of_the_user_are_no_sequences(talk, project):
    (project / "hostile").write_bytes(b"\x1b[2J\x1b]0;pwned\x07red\x1b[31m\r\n")
    talk.send("!cat hostile")
    talk.wait_for("red\n")
    talk.wait_idle()
    assert talk.screen.title != "pwned" and b"\x1b]0;pwned" not in talk.raw
    talk.leave()


def test_an_at_completes_a_file_and_attaches_it(talk):
    talk.type("see @note")
    talk.wait_for("notes.md")
    talk.press("tab")
    talk.until(lambda: talk.typed == "see @notes.md", "the completed path")
    talk.press("enter")
    talk.until(lambda: "attached: notes.md" in talk.words or talk.typed == "see @notes.md", "the prompt")
    if talk.typed:
        talk.press("enter")
    talk.wait_turns(1)
    assert "attached: notes.md" in talk.words
    assert "remember the milk" in json.dumps(prompt_parts(talk.home))
    talk.leave()


def test_an_at_finds_a_file_in_a_folder_by_its_letters(talk):
    talk.type("@mainpy")
    talk.wait_for("src/main.py")
    talk.press("esc")
    talk.wait_until_gone("src/main.py")
    assert talk.typed == "@mainpy"
    talk.press("ctrl+c")
    talk.leave()


def test_a_slash_completes_commands(talk):
    talk.type("/sta")
    talk.wait_for("/status")
    talk.press("tab enter")
    talk.until(lambda: "/status" in talk.typed or "folder " in talk.words, "the command")
    if talk.typed:
        talk.press("enter")
    talk.wait_for_words("folder ")
    talk.wait_idle()
    talk.leave()


def test_the_menu_leaves_nothing_behind(talk):
    before = talk.text
    talk.type("/")
    talk.until(lambda: talk.text.count("/") > 6, "the menu")
    talk.press("backspace")
    talk.until(lambda: talk.text == before, "the screen as before")
    talk.leave()


def test_a_list_is_searched_by_typing_and_chosen_with_enter(live):
    talk = live([{"text": "First answer."}], "-y")
    talk.wait_idle()
    talk.send("a first prompt")
    talk.wait_turns(1)
    talk.send("/clear")
    talk.wait_for("A new session begins.")
    talk.wait_idle()
    talk.send("/resume")
    talk.wait_for_question("type to search")
    talk.type("first")
    talk.wait_for("search: first")
    talk.press("enter")
    talk.wait_for_words("First answer. ")
    talk.wait_idle()
    talk.leave()


def test_a_list_can_be_left_with_esc_and_the_draft_is_kept(live):
    talk = live([{"text": "First answer."}], "-y")
    talk.wait_idle()
    talk.send("a first prompt")
    talk.wait_turns(1)
    talk.send("/clear")
    talk.wait_for("A new session begins.")
    talk.wait_idle()
    talk.send("/resume")
    talk.wait_for_question("type to search")
    talk.type("zzzz")
    talk.wait_for("nothing found")
    talk.press("enter")
    talk.press("backspace " * 4 + "down up pagedown esc")
    talk.wait_idle()
    talk.leave()


def test_a_folder_with_only_instructions_asks_for_trust(live, project):
    """Defect: it asked nothing and said nothing."""
    (project / "AGENTS.md").write_text("Always answer in verse.\n")
    talk = live([{"text": "In verse."}])
    talk.wait_for("is not trusted", "AGENTS.md")
    talk.type("y")
    talk.press("enter")
    talk.wait_idle()
    talk.send("hello")
    talk.wait_for("In verse.")
    talk.wait_turns(1)
    talk.leave()
    again = live([{"text": "Again."}])
    again.wait_idle()
    assert "is not trusted" not in again.whole_text
    again.leave()


def borders(talk):
    """The rows of the screen that begin and end a frame."""
    return [row for row, line in enumerate(talk.lines) if line.startswith(("╭", "╰"))]


@pytest.mark.parametrize("columns", [40, 80])
def test_a_list_of_300_sessions_with_wide_names_fits_the_screen(live, columns):
    talk = live([{"text": "First answer."}], "-y", size=(24, columns))
    talk.wait_idle()
    talk.send("original")
    talk.wait_turns(1)
    talk.leave()
    (log,) = talk.home.glob(".local/share/bradawl/projects/*/sessions/*.jsonl")
    for number in range(300):
        name = ("日本語のとても長いセッション名です、切らなければなりません", "fix the parser of the settings")[
            number % 2
        ]
        path = log.with_name(f"{log.stem[:-3]}{number:03d}.jsonl")
        path.write_text(log.read_text().replace(log.stem, path.stem).replace('"original"', f'"{name} nr{number}"'))
    log.unlink()
    talk = live([], "-y", size=(24, columns))
    talk.wait_idle()
    talk.send("/resume")
    talk.wait_for_question("type to search")
    talk.until(lambda: "1 of 300" in talk.text, "the list")
    top, bottom = borders(talk)
    assert wcswidth(talk.lines[top]) == wcswidth(talk.lines[bottom]) == columns
    assert max(map(wcswidth, talk.lines[top : bottom + 1])) == columns
    talk.type("nosuch")
    talk.wait_for("nothing found", "search: nosuch", "0 of 300")
    assert borders(talk) == [top, bottom]
    talk.press("backspace " * 6)
    talk.type("nr217")
    talk.wait_for("search: nr217", "1 of 1")
    talk.press("enter")
    talk.wait_for_words("First answer. ")
    talk.wait_idle()
    talk.leave()
