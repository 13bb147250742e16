"""Creates the folders that bradawl keeps data of the user in."""

import contextlib
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Create a folder and its parents for this user only; existing ones are not changed. Raises `OSError`."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private_folder(folder.parent)
    with contextlib.suppress(FileExistsError):  # made meanwhile, or a file: what uses it fails then
        folder.mkdir(mode=0o700)
