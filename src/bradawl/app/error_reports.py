"""Reports of errors that are defects: the traceback goes to a file, the user gets one line that names it."""

from pathlib import Path


def report(error: BaseException, home: str) -> str:
    """Write the traceback to a file below `home`, and return a message with the innermost error and the file."""
    inner = innermost(error)
    what = f"{type(inner).__name__}: {inner}"
    try:
        return f"{what} (details in {write_report(home, error)})"
    except OSError:
        return f"{what} (details could not be written)"


def innermost(error: BaseException) -> BaseException:
    """The error inside the exception groups that task groups wrap around a single one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def write_report(home: str, error: BaseException) -> str:
    """Write a traceback to a new file below `home`, readable by its owner alone. Raises `OSError`."""
    import os
    import time
    import traceback

    folder = Path(home, "errors")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{time.time_ns() // 1_000_000}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text.encode("utf-8", "replace").decode())
    return str(path)
