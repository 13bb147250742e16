"""The benchmarks run, and the growth of a step's cost is computed correctly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_a_short_benchmark_measures_both_programs_and_writes_what_it_found(tmp_path: Path) -> None:
    options = ["-n", "1", "--starts", "1", "--steps", "8", "--quiet-wait", "0", "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "run.py"), *options], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text())
    figures = {figure["name"]: figure["middle"] for figure in found["figures"]["bradawl"]}
    assert figures["connections"] == 1
    assert figures["per step: edit"] > 0
    assert 0 < figures["cold start"] < figures["one answer, start to exit"]
    for runs in found["runs"].values():
        (run,) = runs["long"]
        assert [gap["kind"] for gap in run["gaps"]] == ["read", "edit", "bash", "grep"] * 2
    assert path.with_suffix(".md").read_text() in done.stdout


def test_a_short_session_in_a_small_window_keeps_its_prompts_and_stays_below_the_window() -> None:
    options = ["--steps", "48", "--window", "8000", "--turns", "24", "--json"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "compaction.py"), *options],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sum(found["tiers"].values()) > 2
    assert found["overflows"] == 0
    assert max(request["tokens"] for request in found["requests"]) < 8_000
    assert (found["not_whole"], found["lost"]) == ([], [])
    # Room for 15 %, by an estimate that the first reports still correct.
    assert found["most_pins"] <= 8_000 * 0.17
    assert found["entries"] > 48


def test_the_tiers_of_a_small_conversation_are_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "compaction_tiers.py"), "8000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()[1::2]] == ["snip", "summarise", "collapse"]


def test_the_growth_is_found_although_each_kind_of_step_has_its_own_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from figures import slope
    from measure import Gap, Run

    cost_s = {"read": 0.001, "edit": 0.004, "bash": 0.010, "grep": 0.007}
    kinds = list(cost_s) * 25
    sizes = [5_000 + 1_500 * number for number in range(100)]

    def run_with(disturbed: int) -> Run:
        # 0.4 ms more for each 100 KB, and one step with a disturbance.
        seconds = [cost_s[kind] + 0.0004 * size / 1e5 for kind, size in zip(kinds, sizes, strict=True)]
        seconds[disturbed] += 0.5
        gaps = [Gap(*step) for step in zip(kinds, sizes, seconds, strict=True)]
        return Run(0.1, 1.0, 1.0, 1, 101, 0.0, None, None, gaps)

    found = slope([run_with(10), run_with(50), run_with(99)])
    assert found.ms == pytest.approx(0.4)
    assert found.error_ms == pytest.approx(0, abs=1e-9)
