"""Reads the attack list, and compares decisions with it."""

import json
from collections import Counter
from pathlib import Path

LIST = Path(__file__).with_name("attacks.jsonl")
KINDS = ("shell", "path", "config", "text", "wire")


def lines(*kinds: str) -> list[str]:
    """The cases of these kinds, as lines of the list."""
    return [line for line in LIST.read_text("ascii").splitlines() if json.loads(line)["kind"] in kinds]


def cases(*kinds: str) -> list[dict]:
    """The cases of these kinds, decoded."""
    return [json.loads(line) for line in lines(*kinds)]


def is_waiting(case: dict) -> bool:
    """Whether the case needs an MCP server, which bradawl does not support yet."""
    return case["kind"] == "wire" and "mcp" in case["input"]


def is_hard(expected: str, decided: str) -> bool:
    """A hard failure: allowed, although it must be asked about or denied."""
    return expected in ("deny", "ask", "error") and decided in ("allow", "sanitize")


def is_soft(expected: str, decided: str) -> bool:
    """A soft failure: not allowed, but with another decision than expected. Cleaned text counts as not allowed."""
    return decided != expected and not is_hard(expected, decided) and (expected, decided) != ("sanitize", "allow")


def table(decided: dict[str, str]) -> tuple[str, list[str]]:
    """A table with a line for each kind, and the failures. `decided` maps case ids to decisions."""
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
