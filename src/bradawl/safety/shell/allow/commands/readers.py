"""Effects of common programs that only read. An option that isn't listed raises `UnsupportedSyntax`.

Sources of the tables: the manuals of GNU coreutils, findutils, diffutils and grep, ripgrep 15, jq 1.7 and xxd. Letters
that mean a file, a program or following links on another system are left out.
"""

import re
from collections.abc import Callable
from functools import partial

import msgspec

from bradawl.safety.shell.allow.commands.options import Call, Options, options, read_options
from bradawl.safety.shell.allow.commands.ripgrep import RG, SHOWS_HIDDEN, unignores
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.allow.path_effects import PathRecorder
from bradawl.safety.shell.errors import UnsupportedSyntax

Words = tuple[Word, ...]
Handler = Callable[[PathRecorder, Words], None]
_MANY = 1_000


class Program(msgspec.Struct, frozen=True):
    """How the effects of a program are determined."""

    record: Handler
    is_builtin: bool = False
    """Whether bash runs it without starting a program."""


def require(is_so: bool) -> None:
    """Raise `UnsupportedSyntax` unless `is_so`."""
    if not is_so:
        raise UnsupportedSyntax


def require_literal(words: Words) -> None:
    """Raise `UnsupportedSyntax` if one of the words is a pattern."""
    require(not any(word.is_glob for word in words))


# ------------------------------------------------------------------ the usual shape: options, then files


def reads(known: Options, *, least: int = 0, most: int = _MANY, here: bool = False, has_stdin: bool = True) -> Program:
    """A program that reads its operands as files; with `here` it reads the working directory if there are none."""

    def record(recorder: PathRecorder, words: Words) -> None:
        call = read_options(known, words)
        require(least <= len(call.operands) <= most)
        require(has_stdin or not any(word.text == "-" for word in call.operands))
        if most < _MANY:
            require_literal(call.operands)
        read_all(recorder, call, call.operands, here=here)

    return Program(record)


def read_all(recorder: PathRecorder, call: Call, files: Words, *, here: bool) -> None:
    """Record reads of `files` and of the files that options name."""
    for word in (*call.reads, *files):
        recorder.read(word, lists_folders=here)
    if here and not files:
        recorder.read_path(recorder.cwd)


def reads_no_file(known: Options, *, least: int = 0, most: int = _MANY, is_builtin: bool = False) -> Program:
    """A program that opens no file, whatever its operands are."""

    def record(recorder: PathRecorder, words: Words) -> None:
        call = read_options(known, words)
        require_literal(call.operands)
        require(least <= len(call.operands) <= most and not call.reads)

    return Program(record, is_builtin)


def any_words(recorder: PathRecorder, words: Words) -> None:
    """Accept any words; bash lists folders to expand patterns."""
    for word in words:
        if word.is_glob:
            recorder.read(word)


# ------------------------------------------------------------------ programs with rules of their own


def _grep(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_GREP, words)
    has_pattern = not {"e", "f", "regexp", "file"}.isdisjoint(call.flags)
    is_deep = not {"r", "recursive"}.isdisjoint(call.flags)
    files = _record_searched(recorder, call, has_pattern=has_pattern, here=is_deep)
    if is_deep:
        recorder.record_contents_below(files, hidden=True)


def _rg(recorder: PathRecorder, words: Words) -> None:
    call = read_options(RG, words)
    has_pattern = not {"e", "f", "regexp", "file", "files", "type-list"}.isdisjoint(call.flags)
    files = _record_searched(recorder, call, has_pattern=has_pattern, here=True)
    if {"files", "type-list"}.isdisjoint(call.flags):
        hidden = not SHOWS_HIDDEN.isdisjoint(call.flags)
        recorder.record_contents_below(files, hidden=hidden, unignores=partial(unignores, call))


def _record_searched(recorder: PathRecorder, call: Call, *, has_pattern: bool, here: bool) -> Words:
    files = call.operands
    if not has_pattern:
        require(bool(files))
        require_literal(files[:1])
        files = files[1:]
    read_all(recorder, call, files, here=here)
    return files


