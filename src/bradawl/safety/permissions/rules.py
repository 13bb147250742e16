"""Parses permission rules as users write them, `Tool` or `Tool(what)`.

An ambiguous rule is read in the way that allows less.
"""

import re
from collections.abc import Iterable, Mapping
from posixpath import realpath
from typing import Final, Literal, NamedTuple, assert_never

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.rules import Rule, Subject, speaks_of
from bradawl.safety.permissions.path_globs import Bases, Resolve, located_pattern, name_pattern

Verdict = Literal["deny", "ask", "allow", "network"]
"""What a rule does. `network`: these commands may use the network without a question."""
_LONGEST: Final = 2_000
_MOST_WORDS: Final = 60


class _RuleSubject(NamedTuple):
    """What the name in front of the parentheses applies to."""

    on: Subject
    """What the text in parentheses is about; `tool` if none is allowed."""
    tools: tuple[str, ...]
    is_kind: bool = False
    """Without parentheses the rule applies to every access of this kind, by any tool."""


_WRITES: Final = _RuleSubject("write", ("edit_file", "multi_edit", "write_file"), is_kind=True)
_READS: Final = _RuleSubject("read", ("glob", "grep", "read_file"), is_kind=True)
_RUNS: Final = _RuleSubject("run", ("bash", "bash_kill", "bash_output"))
_STOPS: Final = _RuleSubject("tool", ("bash_kill",))
_SHOWS: Final = _RuleSubject("tool", ("bash_output",))
_LISTS: Final = _RuleSubject("read", ("glob",))
_REACHES: Final = _RuleSubject("reach", ("web_fetch",))
_DELEGATES: Final = _RuleSubject("tool", ("agent",))
_PLANS: Final = _RuleSubject("tool", ("exit_plan",))
_ASKS: Final = _RuleSubject("tool", ("ask_user",))
_NOTES: Final = _RuleSubject("tool", ("todo_write",))

ALIASES: Final[Mapping[str, _RuleSubject]] = {
    "Edit": _WRITES,
    "Write": _WRITES,
    "MultiEdit": _WRITES,
    "NotebookEdit": _WRITES,
    "edit_file": _RuleSubject("write", ("edit_file",)),
    "write_file": _RuleSubject("write", ("write_file",)),
    "Read": _READS,
    "NotebookRead": _READS,
    "read_file": _RuleSubject("read", ("read_file",)),
    "Glob": _LISTS,
    "LS": _LISTS,
    "Grep": _RuleSubject("read", ("grep",)),
    "Bash": _RUNS,
    "Shell": _RUNS,
    "run_shell_command": _RUNS,
    "BashOutput": _SHOWS,
    "TaskOutput": _SHOWS,
    "bash_kill": _STOPS,
    "KillShell": _STOPS,
    "KillBash": _STOPS,
    "TaskStop": _STOPS,
    "WebFetch": _REACHES,
    "WebSearch": _RuleSubject("tool", ("web_search",)),
    "Agent": _DELEGATES,
    "Task": _DELEGATES,
    "TodoWrite": _NOTES,
    "TodoRead": _NOTES,
    "ExitPlanMode": _PLANS,
    "exit_plan": _PLANS,
    "AskUserQuestion": _ASKS,
    "ask_user": _ASKS,
    "Skill": _RuleSubject("tool", ("skill",)),
}
"""Names of tools in rules, without regard to case and underscores."""


class _RuleText(NamedTuple):
    """The parts of a rule's text."""

    verdict: Literal["deny", "ask", "allow"]
    name: str
    spec: str | None
    text: str
    source: str
    bases: Bases
    resolve: Resolve

    def rule(self, on: Subject, pattern: str = "", words: tuple[str, ...] = ()) -> Rule:
        return Rule(self.verdict, on, pattern, words, self.text, self.source)

    @property
    def widens(self) -> bool:
        return self.verdict == "allow"


# ------------------------------------------------------------------ reading


def parse_rule(
    text: str,
    verdict: Verdict,
    source: str,
    bases: Bases,
    resolve: Resolve = realpath,
) -> tuple[Rule, ...]:
    """The rules that one text stands for. Raises `SettingsError` that says what is wrong, with an example.

    `source` names the file or flag in messages.
    """
    try:
        if verdict == "network":
            return (_network(text, source, bases.home),)
        return _rules_of(_split_rule(text, verdict, source, bases, resolve))
    except ValueError as error:
        raise SettingsError(f"{source}: the rule {text[:200]!r} can't be used: {error}.") from error


