"""What is typed during a turn: sent to the model, queued, edited, taken back; nothing is lost."""

import json

from live_terminal import bash

WAIT = bash("until [ -e go ]; do sleep 0.02; done")


def prompts(home):
    (path,) = home.glob(".local/share/bradawl/projects/*/sessions/*.jsonl")
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    return [event["parts"][0]["text"] for event in events if event["type"] == "PromptSubmitted"]


def busy(live, *script):
    talk = live([WAIT, *script], "-y")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for("until [ -e go ]", "esc stops")
    return talk


def test_enter_sends_to_the_running_turn_and_the_step_that_saw_it_is_told(live, project):
    talk = busy(live, {"text": "Heard.", "expect": "check the README too"})
    talk.send("check the README too")
    talk.wait_for('queued: "check the README too"', "edits it")
    assert talk.typed == ""
    (project / "go").touch()
    talk.wait_for("Heard.")
    talk.wait_turns(1)
    assert "seen in step 2" in talk.words and "queued" not in talk.text
    assert prompts(project.parent) == ["go"]
    talk.leave()


def test_up_takes_back_what_waits_for_editing(live, project):
    talk = busy(live, {"text": "Heard.", "expect": "the other file instead"})
    talk.send("use the other file")
    talk.wait_for("queued:")
    talk.press("up")
    talk.until(lambda: talk.typed == "use the other file", "the message in the input line")
    assert "queued" not in talk.text
    talk.type(" instead")
    talk.until(lambda: talk.typed == "use the other file instead", "the edited message")
    talk.press("enter")
    talk.wait_for("queued:")
    (project / "go").touch()
    talk.wait_for("Heard.")
    talk.wait_turns(1)
    assert talk.words.count("use the other file") == 1
    talk.leave()


def test_ctrl_q_sends_after_the_turn(live, project):
    talk = busy(live, {"text": "First turn."}, {"text": "Second turn.", "expect": "afterwards"})
    talk.type("afterwards")
    talk.until(lambda: talk.typed == "afterwards", "the text")
    talk.press("ctrl+q")
    talk.wait_for('queued: "afterwards"')
    (project / "go").touch()
    talk.wait_for("Second turn.")
    talk.wait_turns(2)
    assert prompts(project.parent) == ["go", "afterwards"]
    talk.leave()


def test_a_message_during_a_compaction_is_the_next_prompt(live, server):
    """Defect: it came back into the input line, unsent."""
    talk = live((), "-y", environ=server.environ)
    talk.wait_idle()
    for number in range(2):
        talk.send(f"turn {number}")
        request = server.request()
        request.text("A long answer of many words. " * 800)
        request.end()
        talk.wait_turns(number + 1)
    talk.send("/compact")
    summary = server.request()
    talk.wait_for("Running /compact")
    talk.send("and now the rest")
    talk.wait_for('queued: "and now the rest"', "edits it")
    summary.text("They talked.")
    summary.end()
    request = server.request()
    assert "and now the rest" in str(request.body["messages"][-1])
    request.text("The rest.")
    request.end()
    talk.wait_turns(3)
    assert "The rest." in talk.whole_text and talk.typed == "" and "queued" not in talk.text
    assert prompts(talk.home) == ["turn 0", "turn 1", "and now the rest"]
    talk.leave()


def test_a_message_during_a_command_of_the_user_is_the_next_prompt(live, project):
    talk = live([{"text": "Hello."}, {"text": "Heard.", "expect": "what was that"}], "-y")
    talk.wait_idle()
    talk.send("hello")
    talk.wait_turns(1)
    talk.send("!until [ -e go ]; do sleep 0.02; done; echo over")
    talk.wait_for("esc stops")
    talk.send("what was that")
    talk.wait_for('queued: "what was that"')
    (project / "go").touch()
    talk.wait_turns(2)
    assert "Heard." in talk.text and talk.typed == "" and prompts(talk.home) == ["hello", "what was that"]
    talk.leave()


def test_a_command_waits_for_the_end_of_the_turn(live, project):
    talk = busy(live, {"text": "First turn."})
    talk.send("/status")
    talk.wait_for('queued: "/status"')
    (project / "go").touch()
    talk.wait_for_words("folder ")
    talk.wait_idle()
    assert talk.words.index("First turn.") < talk.words.index("folder ")
    talk.leave()


