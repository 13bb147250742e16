"""Finds what the user may have changed: while only a background job ran, and after bradawl was killed."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import structs

from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.core.effects import is_within
from bradawl.folds.undo_history import CallChange, CallJob

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import PlannedChange, RestorePlan
    from bradawl.checkpoints.store import ContentStore

_WHY: Final = "it changed while only {} ran: maybe you changed it"
_WHY_LATE: Final = "it changed when bradawl or its search was killed, or after that: maybe you changed it"
_GIT: Final = b"/.git/"
_NOT_LITERAL: Final = frozenset("$*?[{ ")


def changes_in_doubt(
    calls: Sequence[CallChange], records: Sequence[ChangeRecord], store: "ContentStore"
) -> dict[bytes, str]:
    """By path, the id of the job that ran when the path changed, unless the job's command names the path as written.
    The id is empty for what was found after bradawl had been killed.

    `records` are those of the calls that have one, the newest first. Git's data are never taken for the job's.
    """
    found: dict[bytes, str] = {}
    saved = [call for call in reversed(calls) if call.ref]
    for call, record in zip(saved, records, strict=True):
        job = call.job
        if job is None and not record.is_late:
            continue
        named = frozenset[str]() if job is None else written_by(job)
        for change in record.changes:
            if not _is_named(change, named) and not _is_same_index(change, store):
                found.setdefault(change.path, "" if job is None else job.job_id)
    return found


def written_by(job: CallJob) -> frozenset[str]:
    """Absolute paths that a job certainly writes: those of redirections, or all if each part of it is understood."""
    return frozenset(map(os.path.realpath, (*job.writes, *_redirections(job))))


def _redirections(job: CallJob) -> Iterator[str]:
    """Targets of the redirections of a command that does not change its folder."""
    if ">" not in job.command or not job.cwd:
        return
    from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
    from bradawl.safety.shell.deny.scanner import scan

    targets = ProtectedTargets(job.cwd, (job.cwd,), lambda path, cwd: os.path.normpath(os.path.join(cwd, path)))  # noqa: PTH118 no file is touched
    scanned = scan(job.command, cwd=job.cwd, protected=targets)
    if scanned.is_whole and set(scanned.folders) <= {job.cwd}:
        yield from (os.path.join(job.cwd, each) for each in scanned.outputs if _NOT_LITERAL.isdisjoint(each))  # noqa: PTH118 no file is touched


def _is_named(change: Change, named: frozenset[str]) -> bool:
    if _GIT in change.path + b"/":
        return False
    path = os.fsdecode(change.path)
    return any(is_within(path, each) or (_is_new_folder(change) and is_within(each, path)) for each in named)


def _is_new_folder(change: Change) -> bool:
    return change.before is None and change.after is not None and change.after.kind == "folder"


def _is_same_index(change: Change, store: "ContentStore") -> bool:
    """Whether git's index changed only in what `git status` rewrites, as the prompt of a shell does."""
    before, after = change.before, change.after
    if not change.path.endswith(b"/index") or _GIT not in change.path:
        return False
    if before is None or after is None or not before.content or not after.content or before.mode != after.mode:
        return False
    from bradawl.checkpoints.git_index import staged_state

    with contextlib.suppress(StoreError, OSError):
        staged = staged_state(store.read(before.content))
        return staged is not None and staged == staged_state(store.read(after.content))
    return False


def with_conflicts_in_doubt(files: "RestorePlan", jobs: Mapping[bytes, str]) -> "RestorePlan":
    """The plan in which the user is asked about these paths.

    If they include `HEAD`, the index or a branch of a repository, the user is asked about all of its git data, because
    git uses them together. Both ends of a rename are asked about together, too.
    """
    if not jobs:
        return files
    asked = dict(jobs)
    for each in files.changes:
        job = jobs.get(each.path, jobs.get(each.source))
        if each.source and job is not None:
            asked[each.path] = asked[each.source] = job
    repositories = {
        _repository(each.path): jobs[each.path] for each in files.git if each.path in jobs and _is_state(each.path)
    }
    for each in files.git:
        if (job := repositories.get(_repository(each.path))) is not None:
            asked.setdefault(each.path, job)

    def marked(change: "PlannedChange") -> "PlannedChange":
        job = asked.get(change.path)
        if job is None or change.conflict:
            return change
        return structs.replace(change, conflict=_WHY.format(job) if job else _WHY_LATE, job=job)

    return files.with_each(marked)


def _repository(path: bytes) -> bytes:
    from bradawl.checkpoints.git_objects import git_folder_of

    return git_folder_of(path)[0]


def _is_state(path: bytes) -> bool:
    """Whether a path of git's data is `HEAD`, the index or a branch."""
    from bradawl.checkpoints.git_objects import git_folder_of

    name = git_folder_of(path)[1]
    return name in (b"HEAD", b"index", b"packed-refs") or name.startswith(b"refs/heads/")
