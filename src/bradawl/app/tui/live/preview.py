"""What a question is about: the command, the diff of an edit or the arguments, and what a yes would grant."""

from collections.abc import Callable
from typing import Final, NamedTuple

from bradawl.app.regular_files import read_regular
from bradawl.app.tui.question_text import (
    brief_text,
    destinations,
    granted_text,
    in_line,
    is_about_a_host,
    question_text,
    visible,
)
from bradawl.app.tui.render import code, diff
from bradawl.app.tui.render.cells import cut, wrap
from bradawl.app.tui.render.theme import Theme
from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.permissions import Question
from bradawl.safety.control_characters import escape

_READ_BYTES: Final = 200_000
_COMPARED: Final = 60_000
"""Characters of both texts up to which they are compared; of longer ones the new text is shown."""
_TITLE: Final = 90
_EDIT_KEYS: Final = frozenset({"file_path", "old_string", "new_string"})
_INEXACT: Final = "not word for word in the file, so blanks may differ, or the edit fails:"


class Preview(NamedTuple):
    """A question as it is shown."""

    title: str
    body: Callable[[Theme, int], list[str]]
    fixed: Callable[[Theme, int], list[str]]
    """What a yes would grant; it is shown below the text, also where that is cut."""
    foot: str
    whole: Callable[[Theme, int], list[str]]
    """All of it: a change as a diff, below it the rest of the call and what a yes would grant."""


def preview_of(question: Question) -> Preview:
    """The title, the text and the foot of a question."""
    arguments, _ = parse_arguments(question.call.raw_arguments)
    granted, brief = granted_text(question).splitlines(), brief_text(question).splitlines()

    drawn: dict[tuple[str, int], list[str]] = {}

    def body(theme: Theme, width: int) -> list[str]:
        key = (theme.name, width)  # drawn once: each frame asks for it, and files may change meanwhile
        if key not in drawn:
            drawn[key] = _what(question, arguments, theme, width)
        return drawn[key]

    def fixed(theme: Theme, width: int) -> list[str]:
        if brief != granted:  # one line each: the rest is in the whole text
            return [theme.paint(cut(line.strip(), width, theme.symbols.ellipsis), "dim") for line in brief]
        return [theme.paint(part, "dim") for line in granted for part in wrap(line.strip(), width)]

    def whole(theme: Theme, width: int) -> list[str]:
        found = _diff(question, arguments, theme, width) if arguments else None
        if found and (not found.lines or found.rest == arguments):
            found = None
        call = question_text(question, whole=True, rest=found.rest if found else None)
        below = [part for line in (*call.split("\n"), *granted) for part in wrap(line, width)]
        return [*found.lines, "", *below] if found else below

    return Preview(_title(question, arguments), body, fixed, _foot(question), whole)


def _title(question: Question, arguments: Arguments | None) -> str:
    name = in_line(question.call.name)
    if is_about_a_host(question):
        return f"Connect to {destinations(question)}?"
    if arguments is None:
        return f"Run {name}?"
    path = arguments.get("file_path")
    if isinstance(path, str):
        path = _short(path)
    if isinstance(path, str) and "old_string" in arguments:
        return f"Edit {in_line(path)}?"
    if isinstance(path, str) and "content" in arguments:
        return f"Write {in_line(path)}?"
    if edits := _edits(arguments):
        files = dict.fromkeys(edit.path for edit in edits)
        return f"Edit {in_line(_short(', '.join(files)))}?" if len(files) < 4 else f"Edit {len(files)} files?"
    return "Run this command?" if isinstance(arguments.get("command"), str) else f"Run {name}?"


def _short(name: str) -> str:
    """A name that leaves room for what is asked; the whole is in the text below the title."""
    return name if len(name) <= _TITLE else f"{name[: _TITLE // 3]}…{name[-_TITLE // 2 :]}"


def _what(question: Question, arguments: Arguments | None, theme: Theme, width: int) -> list[str]:
    if arguments is None:
        return wrap(escape(question.call.raw_arguments), width)
    if change := _diff(question, arguments, theme, width):
        return change.lines
    if isinstance(command := arguments.get("command"), str):
        return code.highlight(visible(command), "bash", theme, width)
    text = question_text(question).split("\n")[1:]
    return [part for line in text for part in wrap(line.strip(), width)]


