"""Links that the commands of a line would create, and their targets."""

import re
from collections.abc import Iterable, Iterator
from itertools import permutations
from posixpath import dirname, join

from bradawl.safety.shell.argv import Argv, name_of
from bradawl.safety.shell.glob_expansion import expanded
from bradawl.safety.shell.links import Links, is_folder, is_link
from bradawl.safety.shell.program_options import copy_operands

_STRING = re.compile(r"""(['"])([^'"\n]{1,400})\1""")
_MOST_STRINGS = 8
_LINKERS = frozenset({"ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "rsync"})


def links_of_line(argvs: Iterable[Argv], bases: tuple[str, ...]) -> Links:
    """The links on the disk and those that the commands create, for each working directory in `bases`.

    Symbolic and hard links count, and copies and moves of links. Unlike `deny.deletions.with_created_links`, which
    counts every copy, this examines the disk and the links made so far.
    """
    links = Links()
    for argv in argvs:
        for link, target in _links_of_command(argv, bases, links):
            links.add(link, target)
    return links


def _links_of_command(argv: Argv, bases: tuple[str, ...], links: Links) -> Iterator[tuple[str, str]]:
    name = name_of(argv)
    if name in _LINKERS:
        for base in bases:
            yield from _links_of_copy(name.removeprefix("g"), argv, base, links)
        return
    for word in argv[1:]:
        if ("link" in word and "(" in word) or (name in ("perl", "ruby") and "link" in word):
            strings = [match[2] for match in _STRING.finditer(word)][:_MOST_STRINGS]
            for target, link in permutations(strings, 2):
                for base in bases:
                    place = join(base, link)
                    yield place, join(dirname(place), target)
                    yield place, join(base, target)


def _links_of_copy(name: str, argv: Argv, base: str, links: Links) -> Iterator[tuple[str, str]]:
    copied = copy_operands(argv)
    has = copied.options.has
    is_symbolic = (name == "ln" and has("s", "symbolic")) or (name == "cp" and has("s", "symbolic-link"))
    is_hard = (name in ("ln", "link") and not is_symbolic) or (name == "cp" and has("l", "link"))
    for source in copied.sources:
        for path in [join(base, source)] if is_symbolic else list(expanded(join(base, source), links)):
            for link in _unoccupied(base, copied.new_paths(path)):
                if is_symbolic:
                    yield link, join(dirname(link), source)
                if is_symbolic or is_hard:
                    yield link, path
                elif name != "link":
                    yield from ((link, each) for each in links.targets(path))


def _unoccupied(base: str, new_paths: tuple[str, str]) -> Iterator[str]:
    """The absolute paths of a new file, without the target itself if that is a folder."""
    target, inner = (join(base, path) for path in new_paths)
    yield inner
    if is_link(target) or not is_folder(target):
        yield target
