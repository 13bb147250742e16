"""Other names for the parameters of bradawl's own tools, which models know from other agents. One table for all tools.

A name is translated by its meaning before arguments are checked; schemas do not mention it. A value that would mean
something else here, such as a timeout in milliseconds, is converted, or refused if two readings are possible. Tools of
users keep their own parameters.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from bradawl.core.arguments import Arguments, is_object
from bradawl.core.tools import JsonParams
from bradawl.shaping import parameter_values as values
from bradawl.shaping.json_fitting import as_list, read_json
from bradawl.shaping.parameter_values import AmbiguousValue, Contradiction

Alias = str | Callable[[object], Arguments]
"""The parameter that is meant, or a function from the value to the arguments that are meant; `AmbiguousValue`."""


def _each(names: str, alias: Alias) -> Mapping[str, Alias]:
    return dict.fromkeys(names.split(), alias)


_FILE: Final = _each("path file filepath filename file_name absolute_path target_file notebook_path", "file_path")
_FOLDER: Final = _each("file_path directory dir dir_path folder search_path root target_directory", "path")
_JOB: Final = _each("bash_id shell_id task_id process_id session_id id job", "job_id")
_EDIT: Final = {
    **_FILE,
    **_each("old_str old_text old search search_string", "old_string"),
    **_each("new_str new_text new replace replacement replace_string", "new_string"),
    **_each("allow_multiple all replace_every", "replace_all"),
    **_each("instruction", values.nothing),
    "expected_replacements": values.one_replacement,
}

_ALIASES: Final[Mapping[str, Mapping[str, Alias]]] = {
    "bash": {
        **_each("cmd script shell_command command_line", "command"),
        **_each("timeout_ms timeout_millis timeout_milliseconds", values.milliseconds("timeout")),
        **_each("timeout_s timeout_sec timeout_secs timeout_seconds", "timeout"),
        **_each("background is_background in_background", "run_in_background"),
        **_each("dangerously_disable_sandbox with_escalated_permissions", values.no_if_true),
        "sandbox_permissions": values.no_if_not("use_default"),
        **_each("yield_time_ms max_output_tokens login justification security_risk requires_approval", values.nothing),
        "shell": values.only("bash", "/bin/bash", "sh"),
        **_each("tty pty is_input interactive", values.only(False, "false")),
    },
    "bash_output": {
        **_JOB,
        **_each("timeout_ms wait_ms yield_time_ms", values.milliseconds("wait")),
        **_each("wait_s wait_seconds wait_time timeout_s timeout_seconds", "wait"),
        "timeout": values.seconds("wait"),
        "block": values.wait_if_true,
        **_each("filter max_output_tokens", values.nothing),
    },
    "bash_kill": _JOB,
    "read_file": {
        **_FILE,
        **_each("paths files filenames", "file_paths"),
        **_each("line_offset start_line start line_start first_line start_line_one_indexed", "offset"),
        **_each("n_lines num_lines max_lines line_count lines", "limit"),
        **_each("end_line end line_end last_line end_line_one_indexed_inclusive", values.last_line),
        "view_range": values.view_range,
        "should_read_entire_file": values.nothing,
    },
    "write_file": {
        **_FILE,
        **_each("file_text contents text file_content", "content"),
        **_each("overwrite create create_dirs", values.only(True, "true")),
        "append": values.only(False, "false"),
        "mode": values.only("overwrite", "w", "write"),
    },
    "edit_file": {**_EDIT, "edits": values.only([], "[]")},
    "multi_edit": {**_FILE, **_each("changes replacements", "edits"), "file_path": values.file_of_edits},
    "grep": {
        **_FOLDER,
        **_each("query regex regexp search search_pattern", "pattern"),
        **_each("glob file_pattern include_pattern includes glob_pattern", "include"),
        **_each("file_type filetype lang language", "type"),
        **_each("-A -B -C after before after_context before_context context_lines context_before", values.context),
        **_each("context_after lines_after lines_before", values.context),
        **_each("-U multi_line", "multiline"),
        **_each("head_limit max_results max_matches total_max_matches max_count -m", values.limit),
        **_each("-i ignore_case case_insensitive", values.ignore_case),
        **_each("case_sensitive", values.case_sensitive),
        **_each("-F literal fixed_strings is_literal", values.literal),
        "is_regex": values.is_regex,
        **_each("-w word whole_word word_regexp", values.whole_word),
        **_each("-l names_only files_with_matches", values.names_only),
        **_each("-n -H line_numbers show_line_numbers line_number", values.nothing),
        **_each("offset", values.only(0, "0")),
        **_each("no_ignore hidden include_ignored", values.only(False, "false")),
    },
    "glob": {
        **_FOLDER,
        **_each("glob glob_pattern file_pattern name", "pattern"),
        **_each("limit head_limit max_results", values.nothing),
        **_each("case_sensitive respect_git_ignore respect_gemini_ignore", values.only(True, "true")),
        "include_dirs": values.only(False, "false"),
    },
    "agent": {
        **_each("task instructions message", "prompt"),
        **_each("subagent_type agent_type subagent agent type", "kind"),
        "run_in_background": values.only(False, "false"),
    },
    "ask_user": {"text": "question", "choices": "options"},
    "todo_write": {**_each("todo_list plan items", "todos"), "merge": values.only(False, "false")},
    "web_fetch": {
        **_each("uri href link", "url"),
        **_each("prompt timeout raw", values.nothing),
        "format": values.only("markdown", "text"),
    },
}
_OF_ITEMS: Final[Mapping[str, Mapping[str, Alias]]] = {
    "edits": _EDIT,
    "todos": {
        **_each("step title text task subject", "content"),
        **_each("active_form id priority description", values.nothing),
    },
}
"""For the objects in a list, by the name of the parameter."""
_PLAIN: Final[Mapping[tuple[str, str], Callable[[object], object]]] = {
    ("bash", "command"): values.command_line,
    ("bash", "timeout"): values.in_seconds,
    ("bash_output", "wait"): values.in_seconds,
    ("grep", "output_mode"): values.output_mode,
    ("grep", "path"): values.only_one,
    ("agent", "kind"): values.agent_kind,
    ("ask_user", "options"): values.option_texts,
    ("todos", "status"): values.todo_status,
}
"""How the values of parameters are read, by tool (or list) and parameter."""
_OWN_TOOLS: Final = "bradawl.tools"
"""Where the parameters of each of bradawl's own tools are defined, in a module of its name."""
_FOLDER_NAMES: Final = frozenset({"workdir", "cwd", "working_directory", "working_dir", "directory", "dir_path"})


