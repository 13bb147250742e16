"""Which operands a command writes, deletes or moves. An unknown program may change every path that it names."""

import re
from collections.abc import Callable

from bradawl.safety.shell.arguments import arguments
from bradawl.safety.shell.argv import SHELLS, Argv, name_of, names
from bradawl.safety.shell.bind_mounts import bind_mounts
from bradawl.safety.shell.paths.archivers import ARCHIVERS
from bradawl.safety.shell.paths.file_changes import NO_CHANGES, Changes, Copies, named_outputs
from bradawl.safety.shell.program_options import copy_operands, program_arguments


def changes_of(argv: Argv) -> Changes:
    """What the command changes itself, without the commands that it starts."""
    name = name_of(argv)
    if name in READERS:
        return NO_CHANGES
    if handler := _HANDLERS.get(name):
        return handler(argv)
    if given := _PLAIN.get(name):
        return _plain(argv, *given)
    if name in _TOOLS:
        return Changes(files=named_outputs(argv))
    if name in SHELLS:
        return _script(argv, _SHELL_LETTERS)
    return _unlisted_program(name, argv)


def _unlisted_program(name: str, argv: Argv) -> Changes:
    if _PYTHON.fullmatch(name) and "-m" in argv[:-1]:
        return _module(argv)
    if _INTERPRETERS.fullmatch(name):
        return _script(argv, "cemWXIrMC")
    return Changes(maybe_changed=argv[1:], is_whole_tree=True)


def _plain(argv: Argv, letters: str, long_names: str, written: slice) -> Changes:
    """A program that an entry of `_PLAIN` describes."""
    call = program_arguments(argv)
    return Changes(files=(*call.values(letters, *long_names.split()), *call.operands[written]))


# ------------------------------------------------------------------ delete, move, copy


def _rm(argv: Argv) -> Changes:
    call = program_arguments(argv)
    if call.has("rR", "recursive") or not argv[0].endswith("rm"):
        return Changes(files=call.operands, trees=call.operands, removes=True)
    return Changes(files=call.operands)


def _chmod(argv: Argv) -> Changes:
    call = program_arguments(argv)
    words = call.operands if call.has("", "reference") else call.operands[1:]
    words = call.operands if argv[0].endswith("facl") else words
    return Changes(files=words)  # a changed mode of files below is no change of their contents


def _cp(argv: Argv) -> Changes:
    call = copy_operands(argv)
    is_deep = call.options.has("rRa", "recursive", "archive")
    linked = call.sources if call.options.has("l", "link") else ()
    copies = Copies(call.sources, call.target, is_deep, call.options.has("T", "no-target-directory"))
    return Changes(copies=(copies,), files=linked, trees=linked if is_deep else ())


def _mv(argv: Argv) -> Changes:
    call = copy_operands(argv)
    copies = Copies(call.sources, call.target, True, call.options.has("T", "no-target-directory"))
    return Changes(files=call.sources, trees=call.sources, removes=True, copies=(copies,))


def _ln(argv: Argv) -> Changes:
    call = copy_operands(argv)
    changed = () if call.options.has("s", "symbolic") else call.sources
    return Changes(files=changed, copies=(Copies(call.sources, call.target),))


def _install(argv: Argv) -> Changes:
    call = copy_operands(argv)
    if call.options.has("d", "directory"):
        return Changes(files=call.options.operands)
    return Changes(copies=(Copies(call.sources, call.target),))


def _rsync(argv: Argv) -> Changes:
    call = program_arguments(argv)
    *sources, target = call.operands or ("",)
    outputs = call.values("T", "log-file", "backup-dir", "partial-dir", "temp-dir", "write-batch")
    moved = tuple(sources) if call.has("", "remove-source-files") else ()
    if not sources or call.has("n", "dry-run", "list-only"):
        return NO_CHANGES
    if ":" in target.partition("/")[0]:
        return Changes(files=outputs, trees=moved, removes=True)
    deleted = (target,) if any(option.startswith("del") for option, _ in call.given) else ()
    into = tuple(source for source in sources if source.endswith("/"))
    others = tuple(source for source in sources if not source.endswith("/"))
    copies = (Copies(into, target, True, True), Copies(others, target, True))
    return Changes(
        files=outputs, trees=(*moved, *deleted), removes=True, copies=tuple(each for each in copies if each.sources)
    )


