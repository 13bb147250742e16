"""Changes of files and folders whose contents are not saved: tells renamed ones from lost ones."""

import msgspec

from bradawl.checkpoints.folder import Folder, Signature
from bradawl.checkpoints.gaps import Gap, Gaps
from bradawl.checkpoints.record import Change, FileState, Identity


class UnsavedChanges:
    """What one search finds of them. `file_bytes` is the size above which no content is saved."""

    def __init__(self, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self._new: dict[tuple[int, int], tuple[FileState, Signature]] = {}
        """New entries by device and inode."""
        self._lost: list[tuple[bytes, Identity, Gap]] = []
        """Files whose earlier contents were not saved, and may be gone."""
        self._touched: list[tuple[bytes, Identity, Gap]] = []
        """Files of which only the ctime has changed: they got another name or owner, or a program that wrote them has
        set the time of change back.
        """
        self._other_names: dict[tuple[int, int], Change] = {}
        """Files that only have another number of names (hard links) than before, by device and inode."""
        self._replaced: list[tuple[Change, Identity]] = []
        """Files and folders in place of others with the same state."""

    def add_new(self, state: FileState, at: Signature) -> None:
        """Add an entry that is new, or has another inode than before. Its content may be saved."""
        self._new[at[5], at[1]] = (state, at)

    def add_gone(self, path: bytes, identity: Identity) -> None:
        """Add a file that is not at its path any more."""
        self._lost.append((path, identity, "lost"))

    def add_changed(self, change: Change, identity: Identity, at: Signature) -> None:
        """Add a file or folder that has changed, or was replaced by another one; `at` is the present signature."""
        before, after = change.before, change.after
        if before is None or after is None:
            return
        is_other = identity[:2] != (at[5], at[1])
        if not is_other and before.kind == "file" and (before.size, identity[3]) == (after.size, at[4]):
            state = msgspec.structs.replace(after, identity=(at[5], at[1], at[3], at[4]))
            self._other_names[identity[:2]] = Change(change.path, state, state)
        if is_other and before.kind == after.kind and not differs(before, after):
            self._replaced.append((change, identity))
        gap: Gap = "large" if before.size > self._file_bytes else "lost"
        if before.kind == "file" and (is_other or identity[3] != at[4] or before.size != after.size):
            self._lost.append((change.path, identity, gap))
        elif before.kind == "file" and identity[2] not in (0, at[3]) and before.mode == after.mode:
            self._touched.append((change.path, identity, gap))

    def completed(self, changes: list[Change], gaps: Gaps) -> list[Change]:
        """The changes, with what is known at the end of the search; adds what is lost to the gaps.

        Another name of a removed file is added as a change to the same state.
        """
        others: list[Change] = []
        for path, identity, gap in self._lost:
            if (other := self._other_names.get(identity[:2])) is not None:
                others.append(other)
            elif identity[:2] not in self._new:
                gaps.add(gap, path)
        with_names = {identity[:2] for _, identity, _ in self._lost} | self._new.keys()
        for path, identity, gap in self._touched:
            if identity[:2] not in with_names:
                gaps.add(gap, path)
        known = {change.path for change in changes}
        replaced = [
            change
            for change, identity in self._replaced
            if identity[:2] in self._new or (change.after is not None and change.after.kind == "file")
        ]
        links = {each.path: each for each in others if each.path not in known}
        return [self._with_content(change) for change in changes] + replaced + list(links.values())

    def _with_content(self, change: Change) -> Change:
        """The change, with the earlier content of a file that is saved now under its new name."""
        before = change.before
        if before is None or before.kind != "file" or before.identity is None:
            return change
        found = self._new.get(before.identity[:2])
        if found is None or not found[0].content or (found[0].size, found[1][4]) != (before.size, before.identity[3]):
            return change
        return Change(
            change.path, msgspec.structs.replace(before, content=found[0].content, identity=None), change.after
        )


def identified(folder: Folder, name: str) -> FileState | None:
    """The state of an entry; with its identity if its contents are not saved."""
    state = folder.states.get(name)
    if state is None or state.kind not in ("file", "folder") or state.content:
        return state
    if state.kind == "folder" and (below := folder.folders.get(name)) is not None and _is_known(below):
        return state
    mode, inode, _, ctime, mtime, device = folder.signatures[name]
    return msgspec.structs.replace(state, identity=(device, inode, ctime, mtime)) if mode else state


def _is_known(folder: Folder) -> bool:
    """Whether a folder is entered, or was before it was closed."""
    return not folder.reason and (folder.closed_at is None or bool(folder.states))


def differs(before: FileState, after: FileState) -> bool:
    """Whether two states differ in more than identity and owner."""
    return msgspec.structs.replace(before, identity=None, owner=after.owner) != after
