"""Compares determined effects with the real bash on random lines: `python tests/fuzz_shell.py [SECONDS] [SEED]`.

Runs the property tests of the same names. Exits with 1 and the smallest counterexample if one is found.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("unit")))

import test_shell_effects_bash as lines
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

_EACH = 40
_SOURCES: tuple[tuple[Callable[..., None], st.SearchStrategy[list[str]]], ...] = (
    (lines.test_bash_runs_only_the_predicted_commands_and_arguments, lines.SEVERAL_LINES),
    (lines.test_a_line_with_known_effects_changes_only_what_it_declares, lines.SEVERAL_SCRIPTS),
    (lines.test_commands_at_any_depth_are_found, lines.SEVERAL_NESTED),
)


class _Folders:
    """Replaces pytest's `tmp_path_factory`."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def mktemp(self, name: str) -> Path:
        """A new folder."""
        return Path(tempfile.mkdtemp(prefix=name, dir=self._top))


def compare(test: Callable[..., None], source: st.SearchStrategy[list[str]], number: int, folder: Path) -> int:
    """Run examples from this seed, and return the number of lines. Raises what the test raises."""
    check = test.hypothesis.inner_test  # type: ignore[attr-defined]  # the test function without hypothesis
    takes = "tmp_path_factory" if "tmp_path_factory" in check.__code__.co_varnames else "tmp_path"
    count = 0

    @seed(number)
    @settings(
        max_examples=_EACH,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(source)
    def run(chosen: list[str]) -> None:
        nonlocal count
        count += len(chosen)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            check(lines=chosen, **{takes: _Folders(Path(place)) if takes.endswith("factory") else Path(place)})

    run()
    return count


def main() -> None:
    """Run until the time is over."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    number = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 10**6
    print(f"seed {number}", flush=True)
    counts = dict.fromkeys((test.__name__ for test, _ in _SOURCES), 0)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for test, source in _SOURCES:
                counts[test.__name__] += compare(test, source, number, Path(folder))
            number += 1
    for name, count in counts.items():
        print(f"{count:7,} lines: {name}")


if __name__ == "__main__":
    main()
