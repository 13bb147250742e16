"""The words that stand for a call on one line: what it does, and to what."""

import re
from typing import Final, Literal

from bradawl.app.rendering import main_argument, one_line
from bradawl.app.text_layout import cut
from bradawl.core.arguments import parse_arguments
from bradawl.core.tools import ToolSpec

CallState = Literal["running", "ok", "part failed", "error", "refused", "cancelled", "interrupted"]
VERB_CELLS: Final = 6
"""Cells of the longest verb; shorter ones are filled up, so that arguments are in one column."""
_VERBS: Final = {
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Edit",
    "multi_edit": "Edit",
    "bash": "Run",
    "bash_output": "Output",
    "bash_kill": "Stop",
    "glob": "Find",
    "grep": "Search",
    "web_fetch": "Fetch",
    "agent": "Agent",
    "ask_user": "Ask",
    "todo_write": "Todos",
    "exit_plan": "Plan",
}
_LONGEST_NAME: Final = 30
_MARKS: Final = re.compile(r"^#+\s+|\*\*|`")
"""Marks of Markdown that a heading may have."""


def verb_of(spec: ToolSpec) -> str:
    """What a call of the tool does, in one word; the name of a tool that is not bradawl's own."""
    return _VERBS.get(spec.name) or cut(one_line(spec.name) or "?", _LONGEST_NAME)


def shows_markdown(spec: ToolSpec) -> bool:
    """Whether the argument that stands for a call is a text in Markdown, of which one line shows the heading."""
    return spec.shows == ("plan",)


def call_argument(spec: ToolSpec, raw_arguments: str) -> str:
    """What stands for a call's arguments, on one line: `total in shop`."""
    arguments, _ = parse_arguments(raw_arguments)
    if arguments is None:
        return one_line(raw_arguments)
    main = main_argument(arguments, spec.shows)
    if shows_markdown(spec):
        main = _MARKS.sub("", main.strip().partition("\n")[0])
    main = one_line(main)
    path = arguments.get("path")
    is_inside = spec.shows == ("pattern",) and isinstance(path, str) and path
    return f"{main} in {one_line(str(path))}" if is_inside else main


def call_phrase(spec: ToolSpec, raw_arguments: str) -> str:
    """The call in a list of several: `Read app.py`."""
    return f"{verb_of(spec)} {call_argument(spec, raw_arguments)}".rstrip()
