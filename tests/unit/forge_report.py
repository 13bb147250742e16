"""Tries in every known way to forge a shell's report: `forge_report.py PID-OF-THE-SHELL [-] [WORD...]`."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

shell = sys.argv[1]


def forged(mark: bytes) -> bytes:
    """A false report: another folder and another PATH."""
    text = b"\0%s\0" % mark
    return text + b'declare -x BASE="there"\n' + text + b'0\0\0\x000 \0/usr\n\0declare -x PATH="/evil"\n' + text


def texts() -> Iterator[bytes]:
    """Readable data that may contain the key of the report."""
    for pid in ("self", shell):
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                yield Path(f"/proc/{pid}/{name}").read_bytes()
    yield from (each.encode() for each in sys.argv[1:])
    if "-" in sys.argv:
        yield sys.stdin.buffer.read()
    with contextlib.suppress(OSError):
        yield Path(os.environ.get("BASH_ENV", "/missing")).read_bytes()


def memory() -> Iterator[bytes]:
    """The writable memory of the shell."""
    with contextlib.suppress(OSError), Path(f"/proc/{shell}/mem").open("rb", 0) as file:
        for line in Path(f"/proc/{shell}/maps").read_text().splitlines():
            if "rw-p" in line:
                begin, end = (int(each, 16) for each in line.split()[0].split("-"))
                with contextlib.suppress(OSError, OverflowError, ValueError):
                    file.seek(begin)
                    yield file.read(end - begin)


def sinks() -> Iterator[int]:
    """Descriptors of this process, and pipes and sockets of the shell, opened again."""
    yield from range(3, 300)
    with contextlib.suppress(OSError):
        for place in Path(f"/proc/{shell}/fd").iterdir():
            with contextlib.suppress(OSError):
                if int(place.name) > 2 and str(place.readlink()).startswith(("pipe:", "socket:")):
                    yield os.open(place, os.O_WRONLY | os.O_NONBLOCK)


if __name__ == "__main__":
    found = {word for text in (*texts(), *memory()) for word in re.findall(rb"[0-9a-f.]{16,80}", text)}
    marks = found | {word[-size:] for word in found for size in (16, 32, 64)}
    for sink in sinks():
        with contextlib.suppress(OSError):
            for mark in sorted(marks)[:1000]:
                os.write(sink, forged(mark))
