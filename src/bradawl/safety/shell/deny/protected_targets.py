"""For `deny`: decides which paths no mode may delete or write to, and which ones hold secrets."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import basename, dirname, join, normpath

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.shell.argv import names
from bradawl.safety.shell.deny.expansion import UNKNOWN_BUT_SET, UNKNOWN_VALUE, as_fnmatch
from bradawl.safety.shell.errors import ScanBudgetExceeded

SECRET = chr(1)
"""Marks a part of a word that holds a key or password."""

_SYSTEM = names(
    "/ /bin /boot /dev /efi /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /proc /root /run /sbin /snap /srv"
    " /sys /usr /var /tmp /usr/bin /usr/sbin /usr/lib /usr/lib64 /usr/local /usr/local/bin /usr/local/lib /usr/share"
    " /usr/include /var/lib /var/log /var/spool /var/run /etc/ssh /etc/ssl /etc/pam.d /etc/systemd"
    " /Users /System /Library /Applications /Volumes /private /private/etc /private/var /cores"
)
_A_HOME = re.compile(r"/(?:home|Users)/[^/*?\[]+")
_HARMLESS = re.compile(
    r"/dev/(?:(?:null|zero|full|tty|stdin|stdout|stderr|u?random|ptmx)(?:/.*)?|fd(?:/[0-9]+)?|pts(?:/[0-9]+)?|shm(?:/.*)?)"
    r"|/proc/self/fd/[0-9]+"
)
_DEVICE = re.compile(r"/dev/(?!(?:shm|fd|mqueue)(?:/|\Z))[^/]+|/dev/pts/[^/]+")
_HISTORIES = re.compile(r"/\.(?:bash|zsh|sh|ksh|fish)_history\Z|/fish/fish_history\Z|/\.histfile\Z|/\.\*_?history\Z")
_ENVIRON = re.compile(r"/proc/.{1,40}/environ")
_MAX_DEPTH = 30
_MAX_POSSIBLE_PATHS = 32
"""Limit on the paths that one path may lead to through the links of a line."""
_MAX_LINKS = 100
_MAX_PATH_LENGTH = 4_096
_MAX_NAME_LENGTH = 300  # a longer pattern for one name is no way to delete a folder by mistake
_CLASS = r"\[(?:[!^][^\]/]+|[^\]/]*(?:-|\[:)[^\]/]*:?\]?)\]"  # with a range, or of all but a few
_PURE_PATTERN = re.compile(rf"(?:[*?.]|{_CLASS})*(?:[*?]|{_CLASS})(?:[*?.]|{_CLASS})*")
_IN_A_REPOSITORY = re.compile(
    r"/(?:hooks/[a-z-]+|hooks|info/attributes|objects/info/(?:http-)?alternates|config\.worktree"
    r"|(?:modules|worktrees)/.+)"
)
"""Ends of paths that are taken for those in a git repository if the folder before them is unknown."""


class ProtectedTargets(msgspec.Struct, frozen=True):
    """The protected paths and secrets for one call, with the links and copies that its line has made so far."""

    home: str
    roots: tuple[str, ...]
    """Folders of the workspace; absolute, resolved."""
    resolve: Callable[[str, str], str]
    """(path, cwd) to an absolute path without symlinks. May raise `ToolError`."""
    secret_copies: frozenset[str] = frozenset()
    """Files to which the line has written secrets."""
    refused: Callable[[str], str] = lambda _: ""
    """Why a rule refuses to write to a path; empty if none does."""
    own: tuple[str, ...] = ()
    """bradawl's folders besides those in the home folder."""
    scratch: str = ""
    """The part of them that programs of the session call `/tmp`."""
    links: tuple[tuple[str, str], ...] = ()
    """Links that the line has created, as (link, target). `safety.shell.links.Links` has them for checks that read the
    disk: here a copy counts as a link, and too many of them end the scan.
    """
    environment: Mapping[str, str | None] | None = None
    """Variables of the shell; None if unknown."""

    def possible_paths(self, text: str, cwd: str | None) -> tuple[str, ...]:
        """Absolute paths that a path may lead to: as written, and with symlinks followed. Empty if unknown.

        Raises `ScanBudgetExceeded`: the links of the line lead to too many paths.
        """
        path = _written(text, cwd)
        if not path:
            return ()
        if path.count("/") > _MAX_DEPTH:
            return (path,)
        found = dict.fromkeys((path, self._real(path)))
        for link, target in self.links:
            for each in tuple(found):
                if is_within(each, link):
                    found[self._real(target.rstrip("/") + each[len(link) :])] = None
            if len(found) > _MAX_POSSIBLE_PATHS:
                raise ScanBudgetExceeded
        return tuple(found)

    def _real(self, path: str) -> str:
        try:
            return self.resolve(path, "/")
        except ToolError:
            return path

    def with_link(self, link: str, target: str, cwd: str | None, start: str | None = None) -> "ProtectedTargets":
        """A copy in which `link` leads to `target`. `target` is relative to `start`, or else to `cwd`, as `link` is.

        Raises `ScanBudgetExceeded`.
        """
        targets = self.possible_paths(target, start or cwd)[-1:]
        made = [(path, place) for path in self.possible_paths(link, cwd) for place in targets]
        links = tuple(dict.fromkeys((*self.links, *made)))
        if len(links) > _MAX_LINKS:
            raise ScanBudgetExceeded
        return msgspec.structs.replace(self, links=links) if made else self

    def variable(self, name: str) -> tuple[str, ...]:
        """Possible values of a variable that the line has not set."""
        if self.environment is None:
            return (UNKNOWN_VALUE,)
        value = self.environment.get(name)
        if not value:
            return ("", UNKNOWN_VALUE)
        # Other values may be secrets, and the words of commands are logged.
        return (value, UNKNOWN_VALUE) if value[0] == "/" and os.path.lexists(value) else (UNKNOWN_VALUE,)

    def emptied_folder(self, text: str, cwd: str | None) -> str:
        """The folder whose files a pattern names in full, if it is a home or the root folder; else empty."""
        if not _PURE_PATTERN.fullmatch(basename(text)):
            return ""
        what = self.loss(text, cwd)
        return what if "home folder" in what or what.endswith("the root folder") else ""

    def loss(self, text: str, cwd: str | None) -> str:
        """The protected folders that deleting this path and all below it would destroy; empty if there are none.

        An unknown part that follows a known one is taken to be empty.
        """
        if not text or len(basename(text)) > _MAX_NAME_LENGTH:
            return ""
        if UNKNOWN_VALUE in text and text[0] != UNKNOWN_VALUE and UNKNOWN_BUT_SET not in text:
            text = text.replace(UNKNOWN_VALUE, "")
        elif text[:1] == UNKNOWN_VALUE and text.lstrip(UNKNOWN_VALUE).rstrip("/*") == self.home:
            text = text.lstrip(UNKNOWN_VALUE)
        whole = text.rstrip("/") or "/"
        while _PURE_PATTERN.fullmatch(basename(whole)) and basename(whole) not in (".", ".."):
            whole = dirname(whole) or ("/" if text.startswith("/") else ".")
        is_inside = whole != (text.rstrip("/") or "/")
        for path in self.possible_paths(whole, cwd):
            if what := self._what_is(path):
                return f"all of {what}" if not is_inside else f"everything in {what}"
        return ""

    def _what_is(self, path: str) -> str:
        if path == "/":
            return "the root folder"
        if self.home and is_within(self.home, path):
            return "the home folder" if path == self.home.rstrip("/") else f"{path}, where the home folder is,"
        if any(is_within(root, path) and root != path for root in self.roots):
            return f"{path}, in which the workspace is,"
        if path in _SYSTEM and path not in self.roots:
            return f"the system folder {path}"
        if _A_HOME.fullmatch(path) and path not in self.roots:
            return f"the home folder {path}"
        if "*" in path or "?" in path or "[" in path:
            kept = (*sorted(_SYSTEM), self.home)
            return next((one for one in kept if one != "/" and fnmatchcase(one, as_fnmatch(path))), "")
        return ""

    def with_secret_copy(self, text: str, cwd: str | None) -> "ProtectedTargets":
        """A copy in which this path holds secrets."""
        path = _written(text, cwd)
        return msgspec.structs.replace(self, secret_copies=self.secret_copies | {path}) if path else self

    def guard(self, text: str, cwd: str | None, *, adds: bool = False, replaces: bool = False) -> str:
        """Why this path may not be written to; empty if it may.

        `adds`: the content is kept. `replaces`: the name is removed or given to another file.
        """
        from bradawl.safety.permissions.protected_paths import ACCESS_CONTROL_FILES, write_refusal

        for path in (place for each in self._candidates(text, cwd) for place in self.possible_paths(each, cwd)):
            if replaces and _DEVICE.fullmatch(path):
                return f"it would replace the device {path}"
            if _HARMLESS.fullmatch(path):
                return ""
            if _HISTORIES.search(path) and not adds:
                return f"it would destroy the history in {path}"
            if path.startswith(("/dev/tcp/", "/dev/udp/")):
                return ""  # a network connection, which `exfiltration` checks
            if path.startswith("/dev/"):
                return f"it would write to the device {path}"
            if re.fullmatch(ACCESS_CONTROL_FILES, path):
                return f"it would write to {path}, which decides who may do what on this machine"
            if why := write_refusal(path, self.roots, self.home, self.own, self.scratch) or self.refused(path):
                return f"it would write to {path}: {why}"
        return ""

    def _candidates(self, text: str, cwd: str | None) -> Iterator[str]:
        """The path as written, and if a part is unknown the paths it is taken for."""
        yield text
        if UNKNOWN_BUT_SET in text or SECRET in text or not (UNKNOWN_VALUE in text or "*" in text):
            return
        known, _, end = text.replace("*", UNKNOWN_VALUE).rpartition(UNKNOWN_VALUE)
        if UNKNOWN_VALUE in text and text[0] != UNKNOWN_VALUE:
            yield from (text.replace(UNKNOWN_VALUE, each) for each in ("", "x"))
        if _IN_A_REPOSITORY.fullmatch(end):
            yield from (f"{root}/.git{end}" for root in self.roots)
        if not known and end[:1] == "/" and UNKNOWN_VALUE in text:
            below_home = (self.home, f"{self.home}/.config", f"{self.home}/.local/share") if self.home else ()
            yield from (f"{base}{end}" for base in (*below_home, *self.roots))

    def guards(self, texts: Iterable[str], cwd: str | None, *, replaces: bool = False) -> str:
        """As `guard`, for the first of several paths that may not be written to."""
        return next((why for text in texts if (why := self.guard(text, cwd, replaces=replaces))), "")

    def is_secret(self, text: str, cwd: str | None) -> bool:
        """Whether a path holds keys or passwords."""
        if SECRET in text:
            return True
        path = _written(text, cwd)
        if path in self.secret_copies or _ENVIRON.fullmatch(path):
            return True
        name = basename(path)
        if not path or len(path) > _MAX_PATH_LENGTH or name.endswith(".pub") or name == "known_hosts":
            return False
        from bradawl.safety.permissions.protected_paths import credentials, is_secret_name

        if is_secret_name(name):
            return True
        return is_within(path, self.home or "/") and any(is_within(path, store) for store in credentials(self.home))


def is_home_of_a_user(path: str) -> bool:
    """Whether an absolute path is, by its location, the home folder of a user."""
    return _A_HOME.fullmatch(path) is not None


def _written(text: str, cwd: str | None) -> str:
    """A path as written, made absolute; empty if unknown."""
    if (
        not text
        or UNKNOWN_VALUE in text
        or UNKNOWN_BUT_SET in text
        or SECRET in text
        or (cwd is None and text[0] != "/")
    ):
        return ""
    return "/" + normpath(join(cwd or "/", text)).lstrip("/")
