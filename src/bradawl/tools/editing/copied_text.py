"""Undoes what models add when they copy text from a result: line numbers, or one extra layer of escapes."""

import re
from collections.abc import Iterator

import msgspec


class Translation(msgspec.Struct, frozen=True):
    """Both strings of an edit without what the model added."""

    old: str
    new: str
    what: str
    line: int = 0
    """Number of the only line where the text may begin; 0 for any."""


def translations(old: str, new: str) -> Iterator[Translation]:
    """Possible readings of both strings, the likeliest first; none if new_string would be ambiguous."""
    if old.startswith("\ufeff") and len(old) > 1:
        yield Translation(old[1:], new.removeprefix("\ufeff"), "the byte order mark", 1)
    yield from _without_numbers(old, new)
    yield from _unescaped(old, new)


def _without_numbers(old: str, new: str) -> Iterator[Translation]:
    """Remove line numbers: every line of old_string has one, and every line or none of new_string."""
    numbered = re.compile(r" *(\d+)\t(.*)", re.DOTALL)
    is_closed = old.endswith("\n")
    found = [numbered.fullmatch(line) for line in (old[:-1] if is_closed else old).split("\n")]
    matches = [match for match in found if match is not None]
    if len(matches) < len(found):
        return
    first = int(matches[0][1])
    if any(int(match[1]) != first + place for place, match in enumerate(matches)):
        return
    plain = "\n".join(match[2] for match in matches) + ("\n" if is_closed else "")
    lines = new.split("\n")
    found = [numbered.fullmatch(line) for line in lines]
    if all(match is not None for line, match in zip(lines, found, strict=True) if line):
        lines = [match[2] if match else line for line, match in zip(lines, found, strict=True)]
    elif any(found):
        return
    yield Translation(plain, "\n".join(lines), "the line numbers of read_file", first)


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_KINDS = {"n": "\n", "t": "\t", '"': '"', "'": "'"}
_SETS = ('"', "'", "n", 'n"', "nt", 'nt"')


def _unescaped(old: str, new: str) -> Iterator[Translation]:
    """Remove one layer of backslashes from both strings."""
    kinds = set(_ESCAPED.findall(old))
    for chosen in _SETS:
        if not set(chosen) <= kinds or not set(_ESCAPED.findall(new)) <= kinds:
            continue
        if _has_bare(old, chosen) or _has_bare(new, chosen):
            continue
        plain = _without(new, chosen)
        if "n" not in chosen or all(map(_is_balanced, plain.split("\n"))):
            yield Translation(_without(old, chosen), plain, "a layer of backslashes")


def _has_bare(text: str, chosen: str) -> bool:
    """True if some of these characters have no backslash, so there is no layer of escapes."""
    rest = _ESCAPED.sub("", text)
    return any(_KINDS[kind] in rest for kind in chosen if kind != "t")


def _without(text: str, chosen: str) -> str:
    return _ESCAPED.sub(lambda match: _KINDS[match[1]] if match[1] in chosen else match[0], text)


def _is_balanced(line: str) -> bool:
    """True if no quote is open at the end; a line break inside a string literal would leave one open."""
    line = re.sub(r"(?<=\w)'(?=\w)", "", line)
    return all(line.count(quote) % 2 == 0 for quote in "\"'`")
