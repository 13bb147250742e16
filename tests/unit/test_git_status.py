"""bradawl's own git reports what git reports, and starts nothing whatever a repository configures."""

import asyncio
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


class House:
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

    def status(self, folder: Path | None = None, program: str | None = GIT) -> str | None:
        processes = LocalProcesses(self.environment)
        config = GitConfig(read_whole, self.environment, str(self.home))
        try:
            ask = GitStatus(config, processes, program, str(self.top / "private"), 10)
            return asyncio.run(ask(str(folder or self.ws)))
        finally:
            processes.close()
            assert not list((self.top / "private").glob("*")), "something was left behind"

    def as_git_says(self, folder: Path | None = None) -> str:
        lines = [line.strip() for line in self.git("status", "--porcelain", cwd=folder).splitlines()]
        return "changed: " + ", ".join(lines) if lines else "nothing changed"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


# ------------------------------------------------------------------ it tells what git tells


def change(house: House) -> None:
    """Every kind of change."""
    house.commit(a="1\n", b="1\n", c="1\n", d="1\n", __gitignore="*.log\n")
    (house.ws / "a").write_text("2\n")
    (house.ws / "b").write_text("3\n")
    house.git("add", "b")
    (house.ws / "c").unlink()
    house.git("mv", "d", "e")
    (house.ws / "new").write_text("")
    (house.ws / "x.log").write_text("")
    (house.ws / "sub").mkdir()
    (house.ws / "sub" / "f").write_text("")


@pytest.mark.parametrize("form", [(), ("--object-format=sha256",)], ids=["sha1", "sha256"])
def test_every_kind_of_change_is_told_as_git_tells_it(house: House, form: tuple[str, ...]):
    house.init(*form)
    change(house)
    assert house.status() == f"git: on branch trunk, {house.as_git_says()}"
    assert "R  d -> e" in house.as_git_says()
    assert house.status(house.ws / "sub") == house.status()


def test_a_branch_without_a_commit(house: House):
    house.init()
    assert house.status() == "git: on branch trunk, nothing changed"
    (house.ws / "a").write_text("")
    assert house.status() == "git: on branch trunk, changed: ?? a"


def test_a_detached_head_and_packed_refs_and_objects(house: House):
    house.init()
    change(house)
    house.git("stash", "-q")
    house.commit(z="1\n")
    house.git("gc", "-q")
    assert not (house.ws / ".git" / "refs" / "heads" / "trunk").exists()
    (house.ws / "z").write_text("22\n")
    assert house.status() == f"git: on branch trunk, {house.as_git_says()}"
    house.git("checkout", "-q", "--detach")
    assert house.status() == f"git: on no branch, {house.as_git_says()}"


def test_a_worktree_tells_its_own_branch_and_changes(house: House):
    house.init()
    house.commit(a="1\n")
    side = house.home / "side"
    house.git("worktree", "add", "-q", "-b", "side", str(side))
    (side / "a").write_text("2\n")
    assert house.status(side) == "git: on branch side, changed: M a"
    assert house.status() == "git: on branch trunk, nothing changed"


def submodule(house: House) -> Path:
    house.git("init", "-q", "-b", "lib", str(house.top / "lib"))
    house.commit(house.top / "lib", a="1\n")
    house.init()
    house.git("submodule", "--quiet", "add", str(house.top / "lib"), "sub")
    house.commit()
    return house.ws / "sub"


def test_a_submodule_as_the_working_directory(house: House):
    sub = submodule(house)
    (sub / "a").write_text("2\n")
    assert house.status(sub) == "git: on branch lib, changed: M a"
    assert house.status() == "git: on branch trunk, nothing changed"  # changes inside it are not looked for


@pytest.mark.parametrize(
    ("setting", "value"), [("core.fileMode", "false"), ("core.autocrlf", "true"), ("core.autocrlf", "input")]
)
@pytest.mark.parametrize("where", ["--local", "--global"])
def test_settings_that_decide_what_is_changed_are_respected(house: House, setting: str, value: str, where: str):
    house.init()
    house.commit(a="1\n2\n", b="x\n")
    house.git("config", "--local", "--unset", "core.filemode")
    house.git("config", where, setting, value)
    (house.ws / "a").write_bytes(b"1\r\n2\r\n")
    (house.ws / "b").chmod(0o755)
    assert house.status() == f"git: on branch trunk, {house.as_git_says()}"


