"""Ctrl+O shows the whole session, also what an earlier run showed and what was cut for the model."""

import re
from base64 import b64encode
from pathlib import Path

from live_terminal import MARK, bash

from bradawl.app.tui.live.lazy_lines import LazyLines

LONG = "for i in $(seq 1 9000); do echo number $i of many; done"


def test_after_a_resume_earlier_calls_are_shown_and_cut_output_is_whole(live, project):
    first = live([{"text": "I count.", **bash(LONG)}, {"text": "It is **counted**."}], "-y")
    first.wait_idle()
    first.send("count for me")
    first.wait_turns(1)
    first.leave()
    talk = live([bash("echo second run"), {"text": "Done."}], "-y", "-c")
    talk.wait_idle()
    talk.send("go on")
    talk.wait_turns(1)
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full")
    assert "second run" in talk.text and talk.text.count("It is counted.") == 1, talk.text
    talk.type("/number 4500 of\r")
    talk.wait_for("number 4500 of many")
    talk.press("home")
    talk.wait_for("count for me")
    assert "I count." in talk.text and "number 1 of many" in talk.text
    talk.press("end")
    talk.wait_for("Done.")
    shown = "".join(line.strip() for line in talk.lines)
    path = re.search(r"all of it:\s*(/.*?[0-9a-f]{64})", shown)
    assert path and "number 9000 of many\n" in Path(path[1]).read_text(), shown
    talk.type("q")
    talk.wait_idle()
    talk.leave()


def test_an_answer_that_came_with_the_check_is_the_last_answer_everywhere(live):
    check = bash("touch done", text="I check.")
    check["tool_calls"][0]["arguments"]["answer_if_ok"] = "It was the **sum**."

    def opened(talk):
        talk.press("ctrl+o")
        talk.wait_for("q closes")
        shown = talk.words
        talk.press("q")
        talk.wait_until_gone("q closes")
        talk.wait_idle()
        return shown

    first = live([check], "-y")
    first.wait_idle()
    first.send("go on")
    first.wait_turns(1)
    assert opened(first).count("It was the sum.") == 1
    first.send("/copy")
    first.wait_for_output(b"\x1b]52;c;" + b64encode(b"It was the **sum**.") + b"\x07")
    first.wait_idle()
    first.leave()
    again = live([], "-y", "-c")
    again.wait_for("It was the sum.")
    again.wait_idle()
    assert "I check." not in again.text
    assert opened(again).count("It was the sum.") == 1
    again.leave()


def test_during_a_turn_earlier_runs_are_shown_as_well(live):
    first = live([{"text": "I am the first."}], "-y")
    first.wait_idle()
    first.send("begin")
    first.wait_turns(1)
    first.leave()
    talk = live([{"text": "I wait.", **bash("echo now; sleep 60")}], "-y", "-c")
    talk.wait_idle()
    talk.send("go on")
    talk.wait_for("    now")
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full")
    assert "I am the first." in talk.text and "I wait." in talk.text and "can't be shown" not in talk.text
    assert [line for line in talk.lines if line.startswith(MARK)] == [f"{MARK} begin", f"{MARK} go on"]
    talk.type("q")
    talk.wait_for("esc stops")
    talk.press("esc")
    talk.wait_idle()
    talk.leave()


def test_a_question_that_comes_while_a_text_is_open_leaves_that_text_alone(live, project, server):
    talk = live((), "--permission-mode", "default", environ=server.environ)
    talk.wait_idle()
    talk.send("go on")
    request = server.request()
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full")
    shown = talk.lines[:-1]
    assert f"{MARK} go on" in shown
    request.call("bash", command="touch t-1")
    request.end()
    talk.wait_for_output(b"needs your answer")
    talk.type("/word")
    talk.wait_for("/word")
    assert talk.lines[:-1] == shown
    talk.type("\rq")
    talk.wait_for_question("touch t-1")
    talk.press("esc")
    talk.wait_idle()
    talk.leave()


def test_only_the_last_blocks_are_drawn_until_earlier_ones_are_wanted():
    drawn = []

    def block(number):
        def draw(width):
            drawn.append(number)
            return [f"{number} of {width}", "more"]

        return draw

    lines = LazyLines([("call" if number % 2 else "text", block(number)) for number in range(10_000)], 80)
    assert lines.extend(20) >= 20
    assert len(drawn) < 10 and lines.lines[-2:] == ["9999 of 80", "more"]
    assert lines.lines[:3] == [f"{drawn[-1]} of 80", "more", ""] and not lines.is_whole
    before = list(lines.lines)
    moved = lines.extend(None)
    assert lines.lines[moved:] == before and lines.is_whole and lines.extend(None) == 0
    assert sorted(drawn) == list(range(10_000)) and "\n\n\n" not in "\n".join(lines.lines)


def test_a_search_that_finds_nothing_says_so_until_the_next_key(live):
    """Defect: it said nothing."""
    talk = live([{"text": "Done."}], "-y")
    talk.wait_idle()
    talk.send("begin")
    talk.wait_turns(1)
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full")
    talk.type("/zzqq\r")
    talk.wait_for("not found: zzqq")
    talk.press("n")
    talk.press("down")
    talk.wait_until_gone("not found")
    talk.type("/done\r")
    talk.wait_for("the conversation in full")
    talk.type("q")
    talk.wait_idle()
    talk.leave()
