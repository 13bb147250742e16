"""Finds git commands that force a push, and git commands that discard what git itself does not keep.

Git keeps replaced commits in the reflog, so `commit --amend`, `rebase`, `reset --soft` and `branch -f` are not found.
It refuses to overwrite changes in `checkout BRANCH`, `merge`, `pull`, `rebase`, `branch -d` and so on.
"""

import re
from collections.abc import Callable

import msgspec

from bradawl.safety.shell.arguments import Arguments, arguments
from bradawl.safety.shell.argv import Argv
from bradawl.safety.shell.deny.expansion import UNKNOWN_VALUE
from bradawl.safety.shell.deny.git_settings import GitCommand

Exists = Callable[[str], bool]
"""Whether a path, relative to the folder of the command, exists or is unknown."""


class Loss(msgspec.Struct, frozen=True):
    """What a command discards."""

    what: str
    undoable: bool = True
    """Whether undo could bring it back, if it saved the working tree, git's references and its index."""


FORCED_PUSH = "it forces a push, which may overwrite commits in the remote repository"
REMOTE_DELETION = "it deletes branches or tags of the remote repository"

_CHANGES = Loss("uncommitted changes")
_STAGED = Loss("staged changes")
_UNTRACKED = Loss("untracked files")
_IGNORED = Loss("ignored files, such as installed packages", undoable=False)
_STASHED = Loss("stashed changes")
_COMMITS = Loss("commits that may be on no other branch")
_REFLOG = Loss("entries of the reflog, which lead to replaced commits")
_CONFLICTS = Loss("resolved conflicts")
_HISTORY = Loss("the history before the rewrite", undoable=False)

OBJECTS = Loss("objects that no reference leads to", undoable=False)
REPOSITORY = Loss("a git repository", undoable=False)

# ------------------------------------------------------------------ pushes


def forced_push(command: GitCommand) -> str:
    """Why a push, or a setting for pushes, is asked about in every mode but `bypass`; empty if it isn't."""
    match command.words[0]:
        case "push" | "send-pack" | "http-push":
            return _forced_push(command)
        case "subtree" if "push" in command.words[1:]:
            return FORCED_PUSH if any(word[:1] == "+" for word in command.words) else ""
        case "config":
            return _forced_by_settings(command)
        case _:
            return ""


def _forced_push(command: GitCommand) -> str:
    call = arguments(command.words, "o", "repo receive-pack exec push-option recurse-submodules")
    if _is_dry_run(call):
        return ""
    deletes = command.words[0] != "send-pack" and call.has("dD" if command.words[0] == "http-push" else "d")
    if deletes or call.has("", "delete", "mirror", "prune"):
        return REMOTE_DELETION
    if any(re.match(r":[^\s:]", word) for word in call.operands):
        return REMOTE_DELETION
    is_forced = call.has("f", "force", "force-with-lease", "force-if-includes")
    unknown = (option for option, _ in call.given if UNKNOWN_VALUE in option)
    may_be_option = call.operands[:1] == (UNKNOWN_VALUE,) or any(unknown)
    if is_forced or may_be_option or any(word[:1] == "+" for word in call.operands):
        return FORCED_PUSH
    return _forced_by_settings(command)


def _forced_by_settings(command: GitCommand) -> str:
    if command.settings.is_on(r"remote\..*\.mirror"):
        return REMOTE_DELETION
    refspecs = command.settings.values(r"remote\..*\.push")
    if any(refspec[:1] == ":" and len(refspec) > 1 for refspec in refspecs):
        return REMOTE_DELETION
    return FORCED_PUSH if any(refspec[:1] == "+" for refspec in refspecs) else ""


def _is_dry_run(call: Arguments) -> bool:
    """Whether the command changes nothing. `--no-dry-run`, also abbreviated, takes that back."""
    is_on = False
    for option, _ in call.given:
        if option == "n" or (len(option) > 1 and "dry-run".startswith(option)):
            is_on = True
        elif re.match("no-d|no-?$", option):
            is_on = False
    return is_on


# ------------------------------------------------------------------ what git does not keep


def loss(command: GitCommand, exists: Exists) -> Loss | None:
    """What a command discards; None if nothing, or only what git keeps."""
    finder = _FINDERS.get(command.words[0])
    return finder(command, exists) if finder else None


def _reset(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words, "U", "pathspec-from-file")
    if call.has("", "hard"):
        return _CHANGES
    return _STAGED if call.has("", "merge", "keep") else None


def _clean(command: GitCommand, _: Exists) -> Loss | None:
    """Without `-f` it deletes only if the configuration says so, which is not known here."""
    call = arguments(command.words, "e", "exclude")
    if _is_dry_run(call):
        return None
    return _IGNORED if call.has("xX") else _UNTRACKED


def _checkout(command: GitCommand, exists: Exists) -> Loss | None:
    words = command.words
    call = arguments(words, "bBU", "orphan conflict pathspec-from-file unified inter-hunk-context")
    if call.has("fp", "force", "patch", "ours", "theirs", "pathspec-from-file"):
        return _CHANGES
    if "--" in words:
        return _CHANGES
    if call.has("bBdt", "orphan", "detach", "track"):
        return None
    # Without operands it does nothing, unless they come from elsewhere, as for `xargs git checkout`.
    if len(call.operands) != 1 or _is_path(call.operands[0], exists):
        return _CHANGES
    return _STAGED if call.has("m", "merge") else None


