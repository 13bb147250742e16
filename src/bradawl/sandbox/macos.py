"""Sandbox backend for macOS: writes the profile for `sandbox-exec`. Not yet tested on macOS.

A profile refuses what it does not allow; of several rules for the same operation the last one counts. Paths are as the
kernel sees them, without links. File names match in either case, as the usual file system compares them.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant, Sandbox
from bradawl.safety.home_links import HomeLinks
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
    """The profile for one grant. Raises `ToolError` for a path that can't be expressed."""
    return "\n".join(_lines(layout, grant)) + "\n"


def _lines(layout: SandboxLayout, grant: Grant) -> Iterator[str]:
    yield _ALWAYS
    writable = (layout.scratch, layout.cache, *grant.writable)
    yield from _line("allow file-write*", map(_below, filter(None, writable)))
    roots = [root for root in layout.roots if root in grant.writable]
    for root in roots:
        yield from _protected(root)
        yield from _line("deny file-write*", map(_below, HomeLinks(layout.home).all(root)))
    hidden = (*credentials(layout.home), *layout.own, *filter(None, (layout.state,)))
    yield from _line("deny file-read* file-write*", map(_below, hidden))
    if any(is_within(layout.scratch, each) for each in hidden):
        yield from _line("allow file-read* file-write*", [_below(layout.scratch)])
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
    # A program that may not write in a folder could still move it away and put another one in its place.
    around = dict.fromkeys(name.rsplit("/", number)[0] for name in names for number in range(1, name.count("/") + 1))
    yield from _line("deny file-write-unlink", (_exactly(root, name) for name in around))
    yield from _line("deny file-write-create", (_exactly(root, name) for name in around if name not in _MADE_BY_GIT))


def _exactly(root: str, name: str) -> str:
    return _regex(_any_case(root, f"/{_pattern(name)}$"))


def _line(verdict: str, filters: Iterable[str]) -> Iterator[str]:
    """One operation with its filters; nothing without filters, because that would match everything."""
    if written := "".join(f"\n  {each}" for each in filters):
        yield f"({verdict}{written})"


def _below(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _regex(pattern: str) -> str:
    return f"(regex {_quoted(pattern)})"


def _quoted(text: str) -> str:
    """A Scheme string. Raises `ToolError` for characters that the profile reader may not read as written."""
    if any((ord(character) < 32 and character != "\n") or "\ud800" <= character <= "\udfff" for character in text):
        raise ToolError(f"a sandbox can't be described for {text!r}: there is a control character in it; rename it")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_SPECIAL: Final = frozenset("\\.^$*+?()[]{}|")


def _pattern(name: str) -> str:
    return "".join(".+" if each == "*" else f"\\{each}" if each in _SPECIAL else each for each in name)


def _any_case(root: str, pattern: str) -> str:
    """A pattern below a folder that matches both cases of each letter outside of classes and escapes."""
    literal = "".join(f"\\{each}" if each in _SPECIAL else each for each in root.rstrip("/"))
    both: list[str] = []
    is_class = False
    for each in pattern:
        is_class = each == "[" or (is_class and each != "]")
        is_letter = each.isascii() and each.isalpha() and not is_class
        both.append(f"[{each.lower()}{each.upper()}]" if is_letter else each)
    return f"^{literal}{''.join(both)}"


class SandboxExecBackend:
    """`SandboxBackend` with `sandbox-exec`. It holds no resources."""

    def __init__(self, layout: SandboxLayout, lacks: Iterable[str] = tuple(GUARANTEES)) -> None:
        """`lacks` is the result of a probe; without one, no guarantee is assumed."""
        self._layout = layout
        self._lacks = tuple(lacks)

    @property
    def sandbox(self) -> Sandbox:
        """Its name and the guarantees it lacks."""
        return Sandbox("sandbox-exec", self._lacks)

    def launch(self, program: Program, grant: Grant) -> Launch:
        """The command that starts a program within a grant. Raises `ToolError` if it can't be confined."""
        layout = self._layout
        held = sandbox_environment(program.environment, program.exported, layout.kept_variables, network=grant.network)
        caches = cache_variables(layout.cache, layout.home, held, os.path.exists, network=grant.network)
        variables = {**held, **(caches if layout.cache else {}), "TMPDIR": layout.scratch}
        shown = msgspec.structs.replace(layout, readable=(*layout.readable, *program.readable))
        return Launch(
            argv=(_PROGRAM, "-p", profile(shown, grant), *program.argv),
            cwd=program.cwd,
            environment=variables,  # macOS removes variables for its linker before it starts its own programs
            inherited=program.inherited,
        )

    def host_path(self, path: str) -> str:
        """The same path: programs see the file system of the host."""
        return path

    def close(self) -> None:
        """Does nothing: it holds no resources."""
