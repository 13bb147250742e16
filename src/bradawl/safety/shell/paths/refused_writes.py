"""Finds protected paths that a line may write, delete or move, for lines that run in no sandbox.

Protected are the paths of the user's `Edit` rules, and those that no mode allows to change. Paths that a program
computes are not found.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename, dirname, join, normpath

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.shell.argv import SHELLS, UNKNOWN_WORD, Argv, name_of
from bradawl.safety.shell.created_links import links_of_line
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.scanner import ScanResult
from bradawl.safety.shell.deny.wrappers import started_by
from bradawl.safety.shell.errors import UnsupportedSyntax
from bradawl.safety.shell.glob_expansion import is_pattern
from bradawl.safety.shell.links import files_below, is_file, is_folder
from bradawl.safety.shell.path_rules import PathRules
from bradawl.safety.shell.paths.changed_operands import changes_of
from bradawl.safety.shell.paths.file_changes import NO_CHANGES, Changes, Copies
from bradawl.safety.shell.paths.find_arguments import fd_of, find_of, is_fd, is_find
from bradawl.safety.shell.paths.git_changes import git_call, git_changes, git_config_files, git_refusal
from bradawl.safety.shell.paths.operand_uses import passes_names_on, starts_from_input, with_unknown_words
from bradawl.safety.shell.paths.printed_paths import Listings
from bradawl.safety.shell.paths.refused_paths import RefusedPaths, too_many_paths
from bradawl.safety.shell.paths.write_checker import ProtectedPath, WriteChecker
from bradawl.safety.shell.paths.write_protection import WriteProtection

_MOST_COPIED = 2_000
_LITERAL = re.compile(r"[^\s'\"`$;|&<>(){},=@\\]+")
# Begins only where a word does: a search from each character of a long word would take quadratic time.
_EXTENDED = re.compile(r"(?<![^\s;|&<>'\"])[^\s;|&<>'\"]*[?*+@!]\([^()\s]*\)[^\s;|&<>'\"]*")
_VARIABLE = re.compile(r"\b(GIT_[A-Z_]+|EDITOR|VISUAL)=(\"[^\"]*\"|'[^']*'|[^\s;&|)]*)")
_CODE_CHANGES = re.compile(
    r"write|unlink|remove|rename|replace\(|rmtree|move|copy|link|truncate|touch|chmod|mkdir|dump|save|system|popen|Popen"
    r"|subprocess|run\(|call\(|exec|eval|open\s*\([^()]*,|Sync|FileUtils|IO\.|`|>"
)
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")


def refused_writes(
    text: str,
    argvs: Iterable[Argv],
    seen: ScanResult,
    cwd: str,
    protected_targets: ProtectedTargets,
    path_rules: PathRules | None,
) -> RefusedPaths:
    """Find the protected paths that a line may change. Never raises."""
    checker = WriteChecker(text, (cwd, *seen.folders), WriteProtection(protected_targets, path_rules))
    try:
        _RefusedWriteFinder(text, tuple(dict.fromkeys(argvs)), seen, checker).find()
    except ProtectedPath as reason:
        return RefusedPaths(tuple(checker.found), str(reason))
    except (UnsupportedSyntax, RecursionError):
        return RefusedPaths(tuple(checker.found), too_many_paths("write"))
    return RefusedPaths(tuple(checker.found))


class _RefusedWriteFinder:
    """Compares what the commands of a line change with the protected paths."""

    def __init__(self, text: str, argvs: tuple[Argv, ...], seen: ScanResult, checker: WriteChecker) -> None:
        self._text = text
        self._argvs = argvs
        self._seen = seen
        self._checker = checker

    def find(self) -> None:
        """Check all commands of the line. Raises `ProtectedPath`, `UnsupportedSyntax`."""
        variables = {name: value.strip("'\"") for name, value in _VARIABLE.findall(self._text)}
        started_by_find = self._started_by_find()
        calls = [(argv, self._changes_of(argv, variables)) for argv in self._argvs if argv not in started_by_find]
        changing = [(argv, changes) for argv, changes in calls if changes is not NO_CHANGES]
        finds = [argv for argv in self._argvs if is_find(argv) or is_fd(argv)]
        if not (changing or finds or self._seen.outputs or not self._seen.is_whole):
            return
        words = tuple(dict.fromkeys(word for argv in self._argvs for word in _entered_folders(argv)))
        self._checker.learn_folders(words)
        self._checker.links = links_of_line(self._argvs, tuple(self._checker.bases))
        self._checker.learn_folders(words)
        for target in self._seen.outputs:
            self._checker.check_file(target)
        for argv, changes in changing:
            self._check_changes(argv, changes)
        for argv in finds:
            self._check_find(argv, [changes for _, changes in changing])
        self._check_names_passed_on(changing)
        if changing:
            self._check_unread_text()
        packed = [each for _, changes in changing for each in changes.packed]
        for _, changes in changing:
            for copies in changes.copies:
                self._check_copies(copies, packed)

    def _started_by_find(self) -> frozenset[Argv]:
        """Commands started by `find`, which are checked together with its tests instead."""
        text = self._text.replace("{}", "").replace("\\", "")
        if any(mark in text for mark in ("$", "{", "./*", "`")):
            return frozenset()  # the same words may also come from elsewhere
        return frozenset(each for argv in self._argvs if is_find(argv) for each in started_by(argv, None).argvs)

    def _changes_of(self, argv: Argv, variables: Mapping[str, str]) -> Changes:
        if name_of(argv) != "git":
            return changes_of(argv)
        call = git_call(argv, variables)
        self._checker.raise_if(git_refusal(call, variables))
        files = git_config_files(call, variables)
        found = git_changes(call)
        return msgspec.structs.replace(found, files=(*found.files, *files)) if files else found

    # -------------------------------------------------------------- commands

    def _check_changes(self, argv: Argv, changes: Changes) -> None:
        for word in changes.files:
            self._checker.check_file(word)
        for word in changes.trees:
            if word != UNKNOWN_WORD:
                self._checker.check_tree(word, changes)
        for word in changes.maybe_changed:
            self._checker.check_word(word, descends=changes.is_whole_tree)
        for code in changes.texts:
            is_python = _PYTHON.fullmatch(name_of(argv)) is not None
            self._check_code(code or self._text, is_python=is_python and bool(code))
        if name_of(argv) in ("patch", "git") and "" in changes.texts:
            for word in (*self._seen.opened, *(word for each in self._argvs for word in each[1:])):
                self._checker.check_word(f"@{word}")

    def _check_code(self, code: str, *, is_python: bool) -> None:
        """Check string literals in code of another language, or file names in a patch."""
        changes = not is_python or _CODE_CHANGES.search(code) is not None
        if is_python and _only_reads(code):
            return
        for literal in dict.fromkeys(_LITERAL.findall(code)):
            for piece in dict.fromkeys((literal, re.sub(r"\A[abiwco]/", "", literal))):
                if "/" not in piece and "." not in piece:
                    continue
                for path in self._checker.paths(piece):
                    for place in self._checker.links.real_paths(path):
                        if changes:
                            self._checker.raise_if(self._checker.protected.write_refusal(place, is_device=False))
                        if self._checker.protected.has_rule(place):
                            self._checker.found[place] = None

    def _check_unread_text(self) -> None:
        """Check extended patterns, and all words of a text that the scanner has not read completely."""
        for word in _EXTENDED.findall(self._text):
            self._checker.check_file(word)
        if not self._seen.is_whole:
            for word in dict.fromkeys(re.sub(r"['\"\\]", "", self._text).split()):
                self._checker.check_word(word, descends=True)

    # -------------------------------------------------------------- copies

    def _check_copies(self, copies: Copies, packed: list[tuple[str, str]]) -> None:
        if not copies.target:
            return
        for target in list(self._checker.paths(copies.target)):
            self._checker.check_path(target)
            for source in copies.sources:
                if copies.is_archive:
                    self._check_unpacked(source, target, packed, has_target=copies.target not in (".", "./"))
                elif source not in (UNKNOWN_WORD, "{}"):
                    self._check_copy(source, target, copies)

    def _check_unpacked(self, archive: str, target: str, packed: list[tuple[str, str]], *, has_target: bool) -> None:
        paths = [] if archive == "-" else list(self._checker.paths(archive))
        for path in paths:
            if not self._is_created(path):
                for name in self._checker.protected.names_in_archive(path):
                    self._checker.check_path(join(target, name))
        if not packed and has_target and all(map(self._is_created, paths)):
            for place in self._checker.links.real_paths(target):  # the contents are unknown
                self._checker.found |= dict.fromkeys(self._checker.protected.rule_paths_below(place))
        if all(map(self._is_created, paths)):
            for folder, word in packed:
                for base in list(self._checker.paths(folder)):
                    self._check_tree_copy(join(base, word), join(target, word))
                    self._checker.check_path(join(target, word))

    def _check_copy(self, source: str, target: str, copies: Copies) -> None:
        for path in (*self._checker.paths(source), *self._created_paths(source)):
            name = basename(path if is_pattern(source) else source.rstrip("/"))
            is_merged = name in ("", ".", "..") or copies.is_contents
            fills_file = is_file(target)
            if not is_merged and not fills_file:
                self._checker.check_path(join(target, name))
            if copies.is_deep:
                self._check_tree_copy(path, target if is_merged else join(target, name))
                if not is_merged and not any(map(is_folder, self._checker.links.real_paths(target))):
                    self._check_tree_copy(path, target)

    def _created_paths(self, pattern: str) -> Iterator[str]:
        """Paths that match a pattern and that the line creates before it uses them."""
        folder = dirname(pattern)
        if not is_pattern(pattern) or is_pattern(folder):
            return
        for base in tuple(self._checker.bases):
            top = normpath(join(base, folder))
            for path in list(self._checker.touched):
                if path != top and is_within(path, top):
                    yield join(top, path[len(top) :].lstrip("/").partition("/")[0])

    def _check_tree_copy(self, source: str, goal: str) -> None:
        """Check a copied folder: every path below `source` gets the same name below `goal`."""
        for place in self._checker.links.real_paths(goal):
            for path in self._checker.protected.rule_paths_below(place):
                inner = path[len(place) :].lstrip("/")
                if self._is_created(source) or os.path.lexists(join(source, inner)):
                    self._checker.found[path] = None
            for each in files_below(source, _MOST_COPIED) if self._checker.protected.has_rules else ():
                copy = join(place, each[len(source) :].lstrip("/"))
                if self._checker.protected.has_rule(copy):
                    self._checker.found[copy] = None
            for inner in self._checker.protected.protected_names():
                path = join(place, inner)
                if os.path.lexists(path) and (os.path.lexists(join(source, inner)) or self._is_written_below(source)):
                    self._checker.raise_if(self._checker.protected.write_refusal(path))

    def _is_created(self, source: str) -> bool:
        """Whether the line creates this path, or writes below it."""
        return not os.path.lexists(source) or self._is_written_below(source)

    def _is_written_below(self, source: str) -> bool:
        start = normpath(source)
        return any(is_within(path, start) for path in self._checker.touched)

    # -------------------------------------------------------------- find, and names passed on

    def _check_find(self, argv: Argv, others: list[Changes]) -> None:
        call = find_of(argv) if is_find(argv) else fd_of(argv)
        for word in find_of(argv).outputs if is_find(argv) else ():
            self._checker.check_file(word)
        started = [self._changes_of_started(each, others) for each in call.started]
        deletes = is_find(argv) and find_of(argv).deletes
        changed = [changes for changes in started if changes is not None]
        if not deletes and not changed:
            return
        whole = any(changes.trees for changes in changed)
        for start in call.starts:
            for path in list(self._checker.paths(start)):
                for place in self._checker.links.real_paths(path):
                    for each in self._checker.protected.below(place, include_above=whole):
                        acts = call.acts_on(place, each.path, start)
                        if ("delete" in acts and deletes) or ("exec" in acts and changed):
                            self._checker.check_existing(each.protected)

    def _changes_of_started(self, argv: Argv, others: list[Changes]) -> Changes | None:
        """The changes that a command makes to the names it is given; None if it only reads them."""
        words = tuple(word.replace("{}", UNKNOWN_WORD) for word in argv)
        if not any(UNKNOWN_WORD in word for word in words):
            words = (*words, UNKNOWN_WORD)
        name = name_of(words)
        if name in SHELLS:
            return next((changes for changes in others if _takes_unknown(changes)), None)
        inner = [each for each in started_by(words, None).argvs if each]
        found = [changes_of(words) if name != "git" else git_changes(git_call(words, {})), *map(changes_of, inner)]
        return next((changes for changes in found if _takes_unknown(changes)), None)

    def _check_names_passed_on(self, changing: list[tuple[Argv, Changes]]) -> None:
        """Check names that one command prints and another one changes."""
        if not passes_names_on(self._text, self._argvs):
            return
        others = [changes for _, changes in changing]
        from_input = [self._changes_from_input(argv, others) for argv in self._argvs if starts_from_input(argv)]
        takers = [*filter(None, from_input), *(changes for changes in others if _takes_unknown(changes))]
        if not takers and not any(UNKNOWN_WORD in target for target in self._seen.outputs):
            return
        for literal in dict.fromkeys(_LITERAL.findall(self._text)):
            if "/" in literal or "." in literal:
                for path in self._checker.paths(literal):
                    if os.path.lexists(path):
                        self._checker.check_existing(self._checker.links.real_paths(path)[0])
        listings = Listings(self._argvs, tuple(self._checker.bases), self._checker.links)
        for each in self._checker.protected.below_any(listings.starts()):
            if listings.prints(each.path):
                self._checker.check_existing(each.protected)

    def _changes_from_input(self, argv: Argv, others: list[Changes]) -> Changes | None:
        words = with_unknown_words(argv)
        inner = started_by(words, None).argvs
        return next((found for each in inner if each and (found := self._changes_of_started(each, others))), None)


def _takes_unknown(changes: Changes) -> bool:
    words = (*changes.files, *changes.trees, *changes.maybe_changed, *(copy.target for copy in changes.copies))
    return any(UNKNOWN_WORD in word for word in words)


def _entered_folders(argv: Argv) -> Iterator[str]:
    """The folders that a command changes to."""
    name = name_of(argv)
    if name in ("cd", "pushd"):
        yield from (word for word in argv[1:] if word[:1] != "-")
    for place, word in enumerate(argv[1:], 1):
        option, equals, value = word.partition("=")
        if option in _FOLDER_OPTIONS or (option == "-D" and name == "sudo"):
            yield value if equals else next(iter(argv[place + 1 : place + 2]), "")
        elif word[:2] == "-C" and len(word) > 2:
            yield word[2:]


_FOLDER_OPTIONS = frozenset(
    {"-C", "--chdir", "--cwd", "--directory", "--working-directory", "--git-dir", "--work-tree", "--prefix", "--dir"}
)


def _only_reads(code: str) -> bool:
    from bradawl.safety.shell.paths.python_code import only_reads

    return only_reads(code)
