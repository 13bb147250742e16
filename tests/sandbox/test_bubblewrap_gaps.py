"""Changes that no mount prevents are blocked by bubblewrap in other ways, or undone after the program has ended."""

import subprocess
import time

import pytest
from bubblewrap_programs import bubblewrap_programs
from bwrap import needs_bwrap
from landlock_programs import USERS

from bradawl.core.permissions import Grant

pytestmark = needs_bwrap

_RUNS = "[core]\\n\\tfsmonitor = /bad\\n"
_WAIT = "touch up; until [ -e on ]; do sleep 0.01; done; "


@pytest.fixture(params=USERS)
def made(request):
    with bubblewrap_programs(request.param) as built:
        yield built


def _when_it_runs(made, act):
    """Context manager: runs `act` from outside while a program waits for it."""

    def meanwhile() -> None:
        deadline = time.monotonic() + 60
        while not (made.root / "up").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        act()
        (made.root / "on").touch()

    return meanwhile


def _git(made, *words: str) -> None:
    subprocess.run(["git", "-c", f"safe.directory={made.root}", *words], cwd=made.root, check=True)
    made.give_away()


def test_no_kernel_setting_can_be_changed(made):
    every = "import os\nfor top, _, names in os.walk('/proc/sys'):\n for name in names:\n"
    opened = "  try: os.close(os.open(f'{top}/{name}', os.O_WRONLY)); print(top, name)\n  except OSError: pass"
    ended = made.run(("python3", "-c", every + opened))
    assert (ended.code, ended.out) == (0, ""), ended.err


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        (f"git init -q new; printf '{_RUNS}' >> new/.git/config", "new/.git/config"),
        ("git init -q new; echo bad > new/.git/hooks/pre-commit", "new/.git/hooks/pre-commit"),
        ("git init -q new; echo '* x' > new/.git/info/attributes", "new/.git/info/attributes"),
        ("git init -q x; git -C x config core.fsmonitor bad; mv x/.git x/d; echo 'gitdir: d' > x/.git", "x/.git"),
        ("git init -q x; git -C x config core.fsmonitor bad; mv x/.git x/d; ln -s d x/.git", "x/.git"),
        ("git init -q x; mkdir -p x/.git/modules/m; printf '[alias]\\nx=!bad' > x/.git/modules/m/config", "x/.git"),
    ],
)
def test_a_new_repository_that_would_start_something_is_disarmed(made, line, gone):
    ended = made.sh(line)
    assert (ended.code, ended.err) == (0, "")
    assert any(path.startswith(str(made.root / gone)) for path in ended.restored)
    path = made.root / gone / "modules/m/config" if gone == "x/.git" else made.root / gone
    assert "fsmonitor" not in path.read_text() if gone == "new/.git/config" else not path.is_file()


def test_a_new_repository_in_a_workspace_without_one_starts_nothing(made):
    subprocess.run(["rm", "-r", made.root / ".git"], check=True)
    made.restart_backend(made.root)
    ended = made.sh(f"git init -q; printf '{_RUNS}' >> .git/config; echo bad > .git/hooks/pre-commit")
    assert set(ended.restored) == {str(made.root / ".git/config"), str(made.root / ".git/hooks/pre-commit")}


def test_an_ordinary_new_repository_is_left_as_it_is(made):
    line = (
        "git init -q -b main one; cd one; git config user.name A; git config user.email a@b; "
        "git config commit.gpgsign false; git config core.autocrlf input; git commit -q --allow-empty -m x; cd ..; "
        "git clone -q one two; git -C two remote add up https://example.com/x.git; "
        "git init -q three; cd three; git -c protocol.file.allow=always submodule add -q ../one one; "
        "git -C ../one worktree add -q ../four; git -C ../two status --short; git -C one log --oneline"
    )
    ended = made.sh(line)
    assert (ended.code, ended.restored) == (0, ()), ended.err
    assert " x\n" in ended.out
    again = made.sh("cd one; git -c protocol.file.allow=always clone -q --bare . ../bare; git worktree add -q ../five")
    assert (again.code, again.restored) == (0, ()), again.err


_COMMITTED = (
    "git init -q -b main; git config user.name A; git config user.email a@b; echo x > file; git add -A;"
    " git commit -qm one"
)


@pytest.fixture
def repository(made):
    """A workspace that is a repository, owned by the user of the programs."""
    subprocess.run(["rm", "-r", made.root / ".git"], check=True)
    made.bare(_COMMITTED)
    made.give_away()
    made.restart_backend(made.root)
    made.sh("true")
    return made


def test_git_ignores_placeholders(repository):
    ended = repository.sh(
        "echo y >> file; mkdir -p new/er; touch new/file; git clean -nd | grep -v new;"
        "git stash -qu && git status --porcelain && git stash pop -q && git clean -fdq && git checkout -q . &&"
        "git add -A && git status --porcelain; find . -type f -not -path './.git/*'; find . -maxdepth 1 -empty"
    )
    assert (ended.code, ended.out, ended.restored) == (0, "./file\n", ()), ended
    assert sorted(path.name for path in repository.root.iterdir()) == [".git", "file"]


