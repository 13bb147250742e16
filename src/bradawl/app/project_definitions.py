"""Finds the places in a project that a text names, so that the model need not search. Bounded in time."""

import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from time import monotonic

import msgspec

from bradawl.app.ignored_names import bytes_of
from bradawl.app.project_survey import joined, survey_of
from bradawl.tools.outlines.mentions import names_in
from bradawl.tools.outlines.symbol import Symbol, enclosing
from bradawl.tools.outlines.symbols import symbols_in
from bradawl.tools.searching.relevance import kind_rank

_MOST_ENTRIES = 5_000
_LARGEST_BYTES = 1_000_000
_LARGEST_PARSED = 400_000
"""Bytes of a Python file in which the ends of definitions are searched, which can't be interrupted."""
_MOST_NAMES = 40
"""Names of a text that are looked up, the first ones; a pasted log has hundreds."""
_MOST_OF_NAME = 4
"""A name with more definitions than that says too little."""
_MOST_USING = 5
"""The same for definitions that use a name."""
_MOST_SHOWN = 8
_MOST_USES = 12
"""Uses of a name that is defined nowhere, such as an attribute."""
_MOST_READ = 10
"""Definitions of one name that are looked at."""
_LONGEST_NAME = 60
_SUFFIXES = frozenset(
    [
        "py",
        "pyi",
        "pyw",
        "js",
        "jsx",
        "mjs",
        "cjs",
        "ts",
        "tsx",
        "mts",
        "cts",
        "go",
        "rs",
        "java",
        "kt",
        "swift",
        "scala",
        "c",
        "h",
        "cc",
        "cpp",
        "cxx",
        "hh",
        "hpp",
        "cs",
        "rb",
        "php",
        "lua",
        "dart",
        "ex",
        "exs",
    ]
)
_PYTHON = frozenset({"py", "pyi", "pyw"})


class Place(msgspec.Struct, frozen=True):
    """Where a name is defined or used. Lines count from 1."""

    path: str
    """Relative to the project's folder."""
    name: str
    """The definition, with the names of the definitions around it where they are known."""
    first: int
    last: int
    """The first line again if the end is not known."""
    uses: str = ""
    """The name that the definition uses, if it is not itself the one that is named. Then `name` may be empty."""


def places_named(root: str, text: str, end: float, is_refused: Callable[[str], bool] = lambda _: False) -> list[Place]:
    """Definitions of the names that a text uses, in the order of the text; few or none. Of a name that is defined
    nowhere, the definitions that use it.

    Searches files at `root` that were written here and are no tests, until the clock `monotonic` shows `end`.
    `is_refused` says which absolute paths must not be read.
    """
    wanted = list(dict.fromkeys(_looked_up(text)))[:_MOST_NAMES]
    if not wanted or (survey := survey_of(root, end, most=_MOST_ENTRIES)) is None:
        return []
    search = _Search(wanted)
    for path in _sources(joined(folder, name) for folder, one in survey.folders.items() for name in one.files):
        if monotonic() > end:
            return []  # what is found so far may be the wrong half
        place = f"{root.rstrip('/')}/{path}"
        data = bytes_of(place, _LARGEST_BYTES, follows_links=False)
        if len(data) < _LARGEST_BYTES and search.speaks_of(data) and not is_refused(place):
            search.add(data, path)
    return search.places()


