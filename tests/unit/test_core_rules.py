"""`Rule`: which part of a call it matches, and its reason."""

import pytest

from bradawl.core.effects import Effects
from bradawl.core.rules import BUILT_IN, Rule, all_met, met, parts, path_rules, refuses, speaks_of

EVERYTHING = Effects(
    reads=("/r",), writes=("/w",), commands=(("c",),), inner=(("i",),), hosts=("h.example",), unknown=True
)


@pytest.mark.parametrize(
    ("on", "found"),
    [("tool", ("t",)), ("read", ("/r",)), ("write", ("/w",)), ("reach", ("h.example",)), ("network", (("c",),))],
)
def test_a_rule_is_compared_with_one_part_of_a_call(on, found):
    assert parts(Rule("allow", on), ("t",), EVERYTHING) == found
    assert parts(Rule("deny", on), ("t",), EVERYTHING) == found


def test_ask_and_deny_rules_see_inner_commands_and_allow_rules_do_not():
    assert parts(Rule("allow", "run"), "t", EVERYTHING) == (("c",),)
    assert parts(Rule("ask", "run"), "t", EVERYTHING) == (("c",), ("i",))
    assert parts(Rule("deny", "run"), "t", EVERYTHING) == (("c",), ("i",))


@pytest.mark.parametrize(
    ("words", "argv", "matches"),
    [
        (("git", "log"), ("git", "log"), True),
        (("git", "log"), ("git", "log", "-p"), False),
        (("git", "log"), ("git",), False),
        (("git", "*"), ("git",), True),
        (("git", "*"), ("git", "push", "--force"), True),
        (("git", "*"), ("gitk",), False),
        (("*",), ("anything", "at", "all"), True),
        (("git", "*", "-n"), ("git", "log", "-n"), True),
        (("git", "*", "-n"), ("git", "log", "x", "-n"), False),
        (("py*", "x"), ("python3", "x"), True),
        (("py*", "x"), ("PYTHON", "x"), False),
        (("a", "b", "*"), ("a",), False),
        ((), (), True),
        ((), ("a",), False),
    ],
)
def test_the_words_of_a_command_are_compared_one_by_one(words, argv, matches):
    assert speaks_of(Rule("allow", "run", words=words), argv) is matches


@pytest.mark.parametrize(
    ("host", "reached", "matches"),
    [
        ("a.example", "a.example", True),
        ("a.example", "b.a.example", True),
        ("a.example", "ba.example", False),
        ("a.example", "a.example.evil", False),
        ("*", "any.example", True),
        ("*", "*", True),
        ("a.example", "*", False),
    ],
)
def test_a_host_matches_itself_and_its_subdomains(host, reached, matches):
    assert speaks_of(Rule("allow", "reach", host), reached) is matches


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [("/a/.*", "/a/b", True), ("/a", "/a/b", False), ("/b", "/a/b", False), ("/a/.*", "/a/b\nc", True)],
)
def test_a_path_is_compared_as_a_whole(pattern, path, matches):
    assert speaks_of(Rule("allow", "read", pattern), path) is matches


def test_met_returns_the_parts_that_a_rule_matches():
    assert met(Rule("deny", "read", "/a.*"), ("t",), Effects(reads=("/a1", "/b", "/a2"))) == ("/a1", "/a2")


def test_all_met_needs_at_least_one_part_and_a_match_for_each():
    one, other = Rule("allow", "read", "/a"), Rule("allow", "read", "/b")
    assert all_met((one, other), ("/a", "/b")) == other
    assert all_met((other, one), ("/a", "/b")) == other
    assert all_met((one, other), ("/a", "/c")) is None
    assert all_met((one, other), ("/c", "/a")) is None
    assert all_met((one,), ()) is None
    assert all_met((), ("/a",)) is None


def test_the_reason_of_a_rule_is_its_why_or_its_name():
    assert Rule("deny", "tool", why="not here").reason == "not here"
    assert Rule("deny", "tool", text="Bash", source="user").reason == "the rule Bash (user) says deny"
    assert Rule("deny", "tool").source == BUILT_IN
    assert Rule("deny", "tool", text="Bash").reason == "the rule Bash (built-in) says deny"


