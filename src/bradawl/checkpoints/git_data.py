"""Which files of a repository's git data undo covers.

Covered: what decides where branches, the index and unfinished operations stand. Not covered: objects, which git adds
and only `git gc` removes; hooks; lock files.
"""

from typing import Final, Literal

Role = Literal["plain", "git", "kept", "info", "worktrees", "modules"]
"""What a folder is for git: `git` a folder with git data, `modules` one that holds those of submodules, `kept` a part
of git data that is covered as a whole, `plain` any other folder."""

_FILES: Final = frozenset(
    {
        *("HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE"),
        *("MERGE_MSG", "MERGE_MODE", "MERGE_RR", "MERGE_AUTOSTASH", "SQUASH_MSG", "packed-refs", "index"),
        *("config", "config.worktree", "gitdir", "commondir", "locked", "shallow"),
    }
)
_PREFIXES: Final = ("BISECT_", "sharedindex.")
_KEPT_FOLDERS: Final = frozenset({"refs", "logs", "rebase-merge", "rebase-apply", "sequencer", "reftable"})
_INFO_FILES: Final = frozenset({"exclude", "attributes", "sparse-checkout", "grafts"})
_LOCK: Final = ".lock"
NAMED_IF_REMOVED: Final = frozenset({"objects", "hooks", "lfs", "annex"})
"""Folders of git data that are not covered, and may hold the only copy of something."""


def covers_file(role: Role, name: str) -> bool:
    """Whether a file or link of this name in a folder of this role is covered."""
    match role:
        case "plain":
            return True
        case "git":
            return name in _FILES or (name.startswith(_PREFIXES) and not name.endswith(_LOCK))
        case "kept":
            return not name.endswith(_LOCK)
        case "info":
            return name in _INFO_FILES
        case "worktrees" | "modules":
            return False


def role_of_folder(role: Role, name: str) -> Role | None:
    """Role of a folder in a folder of role `role`; None if it is not covered."""
    match role:
        case "plain" | "kept":
            return role
        case "git":
            if name in _KEPT_FOLDERS:
                return "kept"
            return name if name in ("info", "worktrees", "modules") else None
        case "info":
            return None
        case "worktrees":
            return "git"
        case "modules":
            return "modules"
