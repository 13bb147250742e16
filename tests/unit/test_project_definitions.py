"""Places in a project that a prompt names: definitions, and uses of names that are defined nowhere."""

import os
from pathlib import Path
from time import monotonic

import pytest

from bradawl.app.project_definitions import places_named
from patience import cpu_limit

QUEUE = """\
LIMIT = 10


class Queue:
    def __init__(self):
        self.max_waiting = LIMIT

    def remove(self, item):
        return item

    async def drain_all(self):
        return self.max_waiting


def remove(item):
    pass
"""


def found(root: Path, text: str, seconds: float = 5.0, **given) -> list[str]:
    places = places_named(str(root), text, monotonic() + seconds, **given)
    return [f"{one.path}:{one.first}-{one.last} {one.name}{f' uses {one.uses}' * bool(one.uses)}" for one in places]


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path, shop__queue_DOT_py=QUEUE, tests__test_queue_DOT_py="def test_remove():\n    pass\n")


@pytest.mark.parametrize(
    ("prompt", "places"),
    [
        ("Queue.remove loses items", ["shop/queue.py:8-9 Queue.remove"]),
        ("`Queue` leaks", ["shop/queue.py:4-12 Queue"]),
        ("drain_all() hangs", ["shop/queue.py:11-12 Queue.drain_all"]),
        ("queue = Queue(); queue.remove(1) fails", ["shop/queue.py:4-12 Queue", "shop/queue.py:8-9 Queue.remove"]),
        ("remove(1) fails", ["shop/queue.py:15-16 remove"]),
        (
            "the attribute max_waiting is wrong",
            [
                "shop/queue.py:5-6 Queue.__init__ uses max_waiting",
                "shop/queue.py:11-12 Queue.drain_all uses max_waiting",
            ],
        ),
        ("the queue loses items, remove them", []),
        ("print(len(x)) and __init__ and ValueError", []),
        ("test_remove fails", []),
        ("", []),
    ],
)
def test_what_a_prompt_names_is_found(project, prompt, places):
    assert found(project, prompt) == places


def test_names_with_many_definitions_say_nothing(tmp_path):
    for number in range(5):
        write(tmp_path, **{f"m{number}_DOT_py": f"class Box{number}:\n    def run_it(self):\n        pass\n"})
    assert found(tmp_path, "run_it() hangs") == []
    assert found(tmp_path, "Box2.run_it hangs") == ["m2.py:2-3 Box2.run_it"]
    assert found(tmp_path, "a = Box3(); a.run_it()") == ["m3.py:1-3 Box3", "m3.py:2-3 Box3.run_it"]


def test_a_quoted_word_may_mean_a_class_of_that_name(tmp_path):
    write(tmp_path, m_DOT_py="class Tables:\n    pass\n\n\ndef make(tables):\n    pass\n")
    assert found(tmp_path, "the extra `tables` breaks") == ["m.py:1-2 Tables"]


def test_an_attribute_that_is_used_everywhere_says_nothing(tmp_path):
    write(tmp_path, m_DOT_py="".join(f"def f{n}(x):\n    return x.old_total\n" for n in range(6)))
    assert found(tmp_path, "old_total is wrong") == []


@pytest.mark.parametrize(
    ("suffix", "line"),
    [
        ("js", "export async function fromISO(text) {"),
        ("js", "  fromISO(text, opts = {}) {"),
        ("js", "  static fromISO(text) {"),
        ("js", "  fromISO({"),
        ("js", "exports.fromISO = function (text) {"),
        ("js", "DateTime.prototype.fromISO = (text) => text;"),
        ("ts", "export const fromISO = async (text: string) => text;"),
        ("ts", "  fromISO: function (text) {"),
        ("go", "func (d *Date) fromISO(text string) error {"),
        ("go", "func fromISO(text string) error {"),
        ("rs", "    pub(crate) fn fromISO(text: &str) -> Self {"),
        ("rb", "  def self.fromISO(text)"),
        ("java", "    public static class fromISO {"),
        ("php", "    private static function fromISO($text) {"),
        ("py", "    async def fromISO(text):"),
    ],
)
def test_definitions_of_other_languages_have_their_first_line(tmp_path, suffix, line):
    (tmp_path / f"a.{suffix}").write_text(f"// text\n\n{line}\n      return fromISO(text);\n")
    assert [one.partition(" ")[0].partition("-")[0] for one in found(tmp_path, "`fromISO` is wrong")] == [
        f"a.{suffix}:3"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  return fromISO(text);",
        "  fromISO(",
        "  x = fromISO({",
        "if (x) fromISO(text)",
        "y = fromISO",
        "// fromISO(text)",
    ],
)
def test_calls_are_no_definitions(tmp_path, line):
    (tmp_path / "a.js").write_text(f"function other() {{\n{line}\n}}\n")
    assert found(tmp_path, "`fromISO` is wrong") == ["a.js:2-2  uses fromISO"]


def test_files_that_were_not_written_here_and_hidden_ones_are_not_read(tmp_path):
    write(tmp_path, _DOT_gitignore="out/\n")
    for folder in ("node_modules", "out", ".hidden", "docs", "vendor"):
        write(tmp_path, **{f"{folder.replace('.', '_DOT_')}__a_DOT_py": "class Parcel:\n    pass\n"})
    assert found(tmp_path, "Parcel() fails") == []


def test_links_and_pipes_are_not_read(tmp_path):
    outside = tmp_path / "secret.py"
    outside.write_text("class Parcel:\n    pass\n")
    (root := tmp_path / "project").mkdir()
    (root / "a.py").symlink_to(outside)
    os.mkfifo(root / "b.py")
    assert found(root, "Parcel() fails") == []


def test_what_rules_refuse_is_not_read(project):
    refused = str(project / "shop/queue.py")
    assert found(project, "Queue.remove fails", is_refused=lambda path: path == refused) == []


def test_a_search_that_takes_too_long_finds_nothing(project):
    assert found(project, "Queue.remove fails", -1) == []


def test_broken_files_are_no_obstacle(tmp_path):
    (tmp_path / "a.py").write_bytes(b"\xff\xfe\0class Parcel:\n")
    (tmp_path / "b.py").write_text("class Parcel(\n  def send_it(self:\n")
    found(tmp_path, "Parcel.send_it fails")


def test_of_overloads_the_last_is_named(tmp_path):
    write(tmp_path, m_DOT_py="class Map:\n" + "    def find_it(self):\n        ...\n\n" * 6)
    assert found(tmp_path, "Map.find_it fails") == ["m.py:17-18 Map.find_it"]


def test_a_long_line_does_not_take_long(tmp_path):
    (tmp_path / "b.js").write_text("limit_rows(" + ")" * 300_000 + "\n")
    with cpu_limit(2.0):
        assert found(tmp_path, "fix limit_rows", 60.0) == ["b.js:1-1  uses limit_rows"]


def test_names_that_differ_in_capitals_are_told_apart(tmp_path):
    write(tmp_path, m_DOT_py="class Queue:\n    pass\n\n\ndef queue():\n    pass\n")
    assert found(tmp_path, "`Queue` and `queue`") == ["m.py:1-2 Queue", "m.py:5-6 queue"]
    assert found(tmp_path, "`queue` and `Queue`") == ["m.py:5-6 queue", "m.py:1-2 Queue"]
