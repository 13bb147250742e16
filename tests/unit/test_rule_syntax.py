"""Permission rules: the exact message for each mistake, the limits, and the values that rules become."""

import pytest

from bradawl.core.errors import SettingsError
from bradawl.core.rules import Rule
from bradawl.safety.permissions.domains import Domain
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import network_rule, parse_project_rule, parse_rule, rule_name

BASES = Bases("/ws/.bradawl", "/home/u", "/ws")
AMBIGUOUS = "has characters that programs encode differently; write the name in punycode (xn--)"
HOST = "write WebFetch(domain:example.com), which stands for all below it, too"
KNOWN = "write Bash, Edit, Read, WebFetch, Agent, mcp__server__tool, or a tool's own"


def values(text: str, verdict="allow") -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.on, each.pattern, each.words) for each in parse_rule(text, verdict, "f", BASES, str)]


def error_of(text: str, verdict="deny") -> str:
    with pytest.raises(SettingsError) as caught:
        parse_rule(text, verdict, "f", BASES, str)
    before, _, reason = str(caught.value).partition(" can't be used: ")
    assert before == f"f: the rule {text[:200]!r}" and reason.endswith(".")
    return reason[:-1]


# ------------------------------------------------------------------ mistakes

JOINS = "joins commands, and a rule is for one: write one rule per command, as Bash(npm run test:*)"
VARIABLES = "variables and substitutions are not filled in; a rule is compared with the words of a command"
UNCLOSED = "in it has no other end, or there is a variable in what it holds"
BEFORE = "what is set before a command is not part of it; begin with the name of the program"
SERVER = "a server and its tools are written mcp__server or mcp__server__tool"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Bash(a\x00b)", "it contains an invisible character"),
        (f"Bash({'a' * 1995})", "it is longer than 2000 characters"),
        ("Bash(rm *", "its parenthesis is not closed; write Tool or Tool(what), such as Bash(npm run test:*)"),
        (" Read ( ) ", "its parentheses are empty; write Read for all of it"),
        ("Agent(reviewer)", "Agent takes nothing in parentheses; write Agent"),
        ("mcp__x(y)", "mcp__x takes nothing in parentheses; write mcp__x"),
        ("mcp__", SERVER),
        ("mcp__a b", SERVER),
        (f"mcp__{'a' * 196}", SERVER),
        ("Frobnicate", f"'Frobnicate' is no tool's name; {KNOWN}"),
        ("Bsah(rm *)", "there is no tool 'Bsah', did you mean Bash?"),
        ("AgentX", "there is no tool 'AgentX', did you mean Agent?"),
        ("WEBFETSH", "there is no tool 'WEBFETSH', did you mean WebFetch?"),
        ("Rxxd", f"'Rxxd' is no tool's name; {KNOWN}"),
        ("Gloxx", f"'Gloxx' is no tool's name; {KNOWN}"),
        ("a" * 65, f"{'a' * 65!r} is no tool's name; {KNOWN}"),
        ("own_tool(x)", f"'own_tool' is no tool's name; {KNOWN}; a tool of your own is named alone: own_tool"),
        ("own_tool(:*)", f"'own_tool' is no tool's name; {KNOWN}; a tool of your own is named alone: own_tool"),
        ("WebFetch(example.com)", f"only a host can be named; {HOST}"),
        ("WebFetch(domain)", f"only a host can be named; {HOST}"),
        ("WebFetch(url:example.com)", f"only a host can be named; {HOST}"),
        ("WebFetch(domain:a b)", f"'domain:a b' names no host; {HOST}"),
        (f"WebFetch(domain:\xfc{'a' * 80}.x)", f"'domain:\xfc{'a' * 80}.x' names no host; {HOST}"),
        ("WebFetch(domain:fa\xdf.example)", f"'fa\xdf.example' {AMBIGUOUS}"),
        (f"Bash({'a ' * 61})", "it has more than 60 words"),
        ("Bash(FOO=1 npm)", BEFORE),
        ("Bash(a1_+=1 npm)", BEFORE),
        ("Bash(a 'b)", f"a ' {UNCLOSED}"),
        ('Bash(a "b)', f'a " {UNCLOSED}'),
        ("Bash(a \\)", f"a \\ {UNCLOSED}"),
        ("Bash(a $X)", VARIABLES),
        ("Bash(a `b`)", VARIABLES),
        *((f"Bash(a {operator} b)", f"{operator} {JOINS}") for operator in ";&|<>()"),
        ("Read(!x)", "`!` makes no exceptions here: deny goes before ask, and ask before allow"),
        ("Read(~u/x)", "`~` stands for your own home folder only, as in ~/notes/**"),
        ("Read($X/x)", "variables are not filled in; write ~/ for the home folder, or //the/whole/path"),
        ("Read(*/../x)", "`..` can't follow a pattern"),
        ("Read(x\\)", "it ends with a single backslash"),
        ("Read([)", "a `[` is not closed; for the character itself write \\["),
        ("Read([[:alpha:]])", "classes such as [:alpha:] are not known here; write a-zA-Z"),
        ("Read([z-a])", "[z-a] is no class of characters"),
    ],
    ids=lambda value: value[:30],
)
def test_each_mistake_has_its_message(text: str, reason: str):
    assert error_of(text) == error_of(text, "ask") == error_of(text, "allow") == reason


