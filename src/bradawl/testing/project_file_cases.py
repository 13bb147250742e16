"""Cases about files of a project: a verdict on the settings of a file, given its content, without the file.

A content may be text, bytes, a decoded table, or a description of a file by `size`, `depth`, `mode`, `commondir` or
`symlink`. The file `argv` is a command line.
"""

from collections.abc import Callable, Iterator, Set
from typing import Final, cast

from bradawl.safety.trust.findings import ORDER, Finding, ProjectSettings, Verdict
from bradawl.safety.trust.instructions_review import judge_instructions, judge_prompt_file
from bradawl.safety.trust.settings_review import (
    DEEPEST,
    FILE_LIMIT_BYTES,
    WHY_PROGRAM,
    Unreadable,
    decode_table,
    findings,
    one_line_of,
    review_servers,
    too_large,
)

_TABLE_NAMES: Final = ("bradawl", "agent")
"""The tables below `[tool]` of pyproject.toml; lists of attacks use the second name."""


def verdict_on_file(
    file: str, content: object, allowed: ProjectSettings, switches: Set[str] = frozenset()
) -> tuple[Verdict, str]:
    """The verdict on a whole file of an untrusted project, and the reason.

    `file` is relative to the project's root; `~/...` belongs to the user. `switches` are flags without a value, for
    the file `argv`.
    """
    found = _arguments(content, switches) if file == "argv" else judge_file(file, content, allowed)
    verdict = ORDER[max((ORDER.index(one.verdict) for one in found), default=0)]
    worst = [one for one in found if one.verdict == verdict]
    if not worst:
        return "allow", "there is nothing in it that concerns bradawl"
    return verdict, "; ".join(f"`{one.key}`: {one.reason}" if one.key else one.reason for one in worst[:3])


def judge_file(file: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    """A finding on everything a file sets. Never raises."""
    name = file.replace("\\", "/").removeprefix("./").replace(".agent/", ".bradawl/")
    if problem := _described(content):
        return (Finding("", "error", problem),)
    try:
        return _judged(name, content, allowed)
    except (ValueError, RecursionError) as error:
        return (Finding("", "error", f"it can't be read, so nothing of it counts: {one_line_of(error)}"),)


def _judged(file: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    name = file.casefold()
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
    """Why a file of this size or depth can't be read; empty if it can."""
    size, depth = 0, 0
    if isinstance(content, str | bytes):
        size = len(content)
    elif isinstance(content, dict):
        table = cast("dict[object, object]", content)
        size, depth = _number(table.get("size")), _number(table.get("depth"))
    if size > FILE_LIMIT_BYTES:
        return too_large(size)
    return f"it is nested too deeply ({depth} levels), so nothing of it counts" if depth > DEEPEST else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _link_in(content: object) -> str:
    if not isinstance(content, dict):
        return ""
    table = cast("dict[object, object]", content)
    return next((str(table[key]) for key in ("symlink", "link", "symlink_to", "link_to") if key in table), "")


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
    for name in _TABLE_NAMES:
        if (own := tables.get(name)) is not None:
            found += _settings_file("", own, allowed)
    return tuple(found)


def _servers_file(_: str, content: object, allowed: ProjectSettings) -> tuple[Finding, ...]:
    return review_servers(_table(content, is_toml=False), allowed)


def _git(_: str, content: object, __: ProjectSettings) -> tuple[Finding, ...]:
    where = "commondir" in content if isinstance(content, dict) else "gitdir:" in str(content)
    if where:
        return (Finding("", "ask", "trust belongs to the real path of the folder, not to the repository it points to"),)
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
    return (Finding("", "ask", WHY_PROGRAM, is_for_trust=True, is_program=True),)


def _instructions(_: str, content: object, __: ProjectSettings) -> Iterator[Finding]:
    return judge_instructions(_text(content))


def _prompt_file(_: str, content: object, __: ProjectSettings) -> Iterator[Finding]:
    return judge_prompt_file(_text(content))


def _arguments(content: object, switches: Set[str]) -> tuple[Finding, ...]:
    words = cast("list[object]", content) if isinstance(content, list) else None
    if words is None or not all(isinstance(word, str) for word in words):
        return (Finding("", "error", "arguments are a list of texts"),)
    before = ""
    for word in cast("list[str]", words):
        if before == "--":
            break
        wants_value = before.startswith("-") and "=" not in before and before not in switches
        if wants_value and word.startswith("-") and word not in ("-", "--"):
            reason = "the word after a flag is its value, also if it begins like a flag; write --flag=value"
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


def _table(content: object, *, is_toml: bool) -> dict[str, object]:
    if isinstance(content, str | bytes):
        return decode_table(_text(content), is_toml=is_toml)
    if not isinstance(content, dict):
        raise Unreadable("it must be a table")
    return {str(key): value for key, value in cast("dict[object, object]", content).items()}


def _text(content: object) -> str:
    if isinstance(content, bytes):
        return content.decode("utf-8-sig")
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and "size" in content:
        return ""
    raise Unreadable("it must be text")
