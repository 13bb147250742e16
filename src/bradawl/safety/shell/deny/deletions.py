"""Commands that would delete a home folder, or another that must stay, besides `rm`; and links that lead to one."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from posixpath import basename, dirname, join

from bradawl.safety.shell.deny.operands import Judge, Scene, has, option, split
from bradawl.safety.shell.deny.protected_targets import Ground
from bradawl.safety.shell.deny.wrappers import SHELLS, Argv, name_of, names


def _lost(scene: Scene, operands: Iterable[str], verb: str = "delete") -> str:
    found = (what for one in operands if (what := scene.ground.loss(one, scene.cwd)))
    return next((f"it would {verb} {what}" for what in found), "")


def emptied(scene: Scene, operands: Iterable[str]) -> str:
    """Why patterns for all files of a home folder must not be given to a command that deletes files."""
    found = (what for one in operands if (what := scene.ground.emptied(one, scene.cwd)))
    return next((f"it would delete {what}" for what in found), "")


def _archives(scene: Scene, words: Argv) -> str:
    """tar, zip and 7z, where they delete what they have packed."""
    flags, operands = split(words, "CfITX" if words[0].endswith("tar") else "")
    name = name_of(words)
    if name.startswith("7z"):
        return _lost(scene, operands[2:]) if any(flag.startswith("-sdel") for flag in flags) else ""
    if name == "zip":
        return _lost(scene, operands[1:]) if has(flags, "m", "move") else ""
    if not any(flag.startswith("--remove-f") for flag in flags):
        return ""
    folder = option(words, "-C", "--directory")
    return _lost(scene, (join(folder, one) for one in operands))


def _moves_away(scene: Scene, words: Argv) -> str:
    """rsync, where it deletes what it has copied."""
    flags, operands = split(words, "efT")
    deletes = any(flag.startswith("--remove-so") for flag in flags)
    return _lost(scene, operands[:-1]) if deletes else ""


def _to_trash(scene: Scene, words: Argv) -> str:
    return _lost(scene, split(words)[1])


def _by_subcommand(scene: Scene, words: Argv) -> str:
    """`gio trash` and its like."""
    is_meant = words[1:2] and words[1] in _SUBCOMMANDS.get(name_of(words), ())
    return _lost(scene, split(words)[1][1:]) if is_meant else ""


def _files_of_pattern(scene: Scene, words: Argv) -> str:
    return emptied(scene, split(words, "srn")[1])


# ------------------------------------------------------------------ git


def _git(scene: Scene, words: Argv) -> str:
    """What deletes all files of a work tree, or most."""
    folder, place = ".", 1
    while place < len(words) and words[place][:1] == "-":
        word, value = words[place], next(iter(words[place + 1 : place + 2]), "")
        if word in ("-C", "--work-tree"):
            folder = join(folder, value)
        elif word.startswith("--work-tree="):
            folder = word.partition("=")[2]
        place += 2 if word in _GIT_VALUES else 1
    rest = words[place:]
    if not rest or not _empties(rest):
        return ""
    paths = [join(folder, one) for one in split(rest, "e")[1]] if rest[0] != "stash" else []
    return _lost(scene, paths or [folder])


def _empties(words: Argv) -> bool:
    """Whether a subcommand deletes files, many at once."""
    flags = split(words, "e")[0]
    match words[0]:
        case "clean":
            return not has(flags, "n", "dry-run", "help")
        case "stash":
            return words[1:2] not in (("show",), ("list",)) and has(flags, "ua", "include-untracked", "all")
        case "rm":
            return has(flags, "r") and not has(flags, "n", "cached", "dry-run")
        case _:
            return False


# ------------------------------------------------------------------ behind other programs


def hidden_deletions(name: str, words: Argv) -> Iterator[Argv]:
    """Words behind a program that would delete folders if the program starts what it is given."""
    if name in _TAKE_TEXT:
        return
    for place, word in enumerate(words[1:], 1):
        if name_of((word,)) in _DELETERS and has(split(words[place:])[0], "rR", "recursive"):
            yield words[place:]


def hidden_shells(name: str, words: Argv) -> Iterator[Argv]:
    """Words behind a program that are a shell with a script, or that `coproc NAME {` starts."""
    if words[1:2] == ("{",):
        yield words[2:]
    for place, word in enumerate(words[1:-2], 1):
        if name not in _TAKE_TEXT and name_of((word,)) in SHELLS and re.fullmatch(r"-[a-z]*c", words[place + 1]):
            yield words[place:]


# ------------------------------------------------------------------ links


def making_links(ground: Ground, name: str, words: Argv, cwd: str | None) -> Ground:
    """The ground once a command has made links, has moved some, or has mounted a folder at another place."""
    match name:
        case "ln" | "cp" | "mv":
            return _made(ground, name, words, cwd)
        case "mount" if any("bind" in word for word in words):
            operands = split(words, "o")[1]
            return ground.linking(operands[1], operands[0], cwd) if len(operands) > 1 else ground
        case "docker" | "podman" | "nerdctl":
            for source, target in _mounts(words):
                ground = ground.linking(target, source, cwd)
            return ground
        case _:
            return ground


def _made(ground: Ground, name: str, words: Argv, cwd: str | None) -> Ground:
    flags, operands = split(words, "tS")
    into = option(words, "-t", "--target-directory")
    *sources, target = operands if not into and len(operands) > 1 else (*operands, into or ".")
    is_symbolic = has(flags, "s", "symbolic")
    if name == "ln" and not is_symbolic:
        return ground
    for source in sources:
        for link in (target, join(target, basename(source.rstrip("/")))):
            # The text of a link is seen from the folder in which it is.
            start = next(iter(ground.places(dirname(link) or ".", cwd)), None) if name == "ln" else cwd
            ground = ground.linking(link, source, cwd, start)
    return ground


def _mounts(words: Argv) -> Iterator[tuple[str, str]]:
    """Folders of the machine, and the names that a container has for them."""
    for before, word in pairwise(words):
        text = word.partition("=")[2] if word.startswith(("--volume=", "--mount=")) else word
        if before in ("-v", "--volume") or word.startswith("--volume="):
            source, _, target = text.partition(":")
            yield source, target.partition(":")[0]
        elif before == "--mount" or word.startswith("--mount="):
            given = [part.partition("=") for part in text.split(",")]
            parts = {name: value for name, _, value in given}
            source, target = (_first(parts, keys) for keys in (("source", "src"), ("target", "dst", "destination")))
            yield source, target


def _first(parts: dict[str, str], keys: tuple[str, ...]) -> str:
    return next((parts[key] for key in keys if key in parts), "")


_DELETERS = names("rm shred srm wipe rmtrash")
_TAKE_TEXT = names(
    "echo printf grep egrep fgrep rg ag ack man which type whereis whatis apropos logger cat less head tail alias"
    " export declare local readonly read case for test [ [[ true false : help info sed awk trap"
)
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_SUBCOMMANDS = {"gio": ("trash", "remove", "move"), "rclone": ("purge", "delete", "move", "rmdirs", "cleanup")}

DELETIONS: dict[str, Judge] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar", "zip", "7z", "7za", "7zr"), _archives),
    "rsync": _moves_away,
    **dict.fromkeys(("trash", "trash-put", "rmtrash", "gvfs-trash", "rip", "del"), _to_trash),
    **dict.fromkeys(("gio", "rclone"), _by_subcommand),
    **dict.fromkeys(("truncate", "unlink"), _files_of_pattern),
    "git": _git,
}
"""Names to judges; further ones are in `shell_hazards`."""
