"""`Rule`: which part of a call it matches, and its reason."""

import pytest

from bradawl.core.effects import Effects
from bradawl.core.rules import BUILT_IN, Rule, all_met, met, parts, speaks_of

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
