"""Finds the files that a command line of git's configuration, or a hook script, would run.

Only words that stand in the text are found. What variables, other programs and files of settings contribute is unknown:
`npx lint-staged` or `make check` name no file.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

_INTERPRETER: Final = re.compile(r"(?:ba|da|k|z)?sh|python[\d.]*|pypy[\d.]*|node|perl|ruby|php")
_SHELL: Final = re.compile(r"sh\Z")
_WRAPPERS: Final = re.compile(
    r"env|exec|command|nice|nohup|time|timeout|xargs|sudo|source|\.|eval|builtin|if|then|else|elif|do|while|until|!|\{|not"
)
"""Words after which the next word may be a program."""
_SOURCES: Final = frozenset((".", "source"))
_CODE: Final = re.compile(r".+\.(?:pyw?|sh|bash|zsh|ksh|[cm]?[jt]s|rb|pl|php|lua)")
_TOP: Final = re.compile(
    r"(?:\$\(\s*(?:git\s+rev-parse\s+--show-toplevel|pwd)\s*\)|`git\s+rev-parse\s+--show-toplevel`"
    r"|\$(?:PWD|GIT_WORK_TREE)\b|\$\{(?:PWD|GIT_WORK_TREE)(?::?-[^{}]*)?\})"
)
_PREFIX: Final = re.compile(
    r"(?:\$\(\s*git\s+rev-parse\s+--show-(?:cdup|prefix)\s*\)|`git\s+rev-parse\s+--show-(?:cdup|prefix)`"
    r"|\$GIT_PREFIX\b|\$\{GIT_PREFIX(?::?-[^{}]*)?\})(?P<end>(?=[\"']?(?:/|[\s;&|)]|\Z)))?"
)
"""Empty, or a folder with a slash behind it. `end` tells that no name follows directly."""
_OWN_FOLDER: Final = re.compile(r"""\$\(\s*dirname\s+(?:--\s+)?"?\$\{?0\}?"?\s*\)|\$\{0%/\*\}""")
_VARIABLE: Final = re.compile(r"\$\{?\w+\}?/")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_LITERAL: Final = re.compile(r"(?<![\w$.-])([A-Za-z_]\w*)=[\"']?([\w./-]+)[\"']?(?=[\s;&|)]|\Z)")
"""A variable that gets a text without expansions."""
_REFERENCE: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]+)\)|`([^`]+)`")
_MOST_SUBSTITUTIONS: Final = 20
_OPERATOR: Final = re.compile(r"[();<>|&\n]+")
_REDIRECTION: Final = re.compile(r"[<>&]*[<>][<>&]*")
_MOST_WORDS: Final = 100_000


class NamedFiles(NamedTuple):
    """Paths in a command line, relative to the folder in which it runs; not all exist."""

    programs: tuple[str, ...]
    """Files that the line runs, also if something creates them later: programs, scripts, modules of Python."""
    others: tuple[str, ...]
    """Further words that may name files."""


@lru_cache(maxsize=512)
def files_in(text: str, script_folder: str = "") -> NamedFiles:
    """The files that a line, or a script of the shell in `script_folder`, names."""
    folders, programs, others = [""], dict[str, None](), dict[str, None]()
    text = _expanded(text.removeprefix("!"), script_folder)
    for words in _commands(text):
        if words[0] in ("cd", "pushd") and len(words) > 1:
            folders += [_joined(folder, words[1]) for folder in folders[:4]]
            continue
        programs |= dict.fromkeys(_joined(folders[-1], word) for word in _run_by(words))
        parts = [part for word in words for part in _parts(word)]
        others |= dict.fromkeys(_joined(folder, part) for part in parts for folder in folders)
    for match in tuple(_SUBSTITUTION.finditer(text))[:_MOST_SUBSTITUTIONS]:
        named = files_in(match[1] or match[2], script_folder)
        programs |= dict.fromkeys(named.programs)
        others |= dict.fromkeys(named.others)
    return NamedFiles(tuple(programs), tuple(others))


def _expanded(text: str, script_folder: str) -> str:
    """A text with the working tree, the script's own folder and variables with literal values in it."""
    text = _OWN_FOLDER.sub(lambda _: script_folder or ".", _TOP.sub(".", text))
    text = _PREFIX.sub(lambda match: "." if match["end"] is not None else "", text)
    known = dict(_LITERAL.findall(text))
    if not known:
        return text
    return _REFERENCE.sub(lambda match: known.get(match[1] or match[2], match[0]), text)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and not name.startswith("/") else name


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command, roughly."""
    for is_operator, group in groupby(_words(text)[:_MOST_WORDS], lambda word: _OPERATOR.fullmatch(word) is not None):
        words = list(group)
        if not is_operator and words:
            yield words


def _words(text: str) -> list[str]:
    found: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line.lstrip().startswith("#"):
            continue
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split, lexer.commenters = True, ""
            words = list(lexer)
        except ValueError:  # a quotation over several lines
            words = re.split(r"""[\s"'`;|&()]+""", line)
        found += [_VARIABLE.sub("", word, count=1) if word.startswith("$") else word for word in words if word]
        found.append("\n")
    return [word for word in found if not _REDIRECTION.fullmatch(word)]


def _run_by(words: list[str]) -> Iterator[str]:
    """The program of a command if it is a path, the script of an interpreter, and modules that Python would load."""
    is_script, code = False, "-c"
    for number, word in enumerate(words):
        if _ASSIGNMENT.match(word) or _WRAPPERS.fullmatch(word):
            is_script = word in _SOURCES
            continue
        if _INTERPRETER.fullmatch(word.rpartition("/")[2]):
            yield from (word,) * ("/" in word)
            is_script, code = True, "-c" if _SHELL.search(word) else "-e"
            continue
        if is_script and word.startswith("-"):
            if word == "-m" and number + 1 < len(words):
                yield from _module_files(words[number + 1])
                return
            if word in ("-c", code):  # its words count as those of the line
                yield from (each for more in words[number + 1 :] for each in files_in(more).programs)
                return
            continue
        if word.startswith("-"):
            continue
        if "/" in word or is_script:
            yield word
        return


def _module_files(module: str) -> Iterator[str]:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return
    for number in range(1, len(parts) + 1):
        path = "/".join(parts[:number])
        yield from (f"{path}.py", f"{path}/__init__.py")
    yield f"{'/'.join(parts)}/__main__.py"


def _parts(word: str) -> Iterable[str]:
    """A word, and what follows `=` in it, if they may name a file of code or lie in a folder."""
    for each in dict.fromkeys((word, word.rpartition("=")[2])):
        if each and not each.startswith("-") and ("/" in each or _CODE.fullmatch(each)):
            yield each
