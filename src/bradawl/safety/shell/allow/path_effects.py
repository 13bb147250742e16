"""Records which paths a shell command reads and writes, from its operands."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Literal

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.errors import UnsupportedSyntax
from bradawl.safety.shell.path_rules import PathRules

Resolve = Callable[[str, str], str]
Entries = Callable[[str], Mapping[str, bool] | None]

_MOST_FOLDERS = 40
_MOST_NAMES = 2_000
_SPECIAL = ("/dev", "/proc", "/sys")
"""Folders in which a name depends on the process, or stands for a device."""
NULL_DEVICE = "/dev/null"


class FilesystemView(msgspec.Struct, frozen=True):
    """How the analysis sees the file system, and what it knows about the machine."""

    resolve: Resolve
    """Resolves (path, cwd) to an absolute path without symbolic links; the last part need not exist."""
    entries: Entries
    """Lists the names in a folder, True for symbolic links; None if it is no folder."""
    home: str
    git_is_safe: bool = False
    """Git's configuration starts no program in this repository, and git runs with `GIT_OPTIONAL_LOCKS=0`."""
    start: str = ""
    """The working directory in which the line begins, resolved."""
    secrets: Callable[[str], Iterable[str]] = lambda _: ()
    """Lists files with keys below a folder that no sandbox hides. May raise `UnsupportedSyntax`."""
    is_unignored: Callable[[str], bool] = lambda _: False
    """Whether ripgrep searches a hidden file because an ignore file re-includes it."""
    path_rules: PathRules | None = None
    """The user's rules about paths; None if there are none."""
    git_reads: tuple[str, ...] = ()
    """Paths that every git command reads besides the repository's data and the working tree."""


class RecordedEffects:
    """The effects of a line, collected command by command."""

    def __init__(self) -> None:
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.redirects: dict[str, None] = {}
        """The subset of `writes` that the line's own redirects open."""
        self.session: dict[str, None] = {}
        self.links_unknown: dict[str, bool] = {}
        """Paths that earlier commands filled, below which links are unknown; True if the path itself may be a link."""


