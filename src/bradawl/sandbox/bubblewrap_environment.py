"""Environment of programs in bubblewrap, and the folder of their caches."""

import os
from pathlib import Path

from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import Program, SandboxLayout
from bradawl.sandbox.environment import git_variables, sandbox_environment
from bradawl.sandbox.network.session_network import is_proxied
from bradawl.sandbox.network.variables import proxy_of, proxy_variables
from bradawl.sandbox.path_translation import TEMPORARY, PathTranslator
from bradawl.sandbox.process_limit import PROCESS_LIMIT, PROCESSES
from bradawl.sandbox.tool_caches import cache_variables


def program_environment(layout: SandboxLayout, names: PathTranslator, program: Program, grant: Grant) -> dict[str, str]:
    """The variables of a program; `names` translates its working directory."""
    exported = frozenset(program.exported)
    held = sandbox_environment(program.environment, exported, layout.kept_variables)
    if is_proxied(program, grant):
        held |= proxy_variables(held, exported, is_asked=not grant.network)
    held |= git_variables(held, proxy_of(held))
    held["PWD"] = names.sandbox_path(names.host_path(program.cwd))
    cache = made_cache(layout.cache, grant) or f"{TEMPORARY}/.cache"
    caches = cache_variables(cache, layout.home, held, os.path.lexists, network=grant.network)
    if os.geteuid() == 0:  # tar run by root would try to give files to other users, which this namespace does not know
        caches["TAR_OPTIONS"] = "--no-same-owner"
    return {**caches, **held, **({PROCESS_LIMIT: str(PROCESSES)} if "BASH_ENV" in held else {})}


def made_cache(cache: str, grant: Grant) -> str:
    """Folder for tool caches; empty if nothing may be written or it can't be created."""
    if not cache or not grant.writable:
        return ""
    try:
        if not os.path.isdir(cache):  # noqa: PTH112 - a part of the time of `mkdir`
            Path(cache).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return ""
    return cache
