"""Slash commands: one function each with typed arguments, alike at the terminal and in headless runs."""

import io
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from cli_world import World

from bradawl.app.cli import parse
from bradawl.app.commands.builtin import builtin_commands
from bradawl.app.console import Console
from bradawl.app.launch import launch
from bradawl.app.slash_commands import (
    CommandError,
    CommandRegistry,
    CommandResult,
    Rest,
    SlashCommand,
    command,
    is_command,
)
from bradawl.core.errors import SessionError

# ------------------------------------------------------------------ one function is a command


@command("count", "number")
def count(session: Any, what: str, times: int = 1) -> str:
    """Count the letters of a word.

    TIMES multiplies the count.
    """
    return f"{what}: {len(what) * times} in {session.mode}"


def with_count() -> CommandRegistry:
    """bradawl's own commands and `count`."""
    return CommandRegistry((*builtin_commands().commands, count))


def start(world: World, *argv: str, stdin: str = "") -> int:
    """Run the program with the command `count` added."""
    console = Console(io.StringIO(stdin), world.stdout, world.stderr, world.environ, patience_s=0.05)
    as_json = "json" in argv
    options = parse(argv)
    return launch(options, world.environ, console, as_json=as_json, build=world.build, load_commands=with_count)


def test_a_function_is_a_command_at_the_terminal_with_its_docstring_as_help(world):
    assert start(world, stdin="/help\n/help count\n/count word 2\n/NUMBER word\n/count\n/count word many\n/exit\n") == 0
    lines = world.out.splitlines()
    assert any(line.split() == ["/count", "Count", "the", "letters", "of", "a", "word"] for line in lines)
    place = lines.index("/count WHAT [TIMES]")
    assert lines[place + 1 : place + 5] == [
        "Count the letters of a word.",
        "",
        "TIMES multiplies the count.",
        "Also: /number.",
    ]
    assert lines[place + 5 : place + 9] == [
        "word: 8 in default",
        "word: 4 in default",
        "/count needs WHAT: /count WHAT [TIMES]",
        "/count: times must be a whole number, not 'many'.",
    ]


def test_the_same_function_is_a_command_of_a_headless_run(world):
    assert start(world, "-p", "/count word 3", stdin="what is piped in belongs to a prompt") == 0
    assert (world.out, world.err, world.model.requests) == ("word: 12 in default\n", "", [])


def test_a_headless_command_gives_one_json_object(world):
    assert start(world, "-p", "/count word", "--output-format", "json") == 0
    result = json.loads(world.out)
    assert (result["result"], result["is_error"], result["exit_code"]) == ("word: 4 in default", False, 0)
    assert (result["num_turns"], result["reason"]) == (0, "completed")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/count word many", "/count: times must be a whole number, not 'many'."),
        ("/nonsense", "There is no command /nonsense; /help lists those there are."),
        ("/exit", "/exit works only in a conversation, not with -p."),
    ],
)
def test_a_headless_command_that_can_not_run_is_a_usage_error(world, line, message):
    assert start(world, "-p", line, "--output-format", "json") == 2
    assert world.err == f"bradawl: {message}\n"
    assert json.loads(world.out)["errors"] == [message]
    assert world.model is None or world.model.requests == []


def test_piped_input_and_paths_are_prompts_and_no_commands(world):
    assert start(world, "-p", stdin="/count word") == 0
    assert start(world, "-p", "/etc/hosts is wrong") == 0
    assert world.out == "Done.\nDone.\n"


def test_the_status_of_a_continued_session_needs_no_request(world):
    assert start(world, "-p", "hello") == 0
    session_id = world.store.latest()
    world.stdout = io.StringIO()
    assert start(world, "-c", "-p", "/status") == 0
    assert f"session       {session_id}\n" in world.out
    assert "\nused          1 step" in world.out


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("/help", "help"),
        ("/?", "help"),
        ("/QUIT ", "exit"),
        ("/exit", "exit"),
        ("/new", "clear"),
        ("/model", "model"),
        ("/status", "status"),
        ("/context json", "context"),
        ("/MODE Accept_Edits", "mode"),
        ("/plan", "plan"),
        ("/jobs end job-1", "jobs"),
    ],
)
def test_a_command_begins_with_a_slash_and_ignores_case(line, name):
    assert is_command(line)
    assert builtin_commands().find(line.split()[0]).name == name


