"""Lists the files whose contents determine what a command does: programs, scripts and configuration of runners.

An approval for the session covers these contents. If the list is incomplete, the approval covers one call only.
"""

import re
from collections.abc import Iterable, Sequence
from posixpath import join, normpath
from typing import Final, NamedTuple

from bradawl.safety.environment_variables import is_execution_relevant
from bradawl.safety.shell.argv import SHELLS, Argv, names

_MOST_FILES: Final = 200
_MOST_FOLDERS: Final = 8
_MOST_PARENTS: Final = 6

_BUILTINS: Final = names(
    "cd pushd popd echo printf true false : test [ [[ export unset set shopt pwd type hash local declare typeset"
    " readonly let read return exit break continue shift wait jobs trap umask ulimit times getopts alias unalias"
    " command builtin exec eval for select case if while until function coproc in do done then else fi esac { } !"
    " enable mapfile readarray kill bg fg disown dirs history"
)
_ONLY_DATA: Final = names(
    "cat head tail wc grep egrep fgrep rg ag ls cut tr nl stat du df diff cmp sort uniq comm paste column fold"
    " sha1sum sha256sum sha512sum md5sum b2sum file readlink realpath basename dirname mkdir rmdir touch cp mv rm"
    " ln chmod chown chgrp tee truncate which git tree date id whoami uname seq sleep ruff black isort flake8"
    " pylint mypy pyright basedpyright prettier rustfmt gofmt clang-format shellcheck hadolint yamllint"
    " markdownlint gzip gunzip bzip2 xz zcat jq curl wget ping dig cd pushd popd echo printf true false test [ [["
    " export unset"
)
"""Programs whose operands are data: they run no file among them."""
_INTERPRETER: Final = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|rscript|julia|tclsh|wish|guile|racket|osascript|groovy|scala|elixir"
    r"|escript|ocaml|swipl|octave|deno|bun|tsx|ts-node|pwsh|raku|dart|janet|bb|fennel|runghc|runhaskell|crystal)[\d.]*\Z",
    re.IGNORECASE,
)
_INLINE: Final = re.compile(r"-[a-zA-Z]*[ceEr]|--(?:eval|execute|version|help|print)(?:=.*)?|-[vVh]|-p|-pe|-ne")
_ASSIGNED: Final = re.compile(r"(?<![\w$./-])([A-Za-z_]\w*)\+?=")
_NODE: Final = "package.json"
_PYTHON: Final = "pyproject.toml setup.py setup.cfg"
_RUNNERS: Final = {
    **dict.fromkeys(("make", "gmake", "bmake"), "GNUmakefile makefile Makefile BSDmakefile"),
    **dict.fromkeys(("npm", "pnpm", "yarn", "npx", "pnpx", "bunx", "corepack", "lerna", "nx", "turbo"), _NODE),
    **dict.fromkeys(("node", "tsx", "ts-node", "jest", "vitest", "eslint", "tsc", "webpack", "vite", "rollup"), _NODE),
    "bun": f"{_NODE} bunfig.toml",
    "deno": f"{_NODE} deno.json deno.jsonc",
    "just": "justfile Justfile .justfile",
    "task": "Taskfile.yml Taskfile.yaml taskfile.yml taskfile.yaml",
    "rake": "Rakefile rakefile Rakefile.rb rakefile.rb",
    **dict.fromkeys(("bundle", "bundler"), "Gemfile"),
    **dict.fromkeys(("invoke", "inv"), "tasks.py"),
    "fab": "fabfile.py",
    "nox": "noxfile.py",
    "tox": f"tox.ini {_PYTHON}",
    "pytest": f"conftest.py pytest.ini tox.ini {_PYTHON}",
    **dict.fromkeys(("pip", "pip3", "uv", "poetry", "pdm", "hatch", "pipx", "rye"), _PYTHON),
    **dict.fromkeys(("gradle", "gradlew"), "build.gradle build.gradle.kts settings.gradle settings.gradle.kts"),
    **dict.fromkeys(("mvn", "mvnw"), "pom.xml"),
    "ant": "build.xml",
    "sbt": "build.sbt",
    "cargo": "Cargo.toml build.rs .cargo/config.toml .cargo/config",
    **dict.fromkeys(("cmake", "ctest"), "CMakeLists.txt CTestTestfile.cmake"),
    "ninja": "build.ninja",
    "meson": "meson.build",
    "scons": "SConstruct",
    **dict.fromkeys(("docker", "podman", "docker-compose"), "Dockerfile compose.yaml compose.yml docker-compose.yml"),
    "composer": "composer.json",
    "mix": "mix.exs",
    "dotnet": "Directory.Build.props Directory.Build.targets",
    "vagrant": "Vagrantfile",
    "pre-commit": ".pre-commit-config.yaml",
    "direnv": ".envrc",
}
"""Files that a program looks for in its folder or those above, and that determine what it runs."""


