"""Paths of a workspace from which git runs something, which file tools ask about."""

import os
import re
from pathlib import Path

import pytest

from bradawl.core.effects import Effects
from bradawl.core.permissions import Request
from bradawl.safety.git import named_paths
from bradawl.safety.git.run_paths import _NAMING, paths_run_by_git
from bradawl.safety.permissions.protected_paths import run_by_git_rules
from bradawl.safety.permissions.suggestions import proposals


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "ws"
    (folder / ".git/hooks").mkdir(parents=True)
    (folder / ".git/hooks/pre-commit.sample").write_text("#!/bin/sh\nscripts/sample.sh\n")
    (folder / ".git/config").write_text("[core]\n\tbare = false\n")
    return folder


def found(root: Path, home: Path) -> set[str]:
    return {os.path.relpath(path, root) for path in paths_run_by_git(str(root), str(home))}


def test_scripts_that_hooks_run_are_found(tree: Path, tmp_path: Path) -> None:
    assert found(tree, tmp_path) == set()
    (tree / "scripts").mkdir()
    (tree / "scripts/check.py").touch()
    (tree / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexec python3 scripts/check.py\n")
    assert found(tree, tmp_path) == {"scripts/check.py"}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("[core]\n\thooksPath = .githooks", ".githooks"),
        ("[CORE]\n\tHOOKSPATH = .githooks", ".githooks"),
        ("[core]\n\tfsmonitor = tools/watch", "tools/watch"),
        ("[include]\n\tpath = ../tools/more", "tools/more"),
        ('[filter "x"]\n\tclean = tools/clean', "tools/clean"),
        ("[alias]\n\ts = !tools/s", "tools/s"),
        ("[init]\n\ttemplateDir = tpl", "tpl"),
        ("[gc]\n\trecentObjectsHook = tools/x", "tools/x"),
        ('[hook "x"]\n\tcommand = tools/x', "tools/x"),
        ('[guitool "x"]\n\tcmd = tools/x', "tools/x"),
        ('[tar "x"]\n\tcommand = tools/x', "tools/x"),
        ("[imap]\n\ttunnel = tools/x", "tools/x"),
        ("[sendemail]\n\tsmtpServer = ./tools/x", "tools/x"),
        ('[sendemail "me"]\n\theaderCmd = tools/x', "tools/x"),
        ('[lfs "customtransfer.x"]\n\tpath = tools/x', "tools/x"),
        ('[lfs "extension.x"]\n\tclean = tools/x', "tools/x"),
        ("[instaweb]\n\thttpd = tools/x", "tools/x"),
        ("[x]\n\ty = z\n" * 8_000 + "[core]\n\thooksPath = .githooks", ".githooks"),
    ],
)
@pytest.mark.parametrize("of", ["repository", "user", "linked"])
def test_what_the_configuration_names_is_found(tree: Path, tmp_path: Path, line: str, path: str, of: str) -> None:
    if of == "repository":
        (tree / ".git/config").write_text(f"{line}\n")
    elif "include" not in line:
        place = tmp_path / (".gitconfig" if of == "user" else "dotfiles")
        place.write_text(f"{line}\n")
        if of == "linked":
            (tmp_path / ".gitconfig").symlink_to(place)
    else:
        pytest.skip("relative to the file")
    assert found(tree, tmp_path) == {path}


def test_a_folder_in_a_repository_has_the_paths_of_the_repository_that_lie_in_it(tree: Path, tmp_path: Path) -> None:
    (tree / ".git/config").write_text("[core]\n\tfsmonitor = src/watch\n\thooksPath = hooks\n")
    (tree / "src").mkdir()
    assert found(tree / "src", tmp_path) == {"watch"}


def test_without_a_repository_and_with_unreadable_data_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = x\n")
    assert found(tmp_path, tmp_path) == set()
    (tmp_path / "ws/.git").mkdir(parents=True)
    os.mkfifo(tmp_path / "ws/.git/config")
    (tmp_path / "ws/.git/hooks").symlink_to("nowhere")
    (tmp_path / ".gitconfig").unlink()
    assert found(tmp_path / "ws", tmp_path) == set()


def test_each_setting_that_names_a_program_has_one_of_the_words_that_are_searched_for() -> None:
    names = [*re.findall(r"[a-z]{3,}", named_paths._PROGRAM.pattern), "fsmonitor", "hookspath"]
    sections = {"filter", "diff", "merge", "core", "sequence", "pager", "alias", "gpg", "credential", "ssh", "trailer"}
    sections |= {"difftool", "tool", "remote", "browser", "man", "interactive", "submodule", "uploadpack"}
    sections |= {"hook", "tar", "guitool", "imap", "svn", "sendemail", "help", "web", "instaweb", "lfs"}
    sections |= {"customtransfer", "extension"}
    assert [name for name in names if name not in sections and not any(word in name for word in _NAMING)] == []


def test_file_tools_ask_about_them() -> None:
    assert run_by_git_rules(()) == ()
    (rule,) = run_by_git_rules(("/w/.githooks", "/w/scripts/check.py"))
    assert (rule.verdict, rule.on) == ("ask", "write")
    for path, asked in {
        "/w/.githooks/pre-commit": True,
        "/w/scripts/CHECK.py": True,
        "/w/scripts/check.pyx": False,
        "/w/scripts": False,
    }.items():
        assert bool(re.fullmatch(rule.pattern, path, re.DOTALL)) == asked, path


def test_the_rule_that_is_offered_for_one_names_the_file_alone(tree: Path, tmp_path: Path) -> None:
    (tree / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexec python3 scripts/check.py\n")
    (tree / "scripts").mkdir()
    (tree / "scripts/check.py").touch()

    def offered(path: str) -> tuple[str, ...]:
        request = Request("edit_file", "", Effects(writes=(f"{tree}/{path}",)))
        return proposals(request, cwd=str(tree), home=str(tmp_path), roots=(str(tree),))

    assert offered("scripts/check.py") == ("Edit(scripts/check.py)",)
    assert offered("scripts/other.py") == ("Edit(scripts/**)",)
