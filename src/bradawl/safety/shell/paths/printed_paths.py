"""Which paths the listing commands of a line (`ls`, `find`, `git ls-files`, `grep -l`) print for other commands."""

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from posixpath import basename, dirname, join, relpath

from bradawl.core.effects import is_within
from bradawl.safety.git.small_files import text_in
from bradawl.safety.git.tracked_files import repository_root, tracks
from bradawl.safety.ignore_files import is_ignored_by_git
from bradawl.safety.shell.arguments import arguments
from bradawl.safety.shell.argv import Argv, name_of
from bradawl.safety.shell.glob_expansion import expanded, is_pattern
from bradawl.safety.shell.links import Links, files_below, is_folder
from bradawl.safety.shell.paths.find_arguments import fd_of, find_of, is_fd, is_find
from bradawl.safety.shell.paths.git_changes import git_call

PathTest = Callable[[str], bool]
_MOST_FILES = 2_000
_SEARCHES = frozenset({"grep", "egrep", "fgrep", "rgrep", "ggrep", "zgrep", "rg", "ag", "ack", "ugrep"})
_GIT_VALUES = "diff-filter format pretty since until author max-count exclude-from exclude"


class Listings:
    """The listing commands of a line, and the paths that each of them prints."""

    def __init__(
        self, argvs: tuple[Argv, ...], bases: tuple[str, ...], links: Links, *, only_files: bool = False
    ) -> None:
        """`only_files`: ignore folders that `ls` prints, since the commands that take the names read only files."""
        self._only_files = only_files
        self._bases = bases
        self._links = links
        self._found: list[tuple[str, PathTest]] = []
        for argv in argvs:
            self._add(argv)

    def starts(self) -> tuple[str, ...]:
        """The folders that contain everything the commands print."""
        return tuple(start for start, _ in self._found)

    def prints(self, path: str) -> bool:
        """Whether one of the commands may print this path, or one below it."""
        return any(is_within(path, start) and prints(path) for start, prints in self._found)

    def _add(self, argv: Argv) -> None:
        name = name_of(argv)
        if is_find(argv) or is_fd(argv):
            self._add_find(argv)
        elif name == "git":
            self._add_git(argv)
        elif name in ("ls", "dir", "vdir"):
            self._add_ls(argv)
        elif name in ("tree", "locate", "plocate") or (name == "du" and arguments(argv).has("a", "all")):
            self._add_everything([word for word in argv[1:] if word[:1] != "-"])
        elif name in _SEARCHES:
            self._add_search(name, argv)

    def _expand(self, words: list[str] | Argv) -> Iterator[str]:
        for word in words:
            for base in self._bases:
                for path in expanded(join(base, word.replace("$", "*")), self._links):
                    yield from self._links.real_paths(path)

    def _add_everything(self, words: list[str]) -> None:
        self._found += [(start, lambda _: True) for start in self._expand(words or ["."])]

    def _add_find(self, argv: Argv) -> None:
        call = find_of(argv) if is_find(argv) else fd_of(argv)
        for word in call.starts:
            for start in self._expand([word]):
                self._found.append((start, _is_acted_on(call.acts_on, start, word)))

    def _add_ls(self, argv: Argv) -> None:
        call = arguments(argv, "ITw", "ignore hide width tabsize")
        lists_hidden = call.has("aAf", "all", "almost-all")
        words = call.operands or (".",)
        if call.has("R", "recursive"):
            self._add_everything(list(words))
            return
        for word in words:
            for place in self._expand([word]):
                if not call.has("d", "directory") and is_folder(place):
                    self._found.append(
                        (place, _lists_child(place, lists_hidden=lists_hidden, only_files=self._only_files))
                    )
                elif is_pattern(word) or "/" in word:
                    self._found.append((place, _equals(place)))

    # -------------------------------------------------------------- searches

    def _add_search(self, name: str, argv: Argv) -> None:
        call = arguments(argv, "efABCmgtTEd", "regexp file glob type include exclude exclude-dir max-count")
        if not call.has("lL", "files-with-matches", "files-without-match", "files"):
            return
        is_rg = name in ("rg", "ag", "ack")
        patterns = call.values("e", "regexp")
        words = call.operands
        if not patterns and not call.has("", "files"):
            patterns, words = words[:1], words[1:]
        is_any = call.has("vLf", "invert-match", "files-without-match", "files", "file")
        holds = _contains_pattern(() if is_any else patterns, call.has("i", "ignore-case"), call.values("", "include"))
        is_deep = is_rg or name == "rgrep" or call.has("rRd", "recursive", "dereference-recursive", "directories")
        for start in self._expand(words or (".",)):
            if not is_folder(start):
                self._found.append((start, holds))
            elif is_deep:
                hidden = not is_rg or call.has("u.", "hidden", "unrestricted")
                self._found.append((start, _shows_visible(start, holds, hidden=hidden)))

    # -------------------------------------------------------------- git

    def _add_git(self, argv: Argv) -> None:
        call = git_call(argv, {})
        words = call.words[1:]
        names = any(word.startswith(("--name-only", "--name-status", "--raw")) for word in words)
        match call.sub:
            case "ls-files":
                options = arguments(call.words, "xX", _GIT_VALUES)
                untracked = options.has("o", "others")
                tracked = not untracked or options.has("cmsu", "cached", "modified", "stage")
                ignored = untracked and (options.has("i", "ignored") or not options.has("", "exclude-standard"))
                self._add_tracked(options.operands, tracked=tracked, untracked=untracked, ignored=ignored)
            case "ls-tree" | "diff-tree" | "show" | "log" | "diff" | "whatchanged" | "diff-index" | "diff-files" if (
                names or call.sub == "ls-tree"
            ):
                paths = words[words.index("--") + 1 :] if "--" in words else ()
                existing = tuple(word for word in words if word[:1] != "-" and self._is_there(word))
                self._add_tracked(paths or existing, tracked=True, untracked=False, ignored=False)
            case "status":
                options = arguments(call.words, "u", "ignored untracked-files")
                ignored = any(word.startswith("--ignored") for word in words)
                self._add_tracked(options.operands, tracked=True, untracked=True, ignored=ignored)
            case "grep" if any(re.match(r"-[a-zA-Z]*[lL]|--(?:files|name)", word) for word in words):
                self._add_tracked((), tracked=True, untracked="--untracked" in words, ignored=False)
            case "clean":
                self._add_tracked((), tracked=False, untracked=True, ignored=True)
            case _:
                pass

    def _is_there(self, word: str) -> bool:
        return any(os.path.lexists(join(base, word)) for base in self._bases)

    def _add_tracked(self, pathspecs: Argv, *, tracked: bool, untracked: bool, ignored: bool) -> None:
        for base in self._bases:
            if repository := repository_root(base):
                in_git = _GitListing(repository, tracked=tracked, untracked=untracked, ignored=ignored)
                self._found.append((repository, _and(in_git, _matches_pathspecs(pathspecs, base, repository))))


