"""Recognizes names that git refuses to add to an index, on any file system.

The rules are those of git's `verify_path` with `core.protectHFS` and `core.protectNTFS`.
"""

import re
from collections.abc import Callable
from typing import Final

FOLDER: Final = 0o040000
"""The mode of a folder in a sparse index. Only its name ends with a slash."""
LINK: Final = 0o120000
_TYPE: Final = 0o170000

_AS_SLASH: Final = bytes.maketrans(b"\0", b"/")
_PARTS: Final = (b"//", b"/./", b"/../", b"~", b"gitmod")
_IGNORED: Final = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")
"""Characters that macOS ignores in names."""
_DOT_GIT: Final = re.compile(rb"\.git(?:[ .]*[/\\:]|[\x80-\xff])")
_MALFORMED: Final = frozenset("\ufffd\ufffe\uffff")
"""Where git ends the comparison of a name: bytes that are not UTF-8, and two characters that are none."""
_SUSPECT: Final = re.compile(
    rb"(?:^|/)(?:/|\.?\.?(?:/|$))|/$|\.git(?:[ .]*(?:$|[/\\:])|[\x80-\xff])|~|gitmod|\xe2[\x80\x81]|\xef\xbb\xbf"
)
"""Any name that is refused matches, in lower case; the name of a link also."""
_NTFS_DOT_GIT: Final = re.compile(rb"(?:\.git|git~1)[ .]*(?::.*)?", re.DOTALL)
_NTFS_GITMODULES: Final = re.compile(
    rb"(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[1-9]\d|gi7e~[1-9]\d\d|gi7~[1-9]\d{3}|gi~[1-9]\d{4}"
    rb"|g~[1-9]\d{5}|~[1-9]\d{6})[ .]*(?::.*)?",
    re.DOTALL,
)


def refused_names(names: list[bytes], mode_of: Callable[[int], int]) -> tuple[bytes, ...]:
    """The names that git would not add, sorted. `mode_of` returns the mode of the entry with a given number."""
    text = b"/%b/" % b"\0".join(names).lower().translate(_AS_SLASH)
    is_plain = text.isascii() or not _IGNORED.search(text)
    if is_plain and not any(part in text for part in _PARTS) and not _DOT_GIT.search(text):
        return ()
    return tuple(
        sorted(
            {
                name
                for number, name in enumerate(names)
                if _SUSPECT.search(name.lower()) and is_refused(name, mode_of(number))
            }
        )
    )


def is_refused(name: bytes, mode: int) -> bool:
    """Whether git would not add an entry with this name and mode."""
    parts = name.lower().split(b"/")
    if mode & _TYPE == FOLDER and not parts[-1] and len(parts) > 1:
        parts.pop()
    if any(_is_refused_part(part) for part in parts):
        return True
    is_link = mode & _TYPE == LINK
    return is_link and (
        any(_is_hfs(part, b".gitmodules") for part in parts)
        or any(_NTFS_GITMODULES.fullmatch(piece) for piece in parts[-1].split(b"\\"))
    )


def _is_refused_part(part: bytes) -> bool:
    return (
        part in (b"", b".", b"..")
        or _is_hfs(part, b".git")
        or any(_NTFS_DOT_GIT.fullmatch(piece) for piece in part.split(b"\\"))
    )


def _is_hfs(part: bytes, name: bytes) -> bool:
    """Whether macOS may take a part for `name`. Git compares up to the first malformed character."""
    plain = _IGNORED.sub(b"", part)
    if not plain.startswith(name):
        return False
    rest = plain[len(name) :]
    return not rest or rest.decode(errors="replace")[0] in _MALFORMED
