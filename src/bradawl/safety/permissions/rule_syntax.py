"""Parses permission rules as users write them, such as `Bash(npm run test:*)`, into the values of `core.rules`.

An ambiguous rule is read in the way that allows less.
"""

import re
from collections.abc import Iterable, Mapping
from posixpath import realpath
from typing import Final, Literal, NamedTuple, assert_never

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.rules import Rule, Subject, speaks_of
from bradawl.core.tools import ToolSpec
from bradawl.safety.permissions.domains import Domain, ascii_name, parse_domain, parse_grant
from bradawl.safety.permissions.path_globs import Bases, Resolve, located_pattern, name_pattern

Verdict = Literal["deny", "ask", "allow", "network", "domain"]
"""What a rule does. `network`: these commands may reach any public host without a question. `domain`: all commands may
reach this domain without a question.
"""
_LONGEST: Final = 2_000
_MOST_WORDS: Final = 60
_STARRED: Final = ("run", "reach", "connect", "tool")
"""What a rule may be about if its parentheses hold only a star, which is the same as none."""


class _RuleName(NamedTuple):
    """A name that a rule may begin with."""

    name: str
    """The tools it covers: those of this name, and those that declare it in `ToolSpec.rule_names`."""
    on: Subject
    """What its parenthesis is about; `tool` if it takes none."""
    is_kind: bool = False
    """Without a parenthesis it also covers every read, or every write, of any tool."""


_EDIT: Final = _RuleName("Edit", "write", is_kind=True)
_READ: Final = _RuleName("Read", "read", is_kind=True)
_BASH: Final = _RuleName("Bash", "run")
_BASH_OUTPUT: Final = _RuleName("BashOutput", "tool")
_KILL_SHELL: Final = _RuleName("KillShell", "tool")
_GLOB: Final = _RuleName("Glob", "read")
_AGENT: Final = _RuleName("Agent", "tool")
_EXIT_PLAN: Final = _RuleName("ExitPlanMode", "tool")
_ASK_USER: Final = _RuleName("AskUserQuestion", "tool")
_TODO_WRITE: Final = _RuleName("TodoWrite", "tool")

RULE_NAMES: Final[Mapping[str, _RuleName]] = {
    "Edit": _EDIT,
    "Write": _EDIT,
    "MultiEdit": _EDIT,
    "NotebookEdit": _EDIT,
    "edit_file": _RuleName("edit_file", "write"),
    "write_file": _RuleName("write_file", "write"),
    "Read": _READ,
    "NotebookRead": _READ,
    "read_file": _RuleName("read_file", "read"),
    "Glob": _GLOB,
    "LS": _GLOB,
    "Grep": _RuleName("Grep", "read"),
    "Bash": _BASH,
    "Shell": _BASH,
    "run_shell_command": _BASH,
    "BashOutput": _BASH_OUTPUT,
    "TaskOutput": _BASH_OUTPUT,
    "bash_kill": _KILL_SHELL,
    "KillShell": _KILL_SHELL,
    "KillBash": _KILL_SHELL,
    "TaskStop": _KILL_SHELL,
    "WebFetch": _RuleName("WebFetch", "reach"),
    "Network": _RuleName("Network", "connect", is_kind=True),
    "WebSearch": _RuleName("web_search", "tool"),
    "Agent": _AGENT,
    "Task": _AGENT,
    "TodoWrite": _TODO_WRITE,
    "TodoRead": _TODO_WRITE,
    "ExitPlanMode": _EXIT_PLAN,
    "exit_plan": _EXIT_PLAN,
    "AskUserQuestion": _ASK_USER,
    "ask_user": _ASK_USER,
    "Skill": _RuleName("skill", "tool"),
}
"""The spellings a rule may begin with, in any case, with or without underscores; other agents' names among them."""


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
        if verdict == "domain":
            return (domain_rule(text, source),)
        return _rules_of(_RuleText(verdict, *_split_rule(text), source, bases, resolve))
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
        if verdict in ("allow", "network", "domain"):
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