class _GitListing:
    def __init__(self, repository: str, *, tracked: bool, untracked: bool, ignored: bool) -> None:
        self._repository = repository
        self._tracked, self._untracked, self._ignored = tracked, untracked, ignored

    def __call__(self, path: str) -> bool:
        if is_within(path, join(self._repository, ".git")):
            return False
        if tracks(path):
            return self._tracked
        if not self._untracked:
            return False
        return self._ignored or not is_ignored_by_git(path)


def _and(one: PathTest, other: PathTest) -> PathTest:
    return lambda path: one(path) and other(path)


def _is_acted_on(acts_on: Callable[[str, str, str], frozenset[str]], start: str, word: str) -> PathTest:
    return lambda path: any(acts_on(start, each, word) for each in (path, *files_below(path, _MOST_FILES)))


def _lists_child(folder: str, *, lists_hidden: bool, only_files: bool) -> PathTest:
    def prints(path: str) -> bool:
        if only_files and path != folder and is_folder(path):
            return False
        is_direct = dirname(path) == folder or path == folder
        return is_direct and (lists_hidden or not basename(path).startswith("."))

    return prints


def _equals(place: str) -> PathTest:
    return lambda path: path == place


def _shows_visible(start: str, holds: PathTest, *, hidden: bool) -> PathTest:
    return lambda path: (hidden or "/." not in path[len(start) :]) and holds(path)


def _contains_pattern(patterns: Argv, any_case: bool, includes: Argv) -> PathTest:
    """Tests whether a file contains one of the patterns; True where that can't be determined."""

    def prints(path: str) -> bool:
        if is_folder(path):
            return any(prints(each) for each in files_below(path, _MOST_FILES) if not is_folder(each))
        if includes and not any(fnmatchcase(basename(path), glob) for glob in includes):
            return False
        return not patterns or any(_pattern_occurs(path, pattern, any_case) for pattern in patterns)

    return prints


def _pattern_occurs(path: str, pattern: str, any_case: bool) -> bool:
    text = text_in(path)
    if text is None or "$" in pattern or "\n" in pattern:
        return True
    flags = re.IGNORECASE if any_case else 0
    for expression in (pattern, re.escape(pattern), re.sub(r"\\([(){}|+?])", r"\1", pattern)):
        try:
            if re.search(expression, text, flags | re.MULTILINE):
                return True
        except (re.error, RecursionError):
            return True
    return False


def _matches_pathspecs(pathspecs: Argv, base: str, repository: str) -> PathTest:
    """Tests whether pathspecs, relative to `base`, may match a path."""
    specs = [re.sub(r"\A:(?:\([^)]*\)|/)", "", spec) for spec in pathspecs]

    def matches(path: str) -> bool:
        names = (relpath(path, base), relpath(path, repository))
        return any(_matches_spec(name, spec) for name in names for spec in specs)

    def prints(path: str) -> bool:
        if not specs or any(spec in ("", ".") or "$" in spec or spec[:2] in (":!", ":^") for spec in specs):
            return True
        return matches(path) or any(map(matches, files_below(path, _MOST_FILES)))

    return prints


def _matches_spec(name: str, spec: str) -> bool:
    plain = spec.rstrip("/").removeprefix("./")
    return is_within(f"/{name}", f"/{plain}") or fnmatchcase(name, plain) or fnmatchcase(name, f"{plain}/*")
