"""The other blocks of a conversation: prompts, thinking, notes, notices, todos, sub-agents, jobs, the end of a turn."""

from signal import SIGTERM
from typing import Final, Literal

from bradawl.app.durations import duration_text
from bradawl.app.rendering import compaction_text, one_line, retry_line, token_count, usage_text
from bradawl.app.tui.render.cells import cut, shown, wrap_behind
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.folding import more_line
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme
from bradawl.app.tui.turn_end import TurnEnd
from bradawl.core.deltas import RetryScheduled
from bradawl.core.events import Compacted, Todo, TurnReason
from bradawl.core.usage import Usage
from bradawl.shaping.program_output import ended_how

NoticeKind = Literal["notice", "warning", "error"]
_TODO_ROLES: Final[dict[str, Role]] = {"completed": "dim", "in_progress": "verb", "pending": "plain"}
_ENDINGS: Final[dict[TurnReason, str]] = {
    "completed": "done",
    "error": "failed",
    "steps": "stopped: the limit of steps is reached",
    "budget": "stopped: the budget is used up",
    "time": "stopped: the time is over",
    "limit": "stopped: a limit is reached",
    "refused": "the model refused",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}
_DROPPED_FIRST: Final = ("steps", "out", "in", "cost")
"""Facts about a turn that a narrow terminal does not show, in this order."""


def prompt_lines(text: str, theme: Theme, width: int, *, limit: int | None = None) -> list[str]:
    """The prompt in the accent colour, wrapped behind its symbol; of a long one the first and last lines."""
    painted = theme.paint(shown(text.strip("\n")), "accent")
    lines = wrap_behind(theme.paint(theme.symbols.prompt, "accent") + " ", painted, width)
    if limit is None or len(lines) <= max(3, limit):
        return lines
    head = (max(3, limit) - 1 + 1) // 2
    tail = max(3, limit) - 1 - head
    return [*lines[:head], more_line(len(lines) - head - tail, theme, width, indent="  "), *lines[len(lines) - tail :]]


def thinking_line(seconds: float, tokens: int, theme: Theme, width: int) -> str:
    """`∴ thought for 12s · 340 tokens`; without tokens if their number is 0."""
    size = f" {theme.symbols.dot} {token_count(tokens)} tokens" if tokens else ""
    return _dim(f"{theme.symbols.thought} thought for {duration_text(seconds)}{size}", theme, width)


def thinking_lines(text: str, theme: Theme, width: int) -> list[str]:
    """The whole text of the model's thinking."""
    painted = theme.paint(shown(text.strip("\n")), "thinking")
    return wrap_behind(theme.paint(theme.symbols.thought, "thinking") + " ", painted, width)


def notice_lines(text: str, theme: Theme, width: int, *, kind: NoticeKind = "notice") -> list[str]:
    """`! no sandbox here: …`, whole."""
    role: Role = "dim" if kind == "notice" else kind
    symbol = theme.symbols.error if kind == "error" else theme.symbols.notice
    return wrap_behind(theme.paint(symbol, role) + " ", theme.paint(shown(text.strip("\n")), role), width)


def note_queued_line(text: str, theme: Theme, width: int) -> str:
    """`↳ queued: "check the README too"`."""
    return _quoted(f"{theme.symbols.note} queued: ", text, "", theme, width)


def note_delivered_line(text: str, step: int, theme: Theme, width: int) -> str:
    """`↳ "check the README too" · seen in step 5`."""
    return _quoted(f"{theme.symbols.note} ", text, f" {theme.symbols.dot} seen in step {step}", theme, width)


def turn_end_line(end: TurnEnd, theme: Theme, width: int) -> str:
    """`✓ 4.1s · 2 steps · 3.5k in · 23 out · $0.12`; a narrow terminal shows fewer of the facts."""
    symbol, role = _ending(end.reason, theme)
    facts, dot = end.facts(), f" {theme.symbols.dot} "
    for name in (*(("cost",) if end.cost is None else ()), *_DROPPED_FIRST):
        if cells_of(dot.join(facts.values())) + 2 <= width:
            break
        facts.pop(name, None)
    text = cut(f"{symbol} {dot.join(facts.values())}", width, theme.symbols.ellipsis)
    return theme.paint(text[:1], "dim" if role == "ok" else role) + theme.paint(text[1:], "dim")


