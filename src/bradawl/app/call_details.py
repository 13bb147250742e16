"""What a call did in a few words: lines read, lines changed, files found, the exit code of a command."""

import re
from typing import Final

from bradawl.app.rendering import command_error
from bradawl.core.messages import Document, Image, Text, text_of
from bradawl.core.tools import ToolSpec

Shown = tuple[Text | Image | Document, ...]
_CHANGE: Final = re.compile(r"(?m)^(?:Edited|Wrote) .*: \+(\d+) -(\d+)")
_WRITTEN: Final = re.compile(r"Wrote (\d[\d,]* lines?) ")
_REMARK: Final = re.compile(r"(?m)^\[(\d[\d,]*) (match|file)\w*:")
_PART: Final = re.compile(r"\[(lines? [\d,-]+ of [\d,]+)\b")
_MATCH: Final = re.compile(r"(?m)^\d+:")


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
    if spec.name in ("grep", "glob"):
        return _found(text, "match" if spec.name == "grep" and '"output_mode"' not in raw_arguments else "file")
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


def _found(text: str, what: str) -> str:
    if text.startswith("No "):
        return f"no {'matches' if what == 'match' else 'files'}"
    if remark := _REMARK.search(text):
        return counted(int(remark[1].replace(",", "")), remark[2])
    if what == "match":
        return counted(len(_MATCH.findall(text)), "match")
    return counted(sum(bool(line.strip()) and not line.startswith("[") for line in text.split("\n")), "file")


def _size(shown: Shown, text: str) -> str:
    if part := _PART.match(text):
        return part[1]
    if text:
        return counted(text.rstrip("\n").count("\n") + 1, "line")
    kinds = ["image" if isinstance(part, Image) else "document" for part in shown if not isinstance(part, Text)]
    return counted(len(kinds), kinds[0]) if kinds else ""
