"""The table of settings, where a new one is added: each row has its flag, environment variable, file key and help.

Flags, environment variables, keys of files, what project and managed files may hold, `--help` and the table in the
README derive from it. A plain setting is one row; its value is the `Settings` field of that name, or is in
`Settings.values`. `--help` imports this module, so it must stay cheap.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from bradawl.app.foreign_flags import FOREIGN_SWITCHES
from bradawl.app.settings.values import (
    AMOUNT,
    COUNT,
    EFFORTS,
    PROSE,
    RULES,
    SWITCH,
    TEXT,
    TEXTS,
    VARIABLE_NAMES,
    ValueKind,
    one_of,
)

if TYPE_CHECKING:
    from bradawl.safety.trust.findings import ProjectSettings

LISTS: Final = (TEXTS, RULES, VARIABLE_NAMES)
"""Kinds of which each source adds entries."""


_COMMAND_SWITCHES: Final = frozenset(
    {"-c", "--continue", "--fork-session", "-v", "--version", "-h", "--help", *FOREIGN_SWITCHES}
)
"""Flags without a value that are not settings."""


class Setting(NamedTuple):
    """One row. By default it can be given as a variable and in the user's file, and a project may not set it."""

    name: str
    """In options, variables and files. With a dot: a key of a table in files, as `permissions.allow`."""
    kind: ValueKind
    help: str = ""
    """What the setting says, for the README and, unless `flag_help` is given, for `--help`."""
    flags: tuple[str, ...] = ()
    """A switch needs no value; the flag of one that is on by default turns it off."""
    metavar: str = ""
    default: object = None
    has_variable: bool = True
    is_in_file: bool = True
    """The user's `config.toml` may hold it."""
    is_in_managed_file: bool = False
    """The administrator's `managed.toml` may hold it, and wins over every other source there."""
    project_may_set: Literal["no", "yes", "if trusted"] = "no"
    is_plain: bool = True
    """The value is that of the strongest source. False: special code combines the sources."""
    flag_help: str = ""
    """What the flag does, for `--help`, where the setting itself says something else: a flag that switches it off."""

    @property
    def variable(self) -> str:
        """The environment variable; empty if it has none."""
        return f"BRADAWL_{self.name.upper()}" if self.has_variable else ""

    @property
    def is_managed_only(self) -> bool:
        """The administrator alone may set it."""
        return self.is_in_managed_file and not (self.flags or self.has_variable or self.is_in_file)

    @property
    def flag(self) -> str:
        """The name of the option in messages: `-m/--model`."""
        if not self.flags:
            return f"the option {self.name}"
        long = next(flag for flag in self.flags if flag.startswith("--"))
        return long if self.flags[0] == long else f"{self.flags[0]}/{long}"

    def problem(self, value: object) -> str:
        """Why a project's file may not have this value; empty if it may.

        Unlike variables, files have types: a number in quotes is not a number there.
        """
        from bradawl.core.errors import SettingsError

        try:
            parsed = self.kind.parse(value, self.name)
        except SettingsError:
            parsed = None
        is_typed = parsed is not None and isinstance(value, str) == isinstance(parsed, str)
        return "" if is_typed else f"it must be {self.kind.form}"


class SettingsTable:
    """Rows by name, and the keys that each kind of file may have."""

    def __init__(self, rows: Sequence[Setting]) -> None:
        """The rows must be valid: `table_check` finds mistakes in them, which a start does not look for."""
        self.rows: Mapping[str, Setting] = {row.name: row for row in rows}
        self.variables: Mapping[str, str] = {row.variable: row.name for row in rows if row.has_variable}
        """Names of settings by their environment variables."""

    def with_rows(self, *rows: Setting) -> "SettingsTable":
        """A table with further rows."""
        return SettingsTable((*self.rows.values(), *rows))

    def file_keys(self) -> frozenset[str]:
        """The settings that the user's file may hold."""
        return frozenset(row.name for row in self.rows.values() if row.is_in_file)

    def managed_keys(self) -> frozenset[str]:
        """The settings that the administrator's file may hold."""
        return frozenset(row.name for row in self.rows.values() if row.is_in_managed_file)

    def switches(self) -> frozenset[str]:
        """All flags of the command line that take no value."""
        return _COMMAND_SWITCHES.union(*(row.flags for row in self.rows.values() if row.kind is SWITCH))

    @cached_property
    def project_settings(self) -> "ProjectSettings":
        """The settings that a project's file may hold."""
        from bradawl.safety.trust.findings import ProjectSettings  # loads msgspec

        rows = self.rows.values()
        return ProjectSettings(
            {row.name: row.problem for row in rows if row.project_may_set == "yes"},
            {row.name: row.problem for row in rows if row.project_may_set == "if trusted"},
        )


