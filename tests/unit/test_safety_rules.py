"""Permission rules as users write them: which calls they match, and which texts are rejected."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_specs import SPECS, request, spec_of

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Allow, Ask, Deny, Policy, decide
from bradawl.core.rules import Rule, met
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import hidden_tools, network_rule, parse_project_rule, parse_rule

OWN = tuple(SPECS)


def rules(text, verdict="allow", links=None):
    def resolve(path):
        for name, target in (links or {}).items():
            if path == name or path.startswith(name + "/"):
                return target + path[len(name) :]
        return path

    return parse_rule(text, verdict, "config.toml", Bases("/ws/.bradawl", "/home/u", "/ws"), resolve)


def names_of(tool):
    return (tool, *spec_of(tool).rule_names)


def hidden(found, names):
    return hidden_tools(found, map(spec_of, names))


def matches(text, verdict="allow", tool="other", links=None, **effects):
    return any(met(rule, names_of(tool), Effects(**effects)) for rule in rules(text, verdict, links))


def reads(text, path, verdict="allow", links=None):
    return matches(text, verdict, links=links, reads=(path,))


def runs(text, *words, verdict="allow"):
    return matches(text, verdict, commands=(words,))


# ------------------------------------------------------------------ commands


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("npm run test:*", "npm run test"),
        ("npm run test:*", "npm run test -- --watch"),
        ("npm run test *", "npm run test x"),
        ("git *", "git"),
        ("git *", "git log -p"),
        ("git log --oneline", "git log --oneline"),
        ("git * --stat", "git log --stat"),
        ("pytest tests/test_*.py", "pytest tests/test_a.py"),
        ("'npm' \"run\" build", "npm run build"),
        ("* --version", "node --version"),
        ("[ -f x ]", "[ -f x ]"),
        ("go test ./...", "go test ./..."),
        ("ls ~/notes", "ls /home/u/notes"),
        (r"find . -name \*.py", "find . -name *.py"),
        ("find . -name '*.py'", "find . -name *.py"),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_command_that_a_rule_names_matches(spec, line, verdict):
    assert runs(f"Bash({spec})", *line.split(), verdict=verdict)


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("npm run test:*", "npm run tests"),
        ("npm run test:*", "npm run test:unit"),
        ("npm run test:*", "npm install"),
        ("git log --oneline", "git log --oneline -p"),
        ("git log --oneline", "git log"),
        ("git * --stat", "git log -p --stat"),
        ("git *", "gitk"),
        ("GIT *", "git log"),
        ("find . -name '*.py'", "find . -name a.py"),
    ],
)
def test_a_command_that_a_rule_does_not_name_is_not_allowed(spec, line):
    assert not runs(f"Bash({spec})", *line.split())


def test_a_quoted_word_is_one_literal_word():
    assert runs("Bash(git commit -m 'a b')", "git", "commit", "-m", "a b")
    assert runs("Bash(echo 'it'\\''s')", "echo", "it's")
    assert runs('Bash(echo "a \\"b\\" [x]")', "echo", 'a "b" [x]')
    assert runs("Bash(awk '{print $1}' *)", "awk", "{print $1}", "file")
    assert runs("Bash(echo '')", "echo", "")


def test_in_a_refusing_rule_a_quoted_star_is_still_a_wildcard():
    assert runs("Bash(curl 'http://*')", "curl", "http://example.com", verdict="deny")
    assert not runs("Bash(curl 'http://*')", "curl", "http://example.com")


def test_a_refused_program_is_refused_by_any_path():
    for words in (("rm", "x"), ("/bin/rm", "-rf", "x"), ("./rm",)):
        assert runs("Bash(rm *)", *words, verdict="deny") and runs("Bash(rm:*)", *words, verdict="ask")
    assert not runs("Bash(rm *)", "/tmp/rm", "x")


def test_a_trailing_star_in_a_word_refuses_further_words_and_allows_none():
    assert runs("Bash(rm*)", "rm", "-rf", "x", verdict="deny")
    assert not runs("Bash(rm*)", "rm", "-rf", "x")
    assert runs("Bash(npm run test*)", "npm", "run", "test:unit")


def test_nested_commands_match_refusing_rules_only():
    effects = Effects(unknown=True, commands=(("sudo", "rm", "x"),), inner=(("rm", "x"),))
    assert any(met(rule, names_of("bash"), effects) for rule in rules("Bash(rm *)", "deny"))
    assert not any(met(rule, names_of("bash"), effects) for rule in rules("Bash(rm *)", "allow"))


@pytest.mark.parametrize(
    "spec",
    [
        *("a && b", "a; b", "a | b", "a || b", "a &", "a > x", "a < x", "(a)", "a $(b)", "a `b`", "a $X", 'a "$X"'),
        *("a 'b", 'a "b', "a \\", "FOO=1 npm test"),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_a_rule_with_more_than_one_simple_command_is_an_error(spec, verdict):
    with pytest.raises(SettingsError):
        rules(f"Bash({spec})", verdict)


def test_the_error_for_joined_commands_says_what_to_write():
    with pytest.raises(SettingsError, match=r"one rule per command.*Bash\(npm run test:\*\)"):
        rules("Bash(npm test && git push)")


def test_network_commands_are_listed_as_text_or_as_a_rule():
    for text in ("npm install *", "Bash(npm install *)", "npm install:*", "bash(npm install:*)"):
        rule = network_rule(text, "config.toml", "/home/u")
        assert (rule.verdict, rule.on, rule.words, rule.text) == ("allow", "network", ("npm", "install", "*"), text)
    assert rules("pip download *", "network")[0].words == ("pip", "download", "*")
    with pytest.raises(SettingsError, match="one rule per command"):
        network_rule("npm install && curl x", "config.toml", "/home/u")


# ------------------------------------------------------------------ tools, hosts


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("Bash", {"bash", "bash_output", "bash_kill"}),
        ("Bash(*)", {"bash", "bash_output", "bash_kill"}),
        ("shell(:*)", {"bash", "bash_output", "bash_kill"}),
        ("Edit", {"edit_file", "multi_edit", "write_file"}),
        ("WRITE", {"edit_file", "multi_edit", "write_file"}),
        ("edit_file", {"edit_file"}),
        ("ReadFile", {"read_file"}),
        ("Read", {"read_file", "glob", "grep"}),
        ("Grep", {"grep"}),
        ("WebFetch", {"web_fetch"}),
        ("WebFetch(*)", {"web_fetch"}),
        ("Task", {"agent"}),
        ("Agent(*)", {"agent"}),
        ("TodoWrite", {"todo_write"}),
        ("KillShell", {"bash_kill"}),
        ("BashOutput", {"bash_output"}),
        ("ExitPlanMode", {"exit_plan"}),
        ("*", set(OWN)),
        ("web_*", {"web_fetch"}),
    ],
)
def test_a_rule_with_only_a_name_hides_the_tools_of_that_name(text, tools):
    assert set(hidden(rules(text, "deny"), OWN)) == tools
    assert hidden(rules(text, "ask"), OWN) == ()


def test_a_rule_with_a_pattern_hides_no_tool():
    for text in ("Bash(rm *)", "Read(**)", "Edit(**)", "WebFetch(domain:*)"):
        assert hidden(rules(text, "deny"), OWN) == ()


def test_a_rule_name_applies_to_every_tool_with_that_effect():
    assert matches("Edit", "deny", tool="bash", writes=("/x",)) and matches("Edit(//x)", "deny", writes=("/x",))
    assert matches("Read", "deny", tool="mine", reads=("/x",)) and not matches("Read", "deny", writes=("/x",))
    assert matches("Edit", "allow", tool="mine", writes=("/x",)) and not matches(
        "edit_file", tool="mine", writes=("/x",)
    )


MCP = ("mcp__github__get_issue", "mcp__github__create_issue", "mcp__gitlab__get_issue", "mcp__github_x__get")


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("mcp__github", MCP[:2]),
        ("mcp__github__*", MCP[:2]),
        ("mcp__github(*)", MCP[:2]),
        ("mcp__github__get_*", MCP[:1]),
        ("mcp__github__get_issue", MCP[:1]),
        ("MCP__GitHub", MCP[:2]),
    ],
)
def test_tools_of_a_server_are_named_by_server_and_tool(text, tools):
    assert hidden(rules(text, "deny"), MCP) == tools


def test_allow_rules_for_tools_of_a_server_need_exact_names():
    assert matches("mcp__github__get_*", tool=MCP[0]) and not matches("mcp__github__get_*", tool=MCP[1])
    assert not matches("MCP__GITHUB", tool=MCP[0])
    assert hidden(rules("mcp__git*", "deny"), MCP) == MCP
    for text in ("mcp__*", "mcp__git*", "mcp__*__get", "*", "mcp__", "mcp__a b", "mcp__x(y)"):
        with pytest.raises(SettingsError):
            rules(text)


@pytest.mark.parametrize(
    ("spec", "host", "is_found"),
    [
        ("domain:example.com", "example.com", True),
        ("domain:example.com", "docs.example.com", True),
        ("domain:EXAMPLE.com.", "example.com", True),
        ("domain:*.example.com", "docs.example.com", True),
        ("domain:example.com", "badexample.com", False),
        ("domain:example.com", "example.com.evil.net", False),
        ("domain:*", "anything.org", True),
        ("domain:bücher.example", "xn--bcher-kva.example", True),
        ("domain:[2001:db8::1]", "2001:db8::1", True),
        ("domain:localhost", "localhost", True),
    ],
)
def test_a_host_matches_all_of_its_subdomains(spec, host, is_found):
    assert matches(f"WebFetch({spec})", hosts=(host,)) == is_found


@pytest.mark.parametrize(
    "spec", ["example.com", "https://example.com/*", "domain:", "domain:a/b", "domain:a b", "domain:a*"]
)
def test_an_invalid_host_is_an_error_with_an_example(spec):
    with pytest.raises(SettingsError, match=r"WebFetch\(domain:example\.com\)"):
        rules(f"WebFetch({spec})", "deny")


def test_a_users_own_tool_takes_no_pattern():
    assert matches("deploy_it", tool="deploy_it") and not matches("deploy_it", tool="deploy_it2")
    with pytest.raises(SettingsError, match="named alone"):
        rules("deploy_it(x)", "deny")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Bsah(rm *)", "did you mean Bash"),
        ("Raed", "did you mean Read"),
        ("Bash(rm *", "not closed"),
        ("Bash(rm *) x", "not closed"),
        ("Bash()", "write Bash for all of it"),
        ("", "no tool's name"),
        ("(x)", "no tool's name"),
        ("Frobnicate", "no tool's name"),
        ("Agent(reviewer)", "takes nothing in parentheses"),
        ("Bash(a\x00b)", "invisible character"),
        ("Bash(a\u200bb)", "invisible character"),
        ("Read(a\nb)", "invisible character"),
        ("Bash(" + "a" * 3000 + ")", "longer than"),
        ("Bash(" + "a " * 100 + ")", "more than 60 words"),
        ("rm -rf", "no tool's name"),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_an_invalid_rule_is_an_error_with_a_reason(text, message, verdict):
    with pytest.raises(SettingsError, match=re.escape(message)):
        rules(text, verdict)


# ------------------------------------------------------------------ rules of a project


def from_project(text, verdict="deny"):
    return parse_project_rule(text, verdict, "/ws/.bradawl/config.toml", Bases("/ws", "/home/u", "/ws"), str)


def test_a_valid_rule_of_a_project_is_like_any_other():
    assert from_project("Read(./.env)") == (
        parse_rule("Read(./.env)", "deny", "/ws/.bradawl/config.toml", Bases("/ws", "/home/u", "/ws"), str),
        "",
    )


@pytest.mark.parametrize("verdict", ["deny", "ask"])
@pytest.mark.parametrize(
    ("text", "tool"),
    [("Bash(rm && x)", "bash"), ("Read([)", "read_file"), ("Bash(", "bash"), ("mcp__x(y)", "mcp__x__z")],
)
def test_an_invalid_restricting_rule_refuses_the_whole_tool(text, tool, verdict):
    found, warning = from_project(text, verdict)
    assert tool in hidden(found, (*OWN, "mcp__x__z"))
    assert "refused" in warning and all("can't be read" in rule.reason for rule in found)
    assert isinstance(decide(Policy("bypass", rules=found), request(tool, UNKNOWN)), Deny)


@pytest.mark.parametrize("text", ["", "???", "Frobnicate(x)", "rm -rf /", "\x00"])
def test_an_invalid_restricting_rule_without_a_known_tool_refuses_every_tool(text):
    found, warning = from_project(text)
    assert set(hidden(found, OWN)) == set(OWN) and "every tool" in warning


def test_an_invalid_allow_rule_is_ignored():
    found, warning = from_project("Bash(a && b)", "allow")
    assert found == () and "ignored" in warning


@given(st.text(max_size=60), st.sampled_from(["deny", "ask", "allow"]))
def test_any_text_is_a_rule_or_an_error(text, verdict):
    found, warning = from_project(text, verdict)
    assert found or warning
    effects = Effects(reads=("/ws/a",), writes=("/ws/b",), hosts=("h",), commands=(("a", "b"),))
    for rule in found:
        met(rule, names_of("bash"), effects)


# ------------------------------------------------------------------ with the decision


def policy(allow=(), ask=(), deny=(), mode="default"):
    lists = (("allow", allow), ("ask", ask), ("deny", deny))
    found = [rule for verdict, texts in lists for text in texts for rule in rules(text, verdict)]
    return Policy(mode, rules=tuple(found), roots=("/ws",))


SHELL = Effects(unknown=True, commands=(("npm", "run", "test"),), seal="s")


def judge(given_policy, effects, tool="bash"):
    return type(decide(given_policy, request(tool, effects)))


def test_deny_wins_over_ask_and_ask_over_allow_regardless_of_specificity():
    assert judge(policy(allow=["Bash(npm run test:*)"]), SHELL) is Allow
    assert judge(policy(allow=["Bash(npm run test)"], ask=["Bash(npm *)"]), SHELL) is Ask
    assert judge(policy(allow=["Bash(npm run test)"], ask=["Bash"], deny=["Bash(npm:*)"]), SHELL) is Deny


def test_every_command_of_a_line_must_be_allowed():
    line = Effects(unknown=True, commands=(("cd", "x"), ("npm", "test"), ("git", "add", ".")), seal="s")
    assert judge(policy(allow=["Bash(npm test)"]), line) is Ask
    assert judge(policy(allow=["Bash(npm test)", "Bash(git add:*)"]), line) is Allow


def test_only_the_file_that_a_rule_allows_is_written_without_a_question():
    allowed = policy(allow=["Edit(src/**)"])
    assert judge(allowed, Effects(writes=("/ws/src/a",)), "edit_file") is Allow
    assert judge(allowed, Effects(writes=("/ws/src/a", "/ws/b")), "multi_edit") is Ask


@given(st.sampled_from(["Read(./.env)", "Bash(rm *)", "Edit", "WebFetch(domain:x.org)", "mcp__x", "Bash"]))
def test_a_refusing_rule_applies_in_every_mode(text):
    effects = {
        "R": ("read_file", Effects(reads=("/ws/.env",))),
        "E": ("write_file", Effects(writes=("/ws/a",))),
        "W": ("web_fetch", Effects(hosts=("a.x.org",))),
        "m": ("mcp__x__y", UNKNOWN),
        "B": ("bash", Effects(unknown=True, commands=(("rm", "x"),), seal="s")),
    }
    tool, touched = effects[text[0]]
    for mode in ("default", "accept-edits", "plan", "auto", "bypass"):
        assert judge(policy(deny=[text], allow=[text], mode=mode), touched, tool) is Deny


def test_rules_are_values_and_name_their_source():
    [rule] = rules("Bash(npm test)")
    assert rule == Rule("allow", "run", "", ("npm", "test"), "Bash(npm test)", "config.toml")
