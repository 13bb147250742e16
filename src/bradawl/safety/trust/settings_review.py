"""What the files that come with a project may say. Pure: takes contents, gives verdicts, loads nothing.

A project may narrow what is allowed and choose the model's work; it may never widen, redirect or start anything on its
own word. Loading follows these verdicts, and `bradawl permissions check` shows them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from bradawl.safety.trust.findings import ORDER, Finding, ProjectSettings, Verdict, canonical

FILE_LIMIT_BYTES: Final = 1_000_000
_DEEPEST: Final = 64
_MOST_VALUES: Final = 20_000
TABLE_NAMES: Final = ("bradawl", "agent")
"""The table below `[tool]`; lists of attacks know the second name."""

_SAME: Final[Mapping[str, str]] = {"max_turns": "max_steps", "additional_directories": "add_dirs"}
_PROGRAMS: Final = frozenset(
    {"hooks", "mcp_servers", "mcp", "status_line", "command", "commands", "formatter", "formatters", "lsp", "plugins"}
    | {"enabled_plugins", "extra_known_marketplaces", "notify", "scripts", "setup", "file_suggestion", "agents"}
    | {"tools", "skills", "output_style"}
)
_STARTS: Final = frozenset({"command", "cmd", "run", "exec", "shell", "script", "program"})
_GRANTS_ITSELF: Final = frozenset({"trust", "trusted", "auto_approve", "always_allow", "auto_allow"})
# Parts of names; whoever sets one of these decides where requests and keys go, or what is asked.
_NEVER: Final = (
    *("base_url", "baseurl", "api_base", "endpoint", "provider", "models", "proxy", "cert", "ca_file", "ca_bundle"),
    *("ssl", "tls", "insecure", "api_key", "apikey", "secret", "token", "password", "credential", "auth", "helper"),
    *("env", "environ", "kept_variables", "sandbox", "permission_mode", "default_mode", "approval", "yolo", "bypass"),
    *("danger", "skip_", "trust", "enable_all", "enabled_mcp", "auto_approve", "always_allow", "telemetry", "home"),
)
_WHY_NEVER: Final = (
    "no file of a project may set addresses, keys, proxies, certificates, variables, the sandbox, modes or trust"
)
_WHY_PROGRAM: Final = "it names programs, and bradawl starts none on the word of a project"
_WHY_WIDER: Final = "it would allow more; it counts once you trust the folder (`bradawl trust`)"
WHY_UNKNOWN: Final = "it is not a setting that a project's file may have"
"""The reason for what means nothing here; a list of what does helps then."""


def judge(file: str, content: object, allowed: ProjectSettings) -> tuple[Verdict, str]:
    """The verdict on a whole file of an untrusted project, and why.

    `file` is named from the project's root; `~/...` is the user's own, `argv` a command line that came from outside.
    `content` is text, bytes, a decoded table, or what is known of a file: `size`, `depth`, `mode`, `commondir`.
    """
    found = judge_file(file, content, allowed)
    verdict = ORDER[max((ORDER.index(one.verdict) for one in found), default=0)]
    worst = [one for one in found if one.verdict == verdict]
    if not worst:
        return "allow", "there is nothing in it that concerns bradawl"
    return verdict, "; ".join(f"`{one.key}`: {one.reason}" if one.key else one.reason for one in worst[:3])


def judge_file(file: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    """Everything a file says, with a verdict on each. Never raises for what is in it."""
    name = "argv" if file == "argv" else file.replace("\\", "/").removeprefix("./").replace(".agent/", ".bradawl/")
    if problem := _described(content):
        return (Finding("", "error", problem),)
    try:
        return _judged(name, content, allowed)
    except (ValueError, RecursionError) as error:
        return (Finding("", "error", f"it can't be read, so nothing of it counts: {_short(error)}"),)


def _judged(file: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    name = file.casefold()
    if name == "argv":
        return _arguments(content)
    if name.startswith(("~", "/")):
        return _users_own(content)
    if ".." in name.split("/"):
        return (Finding("", "deny", "it lies outside the project, so it is not read"),)
    if target := _link_in(content):
        return (Finding("", "deny", f"it is a link to {target}: what leads elsewhere is not read as the project's"),)
    for belongs, judged in _KINDS:
        if belongs(name):
            return tuple(judged(name, content, allowed))
    return (Finding("", "ask", "bradawl reads nothing from it; what others would start because of it is asked about"),)


def _described(content: object) -> str:
    """Why a file can't be read that is only described, or is too large in itself."""
    size, depth = 0, 0
    if isinstance(content, str | bytes):
        size = len(content)
    elif isinstance(content, dict):
        table = cast("dict[object, object]", content)
        size, depth = _number(table.get("size")), _number(table.get("depth"))
    if size > FILE_LIMIT_BYTES:
        return f"it is too large ({size:,} bytes, the limit is {FILE_LIMIT_BYTES:,}), so nothing of it counts"
    return f"it is nested too deeply ({depth} levels), so nothing of it counts" if depth > _DEEPEST else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _link_in(content: object) -> str:
    if not isinstance(content, dict):
        return ""
    table = cast("dict[object, object]", content)
    return next((str(table[key]) for key in ("symlink", "link", "symlink_to", "link_to") if key in table), "")


