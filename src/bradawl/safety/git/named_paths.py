"""Files and folders that git's configuration names, and from which git runs programs or reads further settings."""

import os
import re
import stat
from collections.abc import Iterable, Iterator

from bradawl.core.effects import is_within
from bradawl.safety.git.command_words import files_in
from bradawl.safety.git.config_file import Entry, parse
from bradawl.safety.git.config_places import SYSTEM_FILES
from bradawl.safety.git.hook_scripts import HookScripts, has_hard_links
from bradawl.safety.git.small_files import LARGEST_SETTINGS, named_in, text_in
from bradawl.safety.path_walk import followed, real_path

_DEEPEST = 10
"""Git itself includes no further files."""
_MOST = 100
_INCLUDE = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
_PROGRAM = re.compile(
    r"filter\..*\.(?:clean|smudge|process)|diff\..*\.(?:command|textconv)|diff\.external|merge\..*\.driver"
    r"|core\.(?:sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|pager\..*|alias\..*"
    r"|gpg\.(?:.*\.)?program|credential\.(?:.*\.)?helper|(?:diff|merge)tool\..*\.(?:cmd|path)"
    r"|gpg\.ssh\.defaultkeycommand|uploadpack\.packobjectshook|remote\..*\.(?:uploadpack|receivepack)"
    r"|trailer\..*\.(?:cmd|command)|(?:browser|man)\..*\.(?:cmd|path)|interactive\.difffilter|submodule\..*\.update"
    r"|(?:hook|tar)\..*\.command|guitool\..*\.cmd|gc\.recentobjectshook|imap\.tunnel|svn\.authorsprog"
    r"|sendemail\.(?:.*\.)?(?:smtpserver|sendmailcmd|tocmd|cccmd|headercmd)|(?:help|web|instaweb)\.browser"
    r"|instaweb\.httpd|lfs\.(?:customtransfer\..*\.path|extension\..*\.(?:clean|smudge))",
    re.DOTALL,
)
"""Settings whose value is a command line or a program."""
_SWITCHES = frozenset(("", "true", "false", "yes", "no", "on", "off", "0", "1"))

Stamp = tuple[int, ...]


