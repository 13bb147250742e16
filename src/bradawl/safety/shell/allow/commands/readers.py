"""What everyday programs that only read would touch. An option that isn't listed here isn't understood.

The tables were read from the manuals of GNU coreutils, findutils, diffutils and grep, ripgrep 15, jq 1.7 and xxd;
letters that mean a file, a program or a link to follow on another system are left out.
"""

import re
from collections.abc import Callable
from functools import partial

import msgspec

from bradawl.safety.shell.allow.commands.options import Call, Options, options, read_options
from bradawl.safety.shell.allow.commands.ripgrep import RG, SHOWS_HIDDEN, brings_back
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.allow.path_effects import Scene
from bradawl.safety.shell.errors import NotUnderstood

Words = tuple[Word, ...]
Judge = Callable[[Scene, Words], None]
_MANY = 1_000


class Program(msgspec.Struct, frozen=True):
    """How the arguments of a program are judged."""

    judge: Judge
    is_builtin: bool = False
    """Whether bash itself is the program."""


def check(is_so: bool) -> None:
    """Raise `NotUnderstood` unless it is so."""
    if not is_so:
        raise NotUnderstood


def check_literal(words: Words) -> None:
    """Raise `NotUnderstood` if one of them is a pattern."""
    check(not any(word.is_glob for word in words))


# ------------------------------------------------------------------ the usual shape: options, then files


def reads(known: Options, *, least: int = 0, most: int = _MANY, here: bool = False, has_stdin: bool = True) -> Program:
    """A program whose operands are files it reads; with `here` it reads the working directory when there are none."""

    def judge(scene: Scene, words: Words) -> None:
        call = read_options(known, words)
        check(least <= len(call.operands) <= most)
        check(has_stdin or not any(word.text == "-" for word in call.operands))
        if most < _MANY:
            check_literal(call.operands)
        read_all(scene, call, call.operands, here=here)

    return Program(judge)


def read_all(scene: Scene, call: Call, files: Words, *, here: bool) -> None:
    """The files that options name and these."""
    for word in (*call.reads, *files):
        scene.read(word, lists_folders=here)
    if here and not files:
        scene.read_path(scene.cwd)


def opaque(known: Options, *, least: int = 0, most: int = _MANY, is_builtin: bool = False) -> Program:
    """A program that opens no file, whatever its operands say."""

    def judge(scene: Scene, words: Words) -> None:
        call = read_options(known, words)
        check_literal(call.operands)
        check(least <= len(call.operands) <= most and not call.reads)

    return Program(judge, is_builtin)


def anything(scene: Scene, words: Words) -> None:
    """Any words; bash looks into folders for patterns."""
    for word in words:
        if word.is_glob:
            scene.read(word)


# ------------------------------------------------------------------ programs with rules of their own


def _grep(scene: Scene, words: Words) -> None:
    call = read_options(_GREP, words)
    has_pattern = not {"e", "f", "regexp", "file"}.isdisjoint(call.flags)
    is_deep = not {"r", "recursive"}.isdisjoint(call.flags)
    files = _searched(scene, call, has_pattern=has_pattern, here=is_deep)
    if is_deep:
        scene.show_all_below(files, hidden=True)


def _rg(scene: Scene, words: Words) -> None:
    call = read_options(RG, words)
    has_pattern = not {"e", "f", "regexp", "file", "files", "type-list"}.isdisjoint(call.flags)
    files = _searched(scene, call, has_pattern=has_pattern, here=True)
    if {"files", "type-list"}.isdisjoint(call.flags):
        hidden = not SHOWS_HIDDEN.isdisjoint(call.flags)
        scene.show_all_below(files, hidden=hidden, brings_back=partial(brings_back, call))


def _searched(scene: Scene, call: Call, *, has_pattern: bool, here: bool) -> Words:
    files = call.operands
    if not has_pattern:
        check(bool(files))
        check_literal(files[:1])
        files = files[1:]
    read_all(scene, call, files, here=here)
    return files


def _diff(scene: Scene, words: Words) -> None:
    call = read_options(_DIFF, words)
    check(len(call.operands) == 2)
    check_literal(call.operands)
    if not {"r", "recursive"}.isdisjoint(call.flags):
        check("no-dereference" in call.flags)
        read_all(scene, call, call.operands, here=False)
        scene.show_all_below(call.operands, hidden=True)
        return
    for word in call.operands:
        scene.read_with_links(word)
    folders = tuple(word for word in call.operands if word.text != "-" and scene.is_folder(scene.place(word.text)))
    if folders:  # their files are compared, not those in further folders
        scene.show_all_below(folders, hidden=True)


def _find(scene: Scene, words: Words) -> None:
    check_literal(words)
    texts = [word.text for word in words]
    count = next((index for index, text in enumerate(texts) if text[:1] in ("-", "(", "!", ",", ")")), len(texts))
    for word in words[:count]:
        scene.read(word, lists_folders=True)
    if count == 0:
        scene.read_path(scene.cwd)
    rest = iter(texts[count:])
    for text in rest:
        if text in _FIND_WITH_FILE:
            scene.read_path(next(rest, ""))
        elif text in _FIND_WITH_VALUE:
            check(next(rest, None) is not None)
        else:
            check(text in _FIND_ALONE)


def _sed(scene: Scene, words: Words) -> None:
    check(len(words) >= 2 and words[0].text == "-n" and bool(re.fullmatch(_SED_PRINTS, words[1].text)))
    check(not any(word.text.startswith("-") for word in words[2:]))
    for word in words[2:]:
        scene.read(word)


