"""Parses calls of `find` and `fd`, and tells which given paths they would act on. An unknown test counts as passed."""

import re
from fnmatch import fnmatchcase
from itertools import chain, pairwise
from posixpath import basename

import msgspec

from bradawl.safety.shell.argv import UNKNOWN_WORD, Argv, name_of, names
from bradawl.safety.shell.links import files_below, is_link, names_in
from bradawl.safety.shell.links import is_folder as leads_to_folder

_MOST_NAMES = 5_000
Truth = bool | None
"""None: unknown."""

_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_PRINTS = frozenset({"-print", "-print0", "-ls", "-printf", "-fprint", "-fprint0", "-fls", "-fprintf"})
_FILES = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})
_WITH_VALUE = names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type"
    " -xtype -size -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -samefile -user -group"
    " -uid -gid -perm -maxdepth -mindepth -links -inum -fstype -printf -fprint -fprint0 -fls -used"
    " -context"
)
_ALWAYS = frozenset({"-true", "-mount", "-xdev", "-daystart", "-depth", "-d", "-noleaf", "-follow", "-maxdepth"})
_END = "\0"


class Find(msgspec.Struct, frozen=True):
    """A parsed call of `find`."""

    starts: Argv
    words: Argv
    """The expression after the starting folders."""

    @property
    def outputs(self) -> Argv:
        """Files that it writes to."""
        return tuple(after for word, after in pairwise(self.words) if word in _FILES)

    @property
    def deletes(self) -> bool:
        """Whether it contains `-delete`."""
        return "-delete" in self.words

    @property
    def started(self) -> tuple[Argv, ...]:
        """The commands that it starts, with `{}` among their words."""
        found: list[Argv] = []
        current: list[str] | None = None
        for word in self.words:
            if current is not None and (word == ";" or (word == "+" and current[-1:] == ["{}"])):
                found.append(tuple(current))
                current = None
            elif current is not None:
                current.append(word)
            elif word in _EXECS:
                current = []
        return (*found, tuple(current)) if current else tuple(found)

    def acts_on(self, start: str, path: str, written: str) -> frozenset[str]:
        """What may be done to a path at or below `start`: `print`, `delete`, `exec`. Both paths are absolute.

        `written` is the starting folder as the command line gives it.
        """
        parts = [part for part in path[len(start.rstrip("/")) :].split("/") if part]
        above = [start, *(f"{start.rstrip('/')}/{'/'.join(parts[:count])}" for count in range(1, len(parts)))]
        for depth, folder in enumerate(above[: len(parts)]):
            if _Expression(self.words, _printed(written, start, folder), depth, is_folder=True).prunes:
                return frozenset()
        is_folder = leads_to_folder(path) and not is_link(path)
        is_full = is_folder and next(names_in(path), None) is not None
        name = _printed(written, start, path)
        return _Expression(self.words, name, len(parts), is_folder=is_folder, is_full=is_full).reached


def _printed(written: str, start: str, path: str) -> str:
    """The path as `find` prints it, which is also what `-path` is compared with."""
    rest = path[len(start.rstrip("/")) :].lstrip("/")
    return f"{written.rstrip('/') or '/'}/{rest}".replace("//", "/") if rest else written


def find_of(argv: Argv) -> Find:
    """Parse a call of `find`."""
    place = 1
    while place < len(argv) and (argv[place] in ("-H", "-L", "-P") or re.match(r"-[DO]", argv[place])):
        place += 2 if argv[place] == "-D" else 1
    first = place
    while place < len(argv) and not (argv[place][:1] == "-" or argv[place] in ("(", "!", "\\(", ",")):
        place += 1
    return Find(argv[first:place] or (".",), argv[place:])


