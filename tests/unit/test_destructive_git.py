"""Forced pushes are always asked about; other git commands that discard work are if undo does not cover them."""

import os
from pathlib import Path

import msgspec
import pytest
from git_commands import DISCARDS, FINAL, FORCED, HARMLESS
from shell_workspace import HOME, scanned

from bradawl.app.policies import Policies
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.permissions import MODES, Allow, Ask, Decision, Deny, Mode, Policy, Request, Sandbox, decide
from bradawl.core.rules import Rule
from bradawl.safety.permissions.suggestions import proposals
from bradawl.safety.shell.analysis import ShellContext, line_effects
from bradawl.workspace.files import LocalFiles


@pytest.mark.parametrize("line", FORCED)
def test_forced_pushes_are_found(line: str):
    found = scanned(line)
    assert found.forced and not found.danger


@pytest.mark.parametrize("line", DISCARDS)
def test_commands_that_discard_work_are_found(line: str):
    found = scanned(line)
    assert found.discards and not found.forced and not found.danger


@pytest.mark.parametrize("line", HARMLESS)
def test_commands_that_lose_nothing_are_not_found(line: str):
    found = scanned(line)
    assert (found.forced, found.discards, found.undoable) == ("", "", False)


@pytest.mark.parametrize("line", dict.fromkeys((*DISCARDS, *FINAL)))
def test_undo_covers_all_but_pruned_objects_rewritten_history_and_ignored_files(line: str):
    final = ("prune=", "gc --pru", "gc.", "git prune", "repack", "filter-repo", "clean -fdx", "clean -xdff")
    is_final = any(word in line for word in final)
    assert scanned(line).undoable is not is_final


# ------------------------------------------------------------------ decisions

ANYTHING = Rule("allow", "tool", "bash", text="Bash", source="user")
PUSHES = Rule("allow", "run", words=("git", "push", "*"), text="Bash(git push *)", source="user")
RESETS = Rule("allow", "run", words=("git", "reset", "*"), text="Bash(git reset *)", source="user")
COMPLETE = Sandbox("a sandbox")


def request(line: str, **more) -> Request:
    context = ShellContext(LocalFiles(HOME).resolve, HOME, ("/ws",), is_covered=lambda: True)
    effects = line_effects(line, "/ws", {}, context)
    return Request("bash", "digest", msgspec.structs.replace(effects, seal="a", **more))


def decided(line: str, mode: Mode = "auto", *rules: Rule, undo: bool = False, **more) -> Decision:
    return decide(Policy(mode, rules=rules, roots=("/ws",), sandbox=COMPLETE, undo=undo), request(line, **more))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("plan", "bypass")])
@pytest.mark.parametrize("rules", [(), (ANYTHING,), (PUSHES,), (Rule("allow", "network", words=("git", "*")),)])
@pytest.mark.parametrize(
    "line", ["git push --force", "git push origin +main", "git push origin :main", "ls; git push -d o b"]
)
def test_a_forced_push_is_asked_about_whatever_the_rules_allow(line: str, rules, mode: Mode):
    for lifts in ((), ("network",), ("sandbox",)):
        decision = decided(line, mode, *rules, undo=True, lifts=lifts)
        assert isinstance(decision, Ask) and decision.by_rule
        assert "remote repository" in decision.reason


def test_an_approval_of_a_forced_push_holds_once_and_no_rule_is_proposed_for_it():
    asked = request("git push --force")
    assert asked.effects.unsealed
    assert proposals(asked, cwd="/ws", home=HOME) == ()


def test_a_forced_push_runs_in_bypass_and_is_refused_in_plan_mode():
    assert isinstance(decided("git push --force", "bypass"), Allow)
    assert isinstance(decided("git push --force", "plan"), Deny)


def test_a_rule_for_pushes_allows_those_that_are_not_forced():
    assert isinstance(decided("git push origin main", "default", PUSHES), Allow)


