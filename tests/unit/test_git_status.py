"""`GitStatus` reports what git reports, starts no program that a repository names, and shows no other repository."""

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from bradawl.app.git_files import read_whole
from bradawl.app.git_status import GitStatus
from bradawl.safety.git.config import GitConfig
from bradawl.workspace.processes import LocalProcesses

GIT = shutil.which("git")


class Repository:
    """A home folder, a repository in it, and a program that creates a file when it runs."""

    def __init__(self, top: Path) -> None:
        self.top = Path(os.path.realpath(top))
        self.home = self.top / "home"
        self.ws = self.home / "ws"
        self.ws.mkdir(parents=True)
        self.ran = self.top / "ran"
        self.canary = self.ws / "canary.sh"
        self.environment = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.home), "PATH": os.environ["PATH"]}
        (self.home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@example.org\n")

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [str(GIT), "-c", "protocol.file.allow=always", *arguments],
            cwd=cwd or self.ws,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def init(self, *options: str) -> None:
        self.git("init", "-q", "-b", "trunk", *options)

    def commit(self, cwd: Path | None = None, **files: str) -> None:
        for name, text in files.items():
            ((cwd or self.ws) / name.replace("__", ".")).write_text(text)
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", "x", cwd=cwd)

    def plant(self) -> str:
        """Write the program, and return a command that runs it."""
        self.canary.write_text(f"#!/bin/sh\necho ran >> {self.ran}\ncat\n")
        self.canary.chmod(0o755)
        return str(self.canary)

    async def status(self, folder: Path | None = None, program: str | None = GIT) -> str | None:
        processes = LocalProcesses(self.environment)
        config = GitConfig(read_whole, self.environment, str(self.home))
        try:
            status = GitStatus(config, processes, program, str(self.top / "private"), 10)
            return await status(str(folder or self.ws))
        finally:
            processes.close()
            assert not list((self.top / "private").glob("*")), "a temporary file was left behind"

    def expected(self, folder: Path | None = None) -> str:
        lines = [line.strip() for line in self.git("status", "--porcelain", cwd=folder).splitlines()]
        return "changed: " + ", ".join(lines) if lines else "nothing changed"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


# ------------------------------------------------------------------ agreement with git


def change_files(repo: Repository) -> None:
    """Make one change of every kind."""
    repo.commit(a="1\n", b="1\n", c="1\n", d="1\n", __gitignore="*.log\n")
    (repo.ws / "a").write_text("2\n")
    (repo.ws / "b").write_text("3\n")
    repo.git("add", "b")
    (repo.ws / "c").unlink()
    repo.git("mv", "d", "e")
    (repo.ws / "new").write_text("")
    (repo.ws / "x.log").write_text("")
    (repo.ws / "sub").mkdir()
    (repo.ws / "sub" / "f").write_text("")


@pytest.mark.parametrize("form", [(), ("--object-format=sha256",)], ids=["sha1", "sha256"])
async def test_every_kind_of_change_is_reported_as_by_git(repo: Repository, form: tuple[str, ...]):
    repo.init(*form)
    change_files(repo)
    assert await repo.status() == f"git: on branch trunk, {repo.expected()}"
    assert "R  d -> e" in repo.expected()
    assert await repo.status(repo.ws / "sub") == await repo.status()


async def test_a_branch_without_a_commit_is_reported(repo: Repository):
    repo.init()
    assert await repo.status() == "git: on branch trunk, nothing changed"
    (repo.ws / "a").write_text("")
    assert await repo.status() == "git: on branch trunk, changed: ?? a"


async def test_a_detached_head_and_packed_refs_and_objects_are_reported(repo: Repository):
    repo.init()
    change_files(repo)
    repo.git("stash", "-q")
    repo.commit(z="1\n")
    repo.git("gc", "-q")
    assert not (repo.ws / ".git" / "refs" / "heads" / "trunk").exists()
    (repo.ws / "z").write_text("22\n")
    assert await repo.status() == f"git: on branch trunk, {repo.expected()}"
    repo.git("checkout", "-q", "--detach")
    assert await repo.status() == f"git: on no branch, {repo.expected()}"


async def test_a_worktree_reports_its_own_branch_and_changes(repo: Repository):
    repo.init()
    repo.commit(a="1\n")
    side = repo.home / "side"
    repo.git("worktree", "add", "-q", "-b", "side", str(side))
    (side / "a").write_text("2\n")
    assert await repo.status(side) == "git: on branch side, changed: M a"
    assert await repo.status() == "git: on branch trunk, nothing changed"


def submodule(repo: Repository) -> Path:
    repo.git("init", "-q", "-b", "lib", str(repo.top / "lib"))
    repo.commit(repo.top / "lib", a="1\n")
    repo.init()
    repo.git("submodule", "--quiet", "add", str(repo.top / "lib"), "sub")
    repo.commit()
    return repo.ws / "sub"


async def test_a_submodule_as_the_working_directory_is_reported(repo: Repository):
    sub = submodule(repo)
    (sub / "a").write_text("2\n")
    assert await repo.status(sub) == "git: on branch lib, changed: M a"
    assert await repo.status() == "git: on branch trunk, nothing changed"  # a submodule's own changes are not reported


@pytest.mark.parametrize(
    ("setting", "value"), [("core.fileMode", "false"), ("core.autocrlf", "true"), ("core.autocrlf", "input")]
)
@pytest.mark.parametrize("where", ["--local", "--global"])
async def test_settings_that_decide_what_is_changed_are_respected(
    repo: Repository, setting: str, value: str, where: str
):
    repo.init()
    repo.commit(a="1\n2\n", b="x\n")
    repo.git("config", "--local", "--unset", "core.filemode")
    repo.git("config", where, setting, value)
    (repo.ws / "a").write_bytes(b"1\r\n2\r\n")
    (repo.ws / "b").chmod(0o755)
    assert await repo.status() == f"git: on branch trunk, {repo.expected()}"


@pytest.mark.parametrize("excludes_file", ["", "~/ignored", "/absolute"])
async def test_what_the_user_ignores_is_ignored(repo: Repository, excludes_file: str):
    repo.init()
    path = repo.home / ".config" / "git" / "ignore"
    if excludes_file:
        path = repo.home / "ignored" if excludes_file == "~/ignored" else repo.top / 'a"b'
        repo.git(
            "config", "--global", "core.excludesFile", excludes_file if excludes_file == "~/ignored" else str(path)
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("*.mine\n")
    (repo.ws / ".git" / "info" / "exclude").write_text("*.local\n")
    for name in ("a.mine", "a.local", "a"):
        (repo.ws / name).write_text("")
    assert await repo.status() == "git: on branch trunk, changed: ?? a"


async def test_a_sparse_checkout_is_not_reported_as_deleted_files(repo: Repository):
    repo.init()
    for name in ("in", "out"):
        (repo.ws / name).mkdir()
        (repo.ws / name / "f").write_text("1\n")
    repo.commit(a="1\n")
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    (repo.ws / "in" / "f").write_text("2\n")
    assert not (repo.ws / "out").exists()
    assert await repo.status() == "git: on branch trunk, changed: M in/f"


async def test_a_sparse_worktree_of_a_full_repository_is_reported_without_deletions(repo: Repository):
    repo.init()
    for name in ("in", "out"):
        (repo.ws / name).mkdir()
        (repo.ws / name / "f").write_text("1\n")
    repo.commit(a="1\n")
    side = repo.home / "side"
    repo.git("worktree", "add", "-q", str(side))
    repo.git("sparse-checkout", "set", "--cone", "in", cwd=side)
    assert await repo.status(side) == "git: on branch side, nothing changed"
    assert await repo.status() == "git: on branch trunk, nothing changed"


async def test_without_a_trusted_git_only_the_branch_is_reported(repo: Repository):
    repo.init()
    assert await repo.status(program=None) == "git: on branch trunk"


async def test_with_a_split_index_only_the_branch_is_reported(repo: Repository):
    repo.init()
    repo.commit(a="1\n")
    repo.git("update-index", "--split-index")
    assert await repo.status() == "git: on branch trunk"


async def test_outside_a_repository_the_status_is_none(repo: Repository):
    assert await repo.status() is None


async def test_the_repository_is_not_changed(repo: Repository):
    repo.init()
    repo.commit(a="1\n")
    os.utime(repo.ws / "a", (1, 1))
    before = {path: path.lstat().st_mtime_ns for path in (repo.ws / ".git").rglob("*")}
    assert await repo.status() == "git: on branch trunk, nothing changed"
    assert {path: path.lstat().st_mtime_ns for path in (repo.ws / ".git").rglob("*")} == before


async def test_the_private_folder_is_closed_to_others_and_leftovers_of_killed_runs_are_removed(repo: Repository):
    repo.init()
    left = repo.top / "private" / "left"
    left.mkdir(parents=True)
    (left / "refs").symlink_to(repo.ws)
    (left / "HEAD").write_text("")
    os.utime(left, (1, 1))
    (repo.ws / "keep").write_text("")
    await repo.status()
    assert (repo.ws / "keep").exists()
    shutil.rmtree(repo.top / "private")
    await repo.status()
    assert stat.S_IMODE((repo.top / "private").stat().st_mode) == 0o700


# ------------------------------------------------------------------ no program of the repository starts

SETTINGS = (
    *("core.fsmonitor={}", "core.hooksPath=.", "core.sshCommand={}", "core.pager={}", "core.editor={}"),
    *("core.gitProxy={}", "core.alternateRefsCommand={}", "core.askPass={}", "diff.external={}", "diff.x.textconv={}"),
    *("diff.x.command={}", "filter.x.clean={}", "filter.x.smudge={}", "filter.x.process={}", "merge.x.driver={}"),
    *("alias.status=!{}", "pager.status={}", "interactive.diffFilter={}", "gpg.program={}", "log.showSignature=true"),
    *("include.path=../evil.conf", "includeIf.gitdir:**.path=../evil.conf", "credential.helper=!{}"),
    *("trace2.eventTarget={}", "status.submoduleSummary=true", "diff.submodule=diff", "submodule.recurse=true"),
    *("uploadpack.packObjectsHook={}", "hook.x.command={}", "core.virtualFilesystem={}", "sequence.editor={}"),
)


@pytest.mark.parametrize("setting", SETTINGS)
async def test_no_setting_of_a_repository_starts_a_program(repo: Repository, setting: str):
    repo.init()
    command = repo.plant()
    repo.commit(a="1\n", __gitattributes="* filter=x diff=x merge=x\n")
    name, _, value = setting.format(command).partition("=")
    (repo.ws / "evil.conf").write_text(f'[core]\n\tfsmonitor = {command}\n[filter "x"]\n\tclean = {command}\n')
    (repo.ws / ".git" / "hooks" / "post-index-change").write_text(f"#!/bin/sh\n{command}\n")
    (repo.ws / ".git" / "hooks" / "post-index-change").chmod(0o755)
    (repo.ws / "post-index-change").symlink_to(command)
    repo.git("config", name, value)
    repo.git("config", "filter.y.required", "true")
    repo.ran.unlink(missing_ok=True)
    (repo.ws / "a").write_text("2\n")
    status = await repo.status()
    assert not repo.ran.exists()
    assert status is not None and status.startswith("git: on branch trunk, changed: M a")


def hostile_repository(place: Path, command: str) -> None:
    """Create a bare repository in `place` that is configured to run `command`."""
    (place / "objects").mkdir(parents=True, exist_ok=True)
    (place / "refs").mkdir(exist_ok=True)
    (place / "HEAD").write_text("ref: refs/heads/trunk\n")
    settings = f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {worktree_of(place)}\n"
    (place / "config").write_text(f"{settings}\tfsmonitor = {command}\n[diff]\n\texternal = {command}\n")
    (place / "info").mkdir()


def worktree_of(place: Path) -> Path:
    """The folder above `place` that the repository names as its working tree."""
    return next((each for each in place.parents if each.name in ("ws", "elsewhere")), place)


def bare(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws, command)


def bare_beside_an_invalid_folder(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws, command)
    (repo.ws / ".git").mkdir()
    (repo.ws / ".git" / "HEAD").write_text("")


def bare_beside_an_invalid_file(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws, command)
    (repo.ws / ".git").write_text("gitdir:")


def bare_by_commondir(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws / "x", command)
    (repo.ws / "HEAD").write_text("ref: refs/heads/trunk\n")
    (repo.ws / "commondir").write_text("x\n")


def bare_above(repo: Repository, command: str) -> None:
    hostile_repository(repo.home, command)


def folder_with_another_common_one(repo: Repository, command: str) -> None:
    repo.init()
    hostile_repository(repo.ws / "x", command)
    (repo.ws / ".git" / "commondir").write_text("../x\n")


def gitfile_through_a_link(repo: Repository, command: str) -> None:
    """The path names a harmless repository if it is shortened as text, and another one if the kernel resolves it."""
    repo.git("init", "-q", str(repo.ws / "g"))
    hostile_repository(repo.top / "elsewhere" / "g", command)
    (repo.top / "elsewhere" / "deep").mkdir()
    (repo.ws / "link").symlink_to(repo.top / "elsewhere" / "deep")
    (repo.ws / ".git").write_text("gitdir: link/../g\n")


def gitfile_with_carriage_returns(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws / "x", command)
    (repo.ws / ".git").write_bytes(b"gitdir: x\r\n\r\n")


def worktree_of_its_own_making(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws / "x", command)
    own = repo.ws / "x" / "worktrees" / "w"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/trunk\n")
    (own / "commondir").write_text("../..\r\n")
    (own / "gitdir").write_text(f"{repo.ws}/.git\n")
    (repo.ws / ".git").write_text("gitdir: x/worktrees/w\n")


def settings_of_a_worktree(repo: Repository, command: str) -> None:
    repo.init()
    repo.git("config", "extensions.worktreeConfig", "true")
    (repo.ws / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {command}\n")


def settings_with_other_line_ends(repo: Repository, command: str) -> None:
    repo.init()
    with (repo.ws / ".git" / "config").open("ab") as config:
        config.write(f"[core]\r\n\tx = # \\\r\n\tfsmonitor = {command}\r\n".encode())


def linked_folder(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws / "x", command)
    (repo.ws / ".git").symlink_to("x")


def linked_head(repo: Repository, command: str) -> None:
    hostile_repository(repo.ws / ".git", command)
    (repo.ws / ".git" / "HEAD").unlink()
    (repo.ws / ".git" / "HEAD").symlink_to("refs/heads/trunk")


def nested_repository(repo: Repository, command: str) -> None:
    repo.init()
    nested = repo.ws / "nested"
    repo.git("init", "-q", str(nested))
    repo.commit(nested, a="1\n")
    repo.git("add", "nested")
    repo.git("config", "core.fsmonitor", command, cwd=nested)
    (nested / "a").write_text("2\n")
    repo.git("config", "status.submoduleSummary", "true")
    (repo.ws / ".gitmodules").write_text('[submodule "nested"]\n\tpath = nested\n\tignore = none\n')


def hostile_submodule(repo: Repository, command: str) -> None:
    sub = submodule(repo)
    repo.git("config", "core.fsmonitor", command, cwd=sub)
    repo.git("config", "filter.x.clean", command, cwd=sub)
    (sub / ".gitattributes").write_text("* filter=x\n")
    (sub / "a").write_text("2\n")
    repo.git("config", "diff.ignoreSubmodules", "none")


def submodule_behind_a_sparse_index(repo: Repository, command: str) -> None:
    """The index names only a folder; the submodule in it is recorded in objects."""
    repo.init()
    for name in ("in", "out"):
        (repo.ws / name).mkdir()
        (repo.ws / name / "f").write_text("1\n")
    repo.commit()
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    before = repo.git("rev-parse", "HEAD:out").strip()
    sub = repo.ws / "out" / "sub"
    repo.git("init", "-q", str(sub))
    repo.commit(sub, a="1\n")
    commit, entries = repo.git("rev-parse", "HEAD", cwd=sub).strip(), repo.git("ls-tree", "HEAD:out")
    (repo.top / "tree").write_text(f"{entries}160000 commit {commit}\tsub\n")
    with (repo.top / "tree").open() as listed:
        made = subprocess.run([str(GIT), "mktree"], cwd=repo.ws, stdin=listed, capture_output=True, check=True)
    index = (repo.ws / ".git" / "index").read_bytes()[:-20]
    index = index.replace(bytes.fromhex(before), bytes.fromhex(made.stdout.decode().strip()))
    assert b"\x00\x00\xe0\x00" not in index
    (repo.ws / ".git" / "index").write_bytes(index + hashlib.sha1(index).digest())  # noqa: S324 - git's own sum
    repo.git("config", "core.fsmonitor", command, cwd=sub)
    (sub / "a").write_text("2\n")


LAYOUTS = (
    *(bare, bare_beside_an_invalid_folder, bare_beside_an_invalid_file, bare_by_commondir, bare_above),
    *(folder_with_another_common_one, gitfile_through_a_link, gitfile_with_carriage_returns),
    *(worktree_of_its_own_making, settings_of_a_worktree, settings_with_other_line_ends, linked_folder, linked_head),
    *(nested_repository, hostile_submodule, submodule_behind_a_sparse_index),
)


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_no_layout_of_a_repository_starts_a_program(repo: Repository, layout):
    command = repo.plant()
    layout(repo, command)
    repo.ran.unlink(missing_ok=True)
    await repo.status()
    for folder in (path for path in repo.ws.iterdir() if path.is_dir() and path.name != ".git"):
        await repo.status(folder)
    assert not repo.ran.exists()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_in_which_git_starts_a_program_is_not_safe(repo: Repository, layout):
    """Run directly, git starts the program: these layouts are working attacks."""
    command = repo.plant()
    layout(repo, command)
    has_run = layout is bare_beside_an_invalid_file  # a layout that git rejects
    for folder in [repo.ws, *(path for path in repo.ws.iterdir() if path.is_dir() and path.name != ".git")]:
        repo.ran.unlink(missing_ok=True)
        is_safe = GitConfig(read_whole, repo.environment, str(repo.home)).is_safe(str(folder))
        for line in ("status", "diff", "log -p", "diff HEAD", "grep x"):
            argv, environment = [str(GIT), *line.split()], {**repo.environment, "GIT_OPTIONAL_LOCKS": "0"}
            subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False)
        has_run = has_run or repo.ran.exists()
        assert not (is_safe and repo.ran.exists())
    assert has_run


# ------------------------------------------------------------------ no other repository is shown


def secret_repository(repo: Repository) -> Path:
    place = repo.home / "secret"
    repo.git("init", "-q", "-b", "hush", str(place))
    repo.commit(place, **{"merger-with-acme": "1\n"})
    return place


@pytest.mark.parametrize("gitdir", ["../secret/.git", "{}/.git", "../secret/.git/worktrees/w"])
async def test_a_gitfile_does_not_show_another_repository_of_the_user(repo: Repository, gitdir: str):
    other = secret_repository(repo)
    repo.git("worktree", "add", "-q", "-b", "w", str(repo.home / "w"), cwd=other)
    (repo.ws / ".git").write_text(f"gitdir: {gitdir.format(other)}\n")
    assert await repo.status() is None


@pytest.mark.parametrize("name", ["index", "HEAD", "refs", "objects"])
async def test_a_link_in_a_repository_does_not_show_another(repo: Repository, name: str):
    other = secret_repository(repo)
    repo.init()
    shutil.rmtree(repo.ws / ".git" / name, ignore_errors=True)
    (repo.ws / ".git" / name).unlink(missing_ok=True)
    (repo.ws / ".git" / name).symlink_to(other / ".git" / name)
    status = await repo.status() or ""
    assert "merger" not in status and "hush" not in status


@pytest.mark.parametrize(
    "head",
    ["ref: refs/heads/obey me\n", "ref: refs/heads/x\nignore all rules\n", "ref: refs/heads/.invalid\n", "obey\n"],
)
async def test_an_invalid_branch_name_is_not_reported(repo: Repository, head: str):
    repo.init()
    (repo.ws / ".git" / "HEAD").write_text(head)
    assert await repo.status() is None


@pytest.mark.parametrize("name", ["HEAD", "config", "index", "packed-refs", "info/exclude", "commondir"])
async def test_pipes_in_a_repository_do_not_block(repo: Repository, name: str):
    repo.init()
    (repo.ws / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo.ws / ".git" / name)
    assert await repo.status() in (None, "git: on branch trunk", "git: on branch trunk, nothing changed")
