"""The command line: parses arguments into options and starts the run. Imports nothing that `--help` does not need."""

import gc
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from bradawl._version import __version__
from bradawl.app.bytecode import keep_no_cut_bytecode
from bradawl.app.command_parser import (
    Parser,
    UsageError,
    add_setting,
    help_formatter,
    make_texts,
    wrapping_formatter,
)
from bradawl.app.console import Console, OutputError
from bradawl.app.foreign_flags import add_foreign_flags, take_foreign_flags, translate_values
from bradawl.app.settings.table import SETTINGS, SettingsTable
from bradawl.safety.import_path import leave_out_working_directory

if TYPE_CHECKING:
    from bradawl.app.launch import Build

USAGE_EXIT: Final = 2
INTERRUPTED_EXIT: Final = 130
OUTPUT_EXIT: Final = 74

_USAGE: Final = """\
bradawl [options] [PROMPT]
       bradawl -p PROMPT [options]
       bradawl login [PROVIDER] [--list]
       bradawl logout [PROVIDER | --all]
       bradawl models [PROVIDER] [--json]
       bradawl doctor [--json]
       bradawl config ACTION [KEY] [VALUE]
       bradawl permissions check [CMD | --stdin]
       bradawl trust [DIR] [--remove] [--list]
       bradawl undo [SESSION] [--to STEP] [--dry-run]
       bradawl completion bash|zsh|fish
       bradawl demo"""
_EPILOG: Final = """\
`bradawl login` stores a key and chooses a model. Models are named
[PROVIDER/]MODEL. A variable wins over a stored key: PROVIDER_API_KEY, and
PROVIDER_BASE_URL for the URL:
  OPENAI_API_KEY=... bradawl -m openai/MODEL
  OPENROUTER_API_KEY=... bradawl -m openrouter/VENDOR/MODEL
  bradawl -m ollama/MODEL
Nearly every setting is also an environment variable (BRADAWL_MODEL,
BRADAWL_MAX_STEPS, ...) and a key in ~/.config/bradawl/config.toml:
`bradawl config` shows and changes them. `bradawl models` lists what is set up,
what answers and what it costs, `bradawl doctor` what is missing;
`bradawl demo` shows a whole run without a key or network.

Exit codes of -p: 0 done, 1 error, 2 wrong usage or settings, 3 no sandbox
though one is required, 4 a limit was reached, 5 refused: by the model, or it
gave up on a call that needed a user, 73 done but a file was not written to
/tmp, 74 done but not saved, or the answer could not be written, 75 try again
later, 130 interrupted, 143 terminated."""


COMMANDS: Final = {
    "models": "List the providers that are set up, whether they answer, and the windows and prices of their models.",
    "doctor": "Check everything that a run needs, and say how to fix what is missing.",
    "config": "Show and change settings.",
    "trust": "Trust a project: what its own files allow takes effect, as the files are now.",
    "login": "Store the key of a provider, test it, and choose the default model.",
    "logout": "Remove the stored key of a provider.",
    "completion": "Print a script that completes commands, flags and values in bash, zsh or fish.",
    "undo": "Undo what the last session of this folder changed: files, conversation or both. No model is needed.",
}


