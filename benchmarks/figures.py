"""Computes the figures of a report from measured runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from measure import Gap, Run
from work import KINDS

_QUIET_CORES = 0.3
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs of one program."""

    starts: list[Run]
    """Runs with one request each."""
    long: list[Run]
    """Timed runs of the long conversation."""
    sampled: list[Run]
    """Runs of the long conversation with memory sampling; not used for times."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Median, minimum and maximum over runs."""

    name: str
    unit: str
    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth of the time between requests with the size of the request, in ms per 100 KB."""

    ms: float
    error_ms: float
    """One standard error."""


def quiet(runs: Sequence[Run]) -> list[Run]:
    """The runs with little load from other programs; all runs if there are fewer than three of them."""
    calm = [run for run in runs if run.noise_cores is not None and run.noise_cores < _QUIET_CORES]
    return calm if len(calm) >= 3 else list(runs)


def figures(runs: Runs) -> list[Figure]:
    """The figures of a program in the order of the report. Times are in milliseconds unless the unit differs."""
    starts, long = quiet(runs.starts), quiet(runs.long)
    found = [
        _figure("cold start", "ms", starts, lambda run: run.cold_start_s * _MS),
        _figure("one answer, start to exit", "ms", starts, lambda run: run.wall_s * _MS),
        _figure("per step", "ms", long, lambda run: median(gap.seconds for gap in run.gaps) * _MS),
        _figure("per step, 95th of 100", "ms", long, lambda run: _highest(run.gaps, 0.95) * _MS),
    ]
    found += [_figure(f"per step: {kind}", "ms", long, _of_kind(kind)) for kind in KINDS]
    found.append(_slope_figure(long))
    found += [
        _figure("long conversation, start to exit", "s", long, lambda run: run.wall_s),
        _figure("processor time", "s", long, lambda run: run.cpu_s),
        _figure("connections", "", long, lambda run: run.connections),
        _figure("last request", "KB", long, lambda run: run.gaps[-1].body_bytes / 1000),
    ]
    if all(run.memory is not None for run in runs.sampled) and runs.sampled:
        found.append(_figure("peak memory, PSS", "MB", runs.sampled, lambda run: _megabytes(run, "pss")))
        found.append(_figure("peak memory, RSS", "MB", runs.sampled, lambda run: _megabytes(run, "rss")))
    return found


def slope(runs: Sequence[Run]) -> Slope:
    """Least squares over the steps, after subtracting from each kind of step its own mean.

    Each step is represented by its median over the runs, to reduce the influence of a disturbed run.
    """
    steps = [_typical(step) for step in zip(*(run.gaps for run in runs), strict=True)]
    points: list[tuple[float, float]] = []
    for kind in KINDS:
        points += _centred([(gap.body_bytes / 1e5, gap.seconds * _MS) for gap in steps if gap.kind == kind])
    spread = sum(x * x for x, _ in points)
    if not spread:
        return Slope(0.0, 0.0)
    ms = sum(x * y for x, y in points) / spread
    free = max(1, len(points) - len(KINDS) - 1)
    left = sum((y - ms * x) ** 2 for x, y in points)
    return Slope(ms, (left / free / spread) ** 0.5)


def _slope_figure(runs: Sequence[Run]) -> Figure:
    found = slope(runs)
    return Figure(
        "growth per 100 KB of request (+- one standard error)",
        "ms",
        found.ms,
        found.ms - found.error_ms,
        found.ms + found.error_ms,
    )


def _typical(gaps: Sequence[Gap]) -> Gap:
    return Gap(gaps[0].kind, gaps[0].body_bytes, median(gap.seconds for gap in gaps))


def _centred(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if not points:
        return []
    x0, y0 = (sum(values) / len(points) for values in zip(*points, strict=True))
    return [(x - x0, y - y0) for x, y in points]


def _of_kind(kind: str) -> Callable[[Run], float]:
    return lambda run: median(gap.seconds for gap in run.gaps if gap.kind == kind) * _MS


def _highest(gaps: Sequence[Gap], share: float) -> float:
    ordered = sorted(gap.seconds for gap in gaps)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _megabytes(run: Run, part: str) -> float:
    return getattr(run.memory, part) / 1e6


def _figure(name: str, unit: str, runs: Iterable[Run], value: Callable[[Run], float]) -> Figure:
    values = [value(run) for run in runs]
    return Figure(name, unit, median(values), min(values), max(values))
