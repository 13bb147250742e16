"""The time of analysing a line of bash: `python benchmarks/shell_effects.py [FILE]...`, one line of bash per line.

From a file of attack cases (`.jsonl`) the lines of bash are used. Prints microseconds of processor time per line, each
the best of five rounds, and the time of the first analysis in a process.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bradawl.core.effects import Effects
from bradawl.safety.shell.analysis import ShellContext, line_effects
from bradawl.workspace.files import LocalFiles

LINES = (
    "ls -la src docs",
    "cat README.md | grep -n 'two words' | sort | uniq -c | sort -rn | head -5",
    "grep -rn --include='*.py' 'def main' src",
    "rg -n 'import' src | head -20",
    "find . -name '*.py' -not -path './.git/*' | sort",
    "wc -l src/*.py",
    "sed -n 1,40p src/a.py",
    "cd src && ls && cd ..",
    "test -d src && echo folder || echo none",
    "mkdir -p build/out && cp README.md build/out && rm -rf build",
    "git log --oneline -n 20 -- src",
    "diff -u README.md docs/guide.md || true",
    "python -m pytest -q tests",
    'for f in *.py; do wc -l "$f"; done',
    "npm test 2>&1 | tail -20",
    "sh -c 'cd build && rm -rf *'",
)
ROUNDS = 5
REPEATS = 40


def judge(line: str, folder: str) -> Effects:
    """Analyse one line, as the tool `bash` does."""
    around = ShellContext(_RESOLVE, "/home/u", (folder,), "/usr/bin:/bin", git_is_safe=lambda _: True)
    return line_effects(line, folder, {}, around)


def microseconds(line: str, folder: str) -> float:
    """The best mean of several rounds."""
    found: list[float] = []
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(REPEATS):
            judge(line, folder)
        found.append((time.thread_time() - started) / REPEATS * 1e6)
    return min(found)


def lines_of(file: Path) -> list[str]:
    """The lines of bash in a file."""
    text = file.read_text(encoding="utf-8").splitlines()
    if file.suffix != ".jsonl":
        return [line for line in text if line and not line.startswith("#")]
    shell = [case["input"] for case in map(json.loads, text) if case["kind"] == "shell"]
    return [case if isinstance(case, str) else case["$repeat"][0] * case["$repeat"][1] for case in shell]


def main() -> None:
    """Measure and print."""
    lines = [line for file in sys.argv[1:] for line in lines_of(Path(file))] or list(LINES)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "src").mkdir()
        Path(folder, ".git").mkdir()
        started = time.perf_counter()
        judge("ls", folder)
        first = (time.perf_counter() - started) * 1e3
        costs = sorted((microseconds(line, folder), line) for line in lines)
    times = [cost for cost, _ in costs]
    print(f"first {first:.1f} ms; then over {len(lines)} lines: median {statistics.median(times):.0f} us, ", end="")
    print(f"95 % below {times[int(len(times) * 0.95)]:.0f} us, most {times[-1]:.0f} us ({costs[-1][1][:60]})")


_RESOLVE = LocalFiles("/home/u").resolve

if __name__ == "__main__":
    main()
