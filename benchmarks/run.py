"""Compares bradawl with a bare loop on a scripted model, without network or key.

python benchmarks/run.py [-n RUNS] [--steps N] [--quick]    (--help for the rest)

Runs of both programs alternate, so that a busy moment of the machine affects both.
"""

import argparse
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from figures import Runs
from measure import RunFailed, Subject, measure, subjects
from report import save
from work import KINDS

_RESULTS = Path(__file__).resolve().parent / "results"

_SAMPLED_RUNS = 3
"""A child sampled between fork and exec counts twice, so a single run may report too much memory."""


def main(arguments: list[str] | None = None) -> int:
    """Measure as the arguments say and print the table. Returns the exit code."""
    options = _parsed(arguments)
    when = datetime.now().astimezone()
    try:
        with tempfile.TemporaryDirectory() as home:
            runs = _measured(subjects(), options, Path(home))
    except RunFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    path = save(options.output, runs, when, options.steps)
    print(path.read_text())
    print(f"Written to {path} and, run by run, to {path.with_suffix('.json').name} beside it.")
    return 0


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure bradawl beside a bare loop, on a scripted model.")
    parser.add_argument("-n", type=int, default=5, dest="runs", help="long conversations of each program (%(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="steps of the long conversation (%(default)s)")
    parser.add_argument("--starts", type=int, default=4, help="short conversations for each long one (%(default)s)")
    parser.add_argument(
        "--output", type=Path, default=_RESULTS, metavar="DIR", help="where the results go (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="one conversation of 40 steps: a look, not a measurement")
    parser.add_argument(
        "--quiet-wait",
        type=float,
        default=5.0,
        metavar="S",
        help="before each run wait so long for others (%(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.runs, options.steps, options.quiet_wait = 1, 40, 0.0
    if options.runs < 1 or options.starts < 1 or options.steps < 2 * len(KINDS):
        parser.error(f"there must be one run and one start at least, and {2 * len(KINDS)} steps")
    return options


def _measured(programs: list[Subject], options: argparse.Namespace, home: Path) -> dict[str, Runs]:
    runs = {program.name: Runs([], [], []) for program in programs}
    for program in programs:
        # The first run compiles modules and fills the page cache. It is not counted.
        measure(program, len(KINDS), home)
    for number in range(options.runs):
        for program in programs if number % 2 else reversed(programs):
            own = runs[program.name]
            for _ in range(options.starts):
                own.starts.append(measure(program, 0, home, quiet_s=options.quiet_wait))
            own.long.append(measure(program, options.steps, home, quiet_s=options.quiet_wait))
            print(f"{number + 1}/{options.runs} {program.name}: {own.long[-1].wall_s:.1f} s", file=sys.stderr)
    for program in programs:
        for _ in range(min(options.runs, _SAMPLED_RUNS)):
            runs[program.name].sampled.append(measure(program, options.steps, home, with_memory=True))
    return runs


if __name__ == "__main__":
    raise SystemExit(main())