def _parse_mode(value: object, place: str) -> object:
    from bradawl.app.settings.permission_values import parse_mode  # loads msgspec

    return parse_mode(value, place)


def _parse_sandbox(value: object, place: str) -> object:
    from bradawl.app.settings.permission_values import parse_sandbox  # loads msgspec

    return parse_sandbox(value, place)


def _parse_percents(value: object, place: str) -> object:
    from bradawl.app.settings.compaction_values import parse_percents  # loads msgspec

    return parse_percents(value, place)


def _parse_kept_results(value: object, place: str) -> object:
    from bradawl.app.settings.compaction_values import parse_kept_results  # loads msgspec

    return parse_kept_results(value, place)


_PERCENTS: Final = ValueKind(
    _parse_percents,
    "three rising percentages such as 50,70,90",
    {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 100}, "minItems": 3, "maxItems": 3},
        ]
    },
)
_KEPT_RESULTS: Final = ValueKind(_parse_kept_results, "a whole number of at least 0", {"type": "integer", "minimum": 0})
# The words are repeated here, because `--help` may not load the modules that define them; a test compares them.
_MODE: Final = ValueKind(
    _parse_mode, "a permission mode", {"type": "string", "enum": ["default", "accept-edits", "plan", "auto", "bypass"]}
)
_SANDBOX: Final = ValueKind(
    _parse_sandbox, "required, auto or off", {"type": "string", "enum": ["required", "auto", "off"]}
)

