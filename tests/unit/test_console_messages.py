"""Messages of the command line: wrapped by words at a terminal, one line each in a pipe."""

import io

import pytest
from cli_world import Terminal
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.app.progress import Progress
from bradawl.app.text_layout import cells, fitted
from bradawl.core.deltas import Notice
from bradawl.core.events import Live

COMMANDS = (
    ["-p", "hello", "--modle", "x"],
    ["-p", "hello", "-m", "nowhere/x"],
    ["-p", "hello", "-m", "openai/gpt-5.5"],
    ["-p", "hello"],
    ["models"],
    ["config", "get", "nonsense"],
    ["config", "set", "max_steps", "none"],
    ["config", "set", "max_steps", "7"],
    ["login", "nowhere", "--with-key-stdin"],
    ["logout"],
    ["trust", "--list"],
    ["doctor"],
)


def printed(argv, home, stream, columns=None):
    """All that a command prints to streams of this kind."""
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", "BRADAWL_MODLE": "x"}
    environ |= {"COLUMNS": str(columns)} if columns else {}
    out, err = stream(), stream()
    run(argv, environ, Console(io.StringIO(), out, err, environ))
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", [40, 80])
def test_no_word_is_broken_at_a_terminal(user_home, argv, columns):
    (user_home / ".config" / "bradawl" / "config.toml").write_text("")
    for shown, whole in zip(
        printed(argv, user_home, Terminal, columns), printed(argv, user_home, io.StringIO), strict=True
    ):
        long = [word for word in whole.split() if cells(word) > columns - 12]
        words = set(whole.split())
        broken = [word for word in shown.split() if word not in words and not any(word in each for each in long)]
        numbers = [word for word in broken if not word.strip(",.").isdigit()]  # free space of disks
        assert max(map(cells, shown.splitlines()), default=0) <= columns
        assert numbers == [], shown


@pytest.mark.parametrize("argv", COMMANDS[:3], ids=" ".join)
def test_an_error_is_one_line_in_a_pipe(user_home, argv):
    (user_home / ".config" / "bradawl" / "config.toml").write_text("")
    _, err = printed(argv, user_home, io.StringIO)
    assert [line.partition(":")[0] for line in err.splitlines()] == ["bradawl"]


def test_a_warning_during_a_run_is_wrapped_at_a_terminal_only():
    text = "the window of this model is short and " * 4
    for is_watched in (True, False):
        stream = io.StringIO()
        Progress(stream, width=40, is_watched=is_watched).emit(Live("main", -1, Notice(text)))
        lines = stream.getvalue().splitlines()
        assert " ".join(lines).split() == f"note: {text}".split()
        assert (max(map(cells, lines)) <= 40) == is_watched == (len(lines) > 1)


@given(st.text(st.sampled_from("ab 日-\n"), max_size=120), st.integers(12, 60))
def test_a_fitted_text_keeps_its_words_and_the_lines_that_fit(text, width):
    lines = fitted(text, width).split("\n")
    assert max(map(cells, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(line in lines for line in text.split("\n") if cells(line) <= width)
