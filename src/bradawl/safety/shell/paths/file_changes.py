"""Data types for the changes that one command makes to its operands."""

import re

import msgspec

from bradawl.safety.shell.argv import Argv


class Copies(msgspec.Struct, frozen=True):
    """Files that are copied, moved or linked."""

    sources: Argv
    target: str
    is_deep: bool = False
    """Folders are copied with everything below them."""
    is_contents: bool = False
    """The contents of a source folder are placed directly below the target."""
    is_archive: bool = False
    """The sources are archives that are unpacked; `-` is one that another command of the line creates."""


class Changes(msgspec.Struct, frozen=True):
    """The changes that one command makes to the paths among its words."""

    files: Argv = ()
    """Words whose paths are written, created or removed."""
    trees: Argv = ()
    """Words whose paths are changed with everything below them."""
    copies: tuple[Copies, ...] = ()
    maybe_changed: Argv = ()
    """Words of an unknown program: any part of them may be a path that it changes."""
    texts: Argv = ()
    """Code or patches that may change the files they name."""
    removes: bool = False
    """Whether `trees` are removed."""
    packed: tuple[tuple[str, str], ...] = ()
    """What is packed into an archive: pairs of a folder and a path relative to it."""
    is_whole_tree: bool = False
    """A folder in `maybe_changed` is changed with everything below it."""
    suffixes: tuple[str, ...] = ()
    """Only files in `trees` with these suffixes are changed."""
    tracked: bool | None = None
    """True: only tracked files in `trees` are changed. False: only untracked ones. None: all."""


NO_CHANGES = Changes()


def named_outputs(argv: Argv) -> Argv:
    """The values of options that commonly name an output file or folder."""
    found: list[str] = []
    for place, word in enumerate(argv[1:], 1):
        name, equals, value = word.partition("=")
        if _OUTPUT.fullmatch(name):
            found += [value] if equals else argv[place + 1 : place + 2]
        elif word[:2] == "-o" and len(word) > 2 and word[1] != "-":
            found.append(word[2:])
    return tuple(part for each in found for part in dict.fromkeys((each, each.rpartition(":")[2])) if part)


_OUTPUT = re.compile(
    r"-(?:o|out|output|outdir|keyout|d|t|B|D|MF|Fo|Fe)|--(?:out(?:put|-?dir|-?file|-?path|put-[a-z]+)?|dest(?:ination|dir)?"
    r"|target(?:-dir|-directory)?|prefix|install-dir|dir|report[a-z-]*|junit-?xml|junit[a-z-]*|log-?file|cov-report"
    r"|root|basetemp|cache-dir|save[a-z-]*|write[a-z-]*|outDir|outFile|declarationDir|build-dir|dist-dir|html|xml)"
)
