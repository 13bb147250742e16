"""Finds the commands, scripts and code that a program such as `sudo`, `xargs` or `bash -c` would start."""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

import msgspec

from bradawl.safety.shell.argv import SHELLS, Argv, name_of, names
from bradawl.safety.shell.deny.expansion import UNKNOWN_VALUE

_MAX_LINES = 64
_MAX_SED_SCRIPT = 600  # characters
"""Limit on the commands that one wrapper is taken to start."""

# ------------------------------------------------------------------ programs that start a command among their words

_WRAPPER_OPTIONS: dict[str, tuple[str, int]] = {
    # letters of options whose value may be the next word; number of operands before the command
    # The first word that is no option:
    **dict.fromkeys(("nohup", "setsid", "builtin", "busybox", "toybox", "fakeroot", "chronic", "unbuffer"), ("", 0)),
    **dict.fromkeys(("torsocks", "proxychains", "proxychains4", "catchsegv", "caffeinate"), ("", 0)),
    **dict.fromkeys(("pkexec", "command", "npx", "bunx", "uvx", "pipx", "dotenv", "valgrind"), ("", 0)),
    **dict.fromkeys(("dbus-run-session", "setpriv", "entr"), ("", 0)),
    # Another user, other limits, another environment:
    "sudo": ("ugpCThURDr", 0),
    "doas": ("uC", 0),
    "env": ("uCS", 0),
    "exec": ("a", 0),
    "nice": ("n", 0),
    "ionice": ("cnpPu", 0),
    "stdbuf": ("ioe", 0),
    "prlimit": ("p", 0),
    "numactl": ("imNCp", 0),
    "cpulimit": ("lpe", 0),
    "unshare": ("RwGS", 0),
    "nsenter": ("tSG", 0),
    "systemd-run": ("puEHMt", 0),
    "screen": ("cehpSst", 0),
    "xvfb-run": ("efnps", 0),
    # Measured or traced:
    "time": ("fo", 0),
    "strace": ("aebEIoOpPsSuX", 0),
    "ltrace": ("aDeFlnopsuxX", 0),
    # With words from the standard input:
    "xargs": ("adEILnPs", 0),
    # After an operand, such as a user, a duration or a file:
    **dict.fromkeys(("gosu", "su-exec", "setarch", "chrt", "taskset", "chroot"), ("", 1)),
    "timeout": ("sk", 1),
    "flock": ("wEc", 1),
}
_LONG_OPTIONS_WITH_VALUE = frozenset(
    {"group", "host", "prompt", "chdir", "unset", "signal", "kill-after", "adjustment", "split-string", "arg-file"}
    | {"delimiter", "max-args", "max-procs", "max-lines", "max-chars", "reuid", "regid", "class", "classdata"}
    | {"uid", "gid", "unit", "property", "setenv", "slice", "from", "package", "python", "with", "directory"}
)
"""Long options of any wrapper whose value is the next word."""
_WRAPPERS_WITH_UNLISTED_OPTIONS = names(
    "coproc bwrap runuser run0 firejail capsh perf faketime linux32 linux64 i386 x86_64 uname26 choom nocache eatmydata"
    " proot chpst softlimit setuidgid envdir cgexec numad uclampset"
)
"""Programs that start others and whose options are not all listed: any word may be the first of a command."""
_RUN_SUBCOMMANDS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("rye", "run"), ("hatch", "run")}
    | {("conda", "run"), ("mamba", "run"), ("bundle", "exec"), ("npm", "exec"), ("pnpm", "exec"), ("pnpm", "dlx")}
    | {("yarn", "exec"), ("yarn", "dlx"), ("op", "run"), ("aws-vault", "exec"), ("mise", "exec"), ("asdf", "exec")}
    | {("rustup", "run"), ("opam", "exec"), ("cargo", "watch"), ("git", "bisect")}
)
"""Programs that start a command after a subcommand."""
FIND_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
"""Options of `find` and `fd` after which a command begins."""

# ------------------------------------------------------------------ programs that run a text

_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_SHELL_WORD_JOINERS = frozenset({"watch", "parallel", "eval", "rush"})
"""Programs that join their words and pass them to a shell."""
INTERPRETERS = re.compile(
    r"(?:python|pypy)[0-9.]*|perl[0-9.]*|ruby[0-9.]*|node(?:js)?|deno|bun|php[0-9.]*|lua[0-9.]*|tclsh|Rscript|osascript"
    r"|[gmn]?awk|awk"
)
_CODE_OPTIONS = re.compile(r"-[a-zA-Z]*[ceErnp]|--eval|--print|eval")
"""Options of interpreters after which code follows."""


