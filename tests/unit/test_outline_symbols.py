import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.tools.outlines.symbol import enclosing
from bradawl.tools.outlines.symbols import MOST_BYTES, symbols_in
from patience import cpu_limit

CODE = b'''"""def not_code(): pass"""
import os

LIMIT = 3  # pieces
names: dict[str, int] = {
    "a": 1,
}

# Keeps things.
@final
@register(
    "container",
)
class Container(Base[int], metaclass=Meta):
    """Says class Other:
class Other:
    """

    size: int
    step: int = 1

    def add(self, key: str, /, *rest: "Key",  # the keys
            deep=lambda it: it[1:2], **more) -> dict[str, int]:
        async def later(x):
            return x
        local = 1

        return local

    @property
    async def remove(self): return 1
    # the last word

if os.name == "posix":
    def helper(
        one,
        two,
    ):
        pass
'''


def found(code: bytes, path: str = "a.py") -> list[tuple[str, str, int, int]]:
    symbols = symbols_in(code, path)
    assert symbols is not None
    return [(each.name, each.kind, each.first, each.last) for each in symbols]


def test_definitions_have_names_kinds_and_lines() -> None:
    assert found(CODE) == [
        ("LIMIT", "constant", 4, 4),
        ("names", "constant", 5, 7),
        ("Container", "class", 10, 31),
        ("Container.size", "constant", 19, 19),
        ("Container.step", "constant", 20, 20),
        ("Container.add", "method", 22, 28),
        ("Container.add.later", "function", 24, 25),
        ("Container.remove", "method", 30, 31),
        ("helper", "function", 35, 39),
    ]


def test_a_signature_is_one_line_without_the_body() -> None:
    signatures = {each.name: each.signature for each in symbols_in(CODE, "a.py") or ()}
    assert signatures == {
        "LIMIT": "LIMIT = 3  # pieces",
        "names": "names: dict[str, int] = {",
        "Container": "class Container(Base[int], metaclass=Meta)",
        "Container.size": "size: int",
        "Container.step": "step: int = 1",
        "Container.add": (
            'def add(self, key: str, /, *rest: "Key", deep=lambda it: it[1:2], **more) -> dict[str, int]'
        ),
        "Container.add.later": "async def later(x)",
        "Container.remove": "async def remove(self)",
        "helper": "def helper(one, two)",
    }


def test_the_innermost_symbol_encloses_a_line() -> None:
    symbols = symbols_in(CODE, "a.py") or ()
    names = [one.name if (one := enclosing(symbols, line)) else None for line in (1, 4, 10, 19, 23, 25, 27, 31, 33, 36)]
    assert names == [
        None,
        None,
        "Container",
        "Container",
        "Container.add",
        "Container.add.later",
        "Container.add",
        "Container.remove",
        None,
        "helper",
    ]


def test_a_file_of_an_older_python_or_with_errors_has_symbols() -> None:
    old = b"def a(x, (y, z)):\n    print x, `y`\n    exec 'x'\n\nclass B: pass\n"
    assert found(old) == [("a", "function", 1, 3), ("B", "class", 5, 5)]
    unclosed = (
        b"def a():\n    call(1, [2\n\ndef b():\n    x = 'it is\n    return (\n\nclass C:\n    def d(self) return 1\n"
    )
    assert found(unclosed) == [
        ("a", "function", 1, 2),
        ("b", "function", 4, 6),
        ("C", "class", 8, 9),
        ("C.d", "method", 9, 9),
    ]


def test_without_the_end_of_a_string_lines_alone_decide() -> None:
    broken = b'def a():\n    """Does a.\n    return 1\n\ndef b():\n    """Does b."""\n    return 2\n'
    assert found(broken) == [("a", "function", 1, 3), ("b", "function", 5, 7)]


def test_line_ends_marks_tabs_and_form_feeds_do_not_matter() -> None:
    assert found(b"\xef\xbb\xbfclass A:\r\n\tdef b(self):\r\n\t\tpass\r\n\r\n\x0cdef c():\r\n    pass") == [
        ("A", "class", 1, 3),
        ("A.b", "method", 2, 3),
        ("c", "function", 5, 6),
    ]


def test_other_files_have_no_symbols_here() -> None:
    assert symbols_in(b"def a(): pass\n", "notes.txt") is None
    assert symbols_in(b"\x00\x01\x02", "a.py") is None
    assert symbols_in(b"#" * (MOST_BYTES + 1), "a.py") is None
    assert symbols_in(b"", "a.py") == ()


def parsed(data: bytes) -> list[tuple[str, str, int, int]]:
    def walk(node: ast.AST, prefix: str, in_class: bool) -> Iterator[tuple[str, str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from walk(child, prefix, in_class)
                continue
            is_class = isinstance(child, ast.ClassDef)
            kind = "class" if is_class else "method" if in_class else "function"
            first = min(line.lineno for line in (child, *child.decorator_list))
            yield prefix + child.name, kind, first, child.end_lineno or 0
            yield from walk(child, f"{prefix}{child.name}.", is_class)

    return sorted(walk(ast.parse(data), "", False), key=lambda each: (each[2], -each[3]))


@pytest.mark.parametrize("folder", ["json", "asyncio", "email", "."])
def test_the_standard_librarys_parser_finds_the_same_definitions(folder: str) -> None:
    files = sorted((Path(os.__file__).parent / folder).glob("*.py"))[:40]
    assert len(files) > 4
    for file in files:
        data = file.read_bytes()
        definitions = [each for each in found(data) if each[1] != "constant"]
        assert sorted(definitions, key=lambda each: (each[2], -each[3])) == parsed(data), file


PIECES = ("\n", "    ", "\t", "def f", "class A", "(", ")", ":", "'", '"', '"""', "'''", "\\", "#", "@", "x = 1", "é")


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_any_text_gives_symbols_within_its_lines(text: str) -> None:
    lines = text.count("\n") + 1
    for each in symbols_in(text.encode(), "a.py") or ():
        assert 1 <= each.first <= each.last <= lines
        assert each.name.split(".")[-1] in each.signature


HOSTILE = {
    "open brackets": b"(" * 1_000_000,
    "deep definitions": b"".join(b" " * depth + b"def f():\n" for depth in range(1_400)),
    "one line": b"x = " + b"a + " * 250_000,
    "quotes": b"'\\" * 500_000,
    "triple quotes": b'\\"""' * 250_000,
    "mixed quotes": b"'\"" * 500_000,
    "line ends": b"\n" * 1_000_000,
    "continued lines": b"\\\n" * 500_000,
    "comments in blocks": b"def f():\n" + b"    #\n" * 160_000 + b"\ndef g(): pass\n",
    "comments after blocks": b"".join(b" " * depth + b"def f():\n" for depth in range(90))
    + b"#\n" * 400_000
    + b"a = 1",
    "nothing but heads": b"def f(\n" * 140_000,
    "closing blocks": b"class A:\n def b(): 0\n#\n" * 45_000,
    "assignments": b"a:" + b" " * 500_000 + b"\n" + b"b" * 400_000,
    "decorators": b"@a\n" * 330_000,
    "spaces": b" " * 1_000_000 + b"def f(): 0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_long(name: str) -> None:
    with cpu_limit(5):
        symbols = symbols_in(HOSTILE[name], "a.py")
    assert symbols is not None