ROWS: Final = (
    # the model
    Setting("model", TEXT, "the model that does the work",
            flags=("-m", "--model"), metavar="[PROVIDER/]MODEL", project_may_set="yes", is_plain=False),
    Setting("base_url", TEXT, "address of the selected provider, for example http://127.0.0.1:8000/v1",
            flags=("--base-url",), metavar="URL", is_plain=False),
    Setting("fallback_model", TEXT, "the model that takes over when the first one stays overloaded",
            flags=("--fallback-model",), metavar="[PROVIDER/]MODEL", is_plain=False),
    Setting("small_model", TEXT, "the model of sub-agents that only explore, and of summaries",
            flags=("--small-model",), metavar="[PROVIDER/]MODEL", is_plain=False),
    Setting("context_window", COUNT, "tokens that fit into the model, where the server does not say",
            flags=("--context-window",), metavar="N", project_may_set="if trusted", is_plain=False),
    Setting("max_output_tokens", COUNT, "tokens of the longest reply", flags=("--max-output-tokens",), metavar="N"),
    Setting("effort", one_of(*EFFORTS), f"how hard the model thinks: {', '.join(EFFORTS)}",
            flags=("--effort",), metavar="LEVEL", project_may_set="yes", is_plain=False),
    # the run
    Setting("cwd", TEXT, "the folder to work in",
            flags=("-C", "--cd"), metavar="DIR", is_in_file=False, is_plain=False),
    Setting("profile", TEXT, "use the settings in the table [profiles.NAME] of config.toml as well",
            flags=("--profile",), metavar="NAME", is_plain=False),
    Setting("settings", TEXT, "further settings for this run: a file like config.toml, or JSON text",
            flags=("--settings",), metavar="FILE|JSON", has_variable=False, is_in_file=False, is_plain=False),
    Setting("max_steps", COUNT, "stop a turn after N steps (with -p: 500, else no limit)",
            flags=("--max-steps", "--max-turns"), metavar="N", project_may_set="yes"),
    Setting("auto_compact", SWITCH,
            "compact the conversation when it fills the model's window",
            flags=("--no-auto-compact",), default=True,
            flag_help="leave it to you (/compact) to compact the conversation when it fills the model's window"),
    Setting("compact_at", _PERCENTS,
            "percent of the window (without the reply's share) from which long results are shortened, the old part is "
            "summarised, and all but the latest is reduced",
            flags=("--compact-at",), metavar="P,P,P", default=(50, 70, 90)),
    Setting("keep_tool_results", _KEPT_RESULTS,
            "keep the last N results of tools whole and shorten older ones, also while there is room",
            flags=("--keep-tool-results",), metavar="N"),
    Setting("output_format", one_of("text", "json", "stream-json"),
            "with -p: print the answer, one JSON object, or each event as a line of JSON",
            flags=("--output-format",), metavar="text|json|stream-json", default="text"),
    Setting("input_format", one_of("text", "stream-json"),
            "stream-json: stdin holds messages and requests as lines of JSON; implies -p",
            flags=("--input-format",), metavar="text|stream-json", default="text", has_variable=False,
            is_in_file=False),
    Setting("include_partial_messages", SWITCH, "with stream-json: also print replies while they arrive",
            flags=("--include-partial-messages",), has_variable=False, is_in_file=False),
    Setting("replay_user_messages", SWITCH, "with stream-json: print each message of stdin when its turn begins",
            flags=("--replay-user-messages",), has_variable=False, is_in_file=False),
    Setting("permission_prompt_tool", one_of("stdio"),
            "stdio: the program that started bradawl answers questions, as lines of JSON",
            flags=("--permission-prompt-tool",), metavar="stdio", has_variable=False, is_in_file=False),
    Setting("output_last_message", TEXT, "with -p: write the answer of a completed run to FILE too",
            flags=("-o", "--output-last-message"), metavar="FILE", has_variable=False, is_in_file=False),
    Setting("session_id", TEXT, "the id of the new session",
            flags=("--session-id",), metavar="UUID", has_variable=False, is_in_file=False),
    Setting("max_budget_usd", AMOUNT, "end a run that has cost so many US dollars; the price must be known",
            flags=("--max-budget-usd",), metavar="USD"),
    Setting("json_schema", TEXT, "with -p: the answer is JSON that fits this JSON Schema, or that in FILE",
            flags=("--json-schema",), metavar="FILE|JSON", is_in_file=False, is_plain=False),
    Setting("system_prompt", PROSE, "working rules for the model instead of bradawl's own",
            flags=("--system-prompt",), metavar="TEXT", is_plain=False),
    Setting("system_prompt_file", TEXT, "a file with working rules for the model instead of bradawl's own",
            flags=("--system-prompt-file",), metavar="FILE", is_plain=False),
    Setting("append_system_prompt", PROSE, "further rules for the model, after the working rules",
            flags=("--append-system-prompt",), metavar="TEXT", is_plain=False),
    Setting("append_system_prompt_file", TEXT, "a file with further rules for the model, after the working rules",
            flags=("--append-system-prompt-file",), metavar="FILE", is_plain=False),
    Setting("tools", TEXT,
            "bradawl's own tools to offer: names, all, or default, which with -p leaves out agent, glob, multi_edit, "
            "todo_write, and web_fetch unless a rule allows it a host; none",
            flags=("--tools",), metavar="NAMES", default=""),
    Setting("user_tools", SWITCH,
            "offer tools of the folder `tools` beside config.toml and of installed packages",
            flags=("--no-user-tools",), default=True,
            flag_help="leave out tools of the folder `tools` beside config.toml and of installed packages"),
    Setting("undo", SWITCH, "save what calls change in the workspace, for undo",
            flags=("--no-undo",), default=True,
            flag_help="don't save what calls change in the workspace, so that nothing can be undone"),
    Setting("debug_log", SWITCH, "log the structure of requests and replies, without contents or keys",
            flags=("--debug",), default=False),
    Setting("plain", SWITCH, "talk by plain lines, without a live screen: for screen readers and logs",
            flags=("--plain",), default=False),
    Setting("theme", one_of("auto", "dark", "light", "plain"),
            "colours: dark, light, plain, or auto for the terminal's own background",
            flags=("--theme",), metavar="NAME", default="auto"),
    Setting("notify", one_of("auto", "bell", "off"),
            "tell when a long turn ends or a question waits, while you look elsewhere: by a notice of the terminal, by "
            "its bell, or not", flags=("--notify",), metavar="HOW", default="auto"),
    Setting("headless", SWITCH, "no user can answer questions", default=False, has_variable=False, is_in_file=False),
    # permissions
    Setting("permission_mode", _MODE,
            "what you are asked about: default, accept-edits, plan, auto or bypass; in a sandbox auto if not given",
            flags=("--permission-mode",), metavar="MODE", is_in_managed_file=True, is_plain=False),
    Setting("yolo", SWITCH, "mode bypass: run tools without asking, and without a sandbox unless --sandbox is given",
            flags=("-y", "--yolo", "--dangerously-skip-permissions"), is_plain=False),
    Setting("sandbox", _SANDBOX,
            "run commands in a sandbox: required (exit with 3 if there is none), auto (if there is one), off",
            flags=("--sandbox",), metavar="required|auto|off", is_in_managed_file=True, is_plain=False),
    Setting("allowed_tools", RULES, 'rules for calls that are not asked about, such as "Edit, Bash(npm run test:*)"',
            flags=("--allowed-tools", "--allowedTools"), metavar="RULES", is_in_file=False,
            project_may_set="if trusted", is_plain=False),
    Setting("disallowed_tools", RULES, "rules for calls that are refused",
            flags=("--disallowed-tools", "--disallowedTools"), metavar="RULES", is_in_file=False, is_plain=False),
    Setting("permissions.allow", RULES, "rules for calls that are not asked about",
            has_variable=False, is_in_managed_file=True, project_may_set="if trusted", is_plain=False),
    Setting("permissions.ask", RULES, "rules for calls that are asked about",
            has_variable=False, is_in_managed_file=True, project_may_set="yes", is_plain=False),
    Setting("permissions.deny", RULES, "rules for calls that are refused",
            has_variable=False, is_in_managed_file=True, project_may_set="yes", is_plain=False),
    Setting("forbid_bypass", SWITCH, "nobody may use the mode bypass",
            has_variable=False, is_in_file=False, is_in_managed_file=True, is_plain=False),
    Setting("trust", SWITCH, "trust this project for this run; see `bradawl trust`",
            flags=("--trust",), has_variable=False, is_in_file=False, is_plain=False),
    Setting("safe_mode", SWITCH,
            "leave out what files of the project change: instructions and settings, but for rules that refuse or ask",
            flags=("--safe-mode",), default=False, has_variable=False, is_in_file=False),
    Setting("bare", SWITCH, "the least run: --safe-mode, --no-user-tools and --no-undo",
            flags=("--bare",), default=False, has_variable=False, is_in_file=False),
    # folders, network, variables
    Setting("add_dirs", TEXTS, "a further folder of the workspace; can be given several times",
            flags=("--add-dir",), metavar="DIR", project_may_set="if trusted", is_plain=False),
    # `permissions.additionalDirectories`, as other agents spell it in a project's file
    Setting("permissions.add_dirs", TEXTS, "further folders of the workspace",
            has_variable=False, is_in_file=False, project_may_set="if trusted", is_plain=False),
    Setting("network", TEXTS,
            "a domain that commands may reach without a question: example.org, *.example.net, HOST:PORT, or a preset: "
            "pip, uv, npm, yarn, pnpm, cargo, go, apt, github", flags=("--network",), metavar="DOMAIN",
            is_in_managed_file=True, project_may_set="if trusted", is_plain=False),
    Setting("network_commands", TEXTS,
            'commands that may reach any public host without a question, such as ["npm install *"]',
            is_in_managed_file=True, project_may_set="if trusted", is_plain=False),
    Setting("kept_variables", VARIABLE_NAMES,
            "environment variables that commands see in the sandbox besides the usual ones", is_plain=False),
    Setting("allow_private_fetch", SWITCH, "`web_fetch` may read addresses that are not on the public internet",
            default=False),
    Setting("proxy", TEXT, "proxy for all requests; wins over `HTTPS_PROXY`", default=""),
    Setting("ca_file", TEXT, "file of trusted certificates; wins over `SSL_CERT_FILE`", is_plain=False),
)  # fmt: skip # two lines for each row
SETTINGS: Final = SettingsTable(ROWS)
"""Every setting of bradawl."""
