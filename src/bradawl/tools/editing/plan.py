"""Plans one replacement in a file: exact matches first, then matches that differ only in invisible ways.

A step applies only if exactly one place matches and the new text is unambiguous; otherwise nothing changes.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import FileContent
from bradawl.tools.editing.exact import MatchContext, joins_lines, reframed, writes_margin
from bradawl.tools.editing.file_text import FileText, check_encodable, encodings_of, file_text_of
from bradawl.tools.editing.matching import (
    MOST_MATCHES,
    Match,
    disjoint,
    find_exactly,
    find_with_other_line_ends,
    line_ending_at,
    line_number,
)
from bradawl.tools.reading.decoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from bradawl.tools.editing.inexact import InexactMatch

_PLACES_NAMED = 10
_LEAST_LETTERS = 3
_REINDENTED = "new_string indented like the line it replaces"


class Change(msgspec.Struct, frozen=True):
    """A requested replacement."""

    old: str
    new: str
    replace_all: bool = False


class Planned(msgspec.Struct, frozen=True):
    """The new content of a file."""

    data: bytes
    encoding: Encoding
    count: int
    """Number of replaced places."""
    note: str = ""
    """The ignored differences; empty for an exact match."""
    is_adapted: bool = False
    """Whether new_string was adapted to the file in more than line ends and blanks at ends of lines."""


class _Job(msgspec.Struct, frozen=True):
    data: bytes
    change: Change
    encodings: tuple[Encoding, ...]
    shown: str


def check_change(change: Change) -> None:
    """Raises `ToolError` for strings that can't be an edit of any file."""
    if not change.old:
        raise ToolError("old_string is empty; write_file creates files, edit_file replaces text that is there")
    if change.old == change.new:
        raise ToolError(
            "old_string and new_string are the same, so nothing would change; give the text as it should be"
        )


def plan(data: bytes, change: Change, shown: str, *, is_last: bool = True) -> Planned:
    """The changed file. Raises `ToolError` with the reason and the closest place in the file.

    Unless it `is_last`, other edits of the file follow, and `check_syntax` is left to the caller.
    """
    job = _Job(data, change, encodings_of(data, change.old, shown), shown)
    planned = _exactly(job) or _with_other_line_ends(job) or _loosely(job) or _translated(job)
    if planned is None:
        raise _missed(job)
    if planned.data == data:
        raise ToolError(f"{shown} would not change: old_string and new_string differ in line endings only")
    if is_last:
        check_syntax(data, planned, shown)
    return planned


def _exactly(job: _Job) -> Planned | None:
    change = job.change
    for encoding in job.encodings:
        matches = find_exactly(job.data, change.old, encoding)
        if not matches:
            continue
        check_encodable(change.new, encoding, job.shown)
        if change.replace_all:
            # Line endings are invisible to the model: all places with the same text are meant.
            others = find_with_other_line_ends(job.data, change.old, encoding) if "\n" in change.old else ()
            found = sorted({*matches, *others}, key=lambda match: match.start)
            return _all_replaced(job, _whole_lines(job, found, encoding), encoding)
        _check_unique(matches, job, encoding)
        return _one_replaced(job, matches[0], encoding)
    return None


def _one_replaced(job: _Job, match: Match, encoding: Encoding) -> Planned:
    place = MatchContext.of(job.data, match, encoding)
    if writes_margin(place, job.change.old, job.change.new):
        start = match.start - len(encoding.encode(place.before))
        if (planned := _with_margin(job, match, Match(start, match.end), encoding)) is not None:
            return planned
    moved = reframed(place, job.change.old, job.change.new)
    if moved is None:
        _check_joint(job, place)
    note = _REINDENTED if moved is not None else ""
    new = job.change.new if moved is None else moved
    return Planned(_spliced(job.data, (match,), new, encoding), encoding, 1, note)


def _with_margin(job: _Job, match: Match, whole: Match, encoding: Encoding) -> Planned | None:
    """The edit that replaces the indentation before the match, too; None if only the edit as given can be parsed."""
    from bradawl.tools.editing.syntax import is_parsed

    given, other = (_spliced(job.data, (each,), job.change.new, encoding) for each in (match, whole))
    if is_parsed(encoding.decode(given), job.shown) and not is_parsed(encoding.decode(other), job.shown):
        return None
    return Planned(other, encoding, 1, _REINDENTED)


def _check_joint(job: _Job, place: MatchContext) -> None:
    if joins_lines(place, job.change.old, job.change.new):
        raise ToolError(
            f"new_string does not end with a line break, though old_string does: its last line would run into the next "
            f"one of {job.shown} ({place.next_line.strip()[:60]!r}). End both alike"
        )


