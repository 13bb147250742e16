"""Words errors about paths: uses the path as given and suggests similar ones."""

import contextlib
import re
from collections.abc import Collection, Iterator

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.tools.reading.decoding import presentable

_FILES_LOOKED_AT = 5_000
_SUGGESTED = 3
_LEVELS = 5


@contextlib.contextmanager
def named_as_given(real: str, given: str, context: CallContext) -> Iterator[None]:
    """Errors about the resolved path `real` speak of it as it was `given`, and of others from the working directory."""
    try:
        yield
    except ToolError as error:
        head, rest = (given, str(error)[len(real) :]) if str(error).startswith(real) else ("", str(error))
        root = context.cwd.rstrip("/") + "/"
        if root != "/":
            rest = re.sub(r"(?<!\S)" + re.escape(root), "", rest)
        raise ToolError(head + rest) from None


async def with_suggestion(error: ToolError, real: str, context: CallContext) -> ToolError:
    """The error about a path; if nothing is there, with paths below the working directory that may be meant."""
    try:
        await context.files.list(real, 0)
    except ToolError:
        if above := await _above(real, context):
            return ToolError(f"{real} does not exist: the working directory is {context.cwd} since a cd; {above} does")
        if others := await _alike(real, context):
            # They are better than the names in the folder where it is not.
            return ToolError(f"{str(error).partition(';')[0]}; did you mean {presentable(', '.join(others))}?")
    return error


async def _above(real: str, context: CallContext) -> str:
    """The same path from a folder above the working directory, for who forgot that a command went down."""
    path = context.relative(real)
    folder, ups = context.cwd, ""
    while not path.startswith("/") and len(ups) < _LEVELS * len("../") and folder != "/":
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
    """Paths that end in the same name; if there are none, in one that a slip makes of it."""
    try:
        entries, _ = await context.files.list(context.cwd, _FILES_LOOKED_AT)
    except ToolError:
        return []
    tail = f"/{context.relative(real)}"
    folder, _, wanted = tail.rpartition("/")
    by_name: dict[str, set[str]] = {}
    for entry in entries:
        parts = context.relative(entry.path).split("/")
        for place, name in enumerate(parts):
            by_name.setdefault(name, set()).add("/" + "/".join(parts[: place + 1]))
    names = {wanted: 0} if wanted in by_name else _slips(wanted, by_name)
    found = [
        (slips, not path.endswith(tail), path.rpartition("/")[0] != folder, path.count("/"), path)
        for name, slips in names.items()
        for path in by_name[name]
    ]
    return [on_one_line(path[1:]) for *_, path in sorted(found)[:_SUGGESTED]]


def _slips(wanted: str, names: Collection[str]) -> dict[str, int]:
    """The names that differ in case, in what follows the dot, or in a slip of the keys, and how much they do."""
    if same := [name for name in names if name.lower() == wanted.lower()]:
        return dict.fromkeys(same, 0)
    most = min(len(wanted) // 3, 2)
    stem = wanted.rpartition(".")[0]
    found: dict[str, int] = {}
    for name in names:
        near = abs(len(name) - len(wanted)) <= most
        if near and (slips := _distance(wanted.lower(), name.lower(), most)) <= most:
            found[name] = slips
        elif len(stem) > 1 and stem == name.rpartition(".")[0]:
            found[name] = 1
    return found


def _distance(one: str, other: str, most: int) -> int:
    """How many letters were left out, added, changed or swapped with their neighbour; above `most` only that it is."""
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
    """A path as part of a line: one that holds line breaks or other control characters is shown with escapes."""
    return path if path.isprintable() else "".join(_visible(char) for char in path)


def _visible(char: str) -> str:
    return char if char.isprintable() or char >= "\x80" else repr(char)[1:-1]
