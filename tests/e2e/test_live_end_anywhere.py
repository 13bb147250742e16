"""The program ends while something is open: the terminal is as it was before, and the draft is in the history."""

import os
import signal

import pytest
from live_terminal import bash
from pseudo_terminal import PATIENCE_S
from terminal import START
from test_live_approvals import RUN
from test_live_end import error_reports

DRAFT = "an important draft"


def history(talk):
    path = talk.home / ".local/share/bradawl/history"
    return path.read_text() if path.exists() else ""


def start(live, *script, **options):
    talk = live(list(script), *options.pop("argv", ("-y",)), **options)
    talk.wait_idle()
    return talk


def with_draft(talk):
    talk.type(DRAFT)
    talk.until(lambda: talk.typed.startswith(DRAFT), "the draft")
    return talk


def text(live):
    return with_draft(start(live))


def folded_paste(live):
    talk = with_draft(start(live))
    talk.paste("line\n" * 50)
    talk.until(lambda: "50 lines" in talk.typed, "a folded paste")
    return talk


def open_paste(live):
    """The terminal has not sent the end of a paste."""
    talk = with_draft(start(live))
    talk.type("\x1b[200~half a paste")
    return talk


def completion(live):
    talk = with_draft(start(live))
    talk.type(" @script")
    talk.wait_for("script.json")
    return talk


def search(live):
    talk = with_draft(start(live))
    talk.press("ctrl+r")
    talk.wait_for("search:")
    return talk


def question(live):
    wait = bash("until [ -e go ]; do sleep 0.02; done")
    talk = start(live, wait, bash("touch t-1"), argv=("--permission-mode", "default"))
    talk.send("go")
    talk.wait_for_question(RUN)
    talk.press("y")
    talk.wait_until_gone(RUN)
    with_draft(talk)
    (talk.folder / "go").touch()
    talk.wait_for_question("touch t-1")
    return talk


def reason(live):
    """The user types the reason of a no."""
    talk = question(live)
    talk.press("n")
    talk.wait_for("Say why")
    talk.type("a secret reason")
    talk.until(lambda: talk.typed == "a secret reason", "the reason")
    return talk


def pager(live):
    talk = with_draft(start(live))
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full")
    return talk


def external_editor(live):
    talk = with_draft(start(live, environ={"EDITOR": "sh -c 'echo the editor runs; exec sleep 300' #"}))
    talk.press("ctrl+g")
    talk.wait_for("the editor runs")
    return talk


STATES = (text, folded_paste, open_paste, completion, search, question, reason, pager, external_editor)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("state", STATES)
def test_a_signal(live, state, number):
    talk = state(live)
    talk.process.send_signal(number)
    assert talk.end() == 128 + number
    talk.assert_restored()
    assert DRAFT in history(talk) and "secret reason" not in history(talk)
    assert error_reports(talk.folder) == []


@pytest.mark.parametrize("state", STATES)
def test_a_terminal_that_is_closed(live, state):
    talk = state(live)
    os.close(talk.fd)
    talk.fd = os.open(os.devnull, os.O_RDONLY)  # `close` closes it
    assert talk.process.wait(PATIENCE_S) in (0, 128 + signal.SIGHUP)
    assert DRAFT in history(talk) and "secret reason" not in history(talk)
    assert error_reports(talk.folder) == []


def test_a_closed_terminal_whose_signal_is_ignored(live):
    """Defect: the exit code was 2, with a message that there was no prompt."""
    talk = with_draft(start(live, program=("sh", "-c", 'trap \'\' HUP; exec "$0" "$@"', *START)))
    os.close(talk.fd)
    talk.fd = os.open(os.devnull, os.O_RDONLY)
    assert talk.process.wait(PATIENCE_S) == 0
    assert DRAFT in history(talk)


@pytest.mark.parametrize("keys", ["ctrl+c", "esc esc"])
@pytest.mark.parametrize("state", [text, folded_paste, completion])
def test_a_text_that_is_cleared_by_keys_is_in_the_history(live, state, keys):
    talk = state(live)
    talk.press(keys)
    if state is completion:
        talk.press("ctrl+c")  # the first key may close the menu
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.press("up")
    talk.until(lambda: talk.typed.startswith(DRAFT), "the draft")
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.leave()
    assert DRAFT in history(talk)


@pytest.mark.parametrize("state", [search, pager, question, reason])
def test_ctrl_c_closes_what_is_open_and_then_leaves(live, state):
    talk = state(live)
    talk.press("ctrl+c")
    if state is reason:
        talk.wait_for_question("touch t-1")
        talk.press("ctrl+c")
    talk.wait_turns(1 if state in (question, reason) else 0)
    talk.until(lambda: talk.typed == DRAFT, "the draft")
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.press("ctrl+c")
    talk.wait_for("Ctrl+C again leaves")
    talk.press("ctrl+c")
    assert talk.end() == 0
    talk.assert_restored()
    assert DRAFT in history(talk) and "secret reason" not in history(talk)