def _scp(argv: Argv) -> Changes:
    call = program_arguments(argv)
    *sources, target = call.operands or ("",)
    if ":" in target.partition("/")[0]:
        return NO_CHANGES
    names = tuple(source.rpartition(":")[2] for source in sources)
    return Changes(copies=(Copies(names, target, call.has("r")),))


# ------------------------------------------------------------------ editors and languages


def _sed(argv: Argv) -> Changes:
    call = program_arguments(argv)
    scripts = call.values("e", "expression")
    has_file = call.has("f", "file")
    operands = call.operands
    if not scripts and not has_file:
        scripts, operands = operands[:1], operands[1:]
    edited = operands if call.has("i", "in-place") else ()
    written = tuple(file for script in scripts for file in _sed_files(script))
    return Changes(files=(*edited, *written), texts=tuple(filter(_SED_RUNS.search, scripts)))


def _sed_files(script: str) -> list[str]:
    """Files that the commands `w` and `W`, or the flag `w` of a substitution, write to."""
    return [match[1].strip() for match in re.finditer(r"[wW][ \t]*([^\n;}]*[^\s;}][^\n]*)", script)]


def _perl(argv: Argv) -> Changes:
    """Options may share one word with `-i`; the word after `-e` is code."""
    call = arguments(argv, "eEICMm", "", "i0lxFdD")
    codes = call.values("eE")
    operands = call.operands if codes else call.operands[1:]
    if call.has("i") or any(re.match(r"-[a-zA-Z0-9]*i", word) for word in argv[1:] if word not in codes):
        return Changes(files=operands, texts=codes)
    return Changes(maybe_changed=() if codes and not _WRITES.search(" ".join(codes)) else operands, texts=codes)


def _editor(argv: Argv) -> Changes:
    call = program_arguments(argv)
    return Changes(files=(*call.operands, *call.values("W")), texts=(*call.values("c"), ""))


def _yq(argv: Argv) -> Changes:
    call = program_arguments(argv)
    return Changes(files=call.operands if call.has("i", "inplace", "in-place") else ())


def _awk(argv: Argv) -> Changes:
    call = program_arguments(argv)
    codes = call.values("e", "source")
    operands = call.operands
    if not codes and not call.has("fE", "file"):
        codes, operands = operands[:1], operands[1:]
    in_place = operands if "inplace" in call.values("i", "include") else ()
    text = " ".join(codes)
    computed = re.search(r">[ \t]*(?!\s*[\"0-9(])[A-Za-z_$(]", text)
    given = (*operands, *(value.partition("=")[2] for value in call.values("v", "assign"))) if computed else ()
    outputs = tuple(re.findall(r">[ \t]*\(?\"([^\"]+)\"", text))
    starts_others = "|" in text or "system" in text
    return Changes(
        files=(*in_place, *outputs, *call.values("o")),
        maybe_changed=given,
        texts=(text,) if starts_others and text else (),
    )


def _script(argv: Argv, letters: str) -> Changes:
    """An interpreter: the script is only read, its arguments may be changed."""
    place, codes = 1, list[str]()
    while place < len(argv) and argv[place][:1] in ("-", "+") and argv[place] not in ("-", "--"):
        word = argv[place]
        place += 1
        if word[1:2] != "-" and word[-1:] in letters:
            codes += argv[place : place + 1] if _CODE.fullmatch(word) else ()
            place += 1
        elif word in ("--eval", "--print", "--exec"):
            codes += argv[place : place + 1]
            place += 1
    rest = argv[place:] if codes else argv[place + 1 :]
    is_shell = name_of(argv) in SHELLS
    if not codes and place >= len(argv) and not is_shell:
        codes.append("")  # code on the standard input
    return Changes(maybe_changed=() if is_shell and codes else rest, texts=() if is_shell else tuple(codes))


