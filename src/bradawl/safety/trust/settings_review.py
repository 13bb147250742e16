"""Review of the settings and servers in a project's files. Pure: takes contents, returns findings, loads nothing.

A project may make bradawl stricter and choose how much the model works. On its own it may not allow more, redirect
requests or start a program.
"""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from bradawl.safety.trust.findings import Finding, ProjectSettings, Verdict, canonical

FILE_LIMIT_BYTES: Final = 1_000_000
DEEPEST: Final = 64
"""Levels of nesting that a file may have."""
_MOST_VALUES: Final = 20_000
_SAME: Final[Mapping[str, str]] = {"max_turns": "max_steps", "additional_directories": "add_dirs"}
_PROGRAMS: Final = frozenset(
    {"hooks", "mcp_servers", "mcp", "status_line", "command", "commands", "formatter", "formatters", "lsp", "plugins"}
    | {"enabled_plugins", "extra_known_marketplaces", "notify", "scripts", "setup", "file_suggestion", "agents"}
    | {"tools", "skills", "output_style"}
)
_STARTS: Final = frozenset({"command", "cmd", "run", "exec", "shell", "script", "program"})
_GRANTS_ITSELF: Final = frozenset({"trust", "trusted", "auto_approve", "always_allow", "auto_allow"})
# Parts of names of settings that decide where requests and keys go, or what is asked about.
_NEVER: Final = (
    *("base_url", "baseurl", "api_base", "endpoint", "provider", "models", "proxy", "cert", "ca_file", "ca_bundle"),
    *("ssl", "tls", "insecure", "api_key", "apikey", "secret", "token", "password", "credential", "auth", "helper"),
    *("env", "environ", "kept_variables", "sandbox", "permission_mode", "default_mode", "approval", "yolo", "bypass"),
    *("danger", "skip_", "trust", "enable_all", "enabled_mcp", "auto_approve", "always_allow", "telemetry", "home"),
)
_WHY_NEVER: Final = (
    "no file of a project may set addresses, keys, proxies, certificates, variables, the sandbox, modes or trust"
)
WHY_PROGRAM: Final = "it names programs, and bradawl starts no program because a project's file names it"
_WHY_WIDER: Final = "it would allow more; it takes effect once you trust the folder (`bradawl trust`)"
WHY_UNKNOWN: Final = "it is not a setting that a project's file may have"
"""The reason for an unknown key."""


# ------------------------------------------------------------------ settings


def findings(table: Mapping[str, object], allowed: ProjectSettings) -> tuple[Finding, ...]:
    """A finding on each setting of a project's file, in the order of the file. Takes a table of any depth."""
    if problem := shape_problem(table):
        return (Finding("", "error", problem),)
    found: list[Finding] = []
    for key, value in table.items():
        if canonical(key) == "permissions" and isinstance(value, dict):
            inner = cast("dict[object, object]", value)
            found += [_setting(f"{key}.{each}", said, allowed) for each, said in inner.items()]
        elif key != "$schema":
            found.append(_setting(key, value, allowed))
    return tuple(found)


def _setting(key: str, value: object, allowed: ProjectSettings) -> Finding:
    path = canonical(key)
    name = ".".join(_SAME.get(part, part) for part in path.split("."))
    if check := allowed.untrusted.get(name):
        problem = check(value)
        return Finding(key, "error" if problem else "allow", problem or "a project may set this", name, value)
    if check := allowed.trusted.get(name):
        problem = check(value)
        verdict: Verdict = "error" if problem else "deny"
        return Finding(key, verdict, problem or _WHY_WIDER, name, value, is_for_trust=not problem)
    if any(part in name for part in _NEVER):
        return Finding(key, "deny", _WHY_NEVER, name)
    if name in _PROGRAMS or _names_a_program(value):
        if _grants_itself(value):
            return Finding(key, "deny", "it grants itself trust", name)
        return Finding(key, "ask", WHY_PROGRAM, name, value, is_for_trust=True, is_program=True)
    if _inner_never(value):
        return Finding(key, "deny", _WHY_NEVER, name)
    return Finding(key, "deny", WHY_UNKNOWN, name)


def _names_a_program(value: object) -> bool:
    return any(canonical(key) in _STARTS for key in _keys_in(value))


def _grants_itself(value: object) -> bool:
    return any(canonical(key) in _GRANTS_ITSELF for key in _keys_in(value))


