"""Whether bradawl's data folder can be written: sessions, undo and the state of sandboxes need it."""

import os
from pathlib import Path
from typing import Final

UNWRITABLE_HINT: Final = "Make it writable, or set BRADAWL_HOME to a folder that is."


def unwritable_place(folder: str) -> str:
    """The folder that can't be written, itself or the nearest one above that exists; empty if it can."""
    places = (Path(folder), *Path(folder).parents)
    existing = next((one for one in places if os.access(one, os.F_OK)), places[-1])
    return "" if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK) else str(existing)


def without_data_text(folder: str) -> str:
    """Why there is no sandbox, and what to do; empty if the data folder can be written."""
    place = unwritable_place(folder)
    return (
        f"No sandbox works, because {place} can't be written: bradawl keeps its data there. {UNWRITABLE_HINT}"
        if place
        else ""
    )
