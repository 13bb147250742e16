"""Predicts the output of simple commands from their words and input, to find commands that are built from it."""

import re
from posixpath import basename, dirname

from bradawl.safety.shell.deny.wrappers import Argv, name_of, names

_MAX_TEXT_LENGTH = 20_000
_ESCAPE = re.compile(r"\\(?:0?([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_ESCAPE_LETTERS = {"n": "\n", "t": "\t", "\\": "\\", "a": "\a", "r": "\r", "e": "\x1b"}
_PASS_ON = frozenset({"cat", "tee", "head", "tail", "sort", "uniq", "tac", "sponge", "pv"})


def output_of(words: Argv, text: str | None) -> str | None:
    """What a command prints with `text` on its standard input; None if unknown."""
    match name_of(words):
        case "echo":
            return _echo(words[1:])
        case "printf":
            return _printf(words[1:])
        case "dirname" | "basename" as name if len(words) == 2:
            return (dirname(words[1]) if name == "dirname" else basename(words[1])) + "\n"
        case "mktemp":
            return "/mktemp/new\n"  # stands for a new file in a temporary folder
        case name:
            return None if text is None or len(text) > _MAX_TEXT_LENGTH else _filter_output(name, words, text)


def _filter_output(name: str, words: Argv, text: str) -> str | None:
    match name:
        case "base64":
            return _from_base64(text) if any(word in ("-d", "-D", "--decode", "-di") for word in words) else None
        case "rev":
            return "\n".join(line[::-1] for line in text.split("\n"))
        case "tr" if len(words) == 3 and words[1][:1] != "-":
            return _translated(words[1], words[2], text)
        case "sed" if len(words) == 2:
            return _substituted(words[1], text)
        case "xxd":
            return _from_hex(text) if "-r" in "".join(words[1:]) else None
        case _:
            is_plain = name == "tee" or all(word[:1] == "-" for word in words[1:])
            return text if name in _PASS_ON and is_plain else None


def listed_paths(words: Argv) -> str | None:
    """Patterns, one a line, for the paths that `find` or `ls` prints; None for other commands."""
    name = name_of(words)
    starts = [word for word in words[1:] if word[:1] not in ("-", "(", "!")]
    if name == "find":
        below = "" if any(word in _NARROWING for word in words) else "/*"
        return "\n".join(f"{word}{below}" for word in starts if word[:1] in ("/", "~", "."))
    if name != "ls":
        return None
    if prints_paths(words):
        return "\n".join(starts)
    return "\n".join(f"{word.rstrip('/')}/*" for word in starts) or "*"


def prints_paths(words: Argv) -> bool:
    """Whether `find` or `ls` prints paths rather than bare names."""
    return name_of(words) == "find" or (
        name_of(words) == "ls" and any(re.match(r"-[a-zA-Z]*d", word) for word in words)
    )


_NARROWING = names(
    "-name -iname -path -ipath -wholename -regex -iregex -newer -mtime -mmin -atime -amin -ctime -cmin -size -empty"
    " -user -group -perm -links -inum -lname -samefile -newermt -executable -uid -gid -nouser"
)
"""Tests of `find` that most files don't pass."""


def _echo(words: Argv) -> str:
    interprets = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        interprets = interprets or "e" in words[0]
        words = words[1:]
    text = " ".join(words) + "\n"
    return _decoded(text) if interprets else text


def _printf(words: Argv) -> str:
    if words[:1] == ("--",):
        words = words[1:]
    if words[:1] == ("-v",) or not words:
        return ""
    shape = _decoded(words[0])
    if "%" not in shape:
        return shape
    rest = list(words[1:])
    text = re.sub(r"%[-+ #0]*[0-9]*(?:\.[0-9]+)?[sbdiq]", lambda match: rest.pop(0) if rest else "", shape)
    return text + " ".join(rest)


def _decoded(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr((int(match[1], 8) if match[1] else int(match[2], 16)) & 0xFF)
        return _ESCAPE_LETTERS.get(match[3], match[0])

    return _ESCAPE.sub(char, text)


def _translated(old: str, new: str, text: str) -> str | None:
    """The output of `tr`; None if unknown."""
    source, target = _each(_decoded(old)), _each(_decoded(new))
    if not source or not target or "[" in source:
        return None
    target += target[-1] * (len(source) - len(target))
    return text.translate({ord(a): b for a, b in zip(source, target, strict=False)})


def _each(shape: str) -> str:
    def span(match: re.Match[str]) -> str:
        return "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))

    return re.sub(r"([!-~])-([!-~])", span, shape)[:_MAX_TEXT_LENGTH]


def _substituted(script: str, text: str) -> str | None:
    """The output of a `sed` script that replaces one literal text by another; None for other scripts."""
    match = re.fullmatch(r"s([/|,#:])([\w -]{1,100})\1([^\\&]{0,100}?)\1(g?)", script)
    if match is None:
        return None
    return "\n".join(line.replace(match[2], match[3], -1 if match[4] else 1) for line in text.split("\n"))


def _from_base64(text: str) -> str | None:
    from base64 import b64decode

    try:
        return b64decode("".join(text.split())).decode("utf-8", "replace")
    except ValueError:
        return None


def _from_hex(text: str) -> str | None:
    try:
        return bytes.fromhex("".join(text.split())).decode("utf-8", "replace")
    except ValueError:
        return None
