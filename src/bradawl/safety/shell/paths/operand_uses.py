"""How a command uses the paths among its words: whether it descends into folders, and which words name no path."""

import re
from itertools import pairwise

import msgspec

from bradawl.safety.shell.argv import SHELLS, Argv, name_of, names

UNKNOWN_WORD = "$"
"""A word whose text is not known."""


class Use(msgspec.Struct, frozen=True):
    """What one command does with its words."""

    words: Argv
    """Words that may name paths."""
    descends: bool = True
    """Reads or moves all that lies below a folder it is given."""
    files_only: bool = False
    """Does nothing with the content of a folder that a pattern stands for."""
    takes_names: bool = False
    """A plain word is the name of something else, such as a target or a branch."""
    is_code: bool = False
    """Its words hold code of another language."""
    here: bool = False
    """Uses the working directory without being given it."""
    any_word: bool = False
    """A word that is not known may be any folder."""
    shows_tracked: bool = False
    """Shows or copies what git has recorded."""
    adds: bool = False
    """Adds to git's index what git does not ignore."""
    finds: bool = False
    """Passes the names below its folders on to other programs."""

    def may_be_folder(self, place: int, word: str) -> bool:
        """Whether a word that names a folder without a slash stands for this folder."""
        if " " in word.strip() and not self.is_code:
            return False
        before = self.words[place - 1] if place else ""
        if self.takes_names:
            return before not in _TEXTS and before[:1] == "-" and len(before) > 1
        return self.descends or before != "-k"


def use_of(argv: Argv, *, from_input: bool) -> Use:
    """How these words are used. `from_input`: further words may come from another program's output."""
    name, words = name_of(argv), argv[1:]
    if name in _COPIERS:
        return _copier(name, words, from_input=from_input)
    if name in _ARCHIVERS:
        return _archiver(name, words, from_input=from_input)
    if name in _SEARCHERS or (name in _GREPS and _greps_deep(name, words)):
        return _searcher(words, from_input=from_input)
    return _git(words) if name == "git" else _other(name, words)


def _other(name: str, words: Argv) -> Use:
    if name in ("find", "fd", "fdfind"):
        return Use(words, descends=False, finds=True)
    if name in _TAKE_NAMES:
        return Use(words, descends=name in _CONTAINERS, takes_names=True)
    if _INTERPRETERS.fullmatch(name):
        return _interpreter(words)
    return Use(
        words,
        descends=name not in (_SPARE_FOLDERS | _READ_FILES | _GREPS | SHELLS),
        files_only=name in _READ_FILES | _GREPS,
    )


def starts_from_input(argv: Argv) -> bool:
    """Whether a command takes words for others from its input."""
    return name_of(argv) in ("xargs", "parallel", "rush")


def reads_names(argv: Argv) -> bool:
    """Whether a command may open files whose names it reads from its input."""
    return starts_from_input(argv) or name_of(argv) in _READ_NAMES


def lists_below(argv: Argv) -> bool:
    """Whether a command prints the names of all files below a folder; `find` is judged by what it looks for."""
    name = name_of(argv)
    if name == "git":
        return "ls-files" in argv and any(re.match(r"-[a-z]*o|--oth", word) for word in argv)
    if name == "ls":
        return any(re.match(r"-[a-zA-Z]*R|--rec", word) for word in argv[1:])
    is_du = name == "du" and any(re.match(r"-[a-z]*a|--all", word) for word in argv[1:])
    return is_du or name in ("tree", "locate", "plocate")


def filled(argv: Argv) -> Argv:
    """The words of a command that takes others from its input, unknown ones in place of its marks."""
    marks = {"{}"} | {after for word, after in pairwise(argv) if word in ("-I", "--replace", "-J")}
    marks |= {match[1] for word in argv if (match := re.match(r"(?:-I|-i|--replace=)(.+)", word))}
    found = list(argv)
    for mark in sorted(marks, key=len, reverse=True):
        found = [word.replace(mark, UNKNOWN_WORD) for word in found]
    return tuple(found)


def operands(words: Argv) -> list[str]:
    """Words that don't look like options."""
    ends = words.index("--") if "--" in words else len(words)
    return [word for place, word in enumerate(words) if place > ends or word[:1] != "-" or word == "-"]


# ------------------------------------------------------------------ copies, searches, archives


def _copier(name: str, words: Argv, *, from_input: bool) -> Use:
    """The target is written to, not read."""
    if from_input:
        words = (*words, UNKNOWN_WORD)
    plain = operands(words)
    has_target = any(re.match(r"-t|-[a-zA-Z]+t\Z|--t", word) for word in words) and name != "rsync"
    if len(plain) > 1 and not has_target and not from_input:
        place = len(words) - 1 - words[::-1].index(plain[-1])
        words = (*words[:place], *words[place + 1 :])
    elif has_target:
        words = _without_target(words)
    return Use(words, any_word=True)


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


