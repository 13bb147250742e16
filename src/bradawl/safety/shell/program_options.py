"""Options that take a value, for programs that write files, and the arguments of these programs."""

import re
from posixpath import basename, join

import msgspec

from bradawl.safety.shell.arguments import Arguments, arguments
from bradawl.safety.shell.argv import Argv, name_of


class ValueOptions(msgspec.Struct, frozen=True):
    """The options of a program that take a value."""

    letters: str = ""
    names: str = ""
    """Long names, separated by blanks."""
    optional: str = ""
    """Letters whose value is only ever attached, as in `-i.bak`."""


def program_arguments(argv: Argv) -> Arguments:
    """The options and operands of a command, by the name of its program.

    Without an entry in `VALUE_OPTIONS` no option takes the next word as its value, so that every word that can be a
    path is an operand.
    """
    options = VALUE_OPTIONS.get(name_of(argv))
    if options is None:
        return arguments(argv)
    if options is _TAR:
        argv = _with_dashes(argv)
    return arguments(argv, options.letters, options.names, options.optional)


def _with_dashes(argv: Argv) -> Argv:
    """The arguments of tar with options that have a dash: without one, their values follow in order as words."""
    found, (letters, *rest) = list(argv[:1]), argv[1:] or ("",)
    if not re.fullmatch(r"[a-zA-Z]+", letters):
        return argv
    for letter in letters:
        found.append(f"-{letter}")
        if letter in _TAR.letters and rest:
            found.append(rest.pop(0))
    return (*found, *rest)


class GitWords(msgspec.Struct, frozen=True):
    """The words of a git command."""

    options: tuple[tuple[str, str], ...]
    """Options before the subcommand, with their values; the value is empty if there is none."""
    rest: Argv
    """The subcommand and its arguments; empty if there is none."""


def git_words(argv: Argv) -> GitWords:
    """The words of a git command, split before its subcommand."""
    options: list[tuple[str, str]] = []
    place = 1
    while place < len(argv) and argv[place][:1] == "-":
        name, equals, value = argv[place].partition("=")
        if name in GIT_OPTIONS_WITH_VALUE and not equals:
            place += 1
            value = "".join(argv[place : place + 1])
        options.append((name, value))
        place += 1
    return GitWords(tuple(options), argv[place:])


class CopyOperands(msgspec.Struct, frozen=True):
    """What a program such as `cp`, `mv` or `ln` copies, moves or links."""

    options: Arguments
    sources: Argv
    target: str
    """A new file, or the folder of the new files; empty if there are no operands."""

    def new_paths(self, source: str) -> tuple[str, str]:
        """The two paths that a source may get: the target, or its own name in the target if that is a folder."""
        return self.target, join(self.target, basename(source.rstrip("/")))


def copy_operands(argv: Argv) -> CopyOperands:
    """The sources and the target of a command that copies, moves or links files."""
    call = program_arguments(argv)
    if into := call.last("t", "target-directory"):
        return CopyOperands(call, call.operands, into)
    sources, target = call.operands[:-1], "".join(call.operands[-1:])
    if target and not sources and name_of(argv) in ("ln", "gln"):
        return CopyOperands(call, (target,), ".")
    return CopyOperands(call, sources, target)


# ------------------------------------------------------------------ tables

GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"}
)
"""Options of git before its subcommand whose value may be the next word."""
_TAR = ValueOptions(
    "fCITXbgKLNVF",
    "file directory transform xform use-compress-program exclude exclude-from files-from one-top-level index-file"
    " listed-incremental strip-components owner group mode mtime newer suffix label to-command checkpoint-action",
)
_COPY = ValueOptions("tS", "target-directory suffix")
_NODE = ValueOptions("m", "mode")
_AWK = ValueOptions("FvfiEel", "field-separator assign file include source load", "opdDL")
_EDITOR = ValueOptions("cSTuW")
"""`-s` takes a file as its value only without `-e` and `-E`: it counts as one without, which checks that file too."""