@pytest.mark.parametrize("line", ["fix /help", "/etc/hosts is wrong", "hello", ""])
def test_texts_without_a_command_name_and_paths_are_prompts(line):
    assert not is_command(line)


@pytest.mark.parametrize("line", ["/nonsense", "/", "/effort much", "/mode fast", "/plan a thing", "/clear x"])
async def test_an_unknown_command_or_argument_is_an_error(line):
    assert is_command(line)
    with pytest.raises(CommandError):
        await builtin_commands().run(None, line, user_is_there=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/statsu", "There is no command /statsu; did you mean /status? /help lists those there are."),
        ("/MODLE gpt", "There is no command /MODLE; did you mean /model? /help lists those there are."),
        ("/xyzzy", "There is no command /xyzzy; /help lists those there are."),
        ("/context nonsense", "There is no form 'nonsense' of /context; there is only json."),
    ],
)
async def test_a_misspelt_command_or_argument_is_told_what_there_is(line, message):
    with pytest.raises(CommandError) as refused:
        await builtin_commands().run(None, line, user_is_there=True)
    assert str(refused.value) == message


def test_two_commands_can_not_share_a_name():
    with pytest.raises(ValueError, match="/number"):
        CommandRegistry((count, SlashCommand(count.function, ("number",))))


def test_every_built_in_command_has_a_help_of_one_line():
    for each in builtin_commands().commands:
        assert each.summary and len(each.summary) < 90, each.name


# ------------------------------------------------------------------ arguments


@command("try")
async def try_all(
    session: Any,
    level: Literal["low", "very-high"],
    size: float | None = None,
    flag: bool = False,
    text: Rest = "",
) -> CommandResult:
    """Take one argument of each kind."""
    return CommandResult(repr((level, size, flag, text)))


async def run_try(line: str) -> str:
    return (await CommandRegistry((try_all,)).run(None, line, user_is_there=True)).text


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("/try low", ("low", None, False, "")),
        ("/try VERY_HIGH 2", ("very-high", 2.0, False, "")),
        ("/try  veryhigh  1.5  true  all the  rest", ("very-high", 1.5, True, "all the  rest")),
    ],
)
async def test_arguments_have_the_types_of_their_annotations(line, values):
    assert await run_try(line) == repr(values)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/try", "/try needs LEVEL: /try LEVEL [SIZE] [FLAG] [TEXT]"),
        ("/try medium", "There is no level 'medium' of /try; there are low, very-high."),
        ("/try low much", "/try: size must be a number, not 'much'."),
        ("/try low 1 maybe", "/try: flag must be true or false, not 'maybe'."),
    ],
)
async def test_an_invalid_argument_is_named_with_its_valid_values(line, message):
    with pytest.raises(CommandError) as raised:
        await run_try(line)
    assert str(raised.value) == message


async def test_too_many_arguments_are_refused_and_aliases_of_a_choice_are_accepted():
    @command("pick")
    def pick(session: Any, colour: Annotated[Literal["red"], ("scarlet", "red")]) -> str:
        """Pick a colour."""
        return colour

    registry = CommandRegistry((pick,))
    assert (await registry.run(None, "/pick Scarlet", user_is_there=False)).text == "red"
    with pytest.raises(CommandError, match=r"/pick takes only /pick COLOUR; see /help pick\."):
        await registry.run(None, "/pick red blue", user_is_there=False)


def test_a_keyword_only_parameter_of_a_command_is_a_type_error():
    with pytest.raises(TypeError, match="positional"):

        @command("bad")
        def bad(session: Any, *, option: str = "") -> str:
            """Never."""
            return option


# ------------------------------------------------------------------ functions that can't be commands


def no_docstring(session: Any) -> str:
    return ""


def nothing_taken() -> str:
    """Never."""
    return ""


def a_list(session: Any, numbers: list[int]) -> str:
    """Never."""
    return ""


def a_path(session: Any, path: Path) -> str:
    """Never."""
    return ""


