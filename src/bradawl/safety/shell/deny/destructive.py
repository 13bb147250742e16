"""Checks single commands, such as `rm -rf ~`, for damage that no mode allows: lost files, disks or history."""

import re
from itertools import pairwise
from posixpath import basename

from bradawl.safety.shell.arguments import arguments
from bradawl.safety.shell.argv import Argv, name_of
from bradawl.safety.shell.deny.command_context import CommandContext, HazardCheck
from bradawl.safety.shell.deny.deletions import DELETION_CHECKS, emptied_folder
from bradawl.safety.shell.deny.wrappers import FIND_EXECS
from bradawl.safety.shell.program_options import copy_operands, git_words, program_arguments


def hazard(context: CommandContext, name: str, words: Argv) -> str:
    """Why this command must not run; empty if no check applies. `words` includes the program."""
    if (check := DELETION_CHECKS.get(name)) and (why := check(context, words)):
        return why
    if check := HAZARD_CHECKS.get(name):
        return check(context, words)
    if name.startswith("mkfs") or name in _FORMATTERS:
        return _formats(context, words)
    return ""


# ------------------------------------------------------------------ deletions and overwritten files


def _rm(context: CommandContext, words: Argv) -> str:
    call = program_arguments(words)
    lost = filter(None, (context.protected.loss(one, context.cwd) for one in call.operands))
    if call.has("", "no-preserve-root") and any(lost):
        return "it would delete the root folder"
    if call.has("rR", "recursive") and (what := next(lost, "")):
        return f"it would delete {what}"
    return emptied_folder(context, call.operands) or context.guards(*call.operands, replaces=True)


def _find(context: CommandContext, words: Argv) -> str:
    if why := context.guards(*(after for word, after in pairwise(words) if word in _FIND_OUTPUT_OPTIONS)):
        return why
    starts: list[str] = []
    for word in words[1:] if words[0].endswith("find") else _fd_folders(words):
        if word[:1] in ("-", "(", "!"):
            if word in ("-H", "-L", "-P"):
                continue
            break
        starts.append(word)
    deletes = "-delete" in words or any(
        word in FIND_EXECS and basename(after) in ("rm", "shred", "unlink", "chmod", "chown", "mv", "dd")
        for word, after in pairwise(words)
    )
    if not deletes:
        return ""
    for one in starts or ["."]:
        if what := context.protected.loss(one, context.cwd):
            return f"it would delete or change {what}"
    return ""


def _fd_folders(words: Argv) -> Argv:
    """The folders that `fd` searches: its operands after the pattern."""
    ends = [place for place, word in enumerate(words) if word in FIND_EXECS]
    return tuple(word for word in words[1 : (ends or [len(words)])[0]] if word[:1] != "-")[1:]


def _change_mode(context: CommandContext, words: Argv) -> str:
    call = program_arguments(words)
    is_deep = call.has("R", "recursive")
    has_mode_first = not words[0].endswith(("chattr", "setfacl"))
    for one in call.operands[1:] or call.operands if has_mode_first else call.operands:
        what = context.protected.loss(one, context.cwd)
        if what and (is_deep or ("home folder" in what and _MODES_WITHOUT_OWNER_ACCESS.fullmatch(words[1]))):
            return f"it would change the permissions of {what}"
    return ""


def _mv(context: CommandContext, words: Argv) -> str:
    sources = copy_operands(words).sources
    for one in sources:
        if what := context.protected.loss(one, context.cwd):
            return f"it would move {what}"
    return context.guards(*sources, replaces=True) or _writes_copies(context, words)


def _writes_copies(context: CommandContext, words: Argv) -> str:
    """Commands that copy or link files: they write to the target, or to names in it if it is a folder."""
    copied = copy_operands(words)
    names = (basename(one.rstrip("/")) for one in copied.sources)
    replaces = basename(words[0]) in ("mv", "ln", "link", "install")
    return context.guards(copied.target, *(f"{copied.target}/{name}" for name in names if name), replaces=replaces)


def _rsync(context: CommandContext, words: Argv) -> str:
    call = program_arguments(words)
    target = "".join(call.operands[-1:])
    deletes = target and any(option.startswith("del") for option, _ in call.given)
    if deletes and (what := context.protected.loss(target, context.cwd)):
        return f"it would delete {what}"
    return "" if ":" in target.partition("/")[0] else _writes_copies(context, words)


def _writes_operands(context: CommandContext, words: Argv) -> str:
    return context.guards(*program_arguments(words).operands)


def _tee(context: CommandContext, words: Argv) -> str:
    call = program_arguments(words)
    adds = call.has("a", "append")
    return next((why for one in call.operands if (why := context.protected.guard(one, context.cwd, adds=adds))), "")


def _writes_output_option(context: CommandContext, words: Argv) -> str:
    """Commands whose output file is the value of the option `-o`."""
    targets = program_arguments(words).values("o", "output")
    return context.guards(*(each for target in targets for each in (target, f"{target}/")))


