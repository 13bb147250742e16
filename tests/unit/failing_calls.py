"""Calls of the system that fail for one path."""

import os
from collections.abc import Callable
from pathlib import Path


def failing(call: Callable[..., object], path: Path, number: int) -> Callable[..., object]:
    """The call, which raises `OSError` with this number for the path."""

    def fail(*arguments: object, **options: object) -> object:
        if arguments and str(arguments[0]) == str(path):
            raise OSError(number, os.strerror(number), str(path))
        return call(*arguments, **options)

    return fail
