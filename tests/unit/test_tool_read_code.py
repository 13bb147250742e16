"""`read_file` on files with code: outlines of large ones, definitions by name."""

import msgspec
import pytest

from bradawl.core.errors import ToolError
from bradawl.core.messages import Assistant, Origin, Text, ToolResult, ToolResults, User
from bradawl.tools.edit_file import EditFile
from bradawl.tools.outlines.mentions import mentioned
from bradawl.tools.outlines.outline import outline
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.outlines.symbols import symbols_in
from bradawl.tools.outlines.thresholds import NAMED_AT_MOST, NAMED_CHARACTERS, OUTLINE_CHARACTERS, WHOLE_BYTES
from bradawl.tools.read_file import ReadFile
from bradawl.tools.reading.paging import MOST_CHARACTERS
from bradawl.tools.write_file import WriteFile
from patience import cpu_limit

READ, EDIT, WRITE = ReadFile(), EditFile(), WriteFile()
FILLER = "".join(f"    # filler {number}\n" for number in range(1_500))
CODE = f'''import os

LIMIT = 3
names = []


class Container:
    """Holds things."""

    size: int

    def add(self, key: str) -> None:
        self.keys.append(key)
{FILLER}
    # Removes one
    # of them.
    @final
    def remove(self, key):
        self.keys.remove(key)

    def _pop(self):
        return self.keys.pop()


def remove():
    def inner():
        pass
    return inner
'''


def prompt(text: str) -> User:
    return User((Text(text),))


def result(text: str) -> ToolResults:
    return ToolResults((ToolResult("1", "bash", (Text(text),)),))


@pytest.fixture(name="code")
def _code(place, tmp_path):
    (tmp_path / "a.py").write_text(CODE)
    assert len(CODE) > WHOLE_BYTES
    return place


OUTLINE = f"""\
(a.py is long: {CODE.count(chr(10))} lines, {len(CODE):,} bytes. Its outline, with line numbers:)
3	LIMIT = 3
7-1522	class Container
12-13	  def add(self, key: str) -> None
1517-1519	  def remove(self, key)
1521-1522	  def _pop(self)
1525-1528	def remove()
[not listed: 2 constants, 1 function]"""
GO_ON = (
    '[read_file(file_path="a.py", symbols=["Container.add"]) shows definitions; '
    'read_file(file_path="a.py", offset=1, limit=400) lines; '
    r'grep(pattern="^\\s*(async )?(def|class) ", path="a.py") all definitions]'
)


async def test_a_large_file_of_code_is_shown_as_an_outline(code):
    assert await code.text(READ, file_path="a.py") == f"{OUTLINE}\n{GO_ON}"


async def test_a_small_file_of_code_and_a_large_file_of_data_are_shown_as_they_are(place, tmp_path):
    (tmp_path / "small.py").write_text(CODE.replace(FILLER, ""))
    assert (await place.text(READ, file_path="small.py")).startswith("import os\n")
    for name, text in (("data.py", "x = [\n" + "1,\n" * 10_000 + "]\n"), ("notes.md", "def f(): pass\n" * 3_000)):
        (tmp_path / name).write_text(text)
        assert "[lines 1-" in await place.text(READ, file_path=name)


@pytest.mark.parametrize("given", [{"offset": 1}, {"limit": 5}, {"offset": 1, "limit": 2_000}])
async def test_lines_that_are_asked_for_are_shown(code, given):
    head = f"[lines 1-{5 if given.get('limit') == 5 else 951} of 1528]\n"
    assert (await code.text(READ, file_path="a.py", **given)).startswith(f"{head}import os\n\nLIMIT = 3\n")


async def test_of_several_files_each_large_one_is_shown_as_an_outline(code, tmp_path):
    (tmp_path / "b.txt").write_text("b\n")
    text = await code.text(READ, file_paths=("a.py", "b.txt"))
    assert text == f"==> a.py <==\n{OUTLINE}\n{GO_ON}\n\n==> b.txt <==\nb"


async def test_an_outline_does_not_count_as_reading(code, tmp_path):
    await code.text(READ, file_path="a.py")
    assert code.seen == {}
    with pytest.raises(ToolError, match="exists and you have not read it"):
        await code.call(WRITE, file_path="a.py", content="")
    (tmp_path / "a.py").write_text(CODE.replace("LIMIT = 3", "LIMIT = 4"))
    assert (await code.text(EDIT, file_path="a.py", old_string="key: str", new_string="key: int")).startswith("Edited")
    assert (await code.text(READ, file_path="a.py")).startswith("(a.py is long:")


# ------------------------------------------------------------------ definitions by name

REMOVE = """\
[lines 1515-1519: Container.remove]
    # Removes one
    # of them.
    @final
    def remove(self, key):
        self.keys.remove(key)"""


@pytest.mark.parametrize(
    "name", ["Container.remove", "Container::remove", "Container#remove()", "def Container.remove"]
)
async def test_a_definition_is_shown_with_its_decorators_and_the_comment_above(code, name):
    assert await code.text(READ, file_path="a.py", symbols=(name,)) == REMOVE