def rest_first(session: Any, text: Rest, times: int) -> str:
    """Never."""
    return ""


def numbers_as_choices(session: Any, level: Literal[1, 2]) -> str:
    """Never."""
    return ""


def unknown_name(session: Any, value: "Gone") -> str:  # type: ignore[name-defined]  # noqa: F821 - that is the point
    """Never."""
    return ""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_docstring, "/bad has no docstring"),
        (nothing_taken, "the first parameter of a command is the session"),
        (a_list, "numbers is a list[int]; an argument is a str, int"),
        (a_path, "an argument is a str, int"),
        (rest_first, "text takes the rest of the line, so it must be the last one"),
        (numbers_as_choices, "or a Literal of texts"),
        (unknown_name, "an annotation is not defined where the command is: name 'Gone'"),
    ],
)
def test_a_function_that_no_line_can_call_is_refused_where_it_is_defined(function, said):
    with pytest.raises(TypeError) as refusal:
        command("bad")(function)
    assert said in str(refusal.value)


@pytest.mark.parametrize("names", [("My Cmd",), ("/sl",), ("",), ("Big",), ("fine", "not fine"), (), (a_path,)])
def test_a_name_that_can_not_be_typed_is_refused(names):
    with pytest.raises(TypeError, match=r"can't be typed|with parentheses"):
        command(*names)


async def test_an_argument_may_be_a_choice_or_a_number():
    @command("show")
    def show(session: Any, count: Literal["all"] | int) -> str:
        """Show some."""
        return repr(count)

    registry = CommandRegistry((show,))
    assert (await registry.run(None, "/show 5", user_is_there=True)).text == "5"
    assert (await registry.run(None, "/show ALL", user_is_there=True)).text == "'all'"
    with pytest.raises(CommandError, match="/show: count must be all or a whole number, not 'some'"):
        await registry.run(None, "/show some", user_is_there=True)


async def test_the_rest_of_the_line_may_be_left_out():
    @command("say")
    def say(session: Any, text: Rest | None = None) -> str:
        """Say it."""
        return repr(text)

    registry = CommandRegistry((say,))
    assert (await registry.run(None, "/say", user_is_there=True)).text == "None"
    assert (await registry.run(None, "/say all  of it", user_is_there=True)).text == "'all  of it'"


def test_the_help_lines_of_long_names_are_columns():
    @command("a-very-long-name")
    def long(session: Any) -> str:
        """Take long."""
        return ""

    lines = CommandRegistry((count, long)).help_lines(user_is_there=True)
    assert list(lines) == ["/count            Count the letters of a word", "/a-very-long-name Take long"]


# ------------------------------------------------------------------ commands that fail


@command("crash")
async def crash(session: Any, how: Literal["key", "session", "none"] = "key") -> Any:
    """Fail."""
    if how == "session":
        raise SessionError("The session is broken.")
    return None if how == "none" else {}["gone"]


def start_with_crash(world: World, *argv: str, stdin: str = "") -> int:
    console = Console(io.StringIO(stdin), world.stdout, world.stderr, world.environ, patience_s=0.05)
    registry = CommandRegistry((*builtin_commands().commands, crash))
    as_json = "json" in argv
    options = parse(argv)
    return launch(options, world.environ, console, as_json=as_json, build=world.build, load_commands=lambda: registry)


def test_a_command_that_fails_does_not_end_the_conversation(world):
    lines = "/crash\n/crash session\n/crash none\n/status\n/exit\n"
    assert start_with_crash(world, stdin=lines) == 0
    shown = world.out + world.err
    assert "/crash failed: KeyError: 'gone' (details in " in shown
    assert "The session is broken." in shown
    assert "/crash failed: it returned NoneType, and not a str or a CommandResult." in shown
    assert "\nused " in shown.split("it returned NoneType")[1]
    assert "Traceback" not in shown


def test_a_headless_command_that_fails_is_an_error_and_not_wrong_usage(world):
    assert start_with_crash(world, "-p", "/crash", "--output-format", "json") == 1
    assert "/crash failed: KeyError: 'gone'" in json.loads(world.out)["errors"][0]
