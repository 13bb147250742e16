"""Recognizes files of new repositories and lines of git configuration that make git run nothing."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.git.config_file import parse
from bradawl.safety.path_walk import real_path
from bradawl.sandbox.discovery.git_folders import kind_of
from bradawl.sandbox.restore.snapshot import Entry, Snapshot

_HARMLESS = (
    rb"\s*(?:[#;].*|\[(?:core|user|init|extensions|commit|tag|pull|push|fetch|color|gc|submodule"
    rb"|(?:remote|branch|submodule) \"[\w./-]+\")\]"
    rb"|(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|objectformat"
    rb"|name|email|defaultbranch|remote|merge|fetch|url|autocrlf|eol|safecrlf|quotepath|gpgsign|rebase|ff|default"
    rb"|autosetupremote|ui|auto|prune|active|tagopt|worktree[cC]onfig|sparse[cC]heckout(?:[cC]one)?)\s*=\s*(?!.*(?:::|!))[^\\-].*)?\s*"
)
_MIRROR = rb"\s*mirror = (?:true|fetch|push)\s*"
"""Harmless in a new repository; in an existing one it would make the user's next push delete branches."""
_EMPTY_AT_FIRST = ("hooks", "branches", "remotes")
"""Folders that `git init` creates, by its templates."""
_STRATEGIES = frozenset(("ours", "recursive", "resolve", "octopus", "subtree", "ort"))
_EXEC = re.compile(rb"(?m)^[ \t]*(?:x|exec)[ \t].*$")
_WORKING_TREE = rb"\s*worktree = ([\w./-]+)\s*"


def is_new_repository(path: str, entry: Entry, before: Snapshot) -> bool:
    """Whether a file is one that `git init` or `git clone` creates in a new repository and that runs nothing."""
    if tree := re.fullmatch(r"(.+/worktrees/[^/]+)/(config\.worktree|commondir)", path):
        return not any(is_within(known, tree[1]) for known in before) and _is_plain_tree(tree[2], entry)
    head, git, inner = path.rpartition("/.git/")
    data = f"{head}/.git"
    if module := re.fullmatch(r"(modules/.+?)/((?:config|hooks)(?:/.*)?)", inner):
        data, inner = f"{data}/{module[1]}", module[2]
    if not git or any(is_within(known, data) for known in before):
        return False
    return _runs_nothing(inner, entry, lambda line: module is not None and _stays(line, path, head))


def is_new_data(inner: str, entry: Entry) -> bool:
    """As `is_new_repository`, for a file at the path `inner` in the data folder of a new bare repository."""
    return _runs_nothing(inner, entry, lambda _: False)


def _runs_nothing(inner: str, entry: Entry, is_allowed: Callable[[bytes], bool]) -> bool:
    if inner in _EMPTY_AT_FIRST:
        return entry.kind == "folder"
    if inner.startswith("hooks/"):
        return entry.kind == "file" and inner.endswith(".sample")
    if entry.content == b"" and entry.kind == "file":
        return True  # may be the placeholder of a program that still runs
    lines = (entry.content or b"[unknown]").splitlines()
    is_config = inner in ("config", "config.worktree") and entry.kind == "file"
    return is_config and all(
        re.fullmatch(_HARMLESS, line) or re.fullmatch(_MIRROR, line) or is_allowed(line) for line in lines
    )


def is_plain_at_first(path: str, entry: Entry) -> bool:
    """Whether an entry is a file that git writes, or a folder for remote repositories in git's data, as `git init`
    creates it. Files in the folder are entries of their own.
    """
    if is_written(path):
        return entry.kind == "file"
    data, _, name = path.rpartition("/")
    return name in ("branches", "remotes") and entry.kind == "folder" and kind_of(f"{data}/HEAD") == "file"


STATE_FILES: Final = (
    "rebase-merge/git-rebase-todo",
    "rebase-merge/strategy",
    "rebase-apply/strategy",
    "sequencer/opts",
)
"""Files by which git goes on with a stopped rebase, cherry-pick or revert, and that can name a program."""
WRITTEN_FILES: Final = (
    *("COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG", "TAG_EDITMSG", "EDIT_DESCRIPTION", "NOTES_EDITMSG"),
    *("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE"),
    *("packed-refs", "description", "logs/HEAD", "info/exclude", "info/sparse-checkout", "addp-hunk-edit.diff"),
)
"""Files of git's data that git writes, also through a link in their place."""
_WRITTEN_ENDINGS: Final = tuple(f"/{name}" for name in WRITTEN_FILES)
_STATE_FOLDERS: Final = ("/rebase-merge", "/rebase-apply", "/sequencer")
_STATE_ENDINGS: Final = tuple(f"/{name}" for name in STATE_FILES)


def is_state(path: str) -> bool:
    """Whether a path is one of `STATE_FILES` in git's data, or the folder of one."""
    return path.endswith(_STATE_ENDINGS) or path.endswith(_STATE_FOLDERS)


def is_written(path: str) -> bool:
    """Whether a path is one of `WRITTEN_FILES` in git's data."""
    return path.endswith(_WRITTEN_ENDINGS)


def runs_by_state(path: str, entry: Entry, before: Entry | None = None) -> bool:
    """Whether git would run a program because of one of `STATE_FILES`, and would not have before.

    A merge strategy is a program `git-merge-NAME`; a name with a slash is a path in the working tree.
    """
    if entry.kind != "file" or entry.content is None:
        return True
    if path.endswith("/git-rebase-todo"):
        known = set(_EXEC.findall(before.content or b"")) if before is not None else set[bytes]()
        return any(line not in known for line in _EXEC.findall(entry.content))
    if path.endswith("/strategy"):
        return os.fsdecode(entry.content).strip() not in _STRATEGIES
    settings = parse(os.fsdecode(entry.content))
    return settings is None or any(name == "options.strategy" and value not in _STRATEGIES for name, value in settings)


def without_added_programs(path: str, entry: Entry | None, before: Entry | None) -> Entry | None:
    """A list of rebase steps without the lines, new since `before`, that run programs: `git rebase --continue` goes on
    with the rest. None for other files, and if git would still run a program.
    """
    if not path.endswith("/git-rebase-todo") or entry is None or entry.kind != "file" or entry.content is None:
        return None
    known = set(_EXEC.findall(before.content or b"")) if before is not None else set[bytes]()
    lines = entry.content.splitlines(keepends=True)
    kept = b"".join(line for line in lines if not _EXEC.match(line) or line.rstrip(b"\r\n") in known)
    cleaned = msgspec.structs.replace(entry, content=kept)
    return None if runs_by_state(path, cleaned, before) else cleaned


def _is_plain_tree(name: str, entry: Entry) -> bool:
    content = entry.content if entry.kind == "file" else None
    if name == "commondir":
        return content is not None and content.strip() in (b"", b"../..")
    return content is not None and all(re.fullmatch(_HARMLESS, line) for line in content.splitlines())


def adds_only_harmless_lines(path: str, before: Entry, now: Entry) -> bool:
    """Whether only lines were added to git's configuration that git itself writes in daily use."""
    if not path.endswith("/config") or {before.kind, now.kind} != {"file"} or now.content is None:
        return False
    known = set((before.content or b"").splitlines())
    return all(line in known or re.fullmatch(_HARMLESS, line) for line in now.content.splitlines())


def _stays(line: bytes, config: str, folder: str) -> bool:
    """Whether a line of a submodule's configuration names a working tree inside a folder."""
    named = re.fullmatch(_WORKING_TREE, line)
    return bool(named) and is_within(real_path(Path(config).parent / os.fsdecode(named[1])), folder)
