"""What a command does to the paths among its words."""

import re

import msgspec

from bradawl.safety.shell.argv import Argv


class Copies(msgspec.Struct, frozen=True):
    """Files that get other names, or others with the same content."""

    sources: Argv
    target: str
    is_deep: bool = False
    """With all that lies below folders."""
    is_contents: bool = False
    """What lies in a source comes directly below the target."""
    is_archive: bool = False
    """Sources are archives; `-` is one that another command of the line makes."""


class Changes(msgspec.Struct, frozen=True):
    """What a command does to the paths among its words."""

    files: Argv = ()
    """Words whose paths are written to, created or removed."""
    trees: Argv = ()
    """Words whose paths are changed with all that lies below."""
    copies: tuple[Copies, ...] = ()
    loose: Argv = ()
    """Words of a program that is not known: any part of them may be a path that it changes."""
    texts: Argv = ()
    """Code or patches: what they name may be changed."""
    removes: bool = False
    """Whether `trees` go away."""
    packed: tuple[tuple[str, str], ...] = ()
    """Folders, and words seen from there, that get into an archive."""
    is_whole_tree: bool = False
    """A folder among `loose` counts with all that lies below."""
    suffixes: tuple[str, ...] = ()
    """Of `trees`: only files whose names end so."""
    tracked: bool | None = None
    """Of `trees`: only what git has in its index, or only what it has not."""


NOTHING = Changes()


def outputs_of(argv: Argv) -> Argv:
    """Values of options that usually name what is made."""
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
