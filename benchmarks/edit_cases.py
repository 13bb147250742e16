"""Generates edits with typical mistakes of models, and the expected file, or that no unique place is meant.

A case begins with an edit that is correct in every byte. Then either the file or both strings are changed in one way
that models or people cause. The expected result is changed together with the file.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Iterator

import msgspec
from edit_drafts import Draft, added_line, draft_of, edited, is_good, left_out, other_word


class Case(msgspec.Struct, frozen=True):
    """One edit."""

    kind: str
    data: bytes
    """The file."""
    old: str
    new: str
    right: bytes | None
    """The expected file; None if no place, or more than one, may be meant."""
    seen: bytes | None = None
    """The content that the model has read, if it differs from the file."""


# ------------------------------------------------------------------ mistakes


def _strings(draft: Draft) -> tuple[str, str]:
    """Both strings, with or without the final line break, as models send them."""
    end = draft.words.draw.choice(("", "", "\n"))
    return "\n".join(draft.old) + end, "\n".join(draft.new) + end


def _case(kind: str, draft: Draft, old: str, new: str, file: Callable[[str], bytes] = str.encode) -> Case:
    return Case(kind, file(draft.text()), old, new, file(draft.text(draft.new)))


def _mapped(draft: Draft, change: Callable[[str], str]) -> tuple[str, str] | None:
    """Both strings with each line changed; None if that changes nothing, or the old text still occurs in the file."""
    old, new = _strings(draft)
    changed = ["\n".join(change(line) if line else line for line in text.split("\n")) for text in (old, new)]
    return None if changed[0] in draft.text() else (changed[0], changed[1])


def shifted(draft: Draft) -> Case | None:
    """The whole block is indented more or less than in the file."""
    indents = [len(line) - len(line.lstrip(" ")) for line in (*draft.old, *draft.new) if line.strip()]
    by = draft.words.draw.choice((-min(indents), -min(indents), -2, -4, 2, 4))
    if by < -min(indents) or not by or any(line.startswith("\t") for line in draft.lines):
        return None
    strings = _mapped(draft, lambda line: line[-by:] if by < 0 else " " * by + line)
    return strings and _case("indentation", draft, *strings)


def shifted_old(draft: Draft) -> Case | None:
    """The quoted block is indented more or less than in the file, and the new text is right."""
    if (case := shifted(draft)) is None:
        return None
    new = "\n".join(draft.new) + ("\n" if case.old.endswith("\n") else "")
    return msgspec.structs.replace(case, kind="indentation of old_string alone", new=new)


def respaced_old(draft: Draft) -> Case | None:
    """The quoted block is indented with tabs where the file has spaces, or the reverse, and the new text is right."""
    if (case := respaced(draft)) is None:
        return None
    new = "\n".join(draft.new) + ("\n" if case.old.endswith("\n") else "")
    return msgspec.structs.replace(case, kind="tabs of old_string alone", new=new)


def bare_old(draft: Draft) -> Case | None:
    """The quoted text begins after the indentation of its first line, or in it, and the new text is right."""
    margin = len(draft.old[0]) - len(draft.old[0].lstrip())
    if not margin or any(line.strip() and not line[:margin].isspace() for line in (*draft.old, *draft.new)):
        return None
    old, new = _strings(draft)
    old = old[draft.words.draw.choice((margin, margin, 1)) :]
    return _case("first line of old_string bare", draft, old, new) if draft.text().count(old) == 1 else None


def respaced(draft: Draft) -> Case | None:
    """Spaces in place of tabs, or tabs in place of spaces."""
    if any(line.startswith("\t") for line in draft.lines):
        width = draft.words.draw.choice((4, 4, 8, 2))
        strings = _mapped(draft, lambda line: re.sub("^\t+", lambda tabs: " " * width * len(tabs[0]), line))
    else:
        width = 2 if draft.language in {"javascript", "yaml"} else 4
        strings = _mapped(draft, lambda line: re.sub("^ +", lambda run: "\t" * (len(run[0]) // width), line))
    return strings and _case("tabs and blanks", draft, *strings)


def _typographic(text: str) -> str:
    text = re.sub(r'"([^"\n]*)"', "\u201c\\1\u201d", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "\u2019", text)
    return text.replace(" - ", " \u2013 ")


def curly_in_file(draft: Draft) -> Case | None:
    """The file has typographic characters, the model writes plain ones."""
    if draft.language != "markdown" and draft.words.draw.random() < 0.5:
        return None
    old, new = _strings(draft)
    old_there, new_there = (_typographic(text) for text in ("\n".join(draft.old), "\n".join(draft.new)))
    before, after = draft.text(old_there.split("\n")), draft.text(new_there.split("\n"))
    if old in before:
        return None
    return Case("typographic in the file", before.encode(), old, new, after.encode())


def curly_in_strings(draft: Draft) -> Case | None:
    """The model writes typographic characters, the file has plain ones."""
    old, new = _strings(draft)
    if _typographic(old) == old:
        return None
    return _case("typographic in the strings", draft, _typographic(old), _typographic(new))


def no_break_space(draft: Draft) -> Case | None:
    """One space between words of the file is a no-break space."""
    old, new = _strings(draft)
    place = draft.old[0].strip().find(" ")
    if place < 0:
        return None
    place += len(draft.old[0]) - len(draft.old[0].lstrip())
    changed = draft.old[0][:place] + "\u00a0" + draft.old[0][place + 1 :]
    if draft.new[0] != draft.old[0]:
        return None
    after, before = [changed, *draft.new[1:]], draft.text([changed, *draft.old[1:]])
    return Case("no-break space", before.encode(), old, new, draft.text(after).encode())


def composed(draft: Draft) -> Case | None:
    """The file has decomposed characters, the model writes composed ones."""
    word = draft.words.draw.choice(("caf\u00e9", "na\u00efve", "\u00fcber", "se\u00f1or"))
    line = draft.words.draw.randrange(len(draft.old))
    if not draft.old[line].strip() or draft.old[line] not in draft.new:
        return None
    number = draft.new.index(draft.old[line])
    draft.lines[draft.first + line] += f" {word}"
    draft.new[number] += f" {word}"
    old, new = _strings(draft)
    return _case("unicode normalisation", draft, old, new, lambda text: unicodedata.normalize("NFD", text).encode())


def line_ends(draft: Draft) -> Case | None:
    """The file has other line endings, in all lines or in some."""
    old, new = _strings(draft)
    if "\n" not in old:
        return None
    if draft.words.draw.random() < 0.3:
        return _case("line endings", draft, old.replace("\n", "\r\n"), new.replace("\n", "\r\n"))
    return _case("line endings", draft, old, new, lambda text: text.replace("\n", "\r\n").encode())


def mixed_line_ends(draft: Draft) -> Case | None:
    """Some lines of the file have other endings; unchanged lines keep theirs."""
    if len(draft.old) < 3:
        return None
    draft.new = list(draft.old)
    other_word(draft, draft.new)
    old, new = "\n".join(draft.old), "\n".join(draft.new)
    ends = [draft.words.draw.choice(("\n", "\r\n")) for _ in draft.lines]
    if "\r\n" not in ends[draft.first : draft.last - 1]:
        return None
    after = [*draft.lines[: draft.first], *draft.new, *draft.lines[draft.last :]]
    data, right = ("".join(map("".join, zip(lines, ends, strict=True))).encode() for lines in (draft.lines, after))
    return Case("mixed line endings", data, old, new, right)


def trailing_in_file(draft: Draft) -> Case | None:
    """Lines of the file that the edit keeps have trailing spaces."""
    draft.new = list(draft.old)
    draft.words.draw.choice((other_word, added_line, left_out))(draft, draft.new)
    old, new = _strings(draft)
    kept = [line for line in draft.old[:-1] if draft.new.count(line) == draft.old.count(line) == 1]
    if not kept:
        return None
    blanks = {line: line + draft.words.draw.choice((" ", "  ", "\t", "    ")) for line in kept}
    before = draft.text([blanks.get(line, line) for line in draft.old])
    after = draft.text([blanks.get(line, line) for line in draft.new])
    return Case("trailing blanks in the file", before.encode(), old, new, after.encode())


def trailing_in_strings(draft: Draft) -> Case | None:
    """The model ends every line with a space."""
    strings = _mapped(draft, lambda line: line + " ")
    return strings and _case("trailing blanks in the strings", draft, *strings)


def blank_line_lost(draft: Draft) -> Case | None:
    """The model omits or adds an empty line between two lines that it keeps."""
    kept = [
        place
        for place in range(1, len(draft.old) - 1)
        if "\n".join(draft.old[place - 1 : place + 2]) in "\n".join(draft.new) and draft.old[place - 1].strip()
    ]
    gaps = [place for place in kept if not draft.old[place] and draft.old[place + 1].strip()]
    if gaps:
        old, new = (_without_gap(lines, draft.old[gaps[0] - 1 : gaps[0] + 2]) for lines in (draft.old, draft.new))
    elif kept and draft.old[kept[0]].strip():
        first = draft.old[kept[0] - 1 : kept[0] + 1]
        old, new = (_with_gap(lines, first) for lines in (draft.old, draft.new))
    else:
        return None
    return None if not old or not new else _case("blank lines", draft, "\n".join(old), "\n".join(new))


def _find(lines: list[str], part: list[str]) -> int:
    found = [place for place in range(len(lines)) if lines[place : place + len(part)] == part]
    return found[0] if len(found) == 1 else -1


def _without_gap(lines: list[str], around: list[str]) -> list[str]:
    place = _find(lines, around)
    return [] if place < 0 else [*lines[: place + 1], *lines[place + 2 :]]


def _with_gap(lines: list[str], pair: list[str]) -> list[str]:
    place = _find(lines, pair)
    return [] if place < 0 else [*lines[: place + 1], "", *lines[place + 1 :]]


def no_final_newline(draft: Draft) -> Case | None:
    """The edit changes the last lines of a file without a final line break."""
    count = len(draft.lines) - draft.last
    if count:
        draft.first, draft.last = len(draft.lines) - len(draft.old), len(draft.lines)
        if not is_good(draft):
            return None
        draft.new = edited(draft)
    if draft.new == draft.old:
        return None
    old, new = "\n".join(draft.old) + "\n", "\n".join(draft.new) + "\n"
    return _case("no final line break", draft, old, new, lambda text: text.removesuffix("\n").encode())


def numbered(draft: Draft) -> Case | None:
    """The strings contain the line numbers that `read_file` prints."""
    old = "\n".join(f"{number}\t{line}" for number, line in enumerate(draft.old, draft.first + 1))
    if draft.words.draw.random() < 0.5:
        new = "\n".join(f"{number}\t{line}" for number, line in enumerate(draft.new, draft.first + 1))
    else:
        new = "\n".join(draft.new)
    return _case("line numbers", draft, old, new)


def escaped(draft: Draft) -> Case | None:
    """The strings are escaped once too often."""
    old, new = "\n".join(draft.old), "\n".join(draft.new)
    if '"' not in old or "\\" in old + new:
        return None
    return _case("escaped quotes", draft, old.replace('"', '\\"'), new.replace('"', '\\"'))


def escaped_breaks(draft: Draft) -> Case | None:
    """Line breaks are written as a backslash and an n."""
    old, new = "\n".join(draft.old), "\n".join(draft.new)
    if "\n" not in old or "\\" in old + new:
        return None
    return _case("escaped line breaks", draft, old.replace("\n", "\\n"), new.replace("\n", "\\n"))


def bare_first_line(draft: Draft) -> Case | None:
    """One line, written without its indentation, becomes several, whose other lines are indented."""
    if len(draft.old) != 1 or len(draft.new) < 2:
        return None
    margin = len(draft.old[0]) - len(draft.old[0].lstrip())
    old, new = ("\n".join(lines)[margin:] for lines in (draft.old, draft.new))
    if not margin or not draft.new[0][:margin].isspace() or draft.text().count(old) != 1:
        return None
    return _case("bare line, others right", draft, old, new)


def stale(draft: Draft) -> Case | None:
    """A line of the block has changed since the model read it."""
    old, new = _strings(draft)
    before = draft.text()
    lines = list(draft.old)
    other_word(draft, lines)
    after = draft.text(lines)
    if old in after or lines == draft.old:
        return None
    return Case("stale", after.encode(), old, new, None, before.encode() if draft.words.draw.random() < 0.5 else None)


def stale_with_double(draft: Draft) -> Case | None:
    """The block has changed, and the same lines occur elsewhere with another indentation."""
    if draft.language not in {"python", "javascript"} or len(draft.old) < 3:
        return None
    old, new = _strings(draft)
    lines = list(draft.old)
    other_word(draft, lines)
    double = ["    " + line if line else line for line in draft.old]
    after = draft.text(lines) + "\n".join(["", "", *double, ""])
    if old in after or lines == draft.old or "".join(lines).split() == "".join(draft.old).split():
        return None
    return Case("stale, with a double", after.encode(), old, new, None)


def doubled(draft: Draft) -> Case | None:
    """Several nearly equal blocks, and the string contains only their common lines."""
    old, new = _strings(draft)
    double = [line.replace("(", "( ", 1) if number == len(draft.old) else line for number, line in enumerate(draft.old)]
    after = draft.text() + "\n".join(["", f"# {draft.words.name()}", *double, ""])
    return Case("near-duplicates", after.encode(), old, new, None)


def doubled_and_shifted(draft: Draft) -> Case | None:
    """Two blocks that differ only in indentation, and a string with the indentation of neither."""
    if any(line.startswith("\t") for line in draft.lines) or not any(line.startswith(" ") for line in draft.old):
        return None
    old, new = ("\n".join("   " + line if line else line for line in lines) for lines in (draft.old, draft.new))
    double = ["        " + line if line else line for line in draft.old]
    after = draft.text() + "\n".join(["", *double, ""])
    return None if old in after else Case("near-duplicates, shifted", after.encode(), old, new, None)


def one_of_many(draft: Draft) -> Case | None:
    """Nearly equal functions, and a shifted string that contains the name of one of them."""
    if draft.language != "python":
        return None
    names = [draft.words.name() for _ in range(4)]
    limit, noun = draft.words.number(), draft.words.noun()
    body = [f"        {noun} = self.read({limit})", f"        if {noun} is None:", "            return 0"]
    blocks = [["", f"    def {name}(self):", *body, f"        return {noun}.size"] for name in names]
    chosen = draft.words.draw.choice(blocks)
    text = "\n".join([*draft.lines, "", "class Many:", *(line for block in blocks for line in block), ""])
    old = [line[4:] for line in chosen[1:]]
    new = [line.replace("return 0", "return None") for line in old]
    indented = ["    " + line for line in new]
    right = text.replace("\n".join(chosen[1:]), "\n".join(indented))
    return Case("one of many", text.encode(), "\n".join(old), "\n".join(new), right.encode())


def shifted_and_bare(draft: Draft) -> Case | None:
    """Indentation and trailing spaces differ at the same time."""
    case = trailing_in_file(draft)
    if case is None or any(line.startswith("\t") for line in draft.lines):
        return None
    margin = min(len(line) - len(line.lstrip()) for line in (*draft.old, *draft.new) if line.strip())
    if not margin:
        return None
    old, new = ("\n".join(line[margin:] for line in text.split("\n")) for text in (case.old, case.new))
    return msgspec.structs.replace(case, kind="indentation and trailing blanks", old=old, new=new)


def crlf_and_bare(draft: Draft) -> Case | None:
    """Line endings and trailing spaces differ at the same time."""
    case = trailing_in_file(draft)
    if case is None or case.right is None:
        return None
    data, right = (data.replace(b"\n", b"\r\n") for data in (case.data, case.right))
    return msgspec.structs.replace(case, kind="line endings and trailing blanks", data=data, right=right)


Kinds = tuple[Callable[[Draft], Case | None], ...]
KINDS: Kinds = (
    shifted,
    shifted,
    respaced,
    curly_in_file,
    curly_in_strings,
    no_break_space,
    composed,
    line_ends,
    mixed_line_ends,
    trailing_in_file,
    trailing_in_strings,
    blank_line_lost,
    no_final_newline,
    numbered,
    escaped,
    escaped_breaks,
    bare_first_line,
    stale,
    stale_with_double,
    doubled,
    doubled_and_shifted,
    one_of_many,
    shifted_and_bare,
    crlf_and_bare,
    shifted_old,
    respaced_old,
    bare_old,
)
OLD_INDENTED_OTHERWISE: Kinds = (shifted_old, shifted_old, respaced_old, bare_old)
"""Kinds in which old_string alone is indented otherwise than the file."""


def cases(seed: int, count: int, kinds: Kinds = KINDS) -> Iterator[Case]:
    """`count` edits, determined by the seed."""
    draw = random.Random(seed)  # noqa: S311 - which edit comes next is no secret
    made = 0
    while made < count:
        kind = kinds[made % len(kinds)]
        case = kind(draft_of(draw))
        if case is not None and case.old != case.new and case.data != case.right:
            made += 1
            yield case