class Started(msgspec.Struct, frozen=True):
    """Commands, scripts and code that a command would start."""

    argvs: tuple[Argv, ...] = ()
    scripts: tuple[str, ...] = ()
    """Texts for a shell."""
    arguments: Argv = ()
    """The shell's `$0`, `$1` and so on."""
    codes: tuple[str, ...] = ()
    """Texts in other languages."""


STARTS_NOTHING = Started()


def folder_of(words: Argv) -> str:
    """The folder in which `env -C` or `sudo -D` starts a command; empty if none is given."""
    options = {"env": ("-C", "--chdir"), "sudo": ("-D", "--chdir")}.get(name_of(words))
    return next(iter(_option_values(words, options)), "") if options else ""


def started_by(words: Argv, text: str | None) -> Started:
    """What a command would start; `text` is its standard input, None if unknown."""
    name = name_of(words)
    if name in SHELLS:
        script, arguments = _shell_script(words, text)
        return Started(scripts=(script,), arguments=arguments) if script else STARTS_NOTHING
    if name in _WRAPPER_OPTIONS:
        return _started_by_wrapper(name, words, text)
    if name in _SHELL_WORD_JOINERS:
        rest = _without_double_dash(words[1:]) if name == "eval" else _command_words(words, "dnjis", 0)
        return Started(scripts=(" ".join(rest),))
    if name in ("find", "fd", "fdfind"):
        return Started(tuple(_argvs_of_find(words)))
    if words[:2] in _RUN_SUBCOMMANDS:
        argv = _without_double_dash(_command_words(words[1:], "pCec", 1 if words[0] == "git" else 0))
        return Started((argv,), tuple(_option_values(words, ("-c", "--call"))) if words[0] in ("npm", "pnpm") else ())
    if INTERPRETERS.fullmatch(name):
        return Started(codes=_interpreter_code(name, words, text))
    return _started_by_other(name, words, text)


def _started_by_wrapper(name: str, words: Argv, text: str | None) -> Started:
    letters, operands = _WRAPPER_OPTIONS[name]
    if name == "command" and any(word in ("-v", "-V") for word in words[1:2]):
        return STARTS_NOTHING
    scripts = tuple(_option_values(words, ("-c", "--command", "--call"))) if name in ("flock", "npx") else ()
    words = _with_split_string(words) if name == "env" else words
    rest = _command_words(words, letters, operands)
    if name == "xargs":
        return Started(_argvs_of_xargs(words, rest or ("echo",), text), scripts)
    if name == "sudo" and rest[:1] == (_word_after(words, "--user"),):
        rest = rest[1:]
    return Started((rest,) if rest else (), scripts)


def _with_split_string(words: Argv) -> Argv:
    """The words of `env`, with the value of the option `-S` split into words of their own."""
    for place, word in enumerate(words):
        if match := re.fullmatch(r"(?:-[i0v]*S|--split-string(?:=|\Z))(.*)", word, re.DOTALL):
            value, after = (match[1], place + 1) if match[1] else ("".join(words[place + 1 : place + 2]), place + 2)
            return (*words[:place], *value.split(), *words[after:])
    return words


def _argvs_of_xargs(words: Argv, rest: Argv, text: str | None) -> tuple[Argv, ...]:
    """The commands that `xargs` makes from its input."""
    mark = _replaced_text(words)
    if not mark:
        return ((*rest, *(text or "").split()[:200]),)
    lines = text.strip().split("\n")[:_MAX_LINES] if text else []
    if not text or "*" in text:
        lines.append(UNKNOWN_VALUE)  # names of files, which are unknown
    return tuple(tuple(word.replace(mark, line) for word in rest) for line in lines)


def _replaced_text(words: Argv) -> str:
    """The text that `xargs` replaces by each line of its input; empty if it appends."""
    for word, after in pairwise((*words, "")):
        if word[:2] in ("-I", "-i", "-J"):
            return word[2:] or (after if word[1] != "i" else "{}")
        if word.startswith("--replace"):
            return word.partition("=")[2] or "{}"
    return ""


def _word_after(words: Argv, name: str) -> str:
    return next((after for word, after in pairwise(words) if word == name), "")


def _command_words(words: Argv, letters: str, operands: int) -> Argv:
    """The words after options, assignments and `operands` operands."""
    place = 1
    while place < len(words):
        word = words[place]
        if word == "--":
            place += 1
            break
        if word.startswith("--"):
            place += 2 if word[2:] in _LONG_OPTIONS_WITH_VALUE else 1
        elif len(word) > 1 and word[0] == "-":
            place += 2 if word[-1] in letters and len(set(word[1:-1]) & set(letters)) == 0 else 1
        elif re.match(r"[A-Za-z_]\w*=", word):
            place += 1
        else:
            break
    return words[place + operands :]


def _without_double_dash(words: Argv) -> Argv:
    return words[1:] if words[:1] == ("--",) else words


