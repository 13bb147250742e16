"""Finds the symbols of files in any known language. All but Python need a grammar, which is an optional package."""

import base64
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command, FileContent
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.outlines.symbols import MOST_BYTES, symbols_in

_PROGRAM = str(Path(__file__).with_name("syntax_tree.py"))
_TIMEOUT_S = 10.0
_LONGEST_EDIT = 100_000
"""Characters of one argument of a program; Linux takes 131,071."""
_MOST_OUTPUT_BYTES = 40_000_000


class Language(msgspec.Struct, frozen=True):
    """A language with a grammar of tree-sitter."""

    name: str
    """As `syntax_tree.py` knows it."""
    module: str
    function: str = "language"
    """The function of the module that returns the grammar."""


class _Answer(msgspec.Struct):
    sha256: str
    symbols: list[tuple[str, str, int, int, str]] = []
    before: int = 0
    after: int = 0


_JAVASCRIPT = Language("javascript", "tree_sitter_javascript")
_TYPESCRIPT = Language("typescript", "tree_sitter_typescript", "language_typescript")
_TSX = Language("typescript", "tree_sitter_typescript", "language_tsx")
_C, _CPP = Language("c", "tree_sitter_c"), Language("cpp", "tree_sitter_cpp")
_BASH, _RUBY = Language("bash", "tree_sitter_bash"), Language("ruby", "tree_sitter_ruby")
_PHP = Language("php", "tree_sitter_php", "language_php")
_LANGUAGES = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), _JAVASCRIPT),
    **dict.fromkeys(("ts", "mts", "cts"), _TYPESCRIPT),
    "tsx": _TSX,
    "go": Language("go", "tree_sitter_go"),
    "rs": Language("rust", "tree_sitter_rust"),
    "java": Language("java", "tree_sitter_java"),
    "c": _C,
    **dict.fromkeys(("h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl"), _CPP),
    **dict.fromkeys(("rb", "rake"), _RUBY),
    "cs": Language("c_sharp", "tree_sitter_c_sharp"),
    "php": _PHP,
    **dict.fromkeys(("sh", "bash"), _BASH),
}
"""By the suffix of file names. Headers may be C or C++: the grammar of C++ reads both."""


@cache
def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def language_of(path: str, is_installed: Callable[[str], bool] = _is_installed) -> Language | None:
    """The language of a file by its name; None for an unknown one, and if its grammar is not installed."""
    language = _LANGUAGES.get(path.rpartition("/")[2].rpartition(".")[2].lower())
    return language if language is not None and is_installed(language.module) else None


async def symbols_of(content: FileContent, context: CallContext) -> tuple[Symbol, ...] | None:
    """The symbols of a file as `symbols_in`, of all languages. None also if the grammar fails or takes too long."""
    if (found := symbols_in(content.data, content.path)) is not None:
        return found
    answer = await _answer(content, (), context)
    try:
        found = (
            [msgspec.convert(dict(zip(_FIELDS, one, strict=True)), Symbol) for one in answer.symbols] if answer else []
        )
    except msgspec.MsgspecError:
        return None
    return tuple(sorted(found, key=lambda one: (one.first, -one.last))) if answer else None


async def broken_line(content: FileContent, after: bytes, context: CallContext) -> int:
    """The line of the first syntax error of a file after an edit, if it has none before; 0 if it has, and if the file
    can't be checked.
    """
    from bradawl.tools.editing.diffs import common_length  # loaded with the first edit

    start = common_length(content.data, after)
    end = common_length(content.data[start:][::-1], after[start:][::-1])
    new = base64.b64encode(after[start : len(after) - end]).decode()
    if len(new) > _LONGEST_EDIT:
        return 0
    answer = await _answer(content, (str(start), str(len(content.data) - end), new), context)
    return answer.after if answer and not answer.before else 0


async def _answer(content: FileContent, edit: tuple[str, ...], context: CallContext) -> _Answer | None:
    language = language_of(content.path)
    if language is None or len(content.data) > MOST_BYTES:
        return None
    named = (content.path, language.name, language.module, language.function)
    argv = (sys.executable, "-I", "-B", _PROGRAM, *named, *edit)
    command = Command(
        argv,
        "/",
        timeout_s=_TIMEOUT_S,
        output_limit_bytes=_MOST_OUTPUT_BYTES,
        is_helper=True,
        unmoved=(content.path,),
    )
    try:
        result = await context.processes.run(command, context.grant)
        answer = msgspec.json.decode(result.stdout, type=_Answer) if result.exit_code == 0 else None
    except (ToolError, msgspec.MsgspecError):
        return None
    return answer if answer is not None and answer.sha256 == content.sha256 else None


_FIELDS = Symbol.__struct_fields__