async def test_definitions_are_shown_in_the_order_of_the_file_and_each_line_once(code):
    text = await code.text(READ, file_path="a.py", symbols=("remove.inner", "Container._pop", "remove", "LIMIT"))
    assert text == (
        "[line 3: LIMIT]\nLIMIT = 3\n[lines 1521-1522: Container._pop]\n    def _pop(self):\n"
        "        return self.keys.pop()\n[lines 1525-1528: remove]\n"
        "def remove():\n    def inner():\n        pass\n    return inner"
    )


async def test_a_name_of_several_definitions_shows_all_and_says_where(place, tmp_path):
    (tmp_path / "a.py").write_text("class A:\n    def f(self): 1\n\nclass B:\n    def f(self): 2\n")
    assert await place.text(READ, file_path="a.py", symbols=("f",)) == (
        "[line 2: A.f]\n    def f(self): 1\n[line 5: B.f]\n    def f(self): 2\n[f is the name of 2 definitions]"
    )


async def test_an_unknown_name_is_answered_with_similar_ones(code):
    text = await code.text(READ, file_path="a.py", symbols=("Container._pop", "Container.remov"))
    assert text.endswith("\na.py defines no Container.remov; did you mean Container.remove, remove?")
    with pytest.raises(ToolError) as error:
        await code.call(READ, file_path="a.py", symbols=("xyz",))
    assert str(error.value) == "a.py defines no xyz; read_file without symbols shows the file or its outline"


async def test_files_without_definitions_say_so(place, tmp_path):
    (tmp_path / "a.txt").write_text("def f(): 1\n")
    with pytest.raises(ToolError) as error:
        await place.call(READ, file_path="a.txt", symbols=("f",))
    assert str(error.value) == "no definitions are found in files such as a.txt; use offset and limit, or grep"
    assert await place.text(READ, file_path="a.txt", symbols=("", " ")) == "def f(): 1"
    with pytest.raises(ToolError, match="symbols needs file_path: give one file"):
        await place.call(READ, file_paths=("a.txt", "b"), symbols=("f",))


async def test_characters_that_can_not_be_seen_are_named_in_outlines_and_definitions(place, tmp_path):
    code = CODE.replace("self.keys.append", "self.\u202ekeys.append").replace("key: str", "key: 's\u200btr'")
    (tmp_path / "a.py").write_text(code)
    definition = await place.text(READ, file_path="a.py", symbols=("Container.add",))
    assert "\n[2 invisible characters are in this text (" in definition
    assert "\n[1 invisible character is in this text (" in await place.text(READ, file_path="a.py")
    (tmp_path / "b.py").write_bytes(b"def f():\n    return '\xe9'\n")
    text = await place.text(READ, file_path="b.py", symbols=("f",))
    assert text == "[lines 1-2: f]\ndef f():\n    return '\u00e9'\n(not valid UTF-8, read as Latin-1)"


async def test_a_definition_that_is_too_long_ends_with_the_call_for_the_rest(place, tmp_path):
    lines = ["def f():", *(f"    call({number}, {'x' * 90!r})" for number in range(1_000)), "def g(): pass"]
    (tmp_path / "a.py").write_text("\n".join(lines))
    text = await place.text(READ, file_path="a.py", symbols=("f", "g"))
    shown = text.count("\n") - 1
    assert text.startswith(f"[lines 1-{shown}: f]\ndef f():\n")
    assert MOST_CHARACTERS - 500 < len(text) < MOST_CHARACTERS + 500
    assert text.endswith(
        f'[f goes on: read_file(file_path="a.py", offset={shown + 1}, limit={1_001 - shown}); not shown: g (1002-1002)]'
    )


async def test_definitions_count_as_seen_and_are_not_shown_twice(code):
    await code.call(READ, file_path="a.py", symbols=("Container.remove",))
    again = await code.text(READ, file_path="a.py", symbols=("Container.remove",))
    assert again == "(a.py has not changed: the earlier answer with the definitions Container.remove still holds)"
    assert list(code.seen) == [f"{code.cwd}/a.py"]


# ------------------------------------------------------------------ definitions that the conversation names


async def test_an_outline_is_followed_by_the_definitions_that_the_conversation_names(code):
    code.messages = [prompt("why does Container.remove fail?")]
    assert await code.text(READ, file_path="a.py") == (
        f"{OUTLINE}\n\n(definitions that this conversation names:)\n{REMOVE}\n{GO_ON}"
    )


async def test_a_definition_that_is_named_and_too_long_is_only_named(code):
    code.messages = [prompt("what does `Container` do?")]
    assert len(FILLER) > NAMED_CHARACTERS
    assert (await code.text(READ, file_path="a.py")).endswith(
        f"\n[named as well, but too long to show here: Container]\n{GO_ON}"
    )


SYMBOLS = symbols_in(CODE.encode(), "a.py") or ()
ORIGIN = Origin("openai", "openai", "m")


