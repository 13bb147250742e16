"""What a call did in a few words: lines read, lines changed, files found, the exit code of a command."""

import re
from typing import Final

from bradawl.app.call_words import CallState
from bradawl.app.rendering import command_error
from bradawl.core.arguments import parse_arguments
from bradawl.core.events import ToolFinished
from bradawl.core.messages import Document, Image, Text, text_of
from bradawl.core.tools import ToolSpec
from bradawl.shaping.missing_changes import argument_texts

Shown = tuple[Text | Image | Document, ...]
_CHANGE: Final = re.compile(r"(?m)^(?:Edited|Wrote) .*: \+(\d+) -(\d+)")
_WRITTEN: Final = re.compile(r"Wrote (\d[\d,]* lines?) ")
_TOTAL: Final = re.compile(r"(?m)^\[(?:more than )?\d[\d,]* (?:match|file)(?:es|s)?(?: in \d[\d,]* files?)?(?=[]:,])")
"""How many there are in all, as the tool says below its result."""
_PART: Final = re.compile(r"\[(lines? [\d,-]+ of [\d,]+)\b")
_MATCH: Final = re.compile(r"(?m)^\d+:")
_NO_FILE: Final = re.compile(r"\d+[:-] |--$|\[.*\]$|  in |$")
"""What a line of a search begins with that names no file."""
_CODES: Final = re.compile(r"\((?:pipeline|earlier pipelines?|a command before it failed): ([\d ;]+)\)")
_BROKEN_PIPE: Final = 141
"""The code of a part of a pipeline whose reader had enough, such as `head`: no failure."""
_JOB: Final = re.compile(r"(?m)^\[.*?in the background as ([^\s;]+);")
_JOB_STATE: Final = re.compile(r"(?m)^\[\S+ (?:is (running)|has (ended [^;\]]*?) after)\b")


def state_of(raw_arguments: str, finished: ToolFinished) -> CallState:
    """How a call ended; `part failed` if it succeeded, but a part of what it ran did not."""
    is_partial = finished.outcome == "ok" and finished.has_failed_part and not _goes_on(finished)
    return "part failed" if is_partial and _failed_part(raw_arguments, finished) else finished.outcome


def finished_detail(spec: ToolSpec, raw_arguments: str, finished: ToolFinished) -> str:
    """As `call_detail`; of a call in which a part failed, which code it had."""
    part = ""
    if finished.outcome == "ok" and finished.has_failed_part:
        part = _goes_on(finished) or _failed_part(raw_arguments, finished)
    return part or call_detail(spec, raw_arguments, finished.shown)


def _goes_on(finished: ToolFinished) -> str:
    """For a command of which it is not known how it ends."""
    text = text_of(finished.shown)
    if job := _last(_JOB, text):
        return f"in the background as {job[1]}"
    state = _last(_JOB_STATE, text)
    return "still running" if state and state[1] else ""


def _failed_part(raw_arguments: str, finished: ToolFinished) -> str:
    text = text_of(finished.shown)
    if state := _last(_JOB_STATE, text):
        return str(state[2])
    codes = [code for found in _CODES.finditer(text[text.rfind("\n[exit code ") :]) for code in found[1].split()]
    failed = [code for each in codes if (code := each.strip(";")) not in ("", "0", str(_BROKEN_PIPE))]
    if failed:
        return f"a part failed: exit code {failed[0]}"
    if files := _files_read(raw_arguments, text):
        return files
    # A call with a final answer counts as failed also where nothing is known of its parts.
    return "" if '"answer_if_ok"' in raw_arguments else "a part failed"


def _files_read(raw_arguments: str, text: str) -> str:
    """`2 of 3 files`, of a call that reads several; empty for others."""
    arguments, _ = parse_arguments(raw_arguments)
    paths = argument_texts(arguments or {}, "file_paths")
    heads = [f"==> {path} <==\n" for path in paths if path]
    read = sum(head in text and f"{head}Error: " not in text for head in heads)
    return f"{read} of {counted(len(heads), 'file')}" if heads else ""


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last match: what a command printed can look like it, and is above."""
    return next(reversed(list(pattern.finditer(text))), None)


def call_detail(spec: ToolSpec, raw_arguments: str, shown: Shown) -> str:
    """For example `11 lines`, `+1 -1`, `exit code 2`; empty if there is nothing to say about a result."""
    text = text_of(shown)
    if spec.result == "diff":
        return _changes(text)
    if spec.result == "output":
        ending = command_error(shown).partition(":")[0]
        return "" if ending == "exit code 0" else ending
    if spec.result == "state":
        return text.partition("\n")[0].partition(";")[0].removesuffix(" todos completed") + " done" if text else ""
    if spec.name == "bash_kill" and (state := _last(_JOB_STATE, text)):
        return state[2] or ""
    if spec.name in ("grep", "glob"):
        return _found(text, has_lines=spec.name == "grep" and _output_mode(raw_arguments) == "content")
    return _size(shown, text)


def counted(count: int, what: str) -> str:
    """`1 match`, `12 matches`, `3 files`."""
    plural = "es" if what.endswith(("ch", "s")) else "s"
    return f"{count:,} {what}{'' if count == 1 else plural}"


def _changes(text: str) -> str:
    changes = [(int(found[1]), int(found[2])) for found in _CHANGE.finditer(text)]
    if changes:
        return f"+{sum(added for added, _ in changes)} -{sum(removed for _, removed in changes)}"
    written = _WRITTEN.match(text)
    return written[1] if written else ""


def _output_mode(raw_arguments: str) -> object:
    arguments, _ = parse_arguments(raw_arguments)
    return (arguments or {}).get("output_mode", "content")


def _found(text: str, *, has_lines: bool) -> str:
    """What a search counted; `has_lines` if it shows lines of files, and not names of files alone."""
    if text.startswith("No "):
        return f"no {'matches' if has_lines else 'files'}"
    if total := _last(_TOTAL, text):
        return total[0][1:]
    files = sum(not _NO_FILE.match(line) for line in text.split("\n"))
    if not has_lines:
        return counted(files, "file")
    where = f" in {counted(files, 'file')}" if files > 1 else ""
    return counted(len(_MATCH.findall(text)), "match") + where


def _size(shown: Shown, text: str) -> str:
    if part := _PART.match(text):
        return part[1]
    if text:
        return counted(text.rstrip("\n").count("\n") + 1, "line")
    kinds = ["image" if isinstance(part, Image) else "document" for part in shown if not isinstance(part, Text)]
    return counted(len(kinds), kinds[0]) if kinds else ""
