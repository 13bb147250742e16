"""Path patterns: the expression and the places of each form, and what `..`, links and spellings change."""

import re

import pytest

from bradawl.safety.permissions.path_globs import Bases, PathPattern, located_pattern, name_pattern, path_pattern

BASES = Bases("/ws/.bradawl", "/home/u", "/ws")


def same(path: str) -> str:
    return path


def matches(spec: str, path: str, *, widens: bool, bases: Bases = BASES) -> bool:
    return re.fullmatch(path_pattern(spec, bases, same, widens=widens), path, re.DOTALL) is not None


@pytest.mark.parametrize("widens", [True, False])
@pytest.mark.parametrize(
    ("spec", "path", "is_match"),
    [
        ("a/X", "/ws/a/X", True),
        ("a/X", "/ws/deep/a/X", False),
        ("X/", "/ws/deep/X", True),
        ("/hooks", "/ws/.bradawl/hooks", True),
        ("/hooks", "/ws/.bradawl/deep/hooks", False),
        ("..", "/other", True),
        ("../", "/other", True),
        (".", "/ws/a/b", True),
        (".", "/other", False),
        ("~", "/home/u/a", True),
        ("~", "/home/other", False),
        ("~/", "/home/u", True),
        ("a/**/**/b", "/ws/a/x/y/b", True),
        ("**/**", "/ws/a", True),
        ("a/**/**", "/ws/a", True),
        ("a/**/**", "/ws/b", False),
        ("a*b*c*d", "/ws/a-b-c-d", True),
        ("a*b*c*d*e", "/ws/abcde", True),
        ("a*b*c*d*e", "/ws/abdce", False),
        ("a*", "/ws/a", True),
        ("?", "/ws/aa", False),
        ("?*?", "/ws/aa", True),
        ("?*?", "/ws/a", False),
    ],
)
def test_what_a_pattern_matches_for_both_kinds_of_rules(spec: str, path: str, is_match: bool, widens: bool):
    assert matches(spec, path, widens=widens) is is_match


@pytest.mark.parametrize("widens", [True, False])
@pytest.mark.parametrize(
    ("spec", "members", "others"),
    [
        ("[a]", "a", "bX^"),
        ("[!a]", "bX^!", "a/"),
        ("[^a]", "bX^", "a/"),
        ("[a^]", "a^", "b"),
        ("[a-c]", "abc", "d-"),
        (r"[a\-c]", "a-c", "b\\"),
        (r"[\]]", "]", "\\a"),
        (r"[\\a]", "\\a", "b"),
        ("[]a]", "]a", "b["),
        ("[[a]", "[a", "]b"),
        ("[a&&b]", "a&b", "|~"),
        ("[a||b]", "a|b", "&~"),
        ("[a~~b]", "a~b", "&|"),
        ("[!-~]", "a!", "-~"),
    ],
)
def test_which_characters_a_class_matches(spec: str, members: str, others: str, widens: bool):
    assert [each for each in members if not matches(spec, f"/ws/{each}", widens=widens)] == []
    assert [each for each in others if matches(spec, f"/ws/{each}", widens=widens)] == []


def test_the_start_of_a_pattern_keeps_every_character():
    for folder in ("/X", "/wsX", "/w[s]", "/w.s"):
        bases = Bases(folder, folder, folder)
        for spec in ("a", "./a", "/a", "~/a"):
            assert matches(spec, f"{folder}/a", widens=True, bases=bases)
            assert not matches(spec, "/w/a", widens=True, bases=bases)
    assert not matches("./a", "/wxs/a", widens=True, bases=Bases("", "", "/w.s"))
    assert matches("./a", "/a", widens=True, bases=Bases("", "", "/"))


def test_only_a_rule_that_does_not_allow_ignores_case():
    assert matches("./A", "/ws/a", widens=False)
    assert not matches("./A", "/ws/a", widens=True)


