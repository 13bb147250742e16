"""The profile that holds programs on macOS, for `sandbox-exec`: text made from what is to be shown and protected.

In a profile what is not allowed is refused, and of several lines that speak of the same the last one counts. Paths are
as the kernel sees them, without links. Names of files are compared without regard to case, as the usual file system
does.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant, Sandbox
from bradawl.safety.permissions.protected_paths import credentials, protected_names, watched_names
from bradawl.sandbox.backend import Launch, Program, SandboxLayout
from bradawl.sandbox.environment import sandbox_environment
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.sandbox.tool_caches import cache_variables

_PROGRAM: Final = "/usr/bin/sandbox-exec"

_ALWAYS: Final = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.notification_center"))
(allow file-read*)
(allow file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(deny file-read* file-write* (regex "^/dev/tty"))"""
_NETWORK: Final = """\
(allow network-outbound (remote ip))
(allow network-inbound (local ip))
(allow network-bind (local ip))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.trustd.agent"))"""
_ENV_FILES: Final = r"/(.*/)?\.env([._-][^/]*)?$"
_EXAMPLES: Final = r"/(.*/)?\.env[._-]([^/]*[._-])?(example|sample|template|dist)$"

_MADE_BY_GIT: Final = (".git", ".git/objects", ".git/objects/info", ".git/worktrees", ".git/worktrees/*")


def profile(layout: SandboxLayout, grant: Grant) -> str:
    """The text for one grant. Raises `ToolError` for a path that can't be written down in it."""
    return "\n".join(_lines(layout, grant)) + "\n"


def _lines(layout: SandboxLayout, grant: Grant) -> Iterator[str]:
    yield _ALWAYS
    writable = (layout.scratch, layout.cache, *grant.writable)
    yield from _line("allow file-write*", map(_below, filter(None, writable)))
    roots = [root for root in layout.roots if root in grant.writable]
    for root in roots:
        yield from _protected(root)
    hidden = (*credentials(layout.home), *layout.own, *filter(None, (layout.state,)))
    yield from _line("deny file-read* file-write*", map(_below, hidden))
    for root in layout.roots:
        yield from _line("deny file-read* file-write*", [_regex(_any_case(root, _ENV_FILES))])
        yield from _line("allow file-read*", [_regex(_any_case(root, _EXAMPLES))])
    yield from _line("allow file-read*", map(_below, layout.readable))
    yield from _line("allow file-read*", map(_below, grant.uncovered))
    named = [path for path in grant.uncovered if any(is_within(path, folder) for folder in grant.writable)]
    yield from _line("allow file-write*", map(_below, named))
    if grant.network:
        yield _NETWORK


def _protected(root: str) -> Iterator[str]:
    names = (*protected_names(), *watched_names())
    yield from _line("deny file-write*", (_regex(_any_case(root, f"/{_pattern(name)}(/.*)?$")) for name in names))
    # Who may not write in a folder might still move it away, or bring another there with what it must not hold.
    around = dict.fromkeys(name.rsplit("/", number)[0] for name in names for number in range(1, name.count("/") + 1))
    yield from _line("deny file-write-unlink", (_exactly(root, name) for name in around))
    yield from _line("deny file-write-create", (_exactly(root, name) for name in around if name not in _MADE_BY_GIT))


def _exactly(root: str, name: str) -> str:
    return _regex(_any_case(root, f"/{_pattern(name)}$"))


def _line(verdict: str, filters: Iterable[str]) -> Iterator[str]:
    """One operation with its filters; without any it would speak of everything."""
    if written := "".join(f"\n  {each}" for each in filters):
        yield f"({verdict}{written})"


def _below(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _regex(pattern: str) -> str:
    return f"(regex {_quoted(pattern)})"


def _quoted(text: str) -> str:
    """A string of Scheme. Raises `ToolError` for characters that no one can be sure are read as written."""
    if any((ord(character) < 32 and character != "\n") or "\ud800" <= character <= "\udfff" for character in text):
        raise ToolError(f"a sandbox can't be described for {text!r}: there is a control character in it; rename it")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_SPECIAL: Final = frozenset("\\.^$*+?()[]{}|")


def _pattern(name: str) -> str:
    return "".join(".+" if each == "*" else f"\\{each}" if each in _SPECIAL else each for each in name)


def _any_case(root: str, pattern: str) -> str:
    """A pattern below a folder, both cases of each letter that is not part of a class or an escape."""
    literal = "".join(f"\\{each}" if each in _SPECIAL else each for each in root.rstrip("/"))
    both: list[str] = []
    is_class = False
    for each in pattern:
        is_class = each == "[" or (is_class and each != "]")
        is_letter = each.isascii() and each.isalpha() and not is_class
        both.append(f"[{each.lower()}{each.upper()}]" if is_letter else each)
    return f"^{literal}{''.join(both)}"


class SandboxExecBackend:
    """`SandboxBackend` by `sandbox-exec`. Nothing of it needs to be closed."""

    def __init__(self, layout: SandboxLayout, lacks: Iterable[str] = tuple(GUARANTEES)) -> None:
        """`lacks` is what a probe here found; without one nothing is taken to hold."""
        self._layout = layout
        self._lacks = tuple(lacks)

    @property
    def sandbox(self) -> Sandbox:
        """What it is called and what it can't hold."""
        return Sandbox("sandbox-exec", self._lacks)

    def launch(self, program: Program, grant: Grant) -> Launch:
        """How to start a program within a grant. Raises `ToolError` where it can't be held."""
        layout = self._layout
        held = sandbox_environment(program.environment, program.exported, layout.kept_variables, network=grant.network)
        caches = cache_variables(layout.cache, layout.home, held, os.path.exists, network=grant.network)
        variables = {**held, **(caches if layout.cache else {}), "TMPDIR": layout.scratch}
        shown = msgspec.structs.replace(layout, readable=(*layout.readable, *program.readable))
        return Launch(
            argv=(_PROGRAM, "-p", profile(shown, grant), *program.argv),
            cwd=program.cwd,
            environment=variables,  # the system leaves out what its linker would obey before starting its own programs
            inherited=program.inherited,
        )

    def host_path(self, path: str) -> str:
        """The same: programs see the machine under its own names."""
        return path

    def close(self) -> None:
        """Nothing is left behind."""