class NamedPaths:
    """Reads configuration files; a file is read again when it has changed."""

    def __init__(self, home: str, others: tuple[str, ...] = SYSTEM_FILES) -> None:
        """`home` is the user's home folder, empty if unknown; `others` are configurations outside of it that apply in
        every repository: those of the machine, and those that the user's environment names.
        """
        self._home = home
        self._others = others
        self._entries: dict[str, tuple[Stamp, tuple[Entry, ...]]] = {}
        self._hooks = HookScripts()

    def of_user(self) -> tuple[str, ...]:
        """The configuration files of the machine and the user that apply in every repository."""
        names = (".config/git/config", ".gitconfig") if self._home else ()
        own = (real_path(f"{self._home}/{name}") for name in names)  # often links to a folder of settings
        return (*self._others, *own)

    def hook_folder_names(self) -> tuple[str, ...]:
        """Names of the folders from which git runs hooks in each working tree, because the user's configuration names
        them by a relative path; the last part of it.
        """
        folders = (path for path in self.folders_of_user("core.hookspath") if path.startswith("./"))
        return tuple(path.rstrip("/").rpartition("/")[2] for path in folders)

    def folders_of_user(self, setting: str) -> tuple[str, ...]:
        """The folders that a setting of the user names; the last one counts. A relative path begins with `./`."""
        named = (each for config in self.of_user() for each in self._named(config, ".", 0))
        return tuple(path for name, path in named if name == setting)

    def within(self, root: str, tree: str, configs: tuple[str, ...], data: str = "") -> tuple[str, ...]:
        """Absolute paths below `root`, existing or not, that the files `configs` and the user's name.

        They are `core.hooksPath`, `init.templateDir`, `core.fsmonitor`, included files, programs of filters, aliases
        and so on, the files that hooks lead to or name, and all links on the way. `tree` is the working tree to which
        relative paths belong, and `data` its git directory. Folders that contain the working tree are left out. At most
        100.
        """
        found: dict[str, None] = {}
        for named in self._all_named(tree, (*self.of_user(), *configs), data):
            for path in self._with_links(named):
                if path != root and is_within(path, root) and not is_within(tree, path):
                    found[path] = None
        return tuple(found)[:_MOST]

    def _all_named(self, tree: str, configs: tuple[str, ...], data: str) -> Iterator[str]:
        folders = {f"{data}/hooks": None} if data else {}
        for config in configs:
            for name, path in self._named(config, tree, 0):
                if name == "core.hookspath":
                    folders[path] = None
                yield path
        for folder in folders:
            yield from self._hooks.files_run_by(folder, tree)

    def _with_links(self, path: str) -> tuple[str, ...]:
        """The links that a path leads through, and the path that it leads to."""
        try:
            return followed(path)
        except OSError:  # a loop of links
            return (path,)

    def _named(self, config: str, tree: str, depth: int) -> Iterator[tuple[str, str]]:
        """Pairs of a setting and a path that it names."""
        for name, value in self._read(config):
            text = value or ""
            if _INCLUDE.fullmatch(name) and text:
                path = self._absolute(text, config.rpartition("/")[0])
                yield name, path
                included = real_path(path)
                if depth < _DEEPEST:
                    yield from self._named(included, tree, depth + 1)
            elif name in ("core.hookspath", "init.templatedir") and text:
                yield name, self._absolute(text, tree)
            elif (name == "core.fsmonitor" and text.lower() not in _SWITCHES) or _PROGRAM.fullmatch(name):
                yield from ((name, path) for path in self._run_by(text, tree))

    def _run_by(self, text: str, tree: str) -> Iterator[str]:
        """Files that a command line of the configuration runs or names, and those that the scripts among them run."""
        named = files_in(text)
        programs = [self._absolute(word, tree) for word in named.programs]
        others = [path for path in (self._absolute(word, tree) for word in named.others) if _is_file(path)]
        yield from filter(_is_no_folder, programs)
        yield from others
        for path in dict.fromkeys((*programs, *others)):
            yield from self._hooks.files_run_by_script(path, tree)

    def _absolute(self, text: str, folder: str) -> str:
        if text.startswith("~/"):
            text = f"{self._home}{text[1:]}"
        return text if text.startswith("/") else f"{folder}/{text}"

    def _read(self, config: str) -> tuple[Entry, ...]:
        try:
            status = os.lstat(config)
        except (OSError, ValueError):
            return ()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._entries.get(config)
        if known is None or known[0] != stamp:
            known = stamp, tuple(parse(text_in(config, LARGEST_SETTINGS) or "") or ())
            self._entries[config] = known
        return known[1]


def _is_no_folder(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return True


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(real_path(path)).st_mode)
    except (OSError, ValueError):
        return False


def named_by_config(named: NamedPaths, root: str, trees: Iterable[str], bare: Iterable[str] = ()) -> tuple[str, ...]:
    """As `NamedPaths.within` for the configuration of several working trees, and of `bare` repositories.

    Paths in data folders of git are left out, except hooks with hard links.
    """
    found: dict[str, None] = {}
    for tree, own in (*((tree, _data_of(tree)) for tree in trees), *((data, data) for data in bare)):
        common = named_in(f"{own}/commondir", "")
        shared = real_path(f"{own}/{common}" if common[:1] != "/" else common) if common else own
        configs = (f"{shared}/config", f"{own}/config.worktree")
        found |= dict.fromkeys(named.within(root, tree, configs, shared))
    return tuple(path for path in found if "/.git/" not in path or has_other_names(path))


def _data_of(tree: str) -> str:
    """The git directory of a working tree. It need not name the tree in turn, because git does not require that."""
    named = named_in(f"{tree}/.git", "gitdir: ")
    return real_path(named if named.startswith("/") else f"{tree}/{named}") if named else f"{tree}/.git"


def has_other_names(path: str) -> bool:
    """Whether a path is a file with hard links."""
    try:
        return has_hard_links(os.lstat(path))
    except (OSError, ValueError):
        return False
