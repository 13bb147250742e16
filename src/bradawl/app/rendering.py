"""Turns calls, results, todos, failures, warnings and usage into cleaned lines of text, for every front end."""

import re
from typing import Final

from bradawl.app.symbols import UNICODE, Symbols
from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.deltas import Notice, RetryScheduled
from bradawl.core.errors import Failure
from bradawl.core.events import Compacted, Todo
from bradawl.core.messages import Assistant, Document, Image, Refusal, Text, text_of
from bradawl.core.tools import ToolSpec
from bradawl.core.usage import Usage
from bradawl.safety.control_characters import clean
from bradawl.shaping.missing_changes import argument_texts

DEFAULT_WIDTH: Final = 100
_MAIN_ARGUMENTS: Final = ("command", "file_path", "path", "file_paths", "pattern", "url", "query", "prompt", "name")
_TIERS: Final = {
    "snip": "long results shortened",
    "summarise": "old part summarised",
    "collapse": "reduced to the latest",
    "economy": "repeated results left out",
}
_TODOS_SHOWN: Final = 20
_ENDING: Final = r"(?m)^\[(exit code \d+|timed out after \d+ s)\b(?:\] \((ended by [^)]+)\))?.*$"
_STDERR: Final = "[stderr]"
_SHELL: Final = r"^(?:/\S*/)?bash: (?:line \d+: )?"
_OWN_WORDS: Final = r"^(\(no output\)|\[\.\.\. .* cut \.\.\.\]|\[stderr\])$"


def call_line(spec: ToolSpec, raw_arguments: str, width: int = DEFAULT_WIDTH) -> str:
    """`name(main argument)` on one line of at most `width` characters."""
    arguments, _ = parse_arguments(raw_arguments)
    shown = raw_arguments if arguments is None else main_argument(arguments, spec.shows)
    return cut(f"{one_line(spec.name) or '?'}({one_line(shown)})", width, end="...)")


def main_argument(arguments: Arguments, shows: tuple[str, ...] = ()) -> str:
    """The argument a tool declares to show, else one with a usual name, else the first text."""
    for key in (*shows, *_MAIN_ARGUMENTS):
        if shown := argument_texts(arguments, key):
            return ", ".join(shown)
    return next((value for value in arguments.values() if isinstance(value, str)), "")


def todo_lines(todos: tuple[Todo, ...], width: int = DEFAULT_WIDTH, symbols: Symbols = UNICODE) -> list[str]:
    """One line for each todo; a long list begins at its first open todo."""
    if not todos:
        return ["no todos left"]
    first = next((place for place, todo in enumerate(todos) if todo.status != "completed"), 0)
    start = max(0, min(first - 1, len(todos) - _TODOS_SHOWN))
    shown = todos[start : start + _TODOS_SHOWN]
    lines = [cut(todo_line(todo, symbols), width) for todo in shown]
    before = [f"... {start} more"] if start else []
    after = len(todos) - start - len(shown)
    return [*before, *lines, *([f"... {after} more"] if after else [])]


def todo_line(todo: Todo, symbols: Symbols = UNICODE) -> str:
    """`☑ what was to do`, on one line."""
    return f"{symbols.of_todo(todo.status)} {one_line(todo.content)}"


def todos_line(todos: tuple[Todo, ...], width: int = DEFAULT_WIDTH) -> str:
    """The number of completed todos and the current one, on one line."""
    done = sum(todo.status == "completed" for todo in todos)
    now = next((f", now: {one_line(todo.content)}" for todo in todos if todo.status == "in_progress"), "")
    return cut(f"todos: {done} of {len(todos)} completed{now}", width)


def one_line(text: str) -> str:
    """Cleaned text with every run of white space as one space."""
    return " ".join(clean(text).split())


def cut(text: str, width: int, end: str = "...") -> str:
    """`text`, or its beginning and `end`, in at most `width` characters."""
    return text if len(text) <= width else text[: max(0, width - len(end))] + end