def _whole_lines(job: _Job, matches: list[Match], encoding: Encoding) -> list[Match]:
    """The matches with the indentation before them if new_string brings its own in each place; else as they are."""
    old, new = job.change.old, job.change.new
    if not new[:1].isspace() or len(matches) >= MOST_MATCHES:
        return matches
    places = [MatchContext.of(job.data, match, encoding) for match in matches]
    if not all(writes_margin(place, old, new) for place in places):
        return matches
    pairs = zip(matches, places, strict=True)
    return [Match(match.start - len(encoding.encode(place.before)), match.end) for match, place in pairs]


def _all_replaced(job: _Job, matches: list[Match], encoding: Encoding) -> Planned:
    if len(matches) >= MOST_MATCHES:
        raise ToolError(
            f"old_string matches {MOST_MATCHES:,} times or more in {job.shown}; use bash (sed) for that many"
        )
    chosen = disjoint(matches)
    return Planned(_spliced(job.data, chosen, job.change.new, encoding), encoding, len(chosen))


def _check_unique(matches: tuple[Match, ...], job: _Job, encoding: Encoding) -> None:
    if len(matches) == 1:
        return
    some = matches[:_PLACES_NAMED]
    numbers = list(dict.fromkeys(line_number(job.data, match, encoding) for match in (*some, matches[-1])))
    where = f", all in line {numbers[0]}" if len(numbers) == 1 else ""
    where = where or f" ({_lines_named(numbers[:_PLACES_NAMED], is_cut=len(matches) > len(some))})"
    count = f"{len(matches):,} times{' or more' if len(matches) >= MOST_MATCHES else ''}"
    raise ToolError(
        f"old_string matches {count} in {job.shown}{where}; nothing was "
        "changed. Add lines around it so that it is unique, or set replace_all=true to change every one"
    )


def _lines_named(numbers: list[int], *, is_cut: bool) -> str:
    more = ", ..." if is_cut else ""
    return f"lines {', '.join(map(str, numbers))}{more}"


def _spliced(data: bytes, matches: tuple[Match, ...], new: str, encoding: Encoding) -> bytes:
    pieces: list[bytes] = []
    place = 0
    for match in matches:
        pieces += (data[place : match.start], encoding.encode(_in_local_lines(data, match, new, encoding)))
        place = match.end
    return b"".join([*pieces, data[place:]])


def _in_local_lines(data: bytes, match: Match, new: str, encoding: Encoding) -> str:
    """Give new text the line endings around it, unless it contains carriage returns itself."""
    if "\n" not in new or "\r" in new or line_ending_at(data, match, encoding) == "\n":
        return new
    return new.replace("\n", "\r\n")


def _with_other_line_ends(job: _Job) -> Planned | None:
    """A match with other line endings; unchanged lines keep theirs."""
    old = job.change.old
    if "\n" not in old:
        return None
    for encoding in job.encodings:
        matches = find_with_other_line_ends(job.data, old, encoding)
        if not matches:
            continue
        check_encodable(job.change.new, encoding, job.shown)
        if job.change.replace_all:
            plain = msgspec.structs.replace(job.change, new=job.change.new.replace("\r\n", "\n"))
            planned = _all_replaced(msgspec.structs.replace(job, change=plain), list(matches), encoding)
            return msgspec.structs.replace(planned, note=_note("line endings"))
        _check_unique(matches, job, encoding)
        return _fitted(job, matches[0], encoding)
    return None


def _fitted(job: _Job, match: Match, encoding: Encoding) -> Planned:
    from bradawl.tools.editing.inexact_place import fit_of_span
    from bradawl.tools.editing.rewrite import rewritten

    _check_joint(job, MatchContext.of(job.data, match, encoding))
    span = file_text_of(job.data[match.start : match.end], Encoding(encoding.codec)).text
    fit = fit_of_span(span, 0, ("line endings",))
    ending = line_ending_at(job.data, match, encoding)
    old, new = (text.replace("\r\n", "\n").split("\n") for text in (job.change.old, job.change.new))
    text = rewritten(fit, old, new, ending)
    return Planned(_put(job.data, match, text, encoding), encoding, 1, _note("line endings"))


def _note(*ignored: str) -> str:
    return f"matched after ignoring {' and '.join(ignored)}"


def _put(data: bytes, match: Match, text: str, encoding: Encoding) -> bytes:
    """The bytes with `text` at one place. `text` may contain undecodable bytes of the file."""
    return data[: match.start] + FileText(text, Encoding(encoding.codec)).data + data[match.end :]


