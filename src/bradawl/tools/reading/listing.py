"""Lists a folder for the model."""

from bradawl.core.workspace import FileEntry
from bradawl.tools.reading.path_errors import on_one_line

FOLDER_LIMIT = 10_000
"""Most files to list; a folder is found by the files in it."""
_NAMES_SHOWN = 200


def listing(path: str, real: str, entries: tuple[FileEntry, ...], *, is_cut: bool) -> str:
    """The names in a folder, those of folders with a slash; `path` is the folder as the model gave it."""
    root = len(real.rstrip("/")) + 1
    parts = [entry.path[root:].partition("/") for entry in entries]
    names = sorted({head + slash for head, slash, _ in parts})
    shown = [on_one_line(name) for name in names[:_NAMES_SHOWN]] or ["(no files, apart from what git ignores)"]
    if len(names) > _NAMES_SHOWN:
        shown.append(f"[{len(names) - _NAMES_SHOWN} more]")
    elif is_cut:
        shown.append("[there may be more folders]")
    return "\n".join([f"{path} is a folder:", *shown])
