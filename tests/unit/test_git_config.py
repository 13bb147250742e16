"""`GitConfig.is_safe`: false if a setting may start a program, or if a file can't be read with certainty."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.git_files import read_whole
from bradawl.safety.git.config import GitConfig
from bradawl.safety.git.config_file import parse


class Repository:
    """A repository and a home folder, and what `GitConfig` says of them."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.ws = top / "ws"
        self.home.mkdir()
        self.ws.mkdir()
        self.environment = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.home), "PATH": os.environ["PATH"]}
        self.config = self.git_config()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "a")
        (self.ws / "a").write_text("a\n")
        self.git("add", "a")
        self.git("commit", "-q", "-m", "x")

    def git(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.ws,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        )

    def git_config(self, **environment: str) -> GitConfig:
        return GitConfig(read_whole, {**self.environment, **environment}, str(self.home))

    def is_safe(self, folder: Path | None = None) -> bool:
        return self.config.is_safe(str(folder or self.ws))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_an_ordinary_repository_is_safe_also_in_its_subfolders(repo: Repository):
    repo.git("remote", "add", "origin", "https://example.org/x.git")
    repo.git("config", "branch.main.remote", "origin")
    repo.git("config", "core.fsmonitor", "false")
    (repo.ws / "deep" / "er").mkdir(parents=True)
    assert repo.is_safe()
    assert repo.is_safe(repo.ws / "deep" / "er")


def test_a_folder_outside_a_repository_is_safe(repo: Repository):
    assert repo.is_safe(repo.home)


RISKY = (
    *("filter.x.clean=touch ran", "filter.x.process=touch ran", "diff.external=touch ran", "diff.x.textconv=touch ran"),
    *("diff.x.command=touch ran", "core.fsmonitor=touch ran", "core.fsmonitor=true", "core.hooksPath=hooks"),
    *("core.sshCommand=sh x", "core.worktree=/", "core.attributesFile=/x", "core.pager=sh x", "gpg.program=sh x"),
    *("log.showSignature=true", "alias.st=!sh x", "include.path=/x", "includeIf.gitdir:/.path=/x"),
    "trace2.eventTarget=/x",
    *("remote.origin.promisor=true", "remote.origin.partialCloneFilter=blob:none", "remote.origin.uploadpack=sh x"),
    *("extensions.partialClone=origin", "url.x.insteadOf=y", "credential.helper=!sh x", "core.alternateRefsCommand=x"),
    *("diff.submodule=log", "diff.submodule=diff", "status.submoduleSummary=true", "submodule.recurse=true"),
    *(
        "format.pretty=%h %G?",
        "format.pretty=%+GK",
        "pretty.x=format:%-GS",
        "tag.sort=signature",
        "hook.x.command=sh x",
    ),
    *("submodule.x.update=!sh x", "diff.a b.textconv=sh x"),
    *("FILTER.x.CLEAN=touch ran", "filter.a.b.smudge=x", "merge.x.driver=x", "pager.log=sh x", "core.editor=sh x"),
)


@pytest.mark.parametrize("setting", RISKY)
def test_a_repository_with_a_risky_setting_is_not_safe(repo: Repository, setting: str):
    name, _, value = setting.partition("=")
    assert repo.is_safe()
    repo.git("config", name, value)
    assert not repo.is_safe()


HARMLESS_USER_SETTINGS = (
    "core.pager=delta",
    "alias.st=status",
    "core.editor=vim",
    "credential.helper=store",
    "safe.directory=*",
)


@pytest.mark.parametrize(
    "setting", [*HARMLESS_USER_SETTINGS, "url.git@x:.insteadOf=https://x/", "core.excludesFile=~/.ignore"]
)
def test_settings_of_the_user_that_these_commands_do_not_use_are_safe(repo: Repository, setting: str):
    name, _, value = setting.partition("=")
    repo.git("config", "--global", name, value)
    assert repo.is_safe()


@pytest.mark.parametrize("setting", ["filter.lfs.process=git-lfs", "diff.external=difft", "core.fsmonitor=true"])
def test_a_setting_of_the_user_that_starts_a_program_is_found_in_an_included_file(repo: Repository, setting: str):
    name, _, value = setting.partition("=")
    (repo.home / "more").write_text("")
    repo.git("config", "--global", "include.path", "more")
    assert repo.is_safe()
    repo.git("config", "-f", str(repo.home / "more"), name, value)
    assert not repo.is_safe()


def test_a_file_that_includes_itself_is_not_safe(repo: Repository):
    repo.git("config", "--global", "include.path", "~/.gitconfig")
    assert not repo.is_safe()


@pytest.mark.parametrize("name", ["post-index-change", "fsmonitor-watchman"])
def test_a_hook_that_runs_with_reading_commands_is_found(repo: Repository, name: str):
    hook = repo.ws / ".git" / "hooks" / name
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    assert not repo.is_safe()


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "GIT_SSH_COMMAND", "GIT_TRACE"])
def test_an_environment_variable_that_redirects_git_is_not_safe(repo: Repository, name: str):
    assert not repo.git_config(**{name: "1"}).is_safe(str(repo.ws))
    assert repo.git_config(GIT_AUTHOR_NAME="a", GIT_PAGER="cat").is_safe(str(repo.ws))