def parse_project_rule(
    text: str,
    verdict: Verdict,
    source: str,
    bases: Bases,
    resolve: Resolve = realpath,
) -> tuple[tuple[Rule, ...], str]:
    """As `parse_rule`, for a rule that the user can't correct. Also returns a warning, empty if there is none.

    A deny or ask rule that can't be parsed denies the whole tool, or every tool if the name is unclear.
    """
    try:
        return parse_rule(text, verdict, source, bases, resolve), ""
    except SettingsError as error:
        if verdict in ("allow", "network"):
            return (), f"{error} It is ignored."
        name = text.partition("(")[0].strip()
        bare = _RuleText("deny", name, None, text[:200], source, bases, resolve)
        try:
            rules, what = _rules_of(bare), name
        except ValueError:
            rules, what = (bare.rule("tool", ".*"),), "every tool"
        why = f"a rule in {source} can't be read, so {what} is refused: {text[:200]!r}"
        return tuple(msgspec.structs.replace(rule, why=why) for rule in rules), f"{error} Until then {what} is refused."


def network_rule(text: str, source: str, home: str) -> Rule:
    """A rule for commands that may use the network without a question: `npm install *`, or the same in `Bash(...)`.

    Raises `SettingsError`.
    """
    return parse_rule(text, "network", source, Bases("", home, ""))[0]


def hidden_tools(rules: Iterable[Rule], names: Iterable[str]) -> tuple[str, ...]:
    """The tools that a rule denies completely, so that the model need not see them."""
    bare = [rule for rule in rules if rule.verdict == "deny" and rule.on == "tool"]
    return tuple(name for name in names if any(speaks_of(rule, name) for rule in bare))


def _split_rule(
    text: str, verdict: Literal["deny", "ask", "allow"], source: str, bases: Bases, resolve: Resolve
) -> _RuleText:
    text = text.strip()
    if not text.isprintable():
        raise ValueError("it contains an invisible character")
    if len(text) > _LONGEST:
        raise ValueError(f"it is longer than {_LONGEST} characters")
    name, opened, rest = text.partition("(")
    if opened and not rest.endswith(")"):
        raise ValueError("its parenthesis is not closed; write Tool or Tool(what), such as Bash(npm run test:*)")
    spec = rest[:-1].strip() if opened else None
    if spec == "":
        raise ValueError(f"its parentheses are empty; write {name.strip()} for all of it")
    return _RuleText(verdict, name.strip(), spec, text, source, bases, resolve)


def _subject_of(name: str) -> _RuleSubject | None:
    plain = name.replace("_", "").lower()
    return next((subject for alias, subject in ALIASES.items() if alias.replace("_", "").lower() == plain), None)


def _rules_of(rule_text: _RuleText) -> tuple[Rule, ...]:
    subject = _subject_of(rule_text.name)
    if subject is None:
        subject = _RuleSubject("tool", ())
        _check_name(rule_text)
    if rule_text.spec is None or (rule_text.spec in ("*", ":*") and subject.on in ("run", "reach", "tool")):
        return _bare_rules(rule_text, subject)
    match subject.on:
        case "read" | "write":
            found = located_pattern(rule_text.spec, rule_text.bases, rule_text.resolve, widens=rule_text.widens)
            rule = rule_text.rule(subject.on, found.expression)
            return (msgspec.structs.replace(rule, places=found.places),)
        case "run":
            words = _words(rule_text.spec, rule_text.bases.home, widens=rule_text.widens)
            return tuple(rule_text.rule("run", words=each) for each in _ways_to_call(words, widens=rule_text.widens))
        case "reach":
            return (rule_text.rule("reach", _host(rule_text.spec)),)
        case "tool" | "network":
            raise ValueError(f"{rule_text.name} takes nothing in parentheses; write {rule_text.name}")
        case _:
            assert_never(subject.on)


def _bare_rules(rule_text: _RuleText, subject: _RuleSubject) -> tuple[Rule, ...]:
    """The rules of a bare name: for the tools, and if it names a kind of access, for every such access."""
    if rule_text.name.lower().startswith("mcp__"):
        pattern = name_pattern(rule_text.name)
        tools = pattern if "__" in rule_text.name[5:] else f"{pattern}(?:__.*)?"
    else:
        tools = "|".join(subject.tools) or name_pattern(rule_text.name.lower())
    rules = (rule_text.rule("tool", tools if rule_text.widens else f"(?i:{tools})"),)
    if not subject.is_kind:
        return rules
    everything = rule_text.rule(subject.on, ".*")
    return (everything,) if rule_text.widens else (*rules, everything)


def _check_name(rule_text: _RuleText) -> None:
    """Raise `ValueError` for a name that no tool can have."""
    name = rule_text.name
    if name.lower().startswith("mcp__"):
        if not re.fullmatch(r"[^\s()\[\]?\\/]{6,200}", name):
            raise ValueError("a server and its tools are rule_text mcp__server or mcp__server__tool")
        if rule_text.widens and "*" in name[5:].partition("__")[0]:
            raise ValueError("name the server whose tools you allow, such as mcp__github__get_*")
        return
    if not re.fullmatch(r"[a-z0-9_*]{1,64}", name):
        raise ValueError(_unknown_tool(name))
    if rule_text.widens and name.startswith("*"):
        raise ValueError("that would allow everything; `--permission-mode bypass` does so for one run")
    if rule_text.spec not in (None, "*"):
        raise ValueError(_unknown_tool(name) + f"; a tool of your own is named alone: {name}")