VALUE_OPTIONS: dict[str, ValueOptions] = {
    # Copy, move, link
    **dict.fromkeys(("cp", "mv", "ln", "gcp", "gmv", "gln"), _COPY),
    "install": ValueOptions("tSmog", "target-directory suffix mode owner group"),
    "rsync": ValueOptions(
        "efTBM",
        "exclude include exclude-from include-from files-from filter rsh log-file backup-dir partial-dir temp-dir"
        " suffix write-batch read-batch link-dest copy-dest compare-dest chmod chown max-size min-size bwlimit timeout"
        " port",
    ),
    "scp": ValueOptions("iFoPcJlSDX"),
    # Create, overwrite, delete
    "shred": ValueOptions("ns"),
    "truncate": ValueOptions("rs", "reference size"),
    "touch": ValueOptions("drt", "date reference time"),
    **dict.fromkeys(("mkdir", "mkfifo", "mknod"), _NODE),
    "mktemp": ValueOptions("pt", "tmpdir suffix"),
    "fallocate": ValueOptions("lo", "length offset"),
    # Permissions and attributes
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr"), ValueOptions("", "reference from")),
    "setfacl": ValueOptions("mMxX", "modify set"),
    "setfattr": ValueOptions("nvx", "name value remove"),
    # Filters with an output file
    "sort": ValueOptions("koStT", "key output buffer-size field-separator temporary-directory files0-from parallel"),
    "shuf": ValueOptions("ino", "input-range head-count output random-source"),
    "tree": ValueOptions("LPIoH", "filelimit"),
    "uniq": ValueOptions("fsw", "skip-fields skip-chars check-chars"),
    "xxd": ValueOptions("clsogR"),
    "iconv": ValueOptions("fto", "from-code to-code output"),
    "split": ValueOptions("abClnt", "suffix-length bytes lines number filter additional-suffix separator line-bytes"),
    "csplit": ValueOptions("bfn", "prefix suffix-format digits"),
    "patch": ValueOptions("piodBDzrVYFg", "strip input output directory prefix suffix reject-file"),
    **dict.fromkeys(("dos2unix", "unix2dos", "mac2unix"), ValueOptions("c", "convmode")),
    # Editors and languages
    **dict.fromkeys(("sed", "gsed"), ValueOptions("efl", "expression file line-length", "i")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    "yq": ValueOptions("oIp", "output-format indent input-format split-exp"),
    "ed": ValueOptions("p", "prompt"),
    **dict.fromkeys(("ex", "vi", "vim", "nvim", "view", "nano", "emacs"), _EDITOR),
    # Archives
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _TAR),
    "zip": ValueOptions("btniPO", "temp-path out suffixes exclude include password output-file"),
    "unzip": ValueOptions("dxP"),
    # Downloads
    "curl": ValueOptions(
        "oDcKHXdFuAebmrTUwxyYzEQtPC",
        "output dump-header cookie-jar trace trace-ascii stderr output-dir etag-save hsts alt-svc libcurl request"
        " header data data-raw data-binary data-urlencode form user user-agent referer cookie max-time retry url"
        " upload-file proxy write-out range cacert cert key config connect-timeout json resolve",
    ),
    "wget": ValueOptions(
        "OoaPiUeTtwQABDIXlR",
        "output-document output-file append-output directory-prefix input-file header user-agent post-data post-file"
        " tries timeout wait quota level accept reject domains save-cookies load-cookies warc-file hsts-file"
        " rejected-log",
    ),
    "aria2c": ValueOptions("odlijsx", "out dir log"),
    "http": ValueOptions("o", "output"),
    # Programs that record another one
    "script": ValueOptions("cEIBOTm", "command log-in log-out log-io log-timing"),
    "flock": ValueOptions("wEc"),
}
"""By the name of the program. A program without options that take a value has no entry."""
