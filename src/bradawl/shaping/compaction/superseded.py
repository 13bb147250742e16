"""Results that a later one has replaced: a file that was read again, a folder that was listed again."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.events import Shortened
from bradawl.core.messages import Assistant, Message, ToolCall, ToolResult, ToolResults, calls_of
from bradawl.shaping.compaction.record import Key
from bradawl.shaping.compaction.snip import text_of_result

_READ: Final = "read_file"
_LISTINGS: Final = frozenset({"glob", "grep"})
_SHELL: Final = "bash"
_LOOKS: Final = r"(?:ls|tree|find|cat|pwd|git (?:status|diff|log|branch))\b[^|&;<>`$()\n]*"
"""Commands that only look; the same one again replaces the older result."""
_MOVES: Final = r"\b(?:cd|pushd|popd)\b"
"""A command that may change the working directory, after which a relative path is another one."""
_STUB: Final = r"\(?.{0,400}\b(?:has|have) not changed\b"
"""A result that refers to an earlier one instead of repeating it."""
_WORTH: Final = 200
"""Characters from which a result is reduced."""


class _Seen(NamedTuple):
    key: Key
    subjects: frozenset[str]
    """What it shows, such as a file or a command; a later result with all of them replaces it."""
    whole: frozenset[str]
    """What it shows completely."""
    size: int


def superseded(messages: Sequence[Message], end: int) -> list[Shortened]:
    """A line for each result before message `end` that a later one has replaced."""
    seen = list(_results(messages))
    later: set[str] = set()
    found: list[Shortened] = []
    for each in reversed(seen):
        if each.subjects and each.subjects <= later and each.key[0] < end and each.size > _WORTH:
            names = ", ".join(sorted(name.partition(" ")[2] for name in each.subjects))[:200]
            found.append(Shortened(*each.key, f"[replaced by a later result: {names}]"))
        later |= each.whole
    return found[::-1]


def _results(messages: Sequence[Message]) -> Iterator[_Seen]:
    moves = 0
    for number, message in enumerate(messages[1:], 1):
        before = messages[number - 1]
        if not isinstance(message, ToolResults) or not isinstance(before, Assistant):
            continue
        for place, (call, result) in enumerate(zip(calls_of(before), message.results, strict=False)):
            if call.id == result.call_id:
                moves += call.name == _SHELL and bool(re.search(_MOVES, call.raw_arguments))
                subjects, whole = _subjects(call, result, moves)
                yield _Seen((number, place), subjects, whole, len(text_of_result(result)))


def _subjects(call: ToolCall, result: ToolResult, moves: int) -> tuple[frozenset[str], frozenset[str]]:
    arguments = parse_arguments(call.raw_arguments)[0]
    nothing = frozenset[str]()
    if arguments is None or result.is_error:
        return nothing, nothing
    if call.name == _READ:
        return _read(arguments, result, moves)
    if call.name in _LISTINGS or (call.name == _SHELL and re.fullmatch(_LOOKS, str(arguments.get("command", "")))):
        subject = frozenset({f"{call.name}@{moves} {_key(arguments)}"})
        return subject, subject
    return nothing, nothing


def _read(arguments: Arguments, result: ToolResult, moves: int) -> tuple[frozenset[str], frozenset[str]]:
    paths = arguments.get("file_paths")
    names = list(map(str, cast("list[object]", paths))) if isinstance(paths, list) else []
    if path := arguments.get("file_path"):
        names.append(str(path))
    subjects = frozenset(f"file@{0 if name.startswith('/') else moves} {name}" for name in names)
    text = text_of_result(result)
    is_whole = not (arguments.keys() & {"offset", "limit"}) and not re.match(_STUB, text)
    # Of a long file the tool shows a part, and says so in its first line.
    return subjects, subjects if is_whole and not text.startswith("[lines ") else frozenset[str]()


def _key(arguments: Arguments) -> str:
    return " ".join(str(value) for name, value in sorted(arguments.items()) if name != "description")
