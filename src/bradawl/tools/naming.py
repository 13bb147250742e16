"""What is said of paths that can't be used: named as they were given, with the one that may be meant."""

import contextlib
import re
from collections.abc import Iterator

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.tools.decoding import presentable

_FILES_LOOKED_AT = 5_000
_SUGGESTED = 3


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
    """The error about a path; if nothing is there, with those of the same name below the working directory."""
    try:
        await context.files.list(real, 0)
    except ToolError:
        if others := await _of_the_same_name(real, context):
            # They are better than the names in the folder where it is not.
            return ToolError(f"{str(error).partition(';')[0]}; did you mean {presentable(', '.join(others))}?")
    return error


async def _of_the_same_name(real: str, context: CallContext) -> list[str]:
    try:
        entries, _ = await context.files.list(context.cwd, _FILES_LOOKED_AT)
    except ToolError:
        return []
    tail = f"/{context.relative(real)}"
    name = tail.rpartition("/")[2]
    found: set[str] = set()
    for entry in entries:
        parts = context.relative(entry.path).split("/")
        if name in parts:
            found.add("/".join(parts[: parts.index(name) + 1]))
    return sorted(found, key=lambda path: (not path.endswith(tail), path.count("/"), path))[:_SUGGESTED]