def _inner_never(value: object) -> bool:
    return any(part in canonical(key) for key in _keys_in(value) for part in _NEVER)


def _keys_in(value: object) -> Iterator[str]:
    """The keys at all levels. `shape_problem` has bounded their number and depth."""
    for key, _ in _walk(value):
        if key:
            yield key


def _walk(value: object) -> Iterator[tuple[str, int]]:
    """Each value's key (empty in a list) and depth, without recursion."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if isinstance(one, dict):
            for key, inner in cast("dict[object, object]", one).items():
                yield str(key), depth + 1
                waiting.append((inner, depth + 1))
        elif isinstance(one, list | tuple):
            for inner in cast("list[object]", one):
                yield "", depth + 1
                waiting.append((inner, depth + 1))


def shape_problem(table: object) -> str:
    """Why a table is too deep or too large to be read; empty if it is not."""
    for count, (_, depth) in enumerate(_walk(table)):
        if depth > DEEPEST:
            return f"it is nested more than {DEEPEST} levels deep, so nothing of it counts"
        if count > _MOST_VALUES:
            return f"it has more than {_MOST_VALUES} values, so nothing of it counts"
    return ""


# ------------------------------------------------------------------ files


def review_file(name: str, data: bytes, allowed: ProjectSettings) -> tuple[Finding, ...]:
    """Findings in a `.mcp.json`, or in the Markdown file of a command, an agent or a skill. Never raises."""
    if len(data) > FILE_LIMIT_BYTES:
        return (Finding("", "error", too_large(len(data))),)
    try:
        if name.endswith(".md"):
            from bradawl.safety.trust.instructions_review import judge_prompt_file  # few projects have such files

            return tuple(judge_prompt_file(data.decode("utf-8-sig")))
        return review_servers(decode_table(data.decode("utf-8-sig"), is_toml=False), allowed)
    except (ValueError, RecursionError) as error:
        return (Finding("", "error", f"it can't be read, so nothing of it counts: {one_line_of(error)}"),)


def too_large(size: int) -> str:
    """The reason against a file of this many bytes."""
    return f"it is too large ({size:,} bytes, the limit is {FILE_LIMIT_BYTES:,}), so nothing of it counts"


def one_line_of(error: BaseException) -> str:
    """The message of an error on one line, shortened."""
    return " ".join((str(error) or type(error).__name__).split())[:200]


def review_servers(table: Mapping[str, object], allowed: ProjectSettings) -> tuple[Finding, ...]:
    """Findings in a `.mcp.json`."""
    if problem := shape_problem(table):
        return (Finding("", "error", problem),)
    key = next((key for key in table if canonical(key) == "mcp_servers"), None)
    others = [_setting(other, value, allowed) for other, value in table.items() if other not in (key, "$schema")]
    servers = {} if key is None else table[key]
    if not isinstance(servers, dict):
        return (*others, Finding(str(key), "error", "it must be a table of servers, so nothing of it counts"))
    each = cast("dict[str, object]", servers).items()
    return (*others, *(_server(f"{key}.{name}", server) for name, server in each))


def _server(key: str, server: object) -> Finding:
    if not isinstance(server, dict) or not {"command", "url"} & cast("dict[str, object]", server).keys():
        return Finding(key, "error", "a server has a `command` or a `url`; it is ignored")
    if _grants_itself(cast(object, server)):
        return Finding(key, "deny", "it grants itself trust", key)
    reason = "a server is started or called only after you confirmed its command, arguments, variables and folder"
    return Finding(key, "ask", reason, key, cast(object, server), is_for_trust=True, is_program=True)


# ------------------------------------------------------------------ contents


class Unreadable(ValueError):
    """The content is not that of a settings file."""


def decode_table(text: str, *, is_toml: bool) -> dict[str, object]:
    """The table in a settings file. Raises `ValueError` or `RecursionError` if there is none."""
    if is_toml:
        import tomllib

        return tomllib.loads(text.removeprefix("\ufeff"))
    import json

    decoded: object = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_repeats)
    if not isinstance(decoded, dict):
        raise Unreadable("it must be one JSON object")
    return cast("dict[str, object]", decoded)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON parsers differ in which of two values with one name they take, so a file with both is refused."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise Unreadable("a key is there twice")
    return table
