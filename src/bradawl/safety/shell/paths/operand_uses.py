"""How a command uses its operands: whether it descends into folders, and which operands name no path."""

import re
from itertools import pairwise

import msgspec

from bradawl.safety.shell.argv import SHELLS, UNKNOWN_WORD, Argv, name_of, names
from bradawl.safety.shell.program_options import git_words


class OperandUse(msgspec.Struct, frozen=True):
    """How one command uses its words."""

    words: Argv
    """Words that may name paths."""
    descends: bool = True
    """Reads or moves everything below a folder operand."""
    files_only: bool = False
    """Ignores folders that a pattern matches."""
    takes_names: bool = False
    """A plain word names something other than a path, such as a build target or a branch."""
    is_code: bool = False
    """The words contain code of another language."""
    uses_cwd: bool = False
    """Uses the working directory without being given it."""
    any_word: bool = False
    """A word with unknown text may be any folder."""
    shows_tracked: bool = False
    """Shows or copies the contents of tracked files."""
    adds_to_index: bool = False
    """Adds files that git does not ignore to the index."""
    lists_names: bool = False
    """Passes the names of files below its folders to other programs."""

    def may_be_folder(self, place: int, word: str) -> bool:
        """Whether a word without a slash that equals the name of a folder means that folder."""
        if " " in word.strip() and not self.is_code:
            return False
        before = self.words[place - 1] if place else ""
        if self.takes_names:
            return before not in _OPTIONS_WITH_TEXT and before[:1] == "-" and len(before) > 1
        return self.descends or before != "-k"


def operand_use(argv: Argv, *, from_input: bool) -> OperandUse:
    """How a command uses its words. `from_input`: further words may come from the output of another program."""
    name, words = name_of(argv), argv[1:]
    if name in _COPIERS:
        return _copier(name, words, from_input=from_input)
    if name in _ARCHIVERS:
        return _archiver(name, words, from_input=from_input)
    if name in _SEARCHERS or (name in _GREPS and _greps_deep(name, words)):
        return _searcher(words, from_input=from_input)
    return _git(words) if name == "git" else _other(name, words)


def _other(name: str, words: Argv) -> OperandUse:
    if name in ("find", "fd", "fdfind"):
        return OperandUse(words, descends=False, lists_names=True)
    if name in _TAKE_NAMES:
        return OperandUse(words, descends=name in _CONTAINERS, takes_names=True)
    if _INTERPRETERS.fullmatch(name):
        return _interpreter(words)
    return OperandUse(
        words,
        descends=name not in (_SKIP_FOLDERS | _READ_FILES | _GREPS | SHELLS),
        files_only=name in _READ_FILES | _GREPS,
    )


def starts_from_input(argv: Argv) -> bool:
    """Whether the command passes words from its input to another command."""
    return name_of(argv) in ("xargs", "parallel", "rush")


def reads_names(argv: Argv) -> bool:
    """Whether the command may open files whose names it reads from its input."""
    return starts_from_input(argv) or name_of(argv) in _READ_NAMES


def passes_names_on(text: str, argvs: tuple[Argv, ...]) -> bool:
    """Whether a command of the line may get file names from the output of another."""
    return "$(" in text or "`" in text or any(map(reads_names, argvs))


def lists_files_below(argv: Argv) -> bool:
    """Whether the command prints the names of all files below a folder. `find` is handled separately."""
    name = name_of(argv)
    if name == "git":
        return "ls-files" in argv and any(re.match(r"-[a-z]*o|--oth", word) for word in argv)
    if name == "ls":
        return any(re.match(r"-[a-zA-Z]*R|--rec", word) for word in argv[1:])
    is_du = name == "du" and any(re.match(r"-[a-z]*a|--all", word) for word in argv[1:])
    return is_du or name in ("tree", "locate", "plocate")


def with_unknown_words(argv: Argv) -> Argv:
    """The words of a command such as `xargs`, its placeholders replaced by an unknown word."""
    marks = {"{}"} | {after for word, after in pairwise(argv) if word in ("-I", "--replace", "-J")}
    marks |= {match[1] for word in argv if (match := re.match(r"(?:-I|-i|--replace=)(.+)", word))}
    found = list(argv)
    for mark in sorted(marks, key=len, reverse=True):
        found = [word.replace(mark, UNKNOWN_WORD) for word in found]
    return tuple(found)


