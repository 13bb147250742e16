"""The terminal's permission question: it shows everything, states what consent grants, and saves rules."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.tui.plain.approver import (
    ASKED,
    RULE,
    TerminalApprover,
    choices_text,
    granted_text,
    parse_answer,
    question_text,
)
from bradawl.app.tui.question_text import brief_text
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Answer, Grant, Question, Request

SANDBOXED = Grant(writable=("/ws",))
UNSANDBOXED = Grant(outside_sandbox=True, network=True)
RUN_TESTS = Effects(unknown=True, commands=(("npm", "run", "test"),), seal="s")


def question(arguments=None, effects=RUN_TESTS, name="bash", grant=SANDBOXED):
    raw = msgspec.json.encode({"command": "npm run test"} if arguments is None else arguments).decode()
    return Question(ToolCall("c", name, raw), Request(name, "d", effects), "what it changes can't be told", grant)


def shell(command):
    return question({"command": command})


# ------------------------------------------------------------------ the text of a question


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
def test_gaps_and_invisible_characters_in_a_command_are_counted_or_escaped(command, shown):
    assert question_text(shell(command)).split("\n", 1)[1] == shown


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_everything_in_a_question_is_printable_and_indented(command):
    shown = question_text(shell(command))
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert all(line.startswith("    ") for line in shown.split("\n")[1:])


def test_gaps_are_found_in_linear_time():
    for text in (" " * 200_000, "\n" * 200_000, "\n " * 100_000, "a \n\t" * 50_000):
        assert question_text(shell(text))


async def test_long_texts_for_files_are_shown_whole_on_request():
    content = "\n".join(f"line {number}" for number in range(100))
    asked = question({"file_path": "a", "content": content}, Effects(writes=("/ws/a",)), "write_file")
    assert "... 80 more lines" in question_text(asked) and "line 99" not in question_text(asked)
    answer, shown = await ask(asked, "v", "y")
    assert answer.allowed and "v = show all of it" in shown[0] and "line 99" in shown[1]
    assert "v = " not in choices_text(shell("ls"))


def test_paths_are_shown_as_they_were_resolved():
    shown = granted_text(question({"file_path": "link"}, Effects(writes=("/etc/real\u202e",)), "write_file"))
    assert shown == "  writes /etc/real\\u202e"
    many = tuple(f"/ws/{number}" for number in range(40))
    assert granted_text(question({}, Effects(writes=many), "multi_edit")).count("\n") == 39


OWN_TMP = "/h/.local/share/bradawl/projects/p/tmp/01hzzzzzzzzzzzzzzzzzzzzzzz"


def test_the_sessions_own_tmp_is_named_as_commands_name_it():
    """Defect: its path was shown as one outside of the project."""
    own = OWN_TMP
    effects = Effects(writes=(f"{own}/x", "/ws/a"), seal="s")
    asked = question(effects=effects, grant=Grant(writable=("/ws", own)))
    for shown in (granted_text(asked), brief_text(asked)):
        assert "/tmp/x" in shown and own not in shown
    other = question(effects=effects, grant=Grant(writable=("/ws", f"{own}/x")))
    assert f"{own}/x" in granted_text(other), "of another session"


def test_what_is_dangerous_is_shown_in_full():
    effects = Effects(writes=("/ws/a",), seal="s", lifts=("sandbox",))
    asked = question(effects=effects, grant=UNSANDBOXED)
    assert brief_text(asked) == granted_text(asked)
    for grant in (Grant(writable=("/ws",), uncovered=("/ws/.git/config",)),):
        asked = question(effects=Effects(seal="s"), grant=grant)
        assert "protected otherwise: /ws/.git/config" in brief_text(asked)


def test_no_name_or_path_can_begin_a_new_line():
    evil = "/ws/a\n  y = once\tAllow? "
    effects = Effects(writes=(evil,), reads=(evil,), hosts=(evil,), session=("env",), seal="s")
    grant = Grant(writable=(evil,), environment=(evil,), uncovered=(evil,))
    asked = Question(ToolCall("c", evil, '{"a\\nb": 1}'), Request("bash", "d", effects), f"it writes {evil}", grant)
    whole = "\n".join((question_text(asked), granted_text(asked), choices_text(asked)))
    assert whole.count("\\n  y = once\\tAllow?") == 9
    assert [line for line in whole.split("\n") if line.startswith("  y = once")] == [whole.split("\n")[-1]]


@pytest.mark.parametrize(
    ("effects", "grant", "message"),
    [
        (RUN_TESTS, SANDBOXED, "in the sandbox it may write to: /ws\n  without network"),
        (RUN_TESTS, Grant(writable=("/ws", "/out\x1b")), "may write to: /ws, /out\\x1b"),
        (RUN_TESTS, Grant(), "in the sandbox it may write nowhere"),
        (RUN_TESTS, Grant(writable=("/ws",), network=True), "with network: "),
        (msgspec.structs.replace(RUN_TESTS, lifts=("network",)), Grant(network=True), "with network, as it asks"),
        (msgspec.structs.replace(RUN_TESTS, lifts=("sandbox",)), UNSANDBOXED, "asks to run WITHOUT the sandbox"),
        (RUN_TESTS, UNSANDBOXED, "NO SANDBOX"),
        (msgspec.structs.replace(RUN_TESTS, hosts=("*",)), SANDBOXED, "reaches any host"),
        (
            msgspec.structs.replace(RUN_TESTS, reads=("/ws/.env",)),
            Grant(uncovered=("/ws/.env",)),
            "protected otherwise: /ws/.env",
        ),
        (
            msgspec.structs.replace(RUN_TESTS, session=("env", "env:PATH")),
            Grant(environment=("PATH",)),
            "changes for all later commands: PATH",
        ),
    ],
)
def test_a_question_states_what_consent_grants(effects, grant, message):
    assert message in granted_text(question(effects=effects, grant=grant))


def test_a_question_states_that_no_sandbox_confines_a_tool():
    assert granted_text(question({}, UNKNOWN, "deploy", SANDBOXED)) == "  no sandbox holds what this tool does"


# ------------------------------------------------------------------ connections


def connection(host: str) -> Question:
    asked = question({"command": "pip install requests"}, Effects(hosts=(host,), lifts=("host",)))
    return msgspec.structs.replace(asked, reason=f"it reaches {host}")


def test_a_question_about_a_host_names_host_port_and_command_and_what_can_be_sent():
    asked = connection("a.example")
    assert question_text(asked) == (
        "This command wants to connect to a.example, port 80 or 443 (it reaches a.example):\n    pip install requests"
    )
    assert "it can send there what it can read" in granted_text(asked) and "can't see" in granted_text(asked)
    assert "connect to a.example, port 8443 (" in question_text(connection("a.example:8443"))
    assert choices_text(asked, ("Network(a.example)",)) == (
        "  y = once, a = a.example, port 80 or 443, for every command for the rest of the session\n"
        "  p = always in this project: Network(a.example)\n"
        "  n = no (a reason may follow), x = no, and no further host of this command"
    )


async def test_x_refuses_all_further_hosts_of_a_command_and_is_no_answer_to_another_question():
    for typed in ("x", "X.", "none"):
        answer, _ = await ask(connection("a.example"), typed)
        assert answer == Answer(False, "user", "session")
    answer, _ = await ask(connection("a.example"), "x not those")
    assert answer == Answer(False, "user", "session", "not those")
    answer, shown = await ask(question(), "x", "n")
    assert answer == Answer(False, "user") and shown[-1] == "Please answer y, a or n."
    _, shown = await ask(connection("a.example"), "?", "n")
    assert shown[-1] == "Please answer y, a, n or x."


def test_a_host_in_punycode_is_shown_as_it_is_with_a_warning():
    asked = connection("xn--pple-43d.com")
    assert "connect to xn--pple-43d.com, port" in question_text(asked)
    assert "xn-- stands for letters that may look like others" in granted_text(asked)
    assert "xn--" not in granted_text(connection("apple.com"))


def test_a_host_with_invisible_characters_is_shown_on_one_line():
    shown = question_text(connection("a\u202e.example\n  y = once"))
    assert "a\\u202e.example\\n" in shown and shown.count("\n") == 1


async def test_a_host_is_saved_for_the_project_as_a_rule_that_may_be_widened(memory):
    answer, _ = await ask(connection("a.example"), "p", "", memory=memory)
    assert answer.rules == ("Network(a.example)",)
    answer, _ = await ask(connection("b.c.example"), "p", "Network(*.c.example)", memory=memory)
    assert answer.rules == ("Network(*.c.example)",)
    _, shown = await ask(
        connection("c.example"), "p", "Network(*.c.example)", "p", "Network(https://c.example)", "y", memory=memory
    )
    assert [line for line in shown if line.startswith("Nothing was saved")] != []
    assert "Network(a.example)" in memory.texts and "Network(c.example)" not in memory.texts


def test_a_request_for_any_host_shows_the_hosts_that_the_command_names():
    commands = (
        ("curl", "https://me:x@a.example/x?y"),
        ("git", "clone", "ssh://git@b.example/c"),
        ("curl", "http://a.example"),
    )
    asked = Effects(unknown=True, commands=commands, seal="s", lifts=("network",))
    shown = granted_text(question(effects=asked, grant=Grant(writable=("/ws",), network=True)))
    assert "to any host\n  hosts that it names: a.example, b.example" in shown
    assert "hosts that it names" not in granted_text(question(effects=asked, grant=SANDBOXED))


# ------------------------------------------------------------------ answers


async def ask(asked, *typed, memory=None):
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
    answer = await approver.ask(asked)
    assert next(lines, None) is None, "some of the input was not read"
    assert set(prompts) <= {ASKED, RULE}
    return answer, shown


@pytest.fixture
def memory(tmp_path):
    return RememberedRules(str(tmp_path / "data"), "/ws", "/home/u")


def test_p_alone_is_consent_for_the_project():
    for text in ("p", "P.", "project"):
        assert parse_answer(text) == Answer(True, by="user", scope="project")
    for text in ("p x", "pp", "project please"):
        assert parse_answer(text) is None


async def test_rules_are_shown_before_they_are_saved_unchanged(memory):
    answer, shown = await ask(question(), "p", "", memory=memory)
    assert answer == Answer(True, by="user", scope="project", rules=("Bash(npm run test)",))
    assert "p = always in this project: Bash(npm run test)" in shown[0]
    assert memory.path in shown[1] and shown[2] == "  Bash(npm run test)" and memory.path in shown[3]
    assert memory.texts == answer.rules
    assert 'allow = "Bash(npm run test)"' in Path(memory.path).read_text()


async def test_a_rule_can_be_changed_before_it_is_saved(memory):
    answer, _ = await ask(question(), "p", " Bash(npm run *) ", memory=memory)
    assert answer.rules == memory.texts == ("Bash(npm run *)",)


async def test_each_command_of_a_line_has_its_rule(memory):
    effects = Effects(unknown=True, commands=(("npm", "test"), ("git", "add", ".")), seal="s")
    answer, shown = await ask(question(effects=effects), "p", "", "Bash(git add .)", memory=memory)
    assert answer.rules == ("Bash(npm test)", "Bash(git add .)")
    assert "Bash(npm test)  (1 of 2)" in shown[2] and "(2 of 2)" in shown[3]


@pytest.mark.parametrize("typed", ["Bash(npm run build)", "Bsah(npm)", "Bash(a && b)", "Edit", "\x1b[A", "mcp__x"])
async def test_a_rule_that_does_not_cover_the_call_is_not_saved_and_the_question_is_repeated(memory, typed):
    answer, shown = await ask(question(), "p", typed, "n", memory=memory)
    assert not answer.allowed and not Path(memory.path).exists()
    assert any(line.startswith("Nothing was saved: ") for line in shown) and "\x1b" not in "".join(shown)


async def test_n_at_a_rule_goes_back_to_the_question(memory):
    answer, _ = await ask(question(), "p", "n", "y", memory=memory)
    assert answer == Answer(True, by="user") and not Path(memory.path).exists()


@pytest.mark.parametrize("where", [("p",), ()])
async def test_ctrl_c_and_closed_input_save_nothing_at_any_prompt(memory, where):
    answer, shown = await ask(question(), *where, KeyboardInterrupt(), memory=memory)
    assert not answer.allowed and shown[-1] == "CANCELLED"
    answer, _ = await ask(question(), *where, EOFError(), memory=memory)
    assert (answer.allowed, answer.by) == (False, "nobody") and not Path(memory.path).exists()


async def test_without_a_suitable_rule_none_is_offered(memory):
    python = Effects(unknown=True, commands=(("python", "x.py"),), seal="s")
    answer, shown = await ask(question(effects=python), "p", "y", memory=memory)
    assert answer.scope == "once" and "p = " not in shown[0] and shown[1] == "Please answer y, a or n."
    answer, shown = await ask(question(), "p", "y")
    assert answer.scope == "once" and "p = " not in shown[0]


async def test_an_unwritable_file_is_reported_and_the_question_is_repeated(memory):
    Path(memory.path).parent.parent.mkdir()
    Path(memory.path).parent.write_text("in the way")
    answer, shown = await ask(question(), "p", "", "y", memory=memory)
    assert answer.scope == "once" and any("can't be written" in line for line in shown)


async def test_a_call_whose_rules_were_saved_is_covered(memory):
    await ask(question(), "p", "", memory=memory)
    assert memory.why_not_allowed(question().request, ["Bash(npm run test)"]) == ""
    assert [rule.words for rule in memory.rules()] == [("npm", "run", "test")]


async def test_consent_for_the_session_is_not_offered_for_unsealed_commands():
    unsealed = Effects(unknown=True, commands=(("sh",),), seal="s", unsealed=True)
    question = Question(ToolCall("1", "bash", '{"command": "sh < x"}'), Request("bash", "d", unsealed), "why")
    assert choices_text(question) == "  y = once, n = no (a reason may follow)"
    typed, shown = iter(["a", "y"]), []

    async def read(_):
        return next(typed)

    answer = await TerminalApprover(shown.append, read, lambda: None).ask(question)
    assert answer == Answer(True, by="user")
    assert shown[-1] == "Please answer y or n."


async def test_a_question_about_a_host_says_that_it_needs_no_answer_any_more_when_its_command_has_ended():
    shown, is_waiting = [], asyncio.Event()

    async def read(_: str) -> str:
        is_waiting.set()
        await asyncio.Event().wait()
        return ""

    approver = TerminalApprover(shown.append, read, lambda: shown.append("CANCELLED"))
    about_a_host = question({"command": "curl a.example"}, Effects(hosts=("a.example",), lifts=("host",)))
    for asked, last in ((about_a_host, "The command has ended: this needs no answer any more."), (question(), None)):
        is_waiting.clear()
        asking = asyncio.create_task(approver.ask(asked))
        await is_waiting.wait()
        before = len(shown)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert shown[before:] == [*([last] if last else [])]
