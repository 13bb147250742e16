"""The edit benchmark: inexact edits of models are made in the right place or refused."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def edits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import edits as module

    return module


@pytest.mark.parametrize("is_fresh", [False, True])
def test_no_edit_is_made_in_a_wrong_place_and_nearly_all_in_the_right_one(edits, is_fresh: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 32) if is_fresh else 1
    counts = edits.total(edits.tallied(seed, 300, ("bradawl",))["bradawl"])
    assert counts["wrong"] == 0, f"seed {seed}"
    assert edits.share_right(counts) >= 0.9, f"seed {seed}"
    assert counts["rightly refused"] > 0


def test_the_same_seed_gives_the_same_edits_and_each_must_change_its_file(edits) -> None:
    from edit_cases import KINDS, cases

    one, other = list(cases(7, 100)), list(cases(7, 100))
    assert one == other
    assert len({case.kind for case in one}) >= len(set(KINDS)) - 1
    assert all(case.right != case.data and case.old != case.new for case in one)


def test_the_rules_of_other_agents_give_their_published_results(edits) -> None:
    from edit_cases import Case
    from edit_rules import corecoder, pi

    def case(data: str, old: str, new: str) -> Case:
        return Case("", data.encode(), old, new, None)

    assert corecoder(case("a\r\nb\r\n", "a\nb", "c\nb")) == b"c\nb\n"
    assert corecoder(case("aa", "a", "b")) is None
    assert pi(case("a  \r\nb\r\n", "a\nb", "c\nb")) == b"c\r\nb\r\n"
    assert pi(case("say \u201cx\u201d  \nkept  \n", 'say "x"', 'say "y"')) == b'say "y"\nkept  \n'
    assert pi(case("a\n a\n", "a", "b")) is None


def test_the_benchmark_prints_one_line_for_each_set_of_rules() -> None:
    command = [sys.executable, str(BENCHMARKS / "edits.py"), "--seed", "3", "--count", "50"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True).stdout
    assert [line.split()[0] for line in printed.splitlines()[-3:]] == ["bradawl", "CoreCoder", "pi"]
