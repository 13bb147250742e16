"""Permission modes: sandbox warnings, the mode a session starts in, and advice on how to allow refused calls."""

import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bradawl.app.data_folder import unwritable_place, without_data_text
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.doctor.machine import sandbox_checks
from bradawl.app.modes import (
    begin_in_mode,
    help_with_refusals,
    mode_text,
    sandbox_text,
    sandbox_warning,
    undo_warning,
    why_not,
)
from bradawl.app.policies import Policies
from bradawl.app.refusal_advice import how_to_allow
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permission_values import RuleText
from bradawl.app.settings.settings import Settings
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import MODES, Allow, Ask, Policy, Question, Request, Sandbox, decide
from bradawl.safety.permissions.rule_syntax import network_rule

SETTINGS = Settings(model=ModelSettings(provider="scripted", name="x"), cwd="/ws", home=tempfile.gettempdir())
COMPLETE = Sandbox("bubblewrap")
PARTIAL = Sandbox("landlock", ("udp", "unix_sockets"))
MISSING = Sandbox()


def settings(**changes: Any) -> Settings:
    return msgspec.structs.replace(SETTINGS, **changes)


# ------------------------------------------------------------------ sandbox warnings


def test_a_sandbox_that_cant_limit_hosts_says_that_granted_domains_have_no_effect():
    granted = settings(rules=(RuleText("domain", "docs.example.org", "--network", "/ws"),))
    for sandbox in (Sandbox("landlock", ("domains",)), Sandbox("landlock", ("credentials", "domains"))):
        text = sandbox_warning(lambda sandbox=sandbox: sandbox, granted, user_is_there=False)
        assert "rules that grant domains have no effect" in text
        assert "domains have" not in sandbox_warning(lambda sandbox=sandbox: sandbox, SETTINGS, user_is_there=False)
    for sandbox in (COMPLETE, PARTIAL, MISSING):
        assert "domains have" not in sandbox_warning(lambda sandbox=sandbox: sandbox, granted, user_is_there=False)


def test_a_complete_sandbox_gives_no_warning():
    assert sandbox_warning(lambda: COMPLETE, SETTINGS, user_is_there=True) == ""


def test_the_warning_about_a_missing_sandbox_names_the_package_to_install():
    text = sandbox_warning(lambda: MISSING, SETTINGS, user_is_there=True)
    assert text.startswith("NO SANDBOX: ") and "you are asked about" in text
    assert "bradawl refuses every command" in sandbox_warning(lambda: MISSING, SETTINGS, user_is_there=False)


def test_with_bubblewrap_installed_the_warning_names_doctor_instead_of_a_package(tmp_path):
    without = sandbox_warning(lambda: MISSING, settings(environment={"PATH": str(tmp_path)}), user_is_there=True)
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    with_it = sandbox_warning(lambda: MISSING, settings(environment={"PATH": str(tmp_path)}), user_is_there=True)
    assert "apt install" in without and "doctor" not in without
    assert "apt install" not in with_it and "`bradawl doctor` says why" in with_it


@pytest.fixture
def blocked(tmp_path: Path) -> str:
    """A data folder below a file, which no user can make."""
    (tmp_path / "file").write_text("")
    return str(tmp_path / "file" / "share" / "bradawl")


@pytest.mark.parametrize("is_installed", [True, False])
def test_without_a_data_folder_nothing_is_to_be_installed(blocked, tmp_path, is_installed):
    if is_installed:
        (tmp_path / "bwrap").write_text("#!/bin/sh\n")
        (tmp_path / "bwrap").chmod(0o755)
    (tmp_path / "ws").mkdir()
    home, environment = str(tmp_path / "home"), {"PATH": str(tmp_path)}
    there = settings(home=blocked, cwd=str(tmp_path / "ws"), user_home=home, environment=environment)
    (check,) = sandbox_checks(MISSING, "auto", ("no luck",), without_data=without_data_text(blocked))
    for text in (sandbox_warning(lambda: MISSING, there, user_is_there=False), help_with_refusals(there), check.hint):
        assert f"No sandbox works, because {Path(blocked).parents[1]} can't be written" in text
        assert "BRADAWL_HOME" in text and "apt install" not in text


def test_changes_that_cannot_be_saved_are_announced_at_the_start(blocked):
    said = f"Changes can't be undone: {Path(blocked).parents[1]} can't be written."
    assert undo_warning(settings(home=blocked)).startswith(said)
    assert undo_warning(settings(home=blocked, undo=False)) == undo_warning(SETTINGS) == ""


def test_a_sandbox_that_the_user_switched_off_gives_no_warning():
    assert sandbox_warning(lambda: MISSING, settings(sandbox="off"), user_is_there=True) == ""


