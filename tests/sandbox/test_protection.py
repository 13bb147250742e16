"""What protection leaves alone: files that existed before, ordinary work with git, and tools that set up a project."""

import asyncio
import errno
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest
from bubblewrap_programs import bubblewrap_programs
from bwrap import BWRAP, needs_bwrap
from forked import as_plain_user
from landlock_programs import SYSTEM_PYTHON, USERS
from replaced_covers import BlindWatch, use_covers
from sandboxed_session import IDENTITY, SandboxedSession

from bradawl.core.errors import ToolError
from bradawl.core.workspace import Command
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.landlock import LandlockBackend

DEEP = "a/b/c/d/e/f"
_ARM = "printf '[core]\\n\\tfsmonitor = /bad\\n' >>"


@pytest.fixture
def open_place():
    """A folder that every user can reach, and not below `/tmp`."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    Path(folder).chmod(0o777)
    yield Path(folder)
    remove_folder(folder)


def _git_init(made: SandboxedSession, folder: str = ".") -> None:
    made.git_init(folder)
    made.cwd = str(made.root)


def _deep_repository(made: SandboxedSession, folder: str = DEEP) -> dict[str, bytes]:
    """A repository of the user that runs programs of the user; returns its files that git obeys."""
    _git_init(made, folder)
    made.bare(f"git -C {folder} config core.fsmonitor /usr/bin/true; echo 'exit 0' > {folder}/.git/hooks/pre-commit")
    names = (".git/config", ".git/hooks/pre-commit")
    return {name: (made.root / folder / name).read_bytes() for name in names}


def test_a_repository_of_the_user_is_not_changed_when_its_folder_is_moved(either_way):
    files = _deep_repository(either_way)
    ended = either_way.run("mv a/b/c x; mkdir y; mv x/d y")
    assert (ended.exit_code, ended.restored) == (0, ())
    assert {name: (either_way.root / "y/d/e/f" / name).read_bytes() for name in files} == files
    assert not (either_way.root / "a/b/c").exists()


def test_a_repository_that_is_moved_and_armed_is_disarmed(either_way, backend):
    if backend == "bare":
        pytest.skip("without a sandbox nothing is disarmed")
    _deep_repository(either_way)
    either_way.run(f"mv a/b/c x; {_ARM} x/d/e/f/.git/config")
    assert not any(b"/bad" in path.read_bytes() for path in either_way.root.rglob("config"))


def test_a_folder_with_repositories_can_be_removed(either_way):
    _deep_repository(either_way, "node_modules/x")
    _deep_repository(either_way)
    ended = either_way.run("rm -rf node_modules a; ls -A")
    assert (ended.exit_code, ended.restored) == (0, ())
    assert not (either_way.root / "a").exists()


@pytest.mark.parametrize(
    "line",
    [
        f"git init -q {DEEP}; cd {DEEP}; {IDENTITY}; git commit -q --allow-empty -m x; git status --short",
        f"git clone -q one {DEEP}; git -C {DEEP} log --oneline",
        f"git clone -q --bare one {DEEP}.git; git -C {DEEP}.git worktree add -q $PWD/n/m/o/p/q;"
        " git -C n/m/o/p/q status -s",
        f"git init -q {DEEP}; cd {DEEP}; git -c protocol.file.allow=always submodule add -q $OLDPWD/one one;"
        " git submodule status; cd $OLDPWD",
        "git clone -q --mirror one a.git; git -C a.git fetch -q; git -C a.git log --oneline",
        f"mkdir -p a; git init -q --separate-git-dir=a/data.git {DEEP}; git -C {DEEP} status -s",
        "git init -q --bare node_modules/x.git; git clone -q node_modules/x.git y/z/w/v/u 2>/dev/null",
    ],
)
def test_ordinary_new_repositories_stay_at_any_depth(either_way, line):
    _git_init(either_way, "one")
    ended = either_way.run(line)
    assert (ended.exit_code, ended.restored, ended.notes) == (0, (), ()), ended.stderr
    either_way.cwd = str(either_way.root)
    assert either_way.run("git -C one status --short").restored == ()
    assert either_way.run(f"rm -rf {DEEP}* n node_modules y").exit_code == 0


def test_a_rebase_works_and_steps_that_run_programs_do_not_stay(either_way, backend):
    either_way.bare(
        f"git init -q -b main; {IDENTITY}; for i in 1 2 3; do echo $i > file; git add file; git commit -qm $i; done"
    )
    ended = either_way.run("git rebase -q --exec 'test -f file' HEAD~2 && git log --oneline | wc -l")
    assert (ended.exit_code, ended.stdout.strip(), ended.restored) == (0, b"3", ())
    stop = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2"
    assert either_way.run(stop).restored == ()
    assert either_way.run("git rebase --continue; git log --oneline | wc -l").stdout.endswith(b"3\n")
    assert not (either_way.root / ".git/rebase-merge").exists()
    either_way.run(stop)
    ended = either_way.run("echo 'exec /bad' >> .git/rebase-merge/git-rebase-todo")
    steps = (either_way.root / ".git/rebase-merge/git-rebase-todo").read_text()
    assert ("exec /bad" in steps) == (backend == "bare")
    assert ("pick" in steps) and bool(ended.restored) == (backend != "bare")


def test_the_users_steps_of_a_rebase_stay(either_way):
    either_way.bare(
        f"git init -q -b main; {IDENTITY}; for i in 1 2 3; do echo $i > file; git add file; git commit -qm $i; done;"
        " GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i --exec true HEAD~2"
    )
    ended = either_way.run("git rebase --continue; git log --oneline | wc -l")
    assert ended.stdout.endswith(b"3\n")
    assert ended.restored == ()


def test_tools_may_set_up_a_project_and_that_is_reported(either_way, backend):
    line = "mkdir -p app/.github/workflows app/.husky; echo x > app/.github/workflows/ci.yml"
    ended = either_way.run(
        f"{line}; echo x > app/.husky/pre-commit; echo '{{}}' > app/a.code-workspace; mkdir -p node_modules/x/.github"
    )
    assert (ended.exit_code, ended.restored) == (0, ())
    assert (either_way.root / "app/.github/workflows/ci.yml").read_text() == "x\n"
    said = " ".join(ended.notes)
    if backend != "bare":
        assert all(name in said for name in ("app/.github", "app/.husky", "app/a.code-workspace"))
    assert "node_modules" not in said
    assert either_way.run("true").notes == ()


@pytest.mark.parametrize(
    "name", [".github", ".husky", ".devcontainer", ".codex", ".gemini", "a.code-workspace", ".exrc", ".nvim.lua"]
)
def test_existing_files_that_run_later_can_not_be_changed(either_way, backend, name):
    if backend == "bare":
        pytest.skip("without a sandbox they can")
    path = either_way.write(f"{name}/file" if "." not in name[1:] and name != ".exrc" else name, "mine")
    either_way.run(f"echo bad > {path.relative_to(either_way.root)}; rm -rf {name}; mkdir {name}; mv {name} x")
    assert path.read_text() == "mine"


def test_a_folder_of_hooks_that_the_configuration_names_can_not_be_changed(either_way, backend):
    if backend == "bare":
        pytest.skip("without a sandbox it can")
    either_way.git_init()
    either_way.bare("git config core.hooksPath .githooks; mkdir -p .githooks; echo mine > .githooks/pre-commit")
    either_way.run(
        "echo bad > .githooks/pre-commit; echo bad > .githooks/post-checkout; mv .githooks x; rm -rf .githooks"
    )
    assert [path.name for path in (either_way.root / ".githooks").iterdir()] == ["pre-commit"]
    assert (either_way.root / ".githooks/pre-commit").read_text() == "mine\n"


def test_a_file_of_the_user_in_place_of_a_hook_folder_is_no_obstacle(either_way):
    either_way.git_init()
    either_way.write("scripts", "mine")
    either_way.bare("git config core.hooksPath scripts/hooks")
    assert either_way.run("cat scripts").stdout == b"mine"


@pytest.mark.parametrize("planted_by", ["the job", "the command"])
async def test_what_is_planted_while_programs_overlap_is_found(either_way, backend, planted_by):
    if backend == "bare":
        pytest.skip("without a sandbox nothing is found")
    plant = f"git init -q {DEEP}; {_ARM} {DEEP}/.git/config"
    line = f"{plant}; touch up; sleep 0.3" if planted_by == "the job" else "touch up; sleep 0.3"
    command = Command((line,), either_way.cwd, is_shell=True)
    job = await either_way.processes.start(command, either_way.grant)
    for _ in range(500):
        if (either_way.root / "up").exists():
            break
        await asyncio.sleep(0.01)
    ended = await either_way.arun("true" if planted_by == "the job" else plant)
    assert f"{either_way.root}/{DEEP}/.git/config" in ended.restored
    assert "fsmonitor" not in (either_way.root / DEEP / ".git/config").read_text()
    await job.wait(10)


def _many(root: Path, number: int = 2_000) -> None:
    for each in range(number):
        (root / f"many/f{each}").mkdir(parents=True)


@needs_bwrap
def test_what_can_not_be_searched_in_time_is_read_only_and_that_is_said_once(made):
    _many(made.root)
    (made.root / "many/f7/inner").mkdir()
    made.backend.close()
    made.backend = BubblewrapBackend(made.layout, BubblewrapFeatures(BWRAP), search_within_s=0)
    ended = made.run("echo x > top; echo x > many/f1/file; echo x > many/f1999/file; mv many others")
    assert (made.root / "top").exists()
    assert not list(made.root.glob("many/*/file"))
    assert (made.root / "many").exists()
    assert any("read-only" in note and "start bradawl in a folder of it" in note for note in ended.notes)
    assert not any("read-only" in note for note in made.run("true").notes)


def test_landlock_starts_nothing_that_could_write_where_no_search_reaches(either_way, backend):
    if backend != "landlock":
        pytest.skip("bubblewrap can make the rest read-only")
    _many(either_way.root)
    either_way.backend.close()
    either_way.backend = LandlockBackend(either_way.layout, search_within_s=0)
    with pytest.raises(ToolError, match="more folders than can be searched"):
        either_way.run("true")


@needs_bwrap
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", ["000", "100", "300", "400", "500"])
def test_a_closed_folder_hides_no_planted_repository(user, mode):
    with bubblewrap_programs(user) as made:
        made.sh("true")
        ended = made.sh(f"git init -q x/y/z; {_ARM} x/y/z/.git/config; chmod {mode} x/y/z x/y x")
        assert ended.restored == (f"{made.root}/x/y/z/.git/config",)
        assert "fsmonitor" not in (made.root / "x/y/z/.git/config").read_text()


@needs_bwrap
@pytest.mark.parametrize("kind", [BubblewrapBackend, LandlockBackend])
def test_a_repository_in_a_folder_that_the_user_has_closed_stays_as_it_is(open_place, kind):
    def act() -> None:
        os.environ["TMPDIR"] = str(open_place)
        made = SandboxedSession(open_place)
        if kind is LandlockBackend:
            made.backend.close()
            Path(made.layout.scratch).mkdir()
            made.backend = LandlockBackend(made.layout, interpreter=SYSTEM_PYTHON)
        try:
            made.bare(f"git init -q x/y/z; {_ARM} x/y/z/.git/config; chmod 000 x/y")
            ended = made.run("chmod 755 x/y; echo bad > x/y/z/.git/hooks/pre-commit")
            assert f"{made.root}/x/y/z/.git/config" not in ended.restored
            made.bare("chmod 755 x/y")
            assert "/bad" in (made.root / "x/y/z/.git/config").read_text()
            assert not (made.root / "x/y/z/.git/hooks/pre-commit").exists()
        finally:
            made.close()

    as_plain_user(act)


def test_the_user_may_change_protected_files_after_a_start_for_which_descriptors_were_missing(
    either_way, backend, monkeypatch
):
    if backend == "bare":
        pytest.skip("without a sandbox none are needed")
    _git_init(either_way)
    either_way.run("true")

    def missing(*_arguments: object, **_options: object) -> int:
        for name in ("open", "scandir", "memfd_create"):
            patched.setattr(os, name, missing)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched, pytest.raises((ToolError, OSError)):
        patched.setattr(os, "memfd_create", missing)
        either_way.run("true")
    config = either_way.write(".git/config", "[core]\n\tfsmonitor = mine\n")
    assert either_way.run("true").restored == () and "mine" in config.read_text()
    either_way.run(f"{_ARM} .git/config; true")
    assert "bad" not in config.read_text()


def test_new_repositories_do_not_exhaust_the_check(either_way, backend):
    if backend == "bare":
        pytest.skip("without a sandbox nothing is checked")
    line = "git init -q r; for i in $(seq 120); do cp -r r n$i; done; " + f"{_ARM} n77/.git/config"
    ended = either_way.run(line)
    assert ended.restored == (f"{either_way.root}/n77/.git/config",)


def test_the_user_can_use_git_with_a_repository_that_was_disarmed(either_way, backend):
    if backend == "bare":
        pytest.skip("without a sandbox nothing is disarmed")
    either_way.run(f"git init -q {DEEP}; {_ARM} {DEEP}/.git/config; echo kept > {DEEP}/file")
    environment = {"PATH": os.environ["PATH"], "HOME": str(either_way.home)}
    status = subprocess.run(
        ["git", "status", "--short"], cwd=either_way.root / DEEP, env=environment, capture_output=True, check=False
    )
    assert (status.returncode, status.stdout) == (0, b"?? file\n")


def test_a_new_repository_in_the_root_does_not_arm_an_older_one_in_it(either_way, backend):
    _deep_repository(either_way, "inner")
    ended = either_way.run("git init -q; git add inner; git ls-files --stage")
    assert ended.stdout.startswith(b"160000")
    assert ended.restored == (() if backend == "bare" else (f"{either_way.root}/.git/index",))
    assert (either_way.root / "inner/.git/hooks/pre-commit").exists()


def test_a_plain_submodule_may_be_added_to_an_index(either_way):
    _git_init(either_way)
    _git_init(either_way, "inner")
    ended = either_way.run("git add inner; git ls-files --stage")
    assert ended.stdout.startswith(b"160000")
    assert ended.restored == ()


BELOW = ("packages/a/.vscode/tasks.json", "packages/a/.mcp.json", "docs/.claude/settings.json", ".hg/hgrc", "x/.envrc")
OBEYED = ("AGENTS.md", "CLAUDE.md", "mise.toml")


@pytest.mark.parametrize("name", BELOW[:-1])
def test_changes_of_files_that_run_later_are_reported_below_the_root(either_way, backend, name):
    path = either_way.write(name, "mine")
    top = str(path)[: str(path).index(next(part for part in name.split("/") if part.startswith(".")))]
    assert either_way.run(f"cat {name}; touch other").notes == ()
    ended = either_way.run(f"printf evil > {name}; touch -d '2020-01-01' {name}")
    assert path.read_text() == "evil"
    assert backend == "bare" or top in " ".join(ended.notes)
    assert either_way.run("touch more").notes == ()
    assert either_way.run(f"rm -r {path.parent}").exit_code == 0


@pytest.mark.parametrize(
    "name", [*BELOW, "a/b/c/d/.exrc", ".pre-commit-config.yaml", "lefthook.yml", ".direnv/x.rc", *OBEYED]
)
def test_new_files_that_run_later_are_reported(either_way, backend, name):
    ended = either_way.run(f"mkdir -p $(dirname {name}); echo bad > {name}")
    top = next(part for part in name.split("/") if part.startswith(".") or part in ("hgrc", "lefthook.yml", *OBEYED))
    reported = "hgrc" if top == ".hg" else top
    assert backend == "bare" or reported in " ".join(ended.notes)
    assert either_way.run("true").notes == ()


@pytest.mark.parametrize("name", [*OBEYED, "deep/er/AGENTS.md"])
def test_changes_of_files_that_agents_obey_are_reported(either_way, backend, name):
    path = either_way.write(name, "mine")
    ended = either_way.run(f"printf evil >> {name}")
    assert path.read_text() == "mineevil"
    assert backend == "bare" or str(path) in " ".join(ended.notes)


def test_a_file_in_a_folder_that_takes_the_place_of_another_is_reported(either_way, backend):
    either_way.write("packages/a/.vscode/tasks.json", "mine")
    ended = either_way.run("mv packages/a packages/b && mkdir -p packages/a/.vscode && echo bad > packages/a/.vscode/x")
    assert ended.exit_code == 0
    assert backend == "bare" or "packages/a/.vscode" in " ".join(ended.notes)


def test_many_harmless_names_do_not_hide_another_one(either_way, backend):
    ended = either_way.run("for i in 1 2 3 4 5 6 7 8 9; do mkdir -p a$i/.github; done; mkdir -p z/.vscode")
    said = " ".join(ended.notes)
    assert backend == "bare" or ("z/.vscode" in said and "and 4 more" in said)


def test_a_prepared_root_is_not_reported(either_way):
    assert either_way.run("echo x > file").notes == ()


@pytest.mark.parametrize("name", [".git/commondir", ".git/rebase-merge", ".git/COMMIT_EDITMSG", ".git/config.lock"])
def test_a_new_link_to_files_of_the_user_is_moved_away_and_they_stay(either_way, backend, name):
    session = either_way
    session.git_init()
    session.write("src/inner/file", "mine")
    session.run("true")
    result = session.run(f'ln -sfn "$PWD/src" {name}')
    assert (session.root / "src/inner/file").read_text() == "mine"
    if backend != "bare":
        assert result.restored == (f"{session.root}/{name}",)
        assert not (session.root / name).is_symlink()


def test_links_in_the_data_of_git_that_existed_stay(either_way, backend):
    session = either_way
    session.git_init()
    session.write("notes/text", "mine")
    link = session.root / ".git/SQUASH_MSG"
    link.symlink_to("../notes/text")
    session.run("true")
    assert session.run("echo changed > notes/text; mv notes other; git status").restored == ()
    assert link.is_symlink()
    assert (session.root / "other/text").read_text() == "changed\n"


@pytest.mark.parametrize("name", [".git/remotes/origin", ".git/branches/origin", ".git/modules/lib/branches/origin"])
def test_files_that_give_a_remote_repository_another_address_do_not_stay(either_way, backend, name):
    session = either_way
    session.git_init()
    if "modules" in name:
        session.bare("git init -q --bare .git/modules/lib")
    session.run("true")
    result = session.run(f"mkdir -p $(dirname {name}); echo ../elsewhere > {name}; test -f {name}")
    assert result.exit_code == 0, result.stderr
    if backend != "bare":
        assert not (session.root / name).exists()
        assert result.restored == (f"{session.root}/{name}",)


def test_the_folders_for_addresses_in_which_git_finds_nothing_stay(either_way):
    either_way.bare("git init -q; rm -rf .git/branches; git config user.name A; git config user.email a@b.c")
    for line in ("mkdir .git/branches .git/remotes", "git init -q; git commit -q --allow-empty -m one"):
        ended = either_way.run(line)
        assert (ended.exit_code, ended.restored) == (0, ()), ended.stderr
    assert (either_way.root / ".git/branches").is_dir()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_git_file_for_data_that_run_programs_does_not_stay(either_way, backend, is_new):
    session = either_way
    _git_init(session)
    arm = f"{_ARM} data.git/config"
    session.bare("git init -q --bare data.git; git -C data.git config core.bare false")
    if not is_new:
        session.bare(arm)
    session.run("true")
    link = "mkdir docs; echo 'gitdir: ../data.git' > docs/.git"
    ended = session.run(f"{link}; {arm}" if is_new else link)
    if backend != "bare":
        assert ended.restored
        assert not (
            (session.root / "docs/.git").exists() and b"/bad" in (session.root / "data.git/config").read_bytes()
        )


def test_a_git_file_for_plain_data_stays_and_the_data_can_not_be_armed_later(either_way, backend):
    session = either_way
    _git_init(session)
    session.run("git init -q --separate-git-dir=data.git docs")
    ended = session.run("git -C docs status -s; rm -f docs/a; mv docs/.git x && mv x docs/.git")
    assert (ended.exit_code, ended.restored) == (0, ())
    session.run(f"{_ARM} data.git/config")
    if backend != "bare":
        assert b"/bad" not in (session.root / "data.git/config").read_bytes()


def test_what_a_command_writes_after_the_user_has_replaced_the_configuration_is_undone(made):
    """The cover of a file ends when the file is replaced outside the sandbox, as git and editors do. Even if it is not
    mounted again, the configuration is compared.
    """
    use_covers(made, BlindWatch())
    made.git_init()
    user = threading.Thread(target=_once, args=(made.root / "up", "git config user.email me@example.org", made.root))
    user.start()
    made.cwd = str(made.root)
    line = f"for i in $(seq 100); do {_ARM} .git/config; grep -q bad .git/config && break; sleep 0.05; touch up; done"
    ended = made.run(line)
    user.join()
    assert ended.restored == (f"{made.root}/.git/config",)
    assert b"/bad" not in (made.root / ".git/config").read_bytes()


def _once(path: Path, line: str, folder: Path) -> None:
    """Run a line as soon as a path exists."""
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    subprocess.run(["/bin/bash", "-c", line], cwd=folder, check=True)


def test_a_rebase_of_the_user_with_programs_goes_on_without_them_and_the_result_says_where_they_are(made):
    made.bare(
        f"git init -q -b main; {IDENTITY}; for i in 1 2 3; do echo $i > file; git add file; git commit -qm $i; done"
    )
    edit = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i --exec true HEAD~2"
    user = threading.Thread(target=_once, args=(made.root / "up", f"{edit}; touch done", made.root))
    user.start()
    ended = made.run("touch up; while ! test -e done; do sleep 0.05; done")
    user.join()
    steps = f"{made.root}/.git/rebase-merge/git-rebase-todo"
    assert ended.restored == (steps,)
    assert "pick" in Path(steps).read_text() and "exec" not in Path(steps).read_text()
    removed, note = ended.notes
    assert "exec true" in removed and steps in removed
    (folder,) = [word.strip(".,") for word in note.split() if word.startswith("/")]
    (kept,) = Path(folder).iterdir()
    assert "exec true" in kept.read_text() and "30 days" in note
    assert "3" in made.bare("git rebase --continue; git log --oneline | wc -l")
    assert not (made.root / ".git/rebase-merge").exists()
    assert made.run("true").notes == ()


def test_added_steps_that_run_programs_are_removed_and_the_progress_of_a_rebase_stays(either_way, backend):
    either_way.bare(
        f"git init -q -b main; {IDENTITY}; for i in 1 2 3 4; do echo $i > file; git add file; git commit -qm $i; done;"
        " GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -q -i --exec true HEAD~3"
    )
    ended = either_way.run("git rebase --continue; echo '  x /bad' >> .git/rebase-merge/git-rebase-todo")
    steps = (either_way.root / ".git/rebase-merge/git-rebase-todo").read_text()
    if backend != "bare":
        assert "/bad" not in steps and ended.restored
    assert (steps.count("edit "), steps.count("exec true")) == (1, 2)
