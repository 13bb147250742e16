"""Paths of the programs a run starts: git, rg, bash and bwrap. `safety.trusted_programs` has the rules."""

import os
import sys
from collections.abc import Mapping, Sequence

from bradawl.core.effects import is_within
from bradawl.safety.trusted_programs import TrustedPrograms, trusted_programs


def programs_for(environment: Mapping[str, str], untrusted: Sequence[str]) -> TrustedPrograms:
    """The programs on PATH, except in the `untrusted` folders: the workspace and bradawl's own."""
    return trusted_programs(environment, tuple(untrusted), sys.prefix)


def search_path(environment: Mapping[str, str], programs: TrustedPrograms) -> str:
    """PATH for the model's commands: never empty, because bash would then search the working directory."""
    return environment.get("PATH") or programs.search_path


def find_ripgrep(programs: TrustedPrograms | None = None) -> str | None:
    """Path of `rg`: on PATH, else the one installed with bradawl; never one in the workspace."""
    if programs is None:
        programs = trusted_programs(os.environ, (_working_directory(),), sys.prefix)
    return programs.find("rg") or programs.beside("rg")


def key_command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a key command, which runs unsandboxed: nothing in it comes from the working directory."""
    here, home = _working_directory(), environment.get("HOME", "")
    untrusted = () if home and is_within(os.path.realpath(home), here) else (here,)
    programs = trusted_programs(environment, untrusted, sys.prefix)
    return {**programs.without_foreign_libraries(dict(environment)), "PATH": programs.search_path}


def _working_directory() -> str:
    try:
        return os.path.realpath(os.curdir)
    except OSError:  # it has been removed
        return ""