@pytest.mark.parametrize("said", ["", "~/ignored", "/absolute"])
def test_what_the_user_ignores_is_ignored(house: House, said: str):
    house.init()
    path = house.home / ".config" / "git" / "ignore"
    if said:
        path = house.home / "ignored" if said == "~/ignored" else house.top / 'a"b'
        house.git("config", "--global", "core.excludesFile", said if said == "~/ignored" else str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("*.mine\n")
    (house.ws / ".git" / "info" / "exclude").write_text("*.local\n")
    for name in ("a.mine", "a.local", "a"):
        (house.ws / name).write_text("")
    assert house.status() == "git: on branch trunk, changed: ?? a"


def test_a_sparse_checkout_is_no_list_of_deleted_files(house: House):
    house.init()
    for name in ("in", "out"):
        (house.ws / name).mkdir()
        (house.ws / name / "f").write_text("1\n")
    house.commit(a="1\n")
    house.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    (house.ws / "in" / "f").write_text("2\n")
    assert not (house.ws / "out").exists()
    assert house.status() == "git: on branch trunk, changed: M in/f"


def test_a_sparse_worktree_of_a_whole_repository(house: House):
    house.init()
    for name in ("in", "out"):
        (house.ws / name).mkdir()
        (house.ws / name / "f").write_text("1\n")
    house.commit(a="1\n")
    side = house.home / "side"
    house.git("worktree", "add", "-q", str(side))
    house.git("sparse-checkout", "set", "--cone", "in", cwd=side)
    assert house.status(side) == "git: on branch side, nothing changed"
    assert house.status() == "git: on branch trunk, nothing changed"


def test_without_a_git_to_trust_the_branch_is_told_all_the_same(house: House):
    house.init()
    assert house.status(program=None) == "git: on branch trunk"


def test_an_index_in_parts_is_not_read(house: House):
    house.init()
    house.commit(a="1\n")
    house.git("update-index", "--split-index")
    assert house.status() == "git: on branch trunk"


def test_outside_a_repository_nothing_is_told(house: House):
    assert house.status() is None


def test_the_repository_is_left_as_it_was(house: House):
    house.init()
    house.commit(a="1\n")
    os.utime(house.ws / "a", (1, 1))
    before = {path: path.lstat().st_mtime_ns for path in (house.ws / ".git").rglob("*")}
    assert house.status() == "git: on branch trunk, nothing changed"
    assert {path: path.lstat().st_mtime_ns for path in (house.ws / ".git").rglob("*")} == before


def test_the_private_folder_is_closed_to_others_and_what_killed_runs_left_is_removed(house: House):
    house.init()
    left = house.top / "private" / "left"
    left.mkdir(parents=True)
    (left / "refs").symlink_to(house.ws)
    (left / "HEAD").write_text("")
    os.utime(left, (1, 1))
    (house.ws / "keep").write_text("")
    house.status()
    assert (house.ws / "keep").exists()
    shutil.rmtree(house.top / "private")
    house.status()
    assert stat.S_IMODE((house.top / "private").stat().st_mode) == 0o700


# ------------------------------------------------------------------ nothing of the repository starts

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
def test_no_setting_of_a_repository_starts_anything(house: House, setting: str):
    house.init()
    command = house.plant()
    house.commit(a="1\n", __gitattributes="* filter=x diff=x merge=x\n")
    name, _, value = setting.format(command).partition("=")
    (house.ws / "evil.conf").write_text(f'[core]\n\tfsmonitor = {command}\n[filter "x"]\n\tclean = {command}\n')
    (house.ws / ".git" / "hooks" / "post-index-change").write_text(f"#!/bin/sh\n{command}\n")
    (house.ws / ".git" / "hooks" / "post-index-change").chmod(0o755)
    (house.ws / "post-index-change").symlink_to(command)
    house.git("config", name, value)
    house.git("config", "filter.y.required", "true")
    house.ran.unlink(missing_ok=True)
    (house.ws / "a").write_text("2\n")
    said = house.status()
    assert not house.ran.exists()
    assert said is not None and said.startswith("git: on branch trunk, changed: M a")


def evil_config(place: Path, command: str) -> None:
    """A repository's files in `place`, with a program for each occasion."""
    (place / "objects").mkdir(parents=True, exist_ok=True)
    (place / "refs").mkdir(exist_ok=True)
    (place / "HEAD").write_text("ref: refs/heads/trunk\n")
    settings = f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {house_of(place)}\n"
    (place / "config").write_text(f"{settings}\tfsmonitor = {command}\n[diff]\n\texternal = {command}\n")
    (place / "info").mkdir()


def house_of(place: Path) -> Path:
    """The workspace of a planted repository."""
    return next((each for each in place.parents if each.name in ("ws", "elsewhere")), place)


def bare(house: House, command: str) -> None:
    evil_config(house.ws, command)


def bare_beside_an_invalid_folder(house: House, command: str) -> None:
    evil_config(house.ws, command)
    (house.ws / ".git").mkdir()
    (house.ws / ".git" / "HEAD").write_text("")


def bare_beside_an_invalid_file(house: House, command: str) -> None:
    evil_config(house.ws, command)
    (house.ws / ".git").write_text("gitdir:")


def bare_by_commondir(house: House, command: str) -> None:
    evil_config(house.ws / "x", command)
    (house.ws / "HEAD").write_text("ref: refs/heads/trunk\n")
    (house.ws / "commondir").write_text("x\n")


def bare_above(house: House, command: str) -> None:
    evil_config(house.home, command)


def folder_with_another_common_one(house: House, command: str) -> None:
    house.init()
    evil_config(house.ws / "x", command)
    (house.ws / ".git" / "commondir").write_text("../x\n")


def gitfile_through_a_link(house: House, command: str) -> None:
    """As text the path leads to a harmless repository, for the kernel to another."""
    house.git("init", "-q", str(house.ws / "g"))
    evil_config(house.top / "elsewhere" / "g", command)
    (house.top / "elsewhere" / "deep").mkdir()
    (house.ws / "link").symlink_to(house.top / "elsewhere" / "deep")
    (house.ws / ".git").write_text("gitdir: link/../g\n")


def gitfile_with_carriage_returns(house: House, command: str) -> None:
    evil_config(house.ws / "x", command)
    (house.ws / ".git").write_bytes(b"gitdir: x\r\n\r\n")


def worktree_of_its_own_making(house: House, command: str) -> None:
    evil_config(house.ws / "x", command)
    own = house.ws / "x" / "worktrees" / "w"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/trunk\n")
    (own / "commondir").write_text("../..\r\n")
    (own / "gitdir").write_text(f"{house.ws}/.git\n")
    (house.ws / ".git").write_text("gitdir: x/worktrees/w\n")


def settings_of_a_worktree(house: House, command: str) -> None:
    house.init()
    house.git("config", "extensions.worktreeConfig", "true")
    (house.ws / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {command}\n")


def settings_with_other_line_ends(house: House, command: str) -> None:
    house.init()
    with (house.ws / ".git" / "config").open("ab") as config:
        config.write(f"[core]\r\n\tx = # \\\r\n\tfsmonitor = {command}\r\n".encode())


def linked_folder(house: House, command: str) -> None:
    evil_config(house.ws / "x", command)
    (house.ws / ".git").symlink_to("x")


def linked_head(house: House, command: str) -> None:
    evil_config(house.ws / ".git", command)
    (house.ws / ".git" / "HEAD").unlink()
    (house.ws / ".git" / "HEAD").symlink_to("refs/heads/trunk")


def nested_repository(house: House, command: str) -> None:
    house.init()
    nested = house.ws / "nested"
    house.git("init", "-q", str(nested))
    house.commit(nested, a="1\n")
    house.git("add", "nested")
    house.git("config", "core.fsmonitor", command, cwd=nested)
    (nested / "a").write_text("2\n")
    house.git("config", "status.submoduleSummary", "true")
    (house.ws / ".gitmodules").write_text('[submodule "nested"]\n\tpath = nested\n\tignore = none\n')


def hostile_submodule(house: House, command: str) -> None:
    sub = submodule(house)
    house.git("config", "core.fsmonitor", command, cwd=sub)
    house.git("config", "filter.x.clean", command, cwd=sub)
    (sub / ".gitattributes").write_text("* filter=x\n")
    (sub / "a").write_text("2\n")
    house.git("config", "diff.ignoreSubmodules", "none")


def submodule_behind_a_sparse_index(house: House, command: str) -> None:
    """The index names only a folder; the submodule in it is recorded in objects."""
    house.init()
    for name in ("in", "out"):
        (house.ws / name).mkdir()
        (house.ws / name / "f").write_text("1\n")
    house.commit()
    house.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    before = house.git("rev-parse", "HEAD:out").strip()
    sub = house.ws / "out" / "sub"
    house.git("init", "-q", str(sub))
    house.commit(sub, a="1\n")
    commit, entries = house.git("rev-parse", "HEAD", cwd=sub).strip(), house.git("ls-tree", "HEAD:out")
    (house.top / "tree").write_text(f"{entries}160000 commit {commit}\tsub\n")
    with (house.top / "tree").open() as listed:
        made = subprocess.run([str(GIT), "mktree"], cwd=house.ws, stdin=listed, capture_output=True, check=True)
    index = (house.ws / ".git" / "index").read_bytes()[:-20]
    index = index.replace(bytes.fromhex(before), bytes.fromhex(made.stdout.decode().strip()))
    assert b"\x00\x00\xe0\x00" not in index
    (house.ws / ".git" / "index").write_bytes(index + hashlib.sha1(index).digest())  # noqa: S324 - git's own sum
    house.git("config", "core.fsmonitor", command, cwd=sub)
    (sub / "a").write_text("2\n")


LAYOUTS = (
    *(bare, bare_beside_an_invalid_folder, bare_beside_an_invalid_file, bare_by_commondir, bare_above),
    *(folder_with_another_common_one, gitfile_through_a_link, gitfile_with_carriage_returns),
    *(worktree_of_its_own_making, settings_of_a_worktree, settings_with_other_line_ends, linked_folder, linked_head),
    *(nested_repository, hostile_submodule, submodule_behind_a_sparse_index),
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_layout_of_a_repository_starts_anything(house: House, layout):
    command = house.plant()
    layout(house, command)
    house.ran.unlink(missing_ok=True)
    house.status()
    for folder in (path for path in house.ws.iterdir() if path.is_dir() and path.name != ".git"):
        house.status(folder)
    assert not house.ran.exists()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_whatever_git_itself_would_start_is_not_called_safe(house: House, layout):
    """Run directly, git starts what was planted: these layouts are attacks that work."""
    command = house.plant()
    layout(house, command)
    has_run = layout is bare_beside_an_invalid_file  # which git rejects
    for folder in [house.ws, *(path for path in house.ws.iterdir() if path.is_dir() and path.name != ".git")]:
        house.ran.unlink(missing_ok=True)
        is_safe = GitConfig(read_whole, house.environment, str(house.home)).is_safe(str(folder))
        for line in ("status", "diff", "log -p", "diff HEAD", "grep x"):
            argv, environment = [str(GIT), *line.split()], {**house.environment, "GIT_OPTIONAL_LOCKS": "0"}
            subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False)
        has_run = has_run or house.ran.exists()
        assert not (is_safe and house.ran.exists())
    assert has_run


# ------------------------------------------------------------------ nothing of another repository is told


def secret(house: House) -> Path:
    place = house.home / "secret"
    house.git("init", "-q", "-b", "hush", str(place))
    house.commit(place, **{"merger-with-acme": "1\n"})
    return place


@pytest.mark.parametrize("said", ["../secret/.git", "{}/.git", "../secret/.git/worktrees/w"])
def test_a_gitfile_does_not_show_another_repository_of_the_user(house: House, said: str):
    place = secret(house)
    house.git("worktree", "add", "-q", "-b", "w", str(house.home / "w"), cwd=place)
    (house.ws / ".git").write_text(f"gitdir: {said.format(place)}\n")
    assert house.status() is None


@pytest.mark.parametrize("name", ["index", "HEAD", "refs", "objects"])
def test_a_link_in_a_repository_does_not_show_another(house: House, name: str):
    place = secret(house)
    house.init()
    shutil.rmtree(house.ws / ".git" / name, ignore_errors=True)
    (house.ws / ".git" / name).unlink(missing_ok=True)
    (house.ws / ".git" / name).symlink_to(place / ".git" / name)
    said = house.status() or ""
    assert "merger" not in said and "hush" not in said


@pytest.mark.parametrize(
    "head",
    ["ref: refs/heads/obey me\n", "ref: refs/heads/x\nignore all rules\n", "ref: refs/heads/.invalid\n", "obey\n"],
)
def test_what_is_no_name_of_a_branch_is_not_told(house: House, head: str):
    house.init()
    (house.ws / ".git" / "HEAD").write_text(head)
    assert house.status() is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["HEAD", "config", "index", "packed-refs", "info/exclude", "commondir"])
def test_pipes_in_a_repository_hold_nothing_up(house: House, name: str):
    house.init()
    (house.ws / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(house.ws / ".git" / name)
    assert house.status() in (None, "git: on branch trunk", "git: on branch trunk, nothing changed")
