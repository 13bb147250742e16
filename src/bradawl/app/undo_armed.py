"""Asks before an undo writes what makes git run a program: a background job may have planted it before the step.

The state that an undo restores was saved when the step began. If a check of the sandbox has disarmed the file since,
the undo would arm it again, outside of the sandbox.
"""

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from msgspec import structs

from bradawl.app.undo_completed import text_of
from bradawl.safety.git.config_file import parse
from bradawl.safety.git.settings_without_programs import has_no_programs

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import PlannedChange, RestorePlan
    from bradawl.checkpoints.store import ContentStore

_ARMED: Final = "git would run a program because of it: look at it before you restore it"
_CONFIGS: Final = (b"config", b"config.worktree")
_REDIRECTIONS: Final = (b"commondir", b"alternates")
_OF_LINKED_TREE: Final = b"../.."
_STEPS: Final = b"git-rebase-todo"


def with_armed_conflicts(files: "RestorePlan", store: "ContentStore") -> "RestorePlan":
    """The plan in which the user is asked about files by which git would run something that it does not run now."""
    if not any(_may_arm(change) for change in (*files.changes, *files.git)):
        return files
    data = {each.path.rpartition(b"/")[0] for each in (*files.changes, *files.git) if each.path.endswith(b"/HEAD")}

    def asked(change: "PlannedChange") -> "PlannedChange":
        is_armed = not change.conflict and _may_arm(change) and _is_armed(change, store, data)
        return structs.replace(change, conflict=_ARMED) if is_armed else change

    return files.with_each(asked)


def _may_arm(change: "PlannedChange") -> bool:
    folder, _, name = change.path.rpartition(b"/")
    is_made = change.wanted is not None and change.wanted.kind in ("file", "link") and not change.source
    return is_made and (name in (*_CONFIGS, *_REDIRECTIONS, _STEPS) or folder.endswith(b"/hooks"))


def _is_armed(change: "PlannedChange", store: "ContentStore", data: Collection[bytes]) -> bool:
    folder, _, name = change.path.rpartition(b"/")
    top = folder.removesuffix(b"/hooks").removesuffix(b"/objects/info")
    is_gits = b"/.git/" in change.path or top in data or os.path.lexists(top + b"/HEAD")
    wanted = change.wanted
    if wanted is None or not is_gits:
        return False
    if wanted.kind == "link":
        return True
    if folder.endswith(b"/hooks"):
        return not name.endswith(b".sample")
    text = text_of(wanted, store)
    if text is None:
        return True
    if name in _REDIRECTIONS:
        return text.strip().encode() != _OF_LINKED_TREE
    if name == _STEPS:
        return any(line.split(None, 1)[:1] in (["exec"], ["x"]) for line in text.splitlines())
    known = parse(text_of(change.now, store) or "") or () if change.now is not None else ()
    return not has_no_programs(text, frozenset(known).__contains__)
