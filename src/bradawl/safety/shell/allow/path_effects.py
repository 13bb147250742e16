"""Where a shell command stands: turns its operands into the places it touches."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Literal

import msgspec

from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.errors import NotUnderstood
from bradawl.safety.shell.path_rules import RuledPaths

Resolve = Callable[[str, str], str]
Entries = Callable[[str], Mapping[str, bool] | None]

_MOST_FOLDERS = 40
_MOST_NAMES = 2_000
_SPECIAL = ("/dev", "/proc", "/sys")
"""Where names stand for something else: another one for each process, or a device."""
NOWHERE = "/dev/null"


class World(msgspec.Struct, frozen=True):
    """What is known of the machine."""

    resolve: Resolve
    """(path, cwd) to an absolute path without symlinks; the last part need not exist."""
    entries: Entries
    """A folder's names, with True for those that are symlinks; None if it is no folder that can be listed."""
    home: str
    git_is_safe: bool = False
    """The configuration of the repository starts no program, and git runs with `GIT_OPTIONAL_LOCKS=0`."""
    start: str = ""
    """The working directory in which the line begins, resolved."""
    secrets: Callable[[str], Iterable[str]] = lambda _: ()
    """Files with keys below a folder that nothing hides from programs. May raise `NotUnderstood`."""
    is_brought_back: Callable[[str], bool] = lambda _: False
    """Whether an ignore file may bring a file back that ripgrep passes over for a dot in its path."""
    ruled: RuledPaths | None = None
    """Rules that refuse paths or ask about them, where there are any."""
    git_reads: tuple[str, ...] = ()
    """What every command of git reads besides the repository's data and the working tree."""


class Touched:
    """What a line touches; filled while it is read."""

    def __init__(self) -> None:
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.redirects: dict[str, None] = {}
        """Of the writes those that the line does itself."""
        self.session: dict[str, None] = {}
        self.relinked: dict[str, bool] = {}
        """Places that earlier commands of the line filled, so that links in them aren't known; True if the place
        itself may be a link."""


