"""`bradawl --help` agrees with the commands and with the exit codes."""

import io
import re

import pytest

from bradawl.app import exit_code as codes
from bradawl.app.cli import COMMANDS, main_parser, parse, run
from bradawl.app.console import Console

HELP = main_parser().format_help()
USAGE = HELP.partition("\n\n")[0]
LINES = re.findall(r"bradawl (\w+(?: check)?)(.*)$", USAGE, re.MULTILINE)


def test_the_usage_has_a_line_for_each_command():
    assert {command for command, _ in LINES} == {*COMMANDS, "permissions check", "demo"}


@pytest.mark.parametrize(("command", "options"), [line for line in LINES if line[0] != "demo"])
def test_the_usage_names_options_that_the_command_has(command, options):
    text = str(parse([*command.split(), "--help"])["help_text"])
    for flag in re.findall(r"--[\w-]+", options):
        assert f" {flag} " in text or f" {flag}\n" in text, flag
    for name in re.findall(r"\b[A-Z]{3,}\b", options):
        assert name in text, name


def test_the_help_lists_the_exit_codes():
    (listed,) = re.findall(r"Exit codes of -p: (.*)\.\s*$", HELP, re.DOTALL)
    named = {int(code) for code in re.findall(r"(?:^|, )(\d+) \w", " ".join(listed.split()))}
    first = {codes.OK, codes.ERROR, codes.USAGE, codes.NO_SANDBOX, codes.LIMIT, codes.REFUSED}
    assert named == {*first, codes.NOT_WRITTEN, codes.NOT_SAVED, codes.TRY_AGAIN, codes.CANCELLED, codes.TERMINATED}


def test_the_help_says_when_a_refused_call_is_a_failure():
    assert "5 refused: by the model, or it gave up on a call that needed a user" in " ".join(HELP.split())


@pytest.mark.parametrize("prompt", ["/help", "/help undo"])
def test_the_slash_commands_are_listed_where_no_model_is_set_up(tmp_path, prompt):
    out, err = io.StringIO(), io.StringIO()
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    code = run(["-p", prompt, "-C", str(tmp_path)], environ, Console(io.StringIO(), out, err, environ))
    assert (code, err.getvalue()) == (0, "") and "/undo" in out.getvalue()