def operands(words: Argv) -> list[str]:
    """The words that are no options."""
    ends = words.index("--") if "--" in words else len(words)
    return [word for place, word in enumerate(words) if place > ends or word[:1] != "-" or word == "-"]


# ------------------------------------------------------------------ copies, searches, archives


def _copier(name: str, words: Argv, *, from_input: bool) -> OperandUse:
    """The last operand is the target, which is written and not read."""
    if from_input:
        words = (*words, UNKNOWN_WORD)
    plain = operands(words)
    has_target = any(re.match(r"-t|-[a-zA-Z]+t\Z|--t", word) for word in words) and name != "rsync"
    if len(plain) > 1 and not has_target and not from_input:
        place = len(words) - 1 - words[::-1].index(plain[-1])
        words = (*words[:place], *words[place + 1 :])
    elif has_target:
        words = _without_target(words)
    return OperandUse(words, any_word=True)


def _without_target(words: Argv) -> Argv:
    kept: list[str] = []
    is_target = False
    for word in words:
        if not is_target and not word.startswith("--t"):
            kept.append(word)
        is_target = bool(re.fullmatch(r"-[a-zA-Z]*t|--t[a-z-]*", word))
    return tuple(kept)


def _greps_deep(name: str, words: Argv) -> bool:
    if name == "rgrep":
        return True
    return any(re.match(r"-[a-zA-Z0-9]*[rRd]|--(?:rec|der|di)", word) for word in words)


def _searcher(words: Argv, *, from_input: bool) -> OperandUse:
    """Without a folder operand it searches the working directory."""
    plain = operands(words)
    has_pattern = any(re.match(r"-[a-zA-Z]*[ef]|--(?:regexp|file)", word) for word in words)
    uses_cwd = len(plain) < (1 if has_pattern else 2)
    if from_input:
        words = (*words, UNKNOWN_WORD)
    return OperandUse(words, any_word=True, uses_cwd=uses_cwd)


def _archiver(name: str, words: Argv, *, from_input: bool) -> OperandUse:
    is_tar = name.endswith("tar")
    first = words[0] if words else ""
    letters = "".join(word for word in words if re.fullmatch(r"-[a-zA-Z]+", word)) + (first if first[:1] != "-" else "")
    creates = re.search(r"[cruA]", letters) or any(re.match(r"--(?:cr|ap|up|cat|conc)", word) for word in words)
    unpacks = re.search(r"[xt]", letters) or any(re.match(r"--(?:ex|get|list)", word) for word in words)
    if is_tar and unpacks and not creates:
        return OperandUse(words, descends=False)
    return OperandUse((*words, UNKNOWN_WORD) if from_input else words, any_word=True)


# ------------------------------------------------------------------ git


def _git(words: Argv) -> OperandUse:
    called = git_words(("git", *words)).rest
    given = words[: len(words) - len(called)]
    sub, rest = "".join(called[:1]), called[1:]
    options = "".join(word for word in rest if word[:1] == "-")
    # Options before the subcommand name folders: a word without a slash is a path there.
    if sub in ("add", "stage"):
        return OperandUse((*given, *rest), descends=False, adds_to_index=True)
    if sub == "stash" and re.search(r"-[a-z]*[au]|--(?:all|inc)", options) and rest[:1] != ("show",):
        return OperandUse((*given, *rest), uses_cwd=True)
    if sub == "commit":
        return OperandUse((*given, *rest), descends=False, takes_names=True)
    if re.search(r"--(?:no-in|unt|no-exc)", options) and sub in ("grep", "diff"):
        uses_cwd = sub == "grep" and len(operands(rest)) < 2
        return OperandUse((*given, *rest), uses_cwd=uses_cwd, shows_tracked=True)
    if sub in _GIT_SHOWS or (sub == "stash" and rest[:1] in (("show",), ("list",))):
        return OperandUse((*given, *rest), descends=False, takes_names=True, shows_tracked=_shows_contents(sub, rest))
    if sub in _GIT_SAFE or not sub:
        return OperandUse((*given, *rest), descends=False, takes_names=True)
    return OperandUse((*given, *rest))


def _shows_contents(sub: str, rest: Argv) -> bool:
    if sub == "log":
        return any(re.match(r"-[a-z]*[puUWLSG]|--(?:patch|unified|function)", word) for word in rest)
    return not any(re.match(r"--(?:stat|shortstat|numstat|name-|quiet|summary|check)", word) for word in rest)