def _writes_second_operand(context: CommandContext, words: Argv) -> str:
    """Commands that write to their second operand."""
    return context.guards(*program_arguments(words).operands[1:2])


def _writes_unpacked(context: CommandContext, words: Argv) -> str:
    """Commands that unpack an archive below a folder."""
    call = program_arguments(words)
    if words[0].endswith("tar"):
        folders = call.values("C", "directory") if call.has("x", "extract", "get") else ()
    elif words[0].endswith("unzip"):
        folders = call.values("d")
    else:
        folders = tuple(word[2:] for word in words if word.startswith("-o"))  # 7z has no letters that share a word
    return context.guards(*(each for folder in folders for each in (folder, f"{folder}/config")))


def _patch(context: CommandContext, words: Argv) -> str:
    call = program_arguments(words)
    return context.guards(*call.operands[:1], *call.values("o", "output"))


def _split(context: CommandContext, words: Argv) -> str:
    prefixes = program_arguments(words).operands[1:2]
    return context.guards(*prefixes, *(f"{prefix}aa" for prefix in prefixes))


def _edits_by_commands(context: CommandContext, words: Argv) -> str:
    """Editors with commands among their arguments."""
    call = program_arguments(words)
    has_commands = call.has("cesS") or any(one[:1] == "+" for one in call.operands)
    return context.guards(*call.operands) if has_commands else ""


def _edits_in_place(context: CommandContext, words: Argv) -> str:
    """awk and yq with the option that edits files in place."""
    is_awk = words[0].endswith("awk")
    if is_awk and ("-i", "inplace") not in pairwise(words):
        return ""
    call = program_arguments(words)
    return context.guards(*call.operands) if is_awk or call.has("i", "inplace") else ""


def _edits(context: CommandContext, words: Argv) -> str:
    """sed, perl and ruby with the option that edits files in place."""
    call = program_arguments(words)
    return context.guards(*call.operands) if call.has("i", "in-place") else ""


def _dd(context: CommandContext, words: Argv) -> str:
    return context.guards(*(word[3:] for word in words[1:] if word.startswith("of=")))


def _formats(context: CommandContext, words: Argv) -> str:
    call = arguments(words)
    if call.has("l", "list", "help", "version", "no-act"):
        return ""
    if any(one.startswith("/dev/") for one in call.operands):
        return "it would overwrite a disk"
    return "it would make a new file system" if name_of(words).startswith("mkfs.") and not call.operands else ""


def _download(context: CommandContext, words: Argv) -> str:
    """Files that curl and wget write."""
    call = program_arguments(words)
    if words[0].endswith("curl"):
        return context.guards(*call.values("o", "output", "output-dir"))
    return context.guards(*call.values("OP", "output-document", "directory-prefix"))


# ------------------------------------------------------------------ processes, history, schedules


def _kill(context: CommandContext, words: Argv) -> str:
    rest = list(words[1:])
    if rest[:1] in (["-s"], ["-n"], ["--signal"]):
        rest = rest[2:]
    elif rest and rest[0] != "--" and re.fullmatch(r"-(?:[0-9]+|[A-Z0-9+-]+|[a-z]+|-signal=.*)", rest[0]):
        rest = rest[1:] if len(rest) > 1 else []
    return "it would end every process of the user" if "-1" in rest else ""


def _pkill(context: CommandContext, words: Argv) -> str:
    operands = arguments(words, "ugGPstU").operands
    everything = operands in ((".",), (".*",), ("",)) or (
        not operands and any(word in ("-u", "-U", "--uid") for word in words)
    )
    return "it would end every process of the user" if everything else ""


def _history(context: CommandContext, words: Argv) -> str:
    return "it would destroy the history of the shell" if any(re.match(r"-[a-z]*c", word) for word in words[1:]) else ""


def _crontab(context: CommandContext, words: Argv) -> str:
    call = arguments(words, "u")
    if call.operands or call.has("re"):
        return "it would change what runs on a schedule; leave that to the user"
    return ""


def _crontab_input(context: CommandContext, words: Argv) -> str:
    call = arguments(words, "u")
    if call.has("l") and not call.operands:
        return ""
    return _crontab(context, words) or "it would change what runs on a schedule; leave that to the user"


def _unset(context: CommandContext, words: Argv) -> str:
    return "it would stop the shell from keeping its history" if "HISTFILE" in words else ""


# ------------------------------------------------------------------ git