def _looked_up(text: str) -> Iterator[str]:
    for name in names_in(text):
        last = _last_part(name)
        if 2 < len(last) <= _LONGEST_NAME and last.isascii() and not (last.startswith("__") and last.endswith("__")):
            yield name


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _suffix(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def _sources(paths: Iterable[str]) -> list[str]:
    return sorted(path for path in paths if _suffix(path) in _SUFFIXES and kind_rank(path) == 0)


class _Search:
    """Collects the places of names, file by file."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self._names = {_last_part(name) for name in wanted}
        names = "|".join(map(re.escape, sorted(self._names)))
        self._word = re.compile(rf"(?<![\w$])(?:{names})(?![\w$])".encode())
        self._any_case = re.compile(rf"(?<![\w$])(?:{names})(?![\w$])".encode(), re.IGNORECASE)
        self._head = _head_of(names)
        self._similar: dict[str, list[tuple[_File, int]]] = {}
        """Definitions whose names differ in capitals: `tables` may mean the class `Tables`."""
        self._defined: dict[str, list[tuple[_File, int]]] = {}
        self._used: dict[str, list[tuple[_File, int]]] = {}

    def speaks_of(self, data: bytes) -> bool:
        """Whether a file has one of the names in it."""
        return self._any_case.search(data) is not None

    def add(self, data: bytes, path: str) -> None:
        """Note the places in a file."""
        file = _File(data, path)
        heads = [(match[match.lastgroup or 0].decode(), match.start()) for match in self._head.finditer(data)]
        for found, start in heads:
            if found in self._names:
                self._defined.setdefault(found, []).append((file, start))
            elif found.lower() in self._names:
                self._similar.setdefault(found.lower(), []).append((file, start))
        for match in self._word.finditer(data):
            uses = self._used.setdefault(match[0].decode(), [])
            if len(uses) <= _MOST_USES:
                uses.append((file, match.start()))

    def places(self) -> list[Place]:
        """The places of each name, unless there are many. `queue.remove` means that of `Queue` if there is one."""
        told: dict[Place, None] = {}
        mentioned = {part for name in self._wanted for part in name.split(".")}
        for name in self._wanted:
            last = _last_part(name)
            if defined := self._defined.get(last) or self._similar.get(last):
                found = [file.definition(last, start) for file, start in defined[:_MOST_READ]]
                candidates = [one for one in found if one is not None]
                exact = [one for one in candidates if "." in name and one.name.endswith(name)]
                inside = [one for one in candidates if "." in one.name and one.name.split(".")[-2] in mentioned]
                outside = [one for one in candidates if "." not in one.name]
                best, most = _last_of_each(exact or inside or outside or candidates), _MOST_OF_NAME
            elif _is_rare(last) and len(used := self._used.get(last, [])) <= _MOST_USES:
                best = list(dict.fromkeys(file.use(last, start) for file, start in used))
                most = _MOST_USING
            else:
                continue
            if len(best) <= most:
                told |= dict.fromkeys(best)
        return list(told)[:_MOST_SHOWN]


class _File:
    """A file in which names were found."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path = data, path
        self._is_python = _suffix(path) in _PYTHON

    @cached_property
    def _symbols(self) -> tuple[Symbol, ...]:
        return (symbols_in(self._data, self._path) or ()) if len(self._data) <= _LARGEST_PARSED else ()

    def _line(self, start: int) -> int:
        return self._data.count(b"\n", 0, start) + 1

    def definition(self, name: str, start: int) -> Place | None:
        """The definition of a name whose head seems to begin at byte `start`."""
        line = self._line(start)
        if not self._is_python:
            return Place(self._path, name, line, line)
        one = enclosing(self._symbols, line)
        if one is None or _last_part(one.name).lower() != name.lower():
            return None
        return Place(self._path, one.name, one.first, one.last)

    def use(self, name: str, start: int) -> Place:
        """The definition around byte `start`."""
        line = self._line(start)
        one = enclosing(self._symbols, line)
        return (
            Place(self._path, one.name, one.first, one.last, name) if one else Place(self._path, "", line, line, name)
        )


def _last_of_each(places: Sequence[Place]) -> list[Place]:
    """Of definitions with one name in one file, such as overloads, only the last, which has the body."""
    return list({(one.path, one.name): one for one in places}.values())


def _is_rare(name: str) -> bool:
    """Whether a name does not look like a word of the language, which code uses by chance."""
    return not hasattr(builtins, name) and (
        "_" in name.strip("_") or not (name.islower() or name.isupper() or name.istitle())
    )


def _head_of(names: str) -> re.Pattern[bytes]:
    """Matches the head of a definition of one of the names, in any of the languages."""
    name = rf"(?P<{{}}>(?i:{names}))(?![\w$])"
    modifiers = (
        r"(?:(?:export|default|pub(?:\([\w: ]+\))?|public|private|protected|internal|static|async|get|set)[ \t]+)*"
    )
    keyword = (
        r"(?:def|class|function\*?|func(?:[ \t]*\([^()\n]*\))?|fn|struct|enum|trait|interface|type|module|fun|object)"
        r"[ \t]+"
    )
    method = r"\((?:[^;\n]{0,300}\)[^;=\n]{0,100}\{|\{)[ \t\r]*$"  # bounded: else a long line takes quadratic time
    assigned = r"[ \t]*[=:][ \t]*(?:async[ \t]+)?(?:function\b|\([^()\n]*\)[ \t]*=>|\w+[ \t]*=>|class\b)"
    heads = (
        rf"{modifiers}{keyword}(?:self\.)?{name.format('declared')}",
        rf"{modifiers}{name.format('method')}{method}",
        rf"(?:(?:const|let|var)[ \t]+|[\w$.]+\.)?{name.format('assigned')}{assigned}",
    )
    return re.compile(rf"^[ \t]*+(?:export[ \t]+)?(?:{'|'.join(heads)})".encode(), re.MULTILINE)
