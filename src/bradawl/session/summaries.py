"""Reads what a list of sessions shows: the beginnings of their files. It loads no journal, so that shells may ask."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from bradawl.core.errors import SessionError
from bradawl.core.events import Envelope, PromptSubmitted
from bradawl.core.messages import text_of
from bradawl.session.encoding import Reader

HEAD_BYTES = 64 * 1024
"""Bytes of a file that are read for its summary."""
PROMPT = b'"type":"PromptSubmitted"'
"""Is in each line of a prompt."""
_PREVIEW_CHARS = 80
_TEXT_PART = rb'"type":"Text","text":("(?:[^"\\]|\\.)*)'


class SessionSummary(msgspec.Struct, frozen=True):
    """A session in a list of sessions."""

    id: str
    modified_s: float
    """Unix time of the last entry, in seconds."""
    size_bytes: int
    preview: str
    """The beginning of the first prompt, on one line, at most 80 characters; empty without a prompt."""


def project_folder(data_dir: Path, project_path: str) -> Path:
    """The folder for the sessions of a project, by its real path: readable, and unique to the project."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", project_path).strip("-.")[-60:].lstrip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(project_path)).hexdigest()
    return data_dir / "projects" / f"{name}-{digest[:8]}"


def latest_summaries(data_dir: str | Path, project_path: str | Path, most: int) -> Iterator[SessionSummary]:
    """The readable sessions of a project among its latest files, the last written first."""
    folder = project_folder(Path(data_dir), os.path.realpath(project_path))
    yield from summaries_of(islice(newest_first(folder / "sessions"), most))


def newest_first(sessions: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The session files in a folder with their status, the last written first."""
    found: list[tuple[Path, os.stat_result]] = []
    with suppress(OSError), os.scandir(sessions) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                    found.append((Path(entry.path), entry.stat()))
    found.sort(key=lambda item: (item[1].st_mtime_ns, item[0].name), reverse=True)
    return iter(found)


def summaries_of(files: Iterator[tuple[Path, os.stat_result]]) -> Iterator[SessionSummary]:
    """Summaries of the readable sessions among these files."""
    for path, stat in files:
        with suppress(OSError):
            head = head_of(path)
            if can_be_opened(head):
                yield SessionSummary(path.stem, stat.st_mtime, stat.st_size, preview_of(head))


def head_of(path: Path) -> bytes:
    """The beginning of a file. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def can_be_opened(head: bytes) -> bool:
    """True if a file with this beginning can be opened as a session."""
    first = head.partition(b"\n")[0]
    try:
        return bool(Reader().feed(first))
    except SessionError:
        return False


def preview_of(head: bytes) -> str:
    """The beginning of the first prompt in the beginning of a session's file; empty without one."""
    for line in head.split(b"\n"):
        if PROMPT in line:
            return _one_line(_prompt_text(line))
    return ""


def _prompt_text(line: bytes) -> str:
    with suppress(msgspec.DecodeError):
        event = msgspec.json.decode(line, type=Envelope).event
        return text_of(event.parts) if isinstance(event, PromptSubmitted) else ""
    # Longer than the bytes read, or not strict JSON: take the text as far as it goes.
    found = re.search(_TEXT_PART, line)
    if found is None:
        return ""
    with suppress(ValueError):
        return json.loads(found[1] + b'"')
    return ""


def _one_line(text: str) -> str:
    clean = "".join(char if char.isprintable() else " " for char in text[: 20 * _PREVIEW_CHARS])
    line = " ".join(clean.split())
    return line if len(line) <= _PREVIEW_CHARS else line[: _PREVIEW_CHARS - 1] + "…"
