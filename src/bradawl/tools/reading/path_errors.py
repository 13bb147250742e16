"""Error messages about paths: with the path as the model gave it, and with similar paths that exist."""

import contextlib
import re
from collections.abc import Collection, Iterator

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.tools.reading.decoding import presentable

_FILES_SEARCHED = 5_000
_MOST_SUGGESTIONS = 3
_LEVELS = 5


@contextlib.contextmanager
def named_as_given(real: str, given: str, context: CallContext) -> Iterator[None]:
    """Reword errors raised inside: `real` as it was `given`, other paths relative to the working directory, or as
    programs call them.
    """
    try:
        yield
    except ToolError as error:
        head, rest = (given, str(error)[len(real) :]) if str(error).startswith(real) else ("", str(error))
        root = context.cwd.rstrip("/") + "/"
        if root != "/":
            rest = re.sub(r"(?<!\S)" + re.escape(root), "", rest)
        rest = re.sub(r"(?<!\S)/[^\s;,:]+", lambda found: context.name_of(found[0]), rest)
        raise ToolError(head + rest) from None


async def with_suggestion(error: ToolError, real: str, context: CallContext) -> ToolError:
    """The error; for a missing path with similar paths near the working directory."""
    try:
        await context.files.list(real, 0)
    except ToolError:
        if above := await _above(real, context):
            return ToolError(
                f"{real} does not exist: the working directory is {context.name_of(context.cwd)}; {above} exists"
            )
        if others := await _alike(real, context):
            # Better than the names in the wrong folder, which the message would list.
            return ToolError(f"{str(error).partition(';')[0]}; did you mean {presentable(', '.join(others))}?")
    return error


async def _above(real: str, context: CallContext) -> str:
    """The same path relative to a parent of the working directory in the project, for a model that forgot a `cd`."""
    path, project = context.relative(real), context.project.rstrip("/")
    folder, ups = context.cwd, ""
    if not context.project or path.startswith("/"):
        return ""
    while len(ups) < _LEVELS * len("../") and folder.startswith(f"{project}/") and folder != "/":
        folder, ups = folder.rpartition("/")[0] or "/", f"../{ups}"
        if await _is_there(f"{folder.rstrip('/')}/{path}", context):
            return presentable(on_one_line(ups + path))
    return ""


async def _is_there(path: str, context: CallContext) -> bool:
    try:
        await context.files.list(path, 0)
    except ToolError:
        return False
    return True


async def _alike(real: str, context: CallContext) -> list[str]:
    """Existing paths with the same last part or, if there are none, with a similar one."""
    try:
        entries, _ = await context.files.list(context.cwd, _FILES_SEARCHED)
    except ToolError:
        return []
    tail = f"/{context.relative(real)}"
    folder, _, wanted = tail.rpartition("/")
    by_name: dict[str, set[str]] = {}
    for entry in entries:
        parts = context.relative(entry.path).split("/")
        for place, name in enumerate(parts):
            by_name.setdefault(name, set()).add("/" + "/".join(parts[: place + 1]))
    names = {wanted: 0} if wanted in by_name else _similar(wanted, by_name)
    found = [
        (distance, not path.endswith(tail), path.rpartition("/")[0] != folder, path.count("/"), path)
        for name, distance in names.items()
        for path in by_name[name]
    ]
    return [on_one_line(path[1:]) for *_, path in sorted(found)[:_MOST_SUGGESTIONS]]


def _similar(wanted: str, names: Collection[str]) -> dict[str, int]:
    """Names that differ in case, in the suffix or by a typing error, each with its edit distance."""
    if same := [name for name in names if name.lower() == wanted.lower()]:
        return dict.fromkeys(same, 0)
    stem, suffix = _split(wanted)
    # A suffix of the same letters says nothing, and two of four letters are another word: nope.py is not core.py.
    most = 0 if len(stem) < 4 else 1 if len(stem) < 8 else 2
    found: dict[str, int] = {}
    for name in names:
        other, other_suffix = _split(name)
        near = other_suffix == suffix and abs(len(other) - len(stem)) <= most
        if near and (distance := _distance(stem.lower(), other.lower(), most)) <= most:
            found[name] = distance
        elif len(stem) > 1 and stem == other:
            found[name] = 1
    return found


def _split(name: str) -> tuple[str, str]:
    """The name without its suffix, and the suffix; a name such as `.env` has none."""
    stem, _, suffix = name.rpartition(".")
    return (stem, suffix) if stem else (name, "")


def _distance(one: str, other: str, most: int) -> int:
    """The edit distance, a swap of neighbours counted as one. Above `most` the number is not exact."""
    if len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def on_one_line(path: str) -> str:
    """The path with escapes for line breaks and other control characters."""
    return path if path.isprintable() else "".join(_visible(char) for char in path)


def _visible(char: str) -> str:
    return char if char.isprintable() or char >= "\x80" else repr(char)[1:-1]