def test_a_partial_sandbox_lists_what_it_cannot_hold():
    assert "landlock can't hold udp, unix_sockets" in sandbox_warning(lambda: PARTIAL, SETTINGS, user_is_there=True)
    assert sandbox_text(PARTIAL) == "landlock, which can't hold: udp, unix_sockets"
    assert sandbox_text(COMPLETE) == "bubblewrap" and sandbox_text(MISSING).startswith("none")


@pytest.mark.parametrize(
    ("sandbox", "wanted", "states"),
    [
        (COMPLETE, "auto", ["ok"]),
        (MISSING, "auto", ["warning"]),
        (MISSING, "required", ["problem"]),
        (MISSING, "off", ["warning"]),
        (PARTIAL, "auto", ["warning"] * 3),
    ],
)
def test_doctor_reports_the_sandbox_and_what_it_lacks(sandbox, wanted, states):
    checks = sandbox_checks(sandbox, wanted, ("bwrap: not found",))
    assert [check.state for check in checks] == states
    if sandbox is PARTIAL:
        assert checks[1].text.startswith("udp: ") and len(checks[1].text) > 10
    if sandbox is MISSING and wanted != "off":
        assert "apt install bubblewrap" in checks[0].hint and "bwrap: not found" in checks[0].hint


# ------------------------------------------------------------------ the mode of a session


class FakeSession:
    """A session reduced to its mode."""

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
        (None, "auto", True, False, None),  # the settings already say so: nothing is logged
        ("plan", None, False, False, "plan"),
        ("plan", "auto", False, False, "plan"),  # from a file: the log wins
        ("plan", "auto", True, False, "auto"),  # from a flag: the flag wins
        ("plan", "bypass", True, False, "bypass"),
        ("accept-edits", "default", False, True, "default"),
        ("plan", "default", False, True, "plan"),
        ("plan", "plan", True, False, "plan"),
    ],
)
def test_a_mode_given_for_this_run_wins_over_the_log_and_the_log_over_a_file(had, wanted, asked, fixed, then):
    session: Any = FakeSession(had)
    begin_in_mode(session, settings(permission_mode=wanted, is_mode_fixed=fixed), is_asked_for=asked)
    assert session.mode == then


def test_every_mode_is_explained():
    assert all(mode_text(mode).startswith(f"{mode}: ") for mode in MODES)


def test_bypass_cannot_be_chosen_during_a_session_and_a_fixed_mode_cannot_be_left():
    assert "--yolo" in why_not("bypass", SETTINGS)
    assert why_not("bypass", settings(permission_mode="bypass")) == ""
    assert why_not("auto", SETTINGS) == ""
    fixed = settings(permission_mode="default", is_mode_fixed=True)
    assert why_not("accept-edits", fixed) and why_not("plan", fixed) == why_not("default", fixed) == ""


# ------------------------------------------------------------------ how to allow a refused call

POLICY = Policy("default", roots=("/ws",))


def question(effects: Effects, tool: str = "bash") -> Question:
    return Question(ToolCall("c", tool, "{}"), Request(tool, "0" * 64, effects), "because")


def advice(*effects: Effects, policy: Policy = POLICY) -> str:
    return how_to_allow([question(each) for each in effects], policy, cwd="/ws", home="/home/u")


def test_for_an_edit_in_the_workspace_a_mode_is_advised_and_no_rule():
    text = advice(Effects(writes=("/ws/a",)))
    assert "--permission-mode accept-edits" in text and "--allowed-tools" not in text


def test_for_a_command_a_rule_that_names_it_is_advised():
    text = advice(Effects(commands=(("npm", "run", "test"),), unknown=True, seal="x"))
    assert "--allowed-tools 'Bash(npm run test" in text and "--permission-mode" not in text


def test_for_effects_that_no_rule_can_name_a_run_with_a_user_is_advised_before_yolo():
    assert advice(UNKNOWN) == (
        "No user is present to be asked, and no rule allows such calls: run bradawl without -p and answer, or rerun "
        "with --yolo (asks nothing, and nothing holds what runs)."
    )


def test_yolo_is_not_advised_for_what_it_refuses():
    leaves = Effects(commands=(("touch", "x"),), unknown=True, seal="x", lifts=("sandbox",))
    text = advice(leaves, policy=Policy("auto", roots=("/ws",), sandbox=COMPLETE))
    assert text.endswith("no rule allows such calls: run bradawl without -p and answer.")


def network(*commands: tuple[str, ...]) -> Effects:
    return Effects(commands=commands, unknown=True, seal="x", lifts=("network",))