def _option_values(words: Argv, names: tuple[str, ...]) -> Iterable[str]:
    """Values of an option, as a separate word or after `=`."""
    for place, word in enumerate(words):
        if word in names and place + 1 < len(words):
            yield words[place + 1]
        elif word.partition("=")[0] in names and "=" in word:
            yield word.partition("=")[2]
        elif len(names[0]) == 2 and word.startswith(names[0]) and len(word) > 2:
            yield word[2:]


def _shell_script(words: Argv, text: str | None) -> tuple[str | None, Argv]:
    """The text that a shell would run, from `-c` or its standard input, and its arguments."""
    place, has_code, is_input = 1, False, False
    while place < len(words) and words[place][:1] in ("-", "+") and len(words[place]) > 1:
        word = words[place]
        place += 2 if word in _SHELL_OPTIONS_WITH_VALUE else 1
        if word == "--":
            break
        if not word.startswith("--"):
            has_code = has_code or "c" in word
            is_input = is_input or "s" in word
            place += word != "-o" and word[-1] in "oO" and len(word) > 2
    if has_code:
        return (words[place] if place < len(words) else None), words[place + 1 :]
    if place >= len(words) or is_input:
        return text, (words[0], *words[place:])
    return (text if words[place] in ("-", "/dev/stdin") else None), words[place:]


def _argvs_of_find(words: Argv) -> Iterable[Argv]:
    found: list[str] | None = None
    is_find = words[0].endswith("find")
    start = next((word for word in words[1:2] if word[:1] not in ("-", "(", "!")), ".").rstrip("/")
    for word in words[1:]:
        if found is not None and word in (";", "+"):
            yield tuple(found)
            found = None
        elif found is not None:
            found.append(word.replace("{}", f"{start}/*") if is_find else word)
        elif word in FIND_EXECS:
            found = []
    if found:
        yield tuple(found)


def _interpreter_code(name: str, words: Argv, text: str | None) -> tuple[str, ...]:
    if name.endswith("awk"):
        return _command_words(words, "Fvf", 0)[:1]
    for place, word in enumerate(words[1:], 1):
        if _CODE_OPTIONS.fullmatch(word):
            return words[place + 1 : place + 2]
        if word[:1] != "-" or word == "-":
            return () if word != "-" or text is None else (text,)
    return () if text is None else (text,)


def _started_by_other(name: str, words: Argv, text: str | None) -> Started:
    """What a program with a syntax of its own would start."""
    match name:
        case "runuser" if "--" in words:
            return Started((words[words.index("--") + 1 :],))
        case "." | "source":
            operands = words[1:2]
            return Started(scripts=(text,) if text and operands in (("/dev/stdin",), ("-",)) else operands)
        case "at" | "batch":
            return Started(scripts=(text,) if text else ())
        case "make" | "gmake" | "ed" | "tclsh" | "expect" | "gdb" | "ex" if text:
            return Started(scripts=(re.sub(r"(?m)^[ \t]*(?:exec |spawn |shell |!|@|-)?", "", text),))
        case _ if name in _WRAPPERS_WITH_UNLISTED_OPTIONS or name.startswith(("ld-linux", "ld.so", "ld-musl")):
            given = tuple(_SCRIPT_FINDERS[name](words)) if name in _SCRIPT_FINDERS else ()
            places = [place for place, word in enumerate(words) if place and word[:1] not in "-{"]
            return Started(tuple(words[place:] for place in places[:_MAX_LINES]), given)
        case _ if given := _SCRIPT_FINDERS.get(name):
            return Started(scripts=tuple(given(words)))
        case _:
            return STARTS_NOTHING


def _scripts_of_c_option(words: Argv) -> Iterable[str]:
    yield from _option_values(words, ("-c", "--command"))
    yield from (after for word, after in pairwise(words) if re.fullmatch(r"-[a-z]+c", word))


def _script_of_trap(words: Argv) -> Iterable[str]:
    return _without_double_dash(words[1:])[:1]


def _scripts_of_nix(words: Argv) -> Iterable[str]:
    return _option_values(words, ("--run", "--command"))


def _scripts_of_tmux(words: Argv) -> Iterable[str]:
    return (word for word in words[2:] if " " in word)


def _command_of_terminal(words: Argv) -> Iterable[str]:
    mark = next((place for place, word in enumerate(words) if word in ("-e", "-x", "--")), len(words))
    return (" ".join(words[mark + 1 :]),)


def _commands_of_tar(words: Argv) -> Iterable[str]:
    yield from _option_values(words, ("-I", "--use-compress-program", "--to-command", "--info-script", "--rsh-command"))
    for action in _option_values(words, ("--checkpoint-action",)):
        if action.startswith("exec="):
            yield action[5:]