def _diff(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_DIFF, words)
    require(len(call.operands) == 2)
    require_literal(call.operands)
    if not {"r", "recursive"}.isdisjoint(call.flags):
        require("no-dereference" in call.flags)
        read_all(recorder, call, call.operands, here=False)
        recorder.record_contents_below(call.operands, hidden=True)
        return
    for word in call.operands:
        recorder.read_with_links(word)
    folders = tuple(
        word for word in call.operands if word.text != "-" and recorder.is_folder(recorder.real_path(word.text))
    )
    if folders:  # files directly in the folders are compared, not those in their subfolders
        recorder.record_contents_below(folders, hidden=True)


def _find(recorder: PathRecorder, words: Words) -> None:
    require_literal(words)
    texts = [word.text for word in words]
    count = next((index for index, text in enumerate(texts) if text[:1] in ("-", "(", "!", ",", ")")), len(texts))
    for word in words[:count]:
        recorder.read(word, lists_folders=True)
    if count == 0:
        recorder.read_path(recorder.cwd)
    rest = iter(texts[count:])
    for text in rest:
        if text in _FIND_WITH_FILE:
            recorder.read_path(next(rest, ""))
        elif text in _FIND_WITH_VALUE:
            require(next(rest, None) is not None)
        else:
            require(text in _FIND_ALONE)


def _sed(recorder: PathRecorder, words: Words) -> None:
    require(len(words) >= 2 and words[0].text == "-n" and bool(re.fullmatch(_SED_PRINTS, words[1].text)))
    require(not any(word.text.startswith("-") for word in words[2:]))
    for word in words[2:]:
        recorder.read(word)


def _jq(recorder: PathRecorder, words: Words) -> None:
    require(not any(word.text == "--" for word in words))
    call = read_options(_JQ, words)
    require(bool(call.operands))
    require_literal(call.operands[:1])
    require(not re.search(_JQ_READS_OUTSIDE, call.operands[0].text))
    read_all(recorder, call, call.operands[1:], here=False)


def _xxd(recorder: PathRecorder, words: Words) -> None:
    """`xxd` writes to a second operand. Letters can't be combined, so each option must be a word of its own."""
    require_literal(words)
    rest = iter(word.text for word in words)
    files: list[str] = []
    for text in rest:
        if text in _XXD_WITH_NUMBER:
            require(bool(re.fullmatch(_XXD_NUMBER, next(rest, ""))))
        elif not (text in _XXD_ALONE or re.fullmatch(_XXD_ATTACHED, text)):
            require(not text.startswith(("-", "+")))
            files.append(text)
    require(len(files) == 1)
    recorder.read_path(files[0])


def _strings(recorder: PathRecorder, words: Words) -> None:
    require(not any(word.text.startswith("@") for word in words))  # a file with more options
    _STRINGS.record(recorder, words)


def _date(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_DATE, words)
    require_literal(call.operands)
    require(len(call.operands) <= 1 and all(word.text.startswith("+") for word in call.operands))
    read_all(recorder, call, (), here=False)


def _seq(recorder: PathRecorder, words: Words) -> None:
    texts = [word.text for word in words]
    if texts[:1] == ["-w"]:
        texts = texts[1:]
    elif texts[:1] == ["-s"]:
        texts = texts[2:]
    require(1 <= len(texts) <= 3 and all(re.fullmatch(_WHOLE_NUMBER, text) for text in texts))


def _sleep(recorder: PathRecorder, words: Words) -> None:
    require(bool(words) and all(re.fullmatch(_DURATION, word.text) for word in words))


def _ps(recorder: PathRecorder, words: Words) -> None:
    """`ps`, except `e` without a dash, which shows the environments of other processes."""
    require_literal(words)
    texts = [word.text for word in words]
    if texts and re.fullmatch(_PS_BSD, texts[0]):
        texts = texts[1:]
    call = read_options(_PS, tuple(map(Word, texts)))
    require(not call.operands)
    columns = [column.partition("=")[0] for name in ("o", "sort") for column in call.flags.get(name, "").split(",")]
    require(all(column.lstrip("+-") in _PS_COLUMNS for column in columns))


