"""Which files and matches come first when a search found more than it shows."""

import re
from collections.abc import Collection, Mapping

# The expressions are compiled when they are first used, because most runs need none: it takes 2 ms.
_LONGEST_DEFINITION = 400
_FEWEST_OF_A_FILE = 5
"""Matches of a file that are shown at least, before the next file has any."""

_MODIFIERS = (
    r"(?:export|default|pub(?:\([\w: ]+\))?|public|private|protected|internal|static|final|abstract|async|sealed"
    r"|override|virtual|inline|extern|unsafe|declare|partial|open|data|suspend)"
)
_KEYWORDS = (
    r"(?:def|class|function\*?|func|fn|struct|enum|trait|interface|type|typedef|union|impl|mod|module|namespace|object"
    r"|record|protocol|macro_rules!|#[ \t]*define|let|var|const|val|sub|package|local)"
)
_BEFORE_NAME = rf"[ \t]*(?:{_MODIFIERS}[ \t]+)*{_KEYWORDS}[ \t]+(?:\([^()]*\)[ \t]*|mut[ \t]+)?"
_METHOD = rf"[ \t]*(?:{_MODIFIERS}[ \t]+)+(?:[\w<>\[\],.?]+[ \t]+)?(?=[\w$]+\()"
_CONSTANT = r"(?P<constant>[\w$]+)(?:[ \t]*:[^=]{1,100})?[ \t]*=(?![=>~])"
_DEFINITION = rf"(?:{_BEFORE_NAME}|{_METHOD})(?P<name>[\w$:.]+)|{_CONSTANT}".encode()

_PLAIN_NAME = r"(?:\\b|\\<|\^)?(?:(?:def|class|func|function|fn|struct|type) )?(\w+)(?:\\b|\\>|\(|\\\()?"

_TESTS = (
    r"(?:.*/)?(?:tests?|testing|specs?|__tests__|examples?|benchmarks?|fixtures|samples)/|(?:.*/)?(?:test_[^/]*"
    r"|conftest\.py|[^/]*(?:_test|_spec|\.test|\.spec|Tests?)\.\w+)\Z"
)
_TEXTS = r"(?i)(?:.*/)?docs?/|.*\.(?:md|rst|txt|adoc|html?|svg|csv|tsv|json|jsonl|log|po)\Z"
_NOT_WRITTEN_HERE = (
    r"(?:.*/)?(?:vendor|vendored|_vendor|third_party|thirdparty|node_modules|site-packages|dist|build|target|generated"
    r"|migrations|\.[^/]+)/|.*(?:\.min\.\w+|\.map|\.lock|-lock\.\w+|_pb2\w*\.pyi?|\.pb\.go|\.g\.dart|\.generated\.\w+)\Z"
)


def kind_rank(path: str) -> int:
    """How likely a file, by its path below the searched folder, holds what a search is for: 0 for source, 1 for tests
    and examples, 2 for texts and data, 3 for files that are generated, vendored or hidden.
    """
    if re.match(_NOT_WRITTEN_HERE, path):
        return 3
    if re.match(_TESTS, path):
        return 1
    return 2 if re.match(_TEXTS, path) else 0


def is_definition(line: bytes, start: int, end: int) -> bool:
    """Whether a line looks as if it defines the name that the match from byte `start` to `end` touches."""
    found = re.match(_DEFINITION, line[:_LONGEST_DEFINITION])
    if found is None:
        return False
    first, last = found.span(found.lastgroup or 0)
    return start < last and first < end


def definition_pattern(pattern: str) -> str | None:
    """A regular expression for lines that define what a pattern names; None if it is more than a name."""
    name = re.fullmatch(_PLAIN_NAME, pattern)
    return rf"^{_BEFORE_NAME}\w*{name[1]}" if name else None


def ranked(counts: Mapping[str, int], defining: Collection[str], root: str) -> list[str]:
    """The paths, most relevant first: by kind, then files that define what was searched, then by number of matches.

    Times of files play no part: after a checkout they say nothing, and the same search of the same files would differ.
    """
    skip = len(root.rstrip("/")) + 1

    def key(path: str) -> tuple[int, bool, int, str]:
        return kind_rank(path[skip:]), path not in defining, -counts[path], path.replace("/", "\0")

    return sorted(counts, key=key)


def shares(order: list[str], counts: Mapping[str, int], limit: int) -> dict[str, int]:
    """How many matches of each file to show, `limit` in all, so that one file does not take the place of all others.

    `order` are the paths, most relevant first; files that get none are missing.
    """
    given: dict[str, int] = {}
    most = max(limit // max(len(order), 1), _FEWEST_OF_A_FILE)
    for path in order:
        if limit <= 0:
            return given
        given[path] = min(counts[path], most, limit)
        limit -= given[path]
    for path in order:
        more = min(counts[path] - given[path], limit)
        given[path] += more
        limit -= more
    return given
