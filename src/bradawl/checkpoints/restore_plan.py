"""Plans an undo: composes change records and compares what they say with the present state of the files."""

import contextlib
import os
import shlex
from bisect import bisect_right
from collections.abc import Callable, Sequence

import msgspec

from bradawl.checkpoints.composed_changes import ComposedChange, compose
from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.file_states import Digest, digest_of, has_same_content, is_same, read_content, read_state
from bradawl.checkpoints.git_index import staged_state
from bradawl.checkpoints.git_objects import PlannedObjects, git_folder_of, missing_objects, packed_reference
from bradawl.checkpoints.kept_copies import (
    KeptCopies,
    find_kept_copies,
    identity_of,
    is_known_file,
    present_status,
)
from bradawl.checkpoints.made_folders import rest_of_made_folders, staying_folders
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.opened_notes import noted_walk
from bradawl.checkpoints.passing_states import has_passing_mode, is_of_both, is_on_the_way, lacks_end
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.spellings import other_spellings
from bradawl.checkpoints.store import ContentStore

_BETWEEN = "it was changed between the calls that are undone, and not by them"
_TOO_LARGE = "its present content is too large to be saved, so this could not be undone"
_NOT_SAVED = "its content was not saved"
_OTHER = "devices, sockets and pipes are not restored"
_PACKED = "git has moved it to packed-refs since, so it stays"
_INDEX_BYTES = 50_000_000
_OUTSIDE = "it is outside of the folders that undo covers"
_ADD = f"{_OUTSIDE}; give its folder with --add-dir {{}}"


class PlannedChange(msgspec.Struct, frozen=True):
    """What a restore would do to one path."""

    path: bytes
    """Absolute."""
    now: FileState | None
    wanted: FileState | None
    conflict: str = ""
    """Why the path is restored only if the user agrees; empty if there is no conflict."""
    source: bytes = b""
    """The present path of the wanted file or folder, which is renamed; empty if it is made or changed."""
    moves_away: bool = False
    """Whether what is there now is renamed to another path of the plan."""
    link: bytes = b""
    """Path of the wanted file after all renames, which gets this further name (a hard link); empty for any other."""
    job: str = ""
    """The background job that ran when the path changed, if that is the conflict: it may have changed nothing."""


class RestorePlan(msgspec.Struct, frozen=True):
    """What a restore would do. Paths that are as wanted already are left out. All parts are sorted by path."""

    roots: tuple[bytes, ...]
    """Nothing outside of these folders is changed."""
    changes: tuple[PlannedChange, ...]
    git: tuple[PlannedChange, ...]
    """Changes of git's data: paths in or at a `.git`."""
    impossible: tuple[tuple[bytes, str], ...]
    """Paths that can't be restored, and why."""
    uncovered: tuple[str, ...]
    """Sentences of the records about what may have changed and can't be restored."""
    lost: tuple[str, ...] = ()
    """Sentences about folders that come back empty."""
    outside: tuple[Change, ...] = ()
    """Changes outside of the roots, which are also among the impossible: the state to restore, and the expected one."""
    is_exact: bool = True
    """False if the records may lack changes; `uncovered` says so."""
    staying: tuple[bytes, ...] = ()
    """Folders among the changes that can't be removed, because other files are in them; sorted."""
    caches: tuple[bytes, ...] = ()
    """The same of caches; the folders above them stay, too. Sorted."""

    @property
    def is_partial(self) -> bool:
        """Whether something can't be restored, or may not be, apart from conflicts."""
        return bool(self.impossible or self.lost or self.staying) or not self.is_exact

    def with_each(self, change: "Callable[[PlannedChange], PlannedChange]") -> "RestorePlan":
        """The plan with what `change` makes of each change of a file, also of git's data."""
        return msgspec.structs.replace(self, changes=tuple(map(change, self.changes)), git=tuple(map(change, self.git)))

    @property
    def conflicts(self) -> tuple[PlannedChange, ...]:
        """The changes that need the user's agreement."""
        return tuple(change for change in (*self.changes, *self.git) if change.conflict)


