"""The command line of an undo, as advice to the user repeats it."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec import structs

from bradawl.folds.undo_history import Part


class UndoLine(msgspec.Struct, frozen=True, kw_only=True):
    """What an undo or redo was asked to do, without an answer to its conflicts."""

    session: str = ""
    """As the command line names it; empty for the last one of the folder."""
    step: str = ""
    part: Part = "both"
    is_redo: bool = False
    places: tuple[str, ...] = ()
    """Options that name folders."""
    forced: tuple[str, ...] = ()
    """Paths of `--force`."""
    is_slash: bool = False
    """Whether it was asked for by a slash command, whose session is open."""

    def of(self, step: str, part: Part) -> "UndoLine":
        """The line for another step and part."""
        return structs.replace(self, step=step, part=part, is_redo=False)

    def redo(self) -> "UndoLine":
        """The line for a redo in the same session."""
        return structs.replace(self, step="", part="both", is_redo=True, forced=())

    def command(self, *more: str) -> str:
        """`bradawl undo` with its arguments, and with these options."""
        words = ["bradawl", "undo", *self.places, *filter(None, [self.session])]
        if self.is_redo:
            words.append("--redo")
        if self.step:
            words += ["--to", self.step]
        words += {"both": [], "code": ["--code-only"], "talk": ["--talk-only"]}[self.part]
        for path in self.forced:
            words += ["--force", path]
        return shlex.join([*words, *more])

    def slash(self) -> str:
        """The slash command that does the same."""
        if self.is_redo:
            return "/redo"
        return " ".join(["/undo", *filter(None, [self.step]), *([] if self.part == "both" else [self.part])])


LAST_SESSION: Final = UndoLine()
"""The last session of the folder."""


def places_of(folder: str, added: Sequence[str]) -> tuple[str, ...]:
    """Options with which a command started in the present folder has this folder and the added ones."""
    try:
        is_here = Path(folder).samefile(Path.cwd())
    except OSError:
        is_here = False
    return (*(() if is_here else ("-C", folder)), *(word for each in added for word in ("--add-dir", each)))


def line_of(options: Mapping[str, object]) -> UndoLine:
    """The line that `bradawl undo` was started with, of its parsed options."""
    places: list[str] = []
    if options.get("cwd"):
        places += ["-C", str(options["cwd"])]
    for folder in cast("Sequence[str] | None", options.get("add_dirs")) or ():
        places += ["--add-dir", folder]
    return UndoLine(
        session=str(options.get("session") or ""),
        step=str(options.get("to") or ""),
        part="code" if options.get("code_only") else "talk" if options.get("talk_only") else "both",
        is_redo=bool(options.get("redo")),
        places=tuple(places),
        forced=tuple(cast("Sequence[str] | None", options.get("force")) or ()),
    )