@pytest.mark.parametrize("name", ["mcp__*", "mcp__a*__x", "MCP__*__x"])
def test_an_allow_rule_must_name_the_server(name: str):
    assert error_of(name, "allow") == "name the server whose tools you allow, such as mcp__github__get_*"
    assert parse_rule(name, "deny", "f", BASES, str)


@pytest.mark.parametrize("name", ["*", "*x"])
def test_an_allow_rule_must_not_begin_with_a_star(name: str):
    assert error_of(name, "allow") == "that would allow everything; `--permission-mode bypass` does so for one run"
    assert parse_rule(name, "deny", "f", BASES, str)


def test_a_pattern_needs_the_folders_that_it_starts_from():
    for spec, name in (("~/x", "the home folder"), ("/x", "the folder of this rule"), ("x", "the working directory")):
        with pytest.raises(SettingsError) as caught:
            parse_rule(f"Read({spec})", "deny", "f", Bases("", "relative", ""), str)
        assert str(caught.value).endswith(f"can't be used: {name} is not known, so it can't start there.")


# ------------------------------------------------------------------ limits


def test_a_rule_may_have_2000_characters_and_60_words_and_names_their_own_lengths():
    assert values(f"Bash({'a' * 1994})") == [("run", "", ("a" * 1994,))]
    assert values(f"Bash({'a ' * 60})") == [("run", "", ("a",) * 60)]
    assert values(f"Bash({'a ' * 60}:*)") == [("run", "", (*("a",) * 60, "*"))]
    assert values("a" * 64) == [("tool", "a" * 64, ())]
    assert values(f"mcp__{'a' * 195}") == [("tool", f"mcp__{'a' * 195}(?:__.*)?", ())]
    assert values("mcp__a") == [("tool", "mcp__a(?:__.*)?", ())]


# ------------------------------------------------------------------ values