def _command(recorder: PathRecorder, words: Words) -> None:
    require(len(words) > 1 and words[0].text in ("-v", "-V"))
    require_literal(words)


def _printf(recorder: PathRecorder, words: Words) -> None:
    """`printf`, except `%n`, which assigns to a variable (whose subscript may run a command), and `-v`."""
    words = words[1:] if words and words[0].text == "--" else words
    require(bool(words) and not words[0].is_glob and not words[0].text.startswith("-"))
    require("%" not in re.sub(_FORMAT, "", words[0].text))
    any_words(recorder, words[1:])


def _test(recorder: PathRecorder, words: Words) -> None:
    require_literal(words)
    texts = [word.text for word in words]
    if len(texts) > 1 and texts[0] == "!":
        texts = texts[1:]
    match texts:
        case [_] | []:
            return
        case [("-n" | "-z"), _]:
            return
        case [operator, path] if operator in _FILE_TESTS:
            recorder.read_path(path)
        case [first, ("-nt" | "-ot" | "-ef"), second]:
            recorder.read_path(first)
            recorder.read_path(second)
        case [_, ("=" | "==" | "!="), _]:
            return
        case [first, ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"), second]:
            require(bool(re.fullmatch(_WHOLE_NUMBER, first) and re.fullmatch(_WHOLE_NUMBER, second)))
        case _:
            raise UnsupportedSyntax


def _bracket(recorder: PathRecorder, words: Words) -> None:
    require(bool(words) and words[-1].text == "]")
    _test(recorder, words[:-1])


# ------------------------------------------------------------------ tables

_GREP = options(
    "EFGPcHhiIlLnoqrsvwxzbaU e: A: B: C: m: f<",
    "extended-regexp fixed-strings perl-regexp basic-regexp count with-filename no-filename ignore-case"
    " no-ignore-case files-with-matches files-without-match line-number only-matching quiet silent recursive"
    " no-messages invert-match word-regexp line-regexp null null-data byte-offset text line-buffered"
    " regexp= after-context= before-context= context= max-count= include= exclude= exclude-dir= label="
    " binary-files= color? colour? file< exclude-from<",
    numbers=True,
)
_DIFF = options(
    "abBcdEeiNnpqrstTuwyZ U: C: I: W: L:",
    "brief unified? context? side-by-side ignore-case ignore-all-space ignore-blank-lines ignore-space-change"
    " ignore-tab-expansion ignore-trailing-space recursive no-dereference new-file text minimal color? width="
    " label= strip-trailing-cr suppress-common-lines report-identical-files show-c-function normal ed rcs",
)
_FIND_WITH_FILE = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_FIND_WITH_VALUE = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname"}
    | {"-type", "-xtype", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-user", "-group"}
    | {"-perm", "-maxdepth", "-mindepth", "-links", "-inum", "-uid", "-gid", "-printf", "-ilname"}
)
_FIND_ALONE = frozenset(
    {"-print", "-print0", "-ls", "-empty", "-executable", "-readable", "-writable", "-not", "-a", "-and", "-o", "-or"}
    | {"-prune", "-true", "-false", "-mount", "-xdev", "-daystart", "-depth", "-d", "-nouser", "-nogroup", "-quit"}
    | {"-noleaf", "(", ")", "!", ","}
)
_SED_LINE = r"(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^\n])+/I?)"
_SED_PRINTS = rf"{_SED_LINE}(?:,(?:{_SED_LINE}|\+[0-9]+))?p"
_JQ = options(
    "rnecCMSsja",
    "raw-output null-input exit-status compact-output color-output monochrome-output sort-keys slurp raw-input"
    " join-output ascii-output tab indent=",
)
_JQ_READS_OUTSIDE = r"env|ENV|import|include|modulemeta|get_search_list|__prog"
_XXD_ALONE = frozenset({"-a", "-b", "-e", "-E", "-i", "-p", "-ps", "-u"})
_XXD_WITH_NUMBER = frozenset({"-c", "-g", "-l", "-o", "-s", "-len", "-cols"})
_XXD_NUMBER = r"[+-]?(?:0x)?[0-9a-fA-F]+"
_XXD_ATTACHED = r"-[cgls][0-9]+"
_STRINGS = reads(options("afo n: t: e:", "all bytes= radix= encoding= print-file-name"), least=1)
_DATE = options("uR I? d: r<", "utc universal rfc-email rfc-2822 iso-8601? rfc-3339= date= reference<")
_WHOLE_NUMBER = r"-?[0-9]{1,18}"
_DURATION = r"[0-9]*\.?[0-9]+[smhd]?"
_PS = options("AaefFlwx p: o:", "sort= no-headers forest")
_PS_BSD = r"[auxwf]+"
_PS_COLUMNS = frozenset(
    {
        "",
        "pid",
        "ppid",
        "pgid",
        "sid",
        "user",
        "uid",
        "comm",
        "cmd",
        "args",
        "command",
        "stat",
        "state",
        "time",
        "etime",
    }
    | {"start", "rss", "vsz", "pcpu", "pmem", "%cpu", "%mem", "nlwp", "ni", "pri", "tty", "lstart", "etimes", "group"}
)
_FORMAT = r"%%|%[-+ #0]*[0-9]*(?:\.[0-9]+)?[sdiuoxXcbqeEfFgGaA]"
_FILE_TESTS = frozenset(f"-{letter}" for letter in "bcdefghkLprsuwxOGNS")

_CHECKSUM = reads(options("btz", "binary text tag zero"))

PROGRAMS: dict[str, Program] = {
    # builtins of bash
    "true": Program(any_words, True),
    "false": Program(any_words, True),
    "echo": Program(any_words, True),
    "printf": Program(_printf, True),
    "test": Program(_test, True),
    "[": Program(_bracket, True),
    "pwd": reads_no_file(options("LP"), most=0, is_builtin=True),
    "type": reads_no_file(options("aptP"), least=1, is_builtin=True),
    "command": Program(_command, True),
    # files
    "cat": reads(
        options("AbeEnstTuv", "show-all number number-nonblank squeeze-blank show-ends show-tabs show-nonprinting")
    ),
    "head": reads(options("qvz n: c:", "lines= bytes= quiet silent verbose zero-terminated", numbers=True)),
    "tail": reads(options("qvz n: c:", "lines= bytes= quiet silent verbose zero-terminated", numbers=True)),
    "wc": reads(options("clmwL", "bytes chars lines words max-line-length")),
    "nl": reads(options("p b: d: f: h: i: l: n: s: v: w:", "body-numbering= number-width= number-format=")),
    "tac": reads(options("br s:", "before regex separator=")),
    "rev": reads(options("")),
    "cut": reads(
        options(
            "nsz b: c: d: f:",
            "bytes= characters= delimiter= fields= only-delimited complement output-delimiter= zero-terminated",
        )
    ),
    "paste": reads(options("sz d:", "delimiters= serial zero-terminated")),
    "fold": reads(options("bs w:", "bytes spaces width=")),
    "fmt": reads(options("cstu w:", "width= split-only")),
    "expand": reads(options("i t:", "initial tabs=")),
    "unexpand": reads(options("a t:", "all tabs= first-only")),
    "column": reads(options("tx s: c: o:", "table separator= columns= output-separator=")),
    "sort": reads(
        options(
            "bdfgiMhnRrVcCmsuz k: t:",
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort month-sort human-numeric-sort"
            " numeric-sort random-sort reverse version-sort check? merge stable unique zero-terminated key="
            " field-separator= sort=",
        )
    ),
    "uniq": reads(
        options("cdDiuz f: s: w:", "count repeated unique ignore-case skip-fields= skip-chars= check-chars="), most=1
    ),
    "comm": reads(options("123z", "check-order nocheck-order output-delimiter= total"), least=2, most=2),
    "join": reads(options("iz a: e: 1: 2: j: o: t: v:", "ignore-case header"), least=2, most=2),
    "cmp": reads(options("bls n:", "print-bytes verbose silent quiet bytes="), least=2, most=2),
    "diff": Program(_diff),
    "base64": reads(options("d w:", "decode wrap="), most=1),
    "strings": Program(_strings),
    "od": reads(options("abcdfiloxv A: j: N: t: w?", "address-radix= skip-bytes= read-bytes= format= width?")),
    "hexdump": reads(options("bcCdovx n: s: e:", "canonical length= skip= no-squeezing")),
    "xxd": Program(_xxd),
    "md5sum": _CHECKSUM,
    "sha1sum": _CHECKSUM,
    "sha224sum": _CHECKSUM,
    "sha256sum": _CHECKSUM,
    "sha384sum": _CHECKSUM,
    "sha512sum": _CHECKSUM,
    "b2sum": _CHECKSUM,
    "cksum": reads(options("")),
    "sed": Program(_sed),
    "jq": Program(_jq),
    "tr": reads_no_file(options("cCdst", "complement delete squeeze-repeats truncate-set1"), least=1, most=2),
    # folders
    "ls": reads(
        options(
            "1AaBbCcdFfGghiklmnopqQRrSstUuXx",
            "all almost-all human-readable recursive reverse size inode directory full-time classify? color?"
            " group-directories-first numeric-uid-gid no-group literal quote-name escape si sort= time= time-style="
            " format= ignore= hide= width= block-size= indicator-style=",
        ),
        here=True,
        has_stdin=False,
    ),
    "tree": reads(
        options(
            "adfhinpqrstugCDFNQSA L: P: I:",
            "dirsfirst noreport prune gitignore du si charset= sort= filelimit= matchdirs ignore-case",
        ),
        here=True,
        has_stdin=False,
    ),
    "find": Program(_find),
    "grep": Program(_grep),
    "egrep": Program(_grep),
    "fgrep": Program(_grep),
    "rg": Program(_rg),
    "du": reads(
        options(
            "abchkmsSx0 d: B: t:",
            "all summarize human-readable max-depth= apparent-size total bytes exclude= threshold= one-file-system"
            " block-size= si time? time-style= separate-dirs null",
        ),
        here=True,
        has_stdin=False,
    ),
    "df": reads(
        options(
            "aHhiklmPT t: x: B:",
            "all human-readable inodes local portability print-type total si type= exclude-type= block-size= output?",
        ),
        has_stdin=False,
    ),
    "stat": reads(options("Lft c:", "dereference file-system terse format= printf="), least=1, has_stdin=False),
    "file": reads(
        options("bhikLnNr", "brief mime mime-type mime-encoding dereference no-dereference keep-going raw no-pad"),
        least=1,
        has_stdin=False,
    ),
    "readlink": reads(
        options("efmnqsvz", "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose"),
        least=1,
        has_stdin=False,
    ),
    "realpath": reads(
        options(
            "eLmPqsz",
            "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero",
        ),
        least=1,
        has_stdin=False,
    ),
    "basename": reads_no_file(options("az s:", "multiple suffix= zero"), least=1),
    "dirname": reads_no_file(options("z", "zero"), least=1),
    # the machine
    "date": Program(_date),
    "sleep": Program(_sleep),
    "seq": Program(_seq),
    "which": reads_no_file(options("a"), least=1),
    "whoami": reads_no_file(options(""), most=0),
    "id": reads_no_file(options("Ggnruz", "user group groups name real zero"), most=1),
    "groups": reads_no_file(options(""), most=1),
    "uname": reads_no_file(
        options("asnrvmpio", "all kernel-name nodename kernel-release machine operating-system"), most=0
    ),
    "arch": reads_no_file(options(""), most=0),
    "nproc": reads_no_file(options("", "all ignore="), most=0),
    "hostname": reads_no_file(options("sI"), most=0),
    "tty": reads_no_file(options("s"), most=0),
    "uptime": reads_no_file(options("ps", "pretty since"), most=0),
    "ps": Program(_ps),
}

_TELL_VERSION = (
    "bash",
    "clang",
    "cc",
    "g++",
    "gcc",
    "git",
    "grep",
    "jq",
    "make",
    "node",
    "python",
    "python3",
    "rg",
    "sed",
)
VERSIONS: frozenset[tuple[str, ...]] = frozenset(
    {(name, "--version") for name in _TELL_VERSION} | {("node", "-v"), ("python", "-V"), ("python3", "-V")}
)
"""Complete commands that print a program's version and do nothing else."""