def _searcher(words: Argv, *, from_input: bool) -> Use:
    """Without a folder it searches the working directory."""
    plain = operands(words)
    has_pattern = any(re.match(r"-[a-zA-Z]*[ef]|--(?:regexp|file)", word) for word in words)
    here = len(plain) < (1 if has_pattern else 2)
    if from_input:
        words = (*words, UNKNOWN_WORD)
    return Use(words, any_word=True, here=here)


def _archiver(name: str, words: Argv, *, from_input: bool) -> Use:
    is_tar = name.endswith("tar")
    first = words[0] if words else ""
    letters = "".join(word for word in words if re.fullmatch(r"-[a-zA-Z]+", word)) + (first if first[:1] != "-" else "")
    creates = re.search(r"[cruA]", letters) or any(re.match(r"--(?:cr|ap|up|cat|conc)", word) for word in words)
    unpacks = re.search(r"[xt]", letters) or any(re.match(r"--(?:ex|get|list)", word) for word in words)
    if is_tar and unpacks and not creates:
        return Use(words, descends=False)
    return Use((*words, UNKNOWN_WORD) if from_input else words, any_word=True)


# ------------------------------------------------------------------ git


def _git(words: Argv) -> Use:
    given: list[str] = []
    place = 0
    while place < len(words) and words[place][:1] == "-":
        step = 2 if words[place] in _GIT_VALUES else 1
        given += words[place : place + step]
        place += step
    sub, rest = (words[place], words[place + 1 :]) if place < len(words) else ("", ())
    options = "".join(word for word in rest if word[:1] == "-")
    # Options before the subcommand name folders; a leading slash-less word there is always a path.
    if sub in ("add", "stage"):
        return Use((*given, *rest), descends=False, adds=True)
    if sub == "stash" and re.search(r"-[a-z]*[au]|--(?:all|inc)", options) and rest[:1] != ("show",):
        return Use((*given, *rest), here=True)
    if sub == "commit":
        return Use((*given, *rest), descends=False, takes_names=True)
    if re.search(r"--(?:no-in|unt|no-exc)", options) and sub in ("grep", "diff"):
        here = sub == "grep" and len(operands(rest)) < 2
        return Use((*given, *rest), here=here, shows_tracked=True)
    if sub in _GIT_SHOWS or (sub == "stash" and rest[:1] in (("show",), ("list",))):
        return Use((*given, *rest), descends=False, takes_names=True, shows_tracked=_shows(sub, rest))
    if sub in _GIT_SAFE or not sub:
        return Use((*given, *rest), descends=False, takes_names=True)
    return Use((*given, *rest))


def _shows(sub: str, rest: Argv) -> bool:
    if sub == "log":
        return any(re.match(r"-[a-z]*[puUWLSG]|--(?:patch|unified|function)", word) for word in rest)
    return not any(re.match(r"--(?:stat|shortstat|numstat|name-|quiet|summary|check)", word) for word in rest)


# ------------------------------------------------------------------ programs of other languages


def _interpreter(words: Argv) -> Use:
    if words[:1] == ("-m",) or "-m" in words[:3]:
        module = words[words.index("-m") + 1 : words.index("-m") + 2]
        if module and module[0] in ("zipfile", "tarfile", "shutil", "zipapp"):
            return Use(words)
        if module and module[0] in ("http.server", "SimpleHTTPServer"):
            return Use(words, here=True)
        return Use(words, descends=False)
    return Use(words, descends=False, is_code=True)


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
    # open no file
    " for select in stat rm unlink touch chmod chown chgrp test [ [[ basename dirname realpath readlink file tee"
    " truncate mktemp sync getfacl setfacl umask"
)
_SPARE_FOLDERS = names(
    " cd ls dir mkdir rmdir du df tree env sudo nice nohup time timeout setsid stdbuf exec builtin xargs eval watch"
    " case while until if do then else declare typeset readonly read mapfile readarray source . pushd popd dirs pwd"
    # work on a project
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
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_GIT_SHOWS = names(
    "show diff log blame annotate archive clone worktree format-patch bundle cat-file range-diff grep whatchanged"
    " checkout-index diff-index diff-tree diff-files fast-export request-pull submodule difftool"
)
_GIT_SAFE = names(
    "status branch checkout switch fetch pull push rev-parse remote tag config rm restore reset merge rebase init"
    " ls-files shortlog describe clean cherry-pick revert reflog bisect stash notes help version gc fsck rev-list"
    " ls-tree ls-remote merge-base name-rev for-each-ref show-ref symbolic-ref check-ignore count-objects prune repack"
)
_TEXTS = frozenset(
    {"-m", "-am", "-k", "-b", "-B", "-c", "-d", "-D", "-q", "--message", "--title", "--body", "--grep", "--author"}
)
