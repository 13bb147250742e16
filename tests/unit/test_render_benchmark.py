"""The benchmark of streamed answers runs: no line is lost or twice, and a frame costs little."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks/streaming.py"


def test_a_streamed_answer_is_drawn_once_and_far_cheaper_than_drawing_everything_again():
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert (figures["stream"]["lines twice"], figures["stream"]["lines lost"]) == (0, 0)
    assert figures["stream"]["ms per update"] < 1
    assert figures["everything"]["ms per update"] > 5 * figures["stream"]["ms per update"]
