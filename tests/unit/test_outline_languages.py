"""Outlines of other languages than Python: in a process of its own, with grammars that are optional."""

import asyncio

import msgspec
import pytest

from bradawl.core.errors import ToolError
from bradawl.core.workspace import CommandResult
from bradawl.testing.fakes import ScriptedProcesses
from bradawl.tools.outlines.languages import language_of, symbols_of
from bradawl.tools.outlines.thresholds import WHOLE_BYTES
from bradawl.tools.read_file import ReadFile

READ = ReadFile()
SAMPLES = {
    "a.ts": (
        """\
import x from "y";
export const LIMIT = 3;
// Holds things.
export abstract class Box<T> extends Base {
  size = 1;
  run = (a: number) => {
    return a;
  };
  constructor(private x: string) { super(); }
  get value(): number { return 1; }
  abstract open(): void;
}
export interface Shape { area(): number }
type Name = string;
enum Kind { A }
namespace N {
  export function inside() { function no() {} }
}
export default async function main(a: string): Promise<void> {
}
const arrow = async () => 1;
exports.other = function (a) { const local = 1; };
""",
        [
            ("LIMIT", "constant", 2, 2, "LIMIT = 3"),
            ("Box", "class", 4, 12, "abstract class Box<T> extends Base"),
            ("Box.run", "method", 6, 8, "run = (a: number)"),
            ("Box.constructor", "method", 9, 9, "constructor(private x: string)"),
            ("Box.value", "method", 10, 10, "get value(): number"),
            ("Box.open", "method", 11, 11, "abstract open(): void"),
            ("Shape", "class", 13, 13, "interface Shape"),
            ("Shape.area", "method", 13, 13, "area(): number"),
            ("Name", "constant", 14, 14, "type Name = string"),
            ("Kind", "class", 15, 15, "enum Kind"),
            ("N", "module", 16, 18, "namespace N"),
            ("N.inside", "function", 17, 17, "function inside()"),
            ("main", "function", 19, 20, "async function main(a: string): Promise<void>"),
            ("arrow", "function", 21, 21, "arrow = async ()"),
            ("exports.other", "function", 22, 22, "exports.other = function (a)"),
        ],
    ),
    "a.js": (
        "(function () {\n  function hidden(a) {}\n})();\nclass A { b() {} }\nA.prototype.c = function () {};\n",
        [
            ("hidden", "function", 2, 2, "function hidden(a)"),
            ("A", "class", 4, 4, "class A"),
            ("A.b", "method", 4, 4, "b()"),
            ("A.prototype.c", "function", 5, 5, "A.prototype.c = function ()"),
        ],
    ),
    "a.go": (
        "package a\nconst Most = 3\ntype Box struct {\n\tsize int\n}\nfunc (b *Box[T]) Open(\n\ta int,\n"
        ") error {\n}\nfunc main() {\n\tvar x = 1\n}\n",
        [
            ("Most", "constant", 2, 2, "Most = 3"),
            ("Box", "class", 3, 5, "Box struct"),
            ("Box.Open", "method", 6, 9, "func (b *Box[T]) Open( a int, ) error"),
            ("main", "function", 10, 12, "func main()"),
        ],
    ),
    "a.rs": (
        "#[derive(Debug)]\npub struct A { x: i32 }\nimpl<T> Foo for A<T> {\n"
        "    pub fn f(&self) -> i32 { 1 }\n}\nmod tests {\n    fn t() {}\n}\nconst N: u8 = 1;\n",
        [
            ("A", "class", 2, 2, "pub struct A"),
            ("A", "module", 3, 5, "impl<T> Foo for A<T>"),
            ("A.f", "method", 4, 4, "pub fn f(&self) -> i32"),
            ("tests", "module", 6, 8, "mod tests"),
            ("tests.t", "function", 7, 7, "fn t()"),
            ("N", "constant", 9, 9, "const N: u8 = 1"),
        ],
    ),
    "A.java": (
        "package a;\npublic class A {\n  int x;\n  @Override\n  public int f(int a) throws E {\n"
        "    return a;\n  }\n  interface B { void g(); }\n}\n",
        [
            ("A", "class", 2, 9, "public class A"),
            ("A.f", "method", 4, 7, "@Override public int f(int a) throws E"),
            ("A.B", "class", 8, 8, "interface B"),
            ("A.B.g", "method", 8, 8, "void g()"),
        ],
    ),
    "a.c": (
        "#define MOST 3 \\\n  + 1\nstruct box { int x; };\ntypedef struct { int y; } pair;\nstatic char **open(int a)\n"
        "{\n  return 0;\n}\nint g(void);\n",
        [
            ("MOST", "constant", 1, 2, "#define MOST 3"),
            ("box", "class", 3, 3, "struct box"),
            ("pair", "class", 4, 4, "typedef struct pair"),
            ("open", "function", 5, 8, "static char **open(int a)"),
        ],
    ),
    "a.hpp": (
        "namespace a {\ntemplate<class T>\nclass B : C {\n  int f() const { return 1; }\n};\n}\nint a::B::g() {\n}\n",
        [
            ("a", "module", 1, 6, "namespace a"),
            ("a.B", "class", 2, 5, "class B : C"),
            ("a.B.f", "method", 4, 4, "int f() const"),
            ("a.B.g", "function", 7, 8, "int a::B::g()"),
        ],
    ),
    "a.rb": (
        "module A\n  class B < C\n    def f(a)\n      1\n    end\n    def self.g; end\n  end\nend\n",
        [
            ("A", "module", 1, 8, "module A"),
            ("A.B", "class", 2, 7, "class B < C"),
            ("A.B.f", "method", 3, 5, "def f(a)"),
            ("A.B.g", "method", 6, 6, "def self.g; end"),
        ],
    ),
    "a.cs": (
        "namespace N {\n  public class A : B {\n    public A(int x) { }\n    int F() => 1;\n"
        "    public int P { get; set; }\n  }\n}\n",
        [
            ("N", "module", 1, 7, "namespace N"),
            ("N.A", "class", 2, 6, "public class A : B"),
            ("N.A.A", "method", 3, 3, "public A(int x)"),
            ("N.A.F", "method", 4, 4, "int F()"),
            ("N.A.P", "constant", 5, 5, "public int P"),
        ],
    ),
    "a.php": (
        "<?php\nnamespace X;\nclass A {\n  public function f($a) { }\n}\nfunction g() {\n}\n",
        [
            ("A", "class", 3, 5, "class A"),
            ("A.f", "method", 4, 4, "public function f($a)"),
            ("g", "function", 6, 7, "function g()"),
        ],
    ),
    "a.sh": (
        "f() {\n  g\n}\nfunction h { :; }\n",
        [("f", "function", 1, 3, "f()"), ("h", "function", 4, 4, "function h")],
    ),
}


