"""Extracts the text of a PDF. Runs as a separate program.

A separate process, because an untrusted PDF may need any amount of time and memory: the process has limits on both and
can be killed. It can start no program, open no socket and write no file. Arguments: the path, the number of the first
page, the greatest number of pages and of characters. Prints a JSON object: `total` pages, and `pages`, the text of
each. It must not import anything of bradawl: it is started without its folder on the path.
"""

import json
import logging
import os
import resource
import sys

import pypdf

_MEMORY_BYTES = 2 << 30
_PROCESSOR_S = 60
_ENCRYPTED = 3  # exit code
_REFUSED = (
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "pty.",
    "socket.",
    "ctypes.",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook that refuses to start programs: the library starts a decoder for some images if it is installed."""
    is_writing = event == "open" and isinstance(flags := arguments[2], int) and flags & _WRITING
    if is_writing or event.startswith(_REFUSED):
        raise RuntimeError("it needs another program to be decoded")


def main(arguments: list[str]) -> int:
    """Read the pages and print them; returns the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.addaudithook(_refuse)
    logging.disable()  # its warnings about the file would look like errors
    path, first, limit, most = arguments[0], *map(int, arguments[1:])
    reader = pypdf.PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        return _ENCRYPTED
    total = len(reader.pages)
    pages: list[str] = []
    for number in range(first - 1, min(first - 1 + limit, total)):
        pages.append(reader.pages[number].extract_text()[: most + 1])
        most -= len(pages[-1])
        if most < 0:
            break
    sys.stdout.buffer.write(json.dumps({"total": total, "pages": pages}).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