class _Diff(NamedTuple):
    lines: list[str]
    rest: Arguments
    """The arguments of which the lines do not show all."""


def _diff(question: Question, arguments: Arguments, theme: Theme, width: int) -> _Diff | None:
    """What a call that edits or writes files would change; None for other calls."""
    if edits := _edits(arguments):
        return _Diff([line for edit in edits for line in _edit_lines(edit, theme, width)], _beside(arguments, "edits"))
    if not (change := _change(question, arguments)):
        return None
    if len(change.old) + len(change.new) > _COMPARED:
        warning = theme.paint("too long to be compared; the new text:", "warning")
        return _Diff([warning, *wrap(escape(change.new[:_COMPARED]), width)], arguments)
    path = str(arguments.get("file_path", ""))
    lines = diff.change_lines(escape(change.old), escape(change.new), theme, width, path=path)
    if not change.is_exact:
        lines = [theme.paint(cut(_INEXACT, width), "warning"), *lines]
    names = ("content",) if isinstance(arguments.get("content"), str) else ("old_string", "new_string")
    return _Diff(lines, _beside(arguments, *names))


def _beside(arguments: Arguments, *names: str) -> Arguments:
    """The arguments but those of these names; of several edits what is no text of them."""
    rest = {key: value for key, value in arguments.items() if key not in names}
    edits = arguments.get("edits") if "edits" in names else None
    others = [
        {key: value for key, value in each.items() if key not in _EDIT_KEYS}
        for each in (edits if isinstance(edits, list) else ())
    ]
    return {**rest, "edits": others} if any(others) else rest


class _Edit(NamedTuple):
    path: str
    old: str
    new: str


def _edits(arguments: Arguments) -> list[_Edit]:
    """The single edits of a call that makes several; none if it is another call, or not well-formed."""
    given = arguments.get("edits")
    if not isinstance(given, list):
        return []
    found = []
    for each in given:
        if not isinstance(each, dict):
            return []
        values = [each.get(name) for name in ("old_string", "new_string")]
        path = each.get("file_path", arguments.get("file_path"))
        if not isinstance(path, str) or not all(isinstance(value, str) for value in values):
            return []
        found.append(_Edit(path, str(values[0]), str(values[1])))
    return found


def _edit_lines(edit: _Edit, theme: Theme, width: int) -> list[str]:
    head = [theme.paint(line, "verb") for line in wrap(in_line(edit.path), width)]
    return [*head, *diff.change_lines(escape(edit.old), escape(edit.new), theme, width, path=edit.path)]


class _Change(NamedTuple):
    old: str
    new: str
    is_exact: bool = True
    """False: the file does not hold the old text as the call gives it."""


def _change(question: Question, arguments: Arguments) -> _Change | None:
    """The texts before and after a call that edits or writes a file: of the whole file where that can be told."""
    old, new, content = (arguments.get(name) for name in ("old_string", "new_string", "content"))
    if isinstance(content, str):
        return _Change(_text_of(question), content)
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    text = _text_of(question)
    times = -1 if arguments.get("replace_all") is True else 1
    is_exact = bool(old) and (text.count(old) == 1 or (times < 0 and old in text))
    if is_exact and 2 * len(text) + len(new) <= _COMPARED:
        return _Change(text, text.replace(old, new, times))
    return _Change(old, new, is_exact=is_exact or not text)


def _text_of(question: Question) -> str:
    """The text of the file that the call would write; empty if there is none, or it is no short text."""
    if len(question.request.effects.writes) != 1:
        return ""
    try:
        data = read_regular(question.request.effects.writes[0], _READ_BYTES + 1)
        return data.decode("utf-8") if len(data) <= _READ_BYTES else ""
    except (OSError, ValueError):
        return ""


def _foot(question: Question) -> str:
    grant = question.grant
    if is_about_a_host(question) or not question.request.effects.seal:
        return ""
    if grant.outside_sandbox:
        return "WITHOUT the sandbox"
    return "in the sandbox · " + ("with network" if grant.network else "no network")
