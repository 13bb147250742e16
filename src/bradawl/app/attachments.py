"""Files, folders and images that a prompt names with `@`: they become parts of the prompt."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.attached_names import is_pasted, names_in, spellings_of
from bradawl.app.regular_files import read_regular
from bradawl.app.submission import Submission
from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import ToolError
from bradawl.core.messages import Image, Text
from bradawl.core.permissions import Allow, Policy, Request, decide
from bradawl.tools.reading.images import image_page, media_type_of

_TEXT_CHARACTERS: Final = 60_000
_FOLDER_ENTRIES: Final = 200
_IMAGE_BYTES: Final = 15_000_000
_MOST_BYTES: Final = 5_000_000

Listing = Callable[[str], Sequence[str]]
"""The paths below a folder, relative to it, without what ignore files leave out."""


class Attached(NamedTuple):
    """The prompt with its attachments, and what could not be attached."""

    parts: tuple[Text | Image, ...]
    """The user's text first. Further texts are material."""
    names: tuple[str, ...]
    """What is attached, as it is told to the user."""
    problems: tuple[str, ...]


def attach(sent: Submission, cwd: str, policy: Policy, listing: Listing) -> Attached:
    """Read what the user named with `@`, and the given image files. May block.

    A name without a file stays a word of the prompt. What a rule forbids to read is not attached, and neither is what
    was only pasted.
    """
    parts: list[Text | Image] = [Text(sent.text)]
    names, problems = [], []
    for named in (*_named_in(sent.typed, cwd), *(("", each) for each in sent.images)):
        path = os.path.realpath(named[1])
        if why := _pasted(named[0], sent) or _refusal(path, policy):
            problems.append(f"{path} is not attached: {why}")
            continue
        try:
            added, size = _parts_of(path, _told(path, cwd), listing)
        except (OSError, ValueError) as error:
            problems.append(f"{path} is not attached: {getattr(error, 'strerror', None) or error}")
            continue
        parts += added
        names.append(f"{_told(path, cwd)} ({size})")
    return Attached(tuple(parts), tuple(names), tuple(problems))


def _pasted(name: str, sent: Submission) -> str:
    if not is_pasted(name, sent.pasted_names):
        return ""
    return "its @ was pasted; type the @ yourself, or press Tab behind the name"


def _named_in(text: str, cwd: str) -> Iterator[tuple[str, str]]:
    """The names in a prompt of what exists, with the real path; each path once."""
    seen: set[str] = set()
    inside = os.path.realpath(cwd)
    for name in names_in(text):
        for spelled in spellings_of(name):
            named = os.path.normpath(os.path.join(inside, os.path.expanduser(spelled)))  # noqa: PTH111, PTH118 - a text
            try:
                path = os.path.realpath(named)
            except (OSError, ValueError):  # it changes just now, or can't be the name of a file
                continue
            if is_within(named, inside) and not is_within(path, inside):
                continue  # a link that leads out of the folder stays a word
            if os.path.exists(path):  # noqa: PTH110 - a text
                if path not in seen:
                    seen.add(path)
                    yield name, path
                break


def _told(path: str, cwd: str) -> str:
    return os.path.relpath(path, cwd) if path.startswith(cwd.rstrip("/") + "/") else path


def _refusal(path: str, policy: Policy) -> str:
    """Why a rule forbids to read the path; empty if none does."""
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    request = Request("read_file", digest, Effects(reads=(path,)), rule_names=("Read",), read_rules="exact")
    decision = decide(policy, request)
    return "" if isinstance(decision, Allow) else decision.reason


def _parts_of(path: str, told: str, listing: Listing) -> tuple[list[Text | Image], str]:
    """The parts for one path, and its size in words. Raises `OSError` and `ValueError`."""
    if Path(path).is_dir():
        entries = listing(path)
        more = f"\n... {len(entries) - _FOLDER_ENTRIES} more" if len(entries) > _FOLDER_ENTRIES else ""
        shown = "\n".join(entries[:_FOLDER_ENTRIES])
        return [Text(f"\n\n[The user attached the folder {told}, which holds:]\n{shown}{more}")], _count(
            entries, "entry"
        )
    if not Path(path).is_file():
        raise ValueError("it is no regular file")
    data = _read(path)
    if media_type := media_type_of(data):
        try:
            return [Text("\n\n[The user attached an image:]"), *image_page(data, media_type, told).parts], "image"
        except ToolError as error:
            raise ValueError(str(error)) from error
    if b"\0" in data[:8_000]:
        raise ValueError("it is no text and no image; name it without @, and say what is to be done with it")
    text = data.decode("utf-8", "replace")
    lines = text.splitlines()
    head = f"[The user attached {told}, {len(lines)} lines:]"
    if len(text) > _TEXT_CHARACTERS:
        text = text[:_TEXT_CHARACTERS].rpartition("\n")[0]
        head = f"[The user attached {told}; these are its first {text.count(chr(10)) + 1} of {len(lines)} lines:]"
    return [Text(f"\n\n{head}\n{text}")], _count(lines, "line")


def _read(path: str) -> bytes:
    data = read_regular(path, _IMAGE_BYTES + 1)
    if len(data) > _IMAGE_BYTES or (len(data) > _MOST_BYTES and not media_type_of(data)):
        raise ValueError(f"it is too large ({len(data):,} bytes or more); name it without @, so that parts are read")
    return data


def _count(items: Sequence[str], noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{len(items):,} {noun if len(items) == 1 else plural}"