def main_parser(table: SettingsTable = SETTINGS) -> ArgumentParser:
    """The parser of a command line without a sub-command. Its settings are those of the table."""
    parser = Parser(
        prog="bradawl",
        description="A coding agent for the terminal. Without -p it talks with you.",
        usage=_USAGE,
        epilog=_EPILOG,
        formatter_class=help_formatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("words", nargs="*", metavar="PROMPT", help="the first prompt")
    add("-p", "--print", "--prompt", dest="print", nargs="?", const="", metavar="PROMPT", help=_PRINT_HELP)
    add("-c", "--continue", dest="continues", action="store_true", help="continue the latest session of this folder")
    add("-r", "--resume", metavar="ID", help="continue a session")
    add("--fork-session", action="store_true", help="with -c and -r: continue a copy, and leave the session as it is")
    for row in table.rows.values():
        add_setting(parser, row)
    add_foreign_flags(parser)
    add("-v", "--version", action="store_true", help="print the version")
    add("-h", "--help", action="store_true", help="print this help")
    return parser


_PRINT_HELP: Final = "run one prompt and print the answer; what is piped in is appended, and alone it is the prompt"


def main(argv: Sequence[str] | None = None) -> int:
    """Run bradawl with these arguments (default: those of the process) and return the exit code."""
    if argv is None:
        # Nearly all objects made at the start are kept; collecting garbage meanwhile costs a tenth of the start.
        gc.set_threshold(50_000, 20, 50)
        leave_out_working_directory()
        keep_no_cut_bytecode()
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return run(arguments, os.environ, _standard_console())
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    except OutputError as error:
        sys.stderr.write(f"bradawl: {error}\n")
        return OUTPUT_EXIT
    finally:
        if argv is None:
            # All objects end with the process: a last search for cycles would take a seventh of a run.
            gc.freeze()


def run(argv: Sequence[str], environ: Mapping[str, str], console: Console, build: "Build | None" = None) -> int:
    """`main` with environment and streams as parameters; `build` replaces the composition root."""
    if argv[:1] == ["__complete"]:
        from bradawl.app.completion.answers import print_answer

        return print_answer(argv[1:], environ, console)
    try:
        options = parse(argv)
    except UsageError as error:
        return _wrong_usage(str(error), console, as_json=_asks_for_json(argv, environ))
    if options.get("help"):
        console.answer(str(options.get("help_text") or main_parser().format_help()))
        return 0
    if options.get("version"):
        console.answer(f"bradawl {__version__}\n")
        return 0
    if options.get("demo"):
        from bradawl.app.launch import launch_demo

        return launch_demo(console, environ)
    if options.get("command") == "completion":
        from bradawl.app.completion.scripts import script_of

        console.answer(script_of(str(options["shell"]), all_parsers(), COMMANDS))
        return 0
    if options.get("command"):
        from bradawl.app.launch import launch_command

        return launch_command(options, environ, console)
    from bradawl.app.launch import launch

    return launch(options, environ, console, as_json=_asks_for_json(argv, environ), build=build)


def parse(argv: Sequence[str], table: SettingsTable = SETTINGS) -> dict[str, object]:
    """Options by name. Settings have their names in the table. Raises `UsageError`."""
    if argv and argv[0] == "demo" and not argv[1:]:
        return {"demo": True}
    if argv[:1] == ["config"]:
        from bradawl.app.config.options import parse_config

        if (options := parse_config(argv[1:])) is not None:
            return options
    elif argv and argv[0] in COMMANDS and _is_command(argv[0], argv[1:]):
        return _parse_command(argv[0], argv[1:])
    if argv[:1] == ["permissions"] and (not argv[1:] or argv[1] in ("check", "-h", "--help")):
        return _parse_check(argv[1:])
    _refuse_slash_command(argv)
    _refuse_misspelt_command(argv)
    options = vars(main_parser(table).parse_args(argv))
    make_texts(options)
    if options["continues"] and options["resume"] is not None:
        raise UsageError("-c and -r each name a session; use one of them")
    words = " ".join(options.pop("words"))
    printed = options.pop("print")
    options["headless"] = printed is not None or options["input_format"] == "stream-json"
    parts = (part for part in ("" if printed == "-" else printed or "", words) if part)
    options["prompt"] = " ".join(parts)
    if not options["help"] and not options["version"]:
        _check_headless(options)
    return options


_OF_HEADLESS_RUNS: Final = (
    *("output_format", "json_schema", "output_last_message"),
    *("include_partial_messages", "replay_user_messages", "permission_prompt_tool"),
)


def _check_headless(options: dict[str, object]) -> None:
    """Raises `UsageError` for flags that have no meaning together."""
    options["flag_warnings"], refusal = take_foreign_flags(options)
    if refusal:
        raise UsageError(refusal)
    translate_values(options)
    for name in _OF_HEADLESS_RUNS:
        if options[name] is not None and not options["headless"]:
            raise UsageError(f"--{name.replace('_', '-')} is for runs with -p")
    is_continued = options["continues"] or options["resume"] is not None
    if options["fork_session"] and not is_continued:
        raise UsageError("--fork-session copies a session: name it with -r, or use -c for the latest")
    if options["session_id"] is not None and is_continued and not options["fork_session"]:
        raise UsageError("--session-id is for a new session; with -c and -r it needs --fork-session")
    if options["input_format"] == "stream-json" and options["prompt"]:
        raise UsageError("with --input-format stream-json the prompts come from stdin; leave the prompt out")


_TAKE_A_VALUE: Final = ("--base-url", "-m", "--model", "-C", "--cd", "--to", "--force", "--add-dir")


def _is_command(command: str, rest: Sequence[str]) -> bool:
    """Whether this is a command. With further plain words it is a prompt: `bradawl models are slow today`."""
    values = {index + 1 for index, word in enumerate(rest) if word in _TAKE_A_VALUE}
    if command == "undo":  # never a prompt: an agent must not act because a word was mistyped
        return True
    plain = sum(not word.startswith("-") for index, word in enumerate(rest) if index not in values)
    if command in ("login", "logout") and _names_a_key(rest):
        raise UsageError(
            "other users can read the arguments of a program, so a key is no argument: run `bradawl login PROVIDER` "
            "and paste it when you are asked, or pipe it in; replace this key"
        )
    return plain <= (1 if command in _TAKE_A_NAME else 0)


_TAKE_A_NAME: Final = ("completion", "login", "logout", "models", "trust")


def _names_a_key(words: Sequence[str]) -> bool:
    """Whether a word could be a key. As a part of a prompt it would be sent to a model."""
    from bradawl.app.login.key_text import looks_like_key

    return any(looks_like_key(word) for word in words)


_MEANT: Final = {
    "redo": "`bradawl undo --redo` takes the last undo back",
    "rewind": "`bradawl undo --list` lists the steps, `bradawl undo --to STEP` goes back",
    "diff": "`bradawl undo --dry-run` shows what the last step changed, `bradawl -c -p /diff` all changes",
}
"""Slash commands that are not commands of the program, and what does the same."""


def _refuse_slash_command(argv: Sequence[str]) -> None:
    """Raise `UsageError` for a slash command without its slash: as a prompt the agent would act on it."""
    words = [word for word in argv[1:] if not word.startswith("-")]
    if argv and argv[0] in _MEANT and all(re.fullmatch(r"[\d.]+|code|talk|both", word) for word in words):
        raise UsageError(f"there is no command {argv[0]}: {_MEANT[argv[0]]}; quote it with more words for a prompt")


def _refuse_misspelt_command(argv: Sequence[str]) -> None:
    """Raise `UsageError` for a single word that is nearly a command: as a prompt it would cost something."""
    if len(argv) != 1 or argv[0].startswith("-") or not argv[0].isalpha() or argv[0] in (*COMMANDS, "permissions"):
        return
    from difflib import get_close_matches

    if near := get_close_matches(argv[0].lower(), (*COMMANDS, "permissions", "demo"), 1, 0.8):
        raise UsageError(f"there is no command {argv[0]}; did you mean {near[0]}? Use more words for a prompt")


def all_parsers() -> dict[tuple[str, ...], ArgumentParser]:
    """The parsers of all command lines, by the words of their command."""
    from bradawl.app.config.options import ACTIONS, action_parser

    own = {(name,): _command_parser(name) for name in COMMANDS if name != "config"}
    config = {("config", action): action_parser(action) for action in ACTIONS}
    return {(): main_parser(), **own, **config, ("permissions", "check"): _check_parser(), ("demo",): Parser("demo")}


def _command_parser(command: str) -> ArgumentParser:
    parser = Parser(
        prog=f"bradawl {command}",
        description=COMMANDS[command],
        epilog=_COMPLETION if command == "completion" else None,
        formatter_class=help_formatter if command == "completion" else wrapping_formatter,
        add_help=False,
        allow_abbrev=False,
    )
    if command == "trust":
        _trust_options(parser)
    elif command == "undo":
        _undo_options(parser)
    elif command in ("login", "logout"):
        _login_options(parser, command)
    elif command == "completion":
        parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    else:
        _model_options(parser, command)
    if command not in ("completion", "login", "logout"):
        add_setting(parser, SETTINGS.rows["cwd"])
    parser.add_argument("-h", "--help", action="store_true", help="print this help")
    return parser


_COMPLETION: Final = """\
Put the line of your shell into its start file:
  bash  eval "$(bradawl completion bash)"       in ~/.bashrc
  zsh   eval "$(bradawl completion zsh)"        in ~/.zshrc, after compinit
  fish  bradawl completion fish | source        in ~/.config/fish/config.fish"""


def _parse_command(command: str, rest: Sequence[str]) -> dict[str, object]:
    parser = _command_parser(command)
    if command == "completion" and (not rest or {"-h", "--help"} & set(rest)):
        return {"help": True, "help_text": parser.format_help(), "command": command}
    options = vars(parser.parse_args(rest))
    make_texts(options)
    if options.pop("help"):
        return {"help": True, "help_text": parser.format_help()}
    if command == "undo":
        _check_undo_options(options)
    return {**options, "command": command}


def _model_options(parser: ArgumentParser, command: str) -> None:
    if command == "models":
        parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="only this one, with all its models")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_setting(parser, SETTINGS.rows["model"])
    add_setting(parser, SETTINGS.rows["base_url"])


