"""The question on the screen: nothing hidden, what a yes gives, and the rules that are saved."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.tui.approver import (
    ASKED,
    RULE,
    TerminalApprover,
    choices_text,
    granted_text,
    parse_answer,
    question_text,
)
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Answer, Grant, Question, Request

HELD = Grant(writable=("/ws",))
LOOSE = Grant(outside_sandbox=True, network=True)
TEST = Effects(unknown=True, commands=(("npm", "run", "test"),), seal="s")


def question(arguments=None, effects=TEST, name="bash", grant=HELD):
    raw = msgspec.json.encode({"command": "npm run test"} if arguments is None else arguments).decode()
    return Question(ToolCall("c", name, raw), Request(name, "d", effects), "what it changes can't be told", grant)


def shell(command):
    return question({"command": command})


# ------------------------------------------------------------------ what is shown


def test_a_long_command_is_shown_to_its_last_character():
    command = "\n".join(f"echo {number} {'x' * 300}" for number in range(500)) + "; rm -rf the-end"
    shown = question_text(shell(command))
    assert shown.endswith("; rm -rf the-end") and shown.count("\n") == 500
    assert "rm -rf the-end" in question_text(question({"timeout": 5, "command": command, "run_in_background": True}))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls" + " " * 200 + "; rm x", "    ls [200 blanks] ; rm x"),
        ("ls" + "\t" * 50 + "; rm x", "    ls [50 blanks] ; rm x"),
        ("ls\n" + " " * 100 + "rm x", "    ls\n     [100 blanks] rm x"),
        ("ls" + "\n" * 60 + "rm x", "    ls\n    [59 empty lines]\n    rm x"),
        ("ls" + "\n  \t" * 60 + "\nrm x", "    ls\n    [60 empty lines]\n    rm x"),
        ("ls\u200b\u202e\u00a0x\r\x1b[2K", "    ls\\u200b\\u202e\\xa0x\\x0d\\x1b[2K"),
        ("a\u3164b\U000e0041", "    a\\u3164b\\U000e0041"),
        ("if x:\n    y\n\n    z", "    if x:\n        y\n    \n        z"),
    ],
)
def test_what_pushes_a_command_out_of_sight_is_counted_or_spelled_out(command, shown):
    assert question_text(shell(command)).split("\n", 1)[1] == shown


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_everything_in_a_question_is_plainly_visible_and_indented(command):
    shown = question_text(shell(command))
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert all(line.startswith("    ") for line in shown.split("\n")[1:])


def test_gaps_are_found_in_linear_time():
    for text in (" " * 200_000, "\n" * 200_000, "\n " * 100_000, "a \n\t" * 50_000):
        assert question_text(shell(text))


def test_long_texts_for_files_are_shown_whole_on_request():
    content = "\n".join(f"line {number}" for number in range(100))
    asked = question({"file_path": "a", "content": content}, Effects(writes=("/ws/a",)), "write_file")
    assert "... 80 more lines" in question_text(asked) and "line 99" not in question_text(asked)
    answer, shown = ask(asked, "v", "y")
    assert answer.allowed and "v = show all of it" in shown[0] and "line 99" in shown[1]
    assert "v = " not in choices_text(shell("ls"))


def test_paths_are_shown_as_they_were_judged():
    shown = granted_text(question({"file_path": "link"}, Effects(writes=("/etc/real\u202e",)), "write_file"))
    assert shown == "  writes /etc/real\\u202e"
    many = tuple(f"/ws/{number}" for number in range(40))
    assert granted_text(question({}, Effects(writes=many), "multi_edit")).count("\n") == 39


def test_no_name_or_path_begins_a_line_of_its_own():
    evil = "/ws/a\n  y = once\tAllow? "
    effects = Effects(writes=(evil,), reads=(evil,), hosts=(evil,), session=("env",), seal="s")
    grant = Grant(writable=(evil,), environment=(evil,), uncovered=(evil,))
    asked = Question(ToolCall("c", evil, '{"a\\nb": 1}'), Request("bash", "d", effects), f"it writes {evil}", grant)
    whole = "\n".join((question_text(asked), granted_text(asked), choices_text(asked)))
    assert whole.count("\\n  y = once\\tAllow?") == 9
    assert [line for line in whole.split("\n") if line.startswith("  y = once")] == [whole.split("\n")[-1]]


@pytest.mark.parametrize(
    ("effects", "grant", "said"),
    [
        (TEST, HELD, "in the sandbox it may write to: /ws\n  without network"),
        (TEST, Grant(writable=("/ws", "/out\x1b")), "may write to: /ws, /out\\x1b"),
        (TEST, Grant(), "in the sandbox it may write nowhere"),
        (TEST, Grant(writable=("/ws",), network=True), "with network: "),
        (msgspec.structs.replace(TEST, lifts=("network",)), Grant(network=True), "with network, as it asks"),
        (msgspec.structs.replace(TEST, lifts=("sandbox",)), LOOSE, "asks to run WITHOUT the sandbox"),
        (TEST, LOOSE, "NO SANDBOX"),
        (msgspec.structs.replace(TEST, hosts=("*",)), HELD, "reaches any host"),
        (
            msgspec.structs.replace(TEST, reads=("/ws/.env",)),
            Grant(uncovered=("/ws/.env",)),
            "protected otherwise: /ws/.env",
        ),
        (
            msgspec.structs.replace(TEST, session=("env", "env:PATH")),
            Grant(environment=("PATH",)),
            "changes for all later commands: PATH",
        ),
    ],
)
def test_it_says_what_a_yes_would_give(effects, grant, said):
    assert said in granted_text(question(effects=effects, grant=grant))


def test_a_tool_that_no_sandbox_holds_says_so():
    assert granted_text(question({}, UNKNOWN, "deploy", HELD)) == "  no sandbox holds what this tool does"


# ------------------------------------------------------------------ answers


def ask(asked, *typed, memory=None):
    lines = iter(typed)
    shown: list[str] = []
    prompts: list[str] = []

    async def read(prompt: str) -> str:
        prompts.append(prompt)
        line = next(lines)
        if isinstance(line, BaseException):
            raise line
        return line

    approver = TerminalApprover(shown.append, read, lambda: shown.append("CANCELLED"), memory=memory)
    answer = asyncio.run(approver.ask(asked))
    assert next(lines, None) is None, "not all that was typed was read"
    assert set(prompts) <= {ASKED, RULE}
    return answer, shown


@pytest.fixture
def memory(tmp_path):
    return RememberedRules(str(tmp_path / "data"), "/ws", "/home/u")


def test_p_is_a_yes_for_the_project_and_nothing_like_it_is():
    for text in ("p", "P.", "project"):
        assert parse_answer(text) == Answer(True, by="user", scope="project")
    for text in ("p x", "pp", "project please"):
        assert parse_answer(text) is None


def test_what_would_be_saved_is_shown_before_and_saved_as_shown(memory):
    answer, shown = ask(question(), "p", "", memory=memory)
    assert answer == Answer(True, by="user", scope="project", rules=("Bash(npm run test)",))
    assert "p = always in this project: Bash(npm run test)" in shown[0]
    assert memory.path in shown[1] and shown[2] == "  Bash(npm run test)" and memory.path in shown[3]
    assert memory.texts == answer.rules
    assert 'allow = "Bash(npm run test)"' in Path(memory.path).read_text()


def test_a_rule_can_be_changed_before_it_is_saved(memory):
    answer, _ = ask(question(), "p", " Bash(npm run *) ", memory=memory)
    assert answer.rules == memory.texts == ("Bash(npm run *)",)


def test_each_command_of_a_line_has_its_rule(memory):
    effects = Effects(unknown=True, commands=(("npm", "test"), ("git", "add", ".")), seal="s")
    answer, shown = ask(question(effects=effects), "p", "", "Bash(git add .)", memory=memory)
    assert answer.rules == ("Bash(npm test)", "Bash(git add .)")
    assert "Bash(npm test)  (1 of 2)" in shown[2] and "(2 of 2)" in shown[3]


@pytest.mark.parametrize("typed", ["Bash(npm run build)", "Bsah(npm)", "Bash(a && b)", "Edit", "\x1b[A", "mcp__x"])
def test_a_rule_that_does_not_cover_the_call_is_not_saved_and_the_question_stays(memory, typed):
    answer, shown = ask(question(), "p", typed, "n", memory=memory)
    assert not answer.allowed and not Path(memory.path).exists()
    assert any(line.startswith("Nothing was saved: ") for line in shown) and "\x1b" not in "".join(shown)


def test_n_at_a_rule_goes_back_to_the_question(memory):
    answer, _ = ask(question(), "p", "n", "y", memory=memory)
    assert answer == Answer(True, by="user") and not Path(memory.path).exists()


@pytest.mark.parametrize("where", [("p",), ()])
def test_ctrl_c_and_a_closed_input_save_nothing_wherever_they_come(memory, where):
    answer, shown = ask(question(), *where, KeyboardInterrupt(), memory=memory)
    assert not answer.allowed and shown[-1] == "CANCELLED"
    answer, _ = ask(question(), *where, EOFError(), memory=memory)
    assert (answer.allowed, answer.by) == (False, "nobody") and not Path(memory.path).exists()


def test_where_no_rule_is_right_none_is_offered(memory):
    python = Effects(unknown=True, commands=(("python", "x.py"),), seal="s")
    answer, shown = ask(question(effects=python), "p", "y", memory=memory)
    assert answer.scope == "once" and "p = " not in shown[0] and shown[1] == "Please answer y, a or n."
    answer, shown = ask(question(), "p", "y")
    assert answer.scope == "once" and "p = " not in shown[0]


def test_a_file_that_can_not_be_written_is_told_and_the_question_stays(memory):
    Path(memory.path).parent.parent.mkdir()
    Path(memory.path).parent.write_text("in the way")
    answer, shown = ask(question(), "p", "", "y", memory=memory)
    assert answer.scope == "once" and any("can't be written" in line for line in shown)


def test_a_call_with_rules_saved_is_covered_from_now_on(memory):
    ask(question(), "p", "", memory=memory)
    assert memory.why_not_allowed(question().request, ["Bash(npm run test)"]) == ""
    assert [rule.words for rule in memory.rules()] == [("npm", "run", "test")]


async def test_a_yes_for_the_session_is_not_offered_where_it_would_cover_what_can_not_be_told():
    unsealed = Effects(unknown=True, commands=(("sh",),), seal="s", unsealed=True)
    question = Question(ToolCall("1", "bash", '{"command": "sh < x"}'), Request("bash", "d", unsealed), "why")
    assert choices_text(question) == "  y = once, n = no (a reason may follow)"
    typed, shown = iter(["a", "y"]), []

    async def read(_):
        return next(typed)

    answer = await TerminalApprover(shown.append, read, lambda: None).ask(question)
    assert answer == Answer(True, by="user")
    assert shown[-1] == "Please answer y or n."