class _Given(msgspec.Struct):
    """The arguments found so far, with the names that gave them."""

    found: Arguments
    by: dict[str, str]

    def add(self, name: str, meant: Arguments) -> None:
        for key, value in meant.items():
            if key == values.CONTEXT and key in self.found:
                value = max(values.number(value), values.number(self.found[key]))
            elif key in self.found and self.found[key] not in (value, None) and value is not None:
                raise Contradiction(f"{self.by[key]} and {name} mean the same and differ; give one of them")
            elif key in self.found and value is None:
                continue
            self.found[key], self.by[key] = value, name


def translated(tool: str, arguments: Arguments, params: type[msgspec.Struct] | JsonParams, cwd: str = "") -> Arguments:
    """The arguments under the names of the tool's own parameters; the same object if nothing is translated.

    `cwd` is the working directory. Raises `AmbiguousValue` where two names of one parameter have different values, and
    for a value that would mean something else here.
    """
    if isinstance(params, JsonParams) or tool not in _ALIASES or params.__module__ != f"{_OWN_TOOLS}.{tool}":
        return arguments
    own = [field.encode_name for field in msgspec.structs.fields(params)]
    given = _spread(arguments, own) if tool in ("ask_user", "multi_edit") else arguments
    found = _translated(tool, given, own, _ALIASES[tool], cwd)
    if tool == "grep":
        found = values.with_pattern_flags(found)
    elif tool == "read_file":
        found = values.with_last_line(found)
    return arguments if found == arguments else found


