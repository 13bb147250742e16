"""Remembered rules: the user's lasting permissions for one project, in a file that is read again when it changes.

The file is below the user's data folder and named after the project's real path. It is not in the project, because
programs that may write there must not change their own permissions. New rules are appended, so the user's edits stay.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast

from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Allow, Policy, Request, decide
from bradawl.core.rules import Rule

_LIMIT_BYTES: Final = 1_000_000
_PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.01
_HEAD: Final = """\
# What bradawl may do without asking in one folder, as you allowed it. Change or remove what you like: the file is
# read again before the next call. Only `allow` is valid here; `deny` and `ask` belong in config.toml.
"""
_Stamp = tuple[int, int, int] | None


class _Content(NamedTuple):
    rules: tuple[Rule, ...]
    texts: tuple[str, ...]
    problems: tuple[str, ...]


_NOTHING: Final = _Content((), (), ())


class RememberedRules:
    """The remembered rules of one project. Reading costs one `stat` as long as the file does not change."""

    def __init__(self, data: str, project: str, home: str, roots: tuple[str, ...] = ()) -> None:
        """`data` is the user's data folder, which need not exist; `project` is absolute and resolved.

        Relative paths in rules start at `project`. `roots` are the other folders of the workspace.
        """
        self.path = str(Path(data, "permissions", _file_name(project)))
        """The file of rules; it need not exist."""
        self._project = project
        self._home = home
        self._roots = (project, *roots)
        self._stamp: _Stamp | str = "not read yet"
        self._content = _NOTHING
        folder = os.path.realpath(data)
        self._misplaced = next((root for root in self._roots if is_within(folder, root)), "")

    # -------------------------------------------------------------- reading

    def rules(self) -> tuple[Rule, ...]:
        """The rules in force now."""
        return self._current().rules

    @property
    def texts(self) -> tuple[str, ...]:
        """The rules as they are written in the file."""
        return self._current().texts

    @property
    def problems(self) -> tuple[str, ...]:
        """Messages about invalid rules. A file that can't be read allows nothing."""
        return self._current().problems

    def _current(self) -> _Content:
        stamp = self._stamp_now()
        if stamp != self._stamp:
            self._stamp = stamp
            self._content = self._load() if stamp is not None else _NOTHING
        return self._content

    def _stamp_now(self) -> _Stamp:
        if self._misplaced:
            return None
        try:
            found = os.lstat(self.path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _load(self) -> _Content:
        try:
            texts = _texts_in(_text_of(self.path), self.path, self._project)
        except SettingsError as error:
            return _Content((), (), (f"{error} Its rules are ignored until you correct the file.",))
        rules: list[Rule] = []
        problems: list[str] = []
        for text in texts:
            try:
                rules += self._parsed(text)
            except SettingsError as error:
                problems.append(str(error))
        return _Content(tuple(rules), texts, tuple(problems))

    def _parsed(self, text: str) -> tuple[Rule, ...]:
        from bradawl.safety.permissions.path_globs import Bases
        from bradawl.safety.permissions.rule_syntax import parse_rule

        return parse_rule(text, "allow", self.path, Bases(self._project, self._home, self._project))

    # -------------------------------------------------------------- offering and adding

    def proposals(self, request: Request) -> tuple[str, ...]:
        """Rules that would allow this call from now on; empty if there are none, or they can't be stored."""
        if self._misplaced:
            return ()
        from bradawl.safety.permissions.suggestions import proposals

        found = proposals(request, cwd=self._project, home=self._home, roots=self._roots)
        return found if self.why_not_allowed(request, found) == "" else ()

    def why_not_allowed(self, request: Request, texts: Sequence[str]) -> str:
        """Why these rules would not allow the call; empty if they would."""
        try:
            rules = tuple(rule for text in texts for rule in self._parsed(text))
        except SettingsError as error:
            return str(error)
        policy = Policy("default", rules=(*self.rules(), *rules), roots=self._roots)
        if rules and isinstance(decide(policy, request), Allow):
            return ""
        return f"{', '.join(texts) or 'no rule'} does not cover this call"

    def add(self, texts: Sequence[str]) -> str:
        """Append rules to the file and return its path. They are in force from the next call on.

        Waits for other processes, two seconds at most. Raises `SettingsError`, and leaves the file as it was.
        """
        if self._misplaced:
            raise SettingsError(
                f"Nothing is remembered here: the folder for it ({Path(self.path).parent}) lies in the workspace "
                f"{self._misplaced}, where programs could change it. Set BRADAWL_HOME to a folder elsewhere."
            )
        for text in texts:
            self._parsed(text)
        try:
            folder = _own_folder(Path(self.path).parent)
            with _locked(folder):
                self._append(texts)
        except OSError as error:
            raise SettingsError(f"{self.path} can't be written: {error.strerror or error}.") from error
        return self.path

    def remove(self, text: str) -> str:
        """Remove a rule from the file and return its path; comments and other rules stay. Raises `SettingsError`."""
        try:
            folder = _own_folder(Path(self.path).parent)
            with _locked(folder):
                old = _text_of(self.path)
                known = _texts_in(old, self.path, self._project)
                whole = _without_rule(old, text)
                if text not in known or _texts_in(whole, self.path, self._project) != tuple(
                    each for each in known if each != text
                ):
                    raise SettingsError(
                        f"The rule {text!r} can't be taken out of {self.path}: remove it there yourself."
                    )
                _replace(self.path, whole)
        except OSError as error:
            raise SettingsError(f"{self.path} can't be written: {error.strerror or error}.") from error
        return self.path

    def _append(self, texts: Sequence[str]) -> None:
        old = _text_of(self.path) or f"{_HEAD}folder = {_quoted(self._project)}\n"
        known = _texts_in(old, self.path, self._project)
        new = [text for text in dict.fromkeys(text.strip() for text in texts) if text not in known]
        if not new:
            return
        whole = old.rstrip("\n") + "\n" + "".join(f"\n[[rule]]\nallow = {_quoted(text)}\n" for text in new)
        if _texts_in(whole, self.path, self._project) != (*known, *new):
            raise SettingsError(f"{self.path} can't be added to: write [[rule]] and allow = ... for each rule in it.")
        _replace(self.path, whole)


def _file_name(project: str) -> str:
    import re
    from hashlib import sha256

    name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(project).name)[:40] or "root"
    return f"{name}-{sha256(os.fsencode(project)).hexdigest()[:16]}.toml"


