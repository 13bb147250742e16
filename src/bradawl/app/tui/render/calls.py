"""Tool calls: one line for each, and below it what the call showed, folded or open."""

import re
from typing import Final

from bradawl.app.call_details import Shown
from bradawl.app.call_words import VERB_CELLS, CallState, call_argument, shows_markdown, verb_of
from bradawl.app.durations import duration_text
from bradawl.app.refusal_reasons import shown_reason
from bradawl.app.rendering import command_error, command_output, main_argument, one_line
from bradawl.app.tui.render.cells import chop_spans, cut, pad, painted, wrap
from bradawl.app.tui.render.cells import shown as printable
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.code import highlight
from bradawl.app.tui.render.diff import unified_lines
from bradawl.app.tui.render.folding import OPENS, first_lines, last_rows
from bradawl.app.tui.render.markdown import markdown_lines
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme
from bradawl.core.arguments import parse_arguments
from bradawl.core.events import Outcome
from bradawl.core.messages import text_of
from bradawl.core.tools import ToolSpec
from bradawl.safety.control_characters import clean

INDENT: Final = "    "
_STATE_ROLES: Final[dict[CallState, Role]] = {
    "running": "accent",
    "ok": "ok",
    "part failed": "warning",
    "error": "error",
    "refused": "warning",
    "cancelled": "dim",
    "interrupted": "warning",
}
_CUT: Final = r"(?m)^\[\.\.\. (characters .*, )?lines ([\d,]+)-([\d,]+) of [\d,]+ cut \.\.\.\]$"
_CUT_SOMEWHERE: Final = r"(?m)^\[(?:\.\.\. cut from line |[\d,]+ (?:of [\d,]+ )?bytes(?:,| in) )"
_ALIGNED: Final = 72
"""Column up to which a detail is moved to the right."""
_WITH_HINT: Final = 30
"""Cells of an argument that is cut from which there is room to say how to see the rest."""
_SUMMARY: Final = re.compile(r"(?:Edited|Wrote [^\n]* to) ([^\n]*): [^\n]*(?:\n|$)")


def call_line(
    spec: ToolSpec,
    raw_arguments: str,
    theme: Theme,
    width: int,
    *,
    state: CallState,
    detail: str = "",
    elapsed_s: float | None = None,
) -> str:
    """`✓ Read   app.py, test_app.py     11 lines` in at most `width` cells."""
    symbol = theme.paint(theme.symbols.of_call(state), _STATE_ROLES[state])
    verb = theme.paint(pad(verb_of(spec), VERB_CELLS), "verb")
    head = f"{symbol} {verb} "
    tail = _tail(spec, theme, state, detail, elapsed_s)
    room = width - cells_of(head) - (cells_of(tail) + 2 if tail else 0)
    if room < 1:
        return cut(head + tail, width, theme.symbols.ellipsis)
    argument = _cut_argument(spec, call_argument(spec, raw_arguments), room, theme)
    if not tail:
        return cut((head + argument).rstrip(), width)
    is_right = spec.result != "diff"
    gap = min(width, _ALIGNED) - cells_of(head) - cells_of(argument) - cells_of(tail) if is_right else 2
    return f"{head}{argument}{' ' * max(2, gap)}{tail}"


def call_block(
    spec: ToolSpec, raw_arguments: str, shown: Shown, outcome: Outcome, theme: Theme, width: int, *, limit: int | None
) -> list[str]:
    """The lines below a call's line: its diff, the last lines of its output, or why it failed; at most `limit`.

    Without a limit everything: the whole arguments where the line can't show them, and the whole result.
    """
    inner = max(1, width - len(INDENT))
    lines = _whole_argument(spec, raw_arguments, theme, width) if limit is None else []
    lines += _result(spec, shown, outcome, theme, inner, limit)
    if width <= len(INDENT) + 1:
        return [cut(line, width) for line in lines]
    return [INDENT + line if line else "" for line in lines]


