"""The command line: what was typed, turned into options. Imports nothing that `--help` does not need."""

import gc
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from bradawl import __version__
from bradawl.app.console import Console, OutputError

if TYPE_CHECKING:
    from bradawl.app.launch import Build

USAGE_EXIT: Final = 2
INTERRUPTED_EXIT: Final = 130
OUTPUT_EXIT: Final = 74

_EPILOG: Final = """\
Models are named [PROVIDER/]MODEL. A provider's key comes from PROVIDER_API_KEY, its URL from PROVIDER_BASE_URL:
  OPENAI_API_KEY=... bradawl -m openai/MODEL
  OPENROUTER_API_KEY=... bradawl -m openrouter/VENDOR/MODEL
  bradawl -m ollama/MODEL
Every setting is also an environment variable (BRADAWL_MODEL, BRADAWL_MAX_STEPS, ...) and a key in
~/.config/bradawl/config.toml. `bradawl demo` shows a whole run without a key or network.

Exit codes of -p: 0 done, 1 error, 2 wrong usage or settings, 4 a limit was reached, 5 refused by the model,
74 done but not saved, 75 try again later, 130 interrupted, 143 terminated."""


class UsageError(Exception):
    """The command line can't be understood; the text is for the user."""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `bradawl --help`")


def _parser() -> ArgumentParser:
    parser = _Parser(
        prog="bradawl",
        description="A coding agent for the terminal. Without -p it talks with you.",
        usage="bradawl [options] [PROMPT]\n       bradawl -p PROMPT [options]\n       bradawl demo",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("words", nargs="*", metavar="PROMPT", help="the first prompt")
    add("-p", "--print", "--prompt", dest="print", nargs="?", const="", metavar="PROMPT", help=_PRINT_HELP)
    add("-m", "--model", metavar="[PROVIDER/]MODEL", help="the model that does the work")
    add("-c", "--continue", dest="continues", action="store_true", help="continue the latest session of this folder")
    add("-r", "--resume", metavar="ID", help="continue a session")
    add("-C", "--cd", dest="cwd", metavar="DIR", help="work in DIR")
    add("-y", "--yolo", "--dangerously-skip-permissions", action="store_true", default=None, help=_YOLO_HELP)
    add("--base-url", metavar="URL", help="where the provider is, up to and without /chat/completions")
    add("--max-steps", "--max-turns", metavar="N", help="stop after N model requests (with -p: 500)")
    add("--max-output-tokens", metavar="N", help="the longest reply")
    add("--context-window", metavar="N", help="tokens that fit into the model")
    add("--effort", metavar="LEVEL", help="how hard the model thinks: none, minimal, low, medium, high, xhigh, max")
    add("--output-format", metavar="text|json", help="with -p: the answer, or one JSON object")
    add("-v", "--version", action="store_true", help="print the version")
    add("-h", "--help", action="store_true", help="print this help")
    return parser


_PRINT_HELP: Final = "run one prompt and print the answer; what is piped in is appended, and alone it is the prompt"
_YOLO_HELP: Final = "run every tool without asking: only in a sandbox or for a project you trust"


def main(argv: Sequence[str] | None = None) -> int:
    """Run bradawl with these arguments (default: those of the process) and give back the exit code."""
    if argv is None:
        # Nearly all that a start makes is kept; looking through it again and again costs a tenth of the start.
        gc.set_threshold(50_000, 20, 50)
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return run(arguments, os.environ, _standard_console())
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    except OutputError as error:
        sys.stderr.write(f"bradawl: {error}\n")
        return OUTPUT_EXIT


def run(argv: Sequence[str], environ: Mapping[str, str], console: Console, build: "Build | None" = None) -> int:
    """`main` with its surroundings handed in; `build` replaces the real composition root."""
    try:
        options = parse(argv)
    except UsageError as error:
        return _wrong_usage(str(error), console, as_json=_asks_for_json(argv, environ))
    if options.get("help"):
        console.answer(_parser().format_help())
        return 0
    if options.get("version"):
        console.answer(f"bradawl {__version__}\n")
        return 0
    if options.get("demo"):
        from bradawl.app.launch import launch_demo

        return launch_demo(console, environ)
    from bradawl.app.launch import launch

    return launch(options, environ, console, as_json=_asks_for_json(argv, environ), build=build)


def parse(argv: Sequence[str]) -> dict[str, object]:
    """Options by name; those that are settings are named like them. Raises `UsageError`."""
    if argv and argv[0] == "demo" and not argv[1:]:
        return {"demo": True}
    options = vars(_parser().parse_args([_as_text(argument) for argument in argv]))
    if options["continues"] and options["resume"] is not None:
        raise UsageError("-c and -r each name a session; use one of them")
    words = " ".join(options.pop("words"))
    printed = options.pop("print")
    options["headless"] = printed is not None
    parts = (part for part in ("" if printed == "-" else printed or "", words) if part)
    options["prompt"] = " ".join(parts)
    if options["output_format"] is not None and printed is None and not options["help"] and not options["version"]:
        raise UsageError("--output-format is for runs with -p")
    return options


def _as_text(argument: str) -> str:
    """Bytes that are not UTF-8 came as lone surrogates, which nothing later can encode."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _asks_for_json(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """What is wanted even if the rest can't be understood."""
    wanted = environ.get("BRADAWL_OUTPUT_FORMAT", "")
    for index, argument in enumerate(argv):
        if argument == "--output-format" and index + 1 < len(argv):
            wanted = argv[index + 1]
        elif argument.startswith("--output-format="):
            wanted = argument.partition("=")[2]
    return wanted.strip().lower() == "json"


def _wrong_usage(message: str, console: Console, *, as_json: bool) -> int:
    console.say(f"bradawl: {message}")
    if as_json:
        from bradawl.app.result import result_of_failure

        console.answer(result_of_failure(message, USAGE_EXIT).to_json())
    return USAGE_EXIT


def _standard_console() -> Console:
    """The process's streams; a missing one is replaced, and nothing is ever unencodable."""
    import io

    streams = []
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            stream = io.StringIO()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
        streams.append(stream)
    return Console(streams[0], streams[1], streams[2], os.environ)
