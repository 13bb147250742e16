"""Where bradawl finds the programs that it starts on its own account: git, rg, bash, bwrap."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bradawl.core.effects import is_within
from bradawl.safety.trusted_programs import TrustedPrograms, trusted_programs

if TYPE_CHECKING:
    from bradawl.app.build import Place


def programs_for(environment: Mapping[str, str], place: "Place") -> TrustedPrograms:
    """The finder of one agent: its PATH without the workspace and bradawl's own folders."""
    return trusted_programs(environment, (*place.roots, *place.own, place.cache), sys.prefix)


def search_path(environment: Mapping[str, str], programs: TrustedPrograms) -> str:
    """PATH for the model's commands. If it is empty bash searches the working directory."""
    return environment.get("PATH") or programs.search_path


def find_ripgrep(programs: TrustedPrograms | None = None) -> str | None:
    """`rg` on the PATH, else the one installed beside this program; never one of the workspace."""
    if programs is None:
        programs = trusted_programs(os.environ, (_working_directory(),), sys.prefix)
    return programs.find("rg") or programs.beside("rg")


def for_key_command(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command that no sandbox holds: no program or library of the working directory."""
    here, home = _working_directory(), environment.get("HOME", "")
    untrusted = () if home and is_within(os.path.realpath(home), here) else (here,)
    programs = trusted_programs(environment, untrusted, sys.prefix)
    return {**programs.without_foreign_libraries(dict(environment)), "PATH": programs.search_path}


def _working_directory() -> str:
    try:
        return os.path.realpath(os.curdir)
    except OSError:  # it has been removed
        return ""