def plan(
    store: ContentStore,
    records: Sequence[ChangeRecord],
    roots: Sequence[bytes],
    *,
    is_interrupted: bool = False,
    temporary: bytes = b"",
    abandoned: Sequence[ChangeRecord] = (),
) -> RestorePlan:
    """What undoing the records would do; the newest comes first. Changes nothing, and blocks while it reads files.

    With `is_interrupted` a restore between the two states of the only record was killed: the states that it leaves
    for a moment are no conflicts. `temporary` is the name of the file that it may have left in a folder, and that is
    removed before restoring. What holds for the states holds for `abandoned` too, the records of restores that were
    killed or stopped and then neither finished nor taken back.

    `roots` are absolute, resolved paths of folders. A closed folder is opened while it is read. Raises `OSError` only
    for the store's folder, and `RestoreRefused` if the only copy of an unsaved folder would be lost.
    """
    changes: list[PlannedChange] = []
    impossible: list[tuple[bytes, str]] = []
    with noted_walk(store.folder, tuple(roots)) as walk:
        same = _Comparison(store, walk, abandoned, is_interrupted=is_interrupted)
        composed_changes = compose(records, same.is_unbroken)
        wanted = {path: each.wanted for path, each in composed_changes.items()}
        copies = find_kept_copies(walk, wanted, records)
        composed_changes.update((path, ComposedChange(None, state)) for path, state in copies.parked.items())
        outside = [
            Change(path, each.wanted, each.expected)
            for path, each in sorted(composed_changes.items())
            if walk.root_of(path) is None and os.path.isabs(path) and os.path.normpath(path) == path  # noqa: PTH117 names are bytes
        ]
        done = copies.impossible | _impossible_outside([each.path for each in outside]) | other_spellings(walk, wanted)
        impossible += done.items()
        for path, composed in sorted(composed_changes.items()):
            if path in done or path.startswith(copies.left_out):
                continue
            if path in copies.renames or path in copies.sources:
                more, why = _plan_renamed(same, path, composed, copies)
                changes += more
                impossible += why
                continue
            if path in copies.links:
                planned = _plan_linked(same, path, composed, copies.links[path])
            else:
                planned = _plan_path(same, path, composed, copies.conflicts.get(path, ""))
            if isinstance(planned, str):
                impossible.append((path, planned))
            elif planned is not None:
                changes.append(planned)
        left_alone = {change.path for change in changes if change.conflict} | {path for path, _ in impossible}
        entered = {path: state for path, state in wanted.items() if not path.startswith(copies.left_out)}
        rest = rest_of_made_folders(walk, entered, left_alone | copies.sources)
        changes = sorted((*changes, *(PlannedChange(path, now, None) for path, now in rest.items())), key=_path)
        kept, blocked = _without_blocked(walk, changes)
        kept = _with_git_conflicts(same, kept)
        staying, caches = _staying_folders(walk, kept, temporary)
        git = {change.path for change in kept if is_git_data(change.path, walk.root_of(change.path) or b"")}
    return RestorePlan(
        roots=tuple(roots),
        changes=tuple(change for change in kept if change.path not in git),
        git=tuple(change for change in kept if change.path in git),
        impossible=tuple(sorted(impossible + blocked)),
        uncovered=tuple(dict.fromkeys(sentence for record in records for sentence in record.uncovered)),
        lost=copies.lost,
        outside=tuple(outside),
        is_exact=all(record.is_exact for record in records),
        staying=staying,
        caches=caches,
    )


def _path(change: PlannedChange) -> bytes:
    return change.path


def _impossible_outside(paths: Sequence[bytes]) -> dict[bytes, str]:
    """By path, that it is outside of the roots, with the folder to add: the outermost one with such a path in it."""
    outermost: list[bytes] = []
    for folder in sorted({path[: path.rfind(b"/") + 1] for path in paths}):
        if not outermost or not folder.startswith(outermost[-1]):
            outermost.append(folder)
    return {
        path: _ADD.format(shlex.quote(os.fsdecode(folder.rstrip(b"/") or b"/")))
        for path in paths
        for folder in (outermost[bisect_right(outermost, path) - 1],)
    }


