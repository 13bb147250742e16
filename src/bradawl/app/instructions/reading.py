"""Reads instruction files and what they import. Nothing blocks, and every problem is a short line."""

import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.instructions.places import Place, Stamp, stamps_of
from bradawl.app.instructions.text import Source, named, source_of
from bradawl.app.settings.files import why_foreign
from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.trust.instructions_review import INSTRUCTIONS_LIMIT_BYTES, imports_in, leads_out
from bradawl.workspace.safe_open import folder_of, open_file

_DEEPEST: Final = 5
"""Imports of imports that are followed."""
_MOST_FILES: Final = 50
_MOST_IMPORTS: Final = 100
"""Imports of one file that are looked at."""
_MOST_PROBLEMS: Final = 10
_LONGEST_NAME: Final = 200
_PUNCTUATION: Final = ".,;:!?"
"""Characters at the end of an import that may belong to the sentence."""
_TEXT_ENDINGS: Final = (".md", ".mdx", ".markdown", ".txt", ".rst")
"""An `@word` with another ending need not be meant as an import: if there is no such file, nothing is said."""

IsRefused = Callable[[str], bool]
"""Whether rules refuse to read, or ask about reading, an absolute path."""


class Unreadable(Exception):
    """A file can't be used; the text says why, for a line that names the file."""


class Reading(NamedTuple):
    """The instruction files of some places."""

    sources: list[Source]
    """In the order of the places, each file before what it imports."""
    problems: list[str]
    """A line for each file that is left out or damaged."""
    unread: set[str]
    """Paths, as in tags, of files that are there and not in `sources`: unreadable, or with a text that is there."""
    stamps: dict[str, Stamp]
    """Of all files that were read or could be."""


def read_places(places: Iterable[Place], is_refused: IsRefused, home: str = "", own: str = "") -> Reading:
    """Read the files of some places, the outermost first. The same content appears once.

    `home` is for imports of the user's own file that begin with `~/`; such a file may import from the folder `own`
    whatever the rules say.
    """
    reader = _Reader(is_refused, home, own)
    for place in places:
        reader.read_place(place)
    return reader.reading