class PathRecorder:
    """Records the effects of one command in one working directory. Its methods raise `UnsupportedSyntax`."""

    def __init__(self, filesystem: FilesystemView, recorded: RecordedEffects, cwd: str, *, is_alone: bool) -> None:
        """`cwd` is resolved. `is_alone` is False in a pipeline, whose commands run at the same time."""
        self.filesystem = filesystem
        self.cwd = cwd
        self.links_unknown: dict[str, bool] = {}
        """As `RecordedEffects.links_unknown`, for the commands after this one."""
        self._recorded = recorded
        self._is_alone = is_alone

    # -------------------------------------------------------------- declaring

    def read(self, word: Word, *, lists_folders: bool = False) -> None:
        """Record a read of a file, or of a folder with everything below it. `-` is the standard input.

        `lists_folders`: the program also reads the contents of folders that a pattern matches.
        """
        if word.is_glob:
            self._read_matches(word.text, lists_folders=lists_folders)
        elif word.text != "-":
            self.read_path(word.text)

    def read_path(self, text: str) -> str:
        """As `read`, for a literal path. Returns the real path."""
        place = self.real_path(text)
        if place != NULL_DEVICE:
            self._recorded.reads[place] = None
        return place

    def read_with_links(self, word: Word) -> None:
        """As `read`, for a program that follows the symbolic links directly in a folder."""
        if word.text == "-":
            return
        if word.is_glob:
            raise UnsupportedSyntax
        place = self.read_path(word.text)
        for name in self._links(place):
            self.read_path(f"{place}/{name}")

    def record_contents_below(
        self, words: Iterable[Word], *, hidden: bool, unignores: Callable[[str], bool] | None = None
    ) -> None:
        """Record that the contents of all files below these folders, or below the working directory, are shown.

        `hidden`: also of dotfiles; else only of dotfiles that `unignores` or an ignore file re-includes.
        """
        words = [word for word in words if word.text != "-"]
        found = [self._expand(word.text) if word.is_glob else self.real_path(word.text) for word in words] or [self.cwd]
        for each in found:
            for top in [each] if isinstance(each, str) else each[2]:
                self._record_rule_paths("read", top)
            top = each if isinstance(each, str) else each[0]
            for path in self.filesystem.secrets(top):
                is_plain = hidden or "/." not in path[len(top) :]
                if is_plain or (unignores and unignores(path)) or self.filesystem.is_unignored(path):
                    self._recorded.reads[path] = None

    def record_copied(self, word: Word) -> None:
        """Record a file, or a folder with everything below it, that gets a copy or another name."""
        if self.filesystem.path_rules is None or word.text == "-":
            return
        for top in self._expand(word.text)[2] if word.is_glob else self.entry(word.text):
            if self.filesystem.path_rules.matches("read", top):
                self._recorded.reads[top] = None
            self._record_rule_paths("read", top)

    def _record_rule_paths(self, on: Literal["read", "write"], top: str) -> None:
        """Record the paths at or below `top` that a rule matches."""
        if self.filesystem.path_rules:
            recorded = self._recorded.reads if on == "read" else self._recorded.writes
            recorded |= dict.fromkeys(self.filesystem.path_rules.below(on, top))

    def write(self, word: Word) -> None:
        """Record a write to a file, through links, or to a folder with everything below it."""
        if word.is_glob:
            self._write_matches(word.text)
        elif (place := self.real_path(word.text)) != NULL_DEVICE:
            self._recorded.writes[place] = None

    def redirect(self, word: Word) -> None:
        """Record a file that bash opens for writing."""
        self.write(word)
        if (place := self.real_path(word.text)) != NULL_DEVICE:
            self._recorded.redirects[place] = None

    def write_path(self, place: str) -> None:
        """Record a write to a resolved path."""
        if place == NULL_DEVICE:
            raise UnsupportedSyntax
        self._recorded.writes[place] = None

    def remove(self, word: Word) -> None:
        """Record the removal of a name; a link is removed, not its target."""
        if word.is_glob:
            folder, _, matches = self._expand(word.text)
            self._recorded.writes[folder] = None
            for each in matches if self.filesystem.path_rules else ():
                self._record_written(each)
            return
        entry, place = self.entry(word.text)
        if entry == NULL_DEVICE:
            raise UnsupportedSyntax
        self._recorded.writes |= {entry: None, place: None}
        self._record_rule_paths("write", entry)
        if entry != place:
            self.mark_links_unknown(entry, is_link=True)

    def _record_written(self, path: str) -> None:
        if self.filesystem.path_rules and self.filesystem.path_rules.matches("write", path):
            self._recorded.writes[path] = None
        self._record_rule_paths("write", path)

    def mark_links_unknown(self, entry: str, *, is_link: bool) -> None:
        """Treat links at or below `entry` as unknown in later commands. Raises in a pipeline, whose commands run
        together.
        """
        if not self._is_alone:
            raise UnsupportedSyntax
        self.links_unknown[entry] = self.links_unknown.get(entry, False) or is_link

    # -------------------------------------------------------------- places

    def real_path(self, text: str) -> str:
        """The real path of `text`."""
        path = self._absolute(text)
        place = self.filesystem.resolve(path, self.cwd)
        self._check_place(path, place)
        return place

    def entry(self, text: str) -> tuple[str, str]:
        """The path of a name in its real folder, and the real path; they differ if the name is a symbolic link."""
        place = self.real_path(text)
        parent, _, name = self._absolute(text).rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return place, place
        folder = self.real_path(parent or "/")
        return f"{folder.rstrip('/')}/{name}", place

    def is_folder(self, place: str) -> bool:
        """Whether the path was a folder before the line began."""
        return self.filesystem.entries(place) is not None

    def names(self, place: str) -> dict[str, bool]:
        """Names that a folder may have by now, True for symbolic links. Removed names may be among them."""
        names = dict(self.filesystem.entries(place) or {})
        if len(names) > _MOST_NAMES:
            raise UnsupportedSyntax
        for written in self._recorded.writes:
            if is_within(place, written):
                raise UnsupportedSyntax
            if is_within(written, place):
                names.setdefault(written[len(place.rstrip("/")) + 1 :].partition("/")[0], False)
        if any(_overlap(entry, place) for entry in self._recorded.links_unknown):
            raise UnsupportedSyntax
        return names

    def is_new(self, entry: str) -> bool:
        """Whether nothing existed at `entry` when the line began, so that it contains no links."""
        folder, _, name = entry.rpartition("/")
        names = self.filesystem.entries(folder or "/") or {}
        if len(names) > _MOST_NAMES or any(_overlap(one, entry) for one in self._recorded.links_unknown):
            raise UnsupportedSyntax
        return name.isascii() and name.casefold() not in map(str.casefold, names)

    def _absolute(self, text: str) -> str:
        if not text:
            raise UnsupportedSyntax
        return text if text.startswith("/") else f"{self.cwd.rstrip('/')}/{text}"

    def _check_place(self, path: str, place: str) -> None:
        """Reject special files, and paths that earlier commands may have redirected with links."""
        if path == NULL_DEVICE:
            return
        flat = normpath("/" + path.lstrip("/"))
        if any(is_within(one, special) for one in (flat, place) for special in _SPECIAL):
            raise UnsupportedSyntax
        if not self._recorded.links_unknown:
            return
        if ".." in path.split("/"):
            raise UnsupportedSyntax
        if not path.isascii():
            raise UnsupportedSyntax  # some file systems treat different Unicode spellings as one name
        for one in (flat, place):
            for links_unknown, is_link in self._recorded.links_unknown.items():
                if is_within(one.casefold(), links_unknown.casefold()) and (is_link or one != links_unknown):
                    raise UnsupportedSyntax

    # -------------------------------------------------------------- patterns

    def _links(self, folder: str) -> list[str]:
        return [name for name, is_link in self.names(folder).items() if is_link]

    def _read_matches(self, pattern: str, *, lists_folders: bool) -> None:
        folder, links, matches = self._expand(pattern)
        self._recorded.reads[folder] = None
        self._recorded.reads |= dict.fromkeys(links)
        if self.filesystem.path_rules:
            named = [path for path in matches if self.filesystem.path_rules.matches("read", path)]
            self._recorded.reads |= dict.fromkeys(p for p in named if lists_folders or not self.is_folder(p))

    def _write_matches(self, pattern: str) -> None:
        folder, links, matches = self._expand(pattern)
        self._recorded.writes[folder] = None
        self._recorded.writes |= dict.fromkeys(links)
        if self.filesystem.path_rules:
            named = (path for path in matches if self.filesystem.path_rules.matches("write", path))
            self._recorded.writes |= dict.fromkeys(named)

    def _expand(self, pattern: str) -> tuple[str, list[str], list[str]]:
        """Expand a pattern: the folder above all matches; link targets and secret files among the matches; the other
        matches.

        `.env` is always among the secret files: a pattern such as `.e*` is meant to match it.
        """
        parts = self._absolute(pattern).split("/")
        first = next(index for index, part in enumerate(parts) if _is_pattern(part))
        top = self.real_path("/".join(parts[:first]) or "/")
        rest = [part for part in parts[first:] if part]
        if ".." in rest or "." in rest:
            raise UnsupportedSyntax
        # A name that begins with a dash would become an option. Only a pattern that begins with `*` or `?` can match
        # one.
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

        # Matches more than bash does, whatever the locale counts as one character.
        matches = re.compile(re.sub(r"(?:\\\*|\\\?)+", ".*", re.escape(part)), re.DOTALL).fullmatch
        if len(folders) > _MOST_FOLDERS:
            raise UnsupportedSyntax
        found: list[str] = []
        for folder in folders:
            for name, is_link in self.names(folder).items():
                if not matches(name):
                    continue
                if (may_begin and name.startswith("-")) or (is_link and not is_last):
                    raise UnsupportedSyntax
                path = f"{folder.rstrip('/')}/{name}"
                if is_link:
                    links.append(self.real_path(path))
                    continue
                found.append(path)
                if is_last and (part[0] == "." or (name[0] != "." and may_hold_secrets(name))):
                    links.append(path)
        return found


def _is_pattern(part: str) -> bool:
    return "*" in part or "?" in part


def _overlap(one: str, other: str) -> bool:
    return is_within(one, other) or is_within(other, one)