def test_after_esc_the_messages_that_were_not_seen_are_in_the_input_line(live):
    """Defect: they went with the next prompt and could not be edited."""
    talk = busy(live, {"text": "Answer.", "expect": "one"})
    talk.send("one")
    talk.wait_for('queued: "one"')
    talk.send("two")
    talk.wait_for('queued: "two"')
    talk.type("three")
    talk.until(lambda: talk.typed == "three", "the text")
    talk.press("esc")
    talk.wait_for("Interrupted.")
    talk.until(lambda: talk.typed == "one\ntwo\nthree", "all of it in the input line")
    assert "queued" not in talk.text
    talk.press("enter")
    talk.wait_for("Answer.")
    talk.wait_turns(2)
    assert prompts(talk.home) == ["go", "one\ntwo\nthree"]
    talk.leave()


def test_what_waits_for_the_end_comes_back_into_the_input_line_after_esc(live):
    talk = busy(live, {"text": "Answer.", "expect": "next task"})
    talk.type("next task")
    talk.until(lambda: talk.typed == "next task", "the text")
    talk.press("ctrl+q")
    talk.wait_for('queued: "next task"')
    talk.press("esc")
    talk.until(lambda: talk.typed == "next task", "the text in the input line")
    talk.wait_turns(1)
    assert "Answer." not in talk.text
    talk.press("enter")
    talk.wait_for("Answer.")
    talk.wait_turns(2)
    talk.leave()


def test_text_without_enter_stays_through_the_end_of_the_turn(live, project):
    talk = busy(live, {"text": "First turn."}, {"text": "Second turn.", "expect": "half a line"})
    talk.type("half a l")
    talk.until(lambda: talk.typed == "half a l", "the text")
    (project / "go").touch()
    talk.wait_turns(1)
    talk.type("ine")
    talk.until(lambda: talk.typed == "half a line", "the whole text")
    talk.press("enter")
    talk.wait_for("Second turn.")
    talk.wait_turns(2)
    talk.leave()


def test_arrow_keys_during_a_turn_send_nothing(live, project):
    """Defect: Up, then `y`: the model received an escape sequence."""
    talk = busy(live, {"text": "First turn."})
    talk.press("up down left right home end up")
    talk.until(lambda: talk.typed == "go", "the earlier prompt")
    talk.press("ctrl+c")  # ends the turn; the text stays
    talk.wait_for("Interrupted.")
    talk.wait_turns(1)
    assert prompts(talk.home) == ["go"]
    assert "\\u001b" not in "".join(path.read_text() for path in talk.home.rglob("*.jsonl"))


def test_messages_that_wait_are_kept_when_the_program_ends(live):
    talk = busy(live, {"text": "Heard.", "expect": "an important thought"})
    talk.send("an important thought")
    talk.wait_for("queued:")
    talk.press("ctrl+d")
    assert talk.end() == 0
    talk.assert_restored()
    history = talk.home / ".local/share/bradawl/history"
    assert "an important thought" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def test_the_history_holds_prompts_and_no_answers(live, project):
    ask = {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Secret?", "options": []}}]}
    talk = live([ask, {"text": "Thanks."}], "-y")
    talk.wait_idle()
    talk.send("a prompt")
    talk.wait_for("Your answer")
    talk.type("my-secret-answer")
    talk.press("enter")
    talk.wait_for("Thanks.")
    talk.wait_turns(1)
    history = talk.home / ".local/share/bradawl/history"
    assert "a prompt" in history.read_text() and "my-secret-answer" not in history.read_text()
    talk.leave()
    again = live([], "-y")
    again.wait_idle()
    again.press("up")
    again.until(lambda: again.typed == "a prompt", "the prompt of the earlier program")
    again.press("ctrl+c")
    again.leave()


def test_many_messages_leave_room_for_the_input_line(live, project):
    talk = busy(live, {"text": "Heard.", "expect": "message 29"})
    for number in range(30):
        talk.send(f"message {number}")
    talk.wait_for('queued: "message 29"', "26 more")
    assert len(talk.lines) <= 24 and talk.box
    (project / "go").touch()
    talk.wait_for("Heard.")
    talk.wait_turns(1)
    assert all(f"message {number}" in talk.words for number in range(30))
    talk.leave()
