"""The text that shows the result of a search to the model."""

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping

from bradawl.core.ports import CallContext
from bradawl.tools.outlines.symbol import Symbol, enclosing
from bradawl.tools.reading.path_errors import on_one_line
from bradawl.tools.searching.relevance import ranked, shares
from bradawl.tools.searching.search import Line, Query, SearchResult, by_component

_MOST_CHARACTERS = 30_000
_MOST_OF_PATTERN = 500
_MOST_FOLDERS = 6
_LOOKS_LIKE_A_LINE = re.compile(r"\d+[:-] |--|\[.*\]\Z|  in ")


Symbols = Mapping[str, tuple[Symbol, ...]]
"""The definitions of each file, where they are known."""


def shown(found: SearchResult, query: Query, where: str, context: CallContext, symbols: Symbols) -> str:
    """The result as text for the model; `where` names the searched place."""
    if not found.total:
        text = [_nothing(found.searched, query, where)]
    elif query.output_mode == "content":
        text = list(_content(found, query, context, symbols))
    else:
        text = list(_files(found, query, context))
    return "\n".join([*text, *found.notes])


# ------------------------------------------------------------------ names of files, and counts


def _files(found: SearchResult, query: Query, context: CallContext) -> Iterator[str]:
    first = heapq.nsmallest(query.limit, found.counts, key=by_component)
    lines = (_file(path, found.counts[path], query, context) for path in first)
    listed = list(_within(lines, _MOST_CHARACTERS))
    yield from listed
    files = len(found.counts)
    rest = f", showing the first {len(listed)}; narrow with path or include" if len(listed) < files else ""
    yield f"[{_total(found)} in {_number(files, 'file', 'files')}{rest}]"


def _file(path: str, count: int, query: Query, context: CallContext) -> str:
    name = on_one_line(context.relative(path))
    return name if query.output_mode == "files" else f"{name}: {count}"


def _within(lines: Iterable[str], most: int) -> Iterator[str]:
    for line in lines:
        most -= len(line) + 1
        if most < 0:
            return
        yield line


# ------------------------------------------------------------------ lines

Chosen = dict[str, list[Line]]
"""The lines to show of each file, files in the order to show them."""


def _content(found: SearchResult, query: Query, context: CallContext, symbols: Symbols) -> Iterator[str]:
    chosen = _all(found, query) or _some(found, query)
    for path, lines in chosen.items():
        if not query.is_file:
            yield _heading(path, context)
        yield from _printed(lines, query, symbols.get(path, ()))
        more = found.counts[path] - _matches(lines)
        if more > 0 and len(found.counts) > 1:
            yield f"[{more} more here]"
    if (count := sum(map(_matches, chosen.values()))) < found.total or found.is_partial:
        yield _rest(found, chosen, count, query, context)


def _all(found: SearchResult, query: Query) -> Chosen | None:
    """All lines, by path; None if that is too much."""
    is_whole = len(found.lines) == len(found.counts) and query.most_matches(found.total) == found.total
    if not is_whole or not _fits(found.lines, query):
        return None
    return {path: found.lines[path] for path in sorted(found.lines, key=by_component)}


def _some(found: SearchResult, query: Query) -> Chosen:
    """The most relevant files, and as many lines of each as there is room for."""
    defining = {path for path, lines in found.lines.items() if any(line.is_definition for line in lines)}
    order = ranked({path: found.counts[path] for path in found.lines}, defining, query.root)
    limit = query.sample
    while True:
        given = shares(order, found.counts, limit)
        chosen = {path: chosen_lines(found.lines[path], most, query.context) for path, most in given.items()}
        if limit == 1 or _fits(chosen, query):
            return {path: lines[: query.most_lines] for path, lines in chosen.items()}
        limit = max(min(limit - 1, int(limit * _share_that_fits(chosen, query))), 1)


def chosen_lines(lines: list[Line], most: int, context: int) -> list[Line]:
    """Lines of up to `most` matches of one file with the lines around them, definitions before other matches."""
    groups: list[list[Line]] = []
    for line in lines:
        if line.matches:
            groups.append([line])
        elif line.is_match and groups:  # the match goes on
            groups[-1].append(line)
    taken: list[list[Line]] = []
    for group in sorted(groups, key=lambda group: not group[0].is_definition):
        most -= group[0].matches
        if most < 0 and taken:
            break
        taken.append(group)
    return list(_with_context(lines, {line.number for group in taken for line in group}, context))


def _with_context(lines: list[Line], taken: set[int], context: int) -> Iterator[Line]:
    """The taken lines, and the lines around them up to the next match that is not taken."""
    near: set[int] = set()
    for step in (1, -1):
        reach = 0
        for line in lines[::step]:
            reach = context if line.number in taken else 0 if line.is_match else reach - 1
            if line.number in taken or (reach >= 0 and not line.is_match):
                near.add(line.number)
    return (line for line in lines if line.number in near)


def _fits(chosen: Chosen, query: Query) -> bool:
    return _share_that_fits(chosen, query) >= 1


