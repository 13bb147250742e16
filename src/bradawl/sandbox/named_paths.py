"""Finds the paths below `/tmp` that a prompt names."""

import re
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Final

from bradawl.sandbox.path_translation import TEMPORARY

_TMP: Final = "/tmp/"  # noqa: S108 - as people write it
_PLAIN: Final = re.compile(r"""(?<![\w/.~\\$}-])(?:file://)?(/tmp/[^\s"'`<>|*?\[\x00-\x1f\x7f]+)(?![*?\[])""")
_QUOTED: Final = re.compile(r"""(["'`])(/tmp/[^"'`\n\x00-\x1f\x7f]+)\1""")
_PUNCTUATION: Final = ".,;:!?)]}>\u00bb\u201d\u2019\u2026"
_PLACE: Final = re.compile(r"(?::\d+){1,2}\Z")
"""Line and column behind a path."""
MOST_NAMED: Final = 1_000
"""Paths of one text that are taken into account."""
_LONGEST: Final = 1_000
_LONGEST_NAME: Final = 255
"""Bytes of one name in a path, on Linux and macOS."""


def named_in_tmp(text: str) -> tuple[tuple[str, ...], ...]:
    """For each path below `/tmp` that the text names, its possible readings, the most likely one first.

    They are in the order of the text, and one more than `MOST_NAMED` if there are too many.
    A full stop, a bracket or a line number at the end may belong to the sentence. Paths with `..` are left out.
    """
    if _TMP not in text:
        return ()
    found = dict.fromkeys(readings for raw in _raw(text) if (readings := _readings(raw)))
    return tuple(islice(found, MOST_NAMED + 1))


def _raw(text: str) -> Iterator[str]:
    quoted = ((match.start(2), match[2]) for match in _QUOTED.finditer(text))
    plain = ((match.start(1), match[1]) for match in _PLAIN.finditer(text))
    return (raw for _, raw in merge(quoted, plain, key=lambda found: found[0]))


def _readings(raw: str) -> tuple[str, ...]:
    plain = raw.rstrip(_PUNCTUATION)
    readings = (_PLACE.sub("", plain), plain, raw)
    return tuple(dict.fromkeys(each for name in readings if (each := _normal(name))))


def _normal(name: str) -> str:
    """The path with single slashes in the real folder; empty if it can't be one."""
    parts = [part for part in name.removeprefix(_TMP).split("/") if part not in ("", ".")]
    if not parts or ".." in parts or len(name) > _LONGEST or not name.isprintable():
        return ""
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        return ""
    return "/".join((TEMPORARY, *parts))
