"""Estimates the number of tokens of a text, without a vocabulary. Reports of the model correct the estimate."""

import re

# For each kind of run: its tokens, the length from which each further character adds tokens, and how many. Fitted to
# three open tokenizers on code, documentation and messages in twelve languages, so that their median ratio is 1.0.
_COSTS = {
    "word": (1.0, 8, 0.23),
    "upper": (1.0, 2, 0.32),
    "digits": (1.4, 1, 0.44),
    "line": (1.43, 0, 0.0),
    "space": (1.45, 0, 0.0),
    "mark": (0.78, 1, 0.2),
    "stop": (0.0, 0, 1.1),
    "cjk": (0.0, 0, 0.65),
    "other": (0.87, 0, 0.2),
}
_PER_DENSE_CHARACTER = 0.71
_WORDS = r"_?(?:(?P<word>[A-Z]?[a-z]+)|(?P<upper>[A-Z]+))|(?P<digits>[0-9]+)"
_MARKS = r"(?P<mark>[!-/:-@\[-`{-~]{1,4})[!-/:-@\[-`{-~]*"
_WIDE = r"(?P<stop>[\u3000-\u303f\uff00-\uff20]+)|(?P<cjk>[\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+)"
_SPACES = r"(?P<line>\n\s*)|(?P<space>[ \t\r]{2,})"
# Compiled when first used: with the first request, not at the start of the program.
_PLAIN = rf"{_WORDS}|{_SPACES}|{_MARKS}|{_WIDE}|(?P<other>[^\x00-\x7f]+)"
_DENSE = r"[A-Za-z0-9+/=_-]{24,}"
_KINDS = r"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+"
_LONGEST, _PIECE = 131_072, 4_096


def estimate(text: str) -> int:
    """Tokens of a text; those of a very long text are extrapolated from 32 pieces."""
    if len(text) <= _LONGEST:
        return round(_count(text))
    step = len(text) // 32
    pieces = [text[start : start + _PIECE] for start in range(0, step * 32, step)]
    return round(sum(map(_count, pieces)) * len(text) / sum(map(len, pieces)))


def _count(text: str) -> float:
    runs: list[str] = []

    def without(match: re.Match[str]) -> str:
        """Tokens of base64, keys and hashes, in which the kind of character changes too often for words."""
        run = match[0]
        letters = run.replace("_", "").replace("-", "")
        has_digits = sum(map(run.count, "0123456789")) > len(run) * 0.05
        if not has_digits or len(re.findall(_KINDS, letters)) * 3.2 < len(letters):
            return run
        runs.append(run)
        return " "

    rest = re.sub(_DENSE, without, text)
    total = sum(map(len, runs)) * _PER_DENSE_CHARACTER
    for match in re.finditer(_PLAIN, rest):
        base, free, each = _COSTS[match.lastgroup or "mark"]
        start, end = match.span(match.lastgroup or 0)
        total += base + each * max(0, end - start - free)
    return total