def _is_path(word: str, exists: Exists) -> bool:
    """Whether `git checkout WORD` restores files. It does if no branch has the name of the existing path."""
    return word[:1] in (".", "/", ":") or any(mark in word for mark in "*?[") or exists(word)


def _switch(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words, "cC", "create force-create orphan conflict")
    if call.has("f", "force", "discard-changes"):
        return _CHANGES
    return _STAGED if call.has("m", "merge") else None


def _restore(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words, "sU", "source conflict unified inter-hunk-context pathspec-from-file")
    only_index = call.has("S", "staged") and not call.has("W", "worktree", "no-staged")
    return None if only_index else _CHANGES


def _rm(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words, "", "pathspec-from-file")
    is_kept = _is_dry_run(call) or (call.has("", "cached") and not call.has("", "no-cached"))
    return _CHANGES if call.has("f", "force") and not is_kept else None


def _mv(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words)
    return _CHANGES if call.has("f", "force") and not _is_dry_run(call) else None


def _stash(command: GitCommand, _: Exists) -> Loss | None:
    return _STASHED if command.words[1:2] in (("drop",), ("clear",)) else None


def _branch(command: GitCommand, _: Exists) -> Loss | None:
    """Deletes a branch with its reflog, or renames or copies another one over it."""
    call = arguments(command.words, "u", "set-upstream-to sort points-at format")
    is_forced = call.has("f", "force")
    replaces = is_forced and call.has("dmc", "delete", "move", "copy")
    return _COMMITS if call.has("DMC") or replaces else None


def _worktree(command: GitCommand, _: Exists) -> Loss | None:
    is_removal = "remove" in command.words[1:] and arguments(command.words).has("f", "force")
    return Loss("uncommitted changes and untracked files of a worktree") if is_removal else None


def _reflog(command: GitCommand, _: Exists) -> Loss | None:
    changes = command.words[1:2] in (("expire",), ("delete",), ("drop",))
    return _REFLOG if changes and not _is_dry_run(arguments(command.words)) else None


def _update_ref(command: GitCommand, _: Exists) -> Loss | None:
    return _COMMITS if arguments(command.words, "m").has("d", "stdin") else None


def _abort(command: GitCommand, _: Exists) -> Loss | None:
    """Ends a merge or similar operation and resets the working tree."""
    call = arguments(command.words, "mXsxS", "onto exec strategy strategy-option message")
    return _CONFLICTS if call.has("", "abort", "skip") else None


def _submodule(command: GitCommand, _: Exists) -> Loss | None:
    changes = not {"deinit", "update"}.isdisjoint(command.words[1:])
    return Loss("changes in submodules") if changes and arguments(command.words).has("f", "force") else None


def _checkout_index(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words, "", "prefix stage")
    return _CHANGES if call.has("f", "force") and not call.has("", "prefix") else None


def _read_tree(command: GitCommand, _: Exists) -> Loss | None:
    call = arguments(command.words, "", "prefix index-output")
    return _CHANGES if call.has("", "reset") and call.has("u") else None


# ------------------------------------------------------------------ objects

_NEVER = re.compile(r"(?i:never|false|2\.weeks(?:\.ago)?)")


def _gc(command: GitCommand, _: Exists) -> Loss | None:
    """It keeps unreachable objects for two weeks, unless it is given another time."""
    times = (*arguments(command.words).values("", "prune"), *command.settings.values(r"gc\.(?:\w+\.)?\w*expire\w*"))
    return OBJECTS if any(not _NEVER.fullmatch(time) for time in times) else None


def _prune(command: GitCommand, _: Exists) -> Loss | None:
    return None if _is_dry_run(arguments(command.words, "", "expire")) else OBJECTS


def _repack(command: GitCommand, _: Exists) -> Loss | None:
    """`-a -d` deletes unreachable objects, but only those in packs, which are older than undo's records."""
    call = arguments(command.words, "gm", "window window-memory depth threads max-pack-size keep-pack filter")
    return OBJECTS if call.has("", "unpack-unreachable", "cruft-expiration") else None


def _filter_repo(command: GitCommand, _: Exists) -> Loss | None:
    return None if not {"--dry-run", "--analyze", "--help", "-h"}.isdisjoint(command.words) else _HISTORY


_REPOSITORY = re.compile(
    r"(?:.*/)?\.git(?:/+(?:\*|objects|refs|logs|modules|worktrees|HEAD|packed-refs)(?:/.*)?)?/*", re.DOTALL
)


def deletes_repository(words: Argv) -> bool:
    """Whether the operands of `rm` are a `.git`, or its objects or references."""
    return any(map(_REPOSITORY.fullmatch, arguments(words).operands))


_FINDERS: dict[str, Callable[[GitCommand, Exists], Loss | None]] = {
    # The working tree and the index
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "rm": _rm,
    "mv": _mv,
    "checkout-index": _checkout_index,
    "read-tree": _read_tree,
    "worktree": _worktree,
    "submodule": _submodule,
    **dict.fromkeys(("merge", "rebase", "cherry-pick", "revert", "am"), _abort),
    # References and reflogs
    "stash": _stash,
    "branch": _branch,
    "reflog": _reflog,
    "update-ref": _update_ref,
    # Objects
    **dict.fromkeys(("gc", "maintenance"), _gc),
    "prune": _prune,
    "repack": _repack,
    "filter-repo": _filter_repo,
}
"""By the subcommand."""
