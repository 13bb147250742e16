"""What must not be lost or written to, whatever a command is called."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import basename, dirname, join, normpath

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.shell.deny.expansion import DOUBT, UNTOLD, as_fnmatch
from bradawl.safety.shell.deny.parsed_command import TooMuch
from bradawl.safety.shell.deny.wrappers import names

SECRET = chr(1)
"""Stands in a word for what holds a key."""

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
_DEEPEST = 30
_MOST_PLACES = 32
"""Places that one path may lead to through the links of a line."""
_MOST_LINKS = 100
_LONGEST_PATH = 4_096
_CLASS = r"\[(?:[!^][^\]/]+|[^\]/]*(?:-|\[:)[^\]/]*:?\]?)\]"  # with a range, or of all but a few
_PURE_PATTERN = re.compile(rf"(?:[*?.]|{_CLASS})*(?:[*?]|{_CLASS})(?:[*?.]|{_CLASS})*")
_IN_A_REPOSITORY = re.compile(
    r"/(?:hooks/[a-z-]+|hooks|info/attributes|objects/info/(?:http-)?alternates|config\.worktree"
    r"|(?:modules|worktrees)/.+)"
)
"""Ends of paths that, below a folder that can't be told, are taken for those of a repository of git."""


class Ground(msgspec.Struct, frozen=True):
    """The machine as one call stands on it."""

    home: str
    roots: tuple[str, ...]
    """Folders of the workspace; absolute, resolved."""
    resolve: Callable[[str, str], str]
    """(path, cwd) to an absolute path without symlinks. May raise `ToolError`."""
    copies: frozenset[str] = frozenset()
    """Files into which keys were put before."""
    refused: Callable[[str], str] = lambda _: ""
    """Why a rule refuses to write to a path; empty if none does."""
    own: tuple[str, ...] = ()
    """bradawl's folders besides those in the home folder."""
    links: tuple[tuple[str, str], ...] = ()
    """Links that the line made before, and where they lead."""
    environment: Mapping[str, str | None] | None = None
    """Variables of the shell; None where they are not known."""

    def places(self, text: str, cwd: str | None) -> tuple[str, ...]:
        """Where a path may lead: as it is written, and with symlinks followed. Nothing if that can't be told.

        Raises `TooMuch`: the links of the line multiply the places beyond any use.
        """
        path = _written(text, cwd)
        if not path:
            return ()
        if path.count("/") > _DEEPEST:
            return (path,)
        found = dict.fromkeys((path, self._real(path)))
        for link, target in self.links:
            for each in tuple(found):
                if is_within(each, link):
                    found[self._real(target.rstrip("/") + each[len(link) :])] = None
            if len(found) > _MOST_PLACES:
                raise TooMuch
        return tuple(found)

    def _real(self, path: str) -> str:
        try:
            return self.resolve(path, "/")
        except ToolError:
            return path

    def linking(self, link: str, target: str, cwd: str | None, start: str | None = None) -> "Ground":
        """The same, once `link` leads to `target`, which is seen from `start`, or from `cwd` as the link is.

        Raises `TooMuch`.
        """
        targets = self.places(target, start or cwd)[-1:]
        made = [(path, place) for path in self.places(link, cwd) for place in targets]
        links = tuple(dict.fromkeys((*self.links, *made)))
        if len(links) > _MOST_LINKS:
            raise TooMuch
        return msgspec.structs.replace(self, links=links) if made else self

    def variable(self, name: str) -> tuple[str, ...]:
        """What a variable holds that the line has not set."""
        if self.environment is None:
            return (UNTOLD,)
        value = self.environment.get(name)
        if not value:
            return ("", UNTOLD)
        # Other values may be secrets, and commands with their words are written down.
        return (value, UNTOLD) if value[0] == "/" and os.path.lexists(value) else (UNTOLD,)

    def emptied(self, text: str, cwd: str | None) -> str:
        """What a pattern would leave without files; empty unless it stands for all in a home or the root folder."""
        if not _PURE_PATTERN.fullmatch(basename(text)):
            return ""
        what = self.loss(text, cwd)
        return what if "home folder" in what or what.endswith("the root folder") else ""

    def loss(self, text: str, cwd: str | None) -> str:
        """What would be lost with this path and all below it; empty if that is the workspace's own business.

        A part that can't be told, behind one that can, is taken to be empty.
        """
        if UNTOLD in text and text[0] != UNTOLD and DOUBT not in text:
            text = text.replace(UNTOLD, "")
        elif text[:1] == UNTOLD and text.lstrip(UNTOLD).rstrip("/*") == self.home:
            text = text.lstrip(UNTOLD)
        whole = text.rstrip("/") or "/"
        while _PURE_PATTERN.fullmatch(basename(whole)) and basename(whole) not in (".", ".."):
            whole = dirname(whole) or ("/" if text.startswith("/") else ".")
        is_inside = whole != (text.rstrip("/") or "/")
        for path in self.places(whole, cwd):
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

    def holding(self, text: str, cwd: str | None) -> "Ground":
        """The same, once keys were put there."""
        path = _written(text, cwd)
        return msgspec.structs.replace(self, copies=self.copies | {path}) if path else self

    def guard(self, text: str, cwd: str | None, *, adds: bool = False, replaces: bool = False) -> str:
        """Why nothing may be written to this path; empty if something may.

        `adds`: what is there stays. `replaces`: the name goes away, or becomes another file's.
        """
        from bradawl.safety.permissions.protected_paths import ACCESS_CONTROL_FILES, write_refusal

        for path in (place for each in self._candidates(text, cwd) for place in self.places(each, cwd)):
            if replaces and _DEVICE.fullmatch(path):
                return f"it would replace the device {path}"
            if _HARMLESS.fullmatch(path):
                return ""
            if _HISTORIES.search(path) and not adds:
                return f"it would destroy the history in {path}"
            if path.startswith(("/dev/tcp/", "/dev/udp/")):
                return ""  # a connection, of which others judge
            if path.startswith("/dev/"):
                return f"it would write to the device {path}"
            if re.fullmatch(ACCESS_CONTROL_FILES, path):
                return f"it would write to {path}, which decides who may do what on this machine"
            if why := write_refusal(path, self.roots, self.home, self.own) or self.refused(path):
                return f"it would write to {path}: {why}"
        return ""

    def _candidates(self, text: str, cwd: str | None) -> Iterator[str]:
        """A path as it is written; of one with a part that can't be told, what it is taken for."""
        yield text
        if DOUBT in text or SECRET in text or not (UNTOLD in text or "*" in text):
            return
        known, _, end = text.replace("*", UNTOLD).rpartition(UNTOLD)
        if UNTOLD in text and text[0] != UNTOLD:
            yield from (text.replace(UNTOLD, each) for each in ("", "x"))
        if _IN_A_REPOSITORY.fullmatch(end):
            yield from (f"{root}/.git{end}" for root in self.roots)
        if not known and end[:1] == "/" and UNTOLD in text:
            below_home = (self.home, f"{self.home}/.config", f"{self.home}/.local/share") if self.home else ()
            yield from (f"{base}{end}" for base in (*below_home, *self.roots))

    def guards(self, texts: Iterable[str], cwd: str | None, *, replaces: bool = False) -> str:
        """As `guard`, for the first of several that may not be written to."""
        return next((why for text in texts if (why := self.guard(text, cwd, replaces=replaces))), "")

    def is_secret(self, text: str, cwd: str | None) -> bool:
        """Whether a path leads to somebody's keys."""
        if SECRET in text:
            return True
        path = _written(text, cwd)
        if path in self.copies or _ENVIRON.fullmatch(path):
            return True
        name = basename(path)
        if not path or len(path) > _LONGEST_PATH or name.endswith(".pub") or name == "known_hosts":
            return False
        from bradawl.safety.permissions.protected_paths import credentials, is_secret_name

        if is_secret_name(name):
            return True
        return is_within(path, self.home or "/") and any(is_within(path, store) for store in credentials(self.home))


def is_home_of_a_user(path: str) -> bool:
    """Whether an absolute path is, by its place, the home folder of a user."""
    return _A_HOME.fullmatch(path) is not None


def _written(text: str, cwd: str | None) -> str:
    """A path as it is written, made absolute; empty if that can't be told."""
    if not text or UNTOLD in text or DOUBT in text or SECRET in text or (cwd is None and text[0] != "/"):
        return ""
    return "/" + normpath(join(cwd or "/", text)).lstrip("/")