def _module(argv: Argv) -> Changes:
    """`python -m module`, handled as the program of that name."""
    place = argv.index("-m") + 1
    name, rest = argv[place], argv[place + 1 :]
    match name:
        case "json.tool":
            return Changes(files=arguments(("", *rest), "", "indent").operands[1:2])
        case "venv" | "virtualenv" | "compileall" | "ensurepip" | "http.server" | "unittest" | "timeit" | "cProfile":
            return Changes(files=named_outputs(("", *rest)))
        case "zipfile" | "tarfile":
            return Changes(maybe_changed=rest)
        case _:
            return changes_of((name.replace("_", "-"), *rest))


def _formatter(argv: Argv) -> Changes:
    """A formatter: rewrites files with certain suffixes, unless an option makes it only check them."""
    name = name_of(argv)
    suffixes, rewriting, checking = _FORMATTERS[name]
    words = set(argv[1:]) | {word.partition("=")[0] for word in argv[1:]}
    if (rewriting and not words & rewriting) or words & checking:
        return Changes(files=named_outputs(argv))
    operands = tuple(word for word in argv[1:] if word[:1] != "-")
    if name == "ruff":
        operands = operands[1:]
    trees = operands or ((".",) if name in ("ruff", "isort") else ())
    return Changes(files=(*operands, *named_outputs(argv)), trees=trees, suffixes=suffixes)


def _container(argv: Argv) -> Changes:
    """Folders of the host that a container may write to, and files copied out of it."""
    if "cp" in argv[1:3]:
        return Changes(files=tuple(word for word in argv[-1:] if ":" not in word and word != "-"))
    mounts = [each.source for each in bind_mounts(argv) if not (each.is_read_only or each.is_volume)]
    return Changes(files=named_outputs(argv), maybe_changed=tuple(mounts), is_whole_tree=True)


def _wrapper(argv: Argv) -> Changes:
    """A program that starts another one and writes a file of its own; the started command is analyzed separately."""
    call = arguments(argv[: _count_own_words(argv)], "o", "output")
    return Changes(files=call.values("o", "output"))


def _count_own_words(argv: Argv) -> int:
    place = 1
    while place < len(argv) and argv[place][:1] == "-":
        place += 2 if argv[place] in ("-o", "--output", "-f", "--format", "-e", "-p", "-s", "-u") else 1
    return place


def _flock(argv: Argv) -> Changes:
    return Changes(files=program_arguments(argv).operands[:1])


# ------------------------------------------------------------------ tables

