"""Options of ripgrep, and which of them make it search files that it skips by default."""

import re

from bradawl.safety.shell.allow.commands.options import Call, options

RG = options(
    "nNiSsFwxvclHIopqPUau0. e: g: t: T: A: B: C: m: M: r: j: d: E: f<",
    "line-number no-line-number ignore-case smart-case case-sensitive fixed-strings word-regexp line-regexp"
    " invert-match count count-matches files-with-matches files-without-match with-filename no-filename"
    " only-matching pretty quiet pcre2 multiline multiline-dotall text null hidden no-hidden no-ignore"
    " no-ignore-vcs no-ignore-parent no-ignore-global no-ignore-dot unrestricted files type-list stats json"
    " vimgrep heading no-heading trim column no-column passthru no-messages no-config crlf one-file-system"
    " line-buffered block-buffered byte-offset sort= sortr= glob= iglob= type= type-not= after-context="
    " before-context= context= max-count= max-columns= max-depth= maxdepth= max-filesize= replace= threads="
    " encoding= color= colors= regexp= context-separator= engine= file< ignore-file<",
)
SHOWS_HIDDEN = frozenset({"hidden", ".", "u", "unrestricted", "ignore-file"})
_NAMES = frozenset({"g", "glob", "iglob"})
_TYPES = frozenset({"t", "type"})
_OF_TYPES_WITH_KEYS = frozenset({"all", "sh"})
_MOST_ALTERNATIVES = 100
_NO_TYPE = re.compile(r"\.env(?:\.(?:local|production|development|staging|test|prod|dev))*|[^.]+|\.[^.]+")
"""File names that belong to no other file type of ripgrep."""


def unignores(call: Call, path: str) -> bool:
    """Whether options select a hidden file by its name or type, so that ripgrep searches it."""
    from bradawl.safety.ignore_files import may_match

    names = [part.lower() for part in path.split("/") if part]
    for option, value in call.given:
        if option in _NAMES and not value.startswith("!"):
            if any(may_match(each, names) for each in _alternatives(value)):
                return True
        elif option in _TYPES and (value in _OF_TYPES_WITH_KEYS or not _NO_TYPE.fullmatch(names[-1])):
            return True
    return False


def _alternatives(glob: str) -> list[str]:
    """The globs that `{a,b}` expands to; beyond a limit, some keep their braces."""
    found, waiting = list[str](), [glob]
    while waiting:
        each = waiting.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", each)
        if match is None or len(found) + len(waiting) > _MOST_ALTERNATIVES:
            found.append(each)
        else:
            waiting += [each[: match.start()] + part + each[match.end() :] for part in match[1].split(",")]
    return found