class Scene:
    """One command at one working directory. Its methods raise `NotUnderstood`."""

    def __init__(self, world: World, touched: Touched, cwd: str, *, is_alone: bool) -> None:
        """`cwd` is resolved. `is_alone` is False in a pipeline, where others run at the same time."""
        self.world = world
        self.cwd = cwd
        self.relinked: dict[str, bool] = {}
        """What this command fills; counts for the commands after it."""
        self._touched = touched
        self._is_alone = is_alone

    # -------------------------------------------------------------- declaring

    def read(self, word: Word, *, lists_folders: bool = False) -> None:
        """A file, or a folder with all below it. `-` is the standard input.

        `lists_folders`: a folder that a pattern stands for is gone into.
        """
        if word.is_glob:
            self._read_matches(word.text, lists_folders=lists_folders)
        elif word.text != "-":
            self.read_path(word.text)

    def read_path(self, text: str) -> str:
        """As `read`, of a path taken literally; gives back the place."""
        place = self.place(text)
        if place != NOWHERE:
            self._touched.reads[place] = None
        return place

    def read_with_links(self, word: Word) -> None:
        """As `read`, for programs that follow the symlinks they find directly in a folder."""
        if word.text == "-":
            return
        if word.is_glob:
            raise NotUnderstood
        place = self.read_path(word.text)
        for name in self._links(place):
            self.read_path(f"{place}/{name}")

    def show_all_below(
        self, words: Iterable[Word], *, hidden: bool, brings_back: Callable[[str], bool] | None = None
    ) -> None:
        """The content of all files below these, or below the working directory.

        `hidden`: also of dotfiles; else of those only that `brings_back`, or an ignore file, speaks of.
        """
        words = [word for word in words if word.text != "-"]
        found = [self._expand(word.text) if word.is_glob else self.place(word.text) for word in words] or [self.cwd]
        for each in found:
            for top in [each] if isinstance(each, str) else each[2]:
                self._take_ruled("read", top)
            top = each if isinstance(each, str) else each[0]
            for path in self.world.secrets(top):
                is_plain = hidden or "/." not in path[len(top) :]
                if is_plain or (brings_back and brings_back(path)) or self.world.is_brought_back(path):
                    self._touched.reads[path] = None

    def give_away(self, word: Word) -> None:
        """A file, or a folder with all below it, that gets another name or a copy."""
        if self.world.ruled is None or word.text == "-":
            return
        for top in self._expand(word.text)[2] if word.is_glob else self.entry(word.text):
            if self.world.ruled.speaks("read", top):
                self._touched.reads[top] = None
            self._take_ruled("read", top)

    def _take_ruled(self, on: Literal["read", "write"], top: str) -> None:
        """Paths at or below a place that a rule speaks of."""
        if self.world.ruled:
            touched = self._touched.reads if on == "read" else self._touched.writes
            touched |= dict.fromkeys(self.world.ruled.below(on, top))

    def write(self, word: Word) -> None:
        """A file that is written through links, or a folder with all below it."""
        if word.is_glob:
            self._write_matches(word.text)
        elif (place := self.place(word.text)) != NOWHERE:
            self._touched.writes[place] = None

    def redirect(self, word: Word) -> None:
        """A file that bash opens for writing."""
        self.write(word)
        if (place := self.place(word.text)) != NOWHERE:
            self._touched.redirects[place] = None

    def write_path(self, place: str) -> None:
        """A place that is resolved already."""
        if place == NOWHERE:
            raise NotUnderstood
        self._touched.writes[place] = None

    def remove(self, word: Word) -> None:
        """A name that goes away, whatever it is the name of."""
        if word.is_glob:
            folder, _, matches = self._expand(word.text)
            self._touched.writes[folder] = None
            for each in matches if self.world.ruled else ():
                self._take_written(each)
            return
        entry, place = self.entry(word.text)
        if entry == NOWHERE:
            raise NotUnderstood
        self._touched.writes |= {entry: None, place: None}
        self._take_ruled("write", entry)
        if entry != place:
            self.relink(entry, is_link=True)

    def _take_written(self, path: str) -> None:
        if self.world.ruled and self.world.ruled.speaks("write", path):
            self._touched.writes[path] = None
        self._take_ruled("write", path)

    def relink(self, entry: str, *, is_link: bool) -> None:
        """From the next command on links at or below `entry` are not known. Not in a pipeline, where next is now."""
        if not self._is_alone:
            raise NotUnderstood
        self.relinked[entry] = self.relinked.get(entry, False) or is_link

    # -------------------------------------------------------------- places

    def place(self, text: str) -> str:
        """Where a path leads, links followed."""
        path = self._absolute(text)
        place = self.world.resolve(path, self.cwd)
        self._check_place(path, place)
        return place

    def entry(self, text: str) -> tuple[str, str]:
        """A name in its folder, and where the name leads; the same unless it is a symlink."""
        place = self.place(text)
        parent, _, name = self._absolute(text).rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return place, place
        folder = self.place(parent or "/")
        return f"{folder.rstrip('/')}/{name}", place

    def is_folder(self, place: str) -> bool:
        """Whether it was a folder before the line began."""
        return self.world.entries(place) is not None

    def names(self, place: str) -> dict[str, bool]:
        """What may stand in a folder by now, True for symlinks; what isn't there any more may be among it."""
        names = dict(self.world.entries(place) or {})
        if len(names) > _MOST_NAMES:
            raise NotUnderstood
        for written in self._touched.writes:
            if is_within(place, written):
                raise NotUnderstood
            if is_within(written, place):
                names.setdefault(written[len(place.rstrip("/")) + 1 :].partition("/")[0], False)
        if any(_overlap(entry, place) for entry in self._touched.relinked):
            raise NotUnderstood
        return names

    def is_new(self, entry: str) -> bool:
        """Whether nothing stood at `entry` when the line began, so that no old links can be in it."""
        folder, _, name = entry.rpartition("/")
        names = self.world.entries(folder or "/") or {}
        if len(names) > _MOST_NAMES or any(_overlap(one, entry) for one in self._touched.relinked):
            raise NotUnderstood
        return name.isascii() and name.casefold() not in map(str.casefold, names)

    def _absolute(self, text: str) -> str:
        if not text:
            raise NotUnderstood
        return text if text.startswith("/") else f"{self.cwd.rstrip('/')}/{text}"

    def _check_place(self, path: str, place: str) -> None:
        """Refuse what is no ordinary file or folder, and paths that earlier commands may have led elsewhere."""
        if path == NOWHERE:
            return
        flat = normpath("/" + path.lstrip("/"))
        if any(is_within(one, special) for one in (flat, place) for special in _SPECIAL):
            raise NotUnderstood
        if not self._touched.relinked:
            return
        if ".." in path.split("/"):
            raise NotUnderstood
        if not path.isascii():
            raise NotUnderstood  # some systems take different spellings for one name
        for one in (flat, place):
            for relinked, is_link in self._touched.relinked.items():
                if is_within(one.casefold(), relinked.casefold()) and (is_link or one != relinked):
                    raise NotUnderstood

    # -------------------------------------------------------------- patterns

    def _links(self, folder: str) -> list[str]:
        return [name for name, is_link in self.names(folder).items() if is_link]

    def _read_matches(self, pattern: str, *, lists_folders: bool) -> None:
        folder, links, matches = self._expand(pattern)
        self._touched.reads[folder] = None
        self._touched.reads |= dict.fromkeys(links)
        if self.world.ruled:
            named = [path for path in matches if self.world.ruled.speaks("read", path)]
            self._touched.reads |= dict.fromkeys(p for p in named if lists_folders or not self.is_folder(p))

    def _write_matches(self, pattern: str) -> None:
        folder, links, matches = self._expand(pattern)
        self._touched.writes[folder] = None
        self._touched.writes |= dict.fromkeys(links)
        if self.world.ruled:
            named = (path for path in matches if self.world.ruled.speaks("write", path))
            self._touched.writes |= dict.fromkeys(named)

    def _expand(self, pattern: str) -> tuple[str, list[str], list[str]]:
        """The folder below which all names lie that match; where those lead that are links, and those one asks about;
        and the names that match and are no links.

        `.env` is among them whether it is there or not: who writes `.e*` means it.
        """
        parts = self._absolute(pattern).split("/")
        first = next(index for index, part in enumerate(parts) if _is_pattern(part))
        top = self.place("/".join(parts[:first]) or "/")
        rest = [part for part in parts[first:] if part]
        if ".." in rest or "." in rest:
            raise NotUnderstood
        # A name that begins with a dash would be read as an option, so the pattern must begin with something else.
        may_begin = pattern[0] in "*?"
        folders, links = [top], []
        for index, part in enumerate(rest):
            is_last = index == len(rest) - 1
            if is_last and part[0] == "." and part[1:2] not in ("*", "?", ""):
                links += [f"{folder.rstrip('/')}/.env" for folder in folders if fnmatchcase(".env", part)]
            folders = self._matches(folders, part, links, is_last=is_last, may_begin=may_begin and index == 0)
        return top, links, folders

    def _matches(self, folders: list[str], part: str, links: list[str], *, is_last: bool, may_begin: bool) -> list[str]:
        from bradawl.safety.permissions.protected_paths import may_hold_secrets  # only patterns need it

        # A superset of what bash takes, whatever the locale counts as a character.
        matches = re.compile(re.sub(r"(?:\\\*|\\\?)+", ".*", re.escape(part)), re.DOTALL).fullmatch
        if len(folders) > _MOST_FOLDERS:
            raise NotUnderstood
        found: list[str] = []
        for folder in folders:
            for name, is_link in self.names(folder).items():
                if not matches(name):
                    continue
                if (may_begin and name.startswith("-")) or (is_link and not is_last):
                    raise NotUnderstood
                path = f"{folder.rstrip('/')}/{name}"
                if is_link:
                    links.append(self.place(path))
                    continue
                found.append(path)
                if is_last and (part[0] == "." or (name[0] != "." and may_hold_secrets(name))):
                    links.append(path)
        return found


def _is_pattern(part: str) -> bool:
    return "*" in part or "?" in part


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it, compared by component."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _overlap(one: str, other: str) -> bool:
    return is_within(one, other) or is_within(other, one)