def refusing(host: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """The values of a rule that refuses a host to `web_fetch`: for commands too, with all hosts below, on any port."""
    return [("reach", host, ()), ("connect", Domain(host).refused(), ())]


@pytest.mark.parametrize(
    ("text", "allowing", "refusing"),
    [
        ("Bash", [("tool", "Bash", ())], [("tool", "(?i:Bash|Bash)", ())]),
        ("shell(*)", [("tool", "Bash", ())], [("tool", "(?i:Bash|shell)", ())]),
        ("Bash(:*)", [("tool", "Bash", ())], [("tool", "(?i:Bash|Bash)", ())]),
        ("Read", [("read", ".*", ())], [("tool", "(?i:Read|Read)", ()), ("read", ".*", ())]),
        ("Write", [("write", ".*", ())], [("tool", "(?i:Edit|Write)", ()), ("write", ".*", ())]),
        ("Grep", [("tool", "Grep", ())], [("tool", "(?i:Grep|Grep)", ())]),
        ("WebFetch(*)", [("tool", "WebFetch", ())], [("tool", "(?i:WebFetch|WebFetch)", ())]),
        ("own_*", [("tool", "own_[^/]*", ())], [("tool", "(?i:own_[^/]*)", ())]),
        ("own(*)", [("tool", "own", ())], [("tool", "(?i:own)", ())]),
        ("mcp__a__*", [("tool", "mcp__a__[^/]*", ())], [("tool", "(?i:mcp__a__[^/]*)", ())]),
        ("mcp____b", [("tool", "mcp____b", ())], [("tool", "(?i:mcp____b)", ())]),
        ("Mcp__A", [("tool", "Mcp__A(?:__.*)?", ())], [("tool", "(?i:Mcp__A(?:__.*)?)", ())]),
        ("Bash(rm)", [("run", "", ("rm",))], [("run", "", ("rm",)), ("run", "", ("*/rm",))]),
        ("Bash(/bin/rm)", [("run", "", ("/bin/rm",))], [("run", "", ("/bin/rm",))]),
        ("Bash(*x)", [("run", "", ("*x",))], [("run", "", ("*x",))]),
        ("Bash(a:*)", [("run", "", ("a", "*"))], [("run", "", ("a", "*")), ("run", "", ("*/a", "*"))]),
        ("Bash(a *:*)", [("run", "", ("a", "*"))], [("run", "", ("a", "*")), ("run", "", ("*/a", "*"))]),
        ("Bash(a b*)", [("run", "", ("a", "b*"))], [("run", "", ("a", "b*", "*")), ("run", "", ("*/a", "b*", "*"))]),
        ("Bash(a\\:*)", [("run", "", ("a:*",))], [("run", "", ("a:*", "*")), ("run", "", ("*/a:*", "*"))]),
        (
            "Bash(a b:*:*)",
            [("run", "", ("a", "b:*", "*"))],
            [("run", "", ("a", "b:*", "*")), ("run", "", ("*/a", "b:*", "*"))],
        ),
        ("Bash( :* )", [("tool", "Bash", ())], [("tool", "(?i:Bash|Bash)", ())]),
        ("Bash(1A=b)", [("run", "", ("1A=b",))], [("run", "", ("1A=b",)), ("run", "", ("*/1A=b",))]),
        ("WebFetch( Domain : Example.COM. )", [("reach", "example.com", ())], refusing("example.com")),
        ("WebFetch(domain:*.a.b)", [("reach", "a.b", ())], refusing("a.b")),
        ("WebFetch(domain:B\xdcCHER.de)", [("reach", "xn--bcher-kva.de", ())], refusing("xn--bcher-kva.de")),
        ("WebFetch(domain:*)", [("reach", "*", ())], [("reach", "*", ()), ("connect", ".*", ())]),
        (f"WebFetch(domain:{'a' * 64}.b)", [("reach", f"{'a' * 64}.b", ())], refusing(f"{'a' * 64}.b")),
        ("WebFetch(domain:[::1])", [("reach", "::1", ())], [("reach", "::1", ())]),
        ("WebFetch(domain:::ffff:1.2.3.4)", [("reach", "::ffff:1.2.3.4", ())], [("reach", "::ffff:1.2.3.4", ())]),
    ],
)
def test_each_form_of_a_rule_has_its_values(text: str, allowing, refusing):
    assert values(text) == allowing
    assert values(text, "deny") == values(text, "ask") == refusing


@pytest.mark.parametrize(
    ("spec", "literal", "glob"),
    [
        ("'a*b'", "a[*]b", "a*b"),
        ('"a*b"', "a[*]b", "a*b"),
        ("'?['", "[?][[]", "?["),
        (r'"\"\\\$\`\n"', r'"\$`\n', r'"\$`\n'),
        (r"\*", "[*]", "[*]"),
        (r"\a\ b", "a b", "a b"),
        ("'a'b\"c\"d", "abcd", "abcd"),
        ("~", "/home/u", "/home/u"),
        ("~/x", "/home/u/x", "/home/u/x"),
        ("a~", "a~", "a~"),
        ("a~/x", "a~/x", "a~/x"),
        ("~u", "~u", "~u"),
        ("''~/x", "~/x", "~/x"),
        ("''", "", ""),
    ],
)
def test_quotes_and_the_home_folder_in_a_word(spec: str, literal: str, glob: str):
    assert values(f"Bash(p {spec} q)") == [("run", "", ("p", literal, "q"))]
    assert values(f"Bash(p   {spec}  q)", "deny")[0] == ("run", "", ("p", glob, "q"))


def test_special_characters_of_a_home_folder_stand_for_themselves():
    for verdict in ("allow", "deny"):
        rules = parse_rule("Bash(ls ~/x)", verdict, "f", Bases("/f", "/h[1]", "/ws"), str)
        assert rules[0].words == ("ls", "/h[[]1]/x")
    assert parse_rule("Bash(ls ~/x)", "deny", "f", Bases("/f", "", "/ws"), str)[0].words == ("ls", "~/x")


def test_a_rule_keeps_its_text_source_verdict_and_places():
    [rule] = parse_rule("  Read(./a/*)  ", "deny", "f", BASES, str)
    assert rule == Rule("deny", "read", rule.pattern, (), "Read(./a/*)", "f", places=("/ws/a",))
    [rule] = parse_rule("Edit(./a)", "ask", "f", BASES, str)
    assert (rule.verdict, rule.on, rule.places) == ("ask", "write", ("/ws/a",))
    [rule] = parse_rule("Edit(./a)", "allow", "f", BASES, str)
    assert rule.places == ()


def test_by_default_patterns_are_resolved_on_this_machine(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    bases = Bases(str(tmp_path), str(tmp_path), str(tmp_path / "link"))
    real = str((tmp_path / "real").resolve())
    assert parse_rule("Read(./a)", "deny", "f", bases)[0].places[0] == f"{real}/a"
    assert parse_project_rule("Read(./a)", "deny", "f", bases)[0][0].places[0] == f"{real}/a"


@pytest.mark.parametrize("name", ["Bash", "bash", "BASH", "run_shell_command", "RunShellCommand", "Run_Shell_Command"])
def test_names_are_known_in_any_case_with_or_without_underscores(name: str):
    found = rule_name(name)
    assert found is not None and (found.name, found.on, found.is_kind) == ("Bash", "run", False)
    assert rule_name("Bash2") is None


SPELLINGS = [
    ("Edit", "write", True, "Edit Write MultiEdit NotebookEdit"),
    ("edit_file", "write", False, "edit_file EditFile"),
    ("write_file", "write", False, "write_file WriteFile"),
    ("Read", "read", True, "Read NotebookRead"),
    ("read_file", "read", False, "read_file ReadFile"),
    ("Glob", "read", False, "Glob LS"),
    ("Grep", "read", False, "Grep"),
    ("Bash", "run", False, "Bash Shell run_shell_command"),
    ("BashOutput", "tool", False, "BashOutput TaskOutput bash_output"),
    ("KillShell", "tool", False, "KillShell bash_kill KillBash TaskStop"),
    ("WebFetch", "reach", False, "WebFetch web_fetch"),
    ("web_search", "tool", False, "WebSearch web_search"),
    ("Agent", "tool", False, "Agent Task"),
    ("TodoWrite", "tool", False, "TodoWrite TodoRead todo_write"),
    ("ExitPlanMode", "tool", False, "ExitPlanMode exit_plan"),
    ("AskUserQuestion", "tool", False, "AskUserQuestion ask_user"),
    ("skill", "tool", False, "Skill"),
]


@pytest.mark.parametrize(("name", "on", "is_kind", "spellings"), SPELLINGS)
def test_each_spelling_of_a_name(name: str, on: str, is_kind: bool, spellings: str):
    for spelling in spellings.split():
        found = rule_name(spelling)
        assert found is not None and (found.name, found.on, found.is_kind) == (name, on, is_kind), spelling


# ------------------------------------------------------------------ the network


def test_a_network_rule_is_one_command_with_its_source():
    words = ("npm", "install", "*")
    for text in ("npm install *", "Bash(npm install *)", " npm install:* "):
        rule = network_rule(text, "f", "/home/u")
        assert rule == Rule("allow", "network", words=words, text=text.strip(), source="f")
    assert network_rule("get '*' ~/x", "f", "/home/u").words == ("get", "[*]", "/home/u/x")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Edit(a)", f"( {JOINS}"),
        ("a && b", f"& {JOINS}"),
        ("a (b", "its parenthesis is not closed; write Tool or Tool(what), such as Bash(npm run test:*)"),
        ("A=1 b", BEFORE),
    ],
)
def test_a_mistake_in_a_network_rule_has_its_message(text: str, reason: str):
    assert error_of(text, "network") == reason


def test_an_empty_list_of_words_allows_any_command():
    assert network_rule("*", "f", "").words == network_rule("", "f", "").words == ("*",)


# ------------------------------------------------------------------ rules of projects


def of_project(text: str, verdict="deny"):
    return parse_project_rule(text, verdict, "f", BASES, str)


def test_a_faulty_rule_of_a_project_refuses_the_tool_and_says_so():
    text = "Bash(a && b)"
    rules, warning = of_project(text)
    error = f"f: the rule {text!r} can't be used: & {JOINS}."
    why = f"a rule in f can't be read, so Bash is refused: {text!r}"
    assert rules == (Rule("deny", "tool", "(?i:Bash|Bash)", text=text, source="f", why=why),)
    assert warning == f"{error} Until then Bash is refused."
    assert of_project(text, "ask") == (rules, warning)


def test_a_faulty_rule_without_a_clear_name_refuses_every_tool():
    text = "Frobnicate(" + "x" * 300
    rules, warning = of_project(text)
    why = f"a rule in f can't be read, so every tool is refused: {text[:200]!r}"
    assert rules == (Rule("deny", "tool", ".*", text=text[:200], source="f", why=why),)
    assert warning.endswith(" Until then every tool is refused.")


@pytest.mark.parametrize("verdict", ["allow", "network"])
def test_a_faulty_permission_of_a_project_is_ignored_and_says_so(verdict):
    assert of_project("Bash(a && b)", verdict) == (
        (),
        f"f: the rule 'Bash(a && b)' can't be used: & {JOINS}. It is ignored.",
    )


def test_a_rule_of_a_project_is_resolved_by_the_given_function():
    rules, _ = parse_project_rule("Read(./a)", "deny", "f", BASES, lambda path: f"/real{path}")
    assert rules[0].places == ("/real/ws/a", "/real/real/ws/a")


def test_the_name_of_a_faulty_rule_ends_before_the_first_parenthesis():
    rules, _ = of_project(" Read (a (b")
    assert [(rule.on, rule.pattern) for rule in rules] == [("tool", "(?i:Read|Read)"), ("read", ".*")]
