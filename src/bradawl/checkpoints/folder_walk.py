"""Walks the folders of the index on the disk, by descriptors, with few of them open at a time."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Final

from bradawl.checkpoints.folder import Folder
from bradawl.checkpoints.folder_reader import open_child, open_folder

_LEVELS: Final = 4
"""Levels that are searched depth first. Deeper folders wait, so folders near the root come first."""
_DEEP_LEVELS: Final = 64
"""The same far below the root, where each start opens many folders."""
Visit = Callable[[Folder, int], None]
"""Handles a folder, given its descriptor. May add and remove folders below it."""
OnError = Callable[[Folder, OSError, int | None], None]
"""Handles a folder that could not be opened, given the descriptor of its parent if that is open."""


def walk(start: Folder, visit: Visit, on_error: OnError) -> Generator[None]:
    """Visit a folder and all below it that are entered; yields after each. Few descriptors are open at a time: 66."""
    waiting = deque([start])
    while waiting:
        top = waiting.popleft()
        try:
            descriptor = open_folder(top)
        except OSError as error:
            on_error(top, error, None)
            continue
        levels = min(max(top.depth, _LEVELS), _DEEP_LEVELS)
        yield from _walk_levels(top, descriptor, levels, waiting, visit, on_error)


def _walk_levels(
    top: Folder, descriptor: int, levels: int, waiting: deque[Folder], visit: Visit, on_error: OnError
) -> Generator[None]:
    """Visit the upper levels below a folder; deeper folders are appended to `waiting`. Closes the descriptor."""
    entered = [descriptor]
    inner: list[Iterator[Folder]] = []
    try:
        visit(top, descriptor)
        yield
        inner.append(_inner_folders(top))
        while inner:
            if (folder := next(inner[-1], None)) is None:
                inner.pop()
                os.close(entered.pop())
            elif len(entered) == levels:
                waiting.append(folder)
            elif (below := _opened(entered[-1], folder, on_error)) is not None:
                entered.append(below)
                visit(folder, below)
                yield
                inner.append(_inner_folders(folder))
    finally:
        for each in entered:
            os.close(each)


def _inner_folders(folder: Folder) -> Iterator[Folder]:
    """The folders in a visited folder that are to be entered."""
    return iter(() if folder.reason else [below for below in folder.folders.values() if not below.reason])


def _opened(parent: int, folder: Folder, on_error: OnError) -> int | None:
    try:
        return open_child(parent, folder.name)
    except OSError as error:
        on_error(folder, error, parent)
        return None