@pytest.mark.parametrize(
    ("message", "names"),
    [
        (prompt("Container.remove loses keys"), ["Container.remove"]),
        (prompt("keys.remove loses keys"), ["Container.remove", "remove"]),
        (prompt("call `remove` less"), ["Container.remove", "remove"]),
        (prompt("after remove() it hangs"), ["Container.remove", "remove"]),
        (prompt("please remove the container and add a test to it"), []),
        (prompt("_pop is slow"), ["Container._pop"]),
        (prompt("the class Container"), []),
        (prompt("the class 'Container'"), ["Container"]),
        (result("src/a.py:1518: AssertionError"), ["Container.remove"]),
        (result('  File "/p/src/a.py", line 1522, in _pop\n    return'), ["Container._pop"]),
        (result("./src/a.py:13:self.keys.append(key)"), ["Container.add"]),
        (
            result("src/a.py\n  in Container.add (12-13)\n12: def add(\n13- x\n--\n1527: pass"),
            ["Container.add", "inner"],
        ),
        (result("src/b.py\n12: def add("), []),
        (result("src/a.py\nsrc/b.py\n12: def add("), []),
        (result("other/a.py:1518: AssertionError"), []),
        (result("src/a.py:3: LIMIT, src/a.py:99999: x, Container.remove, 13: _pop()"), []),
        (Assistant((Text("Container._pop at src/a.py:1518"),), ORIGIN), []),
    ],
)
def test_prompts_name_definitions_and_results_point_to_them(message, names):
    found = [one.name.removeprefix("remove.") for one in mentioned(SYMBOLS, "/p/src/a.py", [message])]
    assert found == names


@pytest.mark.parametrize("text", ["a.py" * 100_000, "a.py:" * 80_000, "a/" * 200_000, "_" * 400_000, "1: " * 130_000])
def test_no_message_takes_long_to_search(text):
    with cpu_limit(3):
        assert mentioned(SYMBOLS, "/p/src/a.py", [result(text), prompt(text)]) == []


def test_the_newest_messages_come_first_and_the_number_is_limited():
    symbols = [Symbol(f"f_{number}", "function", number, number, "") for number in range(1, 100)]
    messages = [prompt(f"f_{number}") for number in range(1, 100)]
    assert [one.name for one in mentioned(symbols, "/a.py", messages)] == [
        f"f_{number}" for number in range(99, 99 - NAMED_AT_MOST, -1)
    ]


# ------------------------------------------------------------------ long outlines


def test_an_outline_leaves_out_what_matters_least_first():
    symbols = [
        Symbol("MOST", "constant", 1, 1, "MOST = 1"),
        Symbol("Open", "class", 2, 90, "class Open"),
        Symbol("Open.__init__", "method", 3, 4, "def __init__(self)"),
        Symbol("Open.__add__", "method", 5, 6, "def __add__(self)"),
        Symbol("Open._inner", "method", 7, 8, "def _inner(self)"),
        Symbol("Open.outer", "method", 9, 10, "def outer(self)"),
        Symbol("_Closed", "class", 91, 95, "class _Closed"),
        Symbol("_Closed.outer", "method", 92, 95, "def outer(self)"),
    ]
    symbols = [msgspec.structs.replace(one, signature=f"{one.signature:-<90}") for one in symbols]
    signatures = [one.signature for one in symbols]
    listed: list[list[str]] = []
    for most in range(1_000, 100, -1):
        lines = outline(symbols, most)
        names = [line.partition("\t")[2].strip() for line in lines if "\t" in line]
        assert sum(len(line) + 1 for line in lines) <= most + 60
        if not listed or names != listed[-1]:
            listed.append(names)
    assert listed[:8] == [
        signatures,
        signatures[1:],
        [*signatures[1:4], *signatures[5:]],
        [*signatures[1:3], *signatures[5:]],
        [*signatures[1:3], *signatures[5:7]],
        [*signatures[1:3], signatures[6]],
        [signatures[1], signatures[6]],
        [signatures[1]],
    ]
    assert outline(symbols, 200)[-1] == "[not listed: 1 constant, 4 methods, 1 private method, 1 private class]"


def test_an_outline_of_thousands_of_classes_is_cut():
    symbols = [Symbol(f"C{number}", "class", number, number, f"class C{number}") for number in range(1, 5_000)]
    lines = outline(symbols)
    assert lines[-1] == f"[the outline is cut: {5_000 - len(lines):,} more definitions, from line {len(lines)}]"
    assert OUTLINE_CHARACTERS - 100 < sum(map(len, lines)) + len(lines) < OUTLINE_CHARACTERS + 100


def test_of_many_methods_as_many_are_listed_as_fit():
    methods = [Symbol(f"Big.m{n:03}", "method", n, n, f"def m{n:03}(self)") for n in range(2, 802)]
    lines = outline([Symbol("Big", "class", 1, 900, "class Big"), *methods], 2_000)
    assert lines[:3] == ["1-900\tclass Big", "2\t  def m002(self)", "3\t  def m003(self)"]
    assert lines[-1] == f"[not listed: {802 - len(lines)} methods]"
    assert 1_950 < sum(len(line) + 1 for line in lines) <= 2_000