class _Comparison:
    """Compares states; of git's index what is staged, because `git status` rewrites the rest."""

    def __init__(
        self, store: ContentStore, walk: FolderWalk, abandoned: Sequence[ChangeRecord], *, is_interrupted: bool
    ) -> None:
        self.store = store
        self.walk = walk
        self._is_interrupted = is_interrupted
        self._abandoned: dict[bytes, list[Change]] = {}
        """Changes of restores that were not finished, by path."""
        for change in (change for record in abandoned for change in record.changes):
            self._abandoned.setdefault(change.path, []).append(change)

    def is_unbroken(self, path: bytes, after: FileState | None, before: FileState | None) -> bool:
        """Whether only undo changed a path between the state after one record and the state before the next one."""
        return self.is_same(path, after, before) or self._is_own_work(path, before)

    def _is_own_work(self, path: bytes, state: FileState | None) -> bool:
        """Whether a restore that was not finished has left a state."""
        return any(
            is_same(state, each.after) or is_on_the_way(state, each.before, each.after)
            for each in self._abandoned.get(path, ())
        )

    def is_same(self, path: bytes, one: FileState | None, other: FileState | None, now: bytes = b"") -> bool:
        """Whether two states are the same for the user; `now` is the content of the first if it is not saved."""
        if is_same(one, other):
            return True
        if one is None or other is None or not path.endswith(b"/index") or b"/.git/" not in path:
            return False
        if not one.content or not other.content or one.mode != other.mode:
            return False
        with contextlib.suppress(StoreError):
            staged = staged_state(now or self.store.read(one.content))
            return staged is not None and staged == staged_state(self.store.read(other.content))
        return False

    def is_as_expected(self, path: bytes, now: FileState | None, expected: FileState | None) -> bool:
        """Whether the present state of a path is the expected one."""
        content = b""
        if path.endswith(b"/index") and now is not None and not is_same(now, expected) and now.size < _INDEX_BYTES:
            with contextlib.suppress(OSError):
                content = read_content(self.walk, path)
        return self.is_same(path, now, expected, content)

    def digest_for(self, composed: ComposedChange) -> Digest:
        """Reads the content of a file, unless it is larger than all contents that are saved, as with sparse files."""
        sizes = {state.size for state in (composed.wanted, composed.expected) if state is not None and state.content}

        def digest(file: int, size: int) -> str:
            return digest_of(file, size) if size <= self.store.largest_bytes or size in sizes else ""

        return digest

    def is_rewritten(self, path: bytes, now: FileState | None, expected: FileState | None) -> bool:
        """Whether a file whose content is too large to be saved was changed or replaced since, at the same size.

        One whose content is saved by now was restored by an undo or redo.
        """
        if now is None or now.kind != "file" or expected is None or expected.content or expected.identity is None:
            return False
        found = present_status(self.walk, path)
        if found is None or is_known_file(found, expected.identity):
            return False
        return not now.content or not self.store.has(now.content)

    def is_packed(self, path: bytes, expected: FileState | None) -> bool:
        """Whether a reference without a file of its own has the expected value in `packed-refs`."""
        value = packed_reference(self.walk, path) if expected is not None and expected.content else b""
        if not value or expected is None:
            return False
        with contextlib.suppress(StoreError):
            return self.store.read(expected.content).strip() == value
        return False

    def is_between(self, path: bytes, now: FileState | None, composed: ComposedChange) -> bool:
        """Whether a restore that was killed on the way from one state to the other may have left the present one."""
        ways = [(each.before, each.after) for each in self._abandoned.get(path, ())]
        if self._is_interrupted:
            ways.append((composed.expected, composed.wanted))
        return self._is_own_work(path, now) or any(
            is_on_the_way(now, *way) or self._is_mixture(path, now, way) for way in ways
        )

    def _is_mixture(self, path: bytes, present: FileState | None, way: tuple[FileState | None, ...]) -> bool:
        """Whether a file begins like one of two contents and ends like the other, overwritten in place in part, or
        lacks its end, which a loss of power has kept from the disk.
        """
        states = [state for state in way if state is not None and state.kind == "file" and state.content]
        if not states or present is None or not has_passing_mode(present, states):
            return False
        if present.size > max(state.size for state in states):
            return False
        try:
            now = read_content(self.walk, path)
            contents = [self.store.read(state.content) for state in states]
        except (OSError, StoreError):
            return False
        return any(lacks_end(now, each) for each in contents) or is_of_both(now, contents)


