"""Modes and the sandbox as a user meets them: what is said of them, and the mode a session goes on in."""

import tomllib
from typing import Any

import msgspec
import pytest

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.doctor import sandbox_checks
from bradawl.app.modes import begin_in_mode, mode_text, sandbox_text, sandbox_warning, why_not
from bradawl.app.policies import Policies
from bradawl.app.refusal_advice import how_to_allow
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import MODES, Allow, Ask, Policy, Question, Request, Sandbox, decide
from bradawl.safety.permissions.rule_syntax import network_rule

SETTINGS = Settings(model=ModelSettings(provider="scripted", name="x"), cwd="/ws", home="/home/u")
HELD = Sandbox("bubblewrap")
LACKING = Sandbox("landlock", ("udp", "unix_sockets"))
NONE = Sandbox()


def settings(**changes: Any) -> Settings:
    return msgspec.structs.replace(SETTINGS, **changes)


# ------------------------------------------------------------------ the sandbox, told


def test_a_sandbox_that_holds_is_no_news():
    assert sandbox_warning(lambda: HELD, SETTINGS, user_is_there=True) == ""


def test_no_sandbox_is_said_loudly_with_what_to_install():
    text = sandbox_warning(lambda: NONE, SETTINGS, user_is_there=True)
    assert text.startswith("NO SANDBOX: ") and "you are asked about" in text
    assert "bradawl refuses every command" in sandbox_warning(lambda: NONE, SETTINGS, user_is_there=False)


def test_who_has_bubblewrap_is_told_where_to_look_and_not_to_install_it(tmp_path):
    without = sandbox_warning(lambda: NONE, settings(environment={"PATH": str(tmp_path)}), user_is_there=True)
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    with_it = sandbox_warning(lambda: NONE, settings(environment={"PATH": str(tmp_path)}), user_is_there=True)
    assert "apt install" in without and "doctor" not in without
    assert "apt install" not in with_it and "`bradawl doctor` says why" in with_it


def test_who_switched_it_off_is_not_told_again():
    assert sandbox_warning(lambda: NONE, settings(sandbox="off"), user_is_there=True) == ""


def test_a_sandbox_that_lacks_something_says_what():
    assert "landlock can't hold udp, unix_sockets" in sandbox_warning(lambda: LACKING, SETTINGS, user_is_there=True)
    assert sandbox_text(LACKING) == "landlock, which can't hold: udp, unix_sockets"
    assert sandbox_text(HELD) == "bubblewrap" and sandbox_text(NONE).startswith("none")


@pytest.mark.parametrize(
    ("sandbox", "wanted", "states"),
    [
        (HELD, "auto", ["ok"]),
        (NONE, "auto", ["warning"]),
        (NONE, "required", ["problem"]),
        (NONE, "off", ["warning"]),
        (LACKING, "auto", ["warning"] * 3),
    ],
)
def test_the_doctor_says_what_holds_commands_and_what_is_missing(sandbox, wanted, states):
    checks = sandbox_checks(sandbox, wanted, ("bwrap: not found",))
    assert [check.state for check in checks] == states
    if sandbox is LACKING:
        assert checks[1].text.startswith("udp: ") and len(checks[1].text) > 10
    if sandbox is NONE and wanted != "off":
        assert "apt install bubblewrap" in checks[0].hint and "bwrap: not found" in checks[0].hint


# ------------------------------------------------------------------ the mode of a session


class Talk:
    """As much of a session as is asked for its mode."""

    def __init__(self, had: Any) -> None:
        self.state = self
        self.reminders = self
        self.mode = had

    def choose_mode(self, mode: Any) -> None:
        self.mode = mode


@pytest.mark.parametrize(
    ("had", "wanted", "asked", "fixed", "then"),
    [
        (None, None, False, False, None),
        (None, "plan", False, False, "plan"),
        (None, "plan", True, False, "plan"),
        (None, "auto", True, False, None),  # what the settings say needs no line in the log
        ("plan", None, False, False, "plan"),
        ("plan", "auto", False, False, "plan"),  # from a file: the session knows better
        ("plan", "auto", True, False, "auto"),  # from a flag: the user has just said so
        ("plan", "bypass", True, False, "bypass"),
        ("accept-edits", "default", False, True, "default"),
        ("plan", "default", False, True, "plan"),
        ("plan", "plan", True, False, "plan"),
    ],
)
def test_a_mode_given_for_this_run_wins_over_the_log_and_the_log_over_a_file(had, wanted, asked, fixed, then):
    session: Any = Talk(had)
    begin_in_mode(session, settings(permission_mode=wanted, is_mode_fixed=fixed), is_asked_for=asked)
    assert session.mode == then


def test_every_mode_is_explained():
    assert all(mode_text(mode).startswith(f"{mode}: ") for mode in MODES)