def _short(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:200]


# ------------------------------------------------------------------ settings


def findings(table: Mapping[str, object], allowed: ProjectSettings) -> tuple[Finding, ...]:
    """The verdict on each setting of a project's file, in its order. Takes any table, however deep."""
    if problem := _shape_problem(table):
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
        return Finding(key, "error" if problem else "allow", problem or "a project may say so", name, value)
    if check := allowed.trusted.get(name):
        problem = check(value)
        verdict: Verdict = "error" if problem else "deny"
        return Finding(key, verdict, problem or _WHY_WIDER, name, value, is_for_trust=not problem)
    if any(part in name for part in _NEVER):
        return Finding(key, "deny", _WHY_NEVER, name)
    if name in _PROGRAMS or _names_a_program(value):
        if _grants_itself(value):
            return Finding(key, "deny", "it grants itself trust", name)
        return Finding(key, "ask", _WHY_PROGRAM, name, value, is_for_trust=True, is_program=True)
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
    """The keys at all levels; their number and depth are bounded by now."""
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


def _shape_problem(table: object) -> str:
    for count, (_, depth) in enumerate(_walk(table)):
        if depth > _DEEPEST:
            return f"it is nested more than {_DEEPEST} levels deep, so nothing of it counts"
        if count > _MOST_VALUES:
            return f"it has more than {_MOST_VALUES} values, so nothing of it counts"
    return ""


# ------------------------------------------------------------------ files by kind


