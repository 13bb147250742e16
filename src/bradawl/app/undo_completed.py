"""Finds the repositories that an undo would complete from parts, and from which git would run a program.

Each part alone is nothing to git: a command may have left a configuration that names a program in a folder without
`HEAD`, and in a cache, which undo does not cover, the folder `objects` of the same repository. An undo that restores
the missing part completes the repository after the last check of the sandbox.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import structs

from bradawl.checkpoints.errors import ContentGone
from bradawl.safety.git.settings_without_programs import has_no_programs
from bradawl.safety.git.small_files import LARGEST_SETTINGS, named_in, text_in

if TYPE_CHECKING:
    from bradawl.checkpoints.record import FileState
    from bradawl.checkpoints.restore import PlannedChange, RestorePlan
    from bradawl.checkpoints.store import ContentStore

_PARTS: Final = (b"HEAD", b"objects", b"refs", b"commondir")
_CONFIGS: Final = (b"config", b"config.worktree")
_OF_LINKED_TREE: Final = "../.."
_OBJECT_NAMES: Final = (40, 64)
_COMPLETES: Final = "git would take the folder for a repository and run a program: look at it before you restore it"

Wanted = Mapping[bytes, "FileState | None"]


def with_completing_conflicts(files: "RestorePlan", store: "ContentStore") -> "RestorePlan":
    """The plan in which the user is asked about parts that complete a repository from which git runs a program."""
    parts = _completing_parts((*files.changes, *files.git), partial(text_of, store=store))

    def asked(change: "PlannedChange") -> "PlannedChange":
        is_asked = change.path in parts and not change.conflict
        return structs.replace(change, conflict=_COMPLETES) if is_asked else change

    return files.with_each(asked) if parts else files


def text_of(state: "FileState | None", store: "ContentStore") -> str | None:
    """The text of a saved file; None if it is not saved, or too large for a file of git that is read here."""
    if state is None or state.kind != "file" or state.size > LARGEST_SETTINGS or not state.content:
        return None
    try:
        return os.fsdecode(store.read(state.content))
    except ContentGone:
        return None


def _completing_parts(
    changes: "Iterable[PlannedChange]", read: "Callable[[FileState], str | None]"
) -> frozenset[bytes]:
    """The paths of changes without which an armed repository is not complete. Blocks while it reads files."""
    wanted = {each.path: each.wanted for each in changes}
    parts = {part for path, state in wanted.items() if state is not None for part in _parts_above(path)}
    tops = dict.fromkeys(part.rpartition(b"/")[0] for part in parts)
    armed = tuple(top for top in tops if _completes(top, parts) and _is_armed(top, wanted, read))
    return frozenset(path for top in armed for path in _needed(top, wanted))


def _parts_above(path: bytes) -> Iterator[bytes]:
    """The paths with a part's name that a path lies in, and itself."""
    if any(name in path for name in _PARTS):
        names = path.split(b"/")
        yield from (b"/".join(names[: at + 1]) for at, name in enumerate(names) if name in _PARTS)


def _completes(top: bytes, parts: Collection[bytes]) -> bool:
    """Whether git takes a folder for a repository, or for what working trees share, after the changes only.

    A part that is removed counts as well: a folder with other files in it stays.
    """
    paths = {name: top + b"/" + name for name in _PARTS}
    has = {name for name, path in paths.items() if path in parts or os.path.lexists(path)}
    is_complete = {b"objects", b"refs"} <= has or {b"HEAD", b"commondir"} <= has
    return is_complete and not _is_repository(top)


def _is_repository(top: bytes) -> bool:
    """Whether git takes a folder for the data of a repository now."""
    head, folder = os.path.join(top, b"HEAD"), os.fsdecode(top)  # noqa: PTH118 names are bytes
    if os.path.islink(head):  # noqa: PTH114 names are bytes
        is_head = os.fsdecode(os.readlink(head)).startswith("refs/")  # noqa: PTH115 names are bytes
    else:
        text = text_in(os.fsdecode(head)) or ""
        is_head = text.startswith("ref:") or len(text.strip()) in _OBJECT_NAMES
    shared = named_in(f"{folder}/commondir", "")
    data = os.path.join(folder, shared) if shared else folder  # noqa: PTH118 as above
    return is_head and all(os.path.exists(f"{data}/{name}") for name in ("objects", "refs"))  # noqa: PTH110 as above


def _is_armed(top: bytes, wanted: Wanted, read: "Callable[[FileState], str | None]") -> bool:
    """Whether git would run a program, or obey another repository, because of a folder after the changes."""
    texts = (_text(top + b"/" + name, wanted, read) for name in _CONFIGS)
    if any(text is None or not has_no_programs(text) for text in texts):
        return True
    shared = _text(top + b"/commondir", wanted, read)
    if shared is None or shared.strip() not in ("", _OF_LINKED_TREE):
        return True
    return _text(top + b"/objects/info/alternates", wanted, read) != "" or _has_hooks(top + b"/hooks", wanted)


def _text(path: bytes, wanted: Wanted, read: "Callable[[FileState], str | None]") -> str | None:
    """The text of a file after the changes, empty without one; None if it is a link or can't be read."""
    if (state := wanted.get(path)) is not None:
        return read(state)
    return text_in(os.fsdecode(path), LARGEST_SETTINGS) if os.path.lexists(path) else ""


def _has_hooks(folder: bytes, wanted: Wanted) -> bool:
    try:
        names = os.listdir(folder)  # noqa: PTH208 names are bytes
    except FileNotFoundError:
        names = []
    except OSError:
        return True
    names += [path[len(folder) + 1 :] for path in wanted if path.startswith(folder + b"/")]
    return any(not name.endswith(b".sample") for name in names)


def _needed(top: bytes, wanted: Wanted) -> list[bytes]:
    """The changes without which a folder is no repository: of `HEAD`, else of the other parts."""
    head = top + b"/HEAD"
    if wanted.get(head) is not None:
        return [head]
    parts = {top + b"/" + name for name in _PARTS}
    return [path for path, state in wanted.items() if state is not None and not parts.isdisjoint(_parts_above(path))]