def _plan_renamed(
    same: _Comparison, path: bytes, composed: ComposedChange, copies: KeptCopies
) -> tuple[list[PlannedChange], list[tuple[bytes, str]]]:
    """The change of a path from or to which an unsaved file or folder is renamed, and what is impossible there."""
    wanted, source, moves_away = composed.wanted, copies.renames.get(path, b""), path in copies.sources
    try:
        now = read_state(same.walk, path, _no_digest if moves_away else same.digest_for(composed))
    except OSError as error:
        return [], [(path, _unreadable(error))]
    found = present_status(same.walk, path)
    if now is not None and found is not None and moves_away:
        now = msgspec.structs.replace(now, identity=identity_of(found))
    impossible: list[tuple[bytes, str]] = []
    if not source and (why := _why_impossible(same.store, now, wanted)):
        impossible, wanted = [(path, why)], None
    conflict = _conflict(same, path, now, msgspec.structs.replace(composed, wanted=wanted))
    if conflict == _TOO_LARGE and moves_away:
        conflict = ""
    return [PlannedChange(path, now, wanted, conflict, source, moves_away)], impossible


def _plan_linked(same: _Comparison, path: bytes, composed: ComposedChange, link: bytes) -> PlannedChange | str:
    """The change of a path whose file has another name."""
    try:
        now = read_state(same.walk, path, same.digest_for(composed))
    except OSError as error:
        return _unreadable(error)
    return PlannedChange(path, now, composed.wanted, _conflict(same, path, now, composed), link=link)


def _no_digest(_file: int, _size: int) -> str:
    return ""


def _unreadable(error: OSError) -> str:
    return f"it can't be read: {error.strerror or error}"


def _plan_path(
    same: _Comparison, path: bytes, composed: ComposedChange, only_copy: str = ""
) -> PlannedChange | str | None:
    """The change of one path, None if it is as wanted, or a text that says why it can't be restored."""
    wanted, walk = composed.wanted, same.walk
    if walk.root_of(path) is None:
        return _OUTSIDE
    try:
        now = read_state(walk, path, same.digest_for(composed))
    except OSError as error:
        return _unreadable(error)
    if wanted is not None and wanted.identity is not None and now is not None and now.kind == wanted.kind == "file":
        found = present_status(walk, path)
        now = msgspec.structs.replace(now, identity=None if found is None else identity_of(found))
        if has_same_content(now, wanted):
            now = msgspec.structs.replace(now, content="")
    if is_same(now, wanted):
        is_packed = now is None and same.is_packed(path, composed.expected)
        return _PACKED if is_packed else None
    if walk.root_of(path) == path and (now is None or wanted is None or wanted.kind != "folder"):
        return "it is the workspace itself"
    if why := _why_impossible(same.store, now, wanted):
        return why
    return PlannedChange(path, now, wanted, only_copy or _conflict(same, path, now, composed))


def _why_impossible(store: ContentStore, now: FileState | None, wanted: FileState | None) -> str:
    if "other" in (now and now.kind, wanted and wanted.kind):
        return _OTHER
    if wanted is None or wanted.kind != "file":
        return ""
    if now is not None and has_same_content(now, wanted):
        return ""
    if not wanted.content:
        return _NOT_SAVED
    is_there = (now is not None and now.content == wanted.content) or store.has(wanted.content)
    is_there = is_there or store.holds(wanted.content)  # the store can't be written
    return "" if is_there else "its content is not kept any more: undo no longer reaches so far back"


def _conflict(same: _Comparison, path: bytes, now: FileState | None, composed: ComposedChange) -> str:
    if same.is_rewritten(path, now, composed.expected) and not same.is_between(path, now, composed):
        return "it was changed since"
    if same.is_as_expected(path, now, composed.expected) or same.is_between(path, now, composed):
        if now is not None and now.size > same.store.largest_bytes and not _has_content(composed.wanted, now):
            return _TOO_LARGE
        return _BETWEEN if composed.is_changed_between else ""
    if now is None and composed.wanted is not None and same.is_packed(path, composed.expected):
        return ""
    if now is None:
        return "it was removed since"
    return "it was made since" if composed.expected is None else "it was changed since"