def test_a_rule_with_default_fields_matches_nothing():
    assert Rule("deny", "tool") == Rule("deny", "tool", "", (), "", "built-in", "", True)
    for on in ("tool", "read", "write", "run", "network", "reach"):
        assert met(Rule("deny", on), ("t",), EVERYTHING) == ()


# ------------------------------------------------------------------ both Unicode spellings of a path


@pytest.mark.parametrize(("verdict", "is_met"), [("deny", True), ("ask", True), ("allow", False)])
def test_only_a_rule_that_does_not_allow_matches_the_other_spelling_of_a_name(verdict, is_met: bool):
    rule = Rule(verdict, "read", "/caf\xe9/.*")
    assert speaks_of(rule, "/caf\xe9/a")
    assert speaks_of(rule, "/cafe\u0301/a") is is_met
    assert speaks_of(rule, "/cafe\u0301/a\nb") is is_met
    assert not speaks_of(rule, "/cafe\u0301")
    assert not speaks_of(rule, "/cafe/a")


# ------------------------------------------------------------------ folders

KEY = Rule("deny", "read", "/ws/keys/one", places=("/ws/keys/one",))


@pytest.mark.parametrize(
    ("reads", "spends", "found"),
    [
        ("whole", False, ("/ws/keys",)),
        ("whole", True, ("/ws/keys",)),
        ("exact", False, ()),
        ("later", False, ("/ws/keys",)),
        ("later", True, ()),
    ],
)
def test_how_a_rule_applies_to_the_folder_above_its_path(reads, spends: bool, found: tuple[str, ...]):
    effects = Effects(reads=("/ws/keys", "/ws/other"), spends=spends)
    assert met(KEY, (), effects, reads) == found
    assert parts(KEY, (), effects, reads) == (() if reads == "later" and spends else effects.reads)


@pytest.mark.parametrize("reads", ["whole", "exact", "later"])
def test_the_path_of_a_rule_itself_is_met_however_folders_are_read(reads):
    assert met(KEY, (), Effects(reads=("/ws/keys/one", "/ws/a")), reads) == ("/ws/keys/one",)


def test_an_allow_rule_and_a_shell_line_do_not_take_in_the_folder_above():
    folder = Effects(reads=("/ws/keys",))
    assert met(KEY, (), folder) == ("/ws/keys",)
    assert met(Rule("allow", "read", KEY.pattern, places=KEY.places), (), folder) == ()
    assert met(Rule("deny", "read", KEY.pattern), (), folder) == ()
    assert met(KEY, (), Effects(reads=("/ws/keys",), seal="s")) == ()
    assert met(KEY, (), Effects(reads=("/ws/keys/one",), seal="s")) == ("/ws/keys/one",)


def test_a_folder_is_met_only_if_the_rule_matches_the_place_below_it():
    rule = Rule("deny", "read", "/ws/b/.*", places=("/ws/a", "/ws/b/c"))
    assert met(rule, (), Effects(reads=("/ws/a", "/ws/b", "/ws/a/c", "/other"))) == ("/ws/b",)
    assert met(rule, (), Effects(reads=("/ws/a",))) == ()
    words = Rule("deny", "run", words=("rm",), places=("/ws",))
    assert met(words, (), Effects(commands=(("rm",), ("ls",)))) == (("rm",),)


# ------------------------------------------------------------------ rules about paths


def test_rules_of_users_that_deny_paths_or_ask_about_them():
    deny = Rule("deny", "read", "/a", source="user")
    ask = Rule("ask", "write", "/a", source="user")
    others = (
        Rule("allow", "read", "/a", source="user"),
        Rule("deny", "run", words=("rm",), source="user"),
        Rule("deny", "tool", "bash", source="user"),
        Rule("deny", "read", "/a"),
    )
    assert path_rules((others[0], deny, *others[1:], ask)) == (deny, ask)


def test_whether_one_of_several_rules_refuses_a_path():
    rules = (
        Rule("ask", "read", "/b"),
        Rule("deny", "write", "/a"),
        Rule("deny", "read", "/c"),
        Rule("allow", "read", ".*"),
    )
    assert refuses(rules, "read", "/c") and refuses(rules, "write", "/a")
    assert not refuses(rules, "read", "/a") and not refuses(rules, "read", "/b") and not refuses(rules, "write", "/c")
    assert not refuses((), "read", "/c")
