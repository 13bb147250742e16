"""Advice on how to install or repair a sandbox."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

INSTALL: Final = "Install bubblewrap: apt install bubblewrap (or dnf install bubblewrap, pacman -S bubblewrap)"
_SYSTEM_BWRAP: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
_MACHINES: Final = ("x86_64", "aarch64")
_NOT_ASKED: Final = "With a sandbox commands run unasked, as far as they stay in the workspace."
_SWITCHES: Final = (
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        lambda value: value != 0,
        "AppArmor lets only programs it has a profile for make user namespaces (kernel.apparmor_restrict_unprivileged_"
        "userns = {value}). The bwrap of the system's package, in /usr/bin, may have one; any other needs",
        0,
    ),
    (
        "kernel.unprivileged_userns_clone",
        lambda value: value == 0,
        "This kernel lets only root make user namespaces (kernel.unprivileged_userns_clone = 0). To allow it:",
        1,
    ),
    (
        "user.max_user_namespaces",
        lambda value: value == 0,
        "No user namespace may be made here (user.max_user_namespaces = 0). To allow it:",
        15_000,
    ),
)
"""Kernel setting, whether a value blocks bubblewrap, the explanation, and the value to set."""


def install_lines() -> tuple[str, ...]:
    """How to install a sandbox: a system package, or without root a Python package if this machine has one.

    A line that begins with spaces is a command.
    """
    extra = _extra_command()
    return (f"{INSTALL}, or without root:", f"  {extra}") if extra else (f"{INSTALL}.",)


def repair_lines(why: Iterable[str]) -> tuple[str, ...]:
    """What to do if bubblewrap is installed but not used, or fails; `install_lines` if it is not installed. `why`: the
    reasons that the search for a sandbox gave, one line each.
    """
    is_there = False
    for line in why:
        path, is_rejected, reason = line.partition(" is not used: ")
        if not path.startswith(_SYSTEM_BWRAP):
            continue
        is_there = True
        wrong = path if reason == "it is not executable" else reason.partition(" can be written")[0]
        if is_rejected and wrong != reason:
            return ("It is installed; give it back its permissions:", f"  sudo chmod 755 {wrong}")
    if not is_there:
        return install_lines()
    extra = _extra_command()
    return ("Another one, without root, may work:", f"  {extra}") if extra else ()


def install_hint() -> str:
    """`install_lines` in one sentence."""
    return " ".join(line.strip() for line in install_lines()).rstrip(".") + "."


def refused_hint() -> str:
    """`install_hint` for a run whose commands were refused for lack of a sandbox."""
    return f"{_NOT_ASKED} {install_hint()} `bradawl doctor` says what is missing."


def _extra_command() -> str:
    """The command that adds `bradawl[sandbox]` to this installation; empty if it has no wheel for this machine."""
    if not _has_package():
        return ""
    if "/pipx/" in sys.prefix:
        return "pipx runpip bradawl install 'bradawl[sandbox]'"
    import shlex

    python = shlex.quote(sys.executable or "python3")
    if "/uv/" in sys.prefix:
        return f"uv pip install --python {python} 'bradawl[sandbox]'"
    return f"{python} -m pip install 'bradawl[sandbox]'"


def _has_package() -> bool:
    if not sys.platform.startswith("linux") or os.uname().machine not in _MACHINES:
        return False
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (OSError, ValueError):  # not glibc
        return False


def kernel_hints(read: Callable[[str], str] | None = None) -> Iterable[str]:
    """Kernel settings that keep bubblewrap from working for this user, each followed by the command to change it."""
    for name, is_in_the_way, what, wanted in _SWITCHES:
        try:
            text = (read or _read_switch)(name)
            value = int(text)
        except (OSError, ValueError):
            continue  # this kernel does not have the setting
        if is_in_the_way(value):
            yield what.format(value=value)
            yield f"  sudo sysctl -w {name}={wanted}"


def _read_switch(name: str) -> str:
    return Path("/proc/sys", *name.split(".")).read_text("utf-8")
