"""The command line of `bradawl config`. `--help` imports this module, so it must stay cheap."""

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bradawl.app.command_parser import Parser, UsageError, add_setting, help_formatter, make_texts
from bradawl.app.settings.table import SETTINGS

ACTIONS: Final = {
    "show": "the settings that are not at their defaults, and where each comes from",
    "get": "the value of one setting",
    "set": "set a setting in config.toml, or in the project's file",
    "unset": "remove a setting from config.toml, or from the project's file",
    "edit": "open the file in $VISUAL or $EDITOR, and check it afterwards",
    "path": "the path of config.toml",
    "schema": "the JSON Schema of config.toml, for editors",
}
_HELP: Final = """\
usage: bradawl config ACTION [KEY] [VALUE] [options]

Show and change settings. A key of a table has dots: permissions.allow,
providers.lab.base_url, models."openai/gpt-5.5".effort.

actions:
{actions}

`bradawl config ACTION --help` lists the options of an action.
"""
_ANY_FLAG: Final = "The flags of a run count as well: `bradawl config show --profile work`."
_EXAMPLES: Final = """\
examples:
  bradawl config set model openai/gpt-5.5
  bradawl config set permissions.allow --add "Bash(npm run test:*)"
  bradawl config set max_steps 50 --project
  bradawl config set effort high --profile work"""


def parse_config(words: Sequence[str]) -> dict[str, object] | None:
    """Options of `bradawl config` with the action's name; None if the words are a prompt. Raises `UsageError`."""
    if not words or words[0] in ("-h", "--help"):
        return {"help": True, "help_text": config_help(), "command": "config"}
    action, *rest = words
    if action not in ACTIONS:
        if len(words) > 2 or action.startswith("-"):
            return None
        raise UsageError(_unknown_action(action))
    parser = action_parser(action)
    if {"-h", "--help"} & set(rest):
        return {"help": True, "help_text": parser.format_help()}
    # Values may follow flags: `set permissions.allow --add Edit`.
    options = vars(parser.parse_intermixed_args(rest) if action == "set" else parser.parse_args(rest))
    make_texts(options)
    del options["help"]
    if action == "set":
        _check_set(options)
    return {**options, "command": "config", "action": action}


def config_help() -> str:
    """The help of `bradawl config`."""
    return _HELP.format(actions="\n".join(f"  {name:<8}{text}" for name, text in ACTIONS.items()))


def action_parser(action: str) -> ArgumentParser:
    """The parser of one action."""
    parser = Parser(
        prog=f"bradawl config {action}",
        description=_sentence(ACTIONS[action]),
        epilog={"set": _EXAMPLES, "show": _ANY_FLAG, "get": _ANY_FLAG}.get(action),
        formatter_class=help_formatter,
        add_help=False,
        allow_abbrev=False,
    )
    _ADD_OPTIONS[action](parser)
    parser.add_argument("-h", "--help", action="store_true", help="print this help")
    return parser


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _unknown_action(action: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(action, ACTIONS, 1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return f"`bradawl config` takes {', '.join(ACTIONS)}, not {action!r}{meant}; quote a prompt with more words"


def _check_set(options: Mapping[str, object]) -> None:
    values = options["values"]
    if not values and options["value_json"] is None:
        raise UsageError("`bradawl config set` takes a VALUE: bradawl config set KEY VALUE")


# ------------------------------------------------------------------ options


def _show(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="all settings, also those at their defaults")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _flags_of_a_run(parser)


def _get(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the name of the setting, as in config.toml")
    parser.add_argument("--json", action="store_true", help="print the value as JSON")
    _flags_of_a_run(parser)


def _set(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the name of the setting, as in config.toml")
    parser.add_argument("values", nargs="*", metavar="VALUE", help="its value; a list has one or more")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--add", action="store_true", help="add to the list what is not in it")
    change.add_argument("--remove", action="store_true", help="remove from the list")
    change.add_argument("--json", dest="value_json", metavar="JSON", help="the value as JSON")
    _target(parser)


def _unset(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the name of a setting or table, as in config.toml")
    _target(parser)


def _edit(parser: ArgumentParser) -> None:
    _project(parser.add_mutually_exclusive_group().add_argument)
    add_setting(parser, SETTINGS.rows["cwd"])


def _path(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    _project(which.add_argument)
    which.add_argument(
        "--all", action="store_true", help="all sources of settings, the strongest first, with their state"
    )
    for name in ("cwd", "settings", "profile"):
        add_setting(parser, SETTINGS.rows[name])


def _schema(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--project", action="store_true", help="that of a project's file")
    which.add_argument("--managed", action="store_true", help="that of the administrator's file")


def _target(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    _project(which.add_argument)
    which.add_argument("--profile", dest="in_profile", metavar="NAME", help="in the table [profiles.NAME]")
    add_setting(parser, SETTINGS.rows["cwd"])


def _project(add: Callable[..., object]) -> None:
    add("--project", action="store_true", help="the project's file, .bradawl/config.toml")
    add("--local", action="store_true", help="your own file in the project, .bradawl/config.local.toml")


def _flags_of_a_run(parser: ArgumentParser) -> None:
    for row in SETTINGS.rows.values():
        add_setting(parser, row, help_text=SUPPRESS)


_ADD_OPTIONS: Final[Mapping[str, Callable[[ArgumentParser], None]]] = {
    "show": _show,
    "get": _get,
    "set": _set,
    "unset": _unset,
    "edit": _edit,
    "path": _path,
    "schema": _schema,
}
