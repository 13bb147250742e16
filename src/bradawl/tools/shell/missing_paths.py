"""Explains a relative path that a command did not find because an earlier `cd` had changed the working directory."""

import re
from posixpath import isabs, join, normpath
from typing import Final

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import CommandResult
from bradawl.safety.control_characters import in_remark
from bradawl.tools.shell.network_errors import errors_in

_LOOKED_AT: Final = 6_000
_MOST_PATHS: Final = 20
_LONGEST_PATH: Final = 300
_MISSING: Final = (
    r"(?:'([^'\n]+)'|\u2018([^\u2019\n]+)\u2019|([^\s:'\"`\u2019]+)): (?:\[Errno 2\] )?"
    r"No such file or directory(?![:,] )"
    r"|No such file or directory(?: \(os error 2\))?[:,] '([^'\n]+)'|No such file or directory, \w+ '([^'\n]+)'"
    r"|file or directory not found: (\S+)|No rule to make target '([^'\n]+)'|pathspec '([^'\n]+)' did not match"
    r"|Cannot find module '([^'\n]+)'|no such file or directory, \w+ '([^'\n]+)'"
    r"|(?m:^([^\s:]+): no such file or directory$)"
)


async def note_on(command: str, result: CommandResult, cwd: str, context: CallContext) -> tuple[str, ...]:
    """A line with the working directory if a failed command did not find a relative path, and the path from the folder
    of the project if it is there. None for a line that has a `cd` of its own, whose errors may come from elsewhere.
    """
    if re.search(r"\b(?:cd|pushd|popd)\b", command):
        return ()
    errors = errors_in(command, result.stdout[-_LOOKED_AT:], result.stderr[-_LOOKED_AT:])
    paths = tuple(dict.fromkeys(filter(None, (_relative(found, cwd) for found in re.finditer(_MISSING, errors)))))
    if not paths:
        return ()
    where = f"the working directory is {in_remark(context.name_of(cwd))}, since an earlier cd"
    for path in paths[:_MOST_PATHS]:
        if await _is_there(normpath(join(context.project, path)), context):
            return (f"[{where}; {in_remark(path)} is in {in_remark(context.project)}]",)
    return (f"[{where}]",)


def _relative(found: re.Match[str], cwd: str) -> str:
    """The path as it was probably given; empty if it is not relative. Some programs name it with the directory."""
    path = next(filter(None, found.groups()), "").removeprefix(f"{cwd.rstrip('/')}/")
    return "" if isabs(path) or len(path) > _LONGEST_PATH else path


async def _is_there(path: str, context: CallContext) -> bool:
    if not context.project or not is_within(path, context.project):
        return False
    try:
        await context.files.list(path, 0)
    except ToolError:
        return False
    return True