def _unknown_tool(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), [alias.lower() for alias in ALIASES], 1, 0.7)
    guess = next((alias for alias in ALIASES if near and alias.lower() == near[0]), "")
    if guess:
        return f"there is no tool {name!r}, did you mean {guess}?"
    return f"{name!r} is no tool's name; write Bash, Edit, Read, WebFetch, Agent, mcp__server__tool, or a tool's own"


def _host(spec: str) -> str:
    """The host in a rule, which includes its subdomains; `*` for any host."""
    kind, colon, host = spec.partition(":")
    example = "write WebFetch(domain:example.com), which stands for all below it, too"
    if kind.strip().lower() != "domain" or not colon:
        raise ValueError(f"only a host can be named; {example}")
    host = host.strip().lower().rstrip(".").strip("[]")
    if host == "*":
        return host
    host = host.removeprefix("*.")
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        host = ""
    if not re.fullmatch(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[0-9a-f:.]*:[0-9a-f:.]*", host):
        raise ValueError(f"{spec!r} names no host; {example}")
    return host


# ------------------------------------------------------------------ the words of commands


def _network(text: str, source: str, home: str) -> Rule:
    rule_text = _split_rule(text, "allow", source, Bases("", home, ""), str)
    spec = rule_text.text
    if rule_text.spec is not None and _subject_of(rule_text.name) is _RUNS:
        spec = rule_text.spec
    return Rule("allow", "network", words=_words(spec, home, widens=True), text=rule_text.text, source=source)


def _words(spec: str, home: str, *, widens: bool) -> tuple[str, ...]:
    """A glob for each word of one plain command. Raises `ValueError` for anything else.

    In an allow rule, quoted characters are literal. In a deny or ask rule a star always matches anything.
    """
    has_more = spec.endswith(":*") and not spec.endswith("\\:*")
    words = _split(spec.removesuffix(":*") if has_more else spec, home, keeps_globs=not widens)
    if len(words) > _MOST_WORDS:
        raise ValueError(f"it has more than {_MOST_WORDS} words")
    if not words:
        return ("*",)
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*\+?=", words[0]):
        raise ValueError("what is set before a command is not part of it; begin with the name of the program")
    cuts_short = not widens and words[-1].endswith("*")
    return (*words, "*") if (has_more or cuts_short) and words[-1] != "*" else words


_PIECE = (
    r"(?P<blank>[ \t]+)|(?P<single>'[^']*')|(?P<double>\"(?:[^\"\\$`]|\\.)*\")|(?P<escaped>\\.)"
    r"|(?P<operator>[;&|<>()`$'\"\\])|(?P<home>~(?=/|[ \t]|\Z))|(?P<plain>[^ \t;&|<>()`$'\"\\~]+|~)"
)


def _split(spec: str, home: str, *, keeps_globs: bool) -> tuple[str, ...]:
    words: list[str] = []
    is_open = False
    for piece in re.finditer(_PIECE, spec):
        if piece.lastgroup == "blank":
            is_open = False
            continue
        text = _glob_of(piece, home, is_first=not is_open, keeps_globs=keeps_globs)
        if is_open:
            words[-1] += text
        else:
            words.append(text)
        is_open = True
    return tuple(words)


def _glob_of(piece: re.Match[str], home: str, *, is_first: bool, keeps_globs: bool) -> str:
    text = piece[0]
    match piece.lastgroup:
        case "single":
            return text[1:-1] if keeps_globs else _literal_glob(text[1:-1])
        case "double":
            inner = re.sub(r"\\([\"\\$`])", r"\1", text[1:-1])
            return inner if keeps_globs else _literal_glob(inner)
        case "escaped":
            return _literal_glob(text[1])
        case "home":
            return _literal_glob(home) if is_first and home else text
        case "operator":
            raise ValueError(_operator_error(text))
        case _:
            return text


def _operator_error(text: str) -> str:
    match text:
        case "'" | '"' | "\\":
            return f"a {text} in it has no other end, or there is a variable in what it holds"
        case "$" | "`":
            return "variables and substitutions are not filled in; a rule is compared with the words of a command"
        case _:
            return f"{text} joins commands, and a rule is for one: write one rule per command, as Bash(npm run test:*)"


def _literal_glob(text: str) -> str:
    """A glob that matches only this text."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _ways_to_call(words: tuple[str, ...], *, widens: bool) -> Iterable[tuple[str, ...]]:
    """A command as words, and for deny and ask rules also with any path before the program's name."""
    yield words
    if not widens and "/" not in words[0] and not words[0].startswith("*"):
        yield ("*/" + words[0], *words[1:])
