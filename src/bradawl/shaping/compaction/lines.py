"""Rates the lines of a text by what they say, and shortens texts to the lines that say most."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

_LONGEST_LINE: Final = 320
_LONGEST_SHAPE: Final = 240
_LONGEST_RATED: Final = 600
"""Characters of a line that are looked at."""
_SHORT_GAP, _SHORT_TEXT = 2, 100
_ENDS: Final = 2
"""Lines at either end of a text that are kept first."""
# Compiled when first used: with the first compaction, not at the start of the program.
_FAILURE: Final = (
    r"(?i)\b(?:error|errors|exception|fail|failed|failing|failure|fatal|panic|panicked|abort|aborted|crash|crashed|"
    r"killed|segfault|dumped|uncaught|unhandled|denied|refused|rejected|timeout|timed out|cannot|can't|could not|"
    r"couldn't|unable|undefined|unresolved|"
    r"unexpected|invalid|illegal|missing|mismatch|conflict|not found|no such|does not|doesn't|did not|broken|"
    r"corrupt|deadlock|overflow|leak|segmentation|violation|expected|unsupported|exhausted|expired|unreachable|"
    r"unauthorized|forbidden|duplicate|exceeded|too (?:many|large|long)|out of (?:memory|range|disk))\b"
)
_ERROR_NAME: Final = (
    r"\b\w*(?:Error|Exception|Failure|Fault|Panic)\b|\b[A-Z]{1,8}[-_ ]?\d{3,5}\b|\bE[A-Z]{4,}\b|\bSIG[A-Z]{2,}\b|"
    r"^\s*(?:[a-z]\w*\.)*[A-Z]\w*[a-z]\w*: \S"
)
_HARMLESS: Final = (
    r"(?i)\b(?:0|no|zero|without) (?:\w+ )?(?:errors?|failures?|failed|warnings?|problems?|issues?|conflicts?)\b|"
    r"\bdeprecat\w*|\bpassed\b|\bPASS\b|\bok\b"
)
_EXIT: Final = r"(?i)\b(?:exit(?:ed)?|status|code|returned)\b\D{0,12}[1-9]\d{0,4}"
_MEASURE: Final = (
    r"(?i)(?<![\d,_.])\d[\d,_]{0,20}(?:\.\d{1,9})?\s?(?:[kmgt]|ms|us|µs|ns|s|sec|secs|seconds?|min|minutes?|h|hours?|days?|%|percent|[kmgt]i?b|"
    r"bytes?|rows?|requests?|req/s|rps|qps|ops|x|times|hz|mhz|ghz|tokens?|files?|lines?|tests?|threads?|workers?|"
    r"connections?|retries|attempts|users?|errors?|failures|failed|passed)(?!\w)"
)
_NAMED_NUMBER: Final = (
    r"(?i)[a-z_](?:[\"']?\s?[=:|]|\s(?:is|was|are|to|of|at|from|port|version)|\s\s)\s{0,20}[\"']?v?\d[\w.,:-]*"
)
_NUMBER: Final = r"(?<![\w.])v?\d[\d,.]*\d(?![\w])|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"
_PLACE: Final = r"[\w-]\.\w{1,5}:\d+|\", line \d+|\w/[\w-]{1,60}\.\w{1,5}\b"
_NUMBERED: Final = r"^\s*(?:[\w./-]+[:-])?\d+[:-]\s?|^\s*\d+\s{2,}|^\s*\d+\t"
"""The number of a line of a file, as grep and others print it."""
_VARIABLE: Final = r"[^\s]*[\d./_:=\\-][^\s]*"


def shape_of(line: str) -> str:
    """The line without its names and numbers: lines of a progress report have the same shape."""
    return re.sub(_VARIABLE, "0", line.strip()[:_LONGEST_SHAPE])


def shapes_of(texts: Iterable[str]) -> Counter[str]:
    """How often each shape occurs in some texts."""
    return Counter(shape_of(line) for text in texts for line in text.splitlines())


def rating(line: str, shapes: Counter[str]) -> float:
    """How much a line of output says; negative for noise. `shapes` are those of all lines it is compared with."""
    if not (text := line.strip()) or not any(map(str.isalnum, text)):
        return -5.0
    part = re.sub(_NUMBERED, "", text[:_LONGEST_RATED])
    score = 0.0
    if re.search(_EXIT, part):
        score += 2.5
    if re.search(_ERROR_NAME, part):
        score += 2.5
    if re.search(_FAILURE, part):
        score += 2.5
    if score and re.search(_HARMLESS, part):
        score -= 3.0
    if re.search(_MEASURE, part):
        score += 2.0
    if re.search(_NAMED_NUMBER, part):
        score += 1.0
    elif re.search(_NUMBER, part):
        score += 0.7
    if re.search(_PLACE, part):
        score += 0.7
    same = max(1, shapes[shape_of(line)])
    return score + 1.0 - math.log2(same)


def cut_line(line: str, most: int = _LONGEST_LINE) -> str:
    """A line of at most `most` characters, around what matters in it."""
    if len(line) <= most:
        return line
    part = line[:_LONGEST_RATED]
    found = re.search(_ERROR_NAME, part) or re.search(_FAILURE, part) or re.search(_MEASURE, part)
    begin = 0 if found is None else max(0, min(found.start() - most // 3, len(line) - most))
    end = begin + most
    return f"{'[...] ' if begin else ''}{line[begin:end]}{' [...]' if end < len(line) else ''}"


def best_lines(lines: Sequence[str], most: int, shapes: Counter[str]) -> list[int]:
    """The numbers of the lines that say most, in order, with at most `most` characters together."""
    rated = sorted(((rating(line, shapes), -number) for number, line in enumerate(lines)), reverse=True)
    chosen: list[int] = []
    for _, number in rated:
        size = min(len(lines[-number]), _LONGEST_LINE) + 1
        if most < 20:
            break
        if size <= most:
            chosen.append(-number)
            most -= size
    return sorted(chosen)


def condensed(text: str, most: int) -> str:
    """A text of about `most` characters at most: its beginning, its end, and between them the lines that say most."""
    if len(text) <= most:
        return text
    lines = text.splitlines()
    ends = [*range(min(_ENDS, len(lines))), *range(max(_ENDS, len(lines) - _ENDS), len(lines))]
    kept = {number for number in ends if len(lines[number]) <= most // 4}
    room = most - sum(len(lines[number]) + 1 for number in kept)
    inner = [number for number in range(len(lines)) if number not in kept]
    if not kept and len(lines) < 4:
        return f"{text[: most // 3]}\n[...]\n{text[-(most - most // 3) :]}"
    chosen = best_lines([lines[number] for number in inner], room, shapes_of([text]))
    kept.update(inner[place] for place in chosen)
    return "\n".join(with_gaps(lines, sorted(kept)))


def with_gaps(lines: Sequence[str], kept: Sequence[int]) -> list[str]:
    """The kept lines, with a mark where others are left out; a mark for a line or two would be longer than they are."""
    shown: list[str] = []
    before = -1
    for number in [*kept, len(lines)]:
        left_out = lines[before + 1 : number]
        if len(left_out) <= _SHORT_GAP and sum(map(len, left_out)) <= _SHORT_TEXT:
            shown += left_out
        elif any(map(str.strip, left_out)):
            shown.append(_gap(len(left_out)))
        if number < len(lines):
            shown.append(cut_line(lines[number]))
        before = number
    return shown


def _gap(count: int) -> str:
    return f"[... {count:,} line{'s' * (count != 1)}]"