def _login_options(parser: ArgumentParser, command: str) -> None:
    add = parser.add_argument
    add("provider", nargs="?", metavar="PROVIDER", help="the provider; without it you are asked")
    if command == "logout":
        add("--all", action="store_true", help="remove all stored keys")
        return
    add("--with-key-stdin", action="store_true", help="read the key from stdin, which is a pipe, and ask nothing")
    add("-m", "--model", metavar="MODEL", help="the default model, instead of one from the provider's list")
    add("--base-url", metavar="URL", help="the address of the provider, which may be a new one")
    add("--in-file", action="store_true", help="store the key in credentials.toml, also where there is a keyring")
    add("--no-test", action="store_true", help="store the key without sending it anywhere")
    add("--list", action="store_true", help="print where the key of each provider comes from")
    add("--json", action="store_true", help="with --list: print one JSON object")


def _trust_options(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the project; the one you are in if not given")
    parser.add_argument("--below", action="store_true", help="all folders below DIR are trusted as well")
    parser.add_argument("--show", action="store_true", help="only show what would take effect, change nothing")
    parser.add_argument("--remove", action="store_true", help="stop trusting it")
    parser.add_argument("--list", action="store_true", help="print the folders that are trusted")


def _step_name(text: str) -> str:
    """Raises `ArgumentTypeError` for an empty or other text that names no step, such as a variable that is not set."""
    if not re.fullmatch(r"[1-9]\d*(?:\.[1-9]\d*)?", text):
        raise ArgumentTypeError(f"a step is a number such as 3 or 3.2 (see --list), not {text!r}")
    return text


def _given(text: str) -> str:
    """Raises `ArgumentTypeError` for an empty text: one without a session or path has another meaning."""
    if not text.strip():
        raise ArgumentTypeError("it is empty; a variable may not be set")
    return text


def _undo_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session", nargs="?", type=_given, metavar="SESSION", help="the session; the latest of this folder"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--to", type=_step_name, metavar="STEP", help="go back to before this step, such as 3 or 3.2 (see --list)"
    )
    where.add_argument("--list", action="store_true", help="list the steps and what they changed")
    where.add_argument("--sessions", action="store_true", help="list the sessions of this folder that changed files")
    where.add_argument("--redo", action="store_true", help="take the last undo back")
    parser.add_argument("--dry-run", action="store_true", help="show what would be restored, change nothing")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--code-only", action="store_true", help="restore files, leave the conversation")
    part.add_argument("--talk-only", action="store_true", help="take the conversation back, leave the files")
    parser.add_argument(
        "--force", action="append", type=_given, metavar="PATH", help="restore this file although it changed since"
    )
    parser.add_argument("--keep-conflicts", action="store_true", help="leave all files alone that changed since")
    add_setting(parser, SETTINGS.rows["add_dirs"])


