"""Syntax colours: every character is kept, and what is open goes on in the next line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.tui.render.code import CodeState, Highlighter, highlight, language_of
from bradawl.app.tui.render.theme import theme_named

DARK = theme_named("dark", "true")
LANGUAGES = [
    "python",
    "javascript",
    "typescript",
    "go",
    "rust",
    "html",
    "css",
    "json",
    "yaml",
    "bash",
    "ruby",
    "php",
    "c++",
]
OTHERS = [
    "sql",
    "markdown",
    "mcschema",
    "html+jinja",
    "console",
    "pycon",
    "diff",
    "toml",
    "make",
    "docker",
    "no-such-language",
]
CODE = st.lists(
    st.sampled_from(
        [
            *(
                "def f(x):",
                '"""doc',
                "'''",
                '"',
                "'",
                "`",
                "${a}",
                "/*",
                "*/",
                "<!--",
                "-->",
                "<p class='x'>",
                "# c",
                "// c",
            ),
            *(
                "<<EOF",
                "EOF",
                "if x { y = 1 }",
                "  key: value",
                "{",
                "}",
                "\\",
                "\x1b[2J",
                "日本語",
                "x" * 1_500,
                "\t- a",
                "$ ls",
            ),
        ]
    ),
    max_size=12,
).map("\n".join)


def bare(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def colour(role: str, text: str) -> str:
    return DARK.paint(text, role)  # type: ignore[arg-type]  # a role as text


@given(CODE, st.sampled_from(LANGUAGES + OTHERS))
def test_every_character_is_kept(code: str, language: str):
    plain = highlight(code, "", theme_named("plain", "none"), 10_000)
    assert [bare(line) for line in highlight(code, language, DARK, 10_000)] == plain
    assert not any("\x1b" in line for line in plain)


@pytest.mark.parametrize(
    ("language", "code", "role"),
    [
        ("python", 'x = """one\ntwo\n"""', "string"),
        ("javascript", "f() /* one\ntwo\n*/", "comment"),
        ("go", "f() /* one\ntwo\n*/", "comment"),
        ("html", "<!-- one\ntwo\n-->", "comment"),
        ("rust", "/* one /* */\ntwo\n*/", "comment"),
    ],
)
def test_what_a_line_leaves_open_goes_on_in_the_next(language: str, code: str, role: str):
    assert highlight(code, language, DARK, 80)[1] == colour(role, "two")


def test_code_behind_a_comment_has_its_colours_again():
    lines = highlight("/* a\nb */ return x", "javascript", DARK, 80)
    assert colour("keyword", "return") in lines[1]


def test_a_comment_sign_in_a_string_opens_nothing():
    assert colour("keyword", "return") in highlight('x = "/*"\nreturn 1', "javascript", DARK, 80)[1]


def test_a_line_can_be_drawn_again_from_its_state():
    highlighter = Highlighter("python", DARK)
    _, state = highlighter.line('"""doc', CodeState())
    assert highlighter.line("text", state) == highlighter.line("text", state)
    assert highlighter.line("text", state) != highlighter.line("text", CodeState())


def test_a_lexer_that_does_not_end_is_not_used():
    assert highlight("a\n \nb", "mcschema", DARK, 80) == ["a", " ", "b"]


def test_long_lines_are_split():
    assert highlight("abcdef\n", "", DARK, 4) == ["abcd", "ef"]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        *(
            ("a.py", "python"),
            ("src/a.test.ts", "typescript"),
            ("a.tsx", "tsx"),
            ("a.h", "c"),
            ("a.sql", "sql"),
            ("a.RS", "rust"),
        ),
        *(("Makefile", "make"), ("dir/Dockerfile", "docker"), ("a.unknown", ""), ("", "")),
    ],
)
def test_the_language_of_a_file(path: str, language: str):
    assert language_of(path) == language