def _as_text(path: str) -> str:
    """A path as TOML can hold it, also if it is not UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()


def _quoted(text: str) -> str:
    """A TOML string. It is the same as in JSON, except for DEL."""
    import json

    return json.dumps(_as_text(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _texts_in(text: str, path: str, project: str) -> tuple[str, ...]:
    """The rules of a file as written. Raises `SettingsError`."""
    if not text.strip():
        return ()
    import tomllib

    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from error
    if unknown := sorted(set(table) - {"folder", "rule"}):
        raise SettingsError(f"{path}: {unknown[0]!r} is not a key of this file; its keys are `folder` and [[rule]].")
    said = table.get("folder")
    if said is not None and said != _as_text(project):
        raise SettingsError(f"{path} is for the folder {said}, not for {project}.")
    entries = table.get("rule", [])
    if not isinstance(entries, list):
        raise SettingsError(f"{path}: write [[rule]], in double brackets, for each rule.")
    return tuple(_text_in(entry, path) for entry in cast("list[object]", entries))


def _without_rule(text: str, rule: str) -> str:
    """The file without the `[[rule]]` tables of one rule that are written on two lines."""
    import re

    table = rf"(?m)^\[\[rule\]\][ \t]*\n[ \t]*allow[ \t]*=[ \t]*{re.escape(_quoted(rule))}[ \t]*\n?\n?"
    return re.sub(table, "", text)


def _text_in(entry: object, path: str) -> str:
    allow = cast("dict[str, object]", entry).get("allow") if isinstance(entry, dict) and len(entry) == 1 else None
    if not isinstance(allow, str):
        raise SettingsError(f'{path}: each [[rule]] has one line, such as allow = "Bash(npm run test:*)".')
    return allow


def _text_of(path: str) -> str:
    """The text of the file; empty if there is no file. Raises `SettingsError` if other users can change it."""

    def check(found: os.stat_result) -> None:
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise SettingsError(f"{path} can be changed by other users, so it is ignored: run `chmod 600 {path}`.")

    from bradawl.app.regular_files import read_regular  # most projects have no such file

    try:
        real = Path(os.path.realpath(Path(path).parent), Path(path).name)
        data = read_regular(real, _LIMIT_BYTES + 1, check)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror or error}.") from error
    if len(data) > _LIMIT_BYTES:
        raise SettingsError(f"{path} is larger than {_LIMIT_BYTES} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8.") from error


# ------------------------------------------------------------------ writing


def _own_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise SettingsError(f"{folder} can be changed by other users; make it your own (chmod 700).")
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Locks the folder against other processes that add rules. The kernel releases the lock of a killed process."""
    import fcntl
    import time

    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise SettingsError(f"{folder} is in use by another bradawl; try again.") from None
                time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def _replace(path: str, text: str) -> None:
    from bradawl.app.whole_files import replace_whole

    replace_whole(Path(path), text.encode())
