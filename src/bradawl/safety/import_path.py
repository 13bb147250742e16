"""Removes the working directory from the module search path: a project's files can't replace imported modules."""

import os
import sys


def leave_out_the_project(path: list[str], cwd: str) -> None:
    """Remove the entries of a module search path that lead into the working directory.

    `python -m`, and an empty entry of PYTHONPATH, put that folder first, where a project could have an `asyncio.py`.
    Removes relative entries, and entries in `cwd` before the standard library. Keeps the folder of this package.
    Imports only modules that are already loaded.
    """
    own = os.path.realpath(__file__).rsplit("/", 3)[0]
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib may be the project's until this is done
    folder = os.path.realpath(cwd)
    start = next((index for index, entry in enumerate(path) if _is_library(entry, library)), len(path))
    path[:] = [
        entry
        for index, entry in enumerate(path)
        if os.path.realpath(entry) == own
        or (entry.startswith("/") and not (index < start and _is_within(os.path.realpath(entry), folder)))
    ]


def _is_library(entry: str, library: str) -> bool:
    return entry == library or (entry.endswith(".zip") and entry.startswith(sys.base_prefix))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def leave_out_working_directory() -> None:
    """As `leave_out_the_project`, for this process and its working directory."""
    try:
        cwd = os.getcwd()  # noqa: PTH109 - as above
    except OSError:
        return  # nothing can be imported from a deleted folder
    leave_out_the_project(sys.path, cwd)