def test_a_bare_repository_is_not_safe(repo: Repository):
    bare = repo.home / "sub"
    repo.git("init", "-q", "--bare", str(bare))
    assert not repo.is_safe(bare)
    assert not repo.is_safe(bare / "refs")


def test_a_repository_with_another_one_in_its_index_is_not_safe(repo: Repository):
    inner = repo.ws / "inner"
    repo.git("init", "-q", str(inner))
    repo.git("-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x", cwd=inner)
    assert repo.is_safe()
    repo.git("-c", "advice.addEmbeddedRepo=false", "add", "inner")
    assert not repo.is_safe()


def test_a_worktree_is_checked_with_the_settings_of_its_repository(repo: Repository):
    side = repo.home / "side"
    repo.git("worktree", "add", "-q", str(side))
    assert repo.is_safe(side)
    repo.git("config", "core.fsmonitor", "touch ran")
    assert not repo.is_safe(side)


def test_a_worktree_with_its_own_settings_is_checked_with_them(repo: Repository):
    side = repo.home / "side"
    repo.git("worktree", "add", "-q", str(side))
    repo.git("config", "extensions.worktreeConfig", "true")
    assert repo.is_safe(side)
    repo.git("config", "--worktree", "core.fsmonitor", "touch ran", cwd=side)
    assert not repo.is_safe(side)
    assert repo.is_safe()


def test_a_repository_with_a_foreign_commondir_is_not_safe(repo: Repository):
    (repo.ws / ".git" / "commondir").write_text("../../home/evil\n")
    assert not repo.is_safe()


@pytest.mark.parametrize("content", ["gitdir: ../home/evil\n", "gitdir: /nowhere\n", "nonsense", "", "gitdir: a\nb"])
def test_a_git_file_that_is_invalid_or_leads_to_an_unsafe_repository_is_not_safe(repo: Repository, content: str):
    sub = repo.ws / "sub"
    sub.mkdir()
    evil = repo.home / "evil"
    repo.git("init", "-q", "--bare", str(evil))
    (evil / "config").write_text("[core]\n\tfsmonitor = touch ran\n")
    (sub / ".git").write_text(content)
    (repo.ws / "home").symlink_to(repo.home)
    (repo.ws.parent / "home2").mkdir()
    assert not repo.is_safe(sub) or content.startswith("gitdir: /nowhere")


@pytest.mark.parametrize(
    "text",
    [
        *("[core\n", "[core] [x] a = b\n", "a = b\n", "[core]\n\t= x\n", "[core]\n\0\n", "[core]\r\tfsmonitor = x\n"),
        "[co re]\n",
        *("[core]\n\tx = y # \\\n\tfsmonitor = x\n", "; \\\n[core]\nfsmonitor = x\n", "\xff"),
        "[core]\n\tfs monitor = x\n",
    ],
)
def test_a_config_file_with_unusual_syntax_is_not_safe(repo: Repository, text: str):
    (repo.ws / ".git" / "config").write_text(text, encoding="latin-1")
    assert not repo.is_safe()


@pytest.mark.parametrize("kind", ["pipe", "folder", "huge", "broken link", "unreadable"])
def test_a_config_file_that_cannot_be_read_is_not_safe(repo: Repository, kind: str):
    config = repo.ws / ".git" / "config"
    config.unlink()
    match kind:
        case "pipe":
            os.mkfifo(config)
        case "folder":
            config.mkdir()
        case "huge":
            config.write_text("# \n" * 100_000)
        case "broken link":
            config.symlink_to("nowhere")
        case _:
            config.symlink_to("config")
    assert not repo.is_safe()


def test_the_result_is_cached_until_a_file_changes(repo: Repository):
    asked: list[str] = []

    def read(path: str, limit: int) -> bytes | None:
        asked.append(path)
        return read_whole(path, limit)

    config = GitConfig(read, repo.environment, str(repo.home))
    assert config.is_safe(str(repo.ws))
    count = len(asked)
    assert config.is_safe(str(repo.ws))
    assert len(asked) == count
    (repo.home / ".gitconfig").write_text("[diff]\n\texternal = x\n")
    assert not config.is_safe(str(repo.ws))
    (repo.home / ".gitconfig").unlink()
    assert config.is_safe(str(repo.ws))


# ------------------------------------------------------------------ against git itself

_LINES = st.lists(
    st.sampled_from(
        [
            *("[core]", '[filter "x"]', '[Filter "x y"]', "[a.b]", '[a "b\\"c"]', "[core] fsmonitor = x"),
            *("\tclean = sh x", "\tkey", "\tkey = a\\", "  more", '\tkey = "a # b"', "\tkey = a ; c", "# c", "; c", ""),
            *("\tx-y=1", "\tX = \\", "[core]clean=1", "[a]b=c\\", '\tkey = a"b"c', "\tkey=", "[ core]", "]", '[a"b"]'),
            *("\tk = a\\tb", "# c \\"),
        ]
    ),
    max_size=8,
)


