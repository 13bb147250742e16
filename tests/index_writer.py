"""Writes an index of git as git itself would not.

Also a program: `index_writer.py [--version=4] FOLDER NAME=CONTENT...`.
"""

import hashlib
import os
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

Item = tuple[bytes, int, str]
"""Name, mode and hash in hexadecimal."""


def index_bytes(items: Iterable[Item], version: int = 2, tail: bytes = b"", *, is_sorted: bool = True) -> bytes:
    """An index with these entries; `tail` are its extensions."""
    ordered = sorted(items) if is_sorted else list(items)
    body, before = b"DIRC" + struct.pack(">II", version, len(ordered)), b""
    length = len(bytes.fromhex(ordered[0][2])) if ordered else 20
    for name, mode, content in ordered:
        entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(content)
        entry += struct.pack(">H", min(len(name), 0xFFF))
        if version == 4:
            common = next(
                (at for at, pair in enumerate(zip(before, name, strict=False)) if len(set(pair)) > 1),
                min(len(before), len(name)),
            )
            entry += number(len(before) - common) + name[common:] + b"\0"
            before = name
        else:
            entry += name
            entry += bytes(8 - len(entry) % 8)
        body += entry
    body += tail
    return body + (hashlib.sha256 if length == 32 else hashlib.sha1)(body).digest()


def number(value: int) -> bytes:
    """A number of variable length, as in version 4."""
    made = [value & 127]
    while value := value >> 7:
        value -= 1
        made.append(128 | (value & 127))
    return bytes(reversed(made))


def git(folder: str, *words: str, text: bytes = b"") -> bytes:
    """The output of git in a folder."""
    return subprocess.run(["git", "-C", folder, *words], input=text, capture_output=True, check=True).stdout


def items_of(folder: str) -> list[Item]:
    """The entries of the index that git uses in a folder."""
    found: list[Item] = []
    for line in git(folder, "ls-files", "-s", "-z").split(b"\0")[:-1]:
        about, name = line.split(b"\t", 1)
        mode, content, _ = about.split()
        found.append((name, int(mode, 8), content.decode()))
    return found


def add_entries(folder: str, pairs: Iterable[tuple[bytes, bytes]], version: int = 2, mode: int = 0o100755) -> None:
    """Replace the index that git uses in a folder by one with further entries: names and contents."""
    items = items_of(folder)
    for name, content in pairs:
        items.append((name, mode, git(folder, "hash-object", "-w", "--stdin", text=content).decode().strip()))
    path = Path(folder, os.fsdecode(git(folder, "rev-parse", "--git-path", "index").strip()))
    made = path.with_name("index.made")
    made.write_bytes(index_bytes(items, version))
    made.replace(path)


if __name__ == "__main__":
    numbers = [int(word.partition("=")[2]) for word in sys.argv if word.startswith("--version=")]
    folder, *given = [word for word in sys.argv[1:] if not word.startswith("--version=")]
    parts = [os.fsencode(word).partition(b"=") for word in given]
    add_entries(folder, [(name, content) for name, _, content in parts], *numbers)
