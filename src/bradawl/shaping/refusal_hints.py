"""Texts of calls that were refused for lack of a user, and how such a call could be written."""

import re
from typing import Final

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import ToolCall

_CD: Final = r"(?:^|[;&|\n])\s*cd\s+([^\s;&|<>()]+)\s*(?:;|\n)\s*([^\s;&|][^;&|\n]*)"
"""A `cd` whose failure does not keep the next command from running."""
_LONGEST: Final = 60
_GO_ON: Final = "Do what you can without, and say what is left undone."


def without_user(call: ToolCall, needed: str, cwd: str, *, is_first: bool) -> str:
    """Why the call was refused, for the model. `is_first`: it is the first one of its reply."""
    text = f"it needs permission ({needed}), and no user is present to give it."
    advice = after_uncertain_cd(call.raw_arguments, needed, cwd)
    return " ".join(filter(None, (text, advice, _GO_ON * is_first)))


def after_uncertain_cd(raw_arguments: str, reason: str, cwd: str) -> str:
    """How to write a shell line that is refused for what it would do if its `cd` failed; empty for any other call."""
    if "cd " not in raw_arguments or f"{cwd}/" not in reason:
        return ""
    arguments, _ = parse_arguments(raw_arguments)
    command = arguments.get("command") if arguments else None
    if not isinstance(command, str) or not (found := re.search(_CD, command)):
        return ""
    next_command = found[2].strip()[:_LONGEST]
    return f"If the cd failed, the rest would run in {cwd}: write `cd {found[1]} && {next_command}`."