def _with_git_conflicts(same: _Comparison, changes: Sequence[PlannedChange]) -> list[PlannedChange]:
    """The changes, with a conflict at those of git's data that git could not use after all of them."""
    restored = [change for change in changes if not change.conflict]
    planned = PlannedObjects(
        {change.path: change.wanted for change in restored},
        {change.path: change.source for change in restored if change.source},
        same.store.read,
    )
    return [
        change
        if change.conflict or not (why := _git_conflict(same, change, planned))
        else msgspec.structs.replace(change, conflict=why)
        for change in changes
    ]


def _git_conflict(same: _Comparison, change: PlannedChange, planned: PlannedObjects) -> str:
    """Why git could not use a file of its data if it were restored; empty if it can."""
    path, now, wanted = change.path, change.now, change.wanted
    if wanted is None or not wanted.content or (now is not None and now.content == wanted.content):
        return ""
    if not git_folder_of(path)[1] or wanted.size >= _INDEX_BYTES:
        return ""
    try:
        content = same.store.read(wanted.content)
    except StoreError:
        return ""
    missing = missing_objects(same.walk, path, content, lambda: read_content(same.walk, path), planned)
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"git no longer has the object {missing[0][:12]}{more}, which it would name" if missing else ""


def _has_content(wanted: FileState | None, now: FileState) -> bool:
    return wanted is not None and wanted.kind == "file" and wanted.content == now.content


def _without_blocked(
    walk: FolderWalk, changes: Sequence[PlannedChange]
) -> tuple[list[PlannedChange], list[tuple[bytes, str]]]:
    """Separates changes below something that is no folder now and will not be one."""
    wanted = {change.path: change.wanted for change in changes}
    kept: list[PlannedChange] = []
    blocked: list[tuple[bytes, str]] = []
    kinds: dict[bytes, bool] = {}
    for change in changes:
        blocker = _blocker(walk, change.path, wanted, kinds) if change.wanted is not None else b""
        if blocker:
            blocked.append((change.path, f"{os.fsdecode(blocker)} is not a folder that can be entered"))
        else:
            kept.append(change)
    return kept, blocked


def _staying_folders(
    walk: FolderWalk, changes: Sequence[PlannedChange], temporary: bytes
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """The folders that hold what is not in the plan, and the caches among them; conflicts count as removed."""
    removed = [each for each in changes if each.now is not None and each.wanted is None and not each.moves_away]
    folders = [each.path for each in removed if each.now is not None and each.now.kind == "folder"]
    gone = {each.path for each in changes if each.moves_away} | {each.path for each in removed}
    if temporary:
        gone |= {folder + b"/" + temporary for folder in folders}
    return staying_folders(walk, folders, gone)


def _blocker(walk: FolderWalk, path: bytes, wanted: dict[bytes, FileState | None], kinds: dict[bytes, bool]) -> bytes:
    """The innermost path above that is no folder to be entered and is not restored to one; empty if there is none."""
    above = os.path.dirname(path)  # noqa: PTH120 names are bytes
    while walk.root_of(above) is not None and not kinds.get(above):
        if above in wanted:
            state = wanted[above]
            return above if state is not None and state.kind != "folder" else b""
        try:
            walk.folder(above)
            kinds[above] = True
        except FileNotFoundError:
            pass
        except OSError:
            if _may_exist(walk, above):
                return above
        above = os.path.dirname(above)  # noqa: PTH120 names are bytes
    return b""


def _may_exist(walk: FolderWalk, path: bytes) -> bool:
    try:
        return read_state(walk, path, lambda _file, _size: "") is not None
    except OSError:
        return True


def is_git_data(path: bytes, root: bytes) -> bool:
    """Whether a path is a `.git` below the root, or in one."""
    return b".git" in path[len(root) :].split(b"/")