def test_new_repositories_and_working_trees_can_be_removed(repository):
    inside, outside = repository.root / "tree", repository.root / "moved"
    for line in (
        "git worktree add -q tree; git worktree add -q /tmp/tree2; git clone -q . a/copy; git init -q fresh",
        "git worktree move tree moved; mv a b; git -C moved commit -q --allow-empty -m two; touch fresh/x",
        "git worktree remove moved && git worktree remove --force /tmp/tree2 && rm -r b fresh && git worktree list",
    ):
        ended = repository.sh(line)
        assert (ended.code, ended.err, ended.restored) == (0, "", ()), ended
        assert inside.exists() or outside.exists() or "move tree" not in line
    assert sorted(path.name for path in repository.root.iterdir()) == [".git", "file"]
    assert list((repository.root / ".git/worktrees").glob("*")) == []


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("git -C copy config core.fsmonitor armed", "copy/.git/config"),
        ("echo armed > copy/.git/hooks/pre-commit", "copy/.git/hooks/pre-commit"),
        ("mv copy old; mkdir copy; mv old/.git copy; git -C copy config core.fsmonitor armed", "copy/.git/config"),
        ("mv copy away; git -C away config core.fsmonitor armed", "away/.git/config"),
        ("echo /armed > .git/worktrees/tree/commondir", ".git/worktrees/tree/commondir"),
        (
            "printf '[core]\nfsmonitor=armed\n' > .git/worktrees/tree/config.worktree",
            ".git/worktrees/tree/config.worktree",
        ),
        (
            "git init -q x; git -C x config core.fsmonitor armed; cp -r x/.git d; rm tree/.git; mv d tree/.git",
            "",
        ),
    ],
)
def test_a_new_repository_can_not_get_hooks_later(repository, line, path):
    repository.sh("git worktree add -q tree; git clone -q . copy")
    config = (repository.root / "copy/.git/config").read_text()
    ended = repository.sh(line)
    assert ended.code == 0
    assert str(repository.root / path) in ended.restored or (not path and ended.restored)
    found = repository.bare(
        "grep -rn armed --include=config --include=config.worktree --include=commondir . ;find . -name pre-commit"
    )
    assert found == ""
    if path == "copy/.git/config":
        assert (repository.root / path).read_text() == config


def test_a_link_in_place_of_a_new_repository_changes_nothing_outside(repository):
    repository.sh("git clone -q . a/copy")
    repository.write(repository.outside / "copy/.git/HEAD", "x")
    before = sorted(repository.outside.rglob("*"))
    repository.sh(f"rm -r a; ln -s {repository.outside} a")
    assert sorted(repository.outside.rglob("*")) == before


def test_settings_of_the_user_in_a_new_repository_are_protected(repository):
    repository.sh("git clone -q . copy")
    repository.bare("git -C copy config core.hooksPath mine")
    config = (repository.root / "copy/.git/config").read_text()
    ended = repository.sh("git -C copy config core.fsmonitor bad || git -C copy status --short")
    assert (ended.code, ended.restored) == (0, ())
    assert (repository.root / "copy/.git/config").read_text() == config


def test_existing_submodules_are_unchanged_and_new_ones_are_checked(made):
    for name, text in (("old/config", '[filter "lfs"]\n\tclean = git-lfs clean\n'), ("old/hooks/pre-push", "mine")):
        made.write(made.root / ".git/modules" / name, text)
    made.write(made.root / ".git/modules/old/HEAD", "ref: refs/heads/main\n")
    made.give_away()
    bad = f"printf '{_RUNS}' > .git/modules/new/config; echo bad > .git/modules/new/hooks/pre-commit"
    ended = made.sh(f"mkdir -p .git/modules/new/hooks; cp .git/modules/old/HEAD .git/modules/new; {bad}")
    assert (ended.code, ended.err) == (0, "")
    new = made.root / ".git/modules/new"
    assert set(ended.restored) == {f"{new}/config", f"{new}/hooks/pre-commit"}
    assert (made.root / ".git/modules/old/hooks/pre-push").read_text() == "mine"


def test_a_program_started_before_a_repository_was_made_can_not_add_hooks_to_it(made):
    subprocess.run(["rm", "-r", made.root / ".git"], check=True)
    made.restart_backend(made.root)
    ended = made.run(
        ("bash", "-c", _WAIT + "echo bad > .git/hooks/pre-commit"),
        meanwhile=_when_it_runs(made, lambda: made.sh("git init -q .")),
    )
    assert ended.restored == (str(made.root / ".git/hooks/pre-commit"),)
    assert (made.root / ".git/config").is_file()


def test_writes_to_a_file_that_git_has_replaced_are_undone(made):
    _git(made, "init", "-q")
    before = (made.root / ".git/config").read_text()
    ended = made.run(
        ("bash", "-c", f"{_WAIT} printf '{_RUNS}' >> .git/config"),
        meanwhile=_when_it_runs(made, lambda: _git(made, "config", "user.name", "B")),
    )
    assert ended.restored == (str(made.root / ".git/config"),)
    assert (made.root / ".git/config").read_text() == f"{before}[user]\n\tname = B\n[core]\n"


def test_changes_by_the_users_git_meanwhile_are_kept(made):
    _git(made, "init", "-q")
    ended = made.run(
        ("bash", "-c", _WAIT),
        meanwhile=_when_it_runs(made, lambda: _git(made, "remote", "add", "up", "https://example.com/x.git")),
    )
    assert ended.restored == ()
    assert "example.com" in (made.root / ".git/config").read_text()


@pytest.mark.parametrize("name", [".idea", ".mcp.json", ".git/config"])
def test_a_protected_name_that_links_to_itself_does_not_prevent_programs_from_running(made, name):
    (made.root / name).unlink(missing_ok=True)
    (made.root / name).symlink_to(name.rpartition("/")[2])
    made.give_away()
    ended = made.sh(f"echo OK; rm -f {name}")
    assert ended.out == "OK\n"
    assert (made.root / name).is_symlink()


def test_files_with_keys_are_hidden_without_write_access_too(made):
    made.write(made.root / "sub/.env", "PRIVATE")
    made.give_away()
    assert "PRIVATE" not in made.sh("grep -r . .", grant=Grant()).out
    assert made.sh("cat sub/.env", grant=Grant(uncovered=(str(made.root / "sub/.env"),))).out == "PRIVATE"
