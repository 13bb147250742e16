"""Path patterns of rules: what they match, and that matching takes linear time."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_safety_rules import matches, reads, rules

from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.rules import met
from bradawl.safety.permissions.path_globs import Bases, path_pattern
from bradawl.safety.permissions.rule_syntax import parse_rule
from patience import cpu_limit


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("./.env", "/ws/.env"),
        (".env", "/ws/.env"),
        (".env", "/ws/deep/down/.env"),
        (".env", "/ws/.env/key"),
        ("*.pem", "/ws/a/b.pem"),
        ("src/**", "/ws/src/a/b.py"),
        ("src/**", "/ws/src"),
        ("src/*.py", "/ws/src/a.py"),
        ("src/**/test_*.py", "/ws/src/test_a.py"),
        ("src/**/test_*.py", "/ws/src/x/y/test_a.py"),
        ("**/secrets/**", "/ws/a/secrets/b"),
        ("secrets/", "/ws/a/secrets/b"),
        ("a/**/b/**/c", "/ws/a/x/b/y/z/c/below"),
        ("a/**/b/**/c", "/ws/a/b/c"),
        ("**", "/ws/anything/at all"),
        (".", "/ws/x"),
        ("./", "/ws/x"),
        ("../other/*", "/other/x"),
        ("src/../lib/x", "/ws/lib/x"),
        ("//etc/hosts", "/etc/hosts"),
        ("//", "/anything"),
        ("//var/**/*.log", "/var/a/b/c.log"),
        ("~/notes/**", "/home/u/notes/a"),
        ("~", "/home/u/x"),
        ("/hooks", "/ws/.bradawl/hooks/x"),
        ("file?.txt", "/ws/file1.txt"),
        ("file[0-9].txt", "/ws/file1.txt"),
        ("file[!a].txt", "/ws/file1.txt"),
        ("file[]x].txt", "/ws/file].txt"),
        (r"file\[1\].txt", "/ws/file[1].txt"),
        (r"what\?", "/ws/what?"),
        ("docs/(old)/**", "/ws/docs/(old)/x"),
        ("with blank/x y", "/ws/with blank/x y"),
        ("a*b*c", "/ws/aXbbXbc"),
        ("*", "/ws/a\nb"),
        ("größe/*", "/ws/größe/é"),
        ("a//b/./c", "/ws/a/b/c"),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_path_that_a_rule_names_matches(spec, path, verdict):
    assert reads(f"Read({spec})", path, verdict)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("./.env", "/ws/deep/.env"),
        (".env", "/ws/.envrc"),
        (".env", "/other/.env"),
        ("*.pem", "/ws/a.pem.txt"),
        ("src/**", "/ws/srcs/a"),
        ("src/**", "/ws/other/src/a"),
        ("src/*.py", "/ws/src/deep/a.py"),
        ("src/**/test_*.py", "/ws/src/a.py"),
        ("a/**/b", "/ws/a/xb"),
        ("//etc/hosts", "/ws/etc/hosts"),
        ("//etc/hosts", "/etc/hosts2"),
        ("~/notes/**", "/home/u2/notes/a"),
        ("/hooks", "/hooks"),
        ("/hooks", "/ws/hooks"),
        ("file?.txt", "/ws/file/.txt"),
        ("file[!a].txt", "/ws/file/.txt"),
        ("file[!a].txt", "/ws/filea.txt"),
        (r"\*", "/ws/a"),
        ("a.b", "/ws/axb"),
        ("a*b*c", "/ws/acb"),
        ("(a+)+", "/ws/aa"),
        ("**/x", "/x"),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_path_that_a_rule_does_not_name_does_not_match(spec, path, verdict):
    assert not reads(f"Read({spec})", path, verdict)


def test_restricting_rules_ignore_case_and_permitting_rules_do_not():
    assert reads("Read(./.env)", "/ws/.ENV", "deny") and reads("Read(./.env)", "/ws/.ENV", "ask")
    assert not reads("Read(./.env)", "/ws/.ENV", "allow")


def test_restricting_rules_also_match_the_target_of_a_link():
    links = {"/ws/secrets": "/srv/vault"}
    for spec in ("secrets/**", "./secrets", "secrets/*.key", "//ws/secrets"):
        assert reads(f"Read({spec})", "/srv/vault/a.key", "deny", links)
    assert reads("Read(secrets/**)", "/ws/secrets/a", "deny", links)
    assert not reads("Read(secrets/*.key)", "/srv/vault/a.txt", "deny", links)


def test_a_link_in_the_workspace_never_extends_an_allow_rule():
    assert not reads("Edit(src/**)", "/etc/passwd", links={"/ws/src": "/etc"})
    assert not matches("Edit(src/**)", writes=("/etc/passwd",), links={"/ws/src": "/etc"})
    assert not matches("Edit(//ws/src/**)", writes=("/etc/passwd",), links={"/ws/src": "/etc"})


def test_the_base_folders_of_rules_are_resolved():
    assert reads("Read(~/x)", "/data/u/x", links={"/home/u": "/data/u"})
    assert reads("Read(//tmp/x)", "/private/tmp/x", links={"/tmp": "/private/tmp"})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("!x", "makes no exceptions"),
        ("~other/x", "your own home"),
        ("$HOME/x", "variables"),
        ("a/[b", "not closed"),
        ("[[:alpha:]]", "a-zA-Z"),
        ("[z-a]", "no class"),
        ("*/../x", "can't follow a pattern"),
        ("x\\", "backslash"),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_an_invalid_pattern_is_an_error(spec, message, verdict):
    with pytest.raises(SettingsError, match=re.escape(message)) as caught:
        rules(f"Read({spec})", verdict)
    assert str(caught.value).startswith("config.toml: ")


def test_an_unknown_base_folder_is_an_error():
    with pytest.raises(SettingsError, match="home folder is not known"):
        parse_rule("Read(~/x)", "deny", "flag", Bases("/ws", "", "/ws"), str)


SEGMENTS = st.lists(
    st.sampled_from(["**", "*", "a", "b", "a*", "*b", "a*b", "?", "[ab]", "a?*"]), min_size=1, max_size=5
)
NAMES = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6)


def matches_by_backtracking(segments, names):
    """The reference implementation: backtracking."""
    if not segments:
        return True
    first, rest = segments[0], segments[1:]
    if first == "**":
        return any(matches_by_backtracking(rest, names[skipped:]) for skipped in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], first) and matches_by_backtracking(rest, names[1:])


@given(SEGMENTS, NAMES)
def test_patterns_match_like_a_backtracking_reference(segments, names):
    pattern = path_pattern("./" + "/".join(segments), Bases("/f", "/h", "/ws"), str, widens=True)
    found = re.fullmatch(pattern, "/ws/" + "/".join(names), re.DOTALL) is not None
    assert found == matches_by_backtracking(segments, names)


@pytest.mark.parametrize(
    "spec",
    [
        "**/a/" * 20 + "b",
        "*a" * 30 + "*b",
        "**/" + "*a" * 30 + "/**/b",
        "/".join(["*"] * 60) + "/b",
        "**/*a*b/" * 20 + "c",
    ],
)
def test_no_pattern_takes_long_on_any_path(spec):
    [rule] = rules(f"Read({spec})", "deny")
    paths = ("/ws/" + "a/" * 2_000, "/ws/" + "a" * 4_000, "/ws/" + "aab/" * 1_000)
    with cpu_limit(1):
        for path in paths:
            met(rule, ("read_file",), Effects(reads=(path,)))