@given(_LINES)
def test_the_names_of_settings_agree_with_git(tmp_path_factory, lines: list[str]):
    agrees_with_git(tmp_path_factory.mktemp("git") / "config", "\n".join(lines) + "\n")


_PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "[core]",
                '[filter "x"]',
                '[Filter "x y"]',
                "[a.b]",
                '[a "b\\"c"]',
                '[a "b\\\\c"]',
                '[a "b\\c"]',
                '[a ""]',
            ),
            *(
                "\n",
                "\r\n",
                "\r",
                "\t",
                " ",
                "\\",
                "\\\n",
                "\\\r\n",
                '"',
                "=",
                " = ",
                "#",
                "; c",
                "# c\\\n",
                "[",
                "]",
                "[]",
            ),
            *(
                "a",
                "key",
                "Key-x",
                "1",
                "\\t",
                "\\b",
                "\\n",
                '\\"',
                "\\\\",
                "\\x",
                "$",
                "\x0b",
                "\x0c",
                "\x1c",
                "\x85",
                "\u2028",
            ),
            *(
                "k = v\n",
                "\tclean = sh x\n",
                '\tk = "a # b" ; c\n',
                "\tk\n",
                "k=\n",
                "[core ]",
                '[core"x"]',
                "\ufeff",
                "\xe9",
            ),
        ]
    ),
    max_size=16,
)


@given(_PIECES, st.booleans())
def test_the_values_of_settings_agree_with_git(tmp_path_factory, pieces: list[str], has_section: bool):
    text = ("[s]\n" if has_section else "") + "".join(pieces)
    agrees_with_git(tmp_path_factory.mktemp("git") / "config", text)


def agrees_with_git(file: Path, text: str) -> None:
    """Every file that the parser accepts is accepted by git with the same meaning, except a tab within a value."""
    file.write_text(text, newline="")
    found = parse(text)
    if found is None:
        return
    listed = subprocess.run(["git", "config", "-f", str(file), "--list", "-z"], capture_output=True, check=False)
    assert listed.returncode == 0, listed.stderr
    records = [record.partition("\n") for record in listed.stdout.decode().split("\0")[:-1]]
    seen = [(name, value.replace("\t", " ") if is_given else None) for name, is_given, value in records]
    assert [(name, None if value is None else value.replace("\t", " ")) for name, value in found] == seen


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("k = a b ", "a b"), ('k = " a " b', " a  b"), ("k = a ; c", "a"), ('k = "a ; c"', "a ; c"), ("k =", "")),
        *(("k", None), ("k = a\\\n  b", "a  b"), ('k = \\t\\\\\\"', '\t\\"'), ("k = a\r", "a"), ("K = V", "V")),
    ],
)
def test_a_value_is_unquoted_and_trimmed_as_git_does_it(text: str, value: str | None):
    assert parse(f"[s]\r\n{text}\n") == [("s.k", value)]


# ------------------------------------------------------------------ settings of the user


@pytest.mark.parametrize("setting", ["diff.external=difft", "diff.submodule=diff", "format.pretty=%h %G?"])
def test_a_setting_of_the_user_counts_outside_a_repository_too(repo: Repository, setting: str):
    name, _, value = setting.partition("=")
    assert repo.is_safe(repo.home)
    repo.git("config", "--global", name, value)
    assert not repo.is_safe(repo.home)


def test_the_path_of_an_include_is_resolved_as_the_kernel_resolves_it(repo: Repository):
    (repo.home.parent / "x" / "deep").mkdir(parents=True)
    (repo.home / "link").symlink_to(repo.home.parent / "x" / "deep")
    repo.git("config", "--global", "include.path", "link/../more")
    (repo.home / "more").write_text("")
    (repo.home.parent / "x" / "more").write_text("[diff]\n\texternal = x\n")
    assert not repo.is_safe()


# ------------------------------------------------------------------ changes after the first check


@pytest.mark.parametrize("planted", [".git", "HEAD", "deep/.git"])
def test_a_repository_created_later_in_a_parent_folder_is_found(repo: Repository, planted: str):
    folder = repo.ws / "deep" / "er"
    folder.mkdir(parents=True)
    assert repo.is_safe(folder)
    if planted == "HEAD":
        for name in ("objects", "refs"):
            (folder / name).mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/x\n")
    else:
        repo.git("init", "-q", str((folder / planted).parent if planted == ".git" else folder.parent))
        where = folder if planted == ".git" else folder.parent
        repo.git("config", "core.fsmonitor", "touch ran", cwd=where)
    assert not repo.is_safe(folder)


def test_a_link_to_the_repository_that_changes_its_target_is_checked_again(repo: Repository):
    other = repo.home / "other"
    repo.git("init", "-q", str(other))
    repo.git("config", "core.fsmonitor", "touch ran", cwd=other)
    link = repo.home / "link"
    link.symlink_to(repo.ws)
    assert repo.is_safe(link)
    link.unlink()
    link.symlink_to(other)
    assert not repo.is_safe(link)