def test_for_network_commands_a_setting_that_lists_them_word_for_word_is_advised():
    text = advice(network(("cd", "web"), ("python3", "-m", "venv", "v"), ("v/bin/pip", "install", "a b")))
    line = text.partition(" put ")[2].partition(" into config.toml")[0]
    names = tomllib.loads(line)["network_commands"]
    assert names == ["python3 -m venv v", "v/bin/pip install 'a b'"]
    rules = tuple(network_rule(name, "config.toml", "/home/u") for name in names)
    held = Policy("auto", rules=rules, roots=("/ws",), sandbox=COMPLETE)
    call = network(("python3", "-m", "venv", "v"), ("v/bin/pip", "install", "a b"))
    assert isinstance(decide(held, Request("bash", "0" * 64, call)), Allow)
    assert isinstance(decide(held, Request("bash", "0" * 64, network(("python3", "-m", "http.server")))), Ask)


def test_only_the_first_of_many_network_commands_are_listed():
    text = advice(*(network(("npm", "ci", str(number))) for number in range(7)))
    assert '"npm ci 4"] (and 2 more) into config.toml' in text


def test_switching_the_sandbox_off_is_not_advised():
    text = advice(Effects(commands=(("touch", "x"),), unknown=True, seal="x", lifts=("sandbox",)))
    assert "--sandbox" not in text and "run bradawl without -p and answer, or rerun with --yolo" in text


def test_rules_and_network_commands_are_advised_together():
    text = advice(Effects(commands=(("npm", "run", "test"),), unknown=True, seal="x"), network(("npm", "ci")))
    assert "rerun with --allowed-tools 'Bash(npm run test" in text
    assert 'and put network_commands = ["npm ci"] into config.toml, or rerun with --yolo' in text


def connection(host: str) -> Effects:
    return Effects(hosts=(host,), lifts=("host",))


def test_for_refused_hosts_the_flag_that_grants_them_is_advised():
    text = advice(connection("a.example"), connection("b.example:81"), connection("a.example"))
    assert "rerun with --network a.example --network b.example:81, or" in text
    assert "--allowed-tools" not in text and "network_commands" not in text
    many = advice(*(connection(f"{number}.example") for number in range(7)), network(("npm", "ci")))
    assert "--network 4.example (and 2 more hosts) and put network_commands" in many


def test_control_characters_of_a_command_are_not_printed():
    text = advice(Effects(commands=(("pytest", "it's", "\x1b[2J$(x)"),), unknown=True, seal="x"))
    assert "\x1b" not in text


async def test_an_approver_that_denies_all_remembers_50_refused_questions():
    approver = DenyAllApprover("/home/u")
    for number in range(100):
        await approver.ask(question(Effects(writes=(f"/ws/{number}",)), "write_file"))
    assert len(approver.refused) == 50


def test_accept_edits_asks_before_a_write_to_a_virtual_environment_of_any_name(tmp_path):
    (tmp_path / "tools-env" / "bin").mkdir(parents=True)
    (tmp_path / "tools-env" / "pyvenv.cfg").touch()
    (tmp_path / "src" / "bin").mkdir(parents=True)
    chosen = settings(cwd=str(tmp_path), home=str(tmp_path / "data"), permission_mode="accept-edits")
    policy = Policies(chosen, (str(tmp_path),), (), "/dev/null", Sandbox)()
    for name, wanted in (("tools-env/bin/x", Ask), ("src/bin/x", Allow)):
        found = decide(policy, Request("write_file", "", Effects(writes=(f"{tmp_path}/{name}",))))
        assert isinstance(found, wanted), found


@pytest.mark.parametrize(
    ("blocks", "files", "free_files", "is_full"),
    [(255, 100, 9, True), (256, 100, 9, False), (9_999, 100, 0, True), (9_999, 0, 0, False)],
    ids=["less than 1 MB", "1 MB", "no inode", "a file system that counts no inodes"],
)
def test_a_folder_on_a_full_disk_can_not_be_written(
    tmp_path: Path, blocks: int, files: int, free_files: int, is_full: bool
):
    def statvfs(_: Path) -> os.statvfs_result:
        return os.statvfs_result((4_096, 4_096, 10_000, blocks, blocks, files, free_files, free_files, 0, 255))

    folder = str(tmp_path / "data" / "deep")
    assert unwritable_place(folder, statvfs) == (f"{tmp_path}, whose disk is full," if is_full else "")
    said = without_data_text(folder, statvfs)
    assert said.startswith(f"bubblewrap does not work, because {tmp_path}, whose disk is full,") is is_full
    assert bool(said) is is_full and ("free some space" in said) is is_full
