"""The input line: long pastes, images, names behind `@`, and what the history keeps of them."""

import pytest
from prompt_toolkit.completion import Completion
from prompt_toolkit.history import InMemoryHistory

from bradawl.app.attached_names import is_pasted
from bradawl.app.tui.live.editor import Editor
from bradawl.app.tui.live.history import PrivateHistory, open_history, remember
from bradawl.app.tui.live.input import LONGEST_PASTE
from patience import cpu_limit


@pytest.fixture
def editor():
    return Editor(InMemoryHistory(), None, when_changed=lambda: None)


def lines(count, word="line"):
    return "".join(f"{word} {number}\n" for number in range(count))


def typed(editor, text):
    for character in text:
        editor.type(character)


# ------------------------------------------------------------------ long pastes


def test_a_paste_that_is_too_long_is_refused_with_what_to_do(editor):
    typed(editor, "before")
    problem = editor.paste("x" * (LONGEST_PASTE + 1))
    assert "not inserted" in problem and "4,000,000" in problem and "file" in problem
    assert editor.text == "before"


def test_the_longest_paste_takes_less_than_a_second(editor):
    text = ("hello world line\n" * (LONGEST_PASTE // 17))[:LONGEST_PASTE]
    with cpu_limit(1):
        assert editor.paste(text) == ""
        assert editor.take().text == text


def test_a_text_that_is_taken_back_is_folded_again_and_sent_whole(editor):
    typed(editor, "see ")
    editor.paste(lines(50))
    typed(editor, "and ")
    editor.paste(lines(60, "other"))
    sent = editor.take()
    editor.set_text(sent.text)
    assert editor.text == sent.shown == "see [Pasted text #1 · 50 lines]and [Pasted text #2 · 60 lines]"
    assert editor.take().text == sent.text


def test_a_very_long_text_that_was_not_pasted_is_folded_too(editor):
    editor.set_text(lines(100_000))
    assert editor.text == "[Pasted text #1 · 100000 lines]"
    assert editor.take().text == lines(100_000)


def test_a_mark_has_one_meaning_for_ever(editor):
    editor.paste(lines(10))
    first = editor.take()
    editor.paste(lines(20))
    second = editor.take()
    assert (first.shown, second.shown) == ("[Pasted text #1 · 10 lines]", "[Pasted text #2 · 20 lines]")
    editor.set_text(first.shown + second.shown)
    assert editor.take().text == first.text + second.text


def test_what_is_set_aside_comes_back_with_pastes_and_images(editor, tmp_path):
    (tmp_path / "pic.png").touch()
    editor.paste(lines(10))
    editor.paste(str(tmp_path / "pic.png"))
    shown = editor.text
    aside = editor.set_aside()
    editor.paste(lines(20))
    assert editor.take(is_remembered=False).text == lines(20)
    editor.restore(aside)
    sent = editor.take()
    assert (sent.shown, sent.images) == (shown, (str(tmp_path / "pic.png"),)) and lines(10) in sent.text


def test_pastes_of_earlier_prompts_are_forgotten_when_they_are_many(editor):
    for number in range(7):
        editor.paste(str(number) * LONGEST_PASTE)
        editor.take()
    editor.set_text("[Pasted text #1 · 4,000,000 characters] [Pasted text #7 · 4,000,000 characters]")
    sent = editor.take().text
    assert "not kept any more" in sent[:200] and sent.endswith("6" * LONGEST_PASTE)


def test_an_image_comes_back_with_its_text(editor, tmp_path):
    """Defect: the image of a message that waited was lost when it was taken back."""
    (tmp_path / "pic.png").touch()
    typed(editor, "look at ")
    editor.paste(str(tmp_path / "pic.png"))
    sent = editor.take()
    editor.set_text(sent.shown)
    assert editor.take().images == sent.images == (str(tmp_path / "pic.png"),)


def test_the_name_of_an_image_is_one_mark_and_names_nothing_else(editor, tmp_path):
    image = tmp_path / "a] @notes.md b.png"
    image.touch()
    editor.paste(f"'{image}'")
    sent = editor.take()
    assert sent.images == (str(image),) and sent.shown.count("]") == 1
    assert is_pasted("notes.md", sent.pasted_names)


# ------------------------------------------------------------------ the history


def test_the_file_of_the_history_holds_no_long_texts(tmp_path):
    """Defect: a paste of 10 MB went to the history as a whole."""
    path = tmp_path / "history"
    editor = Editor(open_history(path), None, when_changed=lambda: None)
    editor.paste(lines(100_000))
    whole = editor.take()
    typed(editor, "x" * 10_000)
    editor.take()
    editor.paste(lines(20))
    editor.take()
    assert path.stat().st_size < 10_000
    recalled = list(PrivateHistory(str(path)).load_history_strings())
    assert recalled[0] == lines(20)
    assert recalled[1].endswith("[... 6,000 characters not kept in the history]")
    assert recalled[2] == "[Pasted text · 100000 lines, not kept in the history]"
    assert "[Pasted text #2 · 20 lines]" in editor.buffer.history.get_strings()
    editor.set_text(next(each for each in editor.buffer.history.get_strings() if "#1" in each))
    assert editor.take().text == whole.text  # in the same program it is whole


def test_an_entry_that_an_earlier_version_stored_whole_is_cut(tmp_path):
    path = tmp_path / "history"
    path.write_text("\n# 2026-01-01\n+short\n\n# 2026-01-02\n+" + "x" * 5_000_000 + "\n")
    long, short = PrivateHistory(str(path)).load_history_strings()
    assert short == "short" and len(long) < 5_000 and "not kept" in long


def test_the_same_text_twice_is_one_entry(tmp_path):
    history = open_history(tmp_path / "history")
    for text in ("one", "one", "two", "one"):
        remember(history, text, text)
    assert history.get_strings() == ["one", "two", "one"]
    assert list(PrivateHistory(str(tmp_path / "history")).load_history_strings()) == ["one", "two", "one"]


# ------------------------------------------------------------------ names behind @


def pasted(editor, name):
    return is_pasted(name, editor.take(is_remembered=False).pasted_names)


@pytest.mark.parametrize("text", ["@notes.md", "see @notes.md.", "(@notes.md)", "x@notes.md", 'see @"notes.md"'])
def test_a_pasted_name_is_not_chosen(editor, text):
    editor.paste(text)
    assert pasted(editor, "notes.md")


def test_a_name_that_is_pasted_in_two_parts_is_not_chosen(editor):
    editor.paste("see @not")
    editor.paste("es.md")
    assert pasted(editor, "notes.md")


def test_a_typed_name_is_chosen(editor):
    editor.paste("see @other.md and ")
    typed(editor, "@notes.md")
    assert not pasted(editor, "notes.md")


def test_a_name_pasted_behind_a_typed_at_is_chosen(editor):
    typed(editor, "@")
    editor.paste("notes.md")
    assert not pasted(editor, "notes.md")


def test_a_name_is_chosen_when_it_is_removed_and_typed(editor):
    editor.paste("@notes.md")
    editor.buffer.delete_before_cursor(9)
    typed(editor, "@notes.md")
    assert not pasted(editor, "notes.md")


def test_a_completion_chooses_a_pasted_name(editor):
    editor.paste("see @no")
    editor.buffer.apply_completion(Completion("notes.md ", start_position=-2))
    assert editor.text == "see @notes.md "
    assert not pasted(editor, "notes.md")


def test_a_completion_in_the_menu_chooses_a_pasted_name(editor):
    editor.paste("see @no")
    editor.buffer._set_completions([Completion("notes.md ", start_position=-2), Completion("nobody", -2)])
    editor.buffer.go_to_completion(0)
    assert not pasted(editor, "notes.md")


def test_a_paste_that_is_unfolded_chooses_nothing(editor):
    editor.paste(lines(9) + "@notes.md")
    assert editor.unfold()
    assert pasted(editor, "notes.md")


def test_a_name_stays_pasted_when_the_text_is_taken_back(editor):
    editor.paste("see @notes.md")
    editor.set_text(editor.take().shown)
    assert pasted(editor, "notes.md")
