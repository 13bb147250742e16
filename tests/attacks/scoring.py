"""The list of attacks, and how answers to it are scored."""

import json
from collections import Counter
from pathlib import Path

LIST = Path(__file__).with_name("attacks.jsonl")
KINDS = ("shell", "path", "config", "text", "wire")


def lines(*kinds: str) -> list[str]:
    """The cases of these kinds as they stand in the list."""
    return [line for line in LIST.read_text("ascii").splitlines() if json.loads(line)["kind"] in kinds]


def cases(*kinds: str) -> list[dict]:
    """The same, decoded."""
    return [json.loads(line) for line in lines(*kinds)]


def is_waiting(case: dict) -> bool:
    """Whether it needs a server of tools, which nothing here starts yet."""
    return case["kind"] == "wire" and "mcp" in case["input"]


def is_hard(expected: str, decided: str) -> bool:
    """What must be held back was let through."""
    return expected in ("deny", "ask", "error") and decided in ("allow", "sanitize")


def is_soft(expected: str, decided: str) -> bool:
    """Held back, but in another way; what is only to be cleaned counts, so the commands call it allowed."""
    return decided != expected and not is_hard(expected, decided) and (expected, decided) != ("sanitize", "allow")


def table(decided: dict[str, str]) -> tuple[str, list[str]]:
    """A line for each kind of case, and the failures; `decided` is by the case's id."""
    total, hard, soft, waiting = Counter(), Counter(), Counter(), Counter()
    failures = []
    for case in cases(*KINDS):
        kind = case["kind"]
        if case["id"] not in decided:
            waiting[kind] += 1
            continue
        found = decided[case["id"]]
        total[kind] += 1
        hard[kind] += is_hard(case["expect"], found)
        soft[kind] += is_soft(case["expect"], found)
        if is_hard(case["expect"], found) or is_soft(case["expect"], found):
            failures.append(f"{case['id']}: {found} for {case['expect']}: {ascii(case['input'])[:100]}")
    rows = [f"{kind:8}{total[kind]:8}{hard[kind]:8}{soft[kind]:8}{waiting[kind]:10}" for kind in KINDS]
    return "\n".join([f"{'kind':8}{'cases':>8}{'hard':>8}{'soft':>8}{'waiting':>10}", *rows]), failures
