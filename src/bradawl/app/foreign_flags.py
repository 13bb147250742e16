"""Flags of Claude Code that its SDKs and its users pass, and that bradawl has no setting for. None has no answer.

A flag is accepted where leaving it out changes nothing, with a warning where something that it asks for is not done,
and refused where the run would then be less safe, or another one, than was asked for. `--help` imports this module.
"""

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

_PREFIX: Final = "foreign:"


def _never(_: str) -> bool:
    return False


class ForeignFlag(NamedTuple):
    """One flag."""

    names: tuple[str, ...]
    takes_value: bool = True
    warning: str = ""
    """What is not done."""
    refusal: str = ""
    """Why the run can't begin, and what to do instead."""
    asks_nothing: Callable[[str], bool] = _never
    """Whether leaving the flag out does what this value asks for."""

    @property
    def key(self) -> str:
        """The name of the option."""
        return f"{_PREFIX}{self.names[0]}"


def _is_empty_json(value: str) -> bool:
    return value.replace(" ", "") in ("", "{}", '{"mcpServers":{}}')


def _is_all_sources(value: str) -> bool:
    return {"user", "project"} <= {each.strip() for each in value.split(",")}


FLAGS: Final = (
    # Nothing to do: bradawl always prints what it asks for, or has nothing that it could change.
    ForeignFlag(("--verbose",), takes_value=False),
    ForeignFlag(("--debug-to-stderr", "-d2e"), takes_value=False),
    ForeignFlag(("--include-hook-events",), takes_value=False),
    ForeignFlag(("--strict-mcp-config",), takes_value=False),
    # Something is not done, and the run is no less safe.
    ForeignFlag(("--no-session-persistence",), False, "the session is saved all the same"),
    ForeignFlag(("--setting-sources",), True, "the settings of the user and of the project are read as always",
                asks_nothing=_is_all_sources),
    ForeignFlag(("--mcp-config",), True, "MCP servers are not used", asks_nothing=_is_empty_json),
    ForeignFlag(("--agents",), True, "sub-agents are bradawl's own", asks_nothing=_is_empty_json),
    ForeignFlag(("--plugin-dir",), True, "plugins are not loaded"),
    ForeignFlag(("--betas",), True, "no beta feature of a provider is asked for"),
    ForeignFlag(("--task-budget",), True, "the model is not told of a budget of tokens; --max-budget-usd is a limit"),
    ForeignFlag(("--thinking",), True, "how much the model thinks is set with --effort",
                asks_nothing=lambda value: value == "adaptive"),
    ForeignFlag(("--max-thinking-tokens",), True, "how much the model thinks is set with --effort"),
    ForeignFlag(("--thinking-display",), True, "reasoning is printed as the provider sends it"),
    # The run would be less safe, or not the one that was asked for.
    ForeignFlag(("--agent",), refusal="there are no agents to choose from; --append-system-prompt adds rules"),
    ForeignFlag(("--resume-session-at",), refusal="a session is continued at its end; `bradawl undo --to` goes back"),
    ForeignFlag(("--resume-drops-turn",), refusal="a session is continued at its end; `bradawl undo --to` goes back"),
    ForeignFlag(("--session-mirror",), False, refusal="bradawl does not send its log to a store of the program that "
                "starts it; --resume continues a session from its own"),
)  # fmt: skip # two lines for each flag


FOREIGN_SWITCHES: Final = tuple(name for flag in FLAGS if not flag.takes_value for name in flag.names)
"""Their names that take no value."""


def add_foreign_flags(parser: ArgumentParser) -> None:
    """Add the flags to a parser, without a line in its help."""
    for flag in FLAGS:
        if flag.takes_value:
            parser.add_argument(*flag.names, dest=flag.key, action="append", help=SUPPRESS)
        else:
            parser.add_argument(*flag.names, dest=flag.key, action="store_const", const=[""], help=SUPPRESS)


def take_foreign_flags(options: dict[str, object]) -> tuple[list[str], str]:
    """Remove the flags from the options. Returns the warnings, and why the run can't begin, empty if it can."""
    warnings: list[str] = []
    refusal = ""
    for flag in FLAGS:
        values = cast("list[str] | None", options.pop(flag.key, None)) or []
        if all(flag.asks_nothing(value) for value in values):
            continue
        if flag.warning:
            warnings.append(f"{flag.names[0]}: {flag.warning}")
        if flag.refusal:
            refusal = refusal or f"{flag.names[0]} is not possible: {flag.refusal}"
    return warnings, refusal


_TOOLS: Final[Mapping[str, str]] = {
    "Agent": "agent",
    "Bash": "bash",
    "BashOutput": "bash_output",
    "Edit": "edit_file",
    "Glob": "glob",
    "Grep": "grep",
    "KillShell": "bash_kill",
    "MultiEdit": "multi_edit",
    "Read": "read_file",
    "Task": "agent",
    "TodoWrite": "todo_write",
    "WebFetch": "web_fetch",
    "Write": "write_file",
}
"""bradawl's names of tools."""


def translate_values(options: dict[str, object]) -> None:
    """Replace values that mean the same under another name here.

    An empty `--tools` is none. The SDKs pass an empty `--system-prompt` where none was chosen.
    """
    tools = options.get("tools")
    if isinstance(tools, str):
        names = [name.strip() for name in tools.split(",") if name.strip()]
        options["tools"] = ",".join(_TOOLS.get(name, name) for name in names) or "none"
    if options.get("input_format") == "stream-json" and options.get("system_prompt") == "":
        options["system_prompt"] = None
    # In a run without a user that is what the mode does.
    if options.get("permission_mode") == "dontAsk" and options.get("headless"):
        options["permission_mode"], options["permission_prompt_tool"] = "default", None