class _Expression:
    """Evaluates an expression for one path. An unknown test may be true or false."""

    def __init__(self, words: Argv, path: str, depth: int, *, is_folder: bool, is_full: bool = True) -> None:
        self._holds_something = is_full
        self.reached: frozenset[str] = frozenset()
        self.prunes = False
        self._words = (*words, _END)
        self._place = 0
        self._path = path
        self._is_folder = is_folder
        self._is_out = _is_out(words, depth)
        self._live: Truth = not self._is_out
        has_actions = any(word in _EXECS or word == "-delete" or word in _PRINTS for word in words)
        while self._word != _END:
            place = self._place
            result = self._either()
            if not has_actions and result is not False and not self._is_out:
                self.reached = frozenset({"print"})
            if self._place == place or self._word == ")":
                self._place += 1
        if not words and not self._is_out:
            self.reached = frozenset({"print"})

    @property
    def _word(self) -> str:
        return self._words[self._place]

    def _next(self) -> str:
        word = self._word
        self._place += word != _END
        return word

    def _either(self) -> Truth:
        outer = self._live
        result = self._all()
        while self._word in ("-o", "-or", ","):
            is_list = self._next() == ","
            self._live = outer if is_list else _and(outer, _not(result))
            other = self._all()
            result = other if is_list else _or(result, other)
        self._live = outer
        return result

    def _all(self) -> Truth:
        outer, result = self._live, True
        found: Truth = result
        while self._word not in (_END, "-o", "-or", ",", ")", "\\)"):
            if self._word in ("-a", "-and"):
                self._next()
                continue
            found = _and(found, self._one())
            self._live = _and(outer, found)
        self._live = outer
        return found

    def _one(self) -> Truth:
        word = self._next()
        if word in ("!", "-not"):
            # An action after a negation is performed like any other.
            return _not(self._one())
        if word in ("(", "\\("):
            result = self._either()
            self._next()
            return result
        return self._action(word) if word in _EXECS or word in _PRINTS or word == "-delete" else self._test(word)

    def _action(self, word: str) -> Truth:
        if self._live is not False:
            kind = "print" if word in _PRINTS else "exec" if word in _EXECS else "delete"
            self.reached |= {kind}
        if word in _EXECS:
            while self._word not in (_END, ";") and not (self._word == "+" and self._words[self._place - 1] == "{}"):
                self._next()
            self._next()
            return None
        for _ in range({"-fprintf": 2, "-printf": 1, "-fprint": 1, "-fprint0": 1, "-fls": 1}.get(word, 0)):
            self._next()
        return True

    def _test(self, word: str) -> Truth:
        value = self._next() if word in _WITH_VALUE or word.startswith("-newer") else ""
        if word in _ALWAYS or word == "-mindepth":
            return True
        match word:
            case "-name" | "-iname":
                return _matches(basename(self._path.rstrip("/")), value, any_case=word[1] == "i")
            case "-path" | "-ipath" | "-wholename" | "-iwholename":
                return _matches(self._path, value, any_case=word[1] == "i")
            case "-type" | "-xtype" if value:
                return self._is_folder if value == "d" else _file_type(value, is_folder=self._is_folder)
            case "-prune":
                self.prunes = self.prunes or self._live is True
                return True
            case "-false":
                return False
            case "-empty" if self._is_folder and self._holds_something:
                return False
            case _:
                return None


def _file_type(value: str, *, is_folder: bool) -> Truth:
    if "d" in value:
        return None
    return not is_folder if "f" in value else None


def _is_out(words: Argv, depth: int) -> bool:
    """Whether `-mindepth` or `-maxdepth` excludes this depth."""
    for word, after in pairwise(words):
        if after.isdecimal() and (
            (word == "-maxdepth" and depth > int(after)) or (word == "-mindepth" and depth < int(after))
        ):
            return True
    return False


def _matches(text: str, pattern: str, *, any_case: bool) -> Truth:
    if any(mark in part for part in (pattern, text) for mark in ("$", "\\")):
        return None
    return fnmatchcase(text.lower(), pattern.lower()) if any_case else fnmatchcase(text, pattern)


def _and(one: Truth, other: Truth) -> Truth:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _or(one: Truth, other: Truth) -> Truth:
    return _not(_and(_not(one), _not(other)))