async def symbols(place, name: str, code: str):
    path = f"{place.cwd}/{name}"
    await place.files.replace(path, code.encode(), None)
    return await symbols_of(await place.files.read(path, 10_000_000), place.context())


@pytest.mark.parametrize("name", SAMPLES)
async def test_each_language_has_its_definitions(place, name):
    code, expected = SAMPLES[name]
    found = await symbols(place, name, code)
    assert [(each.name, each.kind, each.first, each.last, each.signature) for each in found or ()] == expected


async def test_python_needs_no_program(place):
    place.processes.close()
    assert [each.name for each in await symbols(place, "a.py", "def f(): 1\n") or ()] == ["f"]


async def test_a_large_file_of_another_language_is_shown_as_an_outline(place, tmp_path):
    (tmp_path / "a.go").write_text("package a\nfunc Open() {\n" + "\tcall()\n" * WHOLE_BYTES + "}\n")
    text = await place.text(READ, file_path="a.go")
    assert text.splitlines()[1] == f"2-{WHOLE_BYTES + 3}\tfunc Open()"
    assert (await place.text(READ, file_path="a.go", symbols=("Open",))).startswith(
        "[lines 2-6250: Open]\nfunc Open() {\n\tcall()\n"
    )


def test_a_language_is_known_by_its_suffix_if_its_grammar_is_installed():
    language = language_of("/p/b.TSX")
    assert language and (language.module, language.function) == ("tree_sitter_typescript", "language_tsx")
    assert language_of("/p/a.go", lambda module: module != "tree_sitter_go") is None
    assert language_of("/p/a.xyz") is None


async def test_a_minified_file_is_shown_as_it_is(place, tmp_path):
    (tmp_path / "a.js").write_text("function f(a){return a}" * WHOLE_BYTES)
    assert (await place.text(READ, file_path="a.js")).startswith("function f(a){return a}")


async def test_a_file_of_an_unknown_language_is_shown_as_it_is(place, tmp_path):
    (tmp_path / "a.xyz").write_text("func Open() {\n" + "\tcall()\n" * WHOLE_BYTES + "}\n")
    assert (await place.text(READ, file_path="a.xyz")).startswith("[lines 1-1999 of 24002]\nfunc Open() {\n\tcall()\n")


HOSTILE = {
    "brackets.js": "(" * 200_000,
    "nested.js": "function f() {" * 20_000,
    "nested.cpp": "class A {" * 20_000,
    "nested.ts": "namespace a {" * 20_000,
    "binary.rb": "\x01\x02<<A\n" * 10_000,
    "quotes.php": '<?php "$a[' * 20_000,
    "templates.cpp": "a<" * 50_000,
    "heredocs.sh": "<<A " * 20_000,
    "raw.rs": 'r#"' * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_file_breaks_more_than_its_own_outline(place, name):
    async with asyncio.timeout(60):
        found = await symbols(place, name, HOSTILE[name])
    assert found is None or all(1 <= each.first <= each.last for each in found)


ENDINGS = {
    "crashed": CommandResult(-11, b"", b"Segmentation fault"),
    "timed out": CommandResult(None, b"", b""),
    "no answer": CommandResult(0, b"", b""),
    "another content": CommandResult(0, b'{"sha256": "x", "symbols": []}', b""),
    "wrong": CommandResult(0, b'{"sha256": 1}', b""),
}


class Ending(ScriptedProcesses):
    """Every program ends in one way."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result

    async def run(self, command, grant, progress=None, permit=None) -> CommandResult:
        return self.result


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_program_that_fails_leaves_the_file_without_symbols(place, tmp_path, ending):
    (tmp_path / "a.go").write_text("package a\n")
    context = msgspec.structs.replace(place.context(), processes=Ending(ENDINGS[ending]))
    content = await place.files.read(f"{place.cwd}/a.go", 100)
    assert await symbols_of(content, context) is None
    with pytest.raises(ToolError, match=r"no definitions are found in files such as a\.go"):
        await READ.run(READ.params(file_path="a.go", symbols=("f",)), context)