def _result(spec: ToolSpec, shown: Shown, outcome: Outcome, theme: Theme, width: int, limit: int | None) -> list[str]:
    text = clean(text_of(shown))
    if outcome == "ok" and spec.result == "diff":
        if "\n@@ " not in text:
            return []
        summary = None if "\nEdited " in text else _SUMMARY.match(text)  # the call's line says it of one file
        path = summary[1] if summary else ""
        diff = text[summary.end() if summary else 0 :].strip("\n")
        return unified_lines(diff, theme, width, path=path, limit=limit)
    if spec.result == "output" and outcome in ("ok", "error") and command_error(shown):
        output = text.split("\n") if limit is None else command_output(shown)
        rows = [_chopped([line], theme, width, "dim" if outcome == "ok" else "plain") for line in output]
        if limit is None:
            return [row for line in rows for row in line]
        return last_rows(rows, limit, theme, width, _left_out(text))
    if outcome == "ok":
        return _chopped(text.split("\n"), theme, width, "dim") if limit is None and spec.result != "state" else []
    role: Role = "error" if outcome == "error" else "warning"
    text = text if limit is None else shown_reason(outcome, shown)
    lines = [theme.paint(line, role) for part in text.strip("\n").split("\n") for line in wrap(part, width)]
    return lines if limit is None else first_lines([line for line in lines if line], limit, theme, width)


def _left_out(text: str) -> int | None:
    """How many lines of a command's output are missing in its result; None if that is not known."""
    if re.search(_CUT_SOMEWHERE, text):
        return None
    if (cut_lines := re.search(_CUT, text)) is None:
        return 0
    first, last = (int(number.replace(",", "")) for number in cut_lines.group(2, 3))
    return last - first + (-1 if cut_lines[1] else 1)  # parts of the first and the last one may be there


def _whole_argument(spec: ToolSpec, raw_arguments: str, theme: Theme, cells: int) -> list[str]:
    """The main argument with its lines, if the call's line does not show all of it."""
    arguments, _ = parse_arguments(raw_arguments)
    main = raw_arguments if arguments is None else main_argument(arguments, spec.shows)
    if "\n" not in main.strip("\n") and cells_of(printable(main)) <= cells - 40:
        return []
    inner = max(1, cells - len(INDENT))
    if shows_markdown(spec):
        return [*markdown_lines(clean(main), theme, inner), ""]
    return [*highlight(clean(main).strip("\n"), "bash" if spec.result == "output" else "", theme, inner), ""]


def _chopped(lines: list[str], theme: Theme, width: int, role: Role) -> list[str]:
    code = theme.code(role)
    return [painted(part) for line in lines for part in chop_spans([(printable(line), code)], width)]


def _tail(spec: ToolSpec, theme: Theme, state: CallState, detail: str, elapsed_s: float | None) -> str:
    """What is behind the argument: the detail, the time, and the state where the symbol alone could be missed."""
    if state not in ("running", "ok", "part failed") and spec.result != "output":
        detail = ""  # the result is a reason, which is below the line
    parts = [one_line(detail)] if detail else []
    if state in ("refused", "cancelled", "interrupted") and not detail:
        parts.append(state)
    if elapsed_s is not None:
        parts.append(duration_text(elapsed_s))
    if spec.result == "diff" and (counts := re.fullmatch(r"(\+\d+) -(\d+)", detail)):
        parts[0] = f"{theme.paint(counts[1], 'ok')} {theme.paint(theme.symbols.minus + counts[2], 'error')}"
        return theme.paint(f" {theme.symbols.dot} ", "dim").join(parts)
    role: Role = "dim" if state in ("running", "ok") else _STATE_ROLES[state]
    return theme.paint(f" {theme.symbols.dot} ".join(parts), role)


def _cut_argument(spec: ToolSpec, text: str, room: int, theme: Theme) -> str:
    if cells_of(text) <= room:
        return text
    is_path = bool(spec.shows) and spec.shows[0].endswith(("file_path", "path"))
    if is_path and ", " not in text and (short := _short_path(text, room, theme)):
        return short
    symbol = theme.symbols.ellipsis
    return cut(text, room, f"{symbol} ({OPENS})" if room >= _WITH_HINT else symbol)


def _short_path(path: str, room: int, theme: Theme) -> str:
    """The last folders and the name of a path; empty if the name alone does not fit."""
    parts = path.split("/")
    for first in range(1, len(parts)):
        short = f"{theme.symbols.ellipsis}/{'/'.join(parts[first:])}"
        if cells_of(short) <= room:
            return short
    return ""
