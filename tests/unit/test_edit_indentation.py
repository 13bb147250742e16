"""Edits whose old_string alone is indented otherwise than the file: new_string stays as it is written."""

import random
from pathlib import Path

import pytest

from bradawl.core.errors import ToolError
from bradawl.tools.editing.plan import Change, plan
from bradawl.tools.editing.syntax import fault_in, is_parsed

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CLASS = "class A:\n    def run(self):\n        x = load(self)\n        return x\n\n    def z(self):\n        pass\n"
GO = "func run() int {\n\tfor {\n\t\tx := load()\n\t\treturn x\n\t}\n}\n"
YAML = "jobs:\n  test:\n    steps:\n      - run: make\n      - run: make test\n"


def edited(data: str, old: str, new: str, name: str = "f.py") -> str:
    return plan(data.encode(), Change(old, new), name).data.decode()


def refusal(data: str, old: str, new: str, name: str = "f.py") -> str:
    with pytest.raises(ToolError) as caught:
        plan(data.encode(), Change(old, new), name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "old", "new", "name"),
    [
        # Less than in the file, by one level and by both; more than in the file.
        (CLASS, "def run(self):\n    x = load(self)\n", "    def run(self):\n        x = load(self, 1)\n", "f.py"),
        (CLASS, "    x = load(self)\n    return x\n", "        x = load(self, 1)\n        return x\n", "f.py"),
        (CLASS, "x = load(self)\nreturn x\n", "        x = load(self, 1)\n        return x\n", "f.py"),
        (CLASS, " " * 12 + "x = load(self)\n", "        x = load(self, 1)\n", "f.py"),
        # The first line bare, or indented in part, and the others as in the file.
        (CLASS, "x = load(self)\n        return x", "        x = load(self, 1)\n        return x", "f.py"),
        (CLASS, "  x = load(self)\n        return x", "        x = load(self, 1)\n        return x", "f.py"),
        (CLASS, "x = load(self)", "        x = load(self, 1)", "f.py"),
        (CLASS, "    x = load(self)", "        x = load(self, 1)", "f.py"),
        # Without a parser, too.
        (GO, "x := load()\nreturn x\n", "\t\tx := load(1)\n\t\treturn x\n", "f.go"),
        (GO, "        x := load()\n        return x\n", "\t\tx := load(1)\n\t\treturn x\n", "f.go"),
        (YAML, "steps:\n  - run: make\n", "    steps:\n      - run: make all\n", "f.yml"),
        (YAML, "- run: make\n- run: make test\n", "      - run: make\n      - run: make check\n", "f.yml"),
    ],
)
def test_new_text_with_the_files_own_indentation_is_not_moved(data: str, old: str, new: str, name: str):
    result = edited(data, old, new, name)
    assert new.rstrip("\n") in result
    before, after = data.splitlines(), result.splitlines()
    assert len(before) == len(after)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        # Wrapped by exactly the indentation that old_string lacks.
        (
            "    x = load(self)\n    return x\n",
            "    if self:\n        x = load(self)\n        return x\n",
            "        if self:\n            x = load(self)\n            return x\n",
        ),
        (
            "    x = load(self)\n    return x\n",
            "        if self:\n            x = load(self)\n            return x\n",
            "        if self:\n            x = load(self)\n            return x\n",
        ),
        # Lines in front, behind and in the place of common ones.
        (
            "x = load(self)\nreturn x",
            "y = 1\nx = load(y)\nreturn x",
            "        y = 1\n        x = load(y)\n        return x\n",
        ),
        ("x = load(self)\nreturn x", "return load(self)", "        return load(self)\n"),
        ("x = load(self)\nreturn x", "        return load(self)", "        return load(self)\n"),
    ],
)
def test_new_text_indented_like_the_quoted_text_is_moved_with_it(old: str, new: str, right: str):
    assert edited(CLASS, old, new) == CLASS.replace("        x = load(self)\n        return x\n", right)


def test_a_method_is_not_moved_out_of_its_class():
    """Both readings can be parsed; the one that keeps the method in its class is meant."""
    old = "        def z(self):\n            pass\n"
    assert edited(CLASS, old, "    def z(self):\n        return 1\n") == CLASS.replace("pass", "return 1")


def test_an_unclear_indentation_is_refused_unless_one_reading_alone_can_be_parsed():
    js = "  if (a) {\n    one();\n    two();\n  }\n"
    old, new = "one();\ntwo();\n", "    one();\ntwo(2);\n"
    assert refusal(js, old, new, "f.js") == (
        "old_string is indented otherwise than the file, and whether new_string is indented like the one or like the "
        "other can't be determined; nothing was changed. Repeat the edit with the file's own indentation"
    )
    python = "if a:\n    one()\n    two()\nelse:\n    three()\n"
    assert edited(python, "one()\ntwo()\n", "    one()\n    if b:\n        two()\n") == python.replace(
        "    two()\n", "    if b:\n        two()\n"
    )


