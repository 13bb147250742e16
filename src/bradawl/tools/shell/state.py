"""Records what a command changes for later calls: working directory, exported variables, seen files."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.events import Cwd, Env
from bradawl.core.ports import CallContext
from bradawl.core.workspace import CommandResult, FileContent
from bradawl.safety.name_lists import first_of

_LONGEST_VALUE = 32_000
_ALL_VALUES = 200_000
_MOST_VARIABLES = 500
"""A sandbox takes the variables as arguments, of which there may be some thousand. With too many no command starts, not
even one that unsets them.
"""
_NAMED = 20
_FILES_SEEN = 100
_REDIRECTED = re.compile(r">\s*([\w./~+@-]+)")
_LARGEST_SEEN = 8_000_000
_ALL_SEEN = 32_000_000


def keep_state(
    result: CommandResult, cwd: str, context: CallContext, *, may_move: bool, user_is_there: bool = True
) -> tuple[str, ...]:
    """Record the command's last folder and exports; returns notes for the model. A note also says if the last folder of
    a command that may have changed it is unknown. `user_is_there`: a user can allow variables that are not kept.
    """
    notes: list[str] = []
    name = context.name_of(cwd)
    if cwd != context.cwd:
        notes.append(f"[working directory {context.name_of(context.cwd)} is gone; this ran in {name}]")
    if result.cwd and not _is_text(result.cwd):
        shown = os.fsencode(result.cwd).decode("utf-8", "backslashreplace")
        notes.append(f"[the name of {shown} is not UTF-8, so it is not kept: the working directory is still {name}]")
    elif result.cwd and result.cwd != cwd:
        context.change(Cwd(result.cwd))
        notes.append(f"[working directory is now {context.name_of(result.cwd)}]")
    if may_move and not result.cwd:
        # Every report that the shell writes at its end contains the codes of the last pipeline.
        gone = "the folder it ended in is gone" if result.pipe_status else "it is unknown where this ended"
        exports = "" if result.pipe_status else ", and exports are as before"
        notes.append(f"[{gone}: the working directory is still {name}{exports}]")
    if result.exports:
        notes += _keep_exports(result, context, user_is_there=user_is_there)
    return tuple(notes)


def _keep_exports(result: CommandResult, context: CallContext, *, user_is_there: bool) -> Iterable[str]:
    from bradawl.safety.environment_variables import is_execution_relevant

    kept: dict[str, str | None] = {}
    refused: list[str] = []
    too_much: list[str] = []
    too_many: list[str] = []
    allowed = context.grant.environment if context.grant else ()
    present = {name for name, value in context.env.items() if value is not None}
    size = sum(len(value or "") for value in context.env.values())
    for name, value in result.exports.items():
        taken = len(name) + len(value or "")
        # `cd -` needs OLDPWD, which comes and goes with the working directory.
        if name != "OLDPWD" and is_execution_relevant(name) and not {name, "*"}.intersection(allowed):
            refused.append(name)
        elif value is None:
            kept[name] = None
            present.discard(name)
        elif taken > _LONGEST_VALUE or size + taken > _ALL_VALUES or not _is_text(value):
            too_much.append(name)
        elif name not in present and len(present) >= _MOST_VARIABLES:
            too_many.append(name)
        else:
            kept[name] = value
            present.add(name)
            size += taken
    if kept:
        context.change(Env(kept))
    about_refused = _about_refused(refused, result, context, user_is_there=user_is_there)
    return (*_about_exports(kept), *about_refused, *_about_unfit(too_much, too_many))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _about_exports(kept: dict[str, str | None]) -> Iterable[str]:
    if exported := [name for name, value in kept.items() if value is not None and name != "OLDPWD"]:
        yield f"[exported for later calls: {first_of(exported, _NAMED)}]"
    if gone := [name for name, value in kept.items() if value is None and name != "OLDPWD"]:
        yield f"[unset for later calls: {first_of(gone, _NAMED)}]"


def _about_refused(
    names: list[str], result: CommandResult, context: CallContext, *, user_is_there: bool
) -> Iterable[str]:
    """What becomes of variables that decide what commands run. Without a user there is no way to keep them."""
    if not names:
        return
    if user_is_there:
        yield (
            f"[not kept for later calls, because it decides what commands run: {first_of(names, _NAMED)}; "
            f"`export {names[0]}=...` as a call of its own asks for it]"
        )
        return
    program = _new_program(result.exports.get("PATH"), context) if "PATH" in names else ""
    are = "is" if len(names) == 1 else "are"
    instead = f"write {program}, or repeat" if program else "repeat"
    yield f"[{first_of(names, _NAMED)} {are} not kept for later calls: {instead} the export in the command]"


def _new_program(path: str | None, context: CallContext) -> str:
    """A program in the first folder that the command added to PATH, as a command can name it; empty without one."""
    before = (context.env.get("PATH") or "").split(":")
    added = next((folder for folder in (path or "").split(":") if folder.startswith("/") and folder not in before), "")
    if not is_within(added, context.project):  # the folders of the system, where the former PATH is not known
        return ""
    shown = added.removeprefix(f"{context.cwd}/")
    return f"{shown}/{'python' if Path(added, 'python').is_file() else 'PROGRAM'}"


def _about_unfit(too_much: list[str], too_many: list[str]) -> Iterable[str]:
    if too_much:
        yield f"[not kept for later calls, because it is too long or no text: {first_of(too_much, _NAMED)}]"
    if too_many:
        yield (
            f"[not kept for later calls, because there are {_MOST_VARIABLES} exported variables already: "
            f"{first_of(too_many, _NAMED)}]"
        )


async def mark_seen(paths: tuple[str, ...], printed: bytes, context: CallContext) -> None:
    """Record the files as seen of which a command printed all or, if it printed nothing else, a part.

    A file that a command only counted or searched is not seen: to overwrite it would lose what is in it. So is one that
    changed after it was printed. Folders and very large files are never seen.
    """
    room = _ALL_SEEN
    for path in paths[:_FILES_SEEN]:
        try:
            content = await context.files.read(path, min(room, _LARGEST_SEEN))
        except ToolError:
            continue
        room -= len(content.data)
        if content.data.strip() in printed:
            context.seen.saw(content)
        elif printed.strip() and printed in content.data:
            context.seen.saw(content, _part_printed(printed, content.data))


async def mark_written(command: str, context: CallContext) -> None:
    """Record the files as seen whose whole content is in the command: a here-document, or `echo 'x = 4' > gen.py`.

    Of a file that was seen whole, what the command appended is enough. The names are only candidates: the content
    decides.
    """
    typed = command.encode("utf-8", "replace")
    for name in _REDIRECTED.findall(command)[:_FILES_SEEN]:
        try:
            path = context.resolve(name)
            before = (context.seen.data(path) or b"") if _is_known(path, context) else b""
            content = await context.files.read(path, len(before) + len(typed))
        except ToolError:
            continue
        new = content.data.removeprefix(before).strip()
        if new and new in typed:
            context.seen.saw(content)


def _is_known(path: str, context: CallContext) -> bool:
    """Whether the model saw all of the content that it saw last."""
    return "" in context.seen.parts(FileContent(path, b"", context.seen.sha256(path) or ""))


def _part_printed(printed: bytes, data: bytes) -> str:
    """The name of the lines that were printed whole."""
    from bradawl.tools.editing.seen_lines import part_of_output

    start = data.index(printed)
    stop = start + len(printed)
    starts_inside, ends_inside = data[:start][-1:] not in b"\n", data[stop - 1 : stop] != b"\n" and stop < len(data)
    first = data.count(b"\n", 0, start) + 1
    last = first + printed.removesuffix(b"\n").count(b"\n")
    return part_of_output(first + starts_inside, last - ends_inside)


def nearest_folder(context: CallContext) -> str:
    """The working directory or, if it is gone, its nearest existing parent."""
    folder = context.cwd
    while folder != "/" and not _is_folder(folder, context):
        folder = folder.rpartition("/")[0] or "/"
    return folder


def _is_folder(path: str, context: CallContext) -> bool:
    try:
        return Path(context.files.resolve(path, "/")).is_dir()
    except (ToolError, OSError, ValueError):
        return False


def home_folder(context: CallContext) -> str:
    """The user's home folder from the environment or the user database; empty if there is none."""
    with suppress(ToolError):
        return context.files.resolve("~", "/")
    import pwd

    with suppress(KeyError):
        return pwd.getpwuid(os.getuid()).pw_dir
    return ""