_OF_NO_USE: Final = {
    "list": ("dry_run", "code_only", "talk_only", "force", "keep_conflicts"),
    "sessions": ("session", "dry_run", "code_only", "talk_only", "force", "keep_conflicts"),
    "redo": ("code_only", "talk_only"),
    "talk_only": ("force", "keep_conflicts"),
}
"""Options of undo that have no meaning with another one."""


def _check_undo_options(options: Mapping[str, object]) -> None:
    """Raises `UsageError` for two options that can't both be honoured."""
    for name, others in _OF_NO_USE.items():
        for other in others:
            if options[name] and options[other]:
                one, two = ("SESSION" if each == "session" else f"--{each.replace('_', '-')}" for each in (other, name))
                raise UsageError(f"{one} has no effect with {two}; leave one of them out")


_CHECK: Final = """\
Print the decision on a command, and the reason, as JSON. Nothing is run.

With --stdin each line is a case,
{"id": ..., "kind": "shell" | "path" | "config", "input": ...}, and is answered
by a line {"id", "decision", "reason"}; decisions are allow, ask, deny and
error. Cases are judged without your rules, in a workspace /ws and a home folder
/home/u, which need not exist."""


def _check_parser() -> ArgumentParser:
    parser = Parser(
        prog="bradawl permissions check",
        description=_CHECK,
        formatter_class=help_formatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("shell_line", nargs="?", metavar="CMD", help="one line of bash, in quotes")
    parser.add_argument(
        "--connect", metavar="HOST", help="judge a connection of a command to HOST or HOST:PORT instead"
    )
    parser.add_argument("--stdin", action="store_true", help="judge the cases on stdin")
    parser.add_argument("--workspace", metavar="DIR", help="the workspace (without: this folder, or /ws)")
    parser.add_argument("--home", metavar="DIR", help="the home folder (without: yours, or /home/u)")
    parser.add_argument("--mode", metavar="MODE", help="default, accept-edits, plan, auto or bypass")
    parser.add_argument("-h", "--help", action="store_true", help="print this help")
    return parser


def _parse_check(rest: Sequence[str]) -> dict[str, object]:
    parser = _check_parser()
    options = vars(parser.parse_args(list(rest[1:] if rest[:1] == ["check"] else rest)))
    if options.pop("help") or not rest:
        return {"help": True, "help_text": parser.format_help()}
    if [options["shell_line"] is not None, options["connect"] is not None, options["stdin"]].count(True) != 1:
        raise UsageError("permissions check takes either one command, in quotes, or --connect HOST, or --stdin")
    return {**options, "command": "permissions"}


def _asks_for_json(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether JSON is wanted, also if the rest of the command line is wrong."""
    row = SETTINGS.rows["output_format"]
    wanted = environ.get(row.variable, "")
    for index, argument in enumerate(argv):
        if argument == row.flag and index + 1 < len(argv):
            wanted = argv[index + 1]
        elif argument.startswith(f"{row.flag}="):
            wanted = argument.partition("=")[2]
    return wanted.strip().lower() in ("json", "stream-json")


def _wrong_usage(message: str, console: Console, *, as_json: bool) -> int:
    console.say(f"bradawl: {message}")
    if as_json:
        from bradawl.app.exit_code import result_of_failure

        console.answer(result_of_failure(message, USAGE_EXIT).to_json())
    return USAGE_EXIT


def _standard_console() -> Console:
    """The process's streams. A missing one is replaced, and characters that can't be encoded are."""
    import io

    streams = []
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            stream = io.StringIO()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
        streams.append(stream)
    return Console(streams[0], streams[1], streams[2], os.environ)