def test_questions_can_not_be_switched_off_in_the_middle_nor_a_fixed_mode_left():
    assert "--yolo" in why_not("bypass", SETTINGS)
    assert why_not("bypass", settings(permission_mode="bypass")) == ""
    assert why_not("auto", SETTINGS) == ""
    fixed = settings(permission_mode="default", is_mode_fixed=True)
    assert why_not("accept-edits", fixed) and why_not("plan", fixed) == why_not("default", fixed) == ""


# ------------------------------------------------------------------ how it would have been allowed

POLICY = Policy("default", roots=("/ws",))


def question(effects: Effects, tool: str = "bash") -> Question:
    return Question(ToolCall("c", tool, "{}"), Request(tool, "0" * 64, effects), "because")


def advice(*effects: Effects, policy: Policy = POLICY) -> str:
    return how_to_allow([question(each) for each in effects], policy, cwd="/ws", home="/home/u")


def test_an_edit_inside_needs_another_mode_and_no_rule():
    text = advice(Effects(writes=("/ws/a",)))
    assert "--permission-mode accept-edits" in text and "--allowed-tools" not in text


def test_a_command_needs_a_rule_that_names_it():
    text = advice(Effects(commands=(("npm", "run", "test"),), unknown=True, seal="x"))
    assert "--allowed-tools 'Bash(npm run test" in text and "--permission-mode" not in text


def test_what_no_rule_can_name_is_left_to_allowing_everything():
    text = advice(UNKNOWN)
    assert "--allowed-tools" not in text and "rerun with --yolo" in text


def network(*commands: tuple[str, ...]) -> Effects:
    return Effects(commands=commands, unknown=True, seal="x", lifts=("network",))


def test_what_wants_the_network_is_named_word_for_word_in_a_setting_that_allows_it():
    text = advice(network(("cd", "web"), ("python3", "-m", "venv", "v"), ("v/bin/pip", "install", "a b")))
    line = text.partition(" put ")[2].partition(" into config.toml")[0]
    names = tomllib.loads(line)["network_commands"]
    assert names == ["python3 -m venv v", "v/bin/pip install 'a b'"]
    rules = tuple(network_rule(name, "config.toml", "/home/u") for name in names)
    held = Policy("auto", rules=rules, roots=("/ws",), sandbox=HELD)
    call = network(("python3", "-m", "venv", "v"), ("v/bin/pip", "install", "a b"))
    assert isinstance(decide(held, Request("bash", "0" * 64, call)), Allow)
    assert isinstance(decide(held, Request("bash", "0" * 64, network(("python3", "-m", "http.server")))), Ask)


def test_of_many_commands_that_want_the_network_the_first_are_named():
    text = advice(*(network(("npm", "ci", str(number))) for number in range(7)))
    assert '"npm ci 4"] (and 2 more) into config.toml' in text


def test_leaving_the_sandbox_is_not_offered_for_it_would_ask_about_all_other_commands_too():
    text = advice(Effects(commands=(("touch", "x"),), unknown=True, seal="x", lifts=("sandbox",)))
    assert "--sandbox" not in text and "rerun with --yolo" in text


def test_rules_and_the_network_are_offered_together():
    text = advice(Effects(commands=(("npm", "run", "test"),), unknown=True, seal="x"), network(("npm", "ci")))
    assert "rerun with --allowed-tools 'Bash(npm run test" in text
    assert 'and put network_commands = ["npm ci"] into config.toml, or rerun with --yolo' in text


def test_hostile_words_of_a_command_can_not_leave_their_place():
    text = advice(Effects(commands=(("pytest", "it's", "\x1b[2J$(x)"),), unknown=True, seal="x"))
    assert "\x1b" not in text


async def test_an_old_name_of_nobody_is_still_one():
    nobody = DenyAllApprover("/home/u")
    for number in range(100):
        await nobody.ask(question(Effects(writes=(f"/ws/{number}",)), "write_file"))
    assert len(nobody.refused) == 50


def test_an_environment_of_any_name_is_asked_about_in_accept_edits(tmp_path):
    (tmp_path / "tools-env" / "bin").mkdir(parents=True)
    (tmp_path / "tools-env" / "pyvenv.cfg").touch()
    (tmp_path / "src" / "bin").mkdir(parents=True)
    chosen = settings(cwd=str(tmp_path), home=str(tmp_path / "data"), permission_mode="accept-edits")
    policy = Policies(chosen, (str(tmp_path),), (), "/dev/null", Sandbox)()
    for name, wanted in (("tools-env/bin/x", Ask), ("src/bin/x", Allow)):
        found = decide(policy, Request("write_file", "", Effects(writes=(f"{tmp_path}/{name}",))))
        assert isinstance(found, wanted), found