def _translated(
    tool: str, arguments: Arguments, own: Iterable[str], aliases: Mapping[str, Alias], cwd: str
) -> Arguments:
    given, own = _Given({}, {}), frozenset(own)
    for name, value in sorted(arguments.items(), key=lambda item: item[0] not in own):
        given.add(name, _meant(tool, name, value, own, aliases, cwd))
    return given.found


def _meant(
    tool: str, name: str, value: object, own: frozenset[str], aliases: Mapping[str, Alias], cwd: str
) -> Arguments:
    plain = name if name in own else _snake(name)
    if plain not in own:
        if tool == "bash" and plain in _FOLDER_NAMES:
            return values.own_folder(name, value, cwd)
        alias = aliases.get(plain, name)
        if not isinstance(alias, str):
            return _refused_by_name(alias, name, value, own)
        plain = alias if alias in own else name
    if tool == "read_file" and plain == "file_path" and values.is_list(value):
        plain = "file_paths"
    if plain in _OF_ITEMS and (items := _items(value)):
        return {plain: [_item(plain, each) for each in items]}
    read = _PLAIN.get((tool, plain))
    return {plain: value if read is None or value is None else read(value)}


def _refused_by_name(alias: Callable[[object], Arguments], name: str, value: object, own: frozenset[str]) -> Arguments:
    """What the value means. Raises `AmbiguousValue`; names that mean a parameter the tool lacks stay as they are."""
    if value is None:
        return {}
    try:
        meant = alias(value)
    except AmbiguousValue as error:
        raise AmbiguousValue(f"{name}: {error}") from None
    return meant if all(key in own or key.startswith("/") for key in meant) else {name: value}


def several_edits(tool: str, arguments: Arguments) -> Arguments | None:
    """The arguments for `multi_edit`, if those for `edit_file` are a list of edits; else None."""
    alias = _ALIASES["multi_edit"]
    named = [name for name in arguments if _snake(name) == "edits" or alias.get(_snake(name)) == "edits"]
    others = {name for name in arguments if _EDIT.get(_snake(name), _snake(name)) in ("old_string", "new_string")}
    if tool != "edit_file" or len(named) != 1 or not _items(arguments[named[0]]) or any(arguments[o] for o in others):
        return None
    others |= {name for name in arguments if _snake(name) == "replace_all" and not arguments[name]}
    return {name: value for name, value in arguments.items() if name not in others}


_ITEM_FIELDS: Final = {
    "edits": ("file_path", "old_string", "new_string", "replace_all"),
    "todos": ("content", "status"),
}


def _items(value: object) -> list[object]:
    """The objects in a list, also in one written as JSON text; empty if it is none."""
    items = as_list(value)
    return items if all(is_object(read_json(item, "{")) for item in items) else []


def _item(parameter: str, item: object) -> object:
    item = read_json(item, "{")
    if not is_object(item):
        return item
    return _translated(parameter, item, _ITEM_FIELDS[parameter], _OF_ITEMS[parameter], "")


def _spread(arguments: Arguments, own: list[str]) -> Arguments:
    """Arguments that other agents give once for all items of a list, or in a list of one, where the tool has them."""
    if "question" in own:
        return values.one_question(arguments)
    names = [name for name in arguments if _snake(name) == "file_path" or _FILE.get(_snake(name)) == "file_path"]
    items = _items(arguments.get("edits"))
    if len(names) != 1 or not items:
        return arguments
    spread = [
        {"file_path": arguments[names[0]], **item} if is_object(item) and not _names_file(item) else item
        for item in items
    ]
    return {**{name: value for name, value in arguments.items() if name != names[0]}, "edits": spread}


def _names_file(item: Arguments) -> bool:
    return any(_snake(name) == "file_path" or _snake(name) in _FILE for name in item)


def _snake(name: str) -> str:
    """The name in the spelling of the table: `filePath` and `--file-path` as `file_path`; `-A` as it is."""
    if re.fullmatch("-.", name):
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("-"))
    return words.replace("-", "_").lower()
