"""Recognizes changes of git's own files, and lines of its configuration, that make git run nothing."""

import os
import re
from functools import partial
from typing import Final

import msgspec

from bradawl.safety.git.config_file import Entry as Setting
from bradawl.safety.git.config_file import parse
from bradawl.safety.git.settings_without_programs import leads_elsewhere, stays_in_existing, without_programs
from bradawl.sandbox.discovery.git_folders import kind_of
from bradawl.sandbox.restore.snapshot import Entry

_STRATEGIES = frozenset(("ours", "recursive", "resolve", "octopus", "subtree", "ort"))
_EXEC = re.compile(rb"(?m)^[ \t]*(?:x|exec)[ \t].*$")


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
_WRITTEN_ENDINGS: Final = (*(f"/{name}" for name in WRITTEN_FILES), "/.gitmodules")
_STATE_FOLDERS: Final = ("/rebase-merge", "/rebase-apply", "/sequencer")
_STATE_ENDINGS: Final = tuple(f"/{name}" for name in STATE_FILES)


def is_state(path: str) -> bool:
    """Whether a path is one of `STATE_FILES` in git's data, or the folder of one."""
    return path.endswith(_STATE_ENDINGS) or path.endswith(_STATE_FOLDERS)


def is_written(path: str) -> bool:
    """Whether a path is one of `WRITTEN_FILES` in git's data, or the list of submodules of a working tree."""
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


def adds_only_harmless_settings(path: str, before: Entry, now: Entry, *, may_lead_elsewhere: bool = False) -> bool:
    """Whether only settings were added to git's configuration that run nothing and redirect nothing.

    `may_lead_elsewhere` permits other addresses for remotes that existed: for files that programs can't write.
    """
    if not _are_configs(path, before, now):
        return False
    known, settings = _settings(before), parse(os.fsdecode(now.content or b""))
    stays = stays_in_existing if may_lead_elsewhere else partial(_stays, known)
    return settings is not None and all(each in known or stays(each) for each in settings)


def _stays(known: frozenset[Setting], setting: Setting) -> bool:
    return stays_in_existing(setting) and not leads_elsewhere(setting, known)


def without_added_settings(path: str, before: Entry, now: Entry) -> Entry | None:
    """Git's configuration without the added settings that run or redirect something; None if it can't be changed, or if
    settings were removed or redirected, too.
    """
    if not _are_configs(path, before, now):
        return None
    known = _settings(before)
    text = without_programs(os.fsdecode(now.content or b""), known.__contains__, partial(_stays, known))
    if text is None or not {each.name for each in known} <= {each.name for each in parse(text) or ()}:
        return None
    return msgspec.structs.replace(now, content=os.fsencode(text))


def _are_configs(path: str, before: Entry, now: Entry) -> bool:
    is_read = before.content is not None and now.content is not None
    return path.endswith("/config") and before.kind == now.kind == "file" and is_read


def _settings(entry: Entry) -> frozenset[Setting]:
    return frozenset(parse(os.fsdecode(entry.content or b"")) or ())