def command_error(shown: tuple[Text | Image | Document, ...], width: int = DEFAULT_WIDTH) -> str:
    """How a command failed, and the output line most likely to say why; empty if it is not a command's result."""
    text = clean(text_of(shown))
    ending = _last_ending(text)
    if ending is None:
        return ""
    output, marked, errors = text[: ending.start()].rpartition(f"{_STDERR}\n")
    words = _said(errors if marked else text[: ending.start()]) or _said(output)
    line = re.sub(_SHELL, "", one_line(words[-1])) if words else ""
    how = ending[2] or ending[1]
    return cut(f"{how}: {line}" if line else how, width)


def command_output(shown: tuple[Text | Image | Document, ...]) -> list[str]:
    """The lines that a command printed, without those that the tool added; stderr comes last."""
    text = clean(text_of(shown))
    ending = _last_ending(text)
    return _said(text if ending is None else text[: ending.start()])


def _last_ending(text: str) -> re.Match[str] | None:
    """The last line that says how a command ended; the command may have printed a similar one before."""
    return next(reversed(list(re.finditer(_ENDING, text))), None)


def _said(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not re.match(_OWN_WORDS, line)]


def retry_line(retry: RetryScheduled) -> str:
    """When and why a request is repeated; advice only the first time."""
    seconds = f"{retry.delay_s:.1f}"
    when = "now" if seconds == "0.0" else f"in {seconds} s"
    attempt = f" (attempt {retry.attempt})" if retry.attempt else ""
    why = str(retry.failure) if retry.attempt <= 1 else retry.failure.message
    return f"trying again {when}{attempt}: {one_line(why)}"


def notice_line(notice: Notice) -> str:
    """`note: ` and the warning."""
    return f"note: {one_line(notice.text)}"


def failure_text(failure: Failure | None) -> str:
    """The failure and its advice, on one line."""
    return one_line(str(failure)) if failure else "The turn ended with an error."


def refusal_text(reply: Assistant | None) -> str:
    """The text of the reply's refusal parts; empty if there are none."""
    return "" if reply is None else "".join(part.text for part in reply.parts if isinstance(part, Refusal))


def usage_text(steps: int, usage: Usage, cost: float | None, *, says_unknown_cost: bool = True) -> str:
    """`12 steps, 48.1k tokens in (41.0k cached), 2,104 out, $0.12`; `~` marks an estimate."""
    count = f"{steps} step{'' if steps == 1 else 's'}"
    if not usage.prompt and not usage.output:
        return count
    about = "~" if usage.source == "estimated" else ""
    cached = f" ({token_count(usage.cache_read)} cached)" if usage.cache_read else ""
    tokens = f"{about}{token_count(usage.prompt)} tokens in{cached}, {about}{token_count(usage.output)} out"
    if cost is None:
        return f"{count}, {tokens}{', cost unknown' * says_unknown_cost}"
    return f"{count}, {tokens}, {about}{price_text(cost)}"


def compaction_text(event: Compacted) -> str:
    """`the conversation was compacted (long results shortened): ~61.2k tokens of messages became ~33.0k`."""
    before, after = event.tokens or (0, 0)
    size = f": ~{token_count(before)} tokens of messages became ~{token_count(after)}" if event.tokens else ""
    kept = f"; kept word for word: {', '.join(event.pinned)}" if event.pinned else ""
    dropped = f"; only referred to: {', '.join(event.dropped)}" if event.dropped else ""
    price = "" if event.cost is None else f", {price_text(event.cost)}"
    how = _TIERS.get(event.tier, one_line(event.tier))
    return f"the conversation was compacted ({how}){size}{cut(kept, 100)}{cut(dropped, 100)}{price}"


def token_count(tokens: int) -> str:
    """A short number: `9,999`, `48.1k`, `3.2M`."""
    if tokens < 10_000:
        return f"{tokens:,}"
    return f"{tokens / 1_000:.1f}k" if tokens < 999_950 else f"{tokens / 1_000_000:.1f}M"


def short_count(tokens: int) -> str:
    """The same where there is little room: `999`, `3.5k`, `48.1k`, `3.2M`."""
    return f"{tokens / 1_000:.1f}k" if 1_000 <= tokens < 10_000 else token_count(tokens)


def price_text(cost: float) -> str:
    """US dollars: two decimals from $0.10 on, four below."""
    return f"${cost:,.2f}" if cost >= 0.1 else f"${cost:.4f}"
