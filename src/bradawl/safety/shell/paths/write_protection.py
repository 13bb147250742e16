"""The paths that a line must not change, which `write_checker` tests: built-in protection, and rules about writes."""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from posixpath import dirname, join
from typing import NamedTuple

from bradawl.core.effects import is_within
from bradawl.safety.git.tracked_files import tracks
from bradawl.safety.permissions.home_paths import LOGIN_FILES
from bradawl.safety.permissions.protected_paths import write_refusal
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.links import files_below, is_folder
from bradawl.safety.shell.path_rules import PathRules

_MOST_FILES = 2_000
_MOST_MEMBERS = 5_000
_LARGEST_ARCHIVE = 50_000_000
_OF_A_REPOSITORY = "config config.worktree commondir info/attributes hooks modules worktrees objects/info/alternates"
_NOT_PLAIN = re.compile(r"git|bradaw|history|[^ -~]", re.IGNORECASE)
_KERNEL = re.compile(r"/(?:dev|proc|sys)(?:/.*)?", re.DOTALL)


class Candidate(NamedTuple):
    """A path that a command may change, and the protected path that changes with it."""

    path: str
    protected: str


class WriteProtection:
    """Answers questions about absolute, resolved paths."""

    def __init__(self, protected_targets: ProtectedTargets, path_rules: PathRules | None) -> None:
        self._protected_targets = protected_targets
        self._path_rules = path_rules if path_rules is not None and path_rules.applies("write") else None
        self._plain = tuple(f"{root.rstrip('/')}/" for root in protected_targets.roots if self._is_plain_root(root))
        self._below: dict[str, tuple[str, ...]] = {}

    def _is_plain_root(self, root: str) -> bool:
        """Whether only git's and bradawl's own names are protected in this workspace."""
        home = self._protected_targets.home
        return not (home and is_within(home, root)) and not write_refusal(
            join(root, "x"), self._protected_targets.roots, home
        )

    # -------------------------------------------------------------- what no mode allows

    def write_refusal(self, place: str, *, is_device: bool = True) -> str:
        """Why a path can't be written; empty if it can. Without `is_device`, files of the kernel are not checked."""
        if any(place.startswith(root) and not _NOT_PLAIN.search(place, len(root)) for root in self._plain):
            return self._installation_refusal(place)
        if not is_device and _KERNEL.fullmatch(place):
            return ""
        return self._protected_targets.guard(place, "/") or self._installation_refusal(place)

    def _installation_refusal(self, place: str) -> str:
        if any(is_within(place, each) for each in self._installation):
            return f"it would write to {place}, from where bradawl itself runs"
        return ""

    @cached_property
    def _installation(self) -> tuple[str, ...]:
        from bradawl.safety.trusted_programs import installation_paths

        return installation_paths(self._protected_targets.roots)

    def removal_refusal(self, place: str) -> str:
        """Why a folder can't be removed with everything below it; empty if it can."""
        if what := self._protected_targets.loss(place, "/"):
            return f"it would delete or move {what}"
        for path in self._protected_roots(place):
            if is_within(path, place) and os.path.lexists(path):
                return f"it would delete or move {path}, which is protected; leave that to the user"
        return ""

    def emptying_refusal(self, folder: str, pattern: str) -> str:
        """Why everything that a pattern matches in a folder can't be removed; empty if it can."""
        what = self._protected_targets.loss(join(folder, pattern), "/")
        return f"it would delete or move {what}" if what else ""

    def _protected_roots(self, place: str) -> Iterator[str]:
        for root in self._protected_targets.roots:
            yield from (join(root, name) for name in self.protected_names())
        home = self._protected_targets.home
        if home and (is_within(place, home) or is_within(home, place)):
            yield from (join(home, name) for name in LOGIN_FILES.split())

    def protected_names(self) -> tuple[str, ...]:
        """Names that are protected in every folder of a project."""
        return (".git", ".bradawl")

    # -------------------------------------------------------------- rules of the user

    @property
    def has_rules(self) -> bool:
        """Whether the user has rules about writes."""
        return self._path_rules is not None

    def has_rule(self, place: str) -> bool:
        """Whether a rule matches a path."""
        return self._path_rules is not None and self._path_rules.matches("write", place)

    def rule_paths_below(self, place: str) -> tuple[str, ...]:
        """Existing paths at or below a folder that a rule matches. Raises `UnsupportedSyntax`."""
        if self._path_rules is None:
            return ()
        if place not in self._below:
            self._below[place] = self._path_rules.below("write", place)
        return self._below[place]

    def is_tracked(self, path: str) -> bool:
        """Whether git tracks a path, or one below it."""
        return tracks(path)

    # -------------------------------------------------------------- what a program may meet

    def below_any(self, starts: Iterable[str]) -> Iterator[Candidate]:
        """Everything that is protected below some folders."""
        for start in dict.fromkeys(starts):
            yield from self.below(start)

    def below(self, start: str, *, include_above: bool = False) -> Iterator[Candidate]:
        """Everything that is protected at or below a folder; with `include_above` also the folders between them."""
        for path in (*self.rule_paths_below(start), *self._protected_below(start)):
            yield Candidate(path, path)
            above = dirname(path)
            while include_above and is_within(above, start):
                yield Candidate(above, path)
                if above in ("/", start):
                    break
                above = dirname(above)
            for inner in files_below(path, _MOST_FILES):
                yield Candidate(inner, inner)

    def _protected_below(self, start: str) -> Iterator[str]:
        if self.write_refusal(start, is_device=False):
            yield start
            return
        for folder in dict.fromkeys((*self._protected_targets.roots, start)):
            for name in self.protected_names():
                top = join(folder, name)
                if (is_within(top, start) or is_within(start, top)) and os.path.lexists(top):
                    yield from self._protected_parts(top, start)
        home = self._protected_targets.home
        if home and is_within(home, start):
            yield from filter(os.path.lexists, (join(home, name) for name in LOGIN_FILES.split()))

    def _protected_parts(self, top: str, start: str) -> Iterator[str]:
        if not top.endswith(".git"):
            yield top
            return
        if not is_folder(top):
            yield top
        for name in _OF_A_REPOSITORY.split():
            part = join(top, name)
            if is_within(part, start) and os.path.lexists(part):
                yield part

    # -------------------------------------------------------------- names in files

    def named_in_patch(self, path: str) -> tuple[str, ...]:
        """The files that a patch changes, with and without the first folder of their names."""
        from bradawl.safety.git.small_files import text_in

        found = re.findall(r"(?m)^(?:\+\+\+|---|rename to|rename from) ([^\t\n]+)", text_in(path) or "")
        return tuple(dict.fromkeys(each for name in found for each in (name, name.partition("/")[2]) if each))

    def names_in_archive(self, path: str) -> tuple[str, ...]:
        """The names in an archive; none if it can't be read or is too large."""
        try:
            if not Path(path).is_file() or Path(path).stat().st_size > _LARGEST_ARCHIVE:
                return ()
        except OSError:
            return ()
        return _archive_names(path)


def _archive_names(path: str) -> tuple[str, ...]:
    import lzma
    import tarfile
    import zipfile
    import zlib
    from itertools import islice

    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return tuple(archive.namelist()[:_MOST_MEMBERS])
        with tarfile.open(path) as archive:
            return tuple(member.name for member in islice(archive, _MOST_MEMBERS))
    except (
        OSError,
        EOFError,
        ValueError,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        RuntimeError,
    ):
        return ()
