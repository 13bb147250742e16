"""`Effects`: which calls conflict, and which only read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.effects import UNKNOWN, Effects, conflict

PATHS = st.lists(st.sampled_from(["a", "ab", "b", "a b", "ä"]), max_size=3).map(lambda parts: "/" + "/".join(parts))
PATH_TUPLES = st.lists(PATHS, max_size=2).map(tuple)
EFFECTS = st.builds(
    Effects,
    reads=PATH_TUPLES,
    writes=PATH_TUPLES,
    commands=st.sampled_from([(), (("ls",),)]),
    hosts=st.sampled_from([(), ("example.org",)]),
    external=st.booleans(),
    spends=st.booleans(),
    session=st.sampled_from([(), ("cwd",), ("todos",), ("cwd", "env")]),
    unknown=st.booleans(),
)

CONFLICTING = [
    (Effects(writes=("/a",)), Effects(writes=("/a",))),
    (Effects(writes=("/a",)), Effects(reads=("/a",))),
    (Effects(writes=("/a/b",)), Effects(reads=("/a",))),
    (Effects(writes=("/a",)), Effects(reads=("/a/b/c",))),
    (Effects(writes=("/a/",)), Effects(reads=("/a",))),
    (Effects(writes=("/",)), Effects(reads=("/x",))),
    (Effects(writes=("/x/y",)), Effects(reads=("/",))),
    (Effects(session=("todos",)), Effects(session=("todos", "env"))),
    (Effects(session=("cwd",)), Effects(session=("cwd",))),
    (UNKNOWN, Effects()),
    (Effects(), UNKNOWN),
    (UNKNOWN, UNKNOWN),
    (Effects(reads=("/x",), writes=("/y",)), Effects(reads=("/y/z",))),
]
INDEPENDENT = [
    (Effects(), Effects()),
    (Effects(reads=("/a",)), Effects(reads=("/a",))),
    (Effects(writes=("/a",)), Effects(reads=("/ab",))),
    (Effects(writes=("/a/b",)), Effects(writes=("/a/bc",))),
    (Effects(writes=("/a/b.py",)), Effects(writes=("/a/b",))),
    (Effects(writes=("/A",)), Effects(writes=("/a",))),
    (Effects(session=("todos",)), Effects(session=("cwd",))),
]


@pytest.mark.parametrize(("first", "second"), CONFLICTING)
def test_calls_whose_order_matters_conflict(first: Effects, second: Effects):
    assert conflict(first, second)


@pytest.mark.parametrize(("first", "second"), INDEPENDENT)
def test_calls_that_touch_different_things_may_overlap(first: Effects, second: Effects):
    assert not conflict(first, second)


@given(EFFECTS, EFFECTS)
def test_conflict_is_symmetric_for_calls_that_do_not_change_cwd_or_env(first: Effects, second: Effects):
    assert conflict(first, second) == conflict(second, first) or first.moves or second.moves


@pytest.mark.parametrize("part", ["cwd", "env"])
def test_a_change_of_cwd_or_env_conflicts_with_later_reads_and_not_with_earlier_ones(part):
    assert conflict(Effects(session=(part,)), Effects(reads=("/a",)))
    assert not conflict(Effects(reads=("/a",)), Effects(session=(part,)))


def test_commands_count_as_a_change_unless_they_are_understood():
    assert not Effects(commands=(("ls",),)).is_read_only
    assert Effects(commands=(("ls",),), understood=True).is_read_only
    assert not Effects(commands=(("rm", "a"),), writes=("/a",), understood=True).is_read_only


@given(EFFECTS, EFFECTS)
def test_two_calls_that_only_read_never_conflict(first: Effects, second: Effects):
    assert not (first.is_read_only and second.is_read_only and conflict(first, second))


@given(PATHS, PATHS)
def test_paths_are_compared_by_components_and_not_by_characters(first: str, second: str):
    ours, theirs = ([part for part in path.split("/") if part] for path in (first, second))
    shorter = min(len(ours), len(theirs))
    assert conflict(Effects(writes=(first,)), Effects(reads=(second,))) == (ours[:shorter] == theirs[:shorter])


@pytest.mark.parametrize(
    "effects",
    [
        Effects(writes=("/a",)),
        Effects(commands=(("ls",),)),
        Effects(hosts=("example.org",)),
        Effects(external=True),
        Effects(spends=True),
        Effects(session=("todos",)),
        UNKNOWN,
    ],
)
def test_a_call_with_any_effect_but_reads_is_not_read_only(effects: Effects):
    assert not effects.is_read_only
    assert Effects(reads=("/a",)).is_read_only