def _settings_file(name: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    found = findings(_table(content, is_toml=name.endswith(".toml")), allowed)
    scripted = [one for one in found if one.name == "model" and str(one.value).strip().startswith("scripted/")]
    if scripted:
        return (*found, Finding("model", "deny", "a project may not put a script in the model's place", "model"))
    return found


def _pyproject(_: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    tools = _table(content, is_toml=True).get("tool")
    tables = cast("dict[str, object]", tools) if isinstance(tools, dict) else {}
    found: list[Finding] = []
    for name in TABLE_NAMES:
        if (own := tables.get(name)) is not None:
            found += _settings_file("", own, allowed)
    return tuple(found)


def _servers_file(_: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    table = _table(content, is_toml=False)
    if problem := _shape_problem(table):
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


def _git(_: str, content: object, __: ProjectSettings) -> tuple[Finding, ...]:
    where = "commondir" in content if isinstance(content, dict) else "gitdir:" in str(content)
    if where:
        return (Finding("", "ask", "trust goes by the real path of the folder, not by the repository it points to"),)
    return (Finding("", "ask", "what git would start because of it is judged with each command"),)


def _variables(_: str, content: object, __: ProjectSettings) -> tuple[Finding, ...]:
    if isinstance(content, dict):
        names = [str(key) for key in cast("dict[object, object]", content)]
    else:
        lines = (line.strip() for line in _text(content).splitlines())
        names = [line.partition("=")[0].strip() for line in lines if "=" in line and not line.startswith("#")]
    reason = "the files of a project never set variables of bradawl; it does not load them"
    return tuple(Finding(name, "deny", reason, name) for name in names)


def _code(_: str, __: object, ___: ProjectSettings) -> tuple[Finding, ...]:
    return (Finding("", "ask", _WHY_PROGRAM, is_for_trust=True, is_program=True),)


def _instructions(_: str, content: object, __: ProjectSettings) -> Iterator[Finding]:
    from bradawl.safety.trust.instructions_review import judge_instructions  # most checks have nothing to do with them

    return judge_instructions(_text(content))


def _prompt_file(_: str, content: object, __: ProjectSettings) -> Iterator[Finding]:
    from bradawl.safety.trust.instructions_review import judge_prompt_file

    return judge_prompt_file(_text(content))


_WITHOUT_VALUE: Final = frozenset(
    {"-c", "--continue", "-y", "--yolo", "--dangerously-skip-permissions", "--trust", "--no-user-tools", "--debug"}
    | {"-v", "--version", "-h", "--help"}
)


def _arguments(content: object) -> tuple[Finding, ...]:
    words = cast("list[object]", content) if isinstance(content, list) else None
    if words is None or not all(isinstance(word, str) for word in words):
        return (Finding("", "error", "arguments are a list of texts"),)
    before = ""
    for word in cast("list[str]", words):
        if before == "--":
            break
        wants_value = before.startswith("-") and "=" not in before and before not in _WITHOUT_VALUE
        if wants_value and word.startswith("-") and word not in ("-", "--"):
            reason = "what stands in the place of a flag's value is never to be read as a flag; write --flag=value"
            return (Finding(word, "deny", reason, word),)
        before = word
    return ()


def _users_own(content: object) -> tuple[Finding, ...]:
    if not isinstance(content, dict) or not isinstance(mode := content.get("mode"), int | str):
        return (Finding("", "allow", "it is the user's own"),)
    bits = mode if isinstance(mode, int) else int(mode, 8)
    if bits & 0o022:
        reason = "others can write to it, so what it allows counts only after `chmod go-w`"
        return (Finding("", "ask", reason),)
    return (Finding("", "allow", "it is the user's own"),)


_Judging = Callable[[str, object, ProjectSettings], "tuple[Finding, ...] | Iterator[Finding]"]
_INSTRUCTIONS: Final = frozenset({"agents.md", "agents.override.md", "claude.md", "gemini.md"})
_KINDS: Final[tuple[tuple[Callable[[str], bool], _Judging], ...]] = (
    (lambda name: name == ".git" or name.startswith(".git/"), _git),
    (lambda name: name.rpartition("/")[2].startswith(".env"), _variables),
    (lambda name: name.rpartition("/")[2] in _INSTRUCTIONS, _instructions),
    (lambda name: name.rpartition("/")[2] in (".mcp.json", "mcp.json"), _servers_file),
    (lambda name: name == "pyproject.toml", _pyproject),
    (lambda name: name.startswith(".bradawl/") and name.endswith((".toml", ".json")), _settings_file),
    (lambda name: name.startswith(".bradawl/") and name.endswith(".md"), _prompt_file),
    (lambda name: name == ".bradawl" or name.startswith(".bradawl/"), _code),
)


# ------------------------------------------------------------------ contents


class _Unreadable(ValueError):
    """Not what such a file holds."""


def decode_table(text: str, *, is_toml: bool) -> dict[str, object]:
    """A settings file's table. Raises `ValueError` or `RecursionError` for what is none."""
    if is_toml:
        import tomllib

        return tomllib.loads(text.removeprefix("\ufeff"))
    import json

    decoded: object = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_repeats)
    if not isinstance(decoded, dict):
        raise _Unreadable("it must be one JSON object")
    return cast("dict[str, object]", decoded)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Which of two values with one name counts differs from reader to reader, so neither does."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _Unreadable("a key is there twice")
    return table


def _table(content: object, *, is_toml: bool) -> dict[str, object]:
    if isinstance(content, str | bytes):
        return decode_table(_text(content), is_toml=is_toml)
    if not isinstance(content, dict):
        raise _Unreadable("it must be a table")
    return {str(key): value for key, value in cast("dict[object, object]", content).items()}


def _text(content: object) -> str:
    if isinstance(content, bytes):
        return content.decode("utf-8-sig")
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and "size" in content:
        return ""
    raise _Unreadable("it must be text")