@pytest.mark.parametrize(
    ("data", "old", "new", "name"),
    [
        # The first line bare and the others right, or the indentation changes midway.
        (GO, "x := load()\nreturn x", "x := load(1)\n\t\ty := 3\n\t\treturn x", "f.go"),
        (CLASS, "x = load(self)\nreturn x", "x = load(self, 2)\n        y = 3\n        return x", "f"),
        (CLASS, "x = load(self)\nreturn x", "x = load(1)\n        return x", "f.py"),
        # The end of a here-document must not be moved.
        ("f() {\n  a=1\n  b=2\n}\n", "a=1\nb=2\n", "a=1\ncat <<EOF\nfoo\nEOF\nb=2\n", "f.sh"),
    ],
)
def test_new_text_that_can_be_indented_in_no_one_way_is_refused(data: str, old: str, new: str, name: str):
    assert "can't be determined; nothing was changed" in refusal(data, old, new, name)


def test_all_replacements_of_a_bare_text_keep_their_indentation():
    data = "{\n    go(1);\n    x();\n    go(1);\n}\n"
    planned = plan(data.encode(), Change("go(1);", "    go(2);", True), "f.js")
    assert planned.data.decode() == data.replace("go(1)", "go(2)")
    data = "{\n    go(1); go(1);\n}\n"
    planned = plan(data.encode(), Change("go(1);", "    go(2);", True), "f.js")
    assert planned.data.decode() == data.replace("go(1);", "    go(2);")


@pytest.mark.parametrize("end", ["\r\n", "  \n"])
def test_an_edit_that_differs_only_in_what_a_model_can_not_see_may_break_a_file_for_a_while(end: str):
    data = "def f():\n    a = 1\n    b = 2\n".replace("\n", end)
    assert edited(data, "    a = 1\n    b = 2", "    try:\n        a = 1\n        b = 2").count("try:") == 1


def test_an_indentation_that_the_file_has_already_is_said():
    assert refusal(CLASS, "x = load(self)\nreturn x\n", "        x = load(self)\n        return x\n") == (
        "f.py would not change: it is indented already as new_string is, and otherwise than old_string. If it is to be "
        "indented further, repeat the edit with the file's own indentation"
    )


def test_an_exact_edit_that_only_indents_further_is_made_as_given():
    assert edited("if a:\n    if b:\n        pass\n    x = 1\n", "x = 1", "    x = 1").endswith("\n        x = 1\n")
    assert edited("a:\n  b: 1\n", "b: 1", "  b: 1", "f.yml") == "a:\n    b: 1\n"


def test_an_edit_that_matches_only_loosely_and_would_break_the_file_is_refused():
    assert refusal(CLASS, "x = load(self)  \nreturn x", "x = load(self\nreturn x") == (
        "old_string is in f.py only after ignoring trailing blanks and indentation, and with new_string in its place "
        "the file would not be valid Python any more (line 3: '(' was never closed); nothing was changed. Repeat the "
        "edit with the text as it is in the file"
    )
    # An exact edit may leave a file that can't be parsed: the next one may go on. So may one of a broken file.
    assert "load(self\n" in edited(CLASS, "        x = load(self)\n", "        x = load(self\n")
    assert "load(self\n" in edited(CLASS + "(", "x = load(self)\nreturn x", "x = load(self\nreturn x")
    assert "load(self\n" in edited(CLASS, "x = load(self)\nreturn x", "x = load(self\nreturn x", "f.txt")


@pytest.mark.parametrize("text", ["(" * 5_000, "-" * 100_000 + "1", "x = '\0'", "x = 1\n" * 200_000, "\udcff"])
def test_texts_that_a_parser_may_not_survive_are_no_reason_to_refuse(text: str):
    assert not is_parsed(text, "f.py") or fault_in(text, "f.py") is None
    assert not is_parsed("x = 1", "f.js")


@pytest.mark.parametrize("is_fresh", [False, True])
def test_no_generated_edit_is_made_wrongly_and_nearly_all_rightly(monkeypatch: pytest.MonkeyPatch, is_fresh: bool):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from edit_cases import OLD_INDENTED_OTHERWISE
    from edits import tallied, total

    seed = random.SystemRandom().randrange(1 << 32) if is_fresh else 1
    counts = total(tallied(seed, 300, ("bradawl",), OLD_INDENTED_OTHERWISE)["bradawl"])
    assert counts["wrong"] == 0, f"seed {seed}"
    assert counts["right"] >= 260, f"seed {seed}"