def domain_rule(text: str, source: str) -> Rule:
    """A rule that lets all commands reach a domain. Raises `ValueError`."""
    return Rule("allow", "connect", parse_grant(text).allowed(), text=text.strip(), source=source)


def hidden_tools(rules: Iterable[Rule], specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Names of the tools whose every call is refused; the model need not see them."""
    bare = [rule for rule in rules if rule.verdict == "deny" and rule.on == "tool"]
    return tuple(
        spec.name
        for spec in specs
        if any(speaks_of(rule, name) for rule in bare for name in (spec.name, *spec.rule_names))
    )


def _split_rule(text: str) -> tuple[str, str | None, str]:
    """The name in a rule, the text in its parenthesis (None without one), and the whole text without outer blanks."""
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
    return name.strip(), spec, text


def rule_name(name: str) -> _RuleName | None:
    """The known name that is spelled so, in any case, with or without underscores."""
    plain = name.replace("_", "").lower()
    return next((known for each, known in RULE_NAMES.items() if each.replace("_", "").lower() == plain), None)


def _rules_of(rule_text: _RuleText) -> tuple[Rule, ...]:
    subject = rule_name(rule_text.name)
    if subject is None:
        subject = _RuleName("", "tool")
        _check_name(rule_text)
    if rule_text.spec is None or (rule_text.spec in ("*", ":*") and subject.on in _STARRED):
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
            return tuple(_fetch_rules(rule_text, _host(rule_text.spec)))
        case "connect":
            spec = rule_text.spec.removeprefix("domain:")
            found = parse_grant(spec).allowed() if rule_text.widens else parse_domain(spec).refused()
            return (rule_text.rule("connect", found),)
        case "tool" | "network":
            raise ValueError(f"{rule_text.name} takes nothing in parentheses; write {rule_text.name}")
        case _:
            assert_never(subject.on)


def _fetch_rules(rule_text: _RuleText, host: str) -> Iterable[Rule]:
    """The rules for a host of `web_fetch`. Refusals and questions also apply to connections of commands."""
    yield rule_text.rule("reach", host)
    if not rule_text.widens and ":" not in host:  # commands reach no addresses
        yield rule_text.rule("connect", ".*" if host == "*" else Domain(host).refused())


def _bare_rules(rule_text: _RuleText, subject: _RuleName) -> tuple[Rule, ...]:
    """The rules of a bare name: for the tools, and if it names a kind of access, for every such access."""
    if subject.on == "connect" and rule_text.widens:
        raise ValueError('name a domain, as Network(example.org); network_commands = ["*"] allows any public host')
    if rule_text.name.lower().startswith("mcp__"):
        pattern = name_pattern(rule_text.name)
        tools = pattern if "__" in rule_text.name[5:] else f"{pattern}(?:__.*)?"
    else:
        tools = subject.name or name_pattern(rule_text.name.lower())
    if subject.name and not rule_text.widens:
        tools = f"{tools}|{rule_text.name}"  # also a tool of exactly this name that declares nothing
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
            raise ValueError("a server and its tools are written mcp__server or mcp__server__tool")
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

    near = get_close_matches(name.lower(), [known.lower() for known in RULE_NAMES], 1, 0.7)
    guess = next((known for known in RULE_NAMES if near and known.lower() == near[0]), "")
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
        host.encode("ascii" if host.isascii() else "idna")
    except UnicodeError:
        host = ""
    host = ascii_name(host)  # a name that programs encode in two ways would be refused in one of them only
    if not re.fullmatch(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[0-9a-f:.]*:[0-9a-f:.]*", host):
        raise ValueError(f"{spec!r} names no host; {example}")
    return host


# ------------------------------------------------------------------ the words of commands


def _network(text: str, source: str, home: str) -> Rule:
    name, spec, text = _split_rule(text)
    if spec is None or rule_name(name) is not _BASH:
        spec = text
    return Rule("allow", "network", words=_words(spec, home, widens=True), text=text, source=source)


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