# Settings by their keys: those whose value is a program, and those whose value may be one.
_RUN_PROGRAMS = re.compile(
    r"core\.(?:hookspath|fsmonitor|sshcommand|gitproxy|askpass|alternaterefscommand)|filter\..*\.(?:clean|smudge|process)"
    r"|diff\.external|diff\..*\.(?:command|textconv)|merge\..*\.driver|(?:gpg|gpg\..*)\.program|include(?:if\..*)?\.path"
    r"|init\.templatedir|uploadpack\.packobjectshook|(?:remote\..*)\.(?:uploadpack|receivepack)|sendemail\..*cmd",
    re.IGNORECASE,
)
_MAY_RUN_PROGRAMS = re.compile(
    r"alias\..*|credential\.(?:.*\.)?helper|core\.(?:editor|pager)|sequence\.editor|pager\..*", re.IGNORECASE
)
_SCRIPT_VALUE = re.compile(r"!|[./~]|.*[;&|`$<>]")
_CONFIG_READS = re.compile(r"--(?:get.*|list|unset.*|remove-section|edit|name-only|show-.*)|-l|-e|get|list|unset|edit")
_CONFIG_OPTIONS_WITH_VALUE = frozenset({"-f", "--file", "--blob", "--type", "--default", "--comment", "--value"})


def _git(context: CommandContext, words: Argv) -> str:
    rest = list(git_words(words).rest)
    if rest[:1] == ["clone"] or rest[:1] == ["init"]:
        return context.guards(*(one for one in rest[1:] if one[:1] != "-" and "://" not in one and "@" not in one))
    if rest[:2] == ["worktree", "add"]:
        return context.guards(*(one for one in rest[2:] if one[:1] != "-"))
    return _git_config(context, rest[1:]) if rest[:1] == ["config"] else ""


def _git_config(context: CommandContext, rest: list[str]) -> str:
    if any(_CONFIG_READS.fullmatch(word) for word in rest[:4]):
        return ""
    rest = rest[1:] if rest[:1] == ["set"] else rest
    file = next((after for word, after in pairwise(rest) if word in ("-f", "--file")), "")
    operands: list[str] = []
    place = 0
    while place < len(rest):
        if rest[place][:1] == "-" and not operands:
            place += 1 + (rest[place] in _CONFIG_OPTIONS_WITH_VALUE)
            continue
        operands.append(rest[place])
        place += 1
    if len(operands) < 2:
        return ""
    key, value = operands[0], operands[1]
    if key.lower() == "core.fsmonitor" and value.lower() in ("true", "false"):
        return ""
    if _RUN_PROGRAMS.fullmatch(key) or (_MAY_RUN_PROGRAMS.fullmatch(key) and _SCRIPT_VALUE.match(value)):
        return f"it would make git run programs that {key} names; leave that to the user"
    return context.guards(file) if file else ""


# ------------------------------------------------------------------ tables

_MODES_WITHOUT_OWNER_ACCESS = re.compile(r"0+|0*[0-6]00|[uao]*-[rwx]*[rx][rwx]*|a?=")
"""Modes that take the owner's access to a folder."""
_FIND_OUTPUT_OPTIONS = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})
_FORMATTERS = frozenset(
    {"mke2fs", "mkswap", "wipefs", "blkdiscard", "fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "badblocks"}
    | {"hdparm", "newfs", "zpool", "pvcreate", "cryptsetup", "nvme", "mkdosfs", "diskutil"}
)
HAZARD_CHECKS: dict[str, HazardCheck] = {
    # Delete files and folders
    **dict.fromkeys(("rm", "unlink", "shred", "srm", "wipe"), _rm),
    **dict.fromkeys(("find", "fd"), _find),
    # Copy and move
    "mv": _mv,
    **dict.fromkeys(("cp", "install", "ln", "link", "scp"), _writes_copies),
    "rsync": _rsync,
    # Change permissions and attributes
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr", "setfacl"), _change_mode),
    # Write to operands
    **dict.fromkeys(("touch", "mkdir", "rmdir", "mkfifo", "mknod", "fallocate", "truncate"), _writes_operands),
    **dict.fromkeys(("sponge", "ed", "ex"), _writes_operands),
    **dict.fromkeys(("xxd", "uniq"), _writes_second_operand),
    "tee": _tee,
    "split": _split,
    "patch": _patch,
    "dd": _dd,
    # Write to the value of an option
    **dict.fromkeys(("sort", "shuf", "tree"), _writes_output_option),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "unzip", "7z"), _writes_unpacked),
    **dict.fromkeys(("curl", "wget"), _download),
    # Edit in place
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), _edits),
    **dict.fromkeys(("gawk", "awk", "yq"), _edits_in_place),
    **dict.fromkeys(("vim", "vi", "nvim"), _edits_by_commands),
    # End processes
    "kill": _kill,
    **dict.fromkeys(("pkill", "skill", "killall"), _pkill),
    "killall5": lambda context, words: "it would end every process of the machine",
    # Destroy the shell's history, change schedules and git's settings
    "history": _history,
    "unset": _unset,
    "crontab": _crontab_input,
    "git": _git,
}
"""Checks by program name; `DELETION_CHECKS` come first."""
