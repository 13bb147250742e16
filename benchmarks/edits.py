"""Outcomes of edits with typical mistakes of models: `python benchmarks/edits.py --seed 1 --count 1000`.

Each edit is made by bradawl's `edit_file` and by two published sets of rules. Right: the file equals the expected
one byte for byte. Wrong: it was changed in another way. Refused: it is unchanged.
"""

import argparse
from collections import Counter

from edit_cases import KINDS, OLD_INDENTED_OTHERWISE, Case, Kinds, cases
from edit_rules import RULES

Tally = dict[str, Counter[str]]


def outcome_of(case: Case, result: bytes | None) -> str:
    """One of `right`, `wrong`, `refused`, and `rightly refused` where no unique place is meant."""
    if result is None or result == case.data:
        return "refused" if case.right is not None else "rightly refused"
    return "right" if result == case.right else "wrong"


def tallied(seed: int, count: int, rules: tuple[str, ...] = tuple(RULES), kinds: Kinds = KINDS) -> dict[str, Tally]:
    """For each set of rules and each kind of edit, the number of each outcome."""
    found: dict[str, Tally] = {name: {} for name in rules}
    for case in cases(seed, count, kinds):
        for name in rules:
            found[name].setdefault(case.kind, Counter())[outcome_of(case, RULES[name](case))] += 1
    return found


def total(tally: Tally) -> Counter[str]:
    """Sum over all kinds."""
    return sum(tally.values(), Counter())


def share_right(counts: Counter[str]) -> float:
    """The share of right edits among those with exactly one right place."""
    return counts["right"] / max(counts["right"] + counts["refused"] + counts["wrong"], 1)


def _print_kinds(tally: Tally) -> None:
    print(f"{'bradawl, by kind':34} {'right':>6} {'wrong':>6} {'refused':>8}")
    for kind, counts in sorted(tally.items()):
        print(f"{kind:34} {counts['right']:6} {counts['wrong']:6} {counts['refused'] + counts['rightly refused']:8}")
    print()


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--indentation", action="store_true", help="only edits with an old text indented otherwise")
    options = parser.parse_args()
    kinds = OLD_INDENTED_OTHERWISE if options.indentation else KINDS
    found = tallied(options.seed, options.count, kinds=kinds)
    _print_kinds(found["bradawl"])
    print(f"{'':12} {'right':>6} {'wrong':>6} {'refused':>8} {'rightly':>8}  right, of those with one right place")
    for name, tally in found.items():
        counts = total(tally)
        numbers = (counts["right"], counts["wrong"], counts["refused"], counts["rightly refused"])
        print(f"{name:12} {numbers[0]:6} {numbers[1]:6} {numbers[2]:8} {numbers[3]:8}  {share_right(counts):.1%}")


if __name__ == "__main__":
    main()
