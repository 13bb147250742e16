"""The second parser: it must find the words and commands of the first one, byte for byte."""

import msgspec
import pytest

from bradawl.safety.shell.allow.cross_check import confirm
from bradawl.safety.shell.allow.parser import ParsedLine, Token, parse_line
from bradawl.safety.shell.errors import UnsupportedSyntax

CONFIRMED = [
    *(
        "ls",
        "ls -la",
        "ls a b c",
        "echo 'a b' \"c d\"",
        "echo a'b'\"c\"d",
        "ls; pwd",
        "ls && pwd || true",
        "ls | wc | sort",
    ),
    *("cat < in > out", "ls >> out 2> err", "ls &> all", "ls &>> all", "ls > a 2>&1", "ls >&2", "echo 1", "sleep 1.5"),
    *("A=1 ls", "A=1", "A=1 B='x y' ls", "A= ls", "export A=1 B=2", "unset A", "declare a", "typeset a", "local a"),
    *("readonly a", "unsetenv A", "[ -f x ]", "[ x = y ]", "[ x == y ]", "[ x != y ]", "[ -n x ] && ls", "test -f x"),
    *(
        "ls # comment",
        "# comment\nls",
        "ls\npwd",
        "ls\n\npwd\n",
        "ls;",
        "ls *.py",
        "ls a?b",
        "echo 'é'",
        "cat 'é' | wc",
    ),
    *("echo a=b", "[ ! -f x ]", "\nls", "ls\n# a\n# b\npwd", "echo '' \"\"", "export A"),
    *("A=1 B=2", "A=1 [ a* == b? ]", "[ a == b? ]"),
]


@pytest.mark.parametrize("text", CONFIRMED)
def test_a_line_that_both_parsers_read_alike_is_confirmed(text: str):
    confirm(parse_line(text, ""))


def changed(line: ParsedLine, **parts) -> ParsedLine:
    return msgspec.structs.replace(line, **parts)


def is_confirmed(line: ParsedLine) -> bool:
    try:
        confirm(line)
    except UnsupportedSyntax:
        return False
    return True


@pytest.mark.parametrize("text", ["ls a b", "echo 'a b' c", "ls; pwd", "cat < in | wc > out", "ls\npwd\n", "A=1 ls x"])
def test_a_token_that_is_missing_moved_cut_or_added_is_found(text: str):
    line = parse_line(text, "")
    tokens = line.tokens
    for at, token in enumerate(tokens):
        if token.kind == "newline":
            continue
        cut = Token(token.kind, token.text, token.start, token.end - 1)
        late = Token(token.kind, token.text, token.start + 1, token.end)
        early = Token(token.kind, token.text, token.start - 1, token.end)
        long = Token(token.kind, token.text, token.start, token.end + 1)
        for others in ((), (token, token), (late,), (early,), (long,)):
            assert not is_confirmed(changed(line, tokens=(*tokens[:at], *others, *tokens[at + 1 :])))
        if token.end - token.start > 1:
            assert not is_confirmed(changed(line, tokens=(*tokens[:at], cut, *tokens[at + 1 :])))


def test_two_words_that_the_other_parser_separates_are_not_one():
    line = parse_line("cat ab cd", "")
    first, second, third = line.tokens
    joined = Token("word", "abcd", second.start, third.end)
    assert not is_confirmed(changed(line, tokens=(first, joined)))


@pytest.mark.parametrize("text", ["ls | wc", "ls; pwd", "A=1 ls", "ls && pwd"])
def test_a_command_that_begins_elsewhere_is_found(text: str):
    line = parse_line(text, "")
    for at, pipeline in enumerate(line.pipelines):
        for which, command in enumerate(pipeline.commands):
            moved = changed(command, start=command.start + 1)
            for commands in (
                (*pipeline.commands[:which], moved, *pipeline.commands[which + 1 :]),
                (*pipeline.commands[:which], *pipeline.commands[which + 1 :]),
            ):
                pipelines = (*line.pipelines[:at], changed(pipeline, commands=commands), *line.pipelines[at + 1 :])
                assert not is_confirmed(changed(line, pipelines=pipelines))


@pytest.mark.parametrize(
    "text",
    [
        *("ls $x", 'ls "$x"', "ls $(pwd)", "ls `pwd`", "ls <(pwd)", "if true; then ls; fi", "(ls)", "{ ls; }", "! ls"),
        *(
            "ls <<< x",
            "ls << E\nx\nE",
            "ls {a,b}",
            "for i in a; do ls; done",
            "f() { ls; }",
            "ls $'a'",
            "((1))",
            "ls &",
        ),
        *("ls (", "ls 'a", "ls;;", "A=(1 2)", "[[ a == b ]]", "ls &&", "case a in a) ls;; esac"),
    ],
)
def test_a_line_with_anything_else_is_not_confirmed_whatever_the_first_parser_says(text: str):
    line = parse_line("ls", "")
    assert not is_confirmed(changed(line, text=text))
    pieces = Token("word", text, 0, len(text.encode()))
    assert not is_confirmed(changed(line, text=text, tokens=(pieces,)))


def test_offsets_count_bytes():
    line = parse_line("echo 'é ü'; ls", "")
    assert line.tokens[-1].end == len(line.text.encode())
    confirm(line)
    in_characters = tuple(Token(each.kind, each.text, each.start, each.start + len(each.text)) for each in line.tokens)
    assert not is_confirmed(changed(line, tokens=in_characters))


def test_a_node_of_the_grammar_may_cover_a_newline_but_only_exactly():
    line = parse_line("ls a b", "")
    first, second, third = line.tokens
    newline = Token("newline", "\n", second.start, second.end)
    assert is_confirmed(changed(line, tokens=(first, newline, third)))
    for start, end in ((second.start, third.end), (first.end, second.end), (third.start, third.end)):
        assert not is_confirmed(changed(line, tokens=(first, Token("newline", "\n", start, end), third)))
    assert is_confirmed(changed(line, tokens=(*line.tokens, Token("newline", "\n", 6, 7))))
