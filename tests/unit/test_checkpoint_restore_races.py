"""A program swaps folders for links while a restore runs: nothing outside of the workspace changes."""

import contextlib
import shutil
import threading
from pathlib import Path

from restored_workspace import Workspace
from tree_changes import difference, scan

from bradawl.checkpoints.restore import apply


def _swap(folder: Path, outside: Path, stop: threading.Event) -> None:
    """Make the name of a folder lead to the folder, nowhere and outside in turn."""
    aside, link = folder.with_name("aside"), folder.with_name("link")
    steps = (
        lambda: link.symlink_to(outside),
        lambda: folder.rename(aside),
        lambda: link.rename(folder),
        lambda: folder.unlink(),
        lambda: aside.rename(folder),
        lambda: shutil.rmtree(aside),  # the restore has made the folder again
    )
    while not stop.is_set():
        for step in steps:
            with contextlib.suppress(OSError):
                step()


def test_swapping_a_folder_during_restores_changes_nothing_outside(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    with Workspace(tmp_path) as work:
        folder = work.top / "folder"
        folder.mkdir()
        for number in range(20):
            for place in (folder, outside):
                (place / f"edited{number}").write_text("new")
                (place / f"made{number}").write_text("new")
        work.start()
        for number in range(20):
            (folder / f"edited{number}").write_text("old")
            (folder / f"made{number}").unlink()
        wanted = work.scan()
        undo = difference(wanted, work.trees[0])
        theirs = scan(outside, work.store)
        stop = threading.Event()
        attacker = threading.Thread(target=_swap, args=(folder, outside, stop))
        attacker.start()
        restored = 0
        try:
            for number in range(60):
                work.records = [undo if number % 2 else difference(work.trees[0], wanted)]
                restored += len(apply(work.plan(), work.store).changes)
        finally:
            stop.set()
            attacker.join()
        assert scan(outside, work.store) == theirs
        assert restored, "the restores must have had a chance"