def _jq(scene: Scene, words: Words) -> None:
    check(not any(word.text == "--" for word in words))
    call = read_options(_JQ, words)
    check(bool(call.operands))
    check_literal(call.operands[:1])
    check(not re.search(_JQ_LOOKS_OUT, call.operands[0].text))
    read_all(scene, call, call.operands[1:], here=False)


def _xxd(scene: Scene, words: Words) -> None:
    """A second operand would be written to; and letters can't be put together, so nothing is guessed."""
    check_literal(words)
    rest = iter(word.text for word in words)
    files: list[str] = []
    for text in rest:
        if text in _XXD_WITH_NUMBER:
            check(bool(re.fullmatch(_XXD_NUMBER, next(rest, ""))))
        elif not (text in _XXD_ALONE or re.fullmatch(_XXD_ATTACHED, text)):
            check(not text.startswith(("-", "+")))
            files.append(text)
    check(len(files) == 1)
    scene.read_path(files[0])


def _strings(scene: Scene, words: Words) -> None:
    check(not any(word.text.startswith("@") for word in words))  # a file with more options
    _STRINGS.judge(scene, words)


def _date(scene: Scene, words: Words) -> None:
    call = read_options(_DATE, words)
    check_literal(call.operands)
    check(len(call.operands) <= 1 and all(word.text.startswith("+") for word in call.operands))
    read_all(scene, call, (), here=False)


def _seq(scene: Scene, words: Words) -> None:
    texts = [word.text for word in words]
    if texts[:1] == ["-w"]:
        texts = texts[1:]
    elif texts[:1] == ["-s"]:
        texts = texts[2:]
    check(1 <= len(texts) <= 3 and all(re.fullmatch(_WHOLE_NUMBER, text) for text in texts))


def _sleep(scene: Scene, words: Words) -> None:
    check(bool(words) and all(re.fullmatch(_DURATION, word.text) for word in words))


def _ps(scene: Scene, words: Words) -> None:
    """Never the environment of others, which `e` without a dash would show."""
    check_literal(words)
    texts = [word.text for word in words]
    if texts and re.fullmatch(_PS_BSD, texts[0]):
        texts = texts[1:]
    call = read_options(_PS, tuple(map(Word, texts)))
    check(not call.operands)
    columns = [column.partition("=")[0] for name in ("o", "sort") for column in call.flags.get(name, "").split(",")]
    check(all(column.lstrip("+-") in _PS_COLUMNS for column in columns))


def _command(scene: Scene, words: Words) -> None:
    check(len(words) > 1 and words[0].text in ("-v", "-V"))
    check_literal(words)


def _printf(scene: Scene, words: Words) -> None:
    """`%n` assigns to a variable, and the subscript of one may run a command; so may `-v`."""
    words = words[1:] if words and words[0].text == "--" else words
    check(bool(words) and not words[0].is_glob and not words[0].text.startswith("-"))
    check("%" not in re.sub(_FORMAT, "", words[0].text))
    anything(scene, words[1:])


def _test(scene: Scene, words: Words) -> None:
    check_literal(words)
    texts = [word.text for word in words]
    if len(texts) > 1 and texts[0] == "!":
        texts = texts[1:]
    match texts:
        case [_] | []:
            return
        case [("-n" | "-z"), _]:
            return
        case [operator, path] if operator in _FILE_TESTS:
            scene.read_path(path)
        case [first, ("-nt" | "-ot" | "-ef"), second]:
            scene.read_path(first)
            scene.read_path(second)
        case [_, ("=" | "==" | "!="), _]:
            return
        case [first, ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"), second]:
            check(bool(re.fullmatch(_WHOLE_NUMBER, first) and re.fullmatch(_WHOLE_NUMBER, second)))
        case _:
            raise NotUnderstood


def _bracket(scene: Scene, words: Words) -> None:
    check(bool(words) and words[-1].text == "]")
    _test(scene, words[:-1])


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
_SED_PRINTS = r"(?:[0-9]+|\$)(?:,(?:[0-9]+|\$))?p"
_JQ = options(
    "rnecCMSsja",
    "raw-output null-input exit-status compact-output color-output monochrome-output sort-keys slurp raw-input"
    " join-output ascii-output tab indent=",
)
_JQ_LOOKS_OUT = r"env|ENV|import|include|modulemeta|get_search_list|__prog"
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
    # bash itself
    "true": Program(anything, True),
    "false": Program(anything, True),
    "echo": Program(anything, True),
    "printf": Program(_printf, True),
    "test": Program(_test, True),
    "[": Program(_bracket, True),
    "pwd": opaque(options("LP"), most=0, is_builtin=True),
    "type": opaque(options("aptP"), least=1, is_builtin=True),
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
    "tr": opaque(options("cCdst", "complement delete squeeze-repeats truncate-set1"), least=1, most=2),
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
    "basename": opaque(options("az s:", "multiple suffix= zero"), least=1),
    "dirname": opaque(options("z", "zero"), least=1),
    # the machine
    "date": Program(_date),
    "sleep": Program(_sleep),
    "seq": Program(_seq),
    "which": opaque(options("a"), least=1),
    "whoami": opaque(options(""), most=0),
    "id": opaque(options("Ggnruz", "user group groups name real zero"), most=1),
    "groups": opaque(options(""), most=1),
    "uname": opaque(options("asnrvmpio", "all kernel-name nodename kernel-release machine operating-system"), most=0),
    "arch": opaque(options(""), most=0),
    "nproc": opaque(options("", "all ignore="), most=0),
    "hostname": opaque(options("sI"), most=0),
    "tty": opaque(options("s"), most=0),
    "uptime": opaque(options("ps", "pretty since"), most=0),
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
"""argv of programs that tell their version and do no more."""