def _not(one: Truth) -> Truth:
    return None if one is None else not one


# ------------------------------------------------------------------ fd


class Fd(msgspec.Struct, frozen=True):
    """A parsed call of `fd`."""

    starts: Argv
    pattern: str
    started: tuple[Argv, ...]
    is_glob: bool
    shows_hidden: bool

    def acts_on(self, start: str, path: str, _: str) -> frozenset[str]:
        """As `Find.acts_on`."""
        return frozenset({"exec" if self.started else "print"}) if self._shows(start, path) else frozenset()

    def _shows(self, start: str, path: str) -> bool:
        rest = path[len(start.rstrip("/")) :]
        if not self.shows_hidden and "/." in rest:
            return False
        name = basename(path)
        if not self.pattern or self.pattern == ".":
            return True
        if self.is_glob:
            return fnmatchcase(name.lower(), self.pattern.lower())
        try:
            return re.search(self.pattern, name, re.IGNORECASE) is not None
        except re.error:
            return True


_FD_FOLDERS = frozenset({"--search-path", "--base-directory"})
_FD_VALUES = names(
    "-t -e -E -d -S -c -j -o --type --extension --exclude --max-depth --min-depth --exact-depth --size --color"
    " --threads --owner --changed-within --changed-before --newer --older --max-results --ignore-file --format"
    " --path-separator --batch-size"
)
_FD_EXECS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


def fd_of(argv: Argv) -> Fd:
    """Parse a call of `fd`."""
    plain: list[str] = []
    started: list[Argv] = []
    place, letters = 1, ""
    bases: list[str] = []
    while place < len(argv):
        word = argv[place]
        if word in _FD_EXECS:
            rest = argv[place + 1 :]
            started.append(rest[: rest.index(";")] if ";" in rest else rest)
            break
        option, equals, value = word.partition("=")
        if option in _FD_FOLDERS:
            bases.append(value if equals else argv[place + 1] if place + 1 < len(argv) else "")
        if word[:1] == "-" and len(word) > 1:
            letters += (
                word[1:] if word[1:2] != "-" else {"--hidden": "H", "--glob": "g", "--unrestricted": "u"}.get(word, "")
            )
            place += word in _FD_VALUES or word in _FD_FOLDERS
        else:
            plain.append(word)
        place += 1
    starts = (*plain[1:], *filter(None, bases)) or (".",)
    return Fd(starts, plain[0] if plain else "", tuple(started), "g" in letters, bool(set(letters) & {"H", "u"}))


def searched_folders(argv: Argv) -> Argv:
    """The starting folders of a call of `find` or `fd`, as the command line gives them."""
    return (find_of(argv) if is_find(argv) else fd_of(argv)).starts


def name_tests(argv: Argv) -> Argv:
    """The patterns of `-name` and `-iname` that every result matches; empty if that can't be determined."""
    if not is_find(argv) or any(word in ("-o", "-or", ",", "!", "-not", "(", ")") for word in argv):
        return ()
    return tuple(after for word, after in pairwise(argv) if word in ("-name", "-iname"))


def passes_name_tests(path: str, tests: Argv) -> bool:
    """Whether the name of a path, or of one below it, matches all patterns, without regard to case.

    True for a folder with more names than can be checked.
    """
    if not tests:
        return True
    globs = [test.replace(UNKNOWN_WORD, "*").lower() for test in tests]
    below = (basename(each) for each in files_below(path, _MOST_NAMES + 1))
    for count, name in enumerate(chain((basename(path),), below)):
        if count > _MOST_NAMES or all(fnmatchcase(name.lower(), glob) for glob in globs):
            return True
    return False


def is_find(argv: Argv) -> bool:
    """Whether the program is `find`, on macOS also `gfind`."""
    return name_of(argv) in ("find", "gfind")


def is_fd(argv: Argv) -> bool:
    """Whether the program is `fd`, which Debian calls `fdfind`."""
    return name_of(argv) in ("fd", "fdfind")