def todo_lines(todos: tuple[Todo, ...], before: tuple[Todo, ...], theme: Theme, width: int) -> list[str]:
    """The whole list if there was none before; later what changed of it, below a line with the count."""
    if not todos:
        return [_dim("no todos left", theme, width)] if before else []
    lines = [line for todo in todos for line in _todo(todo, theme, width)]
    if not before:
        return lines
    done = sum(todo.status == "completed" for todo in todos)
    known = {todo.content: todo.status for todo in before}
    changed = [todo for todo in todos if known.get(todo.content) != todo.status]
    gone = [todo for todo in before if todo.content not in {each.content for each in todos}]
    if len(changed) + len(gone) >= len(todos):
        return lines
    head = _dim(f"todos: {done} of {len(todos)} completed", theme, width)
    rest = [line for todo in changed for line in _todo(todo, theme, width)]
    removed = [_dim(f"{theme.symbols.refused} {one_line(todo.content)} (removed)", theme, width) for todo in gone]
    return [head, *rest, *removed] if rest or removed else []


def agent_started_line(name: str, kind: str, prompt: str, theme: Theme, width: int) -> str:
    """`agent-1 (explore): find the callers of total`, behind the symbol of what runs."""
    head = f"{theme.paint(theme.symbols.running, 'accent')} {theme.paint(one_line(name), 'verb')}"
    text = theme.paint(f" ({one_line(kind)}): {one_line(prompt)}", "dim")
    return cut(head + text, width, theme.symbols.ellipsis)


def agent_step_line(name: str, calls: str, theme: Theme, width: int) -> str:
    """`  agent-1: Read app.py, Search total`."""
    return _dim(f"  {one_line(name)}: {one_line(calls)}", theme, width)


def agent_ended_line(
    name: str, reason: TurnReason, steps: int, usage: Usage | None, cost: float | None, theme: Theme, width: int
) -> str:
    """`✓ agent-1 done · 4 steps, 12.0k tokens in, 300 out, $0.01`."""
    symbol, role = _ending(reason, theme)
    head = f"{theme.paint(symbol, role)} {theme.paint(one_line(name), 'verb')}"
    text = f" {_ENDINGS[reason]} {theme.symbols.dot} {usage_text(steps, usage or Usage(), cost)}"
    return cut(head + theme.paint(text, "dim" if reason == "completed" else role), width, theme.symbols.ellipsis)


def job_started_line(job_id: str, command: str, theme: Theme, width: int) -> str:
    """`» job-1 in the background: npm run dev`."""
    return _dim(f"{theme.symbols.job} {one_line(job_id)} in the background: {one_line(command)}", theme, width)


def job_ended_line(job_id: str, exit_code: int | None, command: str, theme: Theme, width: int) -> str:
    """`» job-1 ended with exit code 1: npm run dev`; one that SIGTERM ended was meant to end."""
    how = "and its exit code is unknown" if exit_code is None else ended_how(exit_code)
    behind = f": {one_line(command)}" if command else ""
    text = cut(f"{theme.symbols.job} {one_line(job_id)} ended {how}{behind}", width, theme.symbols.ellipsis)
    return theme.paint(text, "warning" if exit_code not in (0, None, -SIGTERM) else "dim")


def compaction_lines(event: Compacted, theme: Theme, width: int, prefix: str = "") -> list[str]:
    """`≡ the conversation was compacted (…): ~61.2k tokens of messages became ~33.0k`."""
    text = theme.paint(prefix + compaction_text(event), "dim")
    return wrap_behind(theme.paint(theme.symbols.compacted, "dim") + " ", text, width)


def retry_lines(retry: RetryScheduled, theme: Theme, width: int) -> list[str]:
    """`↻ trying again in 2.0 s (attempt 1): …`, whole."""
    head = theme.paint(theme.symbols.retry, "warning") + " "
    return wrap_behind(head, theme.paint(retry_line(retry), "warning"), width)


def _todo(todo: Todo, theme: Theme, width: int) -> list[str]:
    role = _TODO_ROLES[todo.status]
    symbol = theme.symbols.of_todo(todo.status)
    return wrap_behind(theme.paint(symbol, role) + " ", theme.paint(one_line(todo.content), role), width)


def _ending(reason: TurnReason, theme: Theme) -> tuple[str, Role]:
    match reason:
        case "completed":
            return theme.symbols.ok, "ok"
        case "error":
            return theme.symbols.error, "error"
        case _:
            return theme.symbols.stopped, "warning"


def _quoted(head: str, text: str, tail: str, theme: Theme, cells: int) -> str:
    """`head "text" tail` on one line; of a long text the beginning, so that the tail is seen."""
    room = max(1, cells - len(head) - len(tail) - 2)
    return _dim(f'{head}"{cut(one_line(text), room, theme.symbols.ellipsis)}"{tail}', theme, cells)


def _dim(text: str, theme: Theme, width: int) -> str:
    return theme.paint(cut(text, width, theme.symbols.ellipsis), "dim")