# ------------------------------------------------------------------ programs of other languages


def _interpreter(words: Argv) -> OperandUse:
    if words[:1] == ("-m",) or "-m" in words[:3]:
        module = words[words.index("-m") + 1 : words.index("-m") + 2]
        if module and module[0] in ("zipfile", "tarfile", "shutil", "zipapp"):
            return OperandUse(words)
        if module and module[0] in ("http.server", "SimpleHTTPServer"):
            return OperandUse(words, uses_cwd=True)
        return OperandUse(words, descends=False)
    return OperandUse(words, descends=False, is_code=True)


_COPIERS = names("cp gcp mv gmv ln gln install rsync scp link")
_GREPS = names("grep egrep fgrep zgrep rgrep ggrep bzgrep xzgrep pcregrep pcre2grep")
_SEARCHERS = names("rg ag ack ack-grep ugrep sift pt")
_ARCHIVERS = names("tar gtar bsdtar zip 7z 7za 7zr cpio pax")
_TAKE_NAMES = names(
    "echo printf npm yarn pnpm bun make gmake just task docker podman nerdctl buildah kubectl gh cargo go brew apt"
    " apt-get systemctl kill pkill killall which type command hash man alias true false sleep date seq uname id"
    " whoami tr expr tmux export set unset local return exit trap wait jobs cmake ninja mvn gradle gradlew dotnet pip"
    " pip3 uv poetry conda rake"
)
_CONTAINERS = names("docker podman nerdctl buildah kubectl")
_READ_FILES = names(
    "cat tac head tail less more wc sort uniq cut paste join comm nl od xxd hexdump strings base64 base32 md5sum"
    " sha1sum sha256sum sha512sum cksum sum cmp sed gsed awk gawk mawk jq yq column fold fmt pr expand unexpand rev"
    " split csplit dd diffstat zcat xzcat bzcat unzip iconv tsort shuf bat"
    # programs that open none of their operands
    " for select in stat rm unlink touch chmod chown chgrp test [ [[ basename dirname realpath readlink file tee"
    " truncate mktemp sync getfacl setfacl umask"
)
_SKIP_FOLDERS = names(
    " cd ls dir mkdir rmdir du df tree env sudo nice nohup time timeout setsid stdbuf exec builtin xargs eval watch"
    " case while until if do then else declare typeset readonly read mapfile readarray source . pushd popd dirs pwd"
    # programs that work on a project
    " pytest py.test tox nox ruff black isort flake8 pylint mypy pyright basedpyright coverage pre-commit sphinx-build"
    " mkdocs npx tsc eslint prettier jest vitest mocha webpack vite rollup esbuild biome node deno gofmt golangci-lint"
    " rustc rustfmt ctest meson bazel gcc g++ cc c++ clang clang++ clang-format clang-tidy ld ar javac java kotlinc"
    " bundle rspec rubocop php composer phpunit phpstan swift terraform shellcheck virtualenv pipenv hatch pdm"
    " django-admin alembic flask uvicorn gunicorn bandit"
)
_READ_NAMES = names("read mapfile readarray cpio pax tar gtar bsdtar rsync sh bash dash zsh")
_INTERPRETERS = re.compile(
    r"(?:python|pypy)[0-9.]*|perl[0-9.]*|ruby[0-9.]*|node(?:js)?|deno|php[0-9.]*|lua[0-9.]*|tclsh|Rscript"
)
_GIT_SHOWS = names(
    "show diff log blame annotate archive clone worktree format-patch bundle cat-file range-diff grep whatchanged"
    " checkout-index diff-index diff-tree diff-files fast-export request-pull submodule difftool"
)
_GIT_SAFE = names(
    "status branch checkout switch fetch pull push rev-parse remote tag config rm restore reset merge rebase init"
    " ls-files shortlog describe clean cherry-pick revert reflog bisect stash notes help version gc fsck rev-list"
    " ls-tree ls-remote merge-base name-rev for-each-ref show-ref symbolic-ref check-ignore count-objects prune repack"
)
_OPTIONS_WITH_TEXT = frozenset(
    {"-m", "-am", "-k", "-b", "-B", "-c", "-d", "-D", "-q", "--message", "--title", "--body", "--grep", "--author"}
)