@pytest.mark.parametrize("line", DISCARDS)
def test_in_auto_work_is_discarded_unasked_only_if_undo_covers_it(line: str):
    effects = request(line).effects
    without, with_undo = decided(line), decided(line, undo=True)
    assert isinstance(without, Ask) and without.reason.startswith("it discards ")
    assert without.reason == f"it discards {effects.discards}, and undo can't bring that back"
    assert isinstance(with_undo, Allow) if effects.undoable else with_undo == without


def test_the_policy_of_the_program_tells_whether_undo_is_on(tmp_path: Path):
    chosen = Settings(model=ModelSettings("none", "none"), cwd=str(tmp_path), home=str(tmp_path / "data"))
    assert Policies(chosen, (str(tmp_path),), (), "/dev/null", Sandbox, has_undo=True)().undo
    assert not Policies(chosen, (str(tmp_path),), (), "/dev/null", Sandbox)().undo


def test_the_reason_says_what_is_discarded():
    assert decided("git stash drop") == Ask(
        decided("git stash drop").grant, "it discards stashed changes, and undo can't bring that back"
    )
    both = decided("git reset --hard && git clean -fd; git reset --hard HEAD~1")
    assert both.reason == "it discards uncommitted changes and untracked files, and undo can't bring that back"
    final = decided("git stash clear; git gc --prune=now", undo=True)
    assert final.reason == (
        "it discards objects that no reference leads to and stashed changes, and undo can't bring that back"
    )


def test_a_rule_that_allows_the_command_answers_the_question_about_discarded_work():
    assert isinstance(decided("git reset --hard", "auto", RESETS), Allow)
    assert isinstance(decided("git reset --hard; git clean -fd", "auto", RESETS), Ask)
    assert isinstance(decided("git gc --prune=now", "auto", ANYTHING), Allow)


def test_other_modes_ask_with_the_same_reason_and_bypass_does_not_ask():
    assert (
        decided("git reset --hard", "default").reason
        == "it discards uncommitted changes, and undo can't bring that back"
    )
    assert decided("git reset --hard", "default", undo=True).reason.endswith("what it would change can't be told")
    assert isinstance(decided("git reset --hard", "bypass"), Allow)


@pytest.mark.parametrize("line", [line for line in HARMLESS if "push" not in line])
def test_commands_that_lose_nothing_run_unasked_in_auto(line: str):
    assert isinstance(decided(line), Allow)


@pytest.mark.parametrize(
    "line",
    ["rm -rf .git", "rm -rf sub/.git/", "make; rm -rf .git/objects", "rm -rf $PWD/.git/refs/heads", "rm -rf .git/*"],
)
def test_a_deleted_repository_is_asked_about_even_with_undo(line: str):
    scan = scanned(line)
    assert scan.danger or (scan.discards == "a git repository" and not scan.undoable)


@pytest.mark.parametrize("line", ["make; rm -f .git/index.lock", "make; rm -rf .github", "make; rm .gitignore x.git"])
def test_other_files_with_such_names_are_not_a_repository(line: str):
    assert scanned(line).discards == ""


def test_an_operand_of_checkout_that_is_a_file_is_no_branch(tmp_path: Path):
    (tmp_path / "notes").touch()
    context = ShellContext(LocalFiles(HOME).resolve, HOME, (str(tmp_path),))

    def discards(line: str) -> str:
        return line_effects(line, str(tmp_path), {}, context).discards

    assert discards("git checkout notes") and discards("cd .. && git -C */ checkout x; git checkout ./notes")
    assert discards("cd /etc && git checkout hostname") or not os.path.lexists("/etc/hostname")
    assert not discards("git checkout main")
    assert discards('cd "$(cat x)" && git checkout main')  # the folder is unknown


def test_what_a_long_text_hides_at_its_end_is_found_by_patterns():
    before = "ls\n" * 3_000
    for line, is_forced in (("git push -u --force", True), ("'git' push origin +x", True), ("git stash drop", False)):
        found = scanned(before + line)
        assert not found.is_whole and bool(found.forced) is is_forced and bool(found.discards) is not is_forced
        assert found.undoable is not is_forced
    assert not scanned(before + "git stash drop; git gc --prune=now").undoable
    assert (scanned(before + "git push").forced, scanned(before + "git status").discards) == ("", "")