_ONLY_HERE: Final = names("make gmake bmake cmake ctest ninja meson scons ant docker podman docker-compose dotnet")
"""Runners that look for their file in the working directory only."""


class RunFiles(NamedTuple):
    """Files that a command runs: programs by name or path, scripts and runner files by path."""

    names: tuple[str, ...]
    """A name without a slash is looked up on PATH. Not all of the files exist."""
    is_whole: bool
    """Whether the list is complete."""


_INCOMPLETE: Final = RunFiles((), is_whole=False)


def run_files(argvs: Iterable[Argv], cwd: str, home: str = "") -> RunFiles:
    """Files whose contents determine what these commands do. `$` in a word marks an unknown part."""
    found: dict[str, None] = {}
    folders: tuple[str, ...] = (cwd,)
    is_whole = True
    for words in argvs:
        if not words:
            continue
        if words[0] in ("cd", "pushd", "popd"):
            entered = _entered(words, folders, home)
            is_whole = is_whole and bool(entered)
            folders = tuple(dict.fromkeys((*folders, *entered)))
            continue
        files = _of_command(words, folders)
        is_whole = is_whole and files.is_whole
        found |= dict.fromkeys(files.names)
        if len(found) > _MOST_FILES or len(folders) > _MOST_FOLDERS:
            return _INCOMPLETE
    return RunFiles(tuple(found), is_whole)


def sets_what_runs(text: str) -> bool:
    """Whether a line sets a variable that determines which files run, for the shell or one command."""
    return any(is_execution_relevant(name) for name in _ASSIGNED.findall(text))


def _entered(words: Argv, folders: Sequence[str], home: str) -> tuple[str, ...]:
    targets = [word for word in words[1:] if not word.startswith("-")]
    if words[0] == "popd" or "-" in words[1:] or any(_may_expand(word) for word in targets) or len(targets) > 1:
        return ()
    target = targets[0] if targets else home
    return tuple(normpath(join(folder, target)) for folder in folders) if target else ()


def _of_command(words: Argv, folders: Sequence[str]) -> RunFiles:
    program, name = words[0], words[0].rpartition("/")[2]
    if _may_expand(program):
        return _INCOMPLETE
    started = _joined(folders, program) if "/" in program else () if program in _BUILTINS else (program,)
    if name in _ONLY_DATA and "/" not in program:
        return RunFiles(started, is_whole=True)
    operands = [part for word in words[1:] for part in _paths_in(word)]
    runs_text = name in SHELLS or _INTERPRETER.fullmatch(name) is not None
    is_whole = not any(_may_expand(word) for word in operands)
    if runs_text:
        is_whole = is_whole and _has_code_argument(words)
    scripts = _joined(folders, *(word for word in operands if not _may_expand(word)))
    return RunFiles((*started, *scripts, *_for_runner(name, words, folders, scripts)), is_whole)


def _paths_in(word: str) -> tuple[str, ...]:
    """Parts of a word that may be paths: the whole word, and the value of an option or assignment."""
    if not word.startswith("-"):
        name, equals, value = word.partition("=")
        return (word, value) if equals and value and name.isidentifier() else (word,)
    _, equals, value = word.partition("=")
    if equals:
        return (value,) if value else ()
    return (word[2:],) if len(word) > 2 and word[1] != "-" else ()


def _has_code_argument(words: Argv) -> bool:
    """Whether an interpreter gets a script, code or a module as an argument and not on its standard input."""
    rest = words[1:]
    if any(word in ("-", "-s", "/dev/stdin", "--rcfile", "--init-file") for word in rest):
        return False
    return any(not word.startswith("-") or _INLINE.fullmatch(word) for word in rest)


def _for_runner(name: str, words: Argv, folders: Sequence[str], scripts: Sequence[str]) -> tuple[str, ...]:
    """The files that a runner looks for itself, and the module that `-m` names."""
    base = re.sub(r"[\d.]+\Z", "", name)
    files = _RUNNERS.get(name, _RUNNERS.get(base, "")).split()
    places = dict.fromkeys((*folders, *scripts)) if files else {}
    if files and base not in _ONLY_HERE:
        places |= dict.fromkeys(parent for folder in folders for parent in _above(folder))
    found = [f"{place.rstrip('/')}/{file}" for place in places for file in files]
    if "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        path = module.replace(".", "/")
        found += _joined(folders, f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")
        found += _for_runner(module, (module,), folders, ()) if module != name else ()
    return tuple(found)


def _above(folder: str) -> tuple[str, ...]:
    above: list[str] = []
    while folder not in ("/", "") and len(above) < _MOST_PARENTS:
        folder = folder.rpartition("/")[0] or "/"
        above.append(folder)
    return tuple(above)


def _joined(folders: Sequence[str], *words: str) -> tuple[str, ...]:
    return tuple(normpath(join(folder, word)) for word in words for folder in folders if word and "\0" not in word)


def _may_expand(word: str) -> bool:
    """Whether bash may expand the word, or a part of it is unknown."""
    return any(mark in word for mark in "$*?[`")