_WRITES = re.compile(
    r"open|unlink|rename|link|>|system|exec|eval|truncate|mkdir|rmdir|chmod|utime|File::|IO::|write|`|qx"
)
_SED_RUNS = re.compile(r"(?:\A|[;{}\n0-9$/!,])[ \t]*e(?:[ \t]|\Z)|[/|#,:][gIpM0-9]*e[gIpM0-9]*(?:[ \t;}\n]|\Z)")
"""Commands of sed that run a program."""
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_INTERPRETERS = re.compile(
    r"(?:python|pypy)[0-9.]*|ruby[0-9.]*|node(?:js)?|deno|bun|php[0-9.]*|lua[0-9.]*|tclsh|Rscript|osascript|julia|scala"
)
_CODE = re.compile(r"-[a-zA-Z]*[ceErp]")
_SHELL_LETTERS = "coO"
_PY = (".py", ".pyi", ".ipynb")
_WEB = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".json", ".md", ".css", ".scss", ".html", ".yaml", ".yml")
_C = (".c", ".h", ".cc", ".cpp", ".hpp", ".cxx", ".hh", ".m", ".java", ".proto")
_CHECK_ONLY = frozenset(
    {"--check", "--diff", "-c", "--check-only", "--list-different", "-l", "--dry-run", "-d", "--stdin"}
)
_NONE = frozenset[str]()
_FORMATTERS: dict[str, tuple[tuple[str, ...], frozenset[str], frozenset[str]]] = {
    "black": (_PY, _NONE, frozenset({"--check", "--diff", "-c", "--code", "-"})),
    "isort": (_PY, _NONE, _CHECK_ONLY),
    "ruff": (_PY, frozenset({"format", "--fix", "--fix-only", "--add-noqa"}), frozenset({"--check", "--diff"})),
    "autopep8": (_PY, frozenset({"-i", "--in-place"}), _NONE),
    "yapf": (_PY, frozenset({"-i", "--in-place"}), _NONE),
    "autoflake": (_PY, frozenset({"-i", "--in-place"}), _NONE),
    "pyupgrade": (_PY, _NONE, _NONE),
    "prettier": (_WEB, frozenset({"--write", "-w"}), _NONE),
    "eslint": (_WEB, frozenset({"--fix"}), _NONE),
    "stylelint": (_WEB, frozenset({"--fix"}), _NONE),
    "biome": (_WEB, frozenset({"--write", "--fix", "--apply"}), _NONE),
    "gofmt": ((".go",), frozenset({"-w"}), _NONE),
    "goimports": ((".go",), frozenset({"-w"}), _NONE),
    "rustfmt": ((".rs",), _NONE, frozenset({"--check"})),
    "clang-format": (_C, frozenset({"-i"}), _NONE),
    "clang-tidy": (_C, frozenset({"--fix", "-fix", "--fix-errors"}), _NONE),
    "shfmt": ((".sh", ".bash"), frozenset({"-w"}), _NONE),
    "rubocop": ((".rb",), frozenset({"-a", "-A", "--autocorrect", "--auto-correct"}), _NONE),
    "sqlfluff": ((".sql",), frozenset({"fix", "format"}), _NONE),
}

READERS = names(
    "cat tac head tail less more most bat batcat wc cut paste join comm nl od hexdump hd strings base64 base32 basenc"
    " md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum b3sum xxhsum cksum sum cmp jq column fold fmt pr"
    " expand unexpand rev diffstat zcat xzcat bzcat zstdcat lz4cat zless bzless tsort diff sdiff diff3 colordiff delta"
    " icdiff difft grep egrep fgrep rgrep ggrep zgrep bzgrep xzgrep pcregrep pcre2grep rg ag ack ack-grep ugrep sift pt"
    " ls dir vdir exa eza lsd stat file du df test [ [[ basename dirname realpath readlink pwd cd pushd popd dirs echo"
    " printf true false : type which whereis man help info whatis apropos read mapfile readarray for select case"
    " while until if then else elif do done fi esac in function return exit break continue shift set shopt unset export"
    " declare typeset local readonly alias unalias let getopts wait jobs fg bg disown kill killall pkill pgrep pidof ps"
    " top htop free uptime uname hostname id whoami who w groups users date cal sleep seq yes printenv locale tty stty"
    " clear tput ulimit umask times trap history fc ssh ssh-add ssh-agent ssh-copy-id ssh-keyscan sftp mosh ping dig"
    " host nslookup netstat ss ip ifconfig lsof nproc lscpu lsblk lsusb lspci dmesg journalctl getent getfacl getfattr"
    " lsattr numfmt tr expr bc dc factor cksum sync shellcheck cloc tokei scc sloccount hadolint actionlint yamllint"
    " jsonlint markdownlint codespell source . hash eval xargs parallel rush watch env sudo doas nice ionice nohup"
    " setsid timeout stdbuf chroot exec command builtin busybox toybox setpriv unshare nsenter systemd-run npx bunx uvx"
    " pkexec gosu su su-exec runuser chronic unbuffer fakeroot torsocks proxychains taskset chrt setarch prlimit entr"
    " git-lfs gh glab hub op aws-vault xdg-open open tmux screen nm objdump readelf size ldd c++filt addr2line"
    " find gfind fd fdfind md5 shasum identify exiftool ffprobe mediainfo pdfinfo pdftotext"
    " hexyl fzf gron dasel tldr neofetch nvidia-smi"
)
"""Programs and builtins that write to none of their operands, or that only start other programs."""