def _precedes_a_script(word: str, words: Argv) -> bool:
    """Whether the next word is a script, in a git command."""
    if word in ("-x", "--exec"):
        return "rebase" in words or "difftool" in words
    if word == "--extcmd":
        return True
    return re.fullmatch(r"--(?:tree|index|env|msg|commit|parent|tag-name)-filter", word) is not None


_GIT_COMMAND_SETTINGS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy)=|pager\.|sequence\.editor=|diff\.external=|(?:diff|merge|filter)\."
    r"[^=]*\.(?:command|textconv|driver|clean|smudge|process)=|gpg\.[^=]*program=|credential\.[^=]*helper=",
    re.IGNORECASE,
)


def _commands_of_git(words: Argv) -> Iterable[str]:
    for place, word in enumerate(words):
        value = word.partition("=")[2]
        if words[place - 1] == "-c" and (value.startswith("!") or _GIT_COMMAND_SETTINGS.match(word)):
            yield value.removeprefix("!")
        elif re.match(r"-O.|--open-files-in-pager=|--extcmd=|--(?:upload|receive)-pack=", word):
            yield word[2:] if word[1] == "O" else value
        elif _precedes_a_script(word, words):
            yield from words[place + 1 : place + 2]
        elif word == "foreach" and "submodule" in words:
            yield " ".join(word for word in words[place + 1 :] if word not in ("--recursive", "--quiet"))
            return


def _commands_in_options(words: Argv) -> Iterable[str]:
    """Values of options that name commands."""
    for options in _COMMAND_OPTIONS[name_of(words)]:
        yield from (
            value.partition("=")[2] if "Command=" in value else value for value in _option_values(words, options)
        )


def _commands_of_sed(words: Argv) -> Iterable[str]:
    """Commands that sed's `e` runs, and `s` with the flag `e`."""
    for word in words[1:]:
        yield from re.findall(r"(?:^|[;{}\n\d$/!]) {0,9}e {1,9}([^\n]+)", word)
        for place in range(min(len(word) - 1, _MAX_SED_SCRIPT)):
            parts = word[place + 2 : place + _MAX_SED_SCRIPT].split(word[place + 1], 2) if word[place] == "s" else ()
            if len(parts) == 3 and re.match("[a-zA-Z0-9]*e", parts[2]):
                yield parts[1]


def _commands_in_code(words: Argv) -> Iterable[str]:
    """Commands in the words of a program with a language of its own."""
    pattern = _COMMAND_PATTERNS[name_of(words)]
    for word in words[1:]:
        yield from re.findall(pattern, word)


# ------------------------------------------------------------------ tables

_COMMAND_OPTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "split": (("--filter",),),
    **dict.fromkeys(("mapfile", "readarray", "compgen", "complete"), (("-C",),)),
    "sort": (("--compress-program",),),
    "man": (("-P", "--pager"),),
    **dict.fromkeys(("ssh", "scp", "sftp"), (("-o",),)),
    "rsync": (("-e", "--rsh"),),
    "zip": (("-TT",),),
    **dict.fromkeys(("npm", "pnpm", "yarn"), (("-c", "--call"),)),
}
"""Options whose value is a command, by program name."""
_COMMAND_PATTERNS: dict[str, str] = {
    **dict.fromkeys(("make", "gmake"), r"\$\(shell ([^)]*)\)"),
    **dict.fromkeys(
        ("vim", "vi", "nvim", "view", "ex", "less", "more"),
        r"(?:^|\+|\|) {0,9}(?:silent!? {0,9})?:?!(.+)",
    ),
    "gdb": r"^(?:shell|!) {0,9}(.+)",
    "expect": r"(?:spawn|exec|system) {1,9}([^\n;]+)",
}
"""Regular expressions for commands in the languages of programs; the group is the command."""

_SCRIPT_FINDERS: dict[str, Callable[[Argv], Iterable[str]]] = {
    **dict.fromkeys(("su", "runuser", "script", "sg", "ssh-agent", "capsh"), _scripts_of_c_option),
    **dict.fromkeys(("nix-shell", "nix", "guix"), _scripts_of_nix),
    **dict.fromkeys(("xterm", "uxterm", "urxvt", "konsole", "gnome-terminal", "xfce4-terminal"), _command_of_terminal),
    **dict.fromkeys(("kitty", "alacritty"), _command_of_terminal),
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _commands_of_tar),
    **dict.fromkeys(("sed", "gsed"), _commands_of_sed),
    **dict.fromkeys(_COMMAND_PATTERNS, _commands_in_code),
    **dict.fromkeys(_COMMAND_OPTIONS, _commands_in_options),
    "trap": _script_of_trap,
    "tmux": _scripts_of_tmux,
    "git": _commands_of_git,
}
"""Functions that find scripts among a program's words, by program name."""