class _Reader:
    def __init__(self, is_refused: IsRefused, home: str, own: str) -> None:
        self._is_refused, self._home, self._own = is_refused, home, own
        self.reading = Reading([], [], set(), {})
        self._seen: set[str] = set()
        """Real paths, and kinds with versions, that are in the reading."""

    def read_place(self, place: Place) -> None:
        """Add the first file with text, and what it imports."""
        self.reading.stamps.update(stamps_of(place.paths))
        for path in place.paths:
            if os.path.lexists(path) and self._add(path, place):
                return

    def _add(self, path: str, place: Place, depth: int = 0, mentioned: str = "") -> bool:
        """Whether the file has text. `mentioned` is the import that names it."""
        try:
            real = self._real(path, place)
            text, digest, found = _text_of(real)
            changed_ns = max(found.st_ctime_ns, Path(path).lstat().st_ctime_ns)
        except (Unreadable, OSError, ValueError) as error:
            self._leave_out(path, mentioned, error)
            return False
        if real in self._seen:
            self.reading.unread.add(named(path))
            return True
        if not text.strip():
            return False
        self._seen.add(real)
        foreign = why_foreign(found) if place.is_trusted and not place.root else ""
        is_trusted = place.is_trusted and not foreign
        if is_trusted != place.is_trusted:
            self._say(f"{named(path)} {foreign}, so it is material and not instructions; make it your own")
        source = source_of(path, text, found.st_size, is_trusted=is_trusted)
        source = source._replace(sha256=digest, changed_ns=changed_ns)
        if "\ufffd" in text:
            self._say(f"{source.path} is not UTF-8 everywhere: characters in it are replaced")
        if (mark := f"{source.kind} {source.version}") not in self._seen:
            self._seen.add(mark)
            self.reading.sources.append(source)
        else:
            self.reading.unread.add(source.path)
        self._add_imports(text, real, place._replace(is_trusted=is_trusted), depth + 1)
        return True

    def _add_imports(self, text: str, importer: str, place: Place, depth: int) -> None:
        for number, name in enumerate(imports_in(text) if "@" in text else ()):
            mentioned = f"{_in_line(f'@{name}'.rstrip(_PUNCTUATION))} in {named(importer)}"
            if number >= _MOST_IMPORTS or len(self.reading.sources) >= _MOST_FILES:
                self._say(f"{named(importer)} imports more files than are followed")
                return
            path = _imported(name, importer, place, self._home)
            if path is None:
                if _is_meant(name) or name[0] in "~$" or os.path.lexists(name):
                    self._say(f"{mentioned}: it leads out of the project")
            elif not os.path.lexists(path):
                if _is_meant(path):
                    self._say(f"{mentioned}: there is no such file")
            elif depth > _DEEPEST:
                self._say(f"{mentioned}: imports are followed {_DEEPEST} deep")
            elif not Path(path).is_dir():
                self.reading.stamps.update(stamps_of((path,)))
                self._add(path, place, depth, mentioned)

    def _real(self, path: str, place: Place) -> str:
        """The path without links. Raises `Unreadable` where it leads out of the project or must not be read."""
        real = os.path.realpath(path)
        if place.root and not is_within(real, place.root):
            raise Unreadable("it is a link out of the project")
        is_own = not place.root and self._own and is_within(real, self._own)  # bradawl's folder is asked about
        if not is_own and (self._is_refused(real) or self._is_refused(path)):
            raise Unreadable("a rule refuses to read it unasked, for example because it may hold keys")
        return real

    def _leave_out(self, path: str, mentioned: str, error: Exception) -> None:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        self._say(f"{mentioned or named(path)}: {_in_line(why)}")
        self.reading.unread.add(named(path))

    def _say(self, problem: str) -> None:
        problems = self.reading.problems
        if len(problems) < _MOST_PROBLEMS and problem not in problems:
            problems.append(problem)


def _is_meant(name: str) -> bool:
    """Whether a word with an at sign is certainly meant as an import."""
    return name.rstrip(_PUNCTUATION).lower().endswith(_TEXT_ENDINGS)


def _imported(name: str, importer: str, place: Place, home: str) -> str | None:
    """The absolute path of an import; None if it leads out of the project."""
    folder = importer.rpartition("/")[0]
    if place.root and leads_out(name, depth=folder[len(place.root.rstrip("/")) :].count("/")):
        return None
    if not place.root and name.startswith("~/") and home:
        name = f"{home}{name[1:]}"
    found = os.path.normpath(Path(folder, name))
    return found if os.path.lexists(found) else found.rstrip(_PUNCTUATION)


def _text_of(path: str) -> tuple[str, str, os.stat_result]:
    """The text of a file, the digest of its bytes if all were read, and its status.

    Raises `Unreadable`, `OSError` or `ValueError`. Never blocks on pipes and devices.
    """
    data, found = _beginning(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
    if "\0" in text:
        raise Unreadable("it is not a text")
    if len(data) > INSTRUCTIONS_LIMIT_BYTES:
        text = text.rstrip("\ufffd")  # a character that was cut
    return text, sha256(data).hexdigest() if len(data) == found.st_size else "", found


def _beginning(path: str) -> tuple[bytes, os.stat_result]:
    try:
        with folder_of(path) as (folder, name):
            opened = open_file(folder, name, path)
    except ToolError as error:
        raise Unreadable("it is not a regular file") from error
    try:
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(INSTRUCTIONS_LIMIT_BYTES + 1), os.fstat(opened)
    finally:
        os.close(opened)


def _in_line(text: str) -> str:
    return named(text)[:_LONGEST_NAME]