_TOOLS = names(
    "npm yarn pnpm bun make gmake just task cargo go brew apt apt-get dpkg dnf yum pacman snap flatpak systemctl"
    " service cmake ninja mvn gradle gradlew dotnet pip pip3 uv uvx pipx poetry conda mamba rake helm kustomize"
    " terraform tofu ansible ansible-playbook ansible-lint vagrant packer aws gcloud az doctl fly heroku vercel netlify"
    " pytest py.test tox nox flake8 pylint mypy pyright basedpyright bandit coverage pre-commit sphinx-build mkdocs tsc"
    " jest vitest mocha ava webpack vite rollup esbuild parcel next nuxt astro golangci-lint staticcheck rustc ctest"
    " meson bazel buck gcc g++ cc c++ clang clang++ ld lld as javac java jar kotlinc kotlin bundle rspec composer"
    " phpunit phpstan psalm swift swiftc virtualenv pipenv hatch pdm rye django-admin flask uvicorn gunicorn hypercorn"
    " celery alembic psql mysql mongosh redis-cli pg_dump mysqldump initdb createdb dropdb pg_ctl msgfmt protoc buf"
    " valgrind gdb lldb perf ltrace hyperfine ab wrk k6 playwright cypress puppeteer storybook turbo nx lerna rails"
    " mix elixir iex cabal stack ghc sbt lein clj nim zig crystal dart flutter xcodebuild pod fastlane doxygen"
    " xmllint xsltproc pandoc pdflatex xelatex lualatex latexmk bibtex dot plantuml nbconvert jupyter ipython"
    " gpg gpg2 age ccache sccache bear scan-build cppcheck cpplint vulture radon lizard semgrep trivy snyk"
)
"""Programs that work on a project or a service: an option names their output."""

_ALL, _FIRST, _SECOND, _NO_OPERAND = slice(None), slice(1), slice(1, 2), slice(0)
_PLAIN: dict[str, tuple[str, str, slice]] = {
    # letters and long names of the options that name an output; the operands that are written
    **dict.fromkeys(("sort", "shuf", "tree", "iconv", "http"), ("o", "output", _NO_OPERAND)),
    "aria2c": ("odl", "out dir log", _NO_OPERAND),
    "script": ("IBOT", "log-in log-out log-io log-timing", _ALL),
    "mktemp": ("p", "tmpdir", _ALL),
    **dict.fromkeys(
        ("tee", "sponge", "truncate", "touch", "mkdir", "mkfifo", "rmdir", "unlink", "link"), ("", "", _ALL)
    ),
    **dict.fromkeys(("fallocate", "setfattr", "dos2unix", "unix2dos", "mac2unix"), ("", "", _ALL)),
    **dict.fromkeys(("uniq", "xxd"), ("", "", _SECOND)),
    **dict.fromkeys(("mknod", "sqlite3"), ("", "", _FIRST)),
}

_HANDLERS: dict[str, Callable[[Argv], Changes]] = {
    **dict.fromkeys(("rm", "grm", "shred", "srm", "wipe", "trash", "trash-put", "rmtrash", "rimraf", "del"), _rm),
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr", "setfacl"), _chmod),
    **dict.fromkeys(("cp", "gcp"), _cp),
    **dict.fromkeys(("mv", "gmv"), _mv),
    **dict.fromkeys(("ln", "gln"), _ln),
    "install": _install,
    "rsync": _rsync,
    "scp": _scp,
    **dict.fromkeys(("sed", "gsed"), _sed),
    "perl": _perl,
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim", "view", "nano", "emacs"), _editor),
    "yq": _yq,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(_FORMATTERS, _formatter),
    **ARCHIVERS,
    **dict.fromkeys(("docker", "podman", "nerdctl", "buildah", "kubectl"), _container),
    **dict.fromkeys(("time", "strace", "ltrace"), _wrapper),
    "flock": _flock,
}