def _loosely(job: _Job) -> Planned | None:
    from bradawl.tools.editing.inexact import InexactMatch, find_inexact
    from bradawl.tools.editing.inexact_place import INVISIBLE
    from bradawl.tools.editing.rewrite import rewritten

    if sum(map(str.isalnum, job.change.old)) < _LEAST_LETTERS:
        return None  # ambiguous
    encoding = job.encodings[0]
    file_text = file_text_of(job.data, encoding)
    found = find_inexact(
        file_text, job.change.old.replace("\r\n", "\n"), job.change.new.replace("\r\n", "\n"), job.shown
    )
    if found is None:
        return None
    check_encodable(job.change.new, encoding, job.shown)

    def planned(match: InexactMatch) -> Planned:
        place = Match(file_text.place(match.fit.start), file_text.place(match.fit.stop))
        text = rewritten(match.fit, match.old, match.new, line_ending_at(job.data, place, encoding))
        is_adapted = not INVISIBLE.issuperset(match.fit.ignored)
        return Planned(_put(job.data, place, text, encoding), encoding, 1, _note(*match.fit.ignored), is_adapted)

    return _with_indentation(found, planned, job)


def _with_indentation(found: "InexactMatch", planned: "Callable[[InexactMatch], Planned]", job: _Job) -> Planned:
    """The edit with new_string indented as it is meant: like old_string, or already like the file."""
    from bradawl.tools.editing.indentation_of_new import (
        changes_more_than_indentation,
        in_file_indentation,
        reading_of,
    )

    match reading_of(found):
        case "like old_string":
            return planned(found)
        case "like the file":
            if not changes_more_than_indentation(found):
                raise ToolError(
                    f"{job.shown} would not change: it is indented already as new_string is, and otherwise than "
                    "old_string. If it is to be indented further, repeat the edit with the file's own indentation"
                )
            return planned(in_file_indentation(found))
        case _:
            return _that_parses([found, in_file_indentation(found)], planned, job)


def _that_parses(readings: "list[InexactMatch]", planned: "Callable[[InexactMatch], Planned]", job: _Job) -> Planned:
    """The edit by the one reading whose result can be parsed. Raises `ToolError` unless there is exactly one."""
    from bradawl.tools.editing.syntax import is_parsed

    found: list[Planned] = []
    for reading in readings:
        with suppress(ToolError):
            found.append(planned(reading))
    good = [each for each in found if is_parsed(each.encoding.decode(each.data), job.shown)]
    if len(good) != 1:
        raise ToolError(
            "old_string is indented otherwise than the file, and whether new_string is indented like the one or like "
            "the other can't be determined; nothing was changed. Repeat the edit with the file's own indentation"
        )
    return good[0]


def check_syntax(before: bytes, planned: Planned, shown: str) -> None:
    """Raises `ToolError` if adapted edits would break a file that could be parsed `before`."""
    if not planned.is_adapted:
        return
    from bradawl.tools.editing.syntax import fault_in, is_parsed

    fault = fault_in(planned.encoding.decode(planned.data), shown)
    if fault is not None and is_parsed(planned.encoding.decode(before), shown):
        raise _broken(planned, shown, f"be valid {fault.language} any more (line {fault.line}: {fault.reason})")


async def check_with_grammar(before: FileContent, planned: Planned, context: CallContext) -> None:
    """`check_syntax` for languages with an installed grammar; a program parses the file. Raises `ToolError`."""
    if not planned.is_adapted or planned.encoding.codec != "utf-8":
        return
    from bradawl.tools.outlines.languages import broken_line

    if line := await broken_line(before, planned.data, context):
        raise _broken(planned, context.relative(before.path), f"parse any more (error in line {line})")


def _broken(planned: Planned, shown: str, what: str) -> ToolError:
    return ToolError(
        f"old_string is in {shown} only {planned.note.replace('matched ', '')}, and with new_string in its place "
        f"the file would not {what}; nothing was changed. Repeat the edit with the text as it is in the file"
    )


def _translated(job: _Job) -> Planned | None:
    """Retry without line numbers of read_file or a layer of escapes."""
    from bradawl.tools.editing.copied_text import translations

    for translation in translations(job.change.old, job.change.new):
        changed = msgspec.structs.replace(job, change=Change(translation.old, translation.new))
        matches = _places(changed) if translation.old.strip() else []
        if len(matches) != 1:
            continue
        match, encoding = matches[0]
        if translation.line and line_number(job.data, match, encoding) != translation.line:
            continue
        planned = _exactly(changed) or _with_other_line_ends(changed)
        return planned and msgspec.structs.replace(planned, note=_note(translation.what), is_adapted=True)
    return None


def _places(job: _Job) -> list[tuple[Match, Encoding]]:
    for encoding in job.encodings:
        found = find_exactly(job.data, job.change.old, encoding) or find_with_other_line_ends(
            job.data, job.change.old, encoding
        )
        if found:
            return [(match, encoding) for match in found]
    return []


def _missed(job: _Job) -> ToolError:
    from bradawl.tools.editing.mismatch import explain_absence

    reason = explain_absence(file_text_of(job.data, job.encodings[0]).text, job.change.old)
    return ToolError(f"old_string was not found in {job.shown}; nothing was changed. {reason}")
