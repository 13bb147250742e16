"""Checks commands other than `rm` that delete protected folders, and tracks links that lead to such folders."""

import re
from collections.abc import Iterable, Iterator
from posixpath import dirname, join

from bradawl.safety.shell.arguments import arguments
from bradawl.safety.shell.argv import SHELLS, Argv, name_of, names
from bradawl.safety.shell.bind_mounts import bind_mounts
from bradawl.safety.shell.deny.command_context import CommandContext, HazardCheck
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.program_options import copy_operands, git_words, program_arguments


def _deletion_danger(context: CommandContext, operands: Iterable[str], verb: str = "delete") -> str:
    found = (what for one in operands if (what := context.protected.loss(one, context.cwd)))
    return next((f"it would {verb} {what}" for what in found), "")


def emptied_folder(context: CommandContext, operands: Iterable[str]) -> str:
    """Why a command may not delete these operands: a pattern for all files of a home folder; empty if none is."""
    found = (what for one in operands if (what := context.protected.emptied_folder(one, context.cwd)))
    return next((f"it would delete {what}" for what in found), "")


def _archiver_deletes_sources(context: CommandContext, words: Argv) -> str:
    """tar, zip and 7z with options that delete the packed files."""
    call = program_arguments(words)
    name = name_of(words)
    if name.startswith("7z"):
        deletes = any(word.startswith("-sdel") for word in words)
        return _deletion_danger(context, call.operands[2:]) if deletes else ""
    if name == "zip":
        return _deletion_danger(context, call.operands[1:]) if call.has("m", "move") else ""
    if not call.has("", "remove-files"):
        return ""
    folder = call.last("C", "directory")
    return _deletion_danger(context, (join(folder, one) for one in call.operands))


def _rsync_deletes_sources(context: CommandContext, words: Argv) -> str:
    """rsync with the option that deletes the copied files."""
    call = program_arguments(words)
    return _deletion_danger(context, call.operands[:-1]) if call.has("", "remove-source-files") else ""


def _trash(context: CommandContext, words: Argv) -> str:
    """Programs that move their operands to the trash."""
    return _deletion_danger(context, arguments(words).operands)


def _deletes_by_subcommand(context: CommandContext, words: Argv) -> str:
    """`gio trash`, `rclone purge` and so on."""
    deletes = words[1:2] and words[1] in _DELETING_SUBCOMMANDS.get(name_of(words), ())
    return _deletion_danger(context, arguments(words).operands[1:]) if deletes else ""


def _deletes_files_of_pattern(context: CommandContext, words: Argv) -> str:
    return emptied_folder(context, program_arguments(words).operands)


# ------------------------------------------------------------------ git


def _git(context: CommandContext, words: Argv) -> str:
    """git commands that delete all or most files of a work tree."""
    split = git_words(words)
    folder = "."
    for option, value in split.options:
        if option in ("-C", "--work-tree"):
            folder = join(folder, value)
    rest = split.rest
    if not rest or not _deletes_many_files(rest):
        return ""
    paths = [join(folder, one) for one in arguments(rest, "e").operands] if rest[0] != "stash" else []
    return _deletion_danger(context, paths or [folder])


def _deletes_many_files(words: Argv) -> bool:
    """Whether a git subcommand deletes many files at once."""
    call = arguments(words, "e")
    match words[0]:
        case "clean":
            return not call.has("n", "dry-run", "help")
        case "stash":
            return words[1:2] not in (("show",), ("list",)) and call.has("ua", "include-untracked", "all")
        case "rm":
            return call.has("r") and not call.has("n", "cached", "dry-run")
        case _:
            return False


# ------------------------------------------------------------------ started by other programs


def hidden_deletions(name: str, words: Argv) -> Iterator[Argv]:
    """Yield the ends of a command's words that would delete folders if the program runs its arguments as a command."""
    if name in _START_NO_PROGRAM:
        return
    for place, word in enumerate(words[1:], 1):
        if name_of((word,)) in _DELETERS and arguments(words[place:]).has("rR", "recursive"):
            yield words[place:]


def hidden_shells(name: str, words: Argv) -> Iterator[Argv]:
    """Yield the ends of a command's words that are a shell with a script, or the commands of `coproc NAME {`."""
    if words[1:2] == ("{",):
        yield words[2:]
    for place, word in enumerate(words[1:-2], 1):
        if name not in _START_NO_PROGRAM and name_of((word,)) in SHELLS and re.fullmatch(r"-[a-z]*c", words[place + 1]):
            yield words[place:]


# ------------------------------------------------------------------ links


def with_created_links(protected: ProtectedTargets, name: str, words: Argv, cwd: str | None) -> ProtectedTargets:
    """`protected` with the links that a command creates, copies or moves, and the folders it mounts elsewhere.

    Unlike `created_links.links_of_line`, which examines the disk, every copy counts as a link to its source, and each
    possible path of a new file counts: a check that can only refuse may report too much.
    """
    match name:
        case "ln" | "cp" | "mv":
            return _with_created_link(protected, name, words, cwd)
        case "mount" if any("bind" in word for word in words):
            operands = arguments(words, "ot", "options types").operands
            return protected.with_link(operands[1], operands[0], cwd) if len(operands) > 1 else protected
        case "docker" | "podman" | "nerdctl":
            for mount in bind_mounts(words):
                protected = protected.with_link(mount.target, mount.source, cwd)
            return protected
        case _:
            return protected


def _with_created_link(protected: ProtectedTargets, name: str, words: Argv, cwd: str | None) -> ProtectedTargets:
    copied = copy_operands(words)
    if name == "ln" and not copied.options.has("s", "symbolic"):
        return protected
    for source in copied.sources:
        for link in copied.new_paths(source):
            # A relative symlink target is resolved from the folder of the link.
            start = next(iter(protected.possible_paths(dirname(link) or ".", cwd)), None) if name == "ln" else cwd
            protected = protected.with_link(link, source, cwd, start)
    return protected


_DELETERS = names("rm shred srm wipe rmtrash")
_START_NO_PROGRAM = names(
    "echo printf grep egrep fgrep rg ag ack man which type whereis whatis apropos logger cat less head tail alias"
    " export declare local readonly read case for test [ [[ true false : help info sed awk trap"
)
_DELETING_SUBCOMMANDS = {"gio": ("trash", "remove", "move"), "rclone": ("purge", "delete", "move", "rmdirs", "cleanup")}

DELETION_CHECKS: dict[str, HazardCheck] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar", "zip", "7z", "7za", "7zr"), _archiver_deletes_sources),
    "rsync": _rsync_deletes_sources,
    **dict.fromkeys(("trash", "trash-put", "rmtrash", "gvfs-trash", "rip", "del"), _trash),
    **dict.fromkeys(("gio", "rclone"), _deletes_by_subcommand),
    **dict.fromkeys(("truncate", "unlink"), _deletes_files_of_pattern),
    "git": _git,
}
"""Checks by program name; `destructive.HAZARD_CHECKS` has further ones."""
