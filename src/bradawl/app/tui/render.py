"""From events to lines of text. Pure: who prints them, where and in which colour, is not known here."""

import re
from typing import Final

from bradawl.app.tui.clean import clean
from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.deltas import RetryScheduled
from bradawl.core.errors import Failure
from bradawl.core.messages import Document, Image, Text, text_of
from bradawl.core.usage import Usage

DEFAULT_WIDTH: Final = 100
_MAIN_ARGUMENTS: Final = ("command", "file_path", "path", "file_paths", "pattern", "url", "query", "prompt", "name")
_PATTERN_FIRST: Final = ("glob", "grep")
_ENDING: Final = re.compile(r"^\[(exit code \d+|timed out after \d+ s)\b.*$", re.MULTILINE)
_STDERR: Final = "[stderr]"
_SHELL: Final = re.compile(r"^(?:/\S*/)?bash: (?:line \d+: )?")
_OWN_WORDS: Final = re.compile(r"^(\(no output\)|\[\.\.\. .* cut \.\.\.\]|\[stderr\])$")


def call_line(name: str, raw_arguments: str, width: int = DEFAULT_WIDTH) -> str:
    """`name(main argument)` on one line of at most `width` characters."""
    arguments, _ = parse_arguments(raw_arguments)
    shown = raw_arguments if arguments is None else main_argument(name, arguments)
    return cut(f"{one_line(name) or '?'}({one_line(shown)})", width, end="...)")


def main_argument(name: str, arguments: Arguments) -> str:
    """What a call is about: the command, the file, the pattern."""
    order = ("pattern", *_MAIN_ARGUMENTS) if name in _PATTERN_FIRST else _MAIN_ARGUMENTS
    for key in order:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return ", ".join(str(item) for item in value)
    return next((value for value in arguments.values() if isinstance(value, str)), "")


def one_line(text: str) -> str:
    """Cleaned text with every run of white space as one space."""
    return " ".join(clean(text).split())


def cut(text: str, width: int, end: str = "...") -> str:
    """`text`, or its beginning and `end`, in at most `width` characters."""
    return text if len(text) <= width else text[: max(0, width - len(end))] + end


def error_line(shown: tuple[Text | Image | Document, ...], width: int = DEFAULT_WIDTH) -> str:
    """The first line of a failed result that says something."""
    lines = (one_line(line) for line in text_of(shown).splitlines())
    return cut(next((line for line in lines if line), "failed"), width)


def command_error(shown: tuple[Text | Image | Document, ...], width: int = DEFAULT_WIDTH) -> str:
    """How a command failed and the line that says most about why; empty for a result that is no command's."""
    text = clean(text_of(shown))
    ending = _last_ending(text)
    if ending is None:
        return ""
    output, marked, errors = text[: ending.start()].rpartition(f"{_STDERR}\n")
    told = _said(errors if marked else text[: ending.start()]) or _said(output)
    line = _SHELL.sub("", one_line(told[-1])) if told else ""
    return cut(f"{ending[1]}: {line}" if line else ending[1], width)


def command_output(shown: tuple[Text | Image | Document, ...]) -> list[str]:
    """The lines a command printed, without what was added to them; those of stderr are the last."""
    text = clean(text_of(shown))
    ending = _last_ending(text)
    return _said(text if ending is None else text[: ending.start()])


def _last_ending(text: str) -> re.Match[str] | None:
    """The line that says how a command ended; a command may well have printed one that looks like it."""
    return next(reversed(list(_ENDING.finditer(text))), None)


def _said(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not _OWN_WORDS.match(line)]


def retry_line(retry: RetryScheduled) -> str:
    """That a request is made again, when and why."""
    seconds = f"{retry.delay_s:.1f}"
    when = "now" if seconds == "0.0" else f"in {seconds} s"
    return f"trying again {when} (attempt {retry.attempt}): {one_line(str(retry.failure))}"


def failure_text(failure: Failure | None) -> str:
    """What happened and what to do, on one line."""
    return one_line(str(failure)) if failure else "The turn ended with an error."


def usage_text(steps: int, usage: Usage, cost: float | None) -> str:
    """`3 steps, 1,234 tokens in (1,000 cached), 56 out, $0.0012`; what nobody knows is left out."""
    count = f"{steps} step{'' if steps == 1 else 's'}"
    if not usage.prompt and not usage.output:
        return count
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    about = "about " if usage.source == "estimated" else ""
    text = f"{count}, {about}{usage.prompt:,} tokens in{cached}, {usage.output:,} out"
    return text if cost is None else f"{text}, ${cost:.4f}"