# ------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("spec", "places"),
    [
        ("a/b", ("/ws/a/b",)),
        ("a/*/c", ("/ws/a",)),
        ("a/**", ("/ws/a",)),
        ("**/a", ("/ws",)),
        ("a", ("/ws",)),
        ("*", ("/ws",)),
        (".", ("/ws",)),
        ("..", ("/",)),
        ("//", ("/",)),
        ("//etc/X*", ("/etc",)),
        ("./X/*", ("/ws/X",)),
        (r"./a\*b/c", ("/ws/a*b/c",)),
        (r"./\a\[/c*", ("/ws/a[",)),
        (r"./a\**", ("/ws",)),
        ("./a?", ("/ws",)),
        ("./[a]", ("/ws",)),
        ("~/x", ("/home/u/x",)),
        ("/x", ("/ws/.bradawl/x",)),
    ],
)
def test_a_rule_that_does_not_allow_has_the_literal_start_of_its_pattern(spec: str, places: tuple[str, ...]):
    assert located_pattern(spec, BASES, same, widens=False).places == places
    assert located_pattern(spec, BASES, same, widens=True) == PathPattern(
        path_pattern(spec, BASES, same, widens=True), ()
    )


# ------------------------------------------------------------------ links


def resolver(links: dict[str, str]):
    def resolve(path: str) -> str:
        return next((f"{to}{path[len(at) :]}" for at, to in links.items() if f"{path}/".startswith(f"{at}/")), path)

    return resolve


@pytest.mark.parametrize("spec", ["link/../x", "./link/../x", "link//.././x", "link/../x/*"])
def test_two_dots_behind_a_link_mean_the_text_and_the_target(spec: str):
    resolve = resolver({"/ws/link/../x": "/srv/x"})
    found = located_pattern(spec, BASES, resolve, widens=False)
    assert found.places == ("/ws/x", "/srv/x")
    for path in ("/ws/x/a", "/srv/x/a"):
        assert re.fullmatch(found.expression, path)
    assert not re.fullmatch(found.expression, "/ws/link/x/a")


def test_without_two_dots_only_the_literal_start_is_resolved():
    seen: list[str] = []

    def resolve(path: str) -> str:
        seen.append(path)
        return path

    assert located_pattern("a/b/*", BASES, resolve, widens=False).places == ("/ws/a/b",)
    assert seen == ["/ws", "/ws/a/b"]


def test_a_rule_that_does_not_allow_also_holds_at_the_target_of_its_literal_start():
    resolve = resolver({"/ws/link": "/srv/target"})
    found = located_pattern("link/*.key", BASES, resolve, widens=False)
    assert found.places == ("/ws/link", "/srv/target")
    assert re.fullmatch(found.expression, "/srv/target/a.key") and re.fullmatch(found.expression, "/ws/link/a.key")
    assert not re.fullmatch(found.expression, "/srv/target/a")


@pytest.mark.parametrize(
    ("spec", "path", "is_match"),
    [
        ("//tmp/x", "/private/tmp/x", True),
        ("//tmp/x", "/tmp/x", False),
        ("//tmp/*", "/private/tmp/x", True),
        ("//srv/link/x", "/srv/link/x", True),
        ("//srv/link/x", "/data/x", False),
        ("//", "/anything", True),
        ("//*", "/anything", True),
    ],
)
def test_an_allow_rule_resolves_only_its_base_and_a_name_in_the_root(spec: str, path: str, is_match: bool):
    resolve = resolver({"/tmp": "/private/tmp", "/srv/link": "/data"})
    assert (re.fullmatch(path_pattern(spec, BASES, resolve, widens=True), path) is not None) is is_match


# ------------------------------------------------------------------ Unicode

COMPOSED, DECOMPOSED = "caf\xe9", "cafe\u0301"


@pytest.mark.parametrize(("cwd", "spec"), [("/ws", f"./{DECOMPOSED}"), (f"/{DECOMPOSED}", "./x")])
def test_a_rule_that_does_not_allow_matches_both_spellings_of_a_name(cwd: str, spec: str):
    found = located_pattern(spec, Bases("", "", cwd), same, widens=False)
    path = f"{cwd}/{spec[2:]}"
    assert re.fullmatch(found.expression, path)
    assert re.fullmatch(found.expression, path.replace(DECOMPOSED, COMPOSED))
    assert found.places == (path,)


def test_an_allow_rule_matches_the_spelling_as_written():
    assert not matches(f"./{DECOMPOSED}", f"/ws/{COMPOSED}", widens=True)
    assert matches(f"./{DECOMPOSED}", f"/ws/{DECOMPOSED}", widens=True)


@pytest.mark.parametrize(
    ("glob", "name", "is_match"), [("a*", "abc", True), ("a*", "ba", False), ("a.c", "abc", False)]
)
def test_the_pattern_of_a_name_matches_the_whole_name(glob: str, name: str, is_match: bool):
    assert (re.fullmatch(name_pattern(glob), name) is not None) is is_match
