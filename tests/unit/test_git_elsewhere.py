"""git commands that run without a question show nothing from outside the repository, whatever `.git` contains.

Each case is a repository in which git would read a file, or a repository, that does not belong to it.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from git_judge import BUBBLEWRAP, LANDLOCK, NONE, Judge, shown_by_hand, status
from git_plants import FOREIGN, LINKED_FILES, LINKED_FOLDERS, SECRET, SETTINGS, Trap, names

from bradawl.app.git_files import read_whole
from bradawl.core.permissions import Allow, Deny, Sandbox
from bradawl.safety.git.config import GitConfig
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule

# ------------------------------------------------------------------ links


@pytest.mark.parametrize("name", LINKED_FILES)
async def test_a_file_of_git_that_is_a_link_to_a_secret_is_asked_about(trap: Trap, name: str):
    judge = Judge(trap)
    assert len(judge.unasked()) > 15
    trap.link(name, trap.secret)
    assert judge.unasked() == []
    is_object = name.startswith("objects/ab/")  # objects are checked only for commands that show them by name
    assert await status(trap) in (
        None,
        "git: on branch trunk",
        *(("git: on branch trunk, nothing changed",) * is_object),
    )


@pytest.mark.parametrize("name", LINKED_FILES[::4])
@pytest.mark.parametrize("sandbox", [LANDLOCK, BUBBLEWRAP], ids=["landlock", "bubblewrap"])
def test_a_file_of_git_that_is_a_link_into_the_workspace_is_asked_about_in_any_sandbox(
    trap: Trap, name: str, sandbox: Sandbox
):
    trap.link(name, trap.ws / ".env")
    assert Judge(trap, sandbox).unasked() == []


@pytest.mark.parametrize("name", LINKED_FOLDERS)
async def test_a_folder_of_git_that_is_a_link_is_asked_about(trap: Trap, name: str):
    trap.link(name, trap.private / ".git" / name, is_folder=True)
    assert Judge(trap).unasked() == []
    assert "merger" not in (await status(trap) or "")


@pytest.mark.parametrize(
    "name", ["packed-refs", "shallow", "info/grafts", "MERGE_HEAD", "refs/heads/other", "BISECT_START"]
)
async def test_a_file_of_git_that_is_a_hard_link_is_asked_about(trap: Trap, name: str):
    judge = Judge(trap)
    assert judge.unasked()
    trap.place(name).hardlink_to(trap.secret)
    assert judge.unasked() == []
    assert await status(trap) in (None, "git: on branch trunk")


@pytest.mark.parametrize("name", ["packed-refs", "shallow", "refs/heads/other", "logs/HEAD", "MERGE_HEAD", "deep/er"])
def test_a_pipe_that_would_block_git_is_asked_about(trap: Trap, name: str):
    os.mkfifo(trap.place(name))
    assert Judge(trap).unasked() == []


def test_git_itself_shows_the_targets_of_these_links(trap: Trap):
    """Git 2.39 shows the targets of these links when it is run directly."""
    trap.secret.write_text(f"{SECRET}\n")
    for name in ("packed-refs", "shallow", "info/grafts", "objects/info/alternates", "MERGE_HEAD", "branches/other"):
        trap.link(name, trap.secret)
        assert SECRET in shown_by_hand(trap), name
        trap.place(name)


def test_links_that_git_and_editors_create_are_allowed(trap: Trap):
    """Hooks, an editor's lock file, and the socket of git's file system monitor."""
    (trap.ws / "scripts").mkdir()
    (trap.ws / "scripts" / "check").write_text("#!/bin/sh\n")
    (trap.ws / "scripts" / "check").chmod(0o755)
    trap.place("hooks/pre-commit").symlink_to("../../scripts/check")
    trap.place(".#COMMIT_EDITMSG").symlink_to("user@host.1234:1700000000")
    assert len(Judge(trap).unasked()) > 15


def test_a_dangling_link_to_a_hook_is_allowed_until_its_target_exists(trap: Trap):
    trap.place("hooks/pre-commit").symlink_to("../../scripts/check")
    judge = Judge(trap)
    assert len(judge.unasked()) > 15
    (trap.ws / "scripts").mkdir()
    (trap.ws / "scripts" / "check").write_text(f"{'a' * 40}\n")
    assert judge.unasked() == []


@pytest.mark.parametrize("target", ["/proc/self/fd/3", "/proc/self/environ", "/dev/fd/0"])
def test_a_link_whose_target_depends_on_the_process_is_asked_about(trap: Trap, target: str):
    trap.place("hooks/pre-commit").symlink_to(target)
    assert Judge(trap).unasked() == []


def test_a_hook_that_links_to_no_program_is_asked_about(trap: Trap):
    trap.place("hooks/pre-commit").symlink_to(trap.secret)
    assert Judge(trap).unasked() == []


def test_the_folder_of_hooks_may_be_a_link_into_the_working_tree(trap: Trap):
    (trap.ws / "githooks").mkdir()
    shutil.rmtree(trap.ws / ".git" / "hooks")
    (trap.ws / ".git" / "hooks").symlink_to("../githooks")
    assert len(Judge(trap).unasked()) > 15
    (trap.ws / ".git" / "hooks").unlink()
    (trap.ws / ".git" / "hooks").symlink_to(trap.private)
    assert Judge(trap).unasked() == []


def test_a_link_that_is_created_later_is_found_and_a_removed_one_no_longer_counts(trap: Trap):
    judge = Judge(trap)
    for name in ("packed-refs", "refs/heads/x", "deep/er/x", "objects/ab/" + "c" * 38):
        place = trap.place(name)
        assert judge.unasked()
        place.symlink_to(trap.secret)
        assert judge.unasked() == []
        place.unlink()


# ------------------------------------------------------------------ settings and repositories that lead outside


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_a_repository_that_names_a_file_outside_is_asked_about(trap: Trap, setting: str):
    name, _, value = setting.partition("=")
    judge = Judge(trap)
    assert judge.unasked()
    trap.git("config", name, value.format(secret=trap.secret, home=trap.home))
    assert judge.unasked() == []


@pytest.mark.parametrize("sandbox", [LANDLOCK, BUBBLEWRAP], ids=["landlock", "bubblewrap"])
@pytest.mark.parametrize("setting", ["blame.ignoreRevsFile=.env", "mailmap.file={secret}", "include.path={secret}"])
def test_a_setting_that_names_a_file_with_keys_is_asked_about_in_any_sandbox(
    trap: Trap, setting: str, sandbox: Sandbox
):
    name, _, value = setting.partition("=")
    trap.git("config", name, value.format(secret=trap.secret))
    assert Judge(trap, sandbox).unasked() == []


@pytest.mark.parametrize(
    "setting", ["blame.ignoreRevsFile=.git-blame-ignore-revs", "diff.orderFile=order", "mailmap.file=m"]
)
def test_a_setting_may_name_a_file_of_the_working_tree(trap: Trap, setting: str):
    name, _, value = setting.partition("=")
    (trap.ws / value).write_text("")
    trap.git("config", name, value)
    judge = Judge(trap)
    assert len(judge.unasked()) > 15
    (trap.ws / value).unlink()
    (trap.ws / value).symlink_to(trap.secret)
    assert judge.unasked() == []


def test_a_setting_of_the_user_may_name_a_file_in_each_working_tree(trap: Trap):
    trap.git("config", "--global", "blame.ignoreRevsFile", ".revs")
    trap.git("config", "--global", "mailmap.file", "~/.mailmap")
    judge = Judge(trap)
    (trap.ws / ".revs").write_text("")
    assert len(judge.unasked()) > 15
    (trap.ws / ".revs").unlink()
    (trap.ws / ".revs").symlink_to(trap.secret)
    assert SECRET.split("-")[0] in shown_by_hand(trap, ("git blame a.txt",)) or "[default]" in shown_by_hand(trap)
    assert judge.unasked() == []


def test_a_file_that_a_rule_refuses_is_refused_to_git_too(trap: Trap):
    (trap.ws / "revs").write_text(f"{SECRET}\n")
    trap.git("config", "blame.ignoreRevsFile", "revs")
    assert isinstance(Judge(trap).decided("git blame a.txt"), Allow)
    bases = Bases(str(trap.ws / ".bradawl"), str(trap.home), str(trap.ws))
    rules = tuple(parse_rule("Read(revs)", "deny", "test", bases))
    assert isinstance(Judge(trap, rules=rules).decided("git blame a.txt"), Deny)


@pytest.mark.parametrize("plant", FOREIGN, ids=names)
@pytest.mark.parametrize("sandbox", [NONE, BUBBLEWRAP], ids=["none", "bubblewrap"])
async def test_a_repository_that_leads_to_another_one_is_asked_about(
    trap: Trap, plant: Callable[[Trap], object], sandbox: Sandbox
):
    plant(trap)
    assert Judge(trap, sandbox).unasked() == []
    assert "merger" not in (await status(trap) or "")


@pytest.mark.parametrize("plant", FOREIGN, ids=names)
def test_git_itself_shows_the_other_repositories(trap: Trap, plant: Callable[[Trap], object]):
    if plant(trap) is not False:
        assert SECRET in shown_by_hand(trap) or "hush" in shown_by_hand(trap)


def test_a_diff_outside_of_a_repository_that_would_show_keys_is_asked_about(trap: Trap):
    """Outside of a repository `git diff a b` works as `diff -r a b`."""
    place = trap.ws / "plain"
    shutil.rmtree(trap.ws / ".git")
    (place / "empty").mkdir(parents=True)
    (place / "full").mkdir()
    (place / "full" / ".env").write_text(SECRET)
    judge = Judge(trap)
    for line in ("git diff empty full", "git diff -- empty full", "git diff empty .", "git diff full/.env empty"):
        assert not isinstance(judge.decided(line, place), Allow)


# ------------------------------------------------------------------ ordinary repositories


def worktree(trap: Trap) -> Path:
    side = trap.home / "side"
    trap.git("worktree", "add", "-q", str(side))
    return side


def worktree_inside(trap: Trap) -> Path:
    trap.git("worktree", "add", "-q", "side")
    return trap.ws / "side"


def shared_clone(trap: Trap) -> Path:
    trap.git("clone", "-q", "--shared", str(trap.ws), "copy")
    return trap.ws / "copy"


def clone_with_reference(trap: Trap) -> Path:
    trap.git("clone", "-q", "--reference", str(trap.ws), str(trap.ws), "copy")
    return trap.ws / "copy"


def local_clone(trap: Trap) -> Path:
    """Its objects are hard links."""
    trap.git("clone", "-q", str(trap.ws), "copy")
    return trap.ws / "copy"


def submodule(trap: Trap) -> Path:
    trap.git("clone", "-q", str(trap.ws), str(trap.home / "lib"))
    trap.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(trap.home / "lib"), "sub")
    return trap.ws / "sub"


def separate_folder(trap: Trap) -> Path:
    trap.git("init", "-q", "--separate-git-dir", str(trap.ws / "data.git"))
    return trap.ws


def packed(trap: Trap) -> Path:
    trap.git("gc", "-q")
    trap.git("pack-refs", "--all")
    trap.git("commit-graph", "write", "--split")
    trap.git("multi-pack-index", "write")
    return trap.ws


def in_the_middle_of_a_rebase(trap: Trap) -> Path:
    for name in ("one", "two"):
        (trap.ws / "a.txt").write_text(name)
        trap.git("commit", "-qam", name)
    trap.git("-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    trap.git("bisect", "start")
    return trap.ws


def other_hashes(trap: Trap) -> Path:
    trap.git("init", "-q", "--object-format=sha256", "other")
    place = trap.ws / "other"
    (place / "deep").mkdir()
    (place / "deep" / "file").write_text("")
    trap.git("add", "-A", cwd=place)
    trap.git("commit", "-q", "-m", "x", cwd=place)
    return place


def tags_and_notes(trap: Trap) -> Path:
    trap.git("tag", "-a", "v1", "-m", "x")
    trap.git("notes", "add", "-m", "x")
    trap.git("stash", "-q", "-u")
    trap.git("remote", "add", "other", "https://example.org/x.git")
    return trap.ws


ORDINARY = (
    *(worktree, worktree_inside, shared_clone, clone_with_reference, local_clone, submodule, separate_folder, packed),
    *(in_the_middle_of_a_rebase, tags_and_notes, other_hashes),
)


@pytest.mark.parametrize("layout", ORDINARY, ids=names)
def test_ordinary_layouts_of_repositories_are_read_without_a_question(trap: Trap, layout: Callable[[Trap], Path]):
    folder = layout(trap)
    allowed = Judge(trap).unasked(folder) if folder.is_relative_to(trap.ws) else []
    config = GitConfig(read_whole, trap.environment, str(trap.home))
    assert config.is_safe(str(folder))
    assert len(allowed) > 15 or folder == trap.home / "side"


@pytest.mark.parametrize("name", [".gitattributes", ".gitignore", ".mailmap"])
def test_a_link_in_place_of_a_gitattributes_gitignore_or_mailmap_file_is_checked_by_its_target(trap: Trap, name: str):
    (trap.ws / name).unlink(missing_ok=True)
    (trap.ws / name).symlink_to("a.txt")
    judge = Judge(trap)
    assert len(judge.unasked()) > 15
    (trap.ws / name).unlink()
    (trap.ws / name).symlink_to(trap.secret)
    assert judge.unasked() == []
    (trap.ws / name).unlink()
    os.mkfifo(trap.ws / name)
    assert judge.unasked() == []


def test_a_link_in_place_of_a_gitattributes_file_is_checked_in_subfolders_too(trap: Trap):
    (trap.ws / "d").mkdir()
    (trap.ws / "d" / ".gitattributes").write_text("")
    trap.git("add", "-A")
    judge = Judge(trap)
    assert len(judge.unasked()) > 15
    (trap.ws / "d" / ".gitattributes").unlink()
    (trap.ws / "d" / ".gitattributes").symlink_to(trap.secret)
    assert judge.unasked() == []


async def test_the_status_lists_changes_unless_objects_are_borrowed_from_another_repository(trap: Trap):
    assert await status(trap, local_clone(trap)) == "git: on branch trunk, nothing changed"
    shutil.rmtree(trap.ws / "copy")
    assert await status(trap, shared_clone(trap)) == "git: on branch trunk"
    trap.git("mv", "a.txt", "b.txt")
    assert await status(trap) == "git: on branch trunk, changed: R  a.txt -> b.txt, ?? copy/"


def test_in_a_sandbox_a_repository_with_a_submodule_is_read_without_a_question(trap: Trap):
    sub = submodule(trap)
    judge = Judge(trap, BUBBLEWRAP)
    assert len(judge.unasked()) > 15
    (trap.ws / ".git" / "modules" / "sub" / "packed-refs").unlink(missing_ok=True)
    (trap.ws / ".git" / "modules" / "sub" / "packed-refs").symlink_to(trap.secret)
    assert judge.unasked() == []
    assert judge.unasked(sub) == []


def test_a_submodule_whose_repository_is_outside_is_asked_about(trap: Trap):
    sub = submodule(trap)
    (sub / ".git").write_text(f"gitdir: {trap.private}/.git\n")
    assert Judge(trap, BUBBLEWRAP).unasked() == []


@pytest.mark.parametrize("setting", ["filter.lfs.clean=git-lfs", "core.hooksPath=.husky", "diff.external=difft"])
def test_settings_that_start_programs_are_allowed_only_in_a_sandbox(trap: Trap, setting: str):
    name, _, value = setting.partition("=")
    trap.git("config", name, value)
    assert Judge(trap).unasked() == []
    assert len(Judge(trap, BUBBLEWRAP).unasked()) > 15