def _share_that_fits(chosen: Chosen, query: Query) -> float:
    """The part of the lines that may be shown; 1 or more if all may."""
    lines = sum(map(len, chosen.values()))
    characters = sum(len(path) + sum(len(line.text) + 8 for line in lines) for path, lines in chosen.items())
    return min(query.most_lines / max(lines, 1), _MOST_CHARACTERS / max(characters, 1))


def _matches(lines: list[Line]) -> int:
    return sum(line.matches for line in lines)


def _heading(path: str, context: CallContext) -> str:
    """The path as one line that can't be taken for a line of a file."""
    name = on_one_line(context.relative(path))
    return f"./{name}" if _LOOKS_LIKE_A_LINE.match(name) else name


def _printed(lines: list[Line], query: Query, symbols: tuple[Symbol, ...]) -> Iterator[str]:
    """The lines in grep's format: `3: match`, `4- context`, `--` where lines are left out, and a line before those in
    another definition.
    """
    before: Line | None = None
    around: Symbol | None = None
    places = _places(lines, symbols)
    for line in lines:
        if query.context and before and before.number + 1 != line.number:
            yield "--"
        before = line
        place = places.get(line.number)
        if place is not None and place != around:
            around = place
            yield f"  in {place.name} ({place.first}-{place.last})"
        yield f"{line.number}{':' if line.is_match else '-'} {line.text}"


def _places(lines: list[Line], symbols: tuple[Symbol, ...]) -> dict[int, Symbol]:
    """The definition around each line by its number. A line before a match has that of the match if it is in it."""
    places: dict[int, Symbol] = {}
    after: Line | None = None
    for line in reversed(lines) if symbols else ():
        place = enclosing(symbols, line.number) if line.is_match else None
        if not line.is_match and after and after.number == line.number + 1:
            place = places.get(after.number)
            place = place if place is not None and place.first <= line.number else None
        if place is not None:
            places[line.number] = place
        after = line
    return places


def _rest(found: SearchResult, chosen: Chosen, count: int, query: Query, context: CallContext) -> str:
    """What is not shown, and how to see it."""
    if query.is_file:
        return f"[{_total(found)}: {count} shown; narrow the pattern]"
    if len(found.counts) == 1:
        return f"[{_total(found)}: {count} shown; narrow with path or include]"
    others = {context.relative(path): found.counts[path] for path in found.counts.keys() - chosen.keys()}
    missing = f"; not shown: {', '.join(folder_counts(others))}" if others else ""
    shown_of = f"{_total(found)} in {len(found.counts)} files: {count} shown, likely files first"
    return f"[{shown_of}{missing}; narrow with path or include]"


def _total(found: SearchResult) -> str:
    return f"{'more than ' if found.is_partial else ''}{_number(found.total, 'match', 'matches')}"


def folder_counts(counts: Mapping[str, int]) -> list[str]:
    """Matches by folder, as `tests/ 80 in 12 files` or `docs/a.md 3`, most first, in a few entries."""
    depth = max((path.count("/") for path in counts), default=0)
    groups = _grouped(counts, depth)
    while depth > 1 and len(groups) > _MOST_FOLDERS:
        depth -= 1
        groups = _grouped(counts, depth)
    order = sorted(groups, key=lambda name: (-sum(groups[name]), name))
    if not order[_MOST_FOLDERS:]:
        return [_group(name, groups[name]) for name in order]
    rest = [count for name in order[_MOST_FOLDERS - 1 :] for count in groups[name]]
    return [*(_group(name, groups[name]) for name in order[: _MOST_FOLDERS - 1]), _group("elsewhere", rest)]


def _grouped(counts: Mapping[str, int], depth: int) -> dict[str, list[int]]:
    """Matches of each file by folder down to `depth`; a folder with one file is named by that file."""
    groups: dict[str, list[str]] = {}
    for path in counts:
        folders, _, _ = path.rpartition("/")
        groups.setdefault("/".join(folders.split("/")[:depth]), []).append(path)
    named = {paths[0] if len(paths) == 1 else f"{folder or '.'}/": paths for folder, paths in groups.items()}
    return {on_one_line(name): [counts[path] for path in paths] for name, paths in named.items()}


def _group(name: str, counts: list[int]) -> str:
    return f"{name} {sum(counts)}" + (f" in {len(counts)} files" if len(counts) > 1 else "")


# ------------------------------------------------------------------ nothing found


def _nothing(searched: int, query: Query, where: str) -> str:
    named = f" named {query.include}" if query.include else ""
    typed = f" of type {query.file_type}" if query.file_type else ""
    return (
        f"No matches for {_beginning(query.pattern)}: searched {_number(searched, 'file', 'files')}{named}{typed} "
        f"in {where}{_hint(query)}"
    )


def _beginning(pattern: str) -> str:
    return pattern if len(pattern) <= _MOST_OF_PATTERN else f"{pattern[:_MOST_OF_PATTERN]}..."


def _hint(query: Query) -> str:
    is_split = "\\n" in query.pattern and not query.is_multiline
    hint = "; grep searches one line at a time unless multiline=true" if is_split else ""
    return hint + ("; alternation is |; \\| is a literal bar" if "\\|" in query.pattern else "")


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
