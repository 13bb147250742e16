"""Layouts of git's data that commands complete step by step, or that lead out of the workspace."""

from pathlib import Path

import pytest
from bwrap import needs_bwrap
from planted_layouts import WITHOUT_HEAD
from planted_ways import SETUP, armed, committed, script
from sandboxed_session import sandboxed_session
from test_planted_ways import run_line

pytestmark = needs_bwrap


def test_what_linked_working_trees_share_is_compared_after_it_was_made(tmp_path: Path):
    (tmp_path / "home").mkdir()
    arms = armed("x/config").replace("@MARKER@", f"{tmp_path}/marker")
    with sandboxed_session(tmp_path / "parent", home=str(tmp_path / "home")) as session:
        session.run(f"{WITHOUT_HEAD} && printf '[core]\\n\\trepositoryformatversion = 0\\n' > x/config")
        assert b"worktrees" in run_line("cd w && git rev-parse --git-dir", tmp_path).stdout
        session.run(arms)
        run_line("cd w && git status", tmp_path)
        session.run("mv x/objects x/moved")
        session.run(f"{arms}; mv x/moved x/objects")
        run_line("cd w && git status", tmp_path)
        session.run("mkdir x/hidden && mv x/objects x/refs x/hidden")
        session.run(arms)
        session.run("mv x/hidden/* x")
        run_line("cd w && git status", tmp_path)
    assert not (tmp_path / "marker").exists()


_DEEP = "a/b/c/d/e"
_CLONE = (
    f"git clone -q . {_DEEP} && git -C {_DEEP} config remote.up.url ../up && git -C {_DEEP} branch -q --no-track two"
)


@pytest.mark.parametrize(
    ("settings", "stay"),
    [
        ("remote.origin.url https://example.org/x", False),
        ("--add remote.origin.url https://example.org/x", False),
        ("branch.main.remote https://example.org/x", False),
        ("branch.main.remote new", False),
        ("branch.main.remote up", True),
        ("remote.new.url https://example.org/x", True),
        ("branch.two.remote origin", True),
    ],
)
def test_a_repository_far_down_that_existed_keeps_its_remotes(tmp_path: Path, settings: str, stay: bool):
    with sandboxed_session(tmp_path / "parent") as session:
        for line in (SETUP, _CLONE):
            done = run_line(line, tmp_path)
            assert done.returncode == 0, done.stderr
        config = session.root / _DEEP / ".git/config"
        before = config.read_text()
        session.run("true")
        result = session.run(f"git -C {_DEEP} config {settings}")
        assert (config.read_text() != before) is stay
        assert result.restored == (() if stay else (str(config),))


@pytest.mark.parametrize(("name", "written"), [(" l", "gitdir:  l"), ("l ", "gitdir: l "), ("l\t", "gitdir: l\\t")])
def test_blanks_in_a_git_file_belong_to_the_path(tmp_path: Path, name: str, written: str):
    (tmp_path / "home").mkdir()
    with sandboxed_session(tmp_path / "parent", home=str(tmp_path / "home")) as session:
        data = f"{session.cache}/data"
        plant = f"git init -q {data}-tree && mv {data}-tree/.git {data} && {armed(f'{data}/config')} && mkdir w"
        plant += f" && git init -q --bare w/l && ln -s {data} $'w/{name}' && printf '{written}\\n' > w/.git"
        done = session.run(f"mkdir -p {session.cache}; {plant.replace('@MARKER@', f'{tmp_path}/marker')}")
        assert done.exit_code == 0, done.stderr
        run_line("cd w && git status", tmp_path)
        assert done.restored == (f"{session.root}/w/.git",)
    assert not (tmp_path / "marker").exists()


def test_hooks_that_the_users_configuration_names_in_each_repository_are_reported(tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/more").write_text("[core]\n\thooksPath = ./.my-hooks/\n")
    (tmp_path / "home/.gitconfig").write_text("[include]\n\tpath = more\n[core]\n\thooksPath = /elsewhere\n")
    with sandboxed_session(tmp_path / "parent", home=str(tmp_path / "home")) as session:
        session.run("true")
        for folder in ("new", "a/b/c/d/e"):
            made = session.run(f"git init -q {folder} && {script(f'{folder}/.my-hooks/pre-commit')}")
            assert any(f"{session.root}/{folder}/.my-hooks" in note for note in made.notes), made.notes
            assert (session.root / folder / ".my-hooks/pre-commit").exists()
        assert session.run("mkdir elsewhere").notes == ()


def test_what_a_configuration_outside_the_home_folder_names_is_protected(tmp_path: Path):
    (tmp_path / "config").write_text("[core]\n\thooksPath = .githooks\n")
    with sandboxed_session(tmp_path / "parent", git_configs=(f"{tmp_path}/config",)) as session:
        assert run_line(f"{SETUP}mkdir .githooks", tmp_path).returncode == 0
        assert session.run("echo x > .githooks/pre-commit").exit_code != 0
        made = session.run(f"git init -q new && {script('new/.githooks/pre-commit')}")
        assert any(f"{session.root}/new/.githooks" in note for note in made.notes), made.notes


def test_settings_of_lazygit_in_git_data_are_reported_and_other_names_there_are_not(tmp_path: Path):
    with sandboxed_session(tmp_path / "parent") as session:
        assert run_line(SETUP, tmp_path).returncode == 0
        session.run("true")
        for line in ("echo x > .git/lazygit.yml", "echo y > .git/lazygit.yml"):
            assert any(f"{session.root}/.git/lazygit.yml" in note for note in session.run(line).notes)
        assert session.run("mkdir .git/x; echo x > .git/x/lazygit.yml; git branch .github").notes == ()


def test_a_submodule_in_a_shared_index_is_found(tmp_path: Path):
    (tmp_path / "home").mkdir()
    with sandboxed_session(tmp_path / "parent", home=str(tmp_path / "home")) as session:
        arms = armed("lib/.git/config").replace("@MARKER@", f"{tmp_path}/marker")
        for line in (SETUP, f"git init -q lib && {committed('lib')} && {arms}"):
            assert run_line(line, tmp_path).returncode == 0
        session.run("true")
        adds = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib && git update-index --split-index"
        result = session.run(adds)
        assert result.exit_code == 0, result.stderr
        run_line("git status", tmp_path)
        assert result.restored == (f"{session.root}/.git/index",)
    assert not (tmp_path / "marker").exists()
